package pawl_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/session"
)

// aroundFeatures are what stands around the turns of a run.
var aroundFeatures = []feature{
	{"R2.13", TestErrorHandlers},
	{"A1.14", TestHooks},
	{"R2.05", func(t *testing.T) { // what a resume is not given again, and what it is
		var seen []any
		var e effects
		m := newScript(calling(fc("c1", "pay", `{"cents":5}`)), calling(fc("c2", "pay", `{"cents":5}`)))
		agent := agentWith(m, charging("pay", &e, func(f *pawl.Func[charge, string]) {
			asking(f)
			f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
				seen = append(seen, c.Value, c.ApprovedBy)
				return "", nil
			}
		}))
		sess, handlers := session.NewMemory("s"), one(answering(&e, "no more"))
		r := &pawl.Runner{Sessions: func(string) session.Session { return sess }}
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", Session: sess, MaxTurns: 1, Context: "first", Hooks: noting(&e, "run"), ErrorHandlers: handlers}))
		state := res.State()
		if err := state.Approve(res.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		e.list = nil
		res = must(t)(r.Resume(t.Context(), agent, state, &pawl.RunOptions{Context: "second", ErrorHandlers: handlers}))
		if res.FinalOutput != "no more" || len(m.calls()) != 1 {
			t.Errorf("%q after %d calls", res.FinalOutput, len(m.calls()))
		}
		if diff := cmp.Diff([]any{"second", "ann"}, seen); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		e.want(t, "support turn 1, 3 items, 2 new, 1 requests: pawl: no final output after 1 turns; resume the run with a larger MaxTurns")
		sameViews(t, res, m, sess)
	}},
	{"K13.01", TestHooks},
	{"K13.02", TestHooksInNestedRuns},
	{"K13.03", TestHookPanics},
	{"K13.04", TestHooksOverAPause},
	{"5.02", func(t *testing.T) { // what can be done with a state
		_, _, s := waiting5(t)
		other := viaJSON(t, s)
		if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		if err := other.Reject(other.Interruptions()[0], "bob", "no"); err != nil {
			t.Fatal(err)
		}
		if err := other.AddInput(pawl.UserText("more")); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			state   *pawl.RunState
			verdict string
			pending int
		}{{s, "approve", 0}, {other, "reject", 1}, {viaJSON(t, other), "reject", 1}} {
			if staged := tt.state.Staged(); len(staged) != 1 || string(staged[0].Verdict) != tt.verdict || len(tt.state.Interruptions()) != 0 || len(tt.state.PendingInput()) != tt.pending {
				t.Errorf("staged %v, pending %v", staged, tt.state.PendingInput())
			}
		}
		if other.ClearPendingInput(); len(other.PendingInput()) != 0 {
			t.Errorf("pending %v", other.PendingInput())
		}
	}},
	{"5.06", TestContextCodec},
	{"5.10", TestAddInput},
}
