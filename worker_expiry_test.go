package pawl_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// expiring starts runs that wait for an approval: one that is rejected in an hour, one that fails
// then, one that waits for ever.
func expiring(t *testing.T, store journal.Driver, e *effects) *pawl.Runner {
	t.Helper()
	agent := payer("support", e, nil)
	r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
	for run, change := range map[string]func(*pawl.Func[charge, string]){
		"rejects": func(f *pawl.Func[charge, string]) { f.Expires = time.Hour },
		"fails":   func(f *pawl.Func[charge, string]) { f.Expires, f.OnExpiry = time.Hour, pawl.ExpiryFails },
		"waits":   func(f *pawl.Func[charge, string]) {},
	} {
		must(t)(r.Run(t.Context(), payer("support", e, func(f *pawl.Func[charge, string]) { asking(f); change(f) }), pawl.UserText("pay"), &pawl.RunOptions{ID: run}))
	}
	return r
}

// expired fails unless what was told is the two runs whose time came, each once.
func (r *told) expired(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	rejects, fails := r.runs["rejects"], r.runs["fails"]
	if len(r.runs) != 2 || len(rejects) != 1 || len(fails) != 1 {
		t.Fatalf("told of %v", r.runs)
	}
	if res := rejects[0].Result; rejects[0].Err != nil || res.FinalOutput != "done" {
		t.Errorf("%+v, %v", res, rejects[0].Err)
	} else if out := outputs(res.NewItems()); !slices.Equal(out, []string{"c1: Tool execution was not approved: the approval expired, nobody decided in time."}) {
		t.Errorf("outputs %q", out)
	}
	if !errors.Is(fails[0].Err, pawl.ErrApprovalExpired) {
		t.Errorf("error %v", fails[0].Err)
	}
}

// A waiting run is taken up when the deadline of its approval has passed, and not before.
func TestRecoverAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		r := expiring(t, journal.NewMemory(), &e)
		time.Sleep(time.Hour - time.Second)
		var before, after, again told
		if err := r.Recover(t.Context(), &pawl.RecoverOptions{Each: before.each}); err != nil || len(before.runs) != 0 {
			t.Errorf("before the deadline: %v, %v", before.runs, err)
		}
		time.Sleep(time.Second)
		if err := r.Recover(t.Context(), &pawl.RecoverOptions{Each: after.each}); !errors.Is(err, pawl.ErrApprovalExpired) {
			t.Errorf("after it: %v", err)
		}
		after.expired(t)
		if err := r.Recover(t.Context(), &pawl.RecoverOptions{Each: again.each}); err != nil || len(again.runs) != 0 {
			t.Errorf("once more: %v, %v", again.runs, err)
		}
		e.want(t)
	})
}

// A worker takes them up at its first look after the deadline. Until then no ledger is read,
// because whoever left the runs said when they are due [S9.24].
func TestWorkAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		store := &reading{Driver: journal.NewMemory(), reads: map[string]int{}}
		r := expiring(t, store.Driver, &e)
		r.Store = store
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var runs told
		done := make(chan error)
		go func() {
			done <- r.Work(ctx, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: runs.each}})
		}()
		time.Sleep(time.Hour - time.Second)
		runs.want(t, map[string]string{})
		store.mu.Lock()
		if diff := cmp.Diff(map[string]int{}, store.reads); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
		store.mu.Unlock()
		time.Sleep(pawl.DefaultPoll + 2*time.Second)
		runs.expired(t)
		time.Sleep(time.Hour)
		runs.expired(t)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		e.want(t)
	})
}
