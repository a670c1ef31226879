package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// A triage agent reads what the customer wants and hands the conversation over to the agent for it, who then answers
// with its own instructions and tools.
func ExampleHandoffTo() {
	refund := pawl.NewTool(pawl.Func[struct {
		Order int `json:"order"`
	}, string]{
		Name: "refund", Effect: pawl.Idempotent,
		Run: func(ctx context.Context, c *pawl.Call, in struct {
			Order int `json:"order"`
		}) (string, error) {
			return fmt.Sprintf("refunded order %d", in.Order), nil
		}})
	billing := &pawl.Agent{Name: "Billing", Instructions: pawl.Text("Settle what is about money."), Tools: []pawl.Tool{refund},
		HandoffDescription: "Refunds and invoices.",
		Model:              pawltest.NewScriptedModel(pawltest.ScriptedItems(item.FunctionCallItem("", "call_2", "refund", `{"order":9}`)), pawltest.ScriptedText("Your money is on its way."))}
	shipping := &pawl.Agent{Name: "Shipping", HandoffDescription: "Where a parcel is.", Model: pawltest.NewScriptedModel()}
	triage := &pawl.Agent{Name: "Triage", Instructions: pawl.Text("Hand over to who can help."),
		Handoffs: []pawl.Handoff{pawl.HandoffTo(billing), pawl.HandoffTo(shipping)},
		Model:    pawltest.NewScriptedModel(pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "transfer_to_billing", `{}`)))}

	res, err := new(pawl.Runner).Run(context.Background(), triage, pawl.UserText("I want my money back for order 9."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.LastAgent.Name+":", res.FinalOutput)
	// Output:
	// Billing: Your money is on its way.
}

// The model says why it hands over, and the agent that takes over does not read the calls of the other one's tools.
func ExampleNewHandoff() {
	type reason struct {
		Why string `json:"why" jsonschema:"why the customer needs a person in charge"`
	}
	boss := &pawl.Agent{Name: "Boss", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("I am sorry. What happened?"))}
	escalate := pawl.NewHandoff(pawl.HandoffFunc[reason]{
		Agent: boss, Name: "escalate", Description: "Hand over to the person in charge.",
		Filter: pawl.RemoveTools(),
		OnHandoff: func(_ context.Context, h *pawl.HandoffCall, in reason) error {
			fmt.Println(h.Agent.Name, "hands over to", h.To.Name, "because:", in.Why)
			return nil
		},
	})
	clerk := &pawl.Agent{Name: "Clerk", Handoffs: []pawl.Handoff{escalate},
		Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "escalate", `{"why":"third complaint"}`)))}

	res, err := new(pawl.Runner).Run(context.Background(), clerk, pawl.UserText("Again it is broken!"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.LastAgent.Name+":", res.FinalOutput)
	// Output:
	// Clerk hands over to Boss because: third complaint
	// Boss: I am sorry. What happened?
}

// The agent that takes over reads what was said so far as one message.
func ExampleNestHistory() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("Soup."))
	cook := &pawl.Agent{Name: "Cook", Model: m}
	waiter := &pawl.Agent{Name: "Waiter", Handoffs: []pawl.Handoff{pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: cook, Filter: pawl.NestHistory(nil)})},
		Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "transfer_to_cook", `{}`)))}
	if _, err := new(pawl.Runner).Run(context.Background(), waiter, pawl.UserText("What is there?"), nil); err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range m.Calls()[0].Input {
		msg, _ := it.Message()
		fmt.Println(msg.Text())
	}
	// Output:
	// This is the conversation so far, before it was handed over. Each line is an item of it, as JSON, the oldest first.
	// <CONVERSATION HISTORY>
	// {"role":"user","content":"What is there?"}
	// {"type":"function_call","call_id":"call_1","name":"transfer_to_cook","arguments":"{}","status":"completed"}
	// {"type":"function_call_output","call_id":"call_1","output":"{\"assistant\":\"Cook\"}"}
	// </CONVERSATION HISTORY>
}

// A stream says who answers.
func ExampleAgentUpdated() {
	cook := &pawl.Agent{Name: "Cook", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("Soup."))}
	waiter := &pawl.Agent{Name: "Waiter", Handoffs: []pawl.Handoff{pawl.HandoffTo(cook)},
		Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "transfer_to_cook", `{}`)))}
	for ev, err := range new(pawl.Runner).Stream(context.Background(), waiter, pawl.UserText("What is there?"), nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch ev := ev.(type) {
		case *pawl.AgentUpdated:
			fmt.Println("now", ev.Agent.Name)
		case *pawl.ItemCreated:
			fmt.Println(ev.Name)
		}
	}
	// Output:
	// now Waiter
	// handoff_requested
	// handoff_occurred
	// now Cook
	// message_output_created
}
