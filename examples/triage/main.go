// Triage lets one agent read what a customer wants, and hand the conversation over to the agent who can help. The two
// messages are one conversation, kept in a session: the second one goes to the front desk again.
//
// It runs offline, from a script; set OPENAI_API_KEY for a real model.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

type order struct {
	Number int `json:"number" jsonschema:"The number of the order."`
}

// team returns the front desk, which can hand over to the others.
func team(m model.Model) *pawl.Agent {
	refund := pawl.NewTool(pawl.Func[order, string]{
		Name: "refund", Description: "Refunds what an order was charged twice.",
		Effect: pawl.Idempotent, // the bank takes a key once
		Run: func(_ context.Context, c *pawl.Call, in order) (string, error) {
			return fmt.Sprintf("refunded order %d", in.Number), nil // bank.Refund(c.Key, in.Number)
		},
	})
	track := pawl.NewTool(pawl.Func[order, string]{
		Name: "track", Description: "Says where the parcel of an order is.",
		Effect: pawl.ReadOnly,
		Run: func(_ context.Context, _ *pawl.Call, in order) (string, error) {
			return fmt.Sprintf("order %d is in Lyon", in.Number), nil
		},
	})
	billing := &pawl.Agent{
		Name: "Billing", HandoffDescription: "Charges, refunds and invoices.",
		Instructions: pawl.Text(pawl.HandoffPrefix + "Settle what is about money. Be brief."),
		Tools:        []pawl.Tool{refund},
		Model:        m,
	}
	shipping := &pawl.Agent{
		Name: "Shipping", HandoffDescription: "Parcels and addresses.",
		Instructions: pawl.Text(pawl.HandoffPrefix + "Find parcels. Be brief."),
		Tools:        []pawl.Tool{track},
		Model:        m,
	}
	return &pawl.Agent{
		Name:         "Front desk",
		Instructions: pawl.Text(pawl.HandoffPrefix + "Hand over to the agent who can help."),
		Handoffs:     []pawl.Handoff{pawl.HandoffTo(billing), pawl.HandoffTo(shipping)},
		Model:        m,
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	desk := team(chosen())
	chat := session.NewMemory("customer-42")
	var runner pawl.Runner
	for _, text := range []string{"I was charged twice for order 9.", "Thanks. And where is it?"} {
		fmt.Println("Customer:", text)
		for ev, err := range runner.Stream(ctx, desk, pawl.UserText(text), &pawl.RunOptions{Session: chat}) {
			if err != nil {
				return err
			}
			switch ev := ev.(type) {
			case *pawl.AgentUpdated:
				fmt.Printf("  [%s]\n", ev.Agent.Name)
			case *pawl.ToolStarted:
				fmt.Printf("  %s\n", ev.Tool)
			case *pawl.Done:
				fmt.Printf("%s: %s\n\n", ev.Result.LastAgent.Name, ev.Result.FinalOutput)
			}
		}
	}
	return nil
}
