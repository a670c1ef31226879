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
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// inBody is an agent with one tool whose body calls back.
func inBody(e *effects, body func(), change func(*pawl.Func[charge, string])) *pawl.Agent {
	return agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", e, func(f *pawl.Func[charge, string]) {
		f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
			body()
			e.add("charge %d attempt %d key %s", in.Cents, c.Attempt, c.Key[:9])
			return "receipt", nil
		}
		if change != nil {
			change(f)
		}
	}))
}

// A crash in the middle of a body: what follows depends on what its author declared.
func TestCrashInTool(t *testing.T) {
	key := func(t *testing.T, s *pawl.RunState) string { return s.Interruptions()[0].Key }
	for name, tt := range map[string]struct {
		change func(*pawl.Func[charge, string])
		// decide is nil if nobody is asked.
		decide  func(in pawl.Interruption) pawl.Decision
		out     string
		effects []string
		waits   time.Duration
	}{
		"read only":       {change: func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
		"idempotent":      {change: func(f *pawl.Func[charge, string]) { f.Effect = pawl.Idempotent }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
		"settled":         {decide: func(in pawl.Interruption) pawl.Decision { return pawl.Settle(in.ID, "ann", "was charged") }, out: "c1: was charged"},
		"retried":         {decide: func(in pawl.Interruption) pawl.Decision { return pawl.Retry(in.ID, "ann") }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
		"given up":        {decide: func(in pawl.Interruption) pawl.Decision { return pawl.GiveUp(in.ID, "ann") }, out: "c1: The outcome of this tool call is unknown"},
		"wait":            {change: func(f *pawl.Func[charge, string]) { f.OnUnknown = pawl.UnknownWait }, decide: func(in pawl.Interruption) pawl.Decision { return pawl.GiveUp(in.ID, "ann") }, out: "c1: The outcome of this tool call is unknown"},
		"tell":            {change: func(f *pawl.Func[charge, string]) { f.OnUnknown = pawl.UnknownTell }, out: "c1: The outcome of this tool call is unknown"},
		"tell, idem":      {change: func(f *pawl.Func[charge, string]) { f.OnUnknown, f.Effect = pawl.UnknownTell, pawl.Idempotent }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
		"wait, read only": {change: func(f *pawl.Func[charge, string]) { f.OnUnknown, f.Effect = pawl.UnknownWait, pawl.ReadOnly }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
	} {
		for owner, change := range map[string]func(*journal.Owner){"gone": gone, "elsewhere": elsewhere} {
			t.Run(name+"/"+owner, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ignored effects
					doc := snapshot(t, func(body func()) *pawl.Agent { return inBody(&ignored, body, tt.change) }, &pawl.RunOptions{})
					var e effects
					agent := inBody(&e, func() {}, tt.change)
					agent.Model = newScript(says("done"))
					r := &pawl.Runner{Store: abandoned(t, doc, change)}
					res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
					if res.Waiting() != (tt.decide != nil) {
						t.Fatalf("status %s", res.Status)
					}
					if tt.decide != nil {
						in := res.Interruptions[0]
						if in.Kind != pawl.InDoubt || in.Key != key(t, res.State()) || in.Arguments != `{"cents":5}` {
							t.Errorf("%+v", in)
						}
						d := tt.decide(in)
						if owner == "elsewhere" {
							if err := r.Decide(t.Context(), "r", d); !errors.Is(err, pawl.ErrCallInFlight) {
								t.Errorf("before its time: %v", err)
							}
							time.Sleep(time.Until(in.NotBefore))
						}
						if err := r.Decide(t.Context(), "r", d); err != nil {
							t.Fatal(err)
						}
						res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
					}
					if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], tt.out) {
						t.Errorf("outputs %q, want %q", out, tt.out)
					}
					e.want(t, tt.effects...)
					replays(t, r, "r")
				})
			})
		}
	}
}

