package pawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// Cursor is a place between the events of a run: behind the first Event events that its fact
// number Fact tells of. The zero value is before everything. It is a value that may be kept, and
// sent, as JSON.
type Cursor struct {
	Fact  uint64 `json:"fact"`
	Event int    `json:"event,omitempty"`
}

// WatchEvent is an event of a watched run and the place behind it.
type WatchEvent struct {
	Cursor Cursor
	Event  Event
}

// RunFailed says that a run failed. It can be resumed. Only Watch shows it: a stream ends with
// the error instead.
type RunFailed struct{ Err *FailedError }

func (*RunFailed) event() {}

// LostRangeError says that facts of a run that a reader was to see cannot be had: they are not
// in the store, or are not those they were.
type LostRangeError struct {
	// From and Upto are the numbers of the first and the last of them, from 1.
	From, Upto uint64
	// Err is ErrConflict, or why the first cannot be read.
	Err error
}

// Error names the range.
func (e *LostRangeError) Error() string {
	return fmt.Sprintf("pawl: facts %d to %d of the run cannot be read: %s", e.From, e.Upto, bare(e.Err))
}

// Unwrap returns the cause.
func (e *LostRangeError) Unwrap() error { return e.Err }

// Watch shows what is recorded of a run, from a cursor on, whoever drives it in whatever
// process: the events that Stream shows of the same facts. There is nothing in it that is not
// recorded, so no Delta, no RawModelEvent and no Reset. It changes nothing and needs no agent;
// one that this Runner does not know has only its Key.
//
// While the run goes on, waits or has failed, Watch waits for more: each time the run comes to
// wait it shows Paused, each time it fails RunFailed. It ends behind Done, or with the error of a
// run that was cancelled, or when ctx ends, with that error, or when the reader leaves. What the
// store cannot give is a *LostRangeError: nothing is skipped. ErrUnknownRun if there is no such
// run. Errors are *RunError.
func (r *Runner) Watch(ctx context.Context, run string, from Cursor) iter.Seq2[WatchEvent, error] {
	return func(yield func(WatchEvent, error) bool) {
		if err := r.checkStore(); err != nil {
			yield(WatchEvent{}, err)
			return
		}
		f := r.newFollower(ctx, run, from, func(ev WatchEvent) bool { return yield(ev, nil) })
		if err := f.follow(); err != nil && !f.gone {
			if _, ok := errors.AsType[*RunError](err); !ok {
				err = &RunError{Run: run, Err: err}
			}
			yield(WatchEvent{}, err)
		}
	}
}

// follower reads a ledger as it grows.
type follower struct {
	r     *Runner
	ctx   context.Context
	run   string
	from  Cursor
	m     *machine.Machine
	yield func(WatchEvent) bool
	gone  bool // the reader left
	// agentOf finds an agent of a run with the agent root.
	agentOf func(root, key string) *Agent

	records ledger
	last    [32]byte // hash of the last record
	at      Cursor   // behind what was shown or passed over
	failure *journal.Failed
}

func (r *Runner) newFollower(ctx context.Context, run string, from Cursor, yield func(WatchEvent) bool) *follower {
	f := &follower{r: r, ctx: ctx, run: run, from: from, m: machine.New(), agentOf: r.lookUp}
	f.yield = func(ev WatchEvent) bool {
		f.gone = f.gone || !yield(ev)
		return !f.gone
	}
	return f
}

// How often a follower reads the store when nothing tells it that something was recorded.
const (
	followPause    = 50 * time.Millisecond
	maxFollowPause = time.Second
)

