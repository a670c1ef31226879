package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/owner"
	"github.com/pawl-agents/pawl/internal/steps"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// onEngine is a runner with an engine whose worker has the agent, on an own store.
func onEngine(t *testing.T, agent *pawl.Agent, opts pawl.StepperOptions) (*pawl.Runner, *loopEngine) {
	r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}, Grace: 50 * time.Millisecond}
	return r, newLoopEngine(t, r, opts)
}

// A program moves to an engine by the way in which its Runner is made [S23.1].
func TestEngine(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":7}`)), says("done"))
		agent := agentWith(m, charging("charge", &e, asking), charging("look", &e, nil))
		r, _ := onEngine(t, agent, pawl.StepperOptions{})
		res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if !res.Waiting() || len(res.Interruptions) != 1 {
			t.Fatalf("result %+v", res)
		}
		e.want(t, "look 7")
		s := res.State()
		if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		res = must(t)(mode.resume(r, t.Context(), agent, s, nil))
		if res.FinalOutput != "done" || res.Status != pawl.StatusFinished || res.Turns != 2 {
			t.Errorf("result %+v", res)
		}
		e.want(t, "look 7", "charge 5")
		if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 7"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
		replays(t, r, "r")
	})
}

// The same run, on an engine and without: its loop is replaced every few steps [S23.9].
func TestEngineContinues(t *testing.T) {
	run := func(engine bool, full func(*loopHost) bool) (*pawl.Result, []string) {
		var e effects
		m := newScript(calling(fc("c1", "look", `{"cents":1}`), fc("c2", "charge", `{"cents":2}`)), calling(fc("c3", "charge", `{"cents":3}`)),
			calling(fc("c4", "look", `{"cents":4}`)), says("done"))
		agent := agentWith(m, charging("charge", &e, nil), charging("look", &e, func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly }))
		store := openSQLite(t, filepath.Join(t.TempDir(), "runs.db"))
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}, Sessions: func(id string) session.Session { return store.Session(id) }}
		if engine {
			newLoopEngine(t, r, pawl.StepperOptions{}).full = full
		}
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: store.Session("s"), MaxParallelTools: 1}))
		sameViews(t, res, m, store.Session("s"))
		replays(t, r, "r")
		slices.Sort(e.list)
		return res, e.list
	}
	want, did := run(false, nil)
	for every := range 4 {
		got, done := run(true, func(h *loopHost) bool { return every > 0 && h.started >= every })
		if diff := cmp.Diff(did, done); diff != "" {
			t.Errorf("every %d steps: effects (-want +got):\n%s", every, diff)
		}
		if diff := cmp.Diff(want.ToInputList(), got.ToInputList()); diff != "" {
			t.Errorf("every %d steps: the conversation (-want +got):\n%s", every, diff)
		}
		if diff := cmp.Diff(want.Usage, got.Usage); diff != "" {
			t.Errorf("every %d steps: usage (-want +got):\n%s", every, diff)
		}
	}
}

// loses makes the worker of the nth step of a kind be lost, once the step is done.
func loses(e *loopEngine, kind journal.EffectKind, gone bool) {
	n := 0
	e.lose = func(r steps.Request) bool {
		if r.Of.ID.Kind != kind || r.Of.ID.P != 0 {
			return false
		}
		n++
		return n == 1
	}
	e.lost = owner.Self()
	if gone {
		e.lost.Start = "0"
	}
}

