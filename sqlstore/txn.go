package sqlstore

import (
	"context"
	"database/sql"
)

const (
	sqlSavepoint   = `SAVEPOINT step`
	sqlRollbackTo  = `ROLLBACK TO step`
	sqlReleaseStep = `RELEASE step`
)

// A txn is a transaction of the writing connection. Its statements do not watch a
// context: SQLite answers an interrupted statement by rolling back the whole
// transaction, which others share.
type txn struct {
	tx    *sql.Tx
	store *Store
	bound map[string]*sql.Stmt
	end   func()
}

// begin takes the database's write lock. The wait for it ends with ctx; the
// transaction, once begun, does not.
func (s *Store) begin(ctx context.Context) (*txn, error) {
	if ctx.Done() == nil { // to watch it would take a goroutine
		return s.beginIn(ctx, func() {})
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	t, err := s.beginIn(life, end)
	if !stop() { // ctx is done
		if err == nil {
			t.end()
		}
		return nil, ctx.Err()
	}
	return t, err
}

// beginIn begins a transaction that ends with life, if not before. end ends life.
func (s *Store) beginIn(life context.Context, end func()) (*txn, error) {
	tx, err := s.write.BeginTx(life, nil)
	if err != nil {
		end()
		return nil, fault("begin", err)
	}
	t := newTxn(s, tx)
	t.end = func() {
		tx.Rollback()
		end()
	}
	return t, nil
}

func newTxn(s *Store, tx *sql.Tx) *txn {
	return &txn{tx: tx, store: s, bound: make(map[string]*sql.Stmt, 4)}
}

// serve does the work of a group of writes and commits. Errors of the work are left
// in the writes; the error returned is everybody's.
func (t *txn) serve(writes []*write) error {
	if w := writes[0]; len(writes) == 1 {
		if w.Err = w.Work(t); w.Err != nil {
			return nil // end rolls back
		}
		return t.commit()
	}
	for _, w := range writes {
		if err := t.step(w); err != nil {
			return err
		}
	}
	return t.commit()
}

// step does the work of one write of several.
func (t *txn) step(w *write) error {
	if _, err := t.exec(sqlSavepoint); err != nil {
		return err
	}
	if w.Err = w.Work(t); w.Err != nil {
		if _, err := t.exec(sqlRollbackTo); err != nil {
			return err
		}
	}
	_, err := t.exec(sqlReleaseStep)
	return err
}

func (t *txn) commit() error {
	if err := t.tx.Commit(); err != nil {
		return fault("commit", err)
	}
	return nil
}

// exec runs one of writeQueries and returns the number of rows it changed.
func (t *txn) exec(q string, args ...any) (changed int64, err error) {
	res, err := t.stmt(q).Exec(args...)
	if err != nil {
		return 0, fault("write", err)
	}
	return res.RowsAffected()
}

// get runs one of writeQueries that returns at most one row. The error is
// sql.ErrNoRows if there is none.
func (t *txn) get(q string, args []any, dest ...any) error {
	err := t.stmt(q).QueryRow(args...).Scan(dest...)
	if err != nil && err != sql.ErrNoRows {
		return fault("read", err)
	}
	return err
}

func (t *txn) stmt(q string) *sql.Stmt {
	stmt := t.bound[q]
	if stmt == nil {
		stmt = t.tx.Stmt(t.store.writing[q])
		t.bound[q] = stmt
	}
	return stmt
}
