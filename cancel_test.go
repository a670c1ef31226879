package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// points calls at at every point of a run where user code or a store is entered.
type points struct {
	session.Session
	at func(point string)
}

func (p *points) Items(ctx context.Context, limit int) ([]pawl.Item, error) {
	p.at("load")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.Session.Items(ctx, limit)
}

func (p *points) Append(ctx context.Context, items []pawl.Item) error {
	p.at("append")
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.Session.Append(ctx, items)
}

// run makes an agent whose run passes all points, and the model it asks.
func (p *points) agent(e *effects, tool func(context.Context) error) (*pawl.Agent, *script) {
	enter := func(s step) step {
		return func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			p.at("model")
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return s(ctx, req, emit)
		}
	}
	var steps []step
	answered := 0
	for range 8 { // attempts that were cancelled are made again
		steps = append(steps, enter(func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			if answered++; answered == 1 {
				return calling(fc("c1", "charge", `{"cents":5}`))(ctx, req, emit)
			}
			return says("done")(ctx, req, emit)
		}))
	}
	m := newScript(steps...)
	agent := agentWith(m, charging("charge", e, func(f *pawl.Func[charge, string]) {
		f.Approve = func(ctx context.Context, _ *pawl.Call, _ charge) (pawl.Gate, error) {
			p.at("rule")
			return pawl.Allow, ctx.Err()
		}
		f.Run = func(ctx context.Context, _ *pawl.Call, in charge) (string, error) {
			e.add("charge %d", in.Cents)
			p.at("tool")
			return "receipt", tool(ctx)
		}
	}))
	agent.Instructions = func(context.Context, *pawl.RunContext) (string, error) { p.at("instructions"); return "", nil }
	agent.ToolUse = pawl.DecideToolUse(func(context.Context, *pawl.RunContext, []pawl.ToolResult) (pawl.ToolUseDecision, error) {
		p.at("tool use")
		return pawl.ToolUseDecision{}, nil
	})
	return agent, m
}

// A context that ends anywhere ends the driving with its error; the run goes on as if
// nothing had been.
func TestContextEndsAnywhere(t *testing.T) {
	finishes := func(context.Context) error { return nil }
	for n := range 100 {
		var last string
		ended := false
		synctest.Test(t, func(t *testing.T) {
			var e effects
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			i := 0
			p := &points{Session: session.NewMemory("s"), at: func(point string) {
				if i++; i == n {
					cancel()
					last = point
				}
			}}
			if n == 0 {
				cancel()
			}
			agent, m := p.agent(&e, finishes)
			var r pawl.Runner
			opts := &pawl.RunOptions{ID: "r", Session: p}
			res, err := r.Run(ctx, agent, pawl.UserText("pay"), opts)
			if n > i {
				ended = true
				return
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("cancelled in %s: %v", last, err)
			}
			if err == nil && res.FinalOutput != "done" {
				t.Fatalf("cancelled in %s: %+v", last, res)
			}
			start := time.Now()
			res = must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), opts))
			if waited := time.Since(start); waited > 0 {
				t.Errorf("cancelled in %s: the run had to wait for %v", last, waited)
			}
			if res.FinalOutput != "done" {
				t.Errorf("cancelled in %s: result %+v", last, res)
			}
			e.want(t, "charge 5")
			if diff := cmp.Diff([]string{"c1: receipt"}, outputs(res.NewItems())); diff != "" {
				t.Errorf("cancelled in %s: %s", last, diff)
			}
			sameViews(t, res, m, p.Session)
			replays(t, &r, "r")
		})
		if ended {
			if n < 11 {
				t.Errorf("only %d points", n)
			}
			return
		}
		if t.Failed() {
			t.Fatalf("point %d: %s", n, last)
		}
	}
	t.Error("the run has no end")
}

