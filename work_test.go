package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// works runs a worker until the test, or stop, ends it.
func works(t *testing.T, r *pawl.Runner, opts *pawl.WorkOptions) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx, opts) }()
	return sync.OnceFunc(func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func submit(t *testing.T, r *pawl.Runner, agent *pawl.Agent, opts pawl.RunOptions) {
	t.Helper()
	if run, err := r.Submit(t.Context(), agent, pawl.UserText("hi"), &opts); err != nil || run != opts.ID {
		t.Fatalf("Submit(%s) = %q, %v", opts.ID, run, err)
	}
}

// slow is a model that answers after a time, and notes when it was asked.
type slow struct {
	takes time.Duration
	mu    sync.Mutex
	asked []string
	most  int
	now   int
}

func (*slow) Info() model.Info { return model.Info{} }

func (m *slow) Call(ctx context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	items := req.Input.Items()
	said, err := items[len(items)-1].Message()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.asked = append(m.asked, said.Text())
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.now--
		m.mu.Unlock()
	}()
	select {
	case <-time.After(m.takes):
		return &model.Response{Items: []pawl.Item{item.MessageItem("", "done")}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// started returns which runs began, in order: each says its own name.
func (m *slow) started() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

func (m *slow) wants(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, m.started()); diff != "" {
		t.Errorf("begun (-want +got):\n%s", diff)
	}
}

// enqueue submits a run that says its own name.
func enqueue(t *testing.T, r *pawl.Runner, run string, opts pawl.RunOptions) {
	t.Helper()
	opts.ID = run
	if _, err := r.Submit(t.Context(), r.Agents[0], pawl.UserText(run), &opts); err != nil {
		t.Fatal(err)
	}
}

// What is submitted is recorded, once, and driven by a worker [S22.1].
func TestSubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		agent := agentWith(&slow{})
		agent.Name = "clerk"
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
		opts := pawl.RunOptions{ID: "r", Queue: "acme", Priority: 3}
		for range 2 {
			submit(t, r, agent, opts)
		}
		if _, err := r.Submit(t.Context(), agent, pawl.UserText("another"), &opts); !errors.Is(err, pawl.ErrRunExists) {
			t.Errorf("the id with another input: %v", err)
		}
		infos, err := store.List(t.Context(), journal.Query{Due: true})
		if err != nil || len(infos) != 1 || infos[0].Head != 1 || infos[0].Agent != "clerk" || infos[0].Queue != "acme" || infos[0].Priority != 3 || infos[0].Holder != nil {
			t.Errorf("due are %+v, %v", infos, err)
		}
		run, err := r.Submit(t.Context(), agent, pawl.UserText("hi"), nil)
		if err != nil || run == "" {
			t.Errorf("without an id: %q, %v", run, err)
		}
		var runs told
		stop := works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: runs.each}})
		time.Sleep(time.Second)
		stop()
		runs.want(t, map[string]string{"r": "finished", run: "finished"})
		submit(t, r, agent, opts)
		if res := must(t)(r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})); res.FinalOutput != "done" {
			t.Errorf("attached to: %+v", res)
		}
	})
}

// What is wrong is found when it is submitted.
func TestSubmitMistakes(t *testing.T) {
	r := &pawl.Runner{Store: unwritten{journal.NewMemory()}}
	agent := agentWith(&slow{})
	for want, err := range map[string]error{
		"pawl: RunOptions.Queue: is not valid UTF-8":                                errorOf(r.Submit(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{Queue: "\xff"})),
		"pawl: RunOptions.StartAt: is for Submit: a run that is driven has begun":   errorOf(r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{StartAt: time.Unix(1, 0)})),
		"pawl: WorkOptions.MaxPerQueue: is negative":                                r.Work(t.Context(), &pawl.WorkOptions{MaxPerQueue: -1}),
		"pawl: WorkOptions.Queues: is empty, and not nil: no run would be taken up": r.Work(t.Context(), &pawl.WorkOptions{Queues: []string{}}),
		"pawl: WorkOptions.Drain: is negative":                                      r.Work(t.Context(), &pawl.WorkOptions{Drain: -1}),
		"pawl: RecoverOptions.Parallel: is negative":                                r.Work(t.Context(), &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Parallel: -1}}),
		"pawl: Runner.Lease: is negative":                                           errorOf((&pawl.Runner{Lease: -1}).Submit(t.Context(), agent, pawl.UserText("hi"), nil)),
	} {
		if _, ok := errors.AsType[*pawl.ConfigError](err); !ok || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := r.Submit(t.Context(), nil, pawl.UserText("hi"), nil); err == nil {
		t.Error("no agent is no mistake")
	}
	if _, err := r.Submit(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, errDead) {
		t.Errorf("the store's error: %v", err)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// unwritten is a store that takes nothing.
type unwritten struct{ journal.Driver }

func (unwritten) Append(context.Context, string, uint64, uint64, []journal.Record, ...journal.Companion) error {
	return errDead
}

// A queue with many runs does not keep one with few from its turn, however few places there are
// [S22.3].
func TestWorkIsFair(t *testing.T) {
	for _, places := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			m := &slow{takes: time.Second}
			r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agentWith(m)}}
			for i := range 1000 {
				enqueue(t, r, fmt.Sprint("a", i), pawl.RunOptions{Queue: "a"})
				time.Sleep(time.Millisecond)
			}
			for i := range 3 {
				enqueue(t, r, fmt.Sprint("b", i), pawl.RunOptions{Queue: "b"})
				time.Sleep(time.Millisecond)
			}
			stop := works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Parallel: places}})
			time.Sleep(time.Duration(8/places)*time.Second + 500*time.Millisecond)
			stop()
			begun := m.started()
			if places == 1 {
				if diff := cmp.Diff([]string{"a0", "b0", "a1", "b1", "a2", "b2", "a3"}, begun[:7]); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			for _, run := range []string{"b0", "b1", "b2"} {
				if !slices.Contains(begun[:8], run) {
					t.Errorf("%d places: begun are %q", places, begun)
				}
			}
		})
	}
}

