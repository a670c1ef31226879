package pawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// lent is a transactional body and the transaction it was lent. The store may come back
// without the body, if that does not heed its context.
type lent struct {
	d *drive
	b *body

	mu      sync.Mutex
	left    bool // the store came back: what the body still does is not wanted
	entered bool
	settled *journal.Settled // how the body ended, nil if it did not
	fact    journal.Fact
	recs    []journal.Record // of the fact, to be committed with what the body wrote
}

var (
	errRolledBack = errors.New("what the tool wrote is not wanted")
	errLeft       = errors.New("the driver went on without the tool")
)

// run runs the body in the store's transaction and makes the fact that commits with it.
func (l *lent) run(ctx context.Context, tx any) ([]journal.Record, error) {
	if !l.enter() {
		return nil, errLeft
	}
	b := *l.b
	b.ctx, b.call.Tx = ctx, tx
	s := b.settled()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left {
		return nil, errLeft
	}
	l.settled = s
	if s.Outcome != journal.Done && s.Outcome != journal.Pending {
		return nil, errRolledBack
	}
	fact := journal.Fact{Frame: b.of.frame, Time: time.Now().UnixMilli(), Body: s}
	if err := l.d.m.Check(fact); err != nil {
		return nil, fmt.Errorf("the outcome of %s does not fit the run: %w", b.of, err)
	}
	l.fact, l.recs = fact, l.d.encode([]journal.Fact{fact})
	return l.recs, nil
}

func (l *lent) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entered = !l.left
	return l.entered
}

// leave returns when the body will not touch the drive any more.
func (l *lent) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
}

// runTx runs a body in the store's transaction: what it writes and its outcome commit
// together. Everything before is durable. An error is of the run store.
func (d *drive) runTx(b *body) error {
	busy, free := d.lend()
	defer free()
	b.ctx, b.cancel = context.WithDeadline(busy, time.UnixMilli(b.notAfter))
	defer b.cancel()
	if len(d.wake) > 0 { // somebody cancels the run
		d.wakeable.cancel()
	}
	store := journal.TransactorOf(d.store)
	var l *lent
	var err error
	for try := range appendTries {
		if try > 0 {
			time.Sleep(appendPause << try)
		}
		l = &lent{d: d, b: b}
		err = store.Transact(b.ctx, d.m.Run(), d.epoch, uint64(d.records.size), l.run)
		l.leave()
		var conflict *journal.ConflictError
		switch {
		case err == nil:
			return d.committed(l)
		case errors.Is(err, ErrFenced), errors.As(err, &conflict):
			return &JournalError{Err: fmt.Errorf("%w: %w", ErrFenced, err)}
		}
		if l.entered || b.ctx.Err() != nil {
			break
		}
	}
	if l.recs != nil && !errors.As(err, new(*journal.TxEndedError)) {
		return d.commitFailed(l, err)
	}
	s := l.rolledBack(busy, err)
	d.queue = append(d.queue, outcome{of: b.of, body: s})
	if !l.entered && b.ctx.Err() == nil {
		return &JournalError{Err: err}
	}
	return nil
}

// lend returns the context of a transactional body: one of its own, that rollBack ends. It
// waits for the cancellations that are being posted.
func (d *drive) lend() (ctx context.Context, free func()) {
	d.wakeable = nil
	ctx = d.busy()
	d.lent.Store(d.wakeable)
	d.posting.Lock()
	defer d.posting.Unlock()
	return ctx, func() {
		d.lent.Store(nil)
		d.free()
		d.wakeable = nil
	}
}

// committed goes on from the outcome that committed with the body.
func (d *drive) committed(l *lent) error {
	if err := d.m.Replay(l.fact); err != nil {
		return err
	}
	d.records.add(l.recs)
	d.m.Advance(uint64(d.records.size))
	d.moved = true
	d.show([]journal.Fact{l.fact})
	d.r.bells.ring(d.m.Run())
	return nil
}

// nothingChanged is what the model is told besides the error of a transactional call.
const nothingChanged = "Nothing was changed."

// rolledBack is the outcome of a body whose transaction did not commit, or that ended it
// itself, or that was not entered.
func (l *lent) rolledBack(busy context.Context, err error) *journal.Settled {
	b := l.b
	var ended *journal.TxEndedError
	switch {
	case errors.As(err, &ended) && ended.Committed:
		return b.unknown("the tool committed the store's transaction itself")
	case ended != nil:
		return b.failed(err, "The tool rolled its transaction back. "+nothingChanged)
	case busy.Err() != nil, !l.entered && b.ctx.Err() == nil:
		return &journal.Settled{ID: b.of.id, Outcome: journal.NotExecuted}
	case b.ctx.Err() != nil:
		return b.failed(err, "The tool did not end in time. "+nothingChanged)
	case l.settled != nil:
		return l.settled
	}
	return b.failed(err, "The tool failed. "+nothingChanged)
}

// commitFailed finds out what became of a commit that failed or whose answer was lost. If
// the ledger does not have the outcome, the one that takes its place keeps a late commit
// out. A commit that fails again and again, as one that breaks a constraint does, is a
// failure of the tool.
func (d *drive) commitFailed(l *lent, cause error) error {
	var have []journal.Record
	var err error
	for try := range appendTries {
		if try > 0 {
			time.Sleep(appendPause << try)
		}
		if have, err = d.store.Read(d.bg, d.m.Run(), uint64(d.records.size)); err == nil {
			break
		}
	}
	switch {
	case err != nil:
		return &JournalError{Unrecorded: 1, Err: cause}
	case len(have) > 0 && sameRecords(have, l.recs):
		return d.committed(l)
	case len(have) > 0:
		return &JournalError{Unrecorded: 1, Err: ErrFenced}
	}
	s := &journal.Settled{ID: l.b.of.id, Outcome: journal.NotExecuted}
	if l.b.of.id.A >= machine.MaxUnknown {
		s = l.b.failed(cause, "The tool's transaction could not be committed. "+nothingChanged)
	}
	d.queue = append(d.queue, outcome{of: l.b.of, body: s})
	return nil
}

// checkTransactions refuses an agent whose tools need more of a store than it can.
func (a *Agent) checkTransactions(store journal.Driver) error {
	if journal.TransactorOf(store) != nil {
		return nil
	}
	for i := range a.Tools {
		if t := &a.Tools[i]; t.effect == Transactional {
			return &ConfigError{Field: "Runner.Store", Problem: fmt.Sprintf("cannot run tool %q in its own transaction; use a store of package sqlstore", t.name)}
		}
	}
	return nil
}
