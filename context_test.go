package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
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

// looked calls at when the driver looks into the inbox.
type looked struct {
	journal.Driver
	at func()
}

func (l looked) Inbox(ctx context.Context, run string) ([]journal.Entry, error) {
	l.at()
	return l.Driver.Inbox(ctx, run)
}

// A context that ends while the outcome of a call is on its way leaves no intent of the next
// attempt: it would stand for a call that may have begun.
func TestContextEndsBeforeNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		ctx, cancel := context.WithCancel(t.Context())
		tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Effect = pawl.Idempotent
			f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
				e.add("attempt %d", c.Attempt)
				if c.Attempt == 1 {
					time.Sleep(300 * time.Millisecond) // so long that the inbox is looked into
					return "", pawl.ErrOutcomeUnknown
				}
				return "receipt", nil
			}
		})
		store := looked{journal.NewMemory(), cancel}
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), tool)
		r := pawl.Runner{Store: store}
		if _, err := r.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		e.want(t, "attempt 1", "attempt 2")
	})
}
