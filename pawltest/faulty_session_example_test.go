package pawltest_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// The second append is stored, but nobody learns of it. Resuming the run finds the batch and appends nothing twice.
func ExampleFaultySession() {
	ctx := context.Background()
	memory := session.NewMemory("chat")
	faulty := pawltest.NewFaultySession(memory, map[int]pawltest.SessionFault{2: {Stored: pawltest.AllItems}})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "look_up", `{"order":9}`)),
		pawltest.ScriptedText("On its way."),
	)
	agent := &pawl.Agent{Name: "Desk", Model: m, Tools: []pawl.Tool{lookUp}}

	var r pawl.Runner
	opts := &pawl.RunOptions{ID: "ticket-1", Session: faulty}
	_, err := r.Run(ctx, agent, pawl.UserText("Where is order 9?"), opts)
	fmt.Println(err)

	res, err := r.Resume(ctx, agent, pawl.RunID("ticket-1"), &pawl.RunOptions{Session: faulty})
	if err != nil {
		fmt.Println(err)
		return
	}
	items, _ := memory.Items(ctx, -1)
	fmt.Println(res.FinalOutput, "The session has", len(items), "items.")
	// Output:
	// pawl: run ticket-1, session batch 2, attempt 1: session "chat": append: pawltest: the session failed on purpose
	// On its way. The session has 4 items.
}
