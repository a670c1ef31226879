package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawl-agents/pawl/journal"
)

// Reply is what becomes of an append.
type Reply int

// The replies.
const (
	// Pass leaves the append alone.
	Pass Reply = iota
	// Absent stores nothing and returns ErrLost.
	Absent
	// Stored stores the records, if the driver takes them, and returns ErrLost.
	Stored
	// Later returns ErrLost and stores nothing until Deliver.
	Later
	// Held waits, before anything is stored, for LetGo.
	Held
)

// String names the reply.
func (r Reply) String() string {
	return [...]string{"pass", "absent", "stored", "later", "held"}[r]
}

// Plan is what becomes of the appends of a FaultyDriver, by their number from 1.
// Those it does not name pass.
type Plan map[int]Reply

// ErrLost is what an append returns whose answer was lost.
var ErrLost = errors.New("pawl: the answer of the store was lost")

// FaultyDriver is a driver whose appends go wrong by plan. Its other methods are
// those of the driver it wraps. It lends transactions if that does, and a transaction
// counts as an append: what it does to the store and its records are what the plan lets
// get lost. It is safe for concurrent use.
type FaultyDriver struct {
	journal.Driver
	plan Plan

	mu      sync.Mutex
	appends int
	late    map[int]func() error
	gates   map[int]*gate // of the appends that the plan holds
}

type gate struct{ arrived, released chan struct{} }

var _ journal.Driver = (*FaultyDriver)(nil)

// Faulty wraps a driver.
func Faulty(d journal.Driver, plan Plan) *FaultyDriver {
	f := &FaultyDriver{Driver: d, plan: plan, late: map[int]func() error{}, gates: map[int]*gate{}}
	for n, reply := range plan {
		if reply == Held {
			f.gates[n] = &gate{make(chan struct{}), make(chan struct{})}
		}
	}
	return f
}

// Append implements journal.Driver.
func (f *FaultyDriver) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	store := func(ctx context.Context) error {
		return f.Driver.Append(ctx, run, epoch, after, recs, with...)
	}
	n, reply := f.next()
	switch reply {
	case Absent:
		return ErrLost
	case Later:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.late[n] = func() error { return store(context.WithoutCancel(ctx)) }
		return ErrLost
	case Stored:
		_ = store(ctx) // a lost answer says nothing, not even why it was refused
		return ErrLost
	case Held:
		if err := f.hold(ctx, n); err != nil {
			return err
		}
	}
	return store(ctx)
}

// Transactor returns what lends the transactions of the wrapped driver, nil if that has
// none. A transaction that is Absent fails after its function has run, as a commit
// does. It cannot be stored later, since it keeps every other writer out until then: Later
// is Absent.
func (f *FaultyDriver) Transactor() journal.Transactor {
	if t := journal.TransactorOf(f.Driver); t != nil {
		return faultyTransactor{f, t}
	}
	return nil
}

type faultyTransactor struct {
	faulty *FaultyDriver
	inner  journal.Transactor
}

// Transact implements journal.Transactor.
func (t faultyTransactor) Transact(ctx context.Context, run string, epoch, after uint64, fn func(ctx context.Context, tx any) ([]journal.Record, error)) error {
	n, reply := t.faulty.next()
	switch reply {
	case Absent, Later:
		err := t.inner.Transact(ctx, run, epoch, after, func(ctx context.Context, tx any) ([]journal.Record, error) {
			if _, err := fn(ctx, tx); err != nil {
				return nil, err
			}
			return nil, ErrLost
		})
		if errors.Is(err, ErrLost) {
			return ErrLost
		}
		return err
	case Stored:
		if err := t.inner.Transact(ctx, run, epoch, after, fn); err != nil {
			return err
		}
		return ErrLost
	case Held:
		if err := t.faulty.hold(ctx, n); err != nil {
			return err
		}
	}
	return t.inner.Transact(ctx, run, epoch, after, fn)
}

// next counts an append and says what becomes of it.
func (f *FaultyDriver) next() (n int, reply Reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.appends++
	return f.appends, f.plan[f.appends]
}

// hold waits until append n is let go.
func (f *FaultyDriver) hold(ctx context.Context, n int) error {
	close(f.gates[n].arrived)
	select {
	case <-f.gates[n].released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Appends returns the number of appends so far.
func (f *FaultyDriver) Appends() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.appends
}

// Deliver stores what the append of that number left for later and returns what the
// driver said about it. It is an error if there is nothing left.
func (f *FaultyDriver) Deliver(n int) error {
	f.mu.Lock()
	store := f.late[n]
	delete(f.late, n)
	f.mu.Unlock()
	if store == nil {
		return fmt.Errorf("pawl: append %d left nothing for later", n)
	}
	return store()
}

// Arrived returns a channel that is closed when the append of that number has
// arrived; nil if the plan does not hold it.
func (f *FaultyDriver) Arrived(n int) <-chan struct{} {
	if g := f.gates[n]; g != nil {
		return g.arrived
	}
	return nil
}

// LetGo lets the append of that number go on, arrived or not, if the plan holds it.
// It may be called once.
func (f *FaultyDriver) LetGo(n int) {
	if g := f.gates[n]; g != nil {
		close(g.released)
	}
}