// A call in doubt twice is asked about twice, and an old answer does not answer the second.
func TestCrashTwice(t *testing.T) {
	var e effects
	doc := snapshot(t, func(body func()) *pawl.Agent { return inBody(&e, body, nil) }, &pawl.RunOptions{})
	store := abandoned(t, doc, gone)
	r := &pawl.Runner{Store: store}
	agent := inBody(&e, func() {}, nil)
	res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	first := res.Interruptions[0]
	if err := r.Decide(t.Context(), "r", pawl.Retry(first.ID, "ann")); err != nil {
		t.Fatal(err)
	}
	var again []byte
	agent = inBody(&e, func() { again = marshal(t, replays(t, r, "r")) }, nil)
	agent.Model = newScript(says("done"))
	must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	r = &pawl.Runner{Store: abandoned(t, again, gone)}
	res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	second := res.Interruptions[0]
	if second.ID == first.ID || second.Key != first.Key {
		t.Errorf("first %s %s, second %s %s", first.ID, first.Key, second.ID, second.Key)
	}
	if err := r.Decide(t.Context(), "r", pawl.Retry(first.ID, "bob")); err != nil {
		t.Errorf("the first answer again: %v", err)
	}
	if err := r.Decide(t.Context(), "r", pawl.GiveUp(first.ID, "bob")); !errors.Is(err, pawl.ErrDecided) {
		t.Errorf("another answer to the first: %v", err)
	}
	if res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)); !res.Waiting() {
		t.Errorf("%+v", res)
	}
}

// What a body reports as unknown.
func TestUnknownOutcomes(t *testing.T) {
	for name, err := range map[string]error{
		"cancelled":       fmt.Errorf("backend: %w", context.Canceled),
		"deadline":        context.DeadlineExceeded,
		"unknown":         fmt.Errorf("sent, no answer: %w", pawl.ErrOutcomeUnknown),
		"network timeout": fmt.Errorf("dial: %w", timeoutError{}),
	} {
		for on, tells := range map[pawl.OnUnknown]bool{pawl.UnknownDefault: true, pawl.UnknownTell: true, pawl.UnknownWait: false} {
			t.Run(name+"/"+string(on), func(t *testing.T) {
				var e effects
				agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
					f.OnUnknown = on
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", err }
				})
				var r pawl.Runner
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
				if res.Waiting() == tells {
					t.Fatalf("%+v", res)
				}
				if !tells {
					in := res.Interruptions[0]
					if in.Kind != pawl.InDoubt || !in.NotBefore.IsZero() {
						t.Errorf("%+v", in)
					}
					if err := r.Decide(t.Context(), res.Run, pawl.Settle(in.ID, "ann", "charged")); err != nil {
						t.Fatal(err)
					}
					res = must(t)(r.Resume(t.Context(), agent, pawl.RunID(res.Run), nil))
				}
				out := outputs(res.NewItems())
				if tells && (len(out) != 1 || !strings.Contains(out[0], "unknown") || !strings.Contains(out[0], "pawl_")) || !tells && !slices.Equal(out, []string{"c1: charged"}) {
					t.Errorf("outputs %q", out)
				}
			})
		}
	}
}

type timeoutError struct{}

func (timeoutError) Error() string { return "i/o timeout" }
func (timeoutError) Timeout() bool { return true }

// A harmless call with unknown outcomes runs again, but not for ever.
func TestUnknownHarmless(t *testing.T) {
	var e effects
	agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
		f.Effect = pawl.Idempotent
		f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
			e.add("attempt %d", c.Attempt)
			return "", pawl.ErrOutcomeUnknown
		}
	})
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
	e.want(t, "attempt 1", "attempt 2", "attempt 3")
	if out := outputs(res.NewItems()); len(out) != 1 || !strings.Contains(out[0], "unknown") {
		t.Errorf("outputs %q", out)
	}
}

// A tool that runs into its timeout: the model is told, with the key; what comes late is
// evidence.
func TestToolTimeout(t *testing.T) {
	for name, heeds := range map[string]bool{"heeds its context": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "slow", `{"cents":1}`)), says("done"))
				tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
					f.Timeout = 10 * time.Second
					f.Run = func(ctx context.Context, c *pawl.Call, _ charge) (string, error) {
						deadline, ok := ctx.Deadline()
						if left := time.Until(deadline); !ok || left != 10*time.Second {
							t.Errorf("deadline in %v", left)
						}
						if heeds {
							<-ctx.Done()
							return "", ctx.Err()
						}
						time.Sleep(time.Minute)
						e.add("charged")
						return "late", nil
					}
				})
				slow := charging("slow", &e, func(f *pawl.Func[charge, string]) {
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
						time.Sleep(2 * time.Minute)
						return "slow", nil
					}
				})
				w := &watched{Driver: journal.NewMemory()}
				r := pawl.Runner{Store: w}
				res := must(t)(r.Run(t.Context(), agentWith(m, tool, slow), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
				out := outputs(res.NewItems())
				if len(out) != 2 || !strings.Contains(out[0], "unknown") || !strings.Contains(out[0], "pawl_8cdf") || out[1] != "c2: slow" {
					t.Errorf("outputs %q", out)
				}
				late := w.has(func(b journal.Body) bool {
					s, ok := b.(*journal.Settled)
					return ok && s.Late && s.Outcome == journal.Done
				})
				if late == heeds {
					t.Errorf("late result recorded: %v", late)
				}
				sameViews(t, res, m, nil)
				replays(t, &r, "r")
			})
		})
	}
}

