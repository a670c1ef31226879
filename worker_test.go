package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// told collects what a recovery tells.
type told struct {
	mu   sync.Mutex
	runs map[string][]pawl.RecoveredRun
}

func (r *told) each(run pawl.RecoveredRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = map[string][]pawl.RecoveredRun{}
	}
	r.runs[run.Run] = append(r.runs[run.Run], run)
}

// want checks how the runs that were told of were left: a status, or the beginning of an error.
func (r *told) want(t *testing.T, want map[string]string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := map[string]string{}
	for run, list := range r.runs {
		var words []string
		for _, one := range list {
			switch {
			case one.Result != nil:
				words = append(words, string(one.Result.Status))
			default:
				for _, is := range []error{pawl.ErrUnknownAgent, pawl.ErrSessionMissing, pawl.ErrToolChanged, errDead, errModel, context.Canceled} {
					if errors.Is(one.Err, is) {
						words = append(words, "error: "+is.Error())
					}
				}
			}
		}
		got[run] = strings.Join(words, ", ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recovered (-want +got):\n%s", diff)
	}
}

var errModel = errors.New("model down")

// dies runs an agent whose process ends, as far as the store can see, when the tool c1 of the run is
// entered: nothing more reaches the store, and nothing renews or releases the claim.
func dies(t *testing.T, store journal.Driver, run string, agent *pawl.Agent, opts pawl.RunOptions, lease time.Duration) {
	t.Helper()
	dead := &gravestone{Driver: store}
	mortal := *agent
	mortal.Tools = []pawl.Tool{charging("charge", &effects{}, func(f *pawl.Func[charge, string]) {
		f.Effect = pawl.Idempotent
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) { dead.dead.Store(true); return "", nil }
	})}
	opts.ID = run
	r := pawl.Runner{Store: dead, Lease: lease}
	if _, err := r.Run(t.Context(), &mortal, pawl.UserText("pay"), &opts); !errors.Is(err, errDead) {
		t.Fatalf("%s: %v", run, err)
	}
}

// gravestone is a store that its process does not reach any more once it is dead.
type gravestone struct {
	journal.Driver
	dead atomic.Bool
}

func (g *gravestone) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if g.dead.Load() {
		return errDead
	}
	return g.Driver.Append(ctx, run, epoch, after, recs, with...)
}

func (g *gravestone) Post(ctx context.Context, run string, e journal.Entry) error {
	if g.dead.Load() {
		return errDead
	}
	return g.Driver.Post(ctx, run, e)
}

func (g *gravestone) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	if g.dead.Load() {
		return errDead
	}
	return g.Driver.Renew(ctx, run, epoch, ttl)
}

func (g *gravestone) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	if g.dead.Load() {
		return errDead
	}
	return g.Driver.Release(ctx, run, epoch, rest)
}

// payer is an agent of that name whose model calls charge once, and then says "done" as often as
// it is asked.
func payer(name string, e *effects, change func(*pawl.Func[charge, string])) *pawl.Agent {
	a := agentWith(endless{}, charging("charge", e, func(f *pawl.Func[charge, string]) {
		f.Effect = pawl.Idempotent
		if change != nil {
			change(f)
		}
	}))
	a.Name = name
	return a
}

// endless is a model that calls charge, once a run.
type endless struct{}

func (endless) Info() model.Info { return model.Info{} }

func (endless) Call(_ context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	for _, it := range req.Input.Items() {
		if it.Head().Type == item.TypeFunctionCall {
			return &model.Response{Items: []pawl.Item{item.MessageItem("", "done")}}, nil
		}
	}
	return &model.Response{Items: []pawl.Item{fc("c1", "charge", `{"cents":5}`)}}, nil
}

