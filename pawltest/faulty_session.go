package pawltest

import (
	"context"
	"errors"
	"sync"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
)

// ErrSessionFault is what a faulty append returns whose fault has no error of its own.
var ErrSessionFault = errors.New("pawltest: the session failed on purpose")

// AllItems, as SessionFault.Stored, is every item.
const AllItems = -1

// SessionFault is what goes wrong with one append: it stores some of the items, or all or none, and returns an error.
type SessionFault struct {
	// Stored is how many of the items are stored: 0, so that the append failed; AllItems, so that only its acknowledgement is
	// lost; or the first so many, as a session does that is not atomic.
	Stored int
	// Err is returned, ErrSessionFault if nil.
	Err error
}

// FaultySession is a plain session, as a user might write one, whose appends go wrong by plan. It has the methods of
// [session.Session] and no others, whatever the session it wraps can do: it neither remembers batches nor says where it
// is kept. So a run has to find out from the session's tail what became of an append that failed. It is safe for
// concurrent use.
//
// That a write to a session fails after an approved tool has run, and the tool's output is then missing from the session
// or in it twice, is the best known failure of resumable agents
// (https://github.com/openai/openai-agents-python/issues/4615, https://github.com/openai/openai-agents-js/pull/1757).
type FaultySession struct {
	session session.Session

	mu      sync.Mutex
	faults  map[int]SessionFault
	appends int
}

var _ session.Session = (*FaultySession)(nil)

// NewFaultySession wraps a session. The faults are those of its appends by their number from 1; others pass.
func NewFaultySession(s session.Session, faults map[int]SessionFault) *FaultySession {
	f := &FaultySession{session: s, faults: map[int]SessionFault{}}
	for n, fault := range faults {
		f.faults[n] = fault
	}
	return f
}

// Appends returns the number of appends so far, failed ones included.
func (f *FaultySession) Appends() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.appends
}

// ID implements session.Session.
func (f *FaultySession) ID() string { return f.session.ID() }

// Items implements session.Session.
func (f *FaultySession) Items(ctx context.Context, limit int) ([]item.Item, error) {
	return f.session.Items(ctx, limit)
}

// Append implements session.Session, except where it is to fail.
func (f *FaultySession) Append(ctx context.Context, items []item.Item) error {
	f.mu.Lock()
	f.appends++
	fault, faulty := f.faults[f.appends]
	f.mu.Unlock()
	if !faulty {
		return f.session.Append(ctx, items)
	}
	n := fault.Stored
	if n < 0 || n > len(items) {
		n = len(items)
	}
	if n > 0 {
		if err := f.session.Append(ctx, items[:n]); err != nil {
			return err
		}
	}
	if fault.Err != nil {
		return fault.Err
	}
	return ErrSessionFault
}

// Pop implements session.Session.
func (f *FaultySession) Pop(ctx context.Context) (item.Item, bool, error) { return f.session.Pop(ctx) }

// Clear implements session.Session.
func (f *FaultySession) Clear(ctx context.Context) error { return f.session.Clear(ctx) }
