package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// page is a tool that returns a page as long as an outcome may be without blobs, and counts its calls.
func page(n *int) pawl.Tool {
	return pawl.NewTool(pawl.Func[struct{}, string]{Name: "page", Run: func(context.Context, *pawl.Call, struct{}) (string, error) {
		*n++
		return strings.Repeat("<p>", 320_000), nil
	}})
}

// turns are responses with so many calls of page each, and one at the end.
func turns(n, calls int) (steps []pawltest.ScriptedStep) {
	for turn := range n {
		var items []item.Item
		for call := range calls {
			items = append(items, item.FunctionCallItem("", fmt.Sprintf("c%d_%d", turn, call), "page", `{}`))
		}
		steps = append(steps, pawltest.ScriptedItems(items...))
	}
	return append(steps, pawltest.ScriptedText("done"))
}

// A run whose conversation has no place in one payload goes on without blobs: what the projection lacks, and what a loop that goes on
// is given, comes in parts.
func TestLongWithoutBlobs(t *testing.T) {
	for name, shape := range map[string]struct{ turns, calls int }{"turns": {5, 1}, "calls": {2, 3}} {
		t.Run(name, func(t *testing.T) {
			n := 0
			agent := &pawl.Agent{Name: "reader", Model: pawltest.NewScriptedModel(turns(shape.turns, shape.calls)...), Tools: []pawl.Tool{page(&n)}}
			s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{}).start()
			ctx, cancel := contextFor(t, 2*time.Minute)
			defer cancel()
			res, err := s.Run(ctx, agent, pawl.UserText("read"), &pawl.RunOptions{ID: s.run(), MaxParallelTools: 1})
			if err != nil || res.FinalOutput != "done" || n != shape.turns*shape.calls {
				t.Fatalf("%+v, %v, %d calls", res, err, n)
			}
		})
	}
}

// What is too large without blobs is refused with the option that helps, and keeps nothing else from the run.
func TestTooLargeWithoutBlobs(t *testing.T) {
	n := 0
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("c1")), pawltest.ScriptedText("done"))
	agent := &pawl.Agent{Name: "support", Model: m, Tools: []pawl.Tool{charging(&n, func(f *pawl.Func[charge, string]) { f.Approve = pawl.AlwaysAsk[charge] })}}
	s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{}).start()
	ctx, cancel := contextFor(t, time.Minute)
	defer cancel()
	picture := pawl.UserText(strings.Repeat("x", 3<<20))
	refused := func(what string, err error) {
		t.Helper()
		if config, ok := errors.AsType[*pawl.ConfigError](err); !ok || config.Field != "Options.Blobs" {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err := s.Run(ctx, agent, picture, &pawl.RunOptions{ID: s.run() + "-input"})
	refused("input", err)
	res, err := s.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: s.run()})
	if err != nil || !res.Waiting() {
		t.Fatal(res, err)
	}
	refused("a message", s.AddInput(ctx, s.run(), picture))
	refused("a message that still waits", s.Cancel(ctx, s.run(), "ann", "")) // and is sent all the same
	var last error
	for _, err := range s.Watch(ctx, s.run(), pawl.Cursor{}) {
		last = err
	}
	if !errors.Is(last, pawl.ErrCancelled) {
		t.Errorf("the run ends with %v", last)
	}
}

// Whoever waits for a run hears that its workflow has ended before it. The run can be resumed.
func TestEndedEarly(t *testing.T) {
	n := 0
	begun, end := make(chan bool, 1), make(chan bool)
	agent := &pawl.Agent{Name: "support", Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(call("c1")), pawltest.ScriptedText("done")),
		Tools: []pawl.Tool{charging(&n, func(f *pawl.Func[charge, string]) {
			f.Effect = pawl.Idempotent
			f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) {
				begun <- true
				select {
				case <-end:
				case <-ctx.Done():
				}
				return "paid", nil
			}
		})}}
	s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{}).start()
	ctx, cancel := contextFor(t, time.Minute)
	defer cancel()
	go func() {
		<-begun
		if err := s.client.TerminateWorkflow(ctx, s.run(), "", "by hand"); err != nil {
			t.Error(err)
		}
	}()
	_, err := s.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: s.run()})
	stop, ok := errors.AsType[*pawl.EngineError](err)
	if !ok || stop.Code != "workflow_ended" || !strings.Contains(stop.Text, "terminated") {
		t.Fatal(err)
	}
	close(end)
	res, err := s.Resume(ctx, agent, pawl.RunID(s.run()), nil)
	if err != nil || res.FinalOutput != "done" {
		t.Error(res, err)
	}
}
