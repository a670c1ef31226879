package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/session"
)

func (timeoutError) Error() string { return "i/o timeout" }

func (timeoutError) Timeout() bool { return true }

// Deciding while somebody drives: the driver sees it while a slow tool runs.
func TestDecideWhileDriven(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			var e effects
			store := open(t)
			entered, charged := make(chan struct{}), make(chan struct{})
			agent := agentWith(newScript(calling(fc("c1", "slow", `{"cents":1}`), fc("c2", "charge", `{"cents":2}`), fc("c3", "charge", `{"cents":3}`)), says("done")),
				charging("slow", &e, func(f *pawl.Func[charge, string]) {
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) { close(entered); <-charged; return "", nil }
				}),
				charging("charge", &e, func(f *pawl.Func[charge, string]) {
					asking(f)
					f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
						e.add("charge %d by %s", in.Cents, c.ApprovedBy)
						close(charged)
						return "", nil
					}
				}))
			done := make(chan *pawl.Result)
			go func() {
				r := pawl.Runner{Store: store}
				res, _ := r.Run(context.Background(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				done <- res
			}()
			<-entered
			r := pawl.Runner{Store: store}
			s := replays(t, &r, "r")
			open := s.Interruptions()
			if len(open) != 2 {
				t.Fatalf("%d interruptions are shown while a tool runs", len(open))
			}
			for _, by := range []string{"ann", "bob"} { // the same again is nothing
				if err := r.Decide(t.Context(), "r", pawl.Approve(open[0].ID, by), pawl.Reject(open[1].ID, by, "no")); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Decide(t.Context(), "r", pawl.Reject(open[0].ID, "cyd", "")); !errors.Is(err, pawl.ErrDecided) || !strings.Contains(err.Error(), "ann") {
				t.Errorf("another verdict: %v", err)
			}
			// A resume that meets a driver submits what is staged all the same.
			if err := s.Approve(open[0], "dan"); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Resume(t.Context(), agent, s, nil); !errors.Is(err, pawl.ErrClaimed) {
				t.Errorf("resume: %v", err)
			}
			res := <-done
			if res == nil || res.FinalOutput != "done" {
				t.Fatalf("%+v", res)
			}
			e.want(t, "charge 2 by ann")
			if out := outputs(res.NewItems()); !slices.Equal(out, []string{"c1: ", "c2: ", "c3: no"}) {
				t.Errorf("outputs %q", out)
			}
		})
	}
}

// Decisions that contradict each other in one call are refused together.
func TestDecideTogether(t *testing.T) {
	var e effects
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":6}`)), says("done")), charging("charge", &e, asking))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	a, b := res.Interruptions[0].ID, res.Interruptions[1].ID
	for name, list := range map[string][]pawl.Decision{
		"contradicting": {pawl.Approve(b, "ann"), pawl.Approve(a, "ann"), pawl.Reject(a, "ann", "")},
		"one not open":  {pawl.Approve(a, "ann"), pawl.Approve("1.7#0", "ann")},
		"one unfit":     {pawl.Approve(a, "ann"), pawl.Retry(b, "ann")},
	} {
		if err := r.Decide(t.Context(), "r", list...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)); len(res.Interruptions) != 2 {
		t.Errorf("%d interruptions are left of 2", len(res.Interruptions))
	}
	if err := r.Decide(t.Context(), "r", pawl.Approve(a, "ann"), pawl.Approve(a, "bob"), pawl.Approve(b, "ann")); err != nil {
		t.Fatal(err)
	}
	if res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)); res.FinalOutput != "done" {
		t.Errorf("%+v", res)
	}
	if err := r.Decide(t.Context(), "r", pawl.Reject(a, "zoe", "")); !errors.Is(err, pawl.ErrDecided) {
		t.Errorf("after the end: %v", err)
	}
}

// Some decisions now, the others later: nothing is sent in between.
func TestPartialDecisions(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":6}`)), says("done"))
		agent := agentWith(m, charging("charge", &e, asking))
		sess := session.NewMemory("s")
		var r pawl.Runner
		res := must(t)(mode.run(&r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Session: sess}))
		for i, want := range []int{1, 0} {
			s := res.State()
			if err := s.Approve(s.Interruptions()[len(s.Interruptions())-1], "ann"); err != nil {
				t.Fatal(err)
			}
			res = must(t)(mode.resume(&r, t.Context(), agent, s, &pawl.RunOptions{Session: sess}))
			if len(res.Interruptions) != want || len(m.calls()) != 1+i {
				t.Errorf("%d interruptions and %d requests after %d decisions", len(res.Interruptions), len(m.calls()), i+1)
			}
			sameViews(t, res, m, sess)
		}
		e.want(t, "charge 6", "charge 5")
		if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 6"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
	})
}

