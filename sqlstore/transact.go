package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

var _ journal.Transactor = (*Store)(nil)

// A transaction is lent inside a savepoint: whoever ends the transaction ends the
// savepoint with it, and that shows.
const (
	sqlLend     = `SAVEPOINT pawl_lent`
	sqlTakeBack = `RELEASE pawl_lent`
)

// lendGrace is how long code that was lent the transaction may take to return once its
// context has ended.
const lendGrace = time.Second

// ErrInTransaction: code inside Transact called the store, which waits for that very code.
// It has to go through the transaction it was given.
var ErrInTransaction = errors.New("pawl: the store is used inside its own transaction")

// lentKey is the key of the store in the context of code that has its transaction.
type lentKey struct{}

// Transact implements journal.Transactor; tx is a *sql.Tx. It waits for its turn among the
// writes of this process, and for the database's lock as long as any write does; once the
// transaction has begun, ctx ends only what fn does with it. A fn that has not returned a
// second after ctx has ended is left behind: the transaction is rolled back, so that other
// writers go on, and whatever fn still does with tx fails. fn runs on a goroutine of its own.
func (s *Store) Transact(ctx context.Context, run string, epoch, after uint64, fn func(ctx context.Context, tx any) ([]journal.Record, error)) error {
	return s.doAlone(ctx, func(t *txn) error {
		if err := t.check(run, epoch, after); err != nil {
			return err
		}
		var recs []journal.Record
		err := t.lend(ctx, run, func(ctx context.Context, tx any) (err error) {
			recs, err = fn(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		l, err := readListing(recs)
		if err != nil {
			return err
		}
		return t.add(ctx, run, epoch, after, recs, l)
	})
}

// check refuses what advance would refuse, and changes nothing.
func (t *txn) check(run string, epoch, after uint64) error {
	r, err := t.run(run)
	switch {
	case err == sql.ErrNoRows || err == nil && !r.holds(epoch):
		return journal.ErrFenced
	case err != nil:
		return err
	case r.head != after:
		return &journal.ConflictError{Run: run, After: after, Head: r.head}
	}
	return nil
}

// lend calls fn with the transaction and takes it back. run is empty if it is for none.
func (t *txn) lend(ctx context.Context, run string, fn func(context.Context, any) error) error {
	if _, err := t.exec(sqlLend); err != nil {
		return err
	}
	committed := t.store.commits.Load()
	err := t.call(ctx, fn)
	if err != nil {
		err = fmt.Errorf("pawl: %w%s", err, of(run))
	}
	_, lost := t.exec(sqlTakeBack)
	ended := &journal.TxEndedError{Run: run, Committed: t.store.commits.Load() != committed}
	switch {
	case ended.Committed:
		return errors.Join(ended, err)
	case lost != nil && err == nil:
		return ended
	}
	return err
}

// of names a run at the end of an error.
func of(run string) string {
	if run == "" {
		return ""
	}
	return " (run " + run + ")"
}

// call calls fn on a goroutine of its own and waits for it, not for ever.
func (t *txn) call(ctx context.Context, fn func(context.Context, any) error) error {
	done := make(chan error, 1)
	go func() {
		err := errors.New("the code that was lent the transaction ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the code that was lent the transaction panicked: %v\n%s", p, debug.Stack())
			}
			done <- err
		}()
		err = fn(context.WithValue(ctx, lentKey{}, t.store), t.tx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(lendGrace)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return fmt.Errorf("the code that was lent the transaction did not return: %w", ctx.Err())
	}
}

// isLent reports whether ctx is of code that has the store's transaction.
func (s *Store) isLent(ctx context.Context) bool { return ctx.Value(lentKey{}) == s }