// A body of a harmless call that ends after its second attempt began, without an answer, says
// nothing the run waits for.
func TestLateUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
			f.Effect, f.Timeout = pawl.Idempotent, 10*time.Second
			f.Run = func(ctx context.Context, c *pawl.Call, _ charge) (string, error) {
				if c.Attempt == 1 {
					time.Sleep(12 * time.Second) // past its deadline, and deaf
					return "", ctx.Err()
				}
				time.Sleep(5 * time.Second)
				return "second", nil
			}
		})
		var r pawl.Runner
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
		if diff := cmp.Diff([]string{"c1: second"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
	})
}

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

// Every append of a run gets every reply: the run ends as it should, or stops with an error
// whose state goes on in this process without doing anything twice.
func TestStoreFailsAnywhere(t *testing.T) {
	replies := map[string][]journaltest.Reply{
		"absent once":        {journaltest.Absent},
		"stored once":        {journaltest.Stored},
		"absent, then later": {journaltest.Absent, journaltest.Later},
		"later once":         {journaltest.Later},
		"absent for good":    {journaltest.Absent, journaltest.Absent, journaltest.Absent, journaltest.Absent, journaltest.Absent, journaltest.Absent},
		"later for good":     {journaltest.Later, journaltest.Later, journaltest.Later, journaltest.Later, journaltest.Later, journaltest.Later},
		"absent and stored":  {journaltest.Absent, journaltest.Absent, journaltest.Stored},
	}
	for name, list := range replies {
		for _, via := range []string{"live", "json"} {
			t.Run(name+"/"+via, func(t *testing.T) {
				for n := 1; n < 20; n++ {
					over := false
					synctest.Test(t, func(t *testing.T) { over = storeFails(t, n, list, via) })
					if over || t.Failed() {
						return
					}
				}
				t.Error("the run has no end")
			})
		}
	}
}

// storeFails drives a run whose n-th append and those behind it get the replies; it reports
// whether the run has fewer appends.
func storeFails(t *testing.T, n int, replies []journaltest.Reply, via string) bool {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":1}`)), says("done"), says("done"), says("done"))
	agent := agentWith(m, charging("charge", &e, nil), charging("look", &e, func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly }))
	plan := journaltest.Plan{}
	for i, reply := range replies {
		plan[n+i] = reply
	}
	memory := journal.NewMemory()
	faulty := journaltest.Faulty(memory, plan)
	sess := session.NewMemory("s")
	r := &pawl.Runner{Store: faulty}
	opts := &pawl.RunOptions{ID: "r", Session: sess, MaxParallelTools: 1}
	res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), opts)
	over := faulty.Appends() < n
	if err != nil {
		var je *pawl.JournalError
		if !errors.As(err, &je) || !errors.Is(err, journaltest.ErrLost) || je.Unrecorded == 0 {
			t.Fatalf("append %d: %v", n, err)
		}
		well := &pawl.Runner{Store: memory}
		deliver := func() {
			for i := range plan {
				faulty.Deliver(i)
			}
		}
		if via == "live" {
			deliver() // before the run is claimed again; else behind it
		} else {
			defer func() {
				deliver()
				replays(t, well, "r")
			}()
		}
		var re *pawl.RunError
		errors.As(err, &re)
		if re.State == nil { // it had not begun
			res, err = well.Run(t.Context(), agent, pawl.UserText("pay"), opts)
		} else {
			s := re.State
			if via == "json" {
				s = viaJSON(t, s)
			}
			res, err = well.Resume(t.Context(), agent, s, &pawl.RunOptions{Session: sess})
			if errors.Is(err, pawl.ErrClaimed) {
				t.Fatal(err)
			}
		}
		r = well
	}
	must(t)(res, err)
	if res.Waiting() {
		// The append of an intent was in doubt, so its call is.
		for _, in := range res.Interruptions {
			if err := r.Decide(t.Context(), "r", pawl.Retry(in.ID, "ann")); err != nil {
				t.Fatal(err)
			}
		}
		res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess}))
	}
	if res.FinalOutput != "done" {
		t.Errorf("append %d: %+v", n, res)
	}
	e.want(t, "charge 5", "look 1")
	if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 1"}, outputs(res.NewItems())); diff != "" {
		t.Errorf("append %d: %s", n, diff)
	}
	if n := len(m.calls()); n != 2 {
		t.Errorf("append %d: %d model calls, want 2: an answer was lost", n, n)
	}
	sameViews(t, res, m, sess)
	replays(t, &pawl.Runner{Store: memory}, "r")
	return over
}