// What is at most MaxParallelTools at a time, in call order whatever the order of ends.
func TestParallelTools(t *testing.T) {
	for limit, want := range map[int]int{0: 6, 1: 1, 2: 2, 100: 6} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				running, most := 0, 0
				var order []string
				var calls []pawl.Item
				var outs []string
				for i := range 6 {
					calls = append(calls, fc(fmt.Sprint("c", i), "work", fmt.Sprintf(`{"cents":%d}`, 6-i)))
					outs = append(outs, fmt.Sprintf("c%d: did %d", i, 6-i))
				}
				m := newScript(calling(calls...), says("done"))
				tool := pawl.NewTool(pawl.Func[charge, string]{Name: "work", Run: func(_ context.Context, c *pawl.Call, in charge) (string, error) {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					time.Sleep(time.Duration(in.Cents) * time.Second)
					mu.Lock()
					defer mu.Unlock()
					running--
					order = append(order, c.ID)
					return fmt.Sprint("did ", in.Cents), nil
				}})
				var r pawl.Runner
				res := must(t)(r.Run(t.Context(), agentWith(m, tool), pawl.UserText("go"), &pawl.RunOptions{MaxParallelTools: limit}))
				if most != want {
					t.Errorf("%d tools ran at once, want %d", most, want)
				}
				if diff := cmp.Diff(outs, outputs(res.NewItems())); diff != "" {
					t.Error(diff)
				}
				if limit == 0 && order[0] != "c5" {
					t.Errorf("the tools ended in the order %q", order)
				}
				sameViews(t, res, m, nil)
			})
		})
	}
}

// A run that is out of turns goes on with more.
func TestMaxTurns(t *testing.T) {
	turn := func(i int) step { return calling(fc(fmt.Sprint("c", i), "look", `{"cents":1}`)) }
	for name, tt := range map[string]struct {
		first, then int
		more        bool
	}{
		"the default":      {0, 20, true},
		"two, then more":   {2, 13, true},
		"two, then none":   {2, -1, true},
		"two, then again":  {2, 0, false},
		"two, then two":    {2, 2, false},
		"two, then fewer":  {2, 1, false},
		"two, then one up": {2, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			var steps []step
			for i := range 12 {
				steps = append(steps, turn(i))
			}
			m := newScript(append(steps, says("done"))...)
			agent := agentWith(m, charging("look", &e, nil))
			var r pawl.Runner
			_, err := r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{MaxTurns: tt.first})
			limit := tt.first
			if limit == 0 {
				limit = pawl.DefaultMaxTurns
			}
			var mt *pawl.MaxTurnsError
			if !errors.As(err, &mt) || mt.MaxTurns != limit || len(m.calls()) != limit {
				t.Fatalf("%v after %d turns", err, len(m.calls()))
			}
			s := stateOf(t, err)
			if s.Status() != pawl.StatusFailed || len(s.Result().NewItems()) != 2*limit {
				t.Errorf("%s with %d items", s.Status(), len(s.Result().NewItems()))
			}
			res, err := r.Resume(t.Context(), agent, s, &pawl.RunOptions{MaxTurns: tt.then})
			if tt.more {
				if must(t)(res, err).FinalOutput != "done" {
					t.Errorf("%+v", res)
				}
				sameViews(t, res, m, nil)
			} else if !errors.As(err, &mt) {
				t.Error(err)
			}
		})
	}
	t.Run("no bound", func(t *testing.T) {
		var e effects
		var steps []step
		for i := range 12 {
			steps = append(steps, turn(i))
		}
		var r pawl.Runner
		res := must(t)(r.Run(t.Context(), agentWith(newScript(append(steps, says("done"))...), charging("look", &e, nil)), pawl.UserText("go"), &pawl.RunOptions{MaxTurns: -1}))
		if res.Turns != 13 {
			t.Errorf("%d turns", res.Turns)
		}
	})
}