// What a lost worker was doing is in doubt if it must not be repeated, and is done again with the
// same key if that does no harm [S23.4] [S23.10].
func TestEngineLosesAWorker(t *testing.T) {
	t.Run("at most once", func(t *testing.T) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
		agent := agentWith(m, charging("charge", &e, nil))
		r, engine := onEngine(t, agent, pawl.StepperOptions{})
		loses(engine, journal.EffectTool, true)
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if !res.Waiting() || res.Interruptions[0].Kind != pawl.InDoubt {
			t.Fatalf("result %+v", res)
		}
		if err := r.Decide(t.Context(), "r", pawl.Settle(res.Interruptions[0].ID, "ann", "it was paid")); err != nil {
			t.Fatal(err)
		}
		res = must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
		if diff := cmp.Diff([]string{"c1: it was paid"}, outputs(res.NewItems())); diff != "" || res.FinalOutput != "done" {
			t.Errorf("%+v %s", res, diff)
		}
		e.want(t, "charge 5")
	})
	t.Run("a worker that may be at work", func(t *testing.T) {
		var e effects
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, nil))
		r, engine := onEngine(t, agent, pawl.StepperOptions{})
		loses(engine, journal.EffectTool, false)
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if !res.Waiting() || res.Interruptions[0].NotBefore.Before(time.Now().Add(9*time.Minute)) {
			t.Fatalf("result %+v", res)
		}
		if err := r.Decide(t.Context(), "r", pawl.GiveUp(res.Interruptions[0].ID, "ann")); !errors.Is(err, pawl.ErrCallInFlight) {
			t.Errorf("decided while the body may run: %v", err)
		}
	})
	t.Run("the far side is asked", func(t *testing.T) {
		var e effects
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Recover = func(_ context.Context, c *pawl.Call, in charge) (pawl.Recovered[string], error) {
				e.add("asked")
				return pawl.Recovered[string]{Answer: pawl.Happened, Output: "found"}, nil
			}
		}))
		r, engine := onEngine(t, agent, pawl.StepperOptions{})
		loses(engine, journal.EffectTool, true)
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if diff := cmp.Diff([]string{"c1: found"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
		e.want(t, "charge 5", "asked")
	})
	t.Run("harmless", func(t *testing.T) {
		var e effects
		keys := map[string]int{}
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Effect = pawl.Idempotent
			f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
				keys[fmt.Sprint(c.Key, c.Attempt)]++
				return "paid", nil
			}
		}))
		r, engine := onEngine(t, agent, pawl.StepperOptions{})
		loses(engine, journal.EffectTool, true)
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if res.FinalOutput != "done" || len(keys) != 1 {
			t.Errorf("%+v with %v", res, keys)
		}
	})
	t.Run("harmless, and its time is over", func(t *testing.T) {
		var e effects
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Effect, f.Timeout = pawl.Idempotent, 50*time.Millisecond
			f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
				if c.Attempt == 1 {
					<-ctx.Done()
				}
				return "paid", ctx.Err()
			}
		}))
		r, engine := onEngine(t, agent, pawl.StepperOptions{})
		loses(engine, journal.EffectTool, true)
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		var said []journal.Outcome
		for _, f := range facts(t, r.Store, "r") {
			if s, ok := f.Body.(*journal.Settled); ok {
				said = append(said, s.Outcome)
			}
		}
		if diff := cmp.Diff([]journal.Outcome{journal.Unknown, journal.Done}, said); diff != "" || res.FinalOutput != "done" {
			t.Errorf("%+v %s", res, diff)
		}
	})
	t.Run("transactional", func(t *testing.T) {
		var e effects
		store, rows := payments(t)
		agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`), fc("c2", "look", `{"cents":1}`), fc("c3", "pay", `{"cents":6}`)), says("done")),
			paying(&e, nil, nil), charging("look", &e, nil))
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
		loses(newLoopEngine(t, r, pawl.StepperOptions{}), journal.EffectTool, true)
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if diff := cmp.Diff([]string{"c1: paid", "c2: receipt 1", "c3: paid"}, outputs(res.NewItems())); diff != "" || rows() != 2 {
			t.Errorf("%d rows %s", rows(), diff)
		}
		replays(t, r, "r")
	})
	t.Run("a request on a conversation", func(t *testing.T) {
		m := newScript(says("done"))
		m.info.ServerState = true
		agent := agentWith(m)
		r, engine := onEngine(t, agent, pawl.StepperOptions{})
		loses(engine, journal.EffectModel, true)
		_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", ConversationID: "c"})
		if s := stateOf(t, err); s.Status() != pawl.StatusFailed || len(m.calls()) != 1 || !errors.Is(err, pawl.ErrDeliveryAmbiguous) {
			t.Errorf("%s after %d requests: %v", s.Status(), len(m.calls()), err)
		}
	})
}

// A failed run stays with the engine until somebody resumes it [S23.6]. Nobody else can drive it meanwhile [S23.3].
func TestEngineFails(t *testing.T) {
	m := newScript(failing(&model.Error{Delivery: model.DeliveryRefused, Err: errors.New("no")}), says("done"))
	agent := agentWith(m)
	r, _ := onEngine(t, agent, pawl.StepperOptions{})
	_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	if s := stateOf(t, err); s.Status() != pawl.StatusFailed {
		t.Fatal(err)
	}
	if _, err := (&pawl.Runner{Store: r.Store}).Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrClaimed) {
		t.Error(err)
	}
	res := must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
	if res.FinalOutput != "done" {
		t.Errorf("result %+v", res)
	}
}

// A worker that lacks something does not fail the run: whoever resumes it has seen to that [S23.6].
func TestEngineStops(t *testing.T) {
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", new(effects), nil))
	r, engine := onEngine(t, agent, pawl.StepperOptions{})
	able := engine.workers()
	none, err := pawl.NewStepper(&pawl.Runner{Store: r.Store}, pawl.StepperOptions{Engine: engine.Name()})
	if err != nil {
		t.Fatal(err)
	}
	engine.use(none)
	_, err = r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	if stop, ok := errors.AsType[*pawl.EngineError](err); !ok || !errors.Is(err, pawl.ErrUnknownAgent) || stop.Code != "unknown_agent" {
		t.Fatal(err)
	}
	engine.use(able)
	res := must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
	if res.FinalOutput != "done" {
		t.Errorf("result %+v", res)
	}
}

// Cancelling reaches a tool at work [S23.5].
func TestEngineCancels(t *testing.T) {
	entered := make(chan struct{})
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`))), charging("charge", new(effects), func(f *pawl.Func[charge, string]) {
		f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) {
			close(entered)
			<-ctx.Done()
			return "", ctx.Err()
		}
	}))
	r, _ := onEngine(t, agent, pawl.StepperOptions{})
	go func() {
		<-entered
		r.Cancel(context.Background(), "r", "ann", "enough")
	}()
	res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	if !errors.Is(err, pawl.ErrCancelled) || res.Status != pawl.StatusCancelled {
		t.Fatal(res, err)
	}
	if out := outputs(res.NewItems()); len(out) != 1 || !strings.Contains(out[0], "The outcome of this tool call is unknown") {
		t.Errorf("outputs %q", out)
	}
}