// The outcome of an AtMostOnce call is durable the moment it is there, while a sibling
// runs.
func TestOutcomeIsDurableAtOnce(t *testing.T) {
	for _, effect := range []pawl.Effect{pawl.AtMostOnce, pawl.Idempotent} {
		t.Run("effect "+string(effect), func(t *testing.T) {
			w := &watched{Driver: journal.NewMemory()}
			var e effects
			agent := agentWith(newScript(calling(fc("c1", "slow", `{"cents":1}`), fc("c2", "charge", `{"cents":5}`)), says("done")),
				charging("slow", &e, func(f *pawl.Func[charge, string]) {
					f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) {
						for !w.has(func(b journal.Body) bool { s, ok := b.(*journal.Settled); return ok && s.Outcome == journal.Done }) {
							select {
							case <-ctx.Done():
								return "", ctx.Err()
							case <-time.After(time.Millisecond):
							}
						}
						return "saw it", nil
					}
					f.Timeout = time.Minute
				}),
				charging("charge", &e, func(f *pawl.Func[charge, string]) { f.Effect = effect }))
			r := pawl.Runner{Store: w}
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
			if diff := cmp.Diff([]string{"c1: saw it", "c2: receipt 5"}, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
		})
	}
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

// Attempts of a model call are repeated as the settings say, and no others.
func TestModelRetries(t *testing.T) {
	busy := &model.Error{Status: 503, Retryable: true, Delivery: model.DeliveryRefused}
	lost := &model.Error{Retryable: true, Err: errors.New("connection reset")}
	bad := &model.Error{Status: 400, Delivery: model.DeliveryRefused}
	wait := &model.Error{Status: 429, Retryable: true, RetryAfter: time.Minute, Delivery: model.DeliveryRefused}
	for name, tt := range map[string]struct {
		errs  []error
		retry *model.Retry
		opts  pawl.RunOptions
		calls int
		took  time.Duration
		fails bool
	}{
		"no setting":                 {errs: []error{busy}, calls: 1, fails: true},
		"no retries":                 {errs: []error{busy}, retry: &model.Retry{}, calls: 1, fails: true},
		"one":                        {errs: []error{busy}, retry: &model.Retry{MaxRetries: 1}, calls: 2, took: 250 * time.Millisecond},
		"too few":                    {errs: []error{busy, busy}, retry: &model.Retry{MaxRetries: 1}, calls: 2, took: 250 * time.Millisecond, fails: true},
		"growing pauses":             {errs: []error{busy, busy, busy}, retry: &model.Retry{MaxRetries: 3, InitialDelay: time.Second, MaxDelay: 3 * time.Second}, calls: 4, took: 6 * time.Second},
		"as the server asks":         {errs: []error{wait}, retry: &model.Retry{MaxRetries: 1}, calls: 2, took: time.Minute},
		"not worth it":               {errs: []error{bad}, retry: &model.Retry{MaxRetries: 3}, calls: 1, fails: true},
		"not a model's error":        {errs: []error{errors.New("bug")}, retry: &model.Retry{MaxRetries: 3}, calls: 1, fails: true},
		"lost":                       {errs: []error{lost}, retry: &model.Retry{MaxRetries: 1}, calls: 2, took: 250 * time.Millisecond},
		"lost, on a chain":           {errs: []error{lost}, retry: &model.Retry{MaxRetries: 1}, opts: pawl.RunOptions{PreviousResponseID: "resp"}, calls: 2, took: 250 * time.Millisecond},
		"lost, on a conversation":    {errs: []error{lost}, retry: &model.Retry{MaxRetries: 1}, opts: pawl.RunOptions{ConversationID: "conv"}, calls: 1, fails: true},
		"refused, on a conversation": {errs: []error{busy}, retry: &model.Retry{MaxRetries: 1}, opts: pawl.RunOptions{ConversationID: "conv"}, calls: 2, took: 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var steps []step
				for _, err := range tt.errs {
					steps = append(steps, failing(err))
				}
				m := newScript(append(steps, says("done"))...)
				m.info.ServerState = true
				agent := agentWith(m)
				agent.Settings = &pawl.ModelSettings{Retry: tt.retry}
				var r pawl.Runner
				start := time.Now()
				res, err := r.Run(t.Context(), agent, pawl.UserText("hi"), &tt.opts)
				if took := time.Since(start); took != tt.took || len(m.calls()) != tt.calls {
					t.Errorf("%d calls in %v", len(m.calls()), took)
				}
				if tt.fails {
					last := tt.errs[tt.calls-1]
					if !errors.Is(err, last) {
						t.Errorf("%v, want the last attempt's %v", err, last)
					}
					return
				}
				must(t)(res, err)
				if res.FinalOutput != "done" || res.Usage.Requests != int64(tt.calls) || res.Usage.Unreported != int64(tt.calls-1) {
					t.Errorf("%+v", res)
				}
				for _, a := range m.calls() {
					if diff := cmp.Diff(m.calls()[0], a); diff != "" {
						t.Errorf("attempts differ:\n%s", diff)
					}
				}
			})
		})
	}
}

