package chaos

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
)

// database is a store of runs, in a file or in PostgreSQL.
type database interface {
	journal.Driver
	journal.Transactor
	Close() error
	// conversation is a session in it.
	conversation(id string) conversation
	// update runs code in a transaction of its own.
	update(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error
}

// conversation is a session that a store keeps.
type conversation interface {
	session.Session
	session.BatchAppender
	session.Backend
	Companion(batchID string, items []item.Item) journal.Companion
}

type sqliteDatabase struct{ *sqlstore.Store }

func (d sqliteDatabase) conversation(id string) conversation { return d.Session(id) }

func (d sqliteDatabase) update(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return d.Update(ctx, fn)
}

type postgresDatabase struct{ *pgstore.Store }

func (d postgresDatabase) conversation(id string) conversation { return d.Session(id) }

func (d postgresDatabase) update(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return d.Update(ctx, func(ctx context.Context, tx *pgstore.Tx) error { return fn(ctx, tx.SQL()) })
}

// openDatabase opens the store of a campaign: that of the URL, or the file in its directory. A server that is down comes
// back.
func openDatabase(ctx context.Context, url, dir string) (database, error) {
	if url == "" {
		s, err := sqlstore.OpenSQLite(filepath.Join(dir, runsFile), &sqlstore.Options{BusyTimeout: time.Minute})
		return sqliteDatabase{s}, err
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		s, err := pgstore.Open(ctx, url, nil)
		if err == nil || time.Now().After(end) || ctx.Err() != nil {
			return postgresDatabase{s}, err
		}
	}
}

// makeBookings makes the table that the transactional tools write to, unless it is there.
func makeBookings(ctx context.Context, db database) (err error) {
	for range 100 { // the server may go down meanwhile
		err = db.update(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, bookings)
			return err
		})
		if _, file := db.(sqliteDatabase); err == nil || file || ctx.Err() != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}
