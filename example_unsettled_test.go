package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
)

// What became of these calls has to be asked where they went, by their keys.
func report(ctx context.Context, r *pawl.Runner) {
	for call, err := range r.Unsettled(ctx, nil) {
		if err != nil {
			fmt.Println("cannot be read:", call.Run, err)
			continue
		}
		fmt.Println(call.Tool, call.Arguments, "is", call.Standing+":", call.Why)
	}
}

// A mail went out or not, nobody heard. It is listed while it is in doubt, and also when a person has given up on it, until
// somebody finds out.
func ExampleRunner_Unsettled() {
	ctx := context.Background()
	var r pawl.Runner
	agent, state, err := inDoubt(&r)
	if err != nil {
		fmt.Println(err)
		return
	}
	report(ctx, &r)

	giveUp := pawl.GiveUp(state.Interruptions()[0].ID, "alice")
	giveUp.Why = "the mail server is gone"
	if err := state.Decide(giveUp); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := r.Resume(ctx, agent, state, nil); err != nil {
		fmt.Println(err)
		return
	}
	report(ctx, &r)

	// The run has ended, and stays as it is.
	for call, err := range r.Unsettled(ctx, nil) {
		if err == nil {
			err = r.Decide(ctx, call.Run, pawl.Settle(call.Interruption, "bob", "it is in the outbox"))
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	report(ctx, &r)
	// Output:
	// mailing, attempt 1
	// mail {} is in-doubt: the connection broke: pawl: the outcome is unknown
	// mail {} is told: the mail server is gone
}
