package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pawl-agents/pawl/internal/group"
	"github.com/pawl-agents/pawl/internal/lent"
	"github.com/pawl-agents/pawl/journal"
)

// Store is a database of runs and sessions. It implements journal.Driver and is
// safe for concurrent use.
type Store struct {
	write, read *sql.DB
	backend     string
	// writing and reading are the statements prepared for the two pools, by text.
	writing, reading map[string]*sql.Stmt
	queue            group.Queue[func(tx *txn) error]
	// numbers are those of the runs that are being driven: run to int64.
	numbers sync.Map
	// commits counts the commits that the writing connection began, whoever asked for them.
	commits *atomic.Int64
}

var _ journal.Driver = (*Store)(nil)

// newStore takes over two pools of a database with the current schema.
func newStore(ctx context.Context, write, read *sql.DB, commits *atomic.Int64) (*Store, error) {
	s := &Store{write: write, read: read, commits: commits}
	var id string
	if err := read.QueryRowContext(ctx, `SELECT store FROM pawl_meta`).Scan(&id); err != nil {
		return nil, err
	}
	s.backend = "sqlite/" + id
	var err error
	if s.writing, err = prepare(ctx, write, writeQueries()); err != nil {
		return nil, err
	}
	s.reading, err = prepare(ctx, read, readQueries())
	return s, err
}

// writeQueries are the statements of a txn.
func writeQueries() []string {
	return []string{
		sqlSavepoint, sqlRollbackTo, sqlReleaseStep, sqlLend, sqlTakeBack,
		sqlNewRun, sqlRun, sqlClaim, sqlFree, sqlRenew, sqlRelease,
		sqlAdvance, sqlCreate, sqlFact, sqlBind, sqlLane, sqlEnd, sqlSessionRival, sqlConversationRival,
		sqlPost, sqlEntry, sqlConsume, sqlPrunable, sqlPruneRun, sqlPruneFacts, sqlPruneInbox,
		sqlTouchSession, sqlMessage, sqlBatch, sqlPop, sqlClearMessages, sqlClearSession,
	}
}

// readQueries are the statements of a view.
func readQueries() []string {
	return []string{
		sqlHead, sqlFacts, sqlInbox,
		sqlList, sqlListOpen, sqlListSession, sqlListSessionOpen, sqlListDue, sqlListSessionDue, sqlListHeld, sqlNext, sqlEnded,
		sqlNewest,
	}
}

func prepare(ctx context.Context, db *sql.DB, queries []string) (map[string]*sql.Stmt, error) {
	stmts := make(map[string]*sql.Stmt, len(queries))
	for _, q := range queries {
		stmt, err := db.PrepareContext(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("%w in %q", err, q)
		}
		stmts[q] = stmt
	}
	return stmts, nil
}

// Backend names the store: "sqlite/" and the id that the database was given when
// it was made, so it is equal in all processes and follows the file.
func (s *Store) Backend() string { return s.backend }

// Close waits for the writes that were accepted and closes the store. Later calls
// return ErrClosed.
func (s *Store) Close() error {
	if !s.queue.Close() {
		return nil
	}
	err := s.write.Close()
	if s.read != s.write {
		err = errors.Join(err, s.read.Close())
	}
	return err
}

// A view is a read transaction: all it reads is of one moment.
type view struct {
	ctx   context.Context
	tx    *sql.Tx
	stmts map[string]*sql.Stmt
}

// view runs read in a transaction of the read pool.
func (s *Store) view(ctx context.Context, read func(v view) error) error {
	switch {
	case s.queue.Closed():
		return ErrClosed
	case s.read == s.write && lent.Has(ctx, s):
		return ErrInTransaction
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fault("begin", err)
	}
	defer tx.Rollback()
	return read(view{ctx, tx, s.reading})
}

// get runs one of readQueries that returns at most one row. The error is
// sql.ErrNoRows if there is none.
func (v view) get(q string, args []any, dest ...any) error {
	err := v.tx.StmtContext(v.ctx, v.stmts[q]).QueryRowContext(v.ctx, args...).Scan(dest...)
	if err != nil && err != sql.ErrNoRows {
		return fault("read", err)
	}
	return err
}

// each runs one of readQueries and calls row for every row of the result, after it
// was scanned into dest. An errStop of row ends it without an error.
func (v view) each(q string, args, dest []any, row func() error) error {
	rows, err := v.tx.StmtContext(v.ctx, v.stmts[q]).QueryContext(v.ctx, args...)
	if err != nil {
		return fault("read", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return fault("read", err)
		}
		if err := row(); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fault("read", err)
	}
	return nil
}

// errStop ends view.each.
var errStop = errors.New("stop")
