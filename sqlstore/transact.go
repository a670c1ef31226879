package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl/internal/lent"
	"github.com/pawl-agents/pawl/internal/listing"
	"github.com/pawl-agents/pawl/journal"
)

var _ journal.Transactor = (*Store)(nil)

// A transaction is lent inside a savepoint: whoever ends the transaction ends the
// savepoint with it, and that shows.
const (
	sqlLend     = `SAVEPOINT pawl_lent`
	sqlTakeBack = `RELEASE pawl_lent`
)

// ErrInTransaction: code inside Transact called the store, which waits for that very code.
// It has to go through the transaction it was given.
var ErrInTransaction = lent.ErrInTransaction

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
		change, err := listing.Of(recs)
		if err != nil {
			return err
		}
		return t.add(ctx, run, epoch, after, recs, change)
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
	err := lent.Call(ctx, t.store, func(ctx context.Context) error { return fn(ctx, t.tx) })
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
