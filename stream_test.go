package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// describe names an event in a few words.
func describe(ev pawl.Event) string {
	switch ev := ev.(type) {
	case *pawl.RunStarted:
		return fmt.Sprintf("started resumed=%v", ev.Resumed)
	case *pawl.AgentUpdated:
		return "agent " + ev.Agent.Name
	case *pawl.Delta:
		return fmt.Sprintf("delta %s %d.%d %q", ev.Kind, ev.Turn, ev.Attempt, ev.Text)
	case *pawl.RawModelEvent:
		return "raw " + ev.Type
	case *pawl.Reset:
		return fmt.Sprintf("reset %d.%d", ev.Turn, ev.Attempt)
	case *pawl.ItemCreated:
		return fmt.Sprintf("%s %s", ev.Name, ev.Item.Head().CallID)
	case *pawl.ToolStarted:
		return fmt.Sprintf("tool started %s %s %d", ev.Tool, ev.CallID, ev.Attempt)
	case *pawl.Paused:
		return fmt.Sprintf("paused %d", len(ev.Interruptions))
	case *pawl.Done:
		return "done " + ev.Result.FinalOutput
	}
	return fmt.Sprintf("%T", ev)
}

// trail reads a stream to its end.
func trail(events iter.Seq2[pawl.Event, error]) (list []string, err error) {
	for ev, e := range events {
		if e != nil {
			return list, e
		}
		list = append(list, strings.TrimSpace(describe(ev)))
	}
	return list, nil
}

func TestStreamOrder(t *testing.T) {
	var e effects
	m := newScript(
		items(item.ReasoningItem("", "hm"), fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":1}`), fc("c3", "look", `{}`)),
		says("done"))
	agent := agentWith(m, charging("charge", &e, asking), charging("look", &e, nil))
	var r pawl.Runner
	got, err := trail(r.Stream(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	want := []string{"started resumed=false", "agent support", "reasoning_item_created", "tool_called c1", "tool_called c2", "tool_called c3",
		"tool_output c3", "tool started look c2 1", "tool_output c2", "paused 1"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("error %v, events (-want +got):\n%s", err, diff)
	}
	s := replays(t, &r, "r")
	if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	got, err = trail(r.ResumeStream(t.Context(), agent, s, nil))
	want = []string{"started resumed=true", "agent support", "tool started charge c1 1", "tool_output c1", `delta text 2.1 "done"`,
		"message_output_created", "done done"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("error %v, events (-want +got):\n%s", err, diff)
	}
	got, err = trail(r.ResumeStream(t.Context(), agent, pawl.RunID("r"), nil))
	want = []string{"started resumed=true", "agent support", "done done"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("a run that ended: error %v, events (-want +got):\n%s", err, diff)
	}
}

// watched is a store that knows which facts are durable.
type watched struct {
	journal.Driver
	mu    sync.Mutex
	facts []journal.Fact
}

func (w *watched) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	err := w.Driver.Append(ctx, run, epoch, after, recs, with...)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, rec := range recs {
			f, err := journal.Decode(rec)
			if err != nil {
				return err
			}
			w.facts = append(w.facts, f)
		}
	}
	return err
}

// has reports whether a fact that matches is durable.
func (w *watched) has(match func(journal.Body) bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.facts, func(f journal.Fact) bool { return match(f.Body) })
}

// Apart from deltas, nothing is shown before its fact is durable.
func TestStreamShowsWhatIsDurable(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `x`)), says("done"))
	w := &watched{Driver: journal.NewMemory()}
	r := pawl.Runner{Store: w}
	for ev, err := range r.Stream(t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("pay"), nil) {
		if err != nil {
			t.Fatal(err)
		}
		durable := true
		switch ev := ev.(type) {
		case *pawl.ItemCreated:
			durable = w.has(func(b journal.Body) bool {
				switch b := b.(type) {
				case *journal.Responded:
					return slices.Contains(b.Items, ev.Item)
				case *journal.Planned:
					return slices.ContainsFunc(b.Calls, func(c journal.PlannedCall) bool { return c.Output == ev.Item })
				case *journal.Settled:
					return b.Output == ev.Item
				}
				return false
			})
		case *pawl.ToolStarted:
			durable = w.has(func(b journal.Body) bool {
				i, ok := b.(*journal.Intended)
				return ok && i.ID.Kind == journal.EffectTool
			})
		case *pawl.Done:
			durable = w.has(func(b journal.Body) bool { _, ok := b.(*journal.Finished); return ok })
		}
		if !durable {
			t.Errorf("%s is shown and not durable", describe(ev))
		}
	}
}

// Leaving a stream at any event leaves a run that goes on as if nobody had left: nothing is
// lost, nothing happens twice, nobody is asked.
func TestStreamBreakAtEveryEvent(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			for n := range 100 {
				if !breakAt(t, open(t), n) {
					return
				}
			}
			t.Error("the stream has no end")
		})
	}
}

