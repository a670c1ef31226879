package pawl_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// A program moves to an engine by the way in which its Runner is made.
func TestEngine(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":7}`)), says("done"))
		agent := agentWith(m, charging("charge", &e, asking), charging("look", &e, nil))
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
		newLoopEngine(t, r, pawl.StepperOptions{})
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