// What has a higher priority comes first, then what has been due for longest [S22.3].
func TestWorkByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slow{takes: time.Second}
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agentWith(m)}}
		for _, run := range []struct {
			id       string
			priority int
		}{{"none", 0}, {"low", -1}, {"high", 7}, {"none too", 0}, {"higher", 8}} {
			enqueue(t, r, run.id, pawl.RunOptions{Priority: run.priority})
			time.Sleep(time.Millisecond)
		}
		stop := works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Parallel: 1}})
		time.Sleep(10 * time.Second)
		stop()
		m.wants(t, "higher", "high", "none", "none too", "low")
	})
}

// A run begins when its time has come, with or without entries in its inbox [S22.4].
func TestWorkStartsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slow{}
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agentWith(m)}}
		at := time.Now().Add(time.Hour)
		enqueue(t, r, "later", pawl.RunOptions{StartAt: at})
		enqueue(t, r, "with more", pawl.RunOptions{StartAt: at})
		enqueue(t, r, "cancelled", pawl.RunOptions{StartAt: at})
		enqueue(t, r, "past", pawl.RunOptions{StartAt: time.Now().Add(-time.Hour)})
		var runs told
		stop := works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: runs.each}})
		time.Sleep(time.Minute)
		if err := r.AddInput(t.Context(), "with more", pawl.UserText("more")); err != nil {
			t.Error(err)
		}
		if err := r.Recover(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := r.Cancel(t.Context(), "cancelled", "ann", ""); err != nil {
			t.Error(err)
		}
		time.Sleep(58 * time.Minute)
		runs.want(t, map[string]string{"past": "finished", "cancelled": "cancelled"})
		time.Sleep(2 * time.Minute)
		stop()
		runs.want(t, map[string]string{"past": "finished", "cancelled": "cancelled", "later": "finished", "with more": "finished"})
		if got := m.started(); len(got) != 3 || got[0] != "past" || !slices.Contains(got, "more") {
			t.Errorf("begun: %q", got)
		}
	})
}

// A run that waits takes no place: others are driven meanwhile, and it goes on when it is decided or
// its approval expires [S22.5].
func TestWorkParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		agent := payer("support", &e, func(f *pawl.Func[charge, string]) { asking(f); f.Expires = time.Hour })
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
		for i := range 20 {
			submit(t, r, agent, pawl.RunOptions{ID: fmt.Sprint(i)})
		}
		var runs told
		stop := works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Parallel: 1, Each: runs.each}})
		defer stop()
		time.Sleep(time.Minute)
		want := map[string]string{}
		for i := range 20 {
			want[fmt.Sprint(i)] = "waiting"
		}
		runs.want(t, want)
		if err := r.Decide(t.Context(), "7", pawl.Approve("1.0#0", "ann")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		want["7"] = "waiting, finished"
		runs.want(t, want)
		e.want(t, "charge 5")
		time.Sleep(time.Hour)
		for i := range 20 {
			want[fmt.Sprint(i)] = "waiting, finished"
		}
		runs.want(t, want)
		e.want(t, "charge 5")
	})
}

