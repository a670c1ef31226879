package pgstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// desk is an agent whose one tool asks a person.
func desk() *pawl.Agent {
	type none struct{}
	pay := pawl.NewTool(pawl.Func[none, string]{Name: "pay", Description: "Pays.", Approve: pawl.AlwaysAsk[none],
		Run: func(context.Context, *pawl.Call, none) (string, error) { return "paid", nil }})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "pay", `{}`)), pawltest.ScriptedText("Done."))
	return &pawl.Agent{Name: "Desk", Model: m, Tools: []pawl.Tool{pay}}
}

// A supervisor that looks at the store once an hour takes up a run when it is decided on, by
// another process.
func TestWorkHearsDecisions(t *testing.T) {
	url := database(t)
	agent := desk()
	here := pawl.Runner{Store: open(t, url), Agents: []*pawl.Agent{agent}}
	there := pawl.Runner{Store: open(t, url)}
	ctx, stop := context.WithCancel(t.Context())
	took, ended := make(chan pawl.RecoveredRun, 10), make(chan error, 1)
	res, err := here.Run(t.Context(), agent, pawl.UserText("Pay."), &pawl.RunOptions{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		ended <- here.Work(ctx, &pawl.WorkOptions{Poll: time.Hour,
			RecoverOptions: pawl.RecoverOptions{Each: func(r pawl.RecoveredRun) { took <- r }}})
	}()
	decided := time.Now() // if listening has not begun, its beginning is a reason to look
	if err := there.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-took:
		if r.Err != nil || r.Result.FinalOutput != "Done." {
			t.Errorf("the run ended with %+v", r)
		}
		if after := time.Since(decided); after > 10*time.Second {
			t.Errorf("that took %v", after)
		}
	case <-time.After(time.Minute):
		t.Error("nobody heard of the decision")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Listening says that it begins, hears posts of another store, and ends with its context or its
// connection.
func TestListen(t *testing.T) {
	url := database(t)
	a, b := open(t, url), open(t, url)
	if err := a.Append(t.Context(), "run", claim(t, a, "run"), 0, records(1, 1)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	posted, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- a.Listen(ctx, func() { posted <- struct{}{} }) }()
	<-posted
	for _, rec := range slices.Backward(records(2, 5)) {
		if err := b.Post(t.Context(), "run", journal.Entry{Key: rec.Payload, Body: rec}); err != nil {
			t.Fatal(err)
		}
		<-posted
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Listen: %v", err)
	}
}
