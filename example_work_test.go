package pawl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// inventory returns an agent that reserves a part and then says so, in runs of any number.
func inventory() *pawl.Agent {
	reserve := pawl.NewTool(pawl.Func[struct{ Part string }, string]{Name: "reserve", Approve: pawl.AlwaysAsk[struct{ Part string }],
		Run: func(_ context.Context, c *pawl.Call, in struct{ Part string }) (string, error) {
			return in.Part + " is yours", nil
		}})
	model := pawltest.NewScriptedModel(
		pawltest.ScriptedStep{Output: []item.Item{item.FunctionCallItem("", "c1", "reserve", `{"Part":"pawl"}`)}},
		pawltest.ScriptedStep{Output: []item.Item{item.MessageItem("", "Reserved.")}},
	)
	return &pawl.Agent{Name: "inventory", Model: model, Tools: []pawl.Tool{reserve}}
}

// At its start a program takes up what the last one left: runs whose process is gone, and runs
// that were decided while nobody drove them.
func ExampleRunner_Recover() {
	ctx := context.Background()
	agent := inventory()
	store := journal.NewMemory() // a real one outlives the process
	r := pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
	if _, err := r.Run(ctx, agent, pawl.UserText("I need a pawl."), &pawl.RunOptions{ID: "order-7"}); err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Decide(ctx, "order-7", pawl.Approve("1.0#0", "ann")); err != nil {
		fmt.Println(err)
		return
	}

	err := r.Recover(ctx, &pawl.RecoverOptions{Each: func(run pawl.RecoveredRun) {
		fmt.Println(run.Run, run.Result.Status, run.Result.FinalOutput)
	}})
	fmt.Println(err)
	// Output:
	// order-7 finished Reserved.
	// <nil>
}

// A service works on its store: it starts runs and takes decisions wherever it likes, and one
// of its processes goes on with them.
func ExampleRunner_Work() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	agent := inventory()
	r := pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
	if _, err := r.Run(ctx, agent, pawl.UserText("I need a pawl."), &pawl.RunOptions{ID: "order-7"}); err != nil {
		fmt.Println(err)
		return
	}

	worked := make(chan error)
	go func() {
		worked <- r.Work(ctx, &pawl.WorkOptions{Poll: 10 * time.Millisecond, RecoverOptions: pawl.RecoverOptions{
			Each: func(run pawl.RecoveredRun) {
				fmt.Println(run.Run, run.Result.FinalOutput)
				stop() // a service goes on
			}}})
	}()
	if err := r.Decide(ctx, "order-7", pawl.Approve("1.0#0", "ann")); err != nil {
		fmt.Println(err)
	}
	fmt.Println(<-worked)
	// Output:
	// order-7 Reserved.
	// <nil>
}

// In a handler: the run is recorded, and somebody drives it. The same id again is the same run.
func order(ctx context.Context, r *pawl.Runner, agent *pawl.Agent, tenant, id, text string) error {
	_, err := r.Submit(ctx, agent, pawl.UserText(text), &pawl.RunOptions{ID: id, Queue: tenant})
	return err
}

// In every worker: drive what is due until the process is to end.
func work(ctx context.Context, r *pawl.Runner) error {
	return r.Work(ctx, &pawl.WorkOptions{MaxPerQueue: 4, Drain: 20 * time.Second, RecoverOptions: pawl.RecoverOptions{Parallel: 16}})
}

// A handler puts a run into the store, and a worker drives it.
func ExampleRunner_Submit() {
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	agent := &pawl.Agent{Name: "inventory", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("Nothing is missing."))}
	r := pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
	if err := order(ctx, &r, agent, "acme", "order-8", "What is missing?"); err != nil {
		fmt.Println(err)
		return
	}
	if err := work(ctx, &r); err != nil { // a service goes on
		fmt.Println(err)
	}
	s, err := r.State(context.Background(), "order-8")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Status(), s.Result().FinalOutput)
	// Output:
	// finished Nothing is missing.
}