// Input that is added while a run waits is read in the next turn [S23.5].
func TestEngineTakesInput(t *testing.T) {
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(m, charging("charge", new(effects), asking))
	r, _ := onEngine(t, agent, pawl.StepperOptions{})
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if err := r.AddInput(t.Context(), "r", pawl.UserText("and be quick")); err != nil {
		t.Fatal(err)
	}
	if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Error("the same decision again:", err)
	}
	if err := r.Decide(t.Context(), "r", pawl.Reject(res.Interruptions[0].ID, "bob", "")); !errors.Is(err, pawl.ErrDecided) {
		t.Error("another decision:", err)
	}
	must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
	in := m.calls()[1].Input
	if last := in[len(in)-1]; last != item.UserText("and be quick") {
		t.Errorf("the model read last %s", last.Raw())
	}
}

// An approval expires on an engine [S23.5].
func TestEngineExpires(t *testing.T) {
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", new(effects), func(f *pawl.Func[charge, string]) {
		asking(f)
		f.Expires = 20 * time.Millisecond
	}))
	r, _ := onEngine(t, agent, pawl.StepperOptions{})
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	for range 100 {
		if !res.Waiting() {
			break
		}
		time.Sleep(10 * time.Millisecond)
		res = must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
	}
	if out := outputs(res.NewItems()); len(out) != 1 || !strings.Contains(out[0], "expired") {
		t.Errorf("%+v: outputs %q", res, out)
	}
}

// A run on a session that an engine's run has meets what it meets without an engine [S23.7].
func TestEngineSessions(t *testing.T) {
	sessions := map[string]session.Session{"s": session.NewMemory("s")}
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(m, charging("charge", new(effects), asking))
	r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}, Sessions: func(id string) session.Session { return sessions[id] }}
	newLoopEngine(t, r, pawl.StepperOptions{})
	opts := pawl.RunOptions{ID: "r", Session: sessions["s"]}
	must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &opts))
	opts.ID = "r2"
	if _, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &opts); !errors.Is(err, pawl.ErrSessionWaiting) {
		t.Fatal(err)
	}
	opts.Supersede = true
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &opts))
	if _, err := r.Resume(t.Context(), nil, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrSuperseded) {
		t.Error(err)
	}
	sameViews(t, res, m, sessions["s"])
}

// Options that are functions are the workers' [S23.2] [S23.11].
func TestEngineOptions(t *testing.T) {
	agent := agentWith(newScript(says("done")))
	r, _ := onEngine(t, agent, pawl.StepperOptions{})
	for name, o := range map[string]*pawl.RunOptions{
		"RunOptions.Hooks": {Hooks: &pawl.Hooks{}}, "RunOptions.Context": {Context: 1}, "RunOptions.Model": {Model: agent.Model},
		"RunOptions.ToolNotFound": {ToolNotFound: pawl.TellModel},
	} {
		_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), o)
		if config, ok := errors.AsType[*pawl.ConfigError](err); !ok || config.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	var told []string
	hooks := &pawl.Hooks{ModelEnd: func(_ context.Context, ev *pawl.ModelEnd) { told = append(told, ev.Value.(string)) }}
	r, _ = onEngine(t, agent, pawl.StepperOptions{Options: func(run string) *pawl.RunOptions {
		return &pawl.RunOptions{Hooks: hooks, Context: "of " + run}
	}})
	must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if diff := cmp.Diff([]string{"of r"}, told); diff != "" {
		t.Error(diff)
	}
}

