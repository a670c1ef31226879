package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// notifying is a store that says what was appended.
type notifying struct {
	journal.Driver
	appended func([]journal.Record)
}

func (n notifying) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	err := n.Driver.Append(ctx, run, epoch, after, recs, with...)
	n.appended(recs)
	return err
}

// A cancellation that comes in just before a model call does not wait for its answer.
func TestCancelBeforeModelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r pawl.Runner
		r.Store = notifying{stores["memory"](t), func(recs []journal.Record) {
			if slices.ContainsFunc(recs, func(rec journal.Record) bool { return rec.Kind == journal.KindPrepared }) {
				if err := r.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
					t.Error(err)
				}
			}
		}}
		slow := func(ctx context.Context, _ *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
			time.Sleep(time.Minute) // deaf
			return nil, ctx.Err()
		}
		m := newScript(slow)
		m.info.ServerState = true
		start := time.Now()
		res, err := r.Run(t.Context(), agentWith(m), pawl.UserText("hi"), &pawl.RunOptions{ID: "r", ConversationID: "conv"})
		if took := time.Since(start); !errors.Is(err, pawl.ErrCancelled) || took > 0 || len(m.calls()) > 0 {
			t.Errorf("%+v, %v after %v and %d model calls", res, err, took, len(m.calls()))
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
					start := time.Now()
					res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess, MaxParallelTools: 1})
					took, most := time.Since(start), 10*time.Second
					if other {
						most += 500 * time.Millisecond // it looks into the inbox that often
					}
					if name != "ignores" && took > most {
						t.Errorf("cancelled after 10 s, it took %v", took)
					}
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
