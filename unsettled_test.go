package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// unsettled lists what a store has, a line for each call.
func unsettled(t *testing.T, store journal.Driver, opts *pawl.UnsettledOptions) []string {
	t.Helper()
	var lines []string
	for u, err := range (&pawl.Runner{Store: store}).Unsettled(t.Context(), opts) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s attempt %d %s", u.Run, u.Call, u.CallID, u.Tool, u.Standing, u.Interruption, u.Attempt, u.Why)))
	}
	slices.Sort(lines)
	return lines
}

func wantUnsettled(t *testing.T, what string, store journal.Driver, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, unsettled(t, store, nil)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// saying makes a body that says what an error says.
func saying(err error, change func(*pawl.Func[charge, string])) func(*pawl.Func[charge, string]) {
	return func(f *pawl.Func[charge, string]) {
		f.Effect = pawl.AtMostOnce
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", err }
		if change != nil {
			change(f)
		}
	}
}

// Every way to not know, over the runs of a store; a call that somebody answered is not among them.
func TestUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		r := &pawl.Runner{Store: store}
		var e effects
		lost := fmt.Errorf("no answer: %w", pawl.ErrOutcomeUnknown)
		wait := func(f *pawl.Func[charge, string]) { f.OnUnknown = pawl.UnknownWait }
		start := func(run string, change func(*pawl.Func[charge, string])) {
			t.Helper()
			must(t)(r.Run(t.Context(), payer("support", &e, change), pawl.UserText("pay"), &pawl.RunOptions{ID: run}))
		}
		goOn := func(run string, d pawl.Decision) {
			t.Helper()
			if err := r.Decide(t.Context(), run, d); err != nil {
				t.Fatal(err)
			}
			must(t)(r.Resume(t.Context(), payer("support", &e, saying(lost, wait)), pawl.RunID(run), nil))
		}
		start("done", nil)
		start("failed body", saying(errors.New("no"), nil))
		start("asks", asking)
		start("told", saying(lost, nil))
		start("read only", saying(lost, func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly }))
		start("idempotent", saying(lost, func(f *pawl.Func[charge, string]) { f.Effect = pawl.Idempotent }))
		for _, run := range []string{"doubt", "settled", "given up"} {
			start(run, saying(lost, wait))
		}
		goOn("settled", pawl.Settle("1.0#1", "ann", "paid"))
		giveUp := pawl.GiveUp("1.0#1", "ann")
		giveUp.Why = "the bank is closed"
		goOn("given up", giveUp)
		for _, run := range []string{"pending", "cancelled"} {
			start(run, saying(fmt.Errorf("transfer 881: %w", pawl.ErrPending), nil))
		}
		if err := r.Cancel(t.Context(), "cancelled", "ann", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Resume(t.Context(), payer("support", &e, saying(pawl.ErrPending, nil)), pawl.RunID("cancelled"), nil); !errors.Is(err, pawl.ErrCancelled) {
			t.Fatal(err)
		}
		wantUnsettled(t, "all", store,
			"cancelled 1.0 c1 charge told 1.0#1 attempt 1 transfer 881",
			"doubt 1.0 c1 charge in-doubt 1.0#1 attempt 1 no answer: pawl: the outcome is unknown",
			"given up 1.0 c1 charge told 1.0#2 attempt 1 the bank is closed",
			"idempotent 1.0 c1 charge told 1.0#1 attempt 3 no answer: pawl: the outcome is unknown",
			"pending 1.0 c1 charge external 1.0#1 attempt 1 transfer 881",
			"told 1.0 c1 charge told 1.0#1 attempt 1 no answer: pawl: the outcome is unknown")
		open := []string{"doubt 1.0 c1 charge in-doubt 1.0#1 attempt 1 no answer: pawl: the outcome is unknown", "pending 1.0 c1 charge external 1.0#1 attempt 1 transfer 881"}
		if diff := cmp.Diff(open, unsettled(t, store, &pawl.UnsettledOptions{Open: true})); diff != "" {
			t.Errorf("open (-want +got):\n%s", diff)
		}
	})
}