// A worker has no more runs of a queue, and none of other queues, than it may.
func TestWorkQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slow{takes: time.Second}
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agentWith(m)}}
		for i := range 6 {
			enqueue(t, r, fmt.Sprint("a", i), pawl.RunOptions{Queue: "a"})
			enqueue(t, r, fmt.Sprint("c", i), pawl.RunOptions{Queue: "c"})
		}
		stop := works(t, r, &pawl.WorkOptions{Queues: []string{"a", "b"}, MaxPerQueue: 2})
		time.Sleep(2500 * time.Millisecond)
		stop()
		got := m.started()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"a0", "a1", "a2", "a3", "a4", "a5"}, got); diff != "" || m.most != 2 {
			t.Errorf("%d at a time; begun (-want +got):\n%s", m.most, diff)
		}
	})
}

// When it is to end a worker takes nothing more, lets what it drives go on for a while, and leaves
// the rest to others at once [S22.6].
func TestWorkDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slow{takes: 20 * time.Second}
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agentWith(m)}}
		enqueue(t, r, "first", pawl.RunOptions{})
		var runs told
		stop := works(t, r, &pawl.WorkOptions{Drain: 10 * time.Second, RecoverOptions: pawl.RecoverOptions{Each: runs.each}})
		time.Sleep(15 * time.Second)
		enqueue(t, r, "second", pawl.RunOptions{})
		time.Sleep(2 * time.Second)
		go func() {
			time.Sleep(time.Second)
			enqueue(t, r, "third", pawl.RunOptions{})
		}()
		begun := time.Now()
		stop()
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("it took %v to end", took)
		}
		runs.want(t, map[string]string{"first": "finished", "second": "error: context canceled"})
		m.wants(t, "first", "second")

		var others told
		stop = works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: others.each}})
		time.Sleep(time.Minute)
		stop()
		others.want(t, map[string]string{"second": "finished", "third": "finished"})
		m.wants(t, append([]string{"first", "second"}, m.started()[2:]...)...)
	})
}

// A worker takes over, within a lease, what another one was driving when it died [S22.7].
func TestWorkTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		var e effects
		agent := payer("support", &e, nil)
		dies(t, store, "r", agent, pawl.RunOptions{}, 10*time.Second)
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
		var runs told
		stop := works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: runs.each}})
		time.Sleep(9 * time.Second)
		runs.want(t, map[string]string{})
		time.Sleep(2*time.Second + pawl.DefaultPoll)
		stop()
		runs.want(t, map[string]string{"r": "finished"})
		e.want(t, "charge 5")
	})
}

// A run that failed is left alone, or tried again after a pause that doubles, by whichever worker [S22.8].
func TestWorkRetriesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		start := time.Now()
		agent := agentWith(failsAt(func() {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(start).Round(time.Second))
		}))
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
		submit(t, r, agent, pawl.RunOptions{ID: "r"})
		stop := works(t, r, nil)
		time.Sleep(time.Hour)
		stop()
		if diff := cmp.Diff([]time.Duration{0}, at); diff != "" {
			t.Errorf("left alone (-want +got):\n%s", diff)
		}
		start, at = time.Now(), nil
		agent.Name = "another"
		submit(t, r, agent, pawl.RunOptions{ID: "again"})
		failed := &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Failed: true}}
		one, other := works(t, r, failed), works(t, r, failed)
		time.Sleep(20 * time.Minute)
		one()
		other()
		var pauses []time.Duration
		for i := range at[1:] {
			pauses = append(pauses, at[i+1]-at[i])
		}
		if len(pauses) < 8 || len(pauses) > 14 || !slices.IsSorted(pauses) || pauses[len(pauses)-1] > 5*time.Minute+2*time.Second {
			t.Errorf("tried again after %v", pauses)
		}
	})
}

// failsAt is a model that always fails.
type failsAt func()

func (failsAt) Info() model.Info { return model.Info{} }

func (f failsAt) Call(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) {
	f()
	return nil, errModel
}

// Workers with different agents share a store: each run comes to who knows its agent, also when
// it was decided on [S22.2].
func TestWorkByAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		var e effects
		var all [2]told
		var stops []func()
		for i, name := range []string{"x", "y"} {
			agent := payer(name, &e, asking)
			r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
			for n := range 3 {
				submit(t, r, agent, pawl.RunOptions{ID: fmt.Sprint(name, n)})
			}
			stops = append(stops, works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: all[i].each}}))
		}
		r := &pawl.Runner{Store: store}
		submit(t, r, payer("z", &e, asking), pawl.RunOptions{ID: "z"})
		time.Sleep(5 * time.Second)
		for i, name := range []string{"x", "y"} {
			all[i].want(t, map[string]string{name + "0": "waiting", name + "1": "waiting", name + "2": "waiting"})
			if err := r.Decide(t.Context(), name+"1", pawl.Approve("1.0#0", "ann")); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Second)
			if s := replays(t, r, name+"1"); s.Status() != pawl.StatusFinished {
				t.Errorf("%s1 is %s", name, s.Status())
			}
		}
		if err := r.Cancel(t.Context(), "z", "ann", ""); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if s := replays(t, r, "z"); s.Status() != pawl.StatusCancelled {
			t.Errorf("z is %s", s.Status())
		}
		for _, stop := range stops {
			stop()
		}
	})
}

