package main

import (
	"github.com/pawl-agents/pawl/examples/internal/example"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// chosen is the model, with what it says offline.
func chosen() model.Model {
	return example.Model(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "transfer_to_billing", `{}`)),
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_2", "refund", `{"number":9}`)),
		pawltest.ScriptedText("The second charge is refunded."),
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_3", "transfer_to_shipping", `{}`)),
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_4", "track", `{"number":9}`)),
		pawltest.ScriptedText("It is in Lyon, on its way to you."),
	)
}