// The error of a context is the caller's to find, also with a cause of its own.
func TestContextErrors(t *testing.T) {
	mine := errors.New("mine")
	for name, tt := range map[string]struct {
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		want []error
	}{
		"cancelled": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, []error{context.Canceled}},
		"timeout": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, []error{context.DeadlineExceeded}},
		"cause": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(mine) })
			return ctx, func() { cancel(nil) }
		}, []error{context.Canceled, mine}},
	} {
		for _, where := range []string{"model", "tool"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := tt.ctx(t.Context())
					defer cancel()
					var e effects
					wait := func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) { <-ctx.Done(); return "", nil }
					m := newScript(calling(fc("c1", "wait", `{"cents":1}`)))
					if where == "model" {
						m = newScript(hanging(make(chan struct{})))
					}
					var r pawl.Runner
					_, err := r.Run(ctx, agentWith(m, charging("wait", &e, func(f *pawl.Func[charge, string]) { f.Run = wait })), pawl.UserText("hi"), nil)
					for _, want := range tt.want {
						if !errors.Is(err, want) {
							t.Errorf("%v is not %v", err, want)
						}
					}
					if s := stateOf(t, err); s.Status() != pawl.StatusRunning {
						t.Errorf("status %s", s.Status())
					}
				})
			})
		}
	}
}

// A body that ignores its context is awaited for the grace; then nobody knows what became
// of it, and the model is told.
func TestContextEndsAndToolGoesOn(t *testing.T) {
	for _, on := range []pawl.OnUnknown{pawl.UnknownDefault, pawl.UnknownTell, pawl.UnknownWait} {
		t.Run("on unknown "+string(on), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				ctx, cancel := context.WithCancel(t.Context())
				var key string
				deaf := charging("deaf", &e, func(f *pawl.Func[charge, string]) {
					f.OnUnknown = on
					f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
						key = c.Key
						cancel()
						time.Sleep(time.Minute)
						e.add("deaf %d", in.Cents)
						return "too late", nil
					}
				})
				m := newScript(calling(fc("c1", "deaf", `{"cents":5}`)), says("done"))
				agent := agentWith(m, deaf)
				var r pawl.Runner
				start := time.Now()
				_, err := r.Run(ctx, agent, pawl.UserText("pay"), nil)
				if waited := time.Since(start); !errors.Is(err, context.Canceled) || waited != pawl.DefaultGrace {
					t.Errorf("%v after %v", err, waited)
				}
				res := must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil))
				if on == pawl.UnknownWait {
					if !res.Waiting() || res.Interruptions[0].Kind != pawl.InDoubt || res.Interruptions[0].Key != key {
						t.Errorf("result %+v", res)
					}
				} else if out := outputs(res.NewItems()); len(out) != 1 || !strings.Contains(out[0], "unknown") || !strings.Contains(out[0], key) {
					t.Errorf("outputs %q, want the key %s", out, key)
				}
				time.Sleep(2 * time.Minute)
				e.want(t, "deaf 5")
			})
		})
	}
}

// A harmless call that was cancelled runs again, with the same key.
func TestContextEndsInHarmlessTool(t *testing.T) {
	for _, effect := range []pawl.Effect{pawl.Idempotent, pawl.ReadOnly} {
		t.Run(string(effect), func(t *testing.T) {
			var e effects
			ctx, cancel := context.WithCancel(t.Context())
			tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
				f.Effect = effect
				f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
					e.add("%s %d", c.Key[:4], c.Attempt)
					if c.Attempt == 1 {
						cancel()
						return "", ctx.Err()
					}
					return c.Key, nil
				}
			})
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			agent := agentWith(m, tool)
			var r pawl.Runner
			_, err := r.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
			e.want(t, "pawl 1", "pawl 2")
			if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], "c1: pawl_") {
				t.Errorf("outputs %q", out)
			}
		})
	}
}

// cancelled checks the end of a cancelled run: it stays so, and the session is valid.
func cancelled(t *testing.T, r *pawl.Runner, agent *pawl.Agent, m *script, s session.Session, res *pawl.Result, err error) {
	t.Helper()
	if !errors.Is(err, pawl.ErrCancelled) || res == nil || res.Status != pawl.StatusCancelled {
		t.Fatalf("%+v, %v", res, err)
	}
	sameViews(t, res, m, s)
	if n := len(res.Interruptions); n > 0 || res.FinalOutput != "" {
		t.Errorf("%d interruptions, output %q", n, res.FinalOutput)
	}
	state := replays(t, r, res.Run)
	if state.Status() != pawl.StatusCancelled {
		t.Errorf("stored: %s", state.Status())
	}
	calls := len(m.calls())
	again, err := r.Resume(t.Context(), agent, pawl.RunID(res.Run), &pawl.RunOptions{Session: s})
	if !errors.Is(err, pawl.ErrCancelled) || !cmp.Equal(again.ToInputList(), res.ToInputList()) {
		t.Errorf("resumed: %v", err)
	}
	if err := r.Cancel(t.Context(), res.Run, "bob", "again"); err != nil {
		t.Errorf("cancelled again: %v", err)
	}
	if n := len(m.calls()); n != calls {
		t.Errorf("%d model calls after the end", n-calls)
	}
}