// What a listing says of a call is what its interruption says.
func TestUnsettledNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := inBody(&effects{}, nil, saying(pawl.ErrPending, asking))
		r := &pawl.Runner{Store: journal.NewMemory()}
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if err := r.Decide(t.Context(), "r", pawl.Edit(res.Interruptions[0].ID, "ann", `{"cents":7}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		begun := time.Now()
		in := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)).Interruptions[0]
		time.Sleep(time.Hour)
		for u, err := range r.Unsettled(t.Context(), nil) {
			want := pawl.Unsettled{Run: "r", Agent: "support", Call: "1.0", Tool: "charge", CallID: "c1", Arguments: `{"cents":7}`, Key: in.Key,
				Attempt: 1, Since: begun, Standing: pawl.StandsExternal, Interruption: in.ID}
			if diff := cmp.Diff(want, u); diff != "" || err != nil || in.Key == "" {
				t.Errorf("%s, %v", diff, err)
			}
			doc, err := json.Marshal(u)
			var back pawl.Unsettled
			if err != nil || json.Unmarshal(doc, &back) != nil || !back.Since.Equal(u.Since) || back.Key != u.Key {
				t.Errorf("%s, %v", doc, err)
			}
		}
	})
}

// A crash leaves doubt as soon as nobody has the run, and not before; what does no harm when
// it is repeated is in no doubt.
func TestUnsettledAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		dead := &gravestone{Driver: store}
		die := func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { dead.dead.Store(true); return "", nil }
		}
		for run, class := range map[string]pawl.Effect{"once": pawl.AtMostOnce, "idempotent": pawl.Idempotent, "read only": pawl.ReadOnly} {
			dead.dead.Store(false)
			agent := payer("support", &effects{}, saying(nil, func(f *pawl.Func[charge, string]) { die(f); f.Effect = class }))
			if _, err := (&pawl.Runner{Store: dead}).Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: run}); !errors.Is(err, errDead) {
				t.Fatal(err)
			}
		}
		wantUnsettled(t, "while the lease lasts", store)
		time.Sleep(pawl.DefaultLease)
		wantUnsettled(t, "after it", store, "once 1.0 c1 charge in-doubt  attempt 1")

		// The far side is asked first; while it cannot be, the call is listed.
		asks := payer("support", &effects{}, saying(nil, func(f *pawl.Func[charge, string]) {
			f.Recover = func(context.Context, *pawl.Call, charge) (pawl.Recovered[string], error) {
				return pawl.Recovered[string]{}, errDead
			}
		}))
		dead.dead.Store(false)
		mortal := *asks
		mortal.Tools = payer("support", &effects{}, saying(nil, func(f *pawl.Func[charge, string]) {
			die(f)
			f.Recover = answers(pawl.Happened, "paid")
		})).Tools
		if _, err := (&pawl.Runner{Store: dead}).Run(t.Context(), &mortal, pawl.UserText("pay"), &pawl.RunOptions{ID: "recover"}); !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		time.Sleep(pawl.DefaultLease)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		r := pawl.Runner{Store: store}
		if res, err := r.Resume(ctx, asks, pawl.RunID("recover"), nil); err == nil && !res.Waiting() {
			t.Fatalf("%+v", res)
		}
		if got := unsettled(t, store, nil); len(got) != 2 || !strings.HasPrefix(got[1], "recover 1.0 c1 charge in-doubt ") {
			t.Errorf("%q", got)
		}
	})
}

// A tool that is interrupted completes two hours later: until then its effect is listed as
// unknown, then it is not, and nothing else changes.
func TestUnsettledUntilTheLateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		var e effects
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":1}`)), calling(fc("c2", "charge", `{"cents":2}`)), says("done")),
			charging("charge", &e, func(f *pawl.Func[charge, string]) {
				f.Timeout = time.Minute
				f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
					e.add("charge %d begins", in.Cents)
					if in.Cents == 1 {
						time.Sleep(2 * time.Hour) // deaf to its context
					}
					return fmt.Sprint("receipt ", in.Cents), nil
				}
			}))
		r := &pawl.Runner{Store: store}
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		out := outputs(res.NewItems())
		if len(out) != 2 || !strings.HasPrefix(out[0], "c1: The outcome of this tool call is unknown") || out[1] != "c2: receipt 2" {
			t.Errorf("outputs %q", out)
		}
		var keys []string
		for u, err := range r.Unsettled(t.Context(), nil) {
			if err != nil || u.CallID != "c1" || u.Standing != pawl.StandsTold || u.Since.After(time.Now().Add(-time.Minute)) || u.Why == "" {
				t.Errorf("%+v, %v", u, err)
			}
			keys = append(keys, u.Key)
		}
		if len(keys) != 1 || !strings.Contains(out[0], keys[0]) {
			t.Errorf("keys %q, the model read %q", keys, out[0])
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		wantUnsettled(t, "after the late result", store)
		if got := lates(t, store); !slices.Equal(got, []string{"t1.0.1 c1: receipt 1"}) {
			t.Errorf("late %q", got)
		}
		if now := outputs(replays(t, r, "r").Result().NewItems()); !slices.Equal(now, out) {
			t.Errorf("outputs %q, were %q", now, out)
		}
		e.want(t, "charge 1 begins", "charge 2 begins")
	})
}

