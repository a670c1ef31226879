package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Hooks are told what happens, when it is recorded.
func ExampleHooks() {
	look := pawl.NewTool(pawl.Func[struct{}, string]{Name: "look", Effect: pawl.ReadOnly,
		Run: func(context.Context, *pawl.Call, struct{}) (string, error) { return "at the depot", nil }})
	clerk := &pawl.Agent{Name: "Clerk", Tools: []pawl.Tool{look},
		Model: pawltest.NewScriptedModel(
			pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "look", `{}`)),
			pawltest.ScriptedText("It will be with you tomorrow."))}

	hooks := &pawl.Hooks{
		ModelStart: func(ctx context.Context, ev *pawl.ModelStart) {
			fmt.Printf("turn %d: %s reads %d items\n", ev.Turn, ev.Agent.Name, len(ev.Input))
		},
		ToolStart: func(ctx context.Context, ev *pawl.ToolStart) { fmt.Println(ev.Tool, ev.Arguments) },
		ToolEnd:   func(ctx context.Context, ev *pawl.ToolEnd) { fmt.Println(ev.Tool, "says", ev.Output) },
		AgentEnd:  func(ctx context.Context, ev *pawl.AgentEnd) { fmt.Println(ev.Agent.Name, "is done") },
	}
	res, err := new(pawl.Runner).Run(context.Background(), clerk, pawl.UserText("Where is my parcel?"), &pawl.RunOptions{Hooks: hooks})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// turn 1: Clerk reads 1 items
	// look {}
	// look says at the depot
	// turn 2: Clerk reads 3 items
	// Clerk is done
	// It will be with you tomorrow.
}
