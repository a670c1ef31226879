package main

import (
	"github.com/pawl-agents/pawl/examples/internal/example"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// chosen is the model, with what it says offline.
func chosen() model.Model {
	return example.Model(
		pawltest.ScriptedText(`{"kind":"fact"}`),
		pawltest.ScriptedText("The Loire, with 1,006 kilometres."),
		pawltest.ScriptedText(`{"kind":"sum"}`),
		pawltest.ScriptedText("17 times 23 is 391."),
		pawltest.ScriptedText(`{"kind":"opinion"}`),
		pawltest.ScriptedText("I would not know: I drink neither."),
	)
}