// checkedEngine is an engine that knows a mistake before a run is begun on it.
type checkedEngine struct{ *loopEngine }

func (checkedEngine) Check() error {
	return &pawl.ConfigError{Field: "Options.Blobs", Problem: "is gone"}
}

// What an engine finds wrong is known before anything happened [S23.2].
func TestEngineIsChecked(t *testing.T) {
	agent := agentWith(newScript(says("done")))
	r, engine := onEngine(t, agent, pawl.StepperOptions{})
	r.Engine = checkedEngine{engine}
	_, run := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	_, submit := r.Submit(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	_, resume := r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
	for _, err := range []error{run, submit, resume} {
		if config, ok := errors.AsType[*pawl.ConfigError](err); !ok || config.Field != "Options.Blobs" {
			t.Error(err)
		}
	}
	if recs, err := r.Store.Read(t.Context(), "r", 0); len(recs) > 0 || err != nil {
		t.Errorf("%d facts, %v", len(recs), err)
	}
}

// An outcome that is too long is cut to a text, and is not a failure of the call [S23.8].
func TestEngineLongOutcome(t *testing.T) {
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", new(effects), func(f *pawl.Func[charge, string]) {
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return strings.Repeat("x", 5000), nil }
	}))
	r, _ := onEngine(t, agent, pawl.StepperOptions{MaxOutcome: 4000})
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if diff := cmp.Diff([]string{"c1: The tool ran. Its output of 5083 bytes is too long to be kept: at most 4000."}, outputs(res.NewItems())); diff != "" {
		t.Error(diff)
	}
}

// Agents that were called together work together on an engine [S23.1].
func TestEngineNested(t *testing.T) {
	var e effects
	inner := &pawl.Agent{Name: "clerk", Model: newScript(calling(fc("n1", "charge", `{"cents":5}`)), says("paid"), says("paid too"))}
	inner.Tools = []pawl.Tool{charging("charge", &e, asking)}
	agent := agentWith(newScript(calling(fc("c1", "ask_clerk", `{"input":"a"}`)), says("done")), pawl.AgentTool(inner, &pawl.AgentToolOptions{Name: "ask_clerk"}))
	r, _ := onEngine(t, agent, pawl.StepperOptions{})
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if len(res.Interruptions) != 1 {
		t.Fatalf("result %+v", res)
	}
	if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	res = must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
	if diff := cmp.Diff([]string{"c1: paid"}, outputs(res.NewItems())); diff != "" || res.FinalOutput != "done" {
		t.Errorf("%+v %s", res, diff)
	}
	e.want(t, "charge 5")
}

// A run is submitted to an engine, however often [S23.3].
func TestEngineSubmit(t *testing.T) {
	agent := agentWith(newScript(says("done")))
	r, _ := onEngine(t, agent, pawl.StepperOptions{})
	for range 2 {
		if run, err := r.Submit(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}); err != nil || run != "r" {
			t.Fatal(run, err)
		}
	}
	if res := must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil)); res.FinalOutput != "done" {
		t.Errorf("result %+v", res)
	}
	var config *pawl.ConfigError
	if err := r.Recover(t.Context(), nil); !errors.As(err, &config) {
		t.Error(err)
	}
}

// A run that is submitted for later begins at its time, or when somebody resumes it [S22.4].
func TestEngineSubmitLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := agentWith(newScript(says("done"), says("done")))
		r, _ := onEngine(t, agent, pawl.StepperOptions{})
		at := time.Now().Add(time.Hour)
		for _, run := range []string{"waits", "resumed"} {
			if _, err := r.Submit(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: run, StartAt: at}); err != nil {
				t.Fatal(err)
			}
		}
		begins := func(run string) (at int64) {
			for _, f := range facts(t, r.Store, run) {
				if f.Body.Kind() == journal.KindPrepared {
					at = f.Time
				}
			}
			return at
		}
		must(t)(r.Resume(t.Context(), nil, pawl.RunID("resumed"), nil))
		if n := begins("resumed"); n == 0 || n >= at.UnixMilli() {
			t.Errorf("resumed, it begins at %d", n)
		}
		if n := begins("waits"); n != 0 {
			t.Errorf("it begins at %d", n)
		}
		time.Sleep(time.Until(at.Add(time.Second)))
		synctest.Wait()
		if n := begins("waits"); n < at.UnixMilli() {
			t.Errorf("it begins at %d", n)
		}
	})
}

