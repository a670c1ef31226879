package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// Whoever stops a run after its turn gets the whole turn, the session included, and the run
// goes on from there [S12.5].
func TestStopAfterTurn(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for _, times := range []int{1, 3} {
			var e effects
			var r pawl.Runner
			s := newScript(calling(fc("c1", "pay", `{"cents":1}`), fc("c2", "stop", `{"cents":2}`), fc("c3", "pay", `{"cents":3}`)), says("done"))
			stop := charging("stop", &e, func(f *pawl.Func[charge, string]) {
				f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
					for range times {
						r.StopAfterTurn(c.Run)
					}
					return "stopping", nil
				}
			})
			sess := session.NewMemory("s")
			agent := agentWith(s, charging("pay", &e, nil), stop)
			_, err := m.run(&r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Session: sess})
			if !errors.Is(err, pawl.ErrStopped) {
				t.Fatalf("error %v", err)
			}
			if n := len(s.calls()); n != 1 {
				t.Errorf("%d model calls", n)
			}
			held, err2 := sess.Items(t.Context(), -1)
			if diff := cmp.Diff([]string{"c1: receipt 1", "c2: stopping", "c3: receipt 3"}, outputs(held)); diff != "" || err2 != nil {
				t.Errorf("session: %v (-want +got):\n%s", err2, diff)
			}
			state := stateOf(t, err)
			if state.Status() != pawl.StatusRunning || state.Result().Turns != 1 {
				t.Errorf("%s after %d turns", state.Status(), state.Result().Turns)
			}
			res := must(t)(m.resume(&r, t.Context(), agent, viaJSON(t, state), &pawl.RunOptions{Session: sess}))
			if res.FinalOutput != "done" || res.Turns != 2 {
				t.Errorf("output %q after %d turns", res.FinalOutput, res.Turns)
			}
			sameViews(t, res, s, sess)
		}
	})
}

// A run that is stopped before it is started is recorded and has no turn.
func TestStopBeforeTheStart(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var r pawl.Runner
		s := newScript(says("done"))
		agent := agentWith(s)
		r.StopAfterTurn("r")
		_, err := m.run(&r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
		if !errors.Is(err, pawl.ErrStopped) || len(s.calls()) != 0 {
			t.Fatalf("error %v, %d model calls", err, len(s.calls()))
		}
		if res := must(t)(m.resume(&r, t.Context(), agent, pawl.RunID("r"), nil)); res.FinalOutput != "done" {
			t.Errorf("output %q", res.FinalOutput)
		}
	})
}

// A run that comes to an end or a pause in this turn is not touched, and the request is not
// kept for a later drive.
func TestStopComesTooLate(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		var r pawl.Runner
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), says("done"))
		agent := agentWith(s, charging("pay", &e, asking))
		agent.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
			r.StopAfterTurn(rc.Run)
			return "", nil
		}
		res := must(t)(m.run(&r, t.Context(), agent, pawl.UserText("go"), nil))
		agent.Instructions = nil
		state := res.State()
		if err := state.Approve(res.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		if res = must(t)(m.resume(&r, t.Context(), agent, state, nil)); res.FinalOutput != "done" {
			t.Errorf("output %q", res.FinalOutput)
		}
	})
}

// The reader of a stream may stop it while it handles an event: the next turn has not begun.
func TestStopWhileAnEventIsHandled(t *testing.T) {
	for _, at := range []pawl.ItemName{pawl.ToolCalled, pawl.ToolOutput} {
		var e effects
		var r pawl.Runner
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), says("done"))
		agent := agentWith(s, charging("pay", &e, nil))
		var err error
		for ev, e := range r.Stream(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}) {
			if it, ok := ev.(*pawl.ItemCreated); ok && it.Name == at {
				r.StopAfterTurn("r")
			}
			err = e
		}
		if !errors.Is(err, pawl.ErrStopped) || len(s.calls()) != 1 {
			t.Errorf("%s: error %v, %d model calls", at, err, len(s.calls()))
		}
		e.want(t, "pay 1")
	}
}

// A model call that is under way is awaited, and one that fails is tried again.
func TestStopDuringAModelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		var r pawl.Runner
		entered := make(chan struct{})
		answer := make(chan struct{})
		s := newScript(func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			close(entered)
			<-answer
			return calling(fc("c1", "pay", `{"cents":1}`))(ctx, req, emit)
		}, says("done"))
		agent := agentWith(s, charging("pay", &e, nil))
		go func() {
			<-entered
			r.StopAfterTurn("r")
			close(answer)
		}()
		_, err := r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
		if !errors.Is(err, pawl.ErrStopped) {
			t.Errorf("error %v", err)
		}
		e.want(t, "pay 1")
	})
}
