package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pawl-agents/pawl/internal/lent"
	"github.com/pawl-agents/pawl/journal"
)

const (
	sqlHold = `SELECT refused, (r).head, pg_current_xact_id()::text FROM pawl_hold($1, $2, $3)`
	sqlXact = `SELECT pg_current_xact_id()::text`
	// A transaction is lent inside a savepoint: whoever ends the transaction ends the
	// savepoint with it, and that shows.
	sqlLend     = `SAVEPOINT pawl_lent`
	sqlTakeBack = `RELEASE SAVEPOINT pawl_lent`
	sqlStatus   = `SELECT coalesce(pg_xact_status($1::text::xid8) = 'committed', false)`
)

// Tx is the store's own transaction, lent to code of others: a pgx.Tx, and a *sql.Tx for those
// who have that. It belongs to one goroutine, and must not be ended or kept.
type Tx struct {
	pgx.Tx
	sql *sql.Tx
}

// SQL returns the transaction as one of database/sql.
func (t *Tx) SQL() *sql.Tx { return t.sql }

// A txn is a transaction with a connection of its own, that can be lent.
type txn struct {
	ctx  context.Context
	conn *pgx.Conn
	lent *Tx
	id   string // of the transaction, "" until it is known
	lost bool   // the connection is, with the transaction as whoever had it left it
}

// Transact implements journal.Transactor; tx is a *Tx. It has a connection of its own, so that
// other runs go on meanwhile, and holds the row of its run: nobody can take the run over. A fn
// that has not returned a second after ctx has ended is left behind: its connection is closed,
// and whatever it still does with tx fails. fn runs on a goroutine of its own.
func (s *Store) Transact(ctx context.Context, run string, epoch, after uint64, fn func(ctx context.Context, tx any) ([]journal.Record, error)) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.transact(ctx, run, func(t *txn) error {
		held := call{run: run, after: after}
		err := t.conn.QueryRow(t.ctx, sqlHold, run, clamp(epoch), clamp(after)).Scan(&held.refused, &held.head, &t.id)
		if err != nil {
			return fault("lock", err)
		}
		if err := held.err(); err != nil {
			return err
		}
		var recs []journal.Record
		err = s.lend(ctx, t, run, func(ctx context.Context) (err error) {
			recs, err = fn(ctx, t.lent)
			return err
		})
		if err != nil {
			return err
		}
		c, err := s.newCall(run, epoch, after, recs, nil)
		if err != nil {
			return err
		}
		return t.call(c)
	})
}

// Update runs fn in a transaction of the store's database and commits it, for tables of yours
// beside the store's own. An error or a panic of fn rolls it back and is returned, wrapped;
// what Transact says of fn holds.
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.transact(ctx, "", func(t *txn) error {
		if err := t.conn.QueryRow(t.ctx, sqlXact).Scan(&t.id); err != nil {
			return fault("begin", err)
		}
		return s.lend(ctx, t, "", func(ctx context.Context) error { return fn(ctx, t.lent) })
	})
}

// call appends in the transaction.
func (t *txn) call(c *call) error {
	if err := t.conn.QueryRow(t.ctx, sqlAppend, c.args...).Scan(&c.refused, &c.head, &c.other); err != nil {
		return fault("append", err)
	}
	return c.err()
}

// transact runs work in a transaction that begins on the side of database/sql, so that both
// kinds of it are the same one, and commits it if work returns no error. run is empty if it is
// for none.
func (s *Store) transact(ctx context.Context, run string, work func(t *txn) error) (err error) {
	var conn *sql.Conn
	err = s.insist(ctx, func() (_ bool, err error) {
		conn, err = s.sql.Conn(ctx)
		return false, err
	})
	if err != nil {
		return fault("connect", err)
	}
	t := &txn{lent: new(Tx)}
	defer func() {
		conn.Close() // first: without it there may be no connection to ask on
		if t.lost && s.committed(ctx, t.id) {
			err = errors.Join(&journal.TxEndedError{Run: run, Committed: true}, err)
		}
	}()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fault("begin", err)
	}
	defer tx.Rollback()
	t.ctx, t.lent.sql = ctx, tx
	if err := conn.Raw(func(c any) error { t.conn = c.(*stdlib.Conn).Conn(); return nil }); err != nil {
		return fault("begin", err)
	}
	if t.lent.Tx, err = t.conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: sqlLend, CommitQuery: sqlTakeBack}); err != nil {
		return fault("begin", err)
	}
	if err := work(t); err != nil {
		if errors.Is(err, lent.ErrLeft) {
			t.lost = true
			t.conn.PgConn().Conn().Close() // the code left behind may be using it
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fault("commit", err)
	}
	return nil
}

// lend calls fn and takes the transaction back.
func (s *Store) lend(ctx context.Context, t *txn, run string, fn func(context.Context) error) error {
	err := lent.Call(ctx, s, fn)
	if err != nil {
		err = fmt.Errorf("pawl: %w%s", err, of(run))
	}
	if errors.Is(err, lent.ErrLeft) {
		return err
	}
	_, lost := t.conn.Exec(t.ctx, sqlTakeBack)
	if lost == nil {
		return err
	}
	if t.lost = t.conn.IsClosed(); t.lost {
		return cmp.Or(err, fault("lend", lost))
	}
	ended := &journal.TxEndedError{Run: run, Committed: t.committed()}
	switch {
	case ended.Committed:
		return errors.Join(ended, err)
	case err == nil && sqlState(lost) == "25P02": // a statement of fn's failed, and it went on
		return fmt.Errorf("pawl: a statement failed in the transaction that was lent, which is void by that%s", of(run))
	case err == nil:
		return ended
	}
	return err
}

// committed says that the transaction was. Its own connection is asked: a wait for another one
// that keeps this one could be for ever.
func (t *txn) committed() (yes bool) {
	if _, err := t.conn.Exec(t.ctx, `ROLLBACK`); err != nil { // whatever was begun in its place
		return false
	}
	return t.conn.QueryRow(t.ctx, sqlStatus, t.id).Scan(&yes) == nil && yes
}

// committed says that a transaction was whose connection is gone.
func (s *Store) committed(ctx context.Context, id string) (yes bool) {
	if id == "" {
		return false
	}
	ctx, end := begun(ctx)
	defer end()
	return s.pool.QueryRow(ctx, sqlStatus, id).Scan(&yes) == nil && yes
}

// of names a run at the end of an error.
func of(run string) string {
	if run == "" {
		return ""
	}
	return " (run " + run + ")"
}