// Recover drives on what lost its owner, and nothing else.
func TestRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		var e effects
		agent := payer("support", &e, nil)
		sess := session.NewMemory("chat")
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}, Sessions: func(id string) session.Session {
			if id == "chat" {
				return sess
			}
			return nil
		}}
		dies(t, store, "crashed", agent, pawl.RunOptions{}, 0)
		dies(t, store, "crashed on a session", agent, pawl.RunOptions{Session: sess}, 0)
		dies(t, store, "of another agent", payer("another", &e, nil), pawl.RunOptions{}, 0)
		dies(t, store, "of a lost session", agent, pawl.RunOptions{Session: session.NewMemory("lost")}, 0)
		waits := payer("support", &e, asking)
		for _, run := range []string{"waiting", "decided", "cancelled", "cancelled, of another agent"} {
			a := *waits
			if strings.HasSuffix(run, "agent") {
				a.Name = "another"
			}
			must(t)(r.Run(t.Context(), &a, pawl.UserText("pay"), &pawl.RunOptions{ID: run}))
		}
		if err := r.Decide(t.Context(), "decided", pawl.Approve("1.0#0", "ann")); err != nil {
			t.Fatal(err)
		}
		for _, run := range []string{"cancelled", "cancelled, of another agent"} {
			if err := r.Cancel(t.Context(), run, "ann", ""); err != nil {
				t.Fatal(err)
			}
		}
		fails := agentWith(newScript(failing(errModel)))
		if _, err := r.Run(t.Context(), fails, pawl.UserText("hi"), &pawl.RunOptions{ID: "failed"}); !errors.Is(err, errModel) {
			t.Fatal(err)
		}
		must(t)(r.Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("hi"), &pawl.RunOptions{ID: "finished"}))

		entered, release := make(chan struct{}), make(chan struct{})
		done := make(chan *pawl.Result)
		go func() {
			other := pawl.Runner{Store: store, Lease: time.Second}
			slow := payer("support", &e, func(f *pawl.Func[charge, string]) {
				f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
					close(entered)
					<-release
					return "slow", nil
				}
			})
			res, _ := other.Run(context.Background(), slow, pawl.UserText("pay"), &pawl.RunOptions{ID: "alive"})
			done <- res
		}()
		<-entered
		facts := func(run string) int { return replays(t, r, run).Facts() }
		before := map[string]int{}
		untouched := []string{"waiting", "failed", "finished", "alive", "of another agent", "of a lost session"}
		for _, run := range untouched {
			before[run] = facts(run)
		}

		var first told
		if err := r.Recover(t.Context(), &pawl.RecoverOptions{Each: first.each}); err != nil && !errors.Is(err, pawl.ErrUnknownAgent) {
			t.Errorf("while the leases last: %v", err)
		}
		finished := map[string]string{"decided": "finished", "cancelled": "cancelled", "cancelled, of another agent": "cancelled"}
		first.want(t, finished)
		e.want(t, "charge 5")

		time.Sleep(pawl.DefaultLease)
		var second told
		err := r.Recover(t.Context(), &pawl.RecoverOptions{Each: second.each})
		if !errors.Is(err, pawl.ErrUnknownAgent) || !errors.Is(err, pawl.ErrSessionMissing) {
			t.Errorf("Recover: %v", err)
		}
		second.want(t, map[string]string{"crashed": "finished", "crashed on a session": "finished",
			"of another agent": "error: " + pawl.ErrUnknownAgent.Error(), "of a lost session": "error: " + pawl.ErrSessionMissing.Error()})
		e.want(t, "charge 5", "charge 5", "charge 5")
		for _, run := range untouched {
			if n := facts(run); n != before[run] {
				t.Errorf("run %q has %d facts, had %d", run, n, before[run])
			}
		}
		holdsItems(t, sess, "pay", "call c1", "receipt 5", "done")

		var third told
		r.Agents = append(r.Agents, payer("another", &e, nil))
		failed := pawl.Runner{Store: store, Agents: r.Agents, Sessions: r.Sessions}
		err = failed.Recover(t.Context(), &pawl.RecoverOptions{Each: third.each, Failed: true})
		if !errors.Is(err, pawl.ErrSessionMissing) || errors.Is(err, pawl.ErrUnknownAgent) {
			t.Errorf("with the agent, and the failed ones: %v", err)
		}
		third.want(t, map[string]string{"failed": "finished", "of another agent": "finished", "of a lost session": "error: " + pawl.ErrSessionMissing.Error()})
		close(release)
		if res := <-done; res == nil || res.FinalOutput != "done" {
			t.Errorf("the run with an owner: %+v", res)
		}
	})
}

// Recover drives as many runs at a time as it may.
func TestRecoverParallel(t *testing.T) {
	for parallel, want := range map[int]int{0: pawl.DefaultParallel, 1: 1, 3: 3, 100: 10} {
		synctest.Test(t, func(t *testing.T) {
			store := journal.NewMemory()
			var mu sync.Mutex
			now, most := 0, 0
			agent := payer("support", &effects{}, func(f *pawl.Func[charge, string]) {
				f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					now--
					mu.Unlock()
					return "", nil
				}
			})
			for i := range 10 {
				dies(t, store, fmt.Sprint(i), agent, pawl.RunOptions{}, 0)
			}
			time.Sleep(pawl.DefaultLease)
			r := pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
			if err := r.Recover(t.Context(), &pawl.RecoverOptions{Parallel: parallel}); err != nil {
				t.Error(err)
			}
			if most != want {
				t.Errorf("Parallel %d: %d at a time", parallel, most)
			}
			if open, _ := store.List(t.Context(), journal.Query{Open: true}); len(open) > 0 {
				t.Errorf("%d runs are open", len(open))
			}
		})
	}
}

