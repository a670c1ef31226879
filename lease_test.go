package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// sleepwalker is a store whose renewals hang, as in a process that is stopped.
type sleepwalker struct {
	journal.Driver
	renew func(ctx context.Context, d journal.Driver, run string, epoch uint64, ttl time.Duration) error
}

func (f sleepwalker) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	return f.renew(ctx, f.Driver, run, epoch, ttl)
}

// The lease is renewed for as long as a tool takes.
func TestLeaseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		agent := twoTools(func(string) { time.Sleep(9 * time.Minute) })
		go func() {
			for range 500 {
				time.Sleep(time.Second)
				other := pawl.Runner{Store: store}
				if _, err := other.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrClaimed) {
					t.Error(err)
				}
			}
		}()
		r := pawl.Runner{Store: store, Lease: time.Second}
		if res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})); res.FinalOutput != "done" {
			t.Errorf("result %+v", res)
		}
	})
}

// A driver that cannot renew its lease stops before it runs out: its tools are cancelled
// and their outcomes recorded.
func TestLeaseCannotBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("store down")
		store := journal.NewMemory()
		ill := sleepwalker{store, func(context.Context, journal.Driver, string, uint64, time.Duration) error { return down }}
		var e effects
		tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(ctx context.Context, _ *pawl.Call, in charge) (string, error) {
				e.add("charge %d", in.Cents)
				<-ctx.Done()
				return "receipt", nil
			}
		})
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
		agent := agentWith(m, tool)
		r := pawl.Runner{Store: ill, Lease: 9 * time.Second}
		start := time.Now()
		_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		if waited := time.Since(start); !errors.Is(err, down) || waited > 9*time.Second {
			t.Errorf("%v after %v", err, waited)
		}
		well := pawl.Runner{Store: store}
		res := must(t)(well.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		if diff := cmp.Diff([]string{"c1: receipt"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
		e.want(t, "charge 5")
	})
}

// A driver whose process slept through its lease is fenced off: what it does then is
// refused, nobody repeats its call before its time, and what it knows may settle the call.
func TestZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		asleep := make(chan struct{})
		sleepy := sleepwalker{store, func(ctx context.Context, d journal.Driver, run string, epoch uint64, ttl time.Duration) error {
			<-asleep
			return d.Renew(ctx, run, epoch, ttl)
		}}
		var e effects
		tool := func(sleep time.Duration) pawl.Tool {
			return charging("charge", &e, func(f *pawl.Func[charge, string]) {
				f.Timeout = 5 * time.Minute
				f.Run = func(_ context.Context, _ *pawl.Call, in charge) (string, error) {
					time.Sleep(sleep)
					e.add("charge %d", in.Cents)
					return "receipt", nil
				}
			})
		}
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
		start := time.Now()
		zombie := make(chan error)
		go func() {
			r := pawl.Runner{Store: sleepy, Lease: 9 * time.Second}
			_, err := r.Run(t.Context(), agentWith(m, tool(time.Minute)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			zombie <- err
		}()
		time.Sleep(30 * time.Second)
		r := pawl.Runner{Store: store}
		agent := agentWith(m, tool(0))
		res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		if !res.Waiting() || res.Interruptions[0].Kind != pawl.InDoubt {
			t.Fatalf("the heir: %+v", res)
		}
		in := res.Interruptions[0]
		if want := start.Add(5*time.Minute + 2*time.Second); !in.NotBefore.Equal(want) {
			t.Errorf("to be decided %v after the start, want %v", in.NotBefore.Sub(start), want.Sub(start))
		}
		for _, d := range []pawl.Decision{pawl.Settle(in.ID, "ann", "x"), pawl.Retry(in.ID, "ann"), pawl.GiveUp(in.ID, "ann")} {
			if err := r.Decide(t.Context(), "r", d); !errors.Is(err, pawl.ErrCallInFlight) {
				t.Errorf("%s too early: %v", d.Verdict, err)
			}
			s := res.State()
			if err := s.Decide(d); !errors.Is(err, pawl.ErrCallInFlight) {
				t.Errorf("%s staged too early: %v", d.Verdict, err)
			}
		}
		time.Sleep(28 * time.Second) // the body ends within the grace
		close(asleep)
		err := <-zombie
		if !errors.Is(err, pawl.ErrFenced) {
			t.Fatalf("the zombie: %v", err)
		}
		e.want(t, "charge 5")
		// What the zombie did came through the inbox, and nobody has to be asked any more.
		if s := replays(t, &r, "r"); len(s.Interruptions()) != 0 {
			t.Errorf("the zombie's outcome is not in the ledger: %s", s.Status())
		}
		// The state of the error knows what became of the call.
		res = must(t)(r.Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
		if diff := cmp.Diff([]string{"c1: receipt"}, outputs(res.NewItems())); diff != "" || res.FinalOutput != "done" {
			t.Errorf("%+v %s", res, diff)
		}
		e.want(t, "charge 5")
		replays(t, &r, "r")
	})
}

