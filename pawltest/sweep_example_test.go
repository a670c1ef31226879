package pawltest_test

import (
	"context"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

type refundArgs struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// refundAgent makes the agent under test. What its tool does to the world goes through w.Do.
func refundAgent(w *pawltest.World) *pawl.Agent {
	refund := pawl.NewTool(pawl.Func[refundArgs, string]{Name: "refund", Description: "Refund an order.",
		Approve: pawl.AlwaysAsk[refundArgs],
		Run: func(ctx context.Context, c *pawl.Call, in refundArgs) (string, error) {
			return w.Do(ctx, c, "refunded "+in.Order)
		},
	})
	return &pawl.Agent{Name: "Support", Tools: []pawl.Tool{refund}, Model: w.Model()}
}

// sweepRefund is the body of a test: func TestRefund(t *testing.T) { sweepRefund(t) }.
func sweepRefund(t *testing.T) *pawltest.SweepReport {
	return pawltest.Sweep(t, pawltest.Scenario{
		Name:    "refund",
		Agent:   refundAgent,
		Session: pawltest.BatchSession,
		Input:   pawl.UserText("Refund order 9, $80."),
		Script: []pawltest.ScriptedStep{
			pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "refund", `{"order":"9","cents":8000}`)),
			pawltest.ScriptedText("Done."),
		},
		Want:        "Done.",
		WantEffects: []string{`refund {"order":"9","cents":8000}`},
	})
}

// A sweep plays a refund that somebody approves, with every fault at every boundary.
func ExampleSweep() {
	test := func(t *testing.T) {
		report := sweepRefund(t)
		t.Logf("%d points", report.Points)
	}
	_ = test // named TestRefund, in a file of your own
}