// Two workers of one file never drive one run twice, and bring all to their end.
func TestTwoWorkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	left := openSQLite(t, path)
	const n = 20
	for i := range n {
		dies(t, left, fmt.Sprint(i), payer("support", &effects{}, nil), pawl.RunOptions{}, 50*time.Millisecond)
	}
	var e effects
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var results told
	var wg sync.WaitGroup
	for range 2 {
		r := &pawl.Runner{Store: openSQLite(t, path), Agents: []*pawl.Agent{payer("support", &e, func(f *pawl.Func[charge, string]) {
			run := f.Run
			f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
				e.add("%s", c.Key)
				return run(ctx, c, in)
			}
		})}}
		wg.Go(func() {
			err := r.Work(ctx, &pawl.WorkOptions{Poll: time.Millisecond, RecoverOptions: pawl.RecoverOptions{Each: func(run pawl.RecoveredRun) {
				results.each(run)
				results.mu.Lock()
				defer results.mu.Unlock()
				if len(results.runs) == n {
					stop()
				}
			}}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	want := map[string]string{}
	for i := range n {
		want[fmt.Sprint(i)] = "finished"
	}
	results.want(t, want)
	seen := map[string]int{}
	for _, effect := range e.list {
		seen[effect]++
	}
	delete(seen, "charge 5")
	if len(seen) != n || slices.Max(slices.Collect(maps.Values(seen))) != 1 {
		t.Errorf("effects by key: %v", seen)
	}
}

// A worker takes up what comes in: a decision, an expired lease. It does not take over a run
// whose lease is renewed, however long its tool takes, and does not read a parked run.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &reading{Driver: journal.NewMemory(), reads: map[string]int{}}
		var e effects
		agent := payer("support", &e, nil)
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
		must(t)(r.Run(t.Context(), payer("support", &e, asking), pawl.UserText("pay"), &pawl.RunOptions{ID: "parked"}))
		must(t)(r.Run(t.Context(), payer("support", &e, asking), pawl.UserText("pay"), &pawl.RunOptions{ID: "to be decided"}))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var runs told
		done := make(chan error)
		go func() {
			done <- r.Work(ctx, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: runs.each}})
		}()
		go func() {
			slow := payer("support", &e, func(f *pawl.Func[charge, string]) {
				f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
					time.Sleep(8 * time.Minute)
					return "slow", nil
				}
			})
			other := pawl.Runner{Store: store.Driver}
			if res, err := other.Run(ctx, slow, pawl.UserText("pay"), &pawl.RunOptions{ID: "slow"}); err != nil || res.FinalOutput != "done" {
				t.Errorf("the run with an owner: %+v, %v", res, err)
			}
		}()
		time.Sleep(time.Minute)
		runs.want(t, map[string]string{})
		store.mu.Lock()
		for run, n := range store.reads {
			if run != "slow" {
				t.Errorf("the ledger of %q was read %d times", run, n)
			}
		}
		store.mu.Unlock()
		if err := r.Decide(t.Context(), "to be decided", pawl.Approve("1.0#0", "ann")); err != nil {
			t.Fatal(err)
		}
		dies(t, store.Driver, "crashed", agent, pawl.RunOptions{}, 0)
		time.Sleep(pawl.DefaultPoll + time.Second)
		runs.want(t, map[string]string{"to be decided": "finished"})
		time.Sleep(10 * time.Minute)
		runs.want(t, map[string]string{"to be decided": "finished", "crashed": "finished"})
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// reading counts the reads of each ledger.
type reading struct {
	journal.Driver
	mu    sync.Mutex
	reads map[string]int
}

func (r *reading) Read(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
	r.mu.Lock()
	r.reads[run]++
	r.mu.Unlock()
	return r.Driver.Read(ctx, run, after)
}

// A run that cannot be driven is tried again, less and less often, and as soon as something
// happens to it [S22.8].
func TestWorkBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		var e effects
		agent := payer("support", &e, nil)
		dies(t, store, "r", agent, pawl.RunOptions{Session: session.NewMemory("lost")}, 0)
		time.Sleep(pawl.DefaultLease)
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var at []time.Duration
		start := time.Now()
		done := make(chan error)
		go func() {
			done <- r.Work(ctx, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: func(run pawl.RecoveredRun) {
				if !errors.Is(run.Err, pawl.ErrSessionMissing) && run.Result == nil {
					t.Error(run.Err)
				}
				at = append(at, time.Since(start))
			}}})
		}()
		time.Sleep(15*time.Minute + pawl.DefaultPoll/2)
		if err := r.AddInput(t.Context(), "r", pawl.UserText("more")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*pawl.DefaultPoll - time.Millisecond)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		// It died 30 s before; the store is asked every second.
		want := []time.Duration{0, 31 * time.Second, 93 * time.Second, 217 * time.Second, 465 * time.Second, 765 * time.Second, 902 * time.Second}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("tried at (-want +got):\n%s", diff)
		}
	})
}

