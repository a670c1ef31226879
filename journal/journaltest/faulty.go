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
// those of the driver it wraps. It is safe for concurrent use.
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
	f.mu.Lock()
	f.appends++
	n := f.appends
	reply := f.plan[n]
	if reply == Later {
		f.late[n] = func() error { return store(context.WithoutCancel(ctx)) }
	}
	f.mu.Unlock()
	switch reply {
	case Absent, Later:
		return ErrLost
	case Stored:
		_ = store(ctx) // a lost answer says nothing, not even why it was refused
		return ErrLost
	case Held:
		close(f.gates[n].arrived)
		select {
		case <-f.gates[n].released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return store(ctx)
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
