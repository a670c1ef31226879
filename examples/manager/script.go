package main

import (
	"strings"

	"github.com/pawl-agents/pawl/examples/internal/example"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// chosen is the model, with what it says offline. The two translators ask it at the same time, in any order.
func chosen() model.Model {
	return example.Model(
		pawltest.ScriptedItems(
			item.FunctionCallItem("", "call_1", "to_Spanish", `{"input":"Good morning"}`),
			item.FunctionCallItem("", "call_2", "to_French", `{"input":"Good morning"}`)),
		pawltest.ScriptedStep{Derive: translate}, pawltest.ScriptedStep{Derive: translate},
		pawltest.ScriptedText("Spanish: Buenos días\nFrench: Bonjour"),
	)
}

func translate(c pawltest.ScriptedCall) pawltest.ScriptedStep {
	if strings.Contains(c.Instructions, "Spanish") {
		return pawltest.ScriptedText("Buenos días")
	}
	return pawltest.ScriptedText("Bonjour")
}
