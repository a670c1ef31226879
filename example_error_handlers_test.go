package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// A run that would fail ends with something to say.
func ExampleErrorHandlers() {
	look := pawl.NewTool(pawl.Func[struct{}, string]{Name: "look", Effect: pawl.ReadOnly,
		Run: func(context.Context, *pawl.Call, struct{}) (string, error) { return "nothing yet", nil }})
	clerk := &pawl.Agent{Name: "Clerk", Tools: []pawl.Tool{look},
		Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "look", `{}`)))}

	opts := &pawl.RunOptions{MaxTurns: 1, ErrorHandlers: pawl.ErrorHandlers{
		MaxTurns: func(ctx context.Context, e *pawl.HandledError) (*pawl.Handled, error) {
			fmt.Println(e.Err)
			return &pawl.Handled{Output: "I could not find out. A colleague will call you."}, nil
		},
		Refusal: func(context.Context, *pawl.HandledError) (*pawl.Handled, error) {
			return nil, nil // declines: the run fails with the *pawl.RefusalError
		},
	}}
	res, err := new(pawl.Runner).Run(context.Background(), clerk, pawl.UserText("Where is my parcel?"), opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// pawl: no final output after 1 turns; resume the run with a larger MaxTurns
	// I could not find out. A colleague will call you.
}