// breakAt leaves the n-th event and drives the run on; it reports whether there was one.
func breakAt(t *testing.T, store journal.Driver, n int) bool {
	var e effects
	turn := calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":1}`), fc("c3", "none", `{"cents":1}`))
	m := newScript(turn, says("done"))
	again := newScript(turn, says("done"))
	sess := session.NewMemory("s")
	agent := agentWith(m, charging("charge", &e, nil), charging("look", &e, func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly }))
	opts := &pawl.RunOptions{ID: "r", Session: sess, ToolNotFound: pawl.TellModel}
	r := &pawl.Runner{Store: store}
	left, last := false, ""
	i := 0
	for ev, err := range r.Stream(t.Context(), agent, pawl.UserText("pay"), opts) {
		if err != nil {
			t.Fatal(err)
		}
		last = describe(ev)
		if left = i == n; left {
			break
		}
		i++
	}
	if !left {
		return false
	}
	t.Logf("left at event %d: %s", n, last)
	// What the run needs from here on is decided by the requests made so far.
	state := replays(t, r, "r")
	if state.Status() != pawl.StatusFinished {
		again.steps = again.steps[state.Result().Turns-pending(state):]
	}
	agent.Model = again
	r = &pawl.Runner{Store: store}
	res, err := r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess, ToolNotFound: pawl.TellModel})
	if err != nil {
		t.Fatal(err)
	}
	if res.FinalOutput != "done" {
		t.Errorf("result %+v", res)
	}
	e.mu.Lock()
	slices.Sort(e.list)
	got := strings.Join(e.list, ", ")
	e.mu.Unlock()
	// The body of a call that was cancelled is awaited, so each ran once.
	if got != "charge 5, look 1" {
		t.Errorf("effects: %s", got)
	}
	if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 1", `c3: Tool "none" not found. Available tools: charge, look.`}, outputs(res.NewItems())); diff != "" {
		t.Error(diff)
	}
	sameViews(t, res, m, sess)
	sameViews(t, res, again, sess)
	replays(t, r, "r")
	return true
}

// pending returns 1 if the newest turn has no response yet.
func pending(s *pawl.RunState) int {
	doc, _ := s.MarshalJSON()
	if s.Result().Turns > strings.Count(string(doc), `"k":"responded"`) {
		return 1
	}
	return 0
}

// A stream may be ranged over again: it goes on with the same run.
func TestStreamTwice(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	var r pawl.Runner
	events := r.Stream(t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("pay"), nil)
	for ev := range events {
		if item, ok := ev.(*pawl.ItemCreated); ok && item.Name == pawl.ToolOutput {
			break
		}
	}
	for range 2 {
		got, err := trail(events)
		if err != nil || got[0] != "started resumed=true" || got[len(got)-1] != "done done" {
			t.Errorf("again: %v %q", err, got)
		}
	}
	e.want(t, "charge 5")
	if n := len(m.calls()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
}

// So may the stream of a resume, decisions staged or not.
func TestResumeStreamTwice(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, asking))
	var r pawl.Runner
	s := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil)).State()
	if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	events := r.ResumeStream(t.Context(), agent, s, nil)
	for ev := range events {
		if _, ok := ev.(*pawl.ToolStarted); ok {
			break
		}
	}
	for range 2 {
		if got, err := trail(events); err != nil || got[len(got)-1] != "done done" {
			t.Errorf("again: %v %q", err, got)
		}
	}
	e.want(t, "charge 5")
	if n := len(m.calls()); n != 2 {
		t.Errorf("%d model calls, want 2", n)
	}
}

// A panic in the loop's body is the reader's own, wherever it strikes. The run is left as
// by a break.
func TestStreamPanicInLoop(t *testing.T) {
	for n := range 100 {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"), says("done"))
		agent := agentWith(m, charging("charge", &e, nil))
		r := &pawl.Runner{}
		i, last := 0, ""
		caught := func() (v any) {
			defer func() { v = recover() }()
			for ev, err := range r.Stream(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}) {
				if err != nil {
					t.Fatal(err)
				}
				last = describe(ev)
				if i == n {
					panic("mine")
				}
				i++
			}
			return nil
		}()
		if caught == nil {
			if n < 7 {
				t.Errorf("a stream of %d events", n)
			}
			return
		}
		if caught != "mine" {
			t.Fatalf("event %d (%s): %v", n, last, caught)
		}
		res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		if res.FinalOutput != "done" {
			t.Errorf("event %d (%s): result %+v", n, last, res)
		}
		e.want(t, "charge 5")
	}
	t.Error("the stream has no end")
}

// A goroutine that ends inside the loop leaves the run as by a break.
func TestStreamGoexitInLoop(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, nil))
	var r pawl.Runner
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ev := range r.Stream(context.Background(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}) {
			if _, ok := ev.(*pawl.ToolStarted); ok {
				runtime.Goexit()
			}
		}
	}()
	<-ended
	if res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)); res.FinalOutput != "done" {
		t.Errorf("result %+v", res)
	}
	e.want(t, "charge 5")
}

