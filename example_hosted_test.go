package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// The model's server talks to an MCP server by itself, and asks before it calls a tool. A function
// answers what is harmless, a person the rest.
func ExampleRunOptions_onApprovalRequest() {
	ask := func(id, tool, arguments string) item.Item {
		return item.FromTrusted(fmt.Sprintf(`{"type":"mcp_approval_request","id":%q,"server_label":"crm","name":%q,"arguments":%q}`, id, tool, arguments))
	}
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(ask("mcpr_1", "find", `{"name":"Bob"}`), ask("mcpr_2", "delete", `{"id":7}`)),
		pawltest.ScriptedText("Bob is still there."),
	)
	agent := &pawl.Agent{Name: "Clerk", Model: m}
	opts := &pawl.RunOptions{OnApprovalRequest: func(_ context.Context, r pawl.ApprovalRequest) (pawl.Gate, string, error) {
		if r.Server == "crm" && r.Tool == "find" {
			return pawl.Allow, "", nil
		}
		return pawl.Ask, "", nil
	}}

	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Delete Bob."), opts)
	for err == nil && res.Waiting() {
		state := res.State()
		for _, in := range state.Interruptions() {
			fmt.Println("may", in.Server, in.Tool, in.Arguments)
			if err := state.Reject(in, "alice", "Bob has an open order."); err != nil {
				fmt.Println(err)
				return
			}
		}
		res, err = r.Resume(ctx, agent, state, opts)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// may crm delete {"id":7}
	// Bob is still there.
}
