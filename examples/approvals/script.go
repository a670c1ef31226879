package main

import (
	"github.com/pawl-agents/pawl/examples/internal/example"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// chosen is the model, with what it says offline. It looks at what it reads, so that it can go on in another process.
func chosen() model.Model {
	return example.Model(pawltest.ScriptedStep{Derive: answer}, pawltest.ScriptedStep{Derive: answer})
}

func answer(c pawltest.ScriptedCall) pawltest.ScriptedStep {
	if len(c.Input) > 1 {
		return pawltest.ScriptedText("That is all there was to refund.")
	}
	return pawltest.ScriptedItems(
		item.FunctionCallItem("", "call_1", "refund", `{"order":9,"cents":8000}`),
		item.FunctionCallItem("", "call_2", "refund", `{"order":10,"cents":2000}`),
		item.FunctionCallItem("", "call_3", "refund", `{"order":11,"cents":9500}`))
}
