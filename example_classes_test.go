package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// clerk is an agent whose model calls a tool once.
func clerk(tool pawl.Tool) *pawl.Agent {
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", tool.Name())), pawltest.ScriptedText("All done."))
	return &pawl.Agent{Name: "Clerk", Model: m, Tools: []pawl.Tool{tool}}
}

// A payment whose answer was lost. The bank is asked what became of it, by the key that it was sent with, so nobody has
// to be.
func ExampleFunc_recover() {
	booked := map[string]string{} // the bank's books
	pay := pawl.NewTool(pawl.Func[struct{}, string]{Name: "pay",
		Run: func(_ context.Context, c *pawl.Call, _ struct{}) (string, error) {
			booked[c.Key] = "receipt 881"
			return "", fmt.Errorf("the connection broke: %w", pawl.ErrOutcomeUnknown)
		},
		Recover: func(_ context.Context, c *pawl.Call, _ struct{}) (pawl.Recovered[string], error) {
			if receipt, ok := booked[c.Key]; ok {
				return pawl.Recovered[string]{Answer: pawl.Happened, Output: receipt}, nil
			}
			return pawl.Recovered[string]{Answer: pawl.DidNotHappen}, nil
		}})
	res, err := new(pawl.Runner).Run(context.Background(), clerk(pay), pawl.UserText("Pay."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	// Output: {"type":"function_call_output","call_id":"call_1","output":"receipt 881"}
}

// A transfer takes days. The run waits without a process, and whoever learns of the result settles the call.
func ExampleErrPending() {
	transfer := pawl.NewTool(pawl.Func[struct{}, string]{Name: "transfer",
		Run: func(context.Context, *pawl.Call, struct{}) (string, error) {
			return "", fmt.Errorf("transfer 881: %w", pawl.ErrPending)
		}})
	agent := clerk(transfer)
	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Transfer it."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	in := res.Interruptions[0]
	fmt.Println(in.Kind, in.Note)

	// Three days later the bank calls.
	if err := r.Decide(ctx, res.Run, pawl.Settle(in.ID, "the bank", "arrived")); err != nil {
		fmt.Println(err)
		return
	}
	if res, err = r.Resume(ctx, agent, pawl.RunID(res.Run), nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	// Output:
	// external transfer 881
	// {"type":"function_call_output","call_id":"call_1","output":"arrived"}
}

// A tool finds out what it would do, and asks by itself before it does that.
func ExampleAskAgain() {
	book := pawl.NewTool(pawl.Func[struct{}, string]{Name: "book",
		Run: func(_ context.Context, c *pawl.Call, _ struct{}) (string, error) {
			if c.Approvals == 0 {
				return "", pawl.AskAgain("Only first class is left, for $900. Book it?")
			}
			return "booked, " + c.ApprovedBy + " agreed", nil
		}})
	agent := clerk(book)
	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Book a seat."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	in := res.Interruptions[0]
	fmt.Println(in.Kind, in.Note)
	if err := r.Decide(ctx, res.Run, pawl.Approve(in.ID, "alice")); err != nil {
		fmt.Println(err)
		return
	}
	if res, err = r.Resume(ctx, agent, pawl.RunID(res.Run), nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	// Output:
	// approval Only first class is left, for $900. Book it?
	// {"type":"function_call_output","call_id":"call_1","output":"booked, alice agreed"}
}

// An approval that nobody gives in time is a rejection, or fails the run.
func ExampleFunc_expires() {
	for _, on := range []pawl.OnExpiry{pawl.ExpiryRejects, pawl.ExpiryFails} {
		agent := clerk(pawl.NewTool(pawl.Func[struct{}, string]{Name: "refund",
			Approve: pawl.AlwaysAsk[struct{}],
			Expires: 250 * time.Millisecond, OnExpiry: on,
			Run: func(context.Context, *pawl.Call, struct{}) (string, error) { return "refunded", nil }}))
		ctx := context.Background()
		var r pawl.Runner
		res, err := r.Run(ctx, agent, pawl.UserText("Refund it."), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, in := range res.Interruptions {
			<-time.After(time.Until(in.Expires))
		}
		res, err = r.Resume(ctx, agent, pawl.RunID(res.Run), nil)
		if errors.Is(err, pawl.ErrApprovalExpired) {
			fmt.Println("the run has failed; resuming it opens the approval again")
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.ToInputList()[2])
	}
	// Output:
	// {"type":"function_call_output","call_id":"call_1","output":"Tool execution was not approved: the approval expired, nobody decided in time."}
	// the run has failed; resuming it opens the approval again
}