// Cancel from inside any point of a run ends it there: nothing new starts, the session is
// valid.
func TestCancelAnywhere(t *testing.T) {
	for n := 1; n < 100; n++ {
		var last string
		over := false
		synctest.Test(t, func(t *testing.T) {
			var e effects
			i := 0
			var r pawl.Runner
			p := &points{Session: session.NewMemory("s")}
			p.at = func(point string) {
				if i++; i == n {
					last = point
					if err := r.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
						t.Error(err)
					}
				}
			}
			agent, m := p.agent(&e, func(ctx context.Context) error { return nil })
			res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: p})
			if n > i {
				over = true
				return
			}
			if err == nil && last == "append" && len(m.calls()) == 2 {
				return // the run was over when the cancellation came in
			}
			cancelled(t, &r, agent, m, p, res, err)
			e.mu.Lock()
			charged := len(e.list)
			e.mu.Unlock()
			if last == "rule" && charged > 0 {
				t.Error("a call started after the cancellation")
			}
		})
		if over {
			return
		}
	}
	t.Error("the run has no end")
}

// Cancel reaches a model call in flight.
func TestCancelDuringModelCall(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		entered := make(chan struct{})
		m := newScript(calling(fc("c1", "look", `{"cents":1}`)), hanging(entered))
		var e effects
		agent := agentWith(m, charging("look", &e, nil))
		sess := session.NewMemory("s")
		var r pawl.Runner
		go func() {
			<-entered
			r.Cancel(context.Background(), "r", "ann", "enough")
		}()
		res, err := mode.run(&r, t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r", Session: sess})
		if mode.name == "stream" {
			res = stateOf(t, err).Result()
		}
		cancelled(t, &r, agent, m, sess, res, err)
		if diff := cmp.Diff([]string{"c1: receipt 1"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
	})
}

// A cancellation by another process reaches a model call when the lease is renewed.
func TestCancelByAnotherDuringModelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered := make(chan struct{})
		m := newScript(hanging(entered))
		agent := agentWith(m)
		store := stores["memory"](t)
		start := time.Now()
		go func() {
			<-entered
			other := pawl.Runner{Store: store}
			if err := other.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
				t.Error(err)
			}
		}()
		r := pawl.Runner{Store: store, Lease: 9 * time.Second}
		res, err := r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		cancelled(t, &r, agent, m, nil, res, err)
	})
}

// Cancel, also by another Runner, reaches a tool in flight: its context ends, it is
// awaited, and its outcome is kept.
func TestCancelDuringTool(t *testing.T) {
	for name, tt := range map[string]struct {
		body func(context.Context) error
		out  string
	}{
		"ends well":   {func(ctx context.Context) error { <-ctx.Done(); return nil }, "c1: receipt"},
		"heeds":       {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "c1: The outcome of this tool call is unknown"},
		"ignores":     {func(ctx context.Context) error { time.Sleep(time.Minute); return nil }, "c1: receipt"},
		"fails after": {func(ctx context.Context) error { <-ctx.Done(); return errors.New("no funds") }, "c1: The tool failed: no funds"},
	} {
		for _, other := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/another runner: ", other), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var e effects
					tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
						f.Run = func(ctx context.Context, _ *pawl.Call, in charge) (string, error) { return "receipt", tt.body(ctx) }
					})
					m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "ask", `{"cents":5}`), fc("c3", "charge", `{"cents":5}`)))
					agent := agentWith(m, tool, charging("ask", &e, asking))
					sess := session.NewMemory("s")
					store := stores["memory"](t)
					r := &pawl.Runner{Store: store}
					by := r
					if other {
						by = &pawl.Runner{Store: store}
					}
					go func() {
						time.Sleep(10 * time.Second)
						if err := by.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
							t.Error(err)
						}
					}()
					res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess, MaxParallelTools: 1})
					cancelled(t, r, agent, m, sess, res, err)
					out := outputs(res.NewItems())
					if len(out) != 3 || !strings.HasPrefix(out[0], tt.out) {
						t.Fatalf("outputs %q", out)
					}
					const not = ": The tool was not executed: the run was cancelled."
					if diff := cmp.Diff([]string{"c2" + not, "c3" + not}, out[1:]); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