func (f *follower) follow() error {
	rung, leave := f.r.bells.listen(f.run)
	defer leave()
	pause := followPause
	for {
		some, err := f.read()
		if err != nil || f.gone {
			return err
		}
		if some {
			pause = followPause
			if over, err := f.status(); over || err != nil {
				return err
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-rung:
		case <-timer.C:
			pause = min(2*pause, maxFollowPause)
		case <-f.ctx.Done():
		}
		timer.Stop()
		if f.ctx.Err() != nil {
			return fmt.Errorf("%w: %w", f.ctx.Err(), context.Cause(f.ctx))
		}
	}
}

// read shows what was recorded since it was called last, and reports whether there was
// anything. The last record is read again: a store that lost it has another past by now.
func (f *follower) read() (bool, error) {
	size := uint64(f.records.size)
	recs, err := f.r.store().Read(f.ctx, f.run, max(size, 1)-1)
	if err != nil {
		return false, err
	}
	switch {
	case size > 0 && (len(recs) == 0 || recs[0].Hash != f.last):
		return false, &LostRangeError{From: size, Upto: size, Err: ErrConflict}
	case size > 0:
		recs = recs[1:]
	case len(recs) == 0:
		return false, ErrUnknownRun
	case f.from.Fact > uint64(len(recs)):
		return false, &LostRangeError{From: uint64(len(recs)) + 1, Upto: f.from.Fact, Err: ErrConflict}
	}
	if len(recs) == 0 {
		return false, nil
	}
	for i := range recs {
		if err := f.fact(&recs[i]); err != nil || f.gone {
			return false, err
		}
	}
	f.last = recs[len(recs)-1].Hash
	return true, nil
}

// fact folds a record and shows what it tells of.
func (f *follower) fact(rec *journal.Record) error {
	n := uint64(f.records.size) + 1
	fact, err := journal.Decode(*rec)
	if err == nil {
		err = f.m.Replay(fact)
	}
	if err != nil {
		return &LostRangeError{From: n, Upto: n, Err: err}
	}
	f.records.add([]journal.Record{*rec})
	f.at = Cursor{Fact: n}
	show := func(ev Event) {
		f.at.Event++
		if !f.passes(f.at) {
			f.yield(WatchEvent{Cursor: f.at, Event: ev})
		}
	}
	if s, ok := fact.Body.(*journal.Started); ok && fact.Frame == "" {
		show(&RunStarted{Run: s.Run})
		show(&AgentUpdated{Agent: f.agent(s.Agent)})
	}
	showFact(f.m, fact, func(m *machine.Frame, key string) *Agent { return f.agentOf(m.Started().Agent, key) }, show)
	if failure := f.m.Failure(); failure != f.failure {
		if f.failure = failure; failure != nil {
			show(&RunFailed{Err: &FailedError{Code: failure.Code, Text: failure.Error}})
		}
	}
	return nil
}

// passes says that the reader has seen the event that ends at a place.
func (f *follower) passes(at Cursor) bool {
	return f.gone || at.Fact < f.from.Fact || at.Fact == f.from.Fact && at.Event <= f.from.Event
}

func (f *follower) agent(key string) *Agent { return f.agentOf(f.m.Started().Agent, key) }

// status shows that the run waits, or has ended, after which nothing is to be seen.
func (f *follower) status() (over bool, err error) {
	status := f.m.Status()
	if status != machine.Waiting && f.m.Finished() == nil {
		return false, nil
	}
	s := newState(f.records, nil)
	res := newResult(f.m, s, f.agent(f.m.Agent()))
	if err := endError(f.m, s); err != nil {
		return true, err
	}
	if status == machine.Waiting {
		f.yield(WatchEvent{Cursor: f.at, Event: &Paused{State: res.State(), Interruptions: res.Interruptions, Result: res}})
		return f.gone, nil
	}
	f.yield(WatchEvent{Cursor: f.at, Event: &Done{Result: res}})
	return true, nil
}

// bells tell those who watch runs in this process that something was recorded.
type bells struct {
	listening atomic.Int32
	mu        sync.Mutex
	of        map[string]map[chan struct{}]bool
}

// listen returns what is sent to when something is recorded of a run, until leave is called.
func (b *bells) listen(run string) (rung <-chan struct{}, leave func()) {
	b.listening.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[string]map[chan struct{}]bool)
	}
	if b.of[run] == nil {
		b.of[run] = make(map[chan struct{}]bool)
	}
	bell := make(chan struct{}, 1)
	b.of[run][bell] = true
	return bell, func() {
		b.listening.Add(-1)
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.of[run], bell); len(b.of[run]) == 0 {
			delete(b.of, run)
		}
	}
}

func (b *bells) ring(run string) {
	if b.listening.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for bell := range b.of[run] {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}