// More runs than are listed at a time, one of them damaged.
func TestUnsettledOverManyRuns(t *testing.T) {
	store := journal.NewMemory()
	r := &pawl.Runner{Store: store}
	lost := payer("support", &effects{}, saying(pawl.ErrOutcomeUnknown, nil))
	const runs = 230
	for i := range runs {
		must(t)(r.Run(t.Context(), lost, pawl.UserText("pay"), &pawl.RunOptions{ID: fmt.Sprint("r", i)}))
	}
	r.Store = illegible{store, "r100"}
	var good, bad []string
	for u, err := range r.Unsettled(t.Context(), nil) {
		if err == nil {
			good = append(good, u.Run)
			continue
		}
		if errors.Is(err, errDead) && strings.Contains(err.Error(), "r100") {
			bad = append(bad, u.Run)
		}
	}
	if !slices.Equal(bad, []string{"r100"}) || len(good) != runs-1 || good[0] != "r229" || good[runs-2] != "r0" {
		t.Errorf("%d runs from %s to %s, unreadable %q", len(good), good[0], good[len(good)-1], bad)
	}
	for range r.Unsettled(t.Context(), nil) {
		break // a reader may leave
	}
}

// illegible is a store with a run that cannot be read.
type illegible struct {
	journal.Driver
	run string
}

func (s illegible) Read(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
	if run == s.run {
		return nil, errDead
	}
	return s.Driver.Read(ctx, run, after)
}

// A listing that cannot go on says so and ends.
func TestUnsettledStops(t *testing.T) {
	store := journal.NewMemory()
	for range 2 {
		must(t)((&pawl.Runner{Store: store}).Run(t.Context(), payer("support", &effects{}, saying(pawl.ErrOutcomeUnknown, nil)), pawl.UserText("pay"), nil))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		store journal.Driver
		ctx   context.Context
		want  error
	}{
		"the store cannot be listed": {unlisted{store}, t.Context(), errDead},
		"ctx has ended":              {store, ended, context.Canceled},
	} {
		n := 0
		for u, err := range (&pawl.Runner{Store: tt.store}).Unsettled(tt.ctx, nil) {
			if n++; n > 1 || u.Run != "" || !errors.Is(err, tt.want) {
				t.Errorf("%s: %d: %+v, %v", name, n, u, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d answers", name, n)
		}
	}
}

// A call that is running is in no doubt, also for a listing that began before its run was taken up.
func TestUnsettledWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		var before, during []string
		var listed []journal.RunInfo
		agent := inBody(&effects{}, func() {
			before, during = unsettled(t, stale{store, listed}, nil), unsettled(t, store, nil)
		}, asking)
		r := &pawl.Runner{Store: store}
		s := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
		var err error
		if listed, err = store.List(t.Context(), journal.Query{}); err != nil || len(listed) != 1 || listed[0].Holder != nil {
			t.Fatal(listed, err)
		}
		if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		if res := must(t)(r.Resume(t.Context(), agent, s, nil)); res.FinalOutput != "done" || len(before)+len(during) != 0 {
			t.Errorf("%+v, listed %q and %q", res, before, during)
		}
	})
}

// stale is a store as it was listed before.
type stale struct {
	journal.Driver
	infos []journal.RunInfo
}

func (s stale) List(context.Context, journal.Query) ([]journal.RunInfo, error) { return s.infos, nil }
