package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/session"
)

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

// unread is a store whose inbox cannot be read for a while.
type unread struct {
	journal.Driver
	from, to time.Time
	looks    *int
}

func (u unread) Inbox(ctx context.Context, run string) ([]journal.Entry, error) {
	if now := time.Now(); now.After(u.from) && now.Before(u.to) {
		*u.looks++
		return nil, errDead
	}
	return u.Driver.Inbox(ctx, run)
}

// A store that cannot be read for a moment does not end what is at work, as long as the claim lives.
func TestInboxFailsBesideATool(t *testing.T) {
	for name, tt := range map[string]struct {
		away time.Duration
		want error
	}{
		"within the lease": {20 * time.Second, nil},
		"for good":         {time.Hour, errDead},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
					run := f.Run
					f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
						time.Sleep(40 * time.Second)
						return run(ctx, c, in)
					}
				}))
				looks, now := 0, time.Now()
				r := &pawl.Runner{Store: unread{journal.NewMemory(), now.Add(time.Second), now.Add(time.Second + tt.away), &looks}}
				_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), nil)
				if !errors.Is(err, tt.want) || looks == 0 || looks > 100 {
					t.Errorf("%v after %d looks", err, looks)
				}
				e.want(t, "charge 5")
			})
		})
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
