package pawl_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// payTool is the tool of the approval examples. Payments up to $50 need nobody.
func payTool() pawl.Tool {
	type payment struct {
		To    string `json:"to"`
		Cents int    `json:"cents"`
	}
	return pawl.NewTool(pawl.Func[payment, string]{
		Name: "pay", Description: "Pays somebody.",
		Approve: func(_ context.Context, _ *pawl.Call, in payment) (pawl.Gate, error) {
			if in.Cents <= 5000 {
				return pawl.Allow, nil
			}
			return pawl.Ask, nil
		},
		Run: func(_ context.Context, c *pawl.Call, in payment) (string, error) {
			fmt.Printf("paying %s %d cents, approved by %q\n", in.To, in.Cents, c.ApprovedBy)
			return "paid", nil
		},
	})
}

func pay(id, to string, cents int) pawl.Item {
	return item.FunctionCallItem("", id, "pay", fmt.Sprintf(`{"to":%q,"cents":%d}`, to, cents))
}

// A call that a rule asks about pauses the run. Approving stages a decision on the state; resuming submits it.
func ExampleRunState_Approve() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000)),
		pawltest.ScriptedText("Bob has his money."),
	)
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Pay Bob $90."), nil)
	for err == nil && res.Waiting() {
		state := res.State()
		for _, in := range state.Interruptions() {
			fmt.Println("may I", in.Tool, in.Arguments)
			if err := state.Approve(in, "alice"); err != nil {
				fmt.Println(err)
				return
			}
		}
		res, err = r.Resume(ctx, agent, state, nil)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// may I pay {"to":"Bob","cents":9000}
	// paying Bob 9000 cents, approved by "alice"
	// Bob has his money.
}

// The model reads why a call was rejected, and the run goes on.
func ExampleRunState_Reject() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000)),
		pawltest.ScriptedText("I need an invoice first."),
	)
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Pay Bob $90."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	state := res.State()
	if err := state.Reject(state.Interruptions()[0], "alice", "There is no invoice."); err != nil {
		fmt.Println(err)
		return
	}
	res, err = r.Resume(ctx, agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	fmt.Println(res.FinalOutput)
	// Output:
	// {"type":"function_call_output","call_id":"call_1","output":"There is no invoice."}
	// I need an invoice first.
}

// An approval may change the arguments. The model is told.
func ExampleEdit() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000)),
		pawltest.ScriptedText("Bob got $60."),
	)
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Pay Bob $90."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	state := res.State()
	in := state.Interruptions()[0]
	if err := state.Decide(pawl.Edit(in.ID, "alice", `{"to":"Bob","cents":6000}`)); err != nil {
		fmt.Println(err)
		return
	}
	res, err = r.Resume(ctx, agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	// Output:
	// paying Bob 6000 cents, approved by "alice"
	// {"type":"function_call_output","call_id":"call_1","output":"The reviewer changed the arguments to {\"cents\":6000,\"to\":\"Bob\"}.\npaid"}
}

// A sticky decision covers the open and the later calls of the same tool in the run.
func ExampleDecision_always() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000), pay("call_2", "Carol", 8000)),
		pawltest.ScriptedItems(pay("call_3", "Dan", 7000)),
		pawltest.ScriptedText("All paid."),
	)
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	ctx := context.Background()
	r := pawl.Runner{}
	res, err := r.Run(ctx, agent, pawl.UserText("Pay everybody."), &pawl.RunOptions{MaxParallelTools: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := res.State()
	fmt.Println(len(state.Interruptions()), "calls wait")
	d := pawl.Approve(state.Interruptions()[0].ID, "alice")
	d.Always = true
	if err := state.Decide(d); err != nil {
		fmt.Println(err)
		return
	}
	res, err = r.Resume(ctx, agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// 2 calls wait
	// paying Bob 9000 cents, approved by "alice"
	// paying Carol 8000 cents, approved by "alice"
	// paying Dan 7000 cents, approved by "alice"
	// All paid.
}

// Calls that need nobody run at once; of the others, those decided run and the rest goes on waiting. The model is asked
// again when the last is settled.
func ExampleRunState_Interruptions() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000), pay("call_2", "Carol", 100), pay("call_3", "Dan", 7000)),
		pawltest.ScriptedText("Two paid, one not."),
	)
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Pay everybody."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	state := res.State()
	if err := state.Approve(state.Interruptions()[0], "alice"); err != nil {
		fmt.Println(err)
		return
	}
	res, err = r.Resume(ctx, agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Status, len(m.Calls()), "model call")

	state = res.State()
	if err := state.Reject(state.Interruptions()[0], "alice", ""); err != nil {
		fmt.Println(err)
		return
	}
	res, err = r.Resume(ctx, agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// paying Carol 100 cents, approved by ""
	// paying Bob 9000 cents, approved by "alice"
	// waiting 1 model call
	// Two paid, one not.
}

// A decision needs neither the agent nor the process that drives the run: only the store and two ids. The same decision
// again changes nothing, another one is refused.
func ExampleRunner_Decide() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000)),
		pawltest.ScriptedText("Bob has his money."),
	)
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	ctx := context.Background()
	r := pawl.Runner{Agents: []*pawl.Agent{agent}}
	res, err := r.Run(ctx, agent, pawl.UserText("Pay Bob $90."), &pawl.RunOptions{ID: "ticket-17"})
	if err != nil {
		fmt.Println(err)
		return
	}
	in := res.Interruptions[0]

	fmt.Println(r.Decide(ctx, "ticket-17", pawl.Approve(in.ID, "alice")))
	fmt.Println(r.Decide(ctx, "ticket-17", pawl.Approve(in.ID, "alice")))
	fmt.Println(errors.Is(r.Decide(ctx, "ticket-17", pawl.Reject(in.ID, "carol", "")), pawl.ErrDecided))

	res, err = r.Resume(ctx, nil, pawl.RunID("ticket-17"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// <nil>
	// <nil>
	// true
	// paying Bob 9000 cents, approved by "alice"
	// Bob has his money.
}