// A worker that is asked for a run of another store leaves the id free in its own [S23.3].
func TestEngineRunOfAnotherStore(t *testing.T) {
	agent := agentWith(newScript(says("done")))
	r, engine := onEngine(t, agent, pawl.StepperOptions{})
	if _, err := engine.workers().Open(t.Context(), "r", nil); !errors.Is(err, pawl.ErrUnknownRun) {
		t.Fatal(err)
	}
	if res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})); res.FinalOutput != "done" {
		t.Errorf("result %+v", res)
	}
}

// silent is an engine that is out of reach for the first message.
type silent struct {
	*loopEngine
	told int
}

func (e *silent) Tell(ctx context.Context, run string, messages []journal.Entry) error {
	if e.told++; e.told == 1 {
		return errCutOff
	}
	return e.loopEngine.Tell(ctx, run, messages)
}

// A decision that was posted and not sent is sent by whoever decides next, although he is too late [S23.5].
func TestEngineIsToldLater(t *testing.T) {
	var e effects
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, asking))
	r, engine := onEngine(t, agent, pawl.StepperOptions{})
	r.Engine = &silent{loopEngine: engine}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	in := res.Interruptions[0]
	if err := r.Decide(t.Context(), "r", pawl.Approve(in.ID, "ann")); !errors.Is(err, errCutOff) {
		t.Fatal(err)
	}
	if runs, err := engine.workers().Unread(t.Context()); err != nil || !slices.Equal(runs, []string{"r"}) {
		t.Errorf("unread %v, %v", runs, err)
	}
	if err := r.Decide(t.Context(), "r", pawl.Reject(in.ID, "bob", "no")); !errors.Is(err, pawl.ErrDecided) {
		t.Fatal(err)
	}
	for ev := range r.Watch(t.Context(), "r", pawl.Cursor{}) {
		if _, over := ev.Event.(*pawl.Done); over {
			break
		}
	}
	e.want(t, "charge 5")
}

// cutOff is a store that its process does not reach any more when it has claimed a run.
type cutOff struct{ journal.Driver }

var errCutOff = errors.New("cut off")

func (cutOff) Append(context.Context, string, uint64, uint64, []journal.Record, ...journal.Companion) error {
	return errCutOff
}
func (cutOff) Renew(context.Context, string, uint64, time.Duration) error  { return errCutOff }
func (cutOff) Release(context.Context, string, uint64, journal.Rest) error { return errCutOff }

// A process that dies when it has claimed a run and not begun it keeps nobody from beginning it [S23.3].
func TestEngineBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := agentWith(newScript(says("done")))
		r, engine := onEngine(t, agent, pawl.StepperOptions{})
		dies := &pawl.Runner{Store: cutOff{r.Store}, Agents: r.Agents, Engine: engine}
		if _, err := dies.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, errCutOff) {
			t.Fatal(err)
		}
		begin := map[string]func() error{
			"run": func() error {
				_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				return err
			},
			"submit": func() error {
				_, err := r.Submit(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				return err
			},
		}
		for name, f := range begin {
			if err := f(); !errors.Is(err, pawl.ErrClaimed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(pawl.DefaultLease)
		for name, f := range begin {
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(pawl.DefaultLease)
		if res := must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil)); res.FinalOutput != "done" {
			t.Errorf("result %+v", res)
		}
	})
}

// The result of a body that was left running is recorded also when the loop of its run
// is over [S23.5].
func TestEngineLateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		agent := deaf(&e, func() {}, func(f *pawl.Func[charge, string]) { f.Timeout = time.Second })
		r, _ := onEngine(t, agent, pawl.StepperOptions{})
		if _, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}); err != nil {
			t.Fatal(err)
		}
		if got := lates(t, r.Store); len(got) > 0 {
			t.Errorf("late before the body ends: %q", got)
		}
		time.Sleep(2 * time.Minute)
		if got, want := lates(t, r.Store), []string{"t1.0.1 c1: late receipt"}; !slices.Equal(got, want) {
			t.Errorf("late %q, want %q", got, want)
		}
	})
}
