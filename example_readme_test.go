package pawl_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

type Refund struct {
	Order int `json:"order" jsonschema:"the order's number"`
	Cents int `json:"cents" minimum:"1"`
}

func Example() {
	refund := pawl.NewTool(pawl.Func[Refund, string]{
		Name: "refund", Description: "Pays an order back.",
		Effect:  pawl.Idempotent, // the bank takes a key
		Approve: pawl.AlwaysAsk[Refund],
		Run: func(ctx context.Context, c *pawl.Call, in Refund) (string, error) {
			return fmt.Sprintf("paid %d cents", in.Cents), nil // bank.Pay(ctx, c.Key, in.Order, in.Cents)
		},
	})
	model := pawltest.NewScriptedModel( // or openai.Responses("gpt-5.2")
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "refund", `{"order":9,"cents":8000}`)),
		pawltest.ScriptedText("Your money is on its way."))
	agent := &pawl.Agent{Name: "Support", Instructions: pawl.Text("Settle refunds."), Model: model, Tools: []pawl.Tool{refund}}

	ctx := context.Background()
	res, _ := new(pawl.Runner).Run(ctx, agent, pawl.UserText("Refund order 9, $80."), nil)
	doc, _ := json.Marshal(res.State())

	// A week later, in another process, somebody has looked at it.
	state, _ := pawl.ParseRunState(doc)
	for _, in := range state.Interruptions() {
		fmt.Println("may I", in.Tool, in.Arguments)
		state.Approve(in, "alice@example.org")
	}
	if res, err := new(pawl.Runner).Resume(ctx, agent, state, nil); err == nil {
		fmt.Println(res.FinalOutput)
	}
	// Output:
	// may I refund {"order":9,"cents":8000}
	// Your money is on its way.
}