// An error is the last thing a stream yields, and the same as Run's.
func TestStreamError(t *testing.T) {
	down := errors.New("down")
	eachMode(t, func(t *testing.T, mode mode) {
		m := newScript(failing(down), says("done"))
		agent := agentWith(m)
		var r pawl.Runner
		res, err := mode.run(&r, t.Context(), agent, pawl.UserText("hi"), nil)
		if res != nil || !errors.Is(err, down) {
			t.Fatalf("%v, %v", res, err)
		}
		s := stateOf(t, err)
		if s.Status() != pawl.StatusFailed {
			t.Errorf("status %s", s.Status())
		}
		if res := must(t)(mode.resume(&r, t.Context(), agent, s, nil)); res.FinalOutput != "done" {
			t.Errorf("result %+v", res)
		}
	})
}

// Deltas of an attempt come behind the Reset that voids those before it.
func TestStreamReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &model.Error{Status: 503, Retryable: true, Delivery: model.DeliveryRefused}
		m := newScript(failing(busy), says("done"))
		agent := agentWith(m)
		agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1}}
		var r pawl.Runner
		got, err := trail(r.Stream(t.Context(), agent, pawl.UserText("hi"), nil))
		want := []string{"started resumed=false", "agent support", "reset 1.2", `delta text 1.2 "done"`, "message_output_created", "done done"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, events (-want +got):\n%s", err, diff)
		}
	})
}

// Deltas that a reader saw are void if the run fails: the next stream says so first.
func TestStreamResetOnResume(t *testing.T) {
	cut := func(_ context.Context, _ *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
		emit(&model.Event{Kind: model.EventTextDelta, Delta: "do"})
		return nil, &model.Error{Retryable: true, Err: model.ErrStreamCut}
	}
	m := newScript(cut, says("done"))
	agent := agentWith(m)
	agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 5}}
	var r pawl.Runner
	got, err := trail(r.Stream(t.Context(), agent, pawl.UserText("hi"), nil))
	if !errors.Is(err, model.ErrStreamCut) {
		t.Fatalf("what was visible is not repeated: %v", err)
	}
	if diff := cmp.Diff([]string{"started resumed=false", "agent support", `delta text 1.1 "do"`}, got); diff != "" {
		t.Error(diff)
	}
	got, err = trail(r.ResumeStream(t.Context(), agent, stateOf(t, err), nil))
	want := []string{"started resumed=true", "agent support", "reset 1.2", `delta text 1.2 "done"`, "message_output_created", "done done"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, events (-want +got):\n%s", err, diff)
	}
}

// Raw events and every kind of delta reach the reader as copies.
func TestStreamDeltas(t *testing.T) {
	raw := []byte(`{"type":"x"}`)
	deltas := func(_ context.Context, _ *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
		for _, ev := range []model.Event{{Kind: model.EventTextDelta, Delta: "a"}, {Kind: model.EventRefusalDelta, Delta: "b"},
			{Kind: model.EventReasoningDelta, Delta: "c"}, {Kind: model.EventArgumentsDelta, Delta: "d"}, {Type: "x", Raw: raw}} {
			emit(&ev)
		}
		copy(raw, "overwritten.")
		return &model.Response{Items: []pawl.Item{item.MessageItem("", "done")}}, nil
	}
	var got []string
	var r pawl.Runner
	for ev, err := range r.Stream(t.Context(), agentWith(newScript(deltas)), pawl.UserText("hi"), nil) {
		switch ev := ev.(type) {
		case *pawl.Delta:
			got = append(got, string(ev.Kind)+" "+ev.Text)
		case *pawl.RawModelEvent:
			defer func() { got = append(got, string(ev.Data)) }()
		case *pawl.Done:
			if ev.Result.FinalOutput != "done" {
				t.Errorf("result %+v", ev.Result)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"text a", "refusal b", "reasoning c", "arguments d"}, got); diff != "" {
		t.Error(diff)
	}
}

// A reader that leaves while a tool runs waits for the tool's end, and its outcome is kept.
func TestStreamBreakAwaitsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		entered := make(chan struct{})
		slow := charging("slow", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(ctx context.Context, _ *pawl.Call, in charge) (string, error) {
				close(entered)
				<-ctx.Done()
				time.Sleep(time.Second) // cleaning up
				e.add("slow %d", in.Cents)
				return "late but done", nil
			}
		})
		m := newScript(calling(fc("c1", "slow", `{"cents":1}`), fc("c2", "quick", `{"cents":2}`)), says("done"))
		quick := charging("quick", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
				<-entered
				e.add("quick 2")
				return "receipt 2", nil
			}
		})
		agent := agentWith(m, slow, quick)
		var r pawl.Runner
		for ev := range r.Stream(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}) {
			if out, ok := ev.(*pawl.ItemCreated); ok && out.Name == pawl.ToolOutput {
				break
			}
		}
		res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		if diff := cmp.Diff([]string{"c1: late but done", "c2: receipt 2"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
		e.want(t, "quick 2", "slow 1")
	})
}
