package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// The customer says more while a refund waits for its approval. The model reads it in the next turn, behind what became
// of the refund.
func ExampleRunner_AddInput() {
	refund := pawl.NewTool(pawl.Func[struct{}, string]{Name: "refund", Approve: pawl.AlwaysAsk[struct{}],
		Run: func(context.Context, *pawl.Call, struct{}) (string, error) { return "refunded", nil }})
	desk := &pawl.Agent{Name: "Desk", Tools: []pawl.Tool{refund},
		Model: pawltest.NewScriptedModel(
			pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "refund", `{}`)),
			pawltest.ScriptedText("Done, and the receipt goes to ann@example.org."))}

	ctx := context.Background()
	r := &pawl.Runner{Store: journal.NewMemory()}
	res, err := r.Run(ctx, desk, pawl.UserText("My money back, please."), &pawl.RunOptions{ID: "ticket-7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.AddInput(ctx, "ticket-7", pawl.UserText("Send the receipt to ann@example.org.")); err != nil {
		fmt.Println(err)
		return
	}

	r.Decide(ctx, "ticket-7", pawl.Approve(res.Interruptions[0].ID, "bob@example.org"))
	res, err = r.Resume(ctx, desk, pawl.RunID("ticket-7"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range res.NewItems() {
		if m, err := it.Message(); err == nil {
			fmt.Println(it.Head().Role+":", m.Text())
		} else {
			fmt.Println(it.Type())
		}
	}
	// Output:
	// function_call
	// function_call_output
	// user: Send the receipt to ann@example.org.
	// assistant: Done, and the receipt goes to ann@example.org.
}