// Cancelling a run that nobody drives takes effect when it is resumed.
func TestCancelWhileNobodyDrives(t *testing.T) {
	for name, open := range stores {
		for _, how := range []string{"waiting", "failed", "stopped"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				var e effects
				steps := []step{calling(fc("c1", "ask", `{"cents":5}`), fc("c2", "look", `{"cents":1}`)), failing(errors.New("down"))}
				m := newScript(steps...)
				if how == "failed" {
					m = newScript(calling(fc("c2", "look", `{"cents":1}`)), steps[1])
				}
				agent := agentWith(m, charging("ask", &e, asking), charging("look", &e, nil))
				sess := session.NewMemory("s")
				r := &pawl.Runner{Store: open(t), Agents: []*pawl.Agent{agent}, Sessions: func(string) session.Session { return sess }}
				for ev, err := range r.Stream(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}) {
					if err != nil && how != "failed" {
						t.Fatal(err)
					}
					if out, ok := ev.(*pawl.ItemCreated); ok && how == "stopped" && out.Name == pawl.ToolCalled {
						break
					}
				}
				s := replays(t, r, "r")
				open := s.Interruptions()
				if err := r.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
					t.Fatal(err)
				}
				res, err := r.Resume(t.Context(), nil, pawl.RunID("r"), nil)
				cancelled(t, r, agent, m, sess, res, err)
				if how == "waiting" {
					const not = ": The tool was not executed: the run was cancelled."
					if diff := cmp.Diff([]string{"c1" + not, "c2: receipt 1"}, outputs(res.NewItems())); diff != "" {
						t.Error(diff)
					}
					if err := r.Decide(t.Context(), "r", pawl.Approve(open[0].ID, "bob")); !errors.Is(err, pawl.ErrNotOpen) {
						t.Errorf("deciding it now: %v", err)
					}
				}
			})
		}
	}
}

// A call in doubt of a cancelled run is told as unknown, never as not executed.
func TestCancelInDoubt(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)))
	agent := agentWith(m, charging("charge", &e, func(f *pawl.Func[charge, string]) {
		f.OnUnknown = pawl.UnknownWait
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", pawl.ErrOutcomeUnknown }
	}))
	sess := session.NewMemory("s")
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Session: sess}))
	if !res.Waiting() || res.Interruptions[0].Kind != pawl.InDoubt {
		t.Fatalf("result %+v", res)
	}
	key := res.Interruptions[0].Key
	if err := r.Cancel(t.Context(), res.Run, "ann", ""); err != nil {
		t.Fatal(err)
	}
	res, err := r.Resume(t.Context(), agent, pawl.RunID(res.Run), &pawl.RunOptions{Session: sess})
	cancelled(t, &r, agent, m, sess, res, err)
	if out := outputs(res.NewItems()); len(out) != 1 || !strings.Contains(out[0], "unknown") || !strings.Contains(out[0], key) {
		t.Errorf("outputs %q", out)
	}
}

// A session serves the next run after one was cancelled.
func TestCancelledSessionGoesOn(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "ask", `{"cents":5}`)), says("hello again"))
	agent := agentWith(m, charging("ask", &e, asking))
	sess := session.NewMemory("s")
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Session: sess}))
	if err := r.Cancel(t.Context(), res.Run, "ann", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), agent, pawl.RunID(res.Run), &pawl.RunOptions{Session: sess}); !errors.Is(err, pawl.ErrCancelled) {
		t.Fatal(err)
	}
	res = must(t)(r.Run(t.Context(), agent, pawl.UserText("hello"), &pawl.RunOptions{Session: sess}))
	if res.FinalOutput != "hello again" || len(res.NewItems()) != 1 {
		t.Errorf("result %+v", res)
	}
	sameViews(t, res, m, sess)
	if diff := cmp.Diff([]pawl.Item{item.UserText("pay"), fc("c1", "ask", `{"cents":5}`),
		item.FunctionOutput("c1", "The tool was not executed: the run was cancelled."), item.UserText("hello")}, m.calls()[1].Input); diff != "" {
		t.Error(diff)
	}
}

func TestCancelUnknownRun(t *testing.T) {
	var r pawl.Runner
	if err := r.Cancel(t.Context(), "none", "ann", ""); !errors.Is(err, pawl.ErrUnknownRun) {
		t.Error(err)
	}
}