// A worker that stops leaves what it drives resumable, within the grace; bodies are told to
// end, and what they return is recorded.
func TestWorkStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		entered := make(chan struct{})
		agent := payer("support", &effects{}, func(f *pawl.Func[charge, string]) {
			f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) {
				close(entered)
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				return "receipt", nil
			}
		})
		dies(t, store, "r", agent, pawl.RunOptions{}, 0)
		time.Sleep(pawl.DefaultLease)
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
		done := make(chan error)
		var runs told
		go func() {
			done <- r.Work(ctx, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: runs.each}})
		}()
		<-entered
		stop()
		stopped := time.Now()
		if err := <-done; err != nil || time.Since(stopped) != 3*time.Second {
			t.Errorf("stopped after %v: %v", time.Since(stopped), err)
		}
		runs.want(t, map[string]string{"r": "error: context canceled"})
		res := must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
		if diff := cmp.Diff([]string{"c1: receipt"}, outputs(res.NewItems())); diff != "" || res.FinalOutput != "done" {
			t.Errorf("%q %s", res.FinalOutput, diff)
		}
	})
}

// A process that slept through its lease is fenced off by whoever took its run over: what it
// records then is refused, and its caller is told so.
func TestWorkZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		asleep := make(chan struct{})
		sleepy := sleepwalker{store, func(ctx context.Context, d journal.Driver, run string, epoch uint64, ttl time.Duration) error {
			<-asleep
			return d.Renew(ctx, run, epoch, ttl)
		}}
		zombie := make(chan error)
		go func() {
			r := pawl.Runner{Store: sleepy}
			slow := payer("support", &effects{}, func(f *pawl.Func[charge, string]) {
				f.Run = func(context.Context, *pawl.Call, charge) (string, error) { time.Sleep(time.Minute); return "late", nil }
			})
			_, err := r.Run(t.Context(), slow, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			zombie <- err
		}()
		var e effects
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{payer("support", &e, nil)}}
		time.Sleep(pawl.DefaultLease - time.Second)
		if err := r.Recover(t.Context(), nil); err != nil {
			t.Error(err)
		}
		e.want(t)
		time.Sleep(2 * time.Second)
		if err := r.Recover(t.Context(), nil); err != nil {
			t.Error(err)
		}
		e.want(t, "charge 5")
		close(asleep)
		err := <-zombie
		if _, ok := errors.AsType[*pawl.JournalError](err); !ok || !errors.Is(err, pawl.ErrFenced) {
			t.Errorf("the zombie: %v", err)
		}
		time.Sleep(time.Minute) // its body ends
		res := replays(t, r, "r").Result()
		if diff := cmp.Diff([]string{"c1: receipt 5"}, outputs(res.NewItems())); diff != "" || res.FinalOutput != "done" {
			t.Errorf("%q %s", res.FinalOutput, diff)
		}
		e.want(t, "charge 5")
	})
}

// Options that make no sense are mistakes, and the store's error is the caller's.
func TestRecoverMistakes(t *testing.T) {
	r := &pawl.Runner{Store: unlisted{journal.NewMemory()}}
	for want, err := range map[string]error{
		"pawl: RecoverOptions.Parallel: is negative":    r.Recover(t.Context(), &pawl.RecoverOptions{Parallel: -1}),
		"pawl: WorkOptions.Poll: is negative":           r.Work(t.Context(), &pawl.WorkOptions{Poll: -1}),
		"pawl: Runner.Lease: is negative":               (&pawl.Runner{Lease: -1}).Recover(t.Context(), nil),
		"pawl: listing the open runs: the disk is gone": r.Recover(t.Context(), nil),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := r.Work(ctx, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: func(run pawl.RecoveredRun) {
		if run.Run != "" || !errors.Is(run.Err, errDead) {
			t.Errorf("told of %+v", run)
		}
		stop()
	}}})
	if err != nil {
		t.Error(err)
	}
	if err := r.Recover(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

// unlisted is a store that cannot be listed.
type unlisted struct{ journal.Driver }

func (unlisted) List(context.Context, journal.Query) ([]journal.RunInfo, error) { return nil, errDead }
