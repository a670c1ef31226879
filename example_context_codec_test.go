package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// The context value of a run is there again when another process goes on with it.
func ExampleJSONContext() {
	type customer struct {
		Name string `json:"name"`
	}
	refund := pawl.NewTool(pawl.Func[struct{}, string]{Name: "refund", Approve: pawl.AlwaysAsk[struct{}],
		Run: func(_ context.Context, c *pawl.Call, _ struct{}) (string, error) {
			return "refunded " + c.Value.(customer).Name, nil
		}})
	desk := &pawl.Agent{Name: "Desk", Tools: []pawl.Tool{refund}, ToolUse: pawl.StopOnFirstTool(),
		Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "refund", `{}`)))}

	ctx, codec := context.Background(), pawl.JSONContext[customer]()
	opts := &pawl.RunOptions{Context: customer{Name: "Ann"}, ContextCodec: codec}
	res, err := new(pawl.Runner).Run(ctx, desk, pawl.UserText("My money back, please."), opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, _ := res.State().MarshalJSON()

	// A week later, in another process:
	state, err := pawl.ParseRunState(doc)
	if err != nil {
		fmt.Println(err)
		return
	}
	state.Approve(state.Interruptions()[0], "bob@example.org")
	res, err = new(pawl.Runner).Resume(ctx, desk, state, &pawl.RunOptions{ContextCodec: codec})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// refunded Ann
}
