package pawl_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// mailTool is the tool of the recovery examples: nobody hears whether its first mail went out, and a person is to decide
// then.
func mailTool() pawl.Tool {
	return pawl.NewTool(pawl.Func[struct{}, string]{Name: "mail", OnUnknown: pawl.UnknownWait,
		Run: func(_ context.Context, c *pawl.Call, _ struct{}) (string, error) {
			fmt.Println("mailing, attempt", c.Attempt)
			if c.Attempt == 1 {
				return "", fmt.Errorf("the connection broke: %w", pawl.ErrOutcomeUnknown)
			}
			return "sent", nil
		}})
}

// inDoubt runs an agent up to a call in doubt.
func inDoubt(r *pawl.Runner) (*pawl.Agent, *pawl.RunState, error) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "mail")), pawltest.ScriptedText("All done."))
	agent := &pawl.Agent{Name: "Secretary", Model: m, Tools: []pawl.Tool{mailTool()}}
	res, err := r.Run(context.Background(), agent, pawl.UserText("Mail Bob."), nil)
	if err != nil {
		return nil, nil, err
	}
	return agent, res.State(), nil
}

// A call in doubt may have taken effect. Somebody found out that it has: Settle gives it the output it had.
func ExampleSettle() {
	var r pawl.Runner
	agent, state, err := inDoubt(&r)
	if err != nil {
		fmt.Println(err)
		return
	}
	in := state.Interruptions()[0]
	fmt.Println(in.Kind, in.Tool)
	if err := state.Decide(pawl.Settle(in.ID, "alice", "sent at 10:03")); err != nil {
		fmt.Println(err)
		return
	}
	res, err := r.Resume(context.Background(), agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	// Output:
	// mailing, attempt 1
	// in-doubt mail
	// {"type":"function_call_output","call_id":"call_1","output":"sent at 10:03"}
}

// Somebody found out that it has not, or that twice does no harm: Retry runs it again with the same key.
func ExampleRetry() {
	var r pawl.Runner
	agent, state, err := inDoubt(&r)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := state.Decide(pawl.Retry(state.Interruptions()[0].ID, "alice")); err != nil {
		fmt.Println(err)
		return
	}
	res, err := r.Resume(context.Background(), agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	// Output:
	// mailing, attempt 1
	// mailing, attempt 2
	// {"type":"function_call_output","call_id":"call_1","output":"sent"}
}

// Nobody can find out: GiveUp tells the model that the outcome is unknown.
func ExampleGiveUp() {
	var r pawl.Runner
	agent, state, err := inDoubt(&r)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := state.Decide(pawl.GiveUp(state.Interruptions()[0].ID, "alice")); err != nil {
		fmt.Println(err)
		return
	}
	res, err := r.Resume(context.Background(), agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// mailing, attempt 1
	// All done.
}

// Cancel ends a run, whoever drives it. Open calls are settled, so a session stays valid.
func ExampleRunner_Cancel() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(pay("call_1", "Bob", 9000)))
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	ctx := context.Background()
	var r pawl.Runner
	if _, err := r.Run(ctx, agent, pawl.UserText("Pay Bob $90."), &pawl.RunOptions{ID: "ticket-17"}); err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Cancel(ctx, "ticket-17", "alice", "Bob was paid in cash"); err != nil {
		fmt.Println(err)
		return
	}
	res, err := r.Resume(ctx, agent, pawl.RunID("ticket-17"), nil)
	fmt.Println(errors.Is(err, pawl.ErrCancelled))
	fmt.Println(res.Status, res.ToInputList()[2])
	// Output:
	// true
	// cancelled {"type":"function_call_output","call_id":"call_1","output":"The tool was not executed: the run was cancelled."}
}