// A timeout of one attempt is an error of its own.
func TestModelTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newScript(hanging(make(chan struct{})), says("done"))
		agent := agentWith(m)
		agent.Settings = &pawl.ModelSettings{Timeout: 10 * time.Second}
		var r pawl.Runner
		_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), nil)
		var te *pawl.TimeoutError
		if !errors.As(err, &te) || !te.Timeout() {
			t.Fatal(err)
		}
		if res := must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil)); res.FinalOutput != "done" {
			t.Errorf("%+v", res)
		}
	})
}

// conversation is a model whose server can be asked what a conversation holds.
type conversation struct {
	*script
	tail []pawl.Item
	err  error
	read int
}

func (c *conversation) ConversationTail(_ context.Context, id string, limit int) ([]pawl.Item, error) {
	if id != "conv" {
		return nil, fmt.Errorf("no conversation %q", id)
	}
	c.read++
	return c.tail[max(0, len(c.tail)-limit):], c.err
}

// A lost answer on a conversation is read back before anything is sent again.
func TestConversationReadBack(t *testing.T) {
	answered := item.MessageItem("msg_1", "from before")
	input, out := item.UserText("more"), item.FunctionOutput("c1", "receipt 5")
	call := item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`)
	final := item.MessageItem("msg_2", "done")
	lost := &model.Error{Err: errors.New("connection reset")}
	for name, tt := range map[string]struct {
		tail []pawl.Item
		err  error
		sent int  // requests with this read back
		fail bool // the read back cannot tell
	}{
		"all of it":           {tail: []pawl.Item{answered, input, call, out, final}, sent: 2},
		"nothing of it":       {tail: []pawl.Item{answered, input, call}, sent: 3},
		"the input only":      {tail: []pawl.Item{answered, input, call, out}, sent: 2, fail: true},
		"another output":      {tail: []pawl.Item{answered, input, call, item.FunctionOutput("c1", "other"), final}, sent: 2, fail: true},
		"foreign items":       {tail: []pawl.Item{answered, input, call, item.UserText("hello?"), out, final}, sent: 2, fail: true},
		"half of a response":  {tail: []pawl.Item{answered, input, call, out, item.ReasoningItem("rs", "hm")}, sent: 2, fail: true},
		"not what was known":  {tail: []pawl.Item{answered}, sent: 2, fail: true},
		"nothing at all":      {tail: nil, sent: 2, fail: true},
		"the read back fails": {err: errors.New("also down"), sent: 2, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := &conversation{script: newScript(response("r1", call), failing(lost), response("r2", final)), tail: tt.tail, err: tt.err}
			m.info.ServerState = true
			agent := agentWith(m, charging("look", &e, nil))
			var r pawl.Runner
			_, err := r.Run(t.Context(), agent, pawl.UserText("more"), &pawl.RunOptions{ID: "r", ConversationID: "conv"})
			if !errors.Is(err, lost) {
				t.Fatal(err)
			}
			res, err := r.Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil)
			if n := len(m.calls()); n != tt.sent || m.read != 1 {
				t.Errorf("%d requests, read back %d times", n, m.read)
			}
			if tt.fail {
				if tt.err == nil && !errors.Is(err, pawl.ErrDeliveryAmbiguous) || tt.err != nil && !errors.Is(err, tt.err) {
					t.Fatal(err)
				}
				// Nobody is sent anything until it can be told.
				m.tail, m.err = []pawl.Item{answered, input, call, out, final}, nil
				res, err = r.Resume(t.Context(), agent, stateOf(t, err), nil)
			}
			must(t)(res, err)
			if res.FinalOutput != "done" {
				t.Errorf("%+v", res)
			}
			e.want(t, "look 5")
			for _, a := range m.calls()[1:] {
				if diff := cmp.Diff([]pawl.Item{out}, a.Input); diff != "" || a.Conversation != "conv" {
					t.Errorf("on %q: %s", a.Conversation, diff)
				}
			}
			replays(t, &r, "r")
		})
	}
}

// A model call that panics may have been processed: on a conversation it is read back.
func TestConversationCallPanics(t *testing.T) {
	input, final := item.UserText("hi"), item.MessageItem("msg_2", "done")
	boom := func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) { panic("boom") }
	m := &conversation{script: newScript(response("r1", item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`)), boom),
		tail: []pawl.Item{input, item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`), item.FunctionOutput("c1", "receipt 5"), final}}
	m.info.ServerState = true
	var e effects
	agent := agentWith(m, charging("look", &e, nil))
	var r pawl.Runner
	_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ConversationID: "conv"})
	var p *pawl.PanicError
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	res := must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil))
	if res.FinalOutput != "done" || m.read != 1 || len(m.calls()) != 2 {
		t.Errorf("%+v after %d requests, read back %d times", res, len(m.calls()), m.read)
	}
}

// Whoever resumes a run that gave up has the retries anew.
func TestModelRetriesAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &model.Error{Status: 503, Retryable: true, Delivery: model.DeliveryRefused}
		m := newScript(failing(busy), failing(busy), failing(busy), says("done"))
		agent := agentWith(m)
		agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1}}
		var r pawl.Runner
		_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), nil)
		if !errors.Is(err, busy) || len(m.calls()) != 2 {
			t.Fatalf("%v after %d calls", err, len(m.calls()))
		}
		start := time.Now()
		res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
		if took := time.Since(start); res.FinalOutput != "done" || took != 250*time.Millisecond || res.Usage.Requests != 4 {
			t.Errorf("%+v after %v", res, took)
		}
	})
}

// A driver that stops while it waits to try again leaves the time to whoever goes on.
func TestModelRetryInterrupted(t *testing.T) {
	for _, how := range []string{"stopped", "cancelled"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait := &model.Error{Status: 429, Retryable: true, RetryAfter: time.Minute, Delivery: model.DeliveryRefused}
				m := newScript(failing(wait), says("done"))
				agent := agentWith(m)
				agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1}}
				var r pawl.Runner
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				time.AfterFunc(20*time.Second, func() {
					if how == "stopped" {
						cancel()
					} else if err := r.Cancel(ctx, "r", "ann", ""); err != nil {
						t.Error(err)
					}
				})
				res, err := r.Run(ctx, agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
				if took := time.Since(start); took != 20*time.Second {
					t.Errorf("it took %v", took)
				}
				if how == "cancelled" {
					if !errors.Is(err, pawl.ErrCancelled) || res.Status != pawl.StatusCancelled || len(m.calls()) != 1 {
						t.Errorf("%+v, %v after %d calls", res, err, len(m.calls()))
					}
					time.Sleep(2 * time.Minute)
					return
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
				if took := time.Since(start); took != time.Minute || res.FinalOutput != "done" {
					t.Errorf("%+v after %v", res, took)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}
