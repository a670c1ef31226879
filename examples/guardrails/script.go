package main

import (
	"github.com/pawl-agents/pawl/examples/internal/example"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// chosen is the model, with what it says offline.
func chosen() model.Model {
	return example.Model(
		pawltest.ScriptedText(`{"homework":false,"why":"about repairs"}`),
		pawltest.ScriptedText("We do, while you wait."),
		pawltest.ScriptedText(`{"homework":true,"why":"an equation"}`),
		pawltest.ScriptedText(`{"homework":false,"why":"about the shop"}`),
		pawltest.ScriptedText("Call Anna at 555-0142."),
	)
}