// A store that fails while a body that ignores its context goes on: the claim stays until
// it runs out, and then the body's time counts.
func TestStubbornBodyAndFailingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		dead := &deadEnd{Driver: store}
		var e effects
		ctx, cancel := context.WithCancel(t.Context())
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
				dead.dead.Store(true)
				cancel()
				time.Sleep(time.Minute)
				e.add("charge")
				return "", nil
			}
		}))
		r := pawl.Runner{Store: dead}
		_, err := r.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		well := pawl.Runner{Store: store}
		if _, err := well.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrClaimed) {
			t.Errorf("at once: %v", err)
		}
		time.Sleep(pawl.DefaultLease)
		res := must(t)(well.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		if !res.Waiting() || res.Interruptions[0].NotBefore.IsZero() {
			t.Errorf("result %+v", res)
		}
		time.Sleep(time.Minute)
		e.want(t, "charge")
	})
}

// deadEnd is a store that takes nothing any more once it is dead.
type deadEnd struct {
	journal.Driver
	dead atomic.Bool
}

var errDead = errors.New("the disk is gone")

func (d *deadEnd) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if d.dead.Load() {
		return errDead
	}
	return d.Driver.Append(ctx, run, epoch, after, recs, with...)
}

func (d *deadEnd) Post(ctx context.Context, run string, e journal.Entry) error {
	if d.dead.Load() {
		return errDead
	}
	return d.Driver.Post(ctx, run, e)
}

// A lease shorter than a driver needs is taken as one that it can keep.
func TestTinyLease(t *testing.T) {
	for _, lease := range []time.Duration{1, time.Microsecond} {
		r := pawl.Runner{Lease: lease}
		if res := must(t)(r.Run(t.Context(), twoTools(func(string) {}), pawl.UserText("pay"), nil)); res.FinalOutput != "done" {
			t.Errorf("lease %v: %+v", lease, res)
		}
	}
}

// A call behind a lease that ran out is not started before the lease is renewed.
func TestLeaseRanOutBeforeTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asleep := make(chan struct{})
		store := sleepwalker{journal.NewMemory(), func(ctx context.Context, d journal.Driver, run string, epoch uint64, ttl time.Duration) error {
			<-asleep
			return d.Renew(ctx, run, epoch, ttl)
		}}
		var keys []string
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), pawl.NewTool(pawl.Func[charge, string]{Name: "charge",
			Approve: func(context.Context, *pawl.Call, charge) (pawl.Gate, error) {
				time.Sleep(20 * time.Second) // the lease runs out
				close(asleep)
				return pawl.Allow, nil
			},
			Run: func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
				keys = append(keys, fmt.Sprint(c.Attempt))
				return "", nil
			}}))
		r := pawl.Runner{Store: store, Lease: 9 * time.Second}
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
		if res.FinalOutput != "done" || strings.Join(keys, " ") != "1" {
			t.Errorf("%q, attempts %q", res.FinalOutput, keys)
		}
	})
}
