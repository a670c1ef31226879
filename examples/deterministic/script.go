package main

import (
	"github.com/pawl-agents/pawl/examples/internal/example"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// chosen is the model, with what it says offline.
func chosen() model.Model {
	return example.Model(
		pawltest.ScriptedText("A keeper lights a lamp that no ship has needed for years, until one does."),
		pawltest.ScriptedText(`{"good":true,"is_science_story":false,"expected_minutes":1}`),
		pawltest.ScriptedText("Every evening Ines lit the lamp for nobody. The night the fog took the radio masts, nobody blew his horn twice."),
	)
}