// A run that waits for its turn keeps its session [S22.1].
func TestSubmitOnASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sess := session.NewMemory("chat")
		agent := agentWith(&slow{})
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}, Sessions: func(string) session.Session { return sess }}
		submit(t, r, agent, pawl.RunOptions{ID: "first", Session: sess, StartAt: time.Now().Add(time.Hour)})
		if err := r.AddInput(t.Context(), "first", pawl.UserText("more")); err != nil {
			t.Error(err)
		}
		_, err := r.Submit(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "second", Session: sess})
		if busy, ok := errors.AsType[*pawl.SessionBusyError](err); !ok || busy.Run != "first" {
			t.Errorf("another one on the session: %v", err)
		}
		if _, err := r.Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{Session: sess}); !errors.Is(err, pawl.ErrSessionBusy) {
			t.Errorf("a run on the session: %v", err)
		}
		must(t)(r.Run(t.Context(), agent, pawl.UserText("now"), &pawl.RunOptions{ID: "third", Session: sess, Supersede: true}))
		if s := replays(t, r, "first"); s.Status() != pawl.StatusCancelled {
			t.Errorf("first is %s", s.Status())
		}
		submit(t, r, agent, pawl.RunOptions{ID: "fourth", Session: sess})
		stop := works(t, r, nil)
		time.Sleep(2 * time.Second)
		stop()
		if s := replays(t, r, "fourth"); s.Status() != pawl.StatusFinished {
			t.Errorf("fourth is %s", s.Status())
		}
	})
}

// A run that waits for the next attempt of a request takes no place meanwhile, and goes on where it
// was, by whichever worker [S22.5].
func TestWorkParksRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &busyUntil{at: time.Now().Add(10 * time.Minute)}
		agent := agentWith(m)
		agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1}}
		r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
		want := map[string]string{}
		for i := range 20 {
			submit(t, r, agent, pawl.RunOptions{ID: fmt.Sprint(i)})
			want[fmt.Sprint(i)] = "finished"
		}
		var runs told
		opts := &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Parallel: 1, Each: runs.each}}
		stop := works(t, r, opts)
		time.Sleep(time.Minute)
		runs.want(t, map[string]string{})
		if n := m.asked(); n != 20 {
			t.Errorf("%d runs asked within a minute", n)
		}
		stop()
		stop = works(t, r, opts)
		time.Sleep(10 * time.Minute)
		stop()
		runs.want(t, want)
		if n := m.asked(); n != 40 {
			t.Errorf("%d requests", n)
		}
	})
}

// busyUntil is a model that is too busy until some time, and says so.
type busyUntil struct {
	at    time.Time
	mu    sync.Mutex
	calls int
}

func (m *busyUntil) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

func (*busyUntil) Info() model.Info { return model.Info{} }

func (m *busyUntil) Call(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if wait := time.Until(m.at); wait > 0 {
		return nil, &model.Error{Status: 429, Retryable: true, RetryAfter: wait, Delivery: model.DeliveryRefused}
	}
	return &model.Response{Items: []pawl.Item{item.MessageItem("", "done")}}, nil
}

// What panics before a run is open is told, and keeps neither the worker nor the run [S22.8].
func TestWorkAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		agent := agentWith(&slow{})
		sess := session.NewMemory("chat")
		r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}, Sessions: func(string) session.Session { return wordless{sess} }}
		submit(t, &pawl.Runner{Store: store}, agent, pawl.RunOptions{ID: "r", Session: sess})
		var got []error
		stop := works(t, r, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Each: func(run pawl.RecoveredRun) { got = append(got, run.Err) }}})
		time.Sleep(2 * time.Second)
		stop()
		if _, ok := errors.AsType[*pawl.PanicError](got[0]); len(got) != 1 || !ok {
			t.Errorf("told of %v", got)
		}
		infos, err := store.List(t.Context(), journal.Query{})
		if err != nil || len(infos) != 1 || infos[0].Holder != nil {
			t.Errorf("the run is held: %+v, %v", infos, err)
		}
	})
}

// wordless is a session that cannot say its id.
type wordless struct{ session.Session }

func (wordless) ID() string { panic("no id") }
