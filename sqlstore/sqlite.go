package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-agents/pawl/internal/group"
	"github.com/pawl-agents/pawl/journal"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Options are the choices of a store. The zero value is the safe one.
type Options struct {
	// Sync is what a commit waits for.
	Sync Sync
	// BusyTimeout bounds the wait for the lock that another connection or process
	// holds; 0 means 5 seconds.
	BusyTimeout time.Duration
}

// Sync is what a commit of an SQLite store waits for
// (https://www.sqlite.org/pragma.html#pragma_synchronous).
type Sync int

// The choices of Sync.
const (
	// SyncFull makes every commit wait for the disk.
	SyncFull Sync = iota
	// UnsafeSyncNormal may lose the last commits when the machine loses power: an
	// effect that was recorded may be repeated. A crash of the process loses none.
	UnsafeSyncNormal
	// UnsafeSyncOff may in addition leave a damaged file.
	UnsafeSyncOff
)

// Errors of opening and writing an SQLite store.
var (
	// ErrNotDatabase: the file is no SQLite database. It wraps
	// journal.ErrForeignStore.
	ErrNotDatabase = fmt.Errorf("%w: the file is no SQLite database", journal.ErrForeignStore)
	// ErrBusy: another connection held the lock for longer than
	// Options.BusyTimeout. Nothing was written; a repeat is safe.
	ErrBusy = errors.New("pawl: the store is locked by another process")
	// ErrAccess: this process may not read or write the file or its directory. Also
	// reading a store needs the leave to write: SQLite keeps its locks beside the file.
	ErrAccess = errors.New("pawl: the store cannot be read and written by this process")
	// ErrClosed: the store was closed.
	ErrClosed = group.ErrClosed
)

// memory is the path of a store that is gone when it is closed.
const memory = ":memory:"

// OpenSQLite opens the store in the file path, which is made if there is none; its
// directory must exist. A file that holds only the sessions of the OpenAI Agents SDK
// for Python becomes a store with these sessions in it. The path ":memory:" gives a
// store for tests, with one connection for reads and writes. A nil opts is the zero
// Options.
//
// The error wraps ErrNotDatabase, journal.ErrForeignStore or journal.ErrNewerStore
// if the file is not ours to open, which then was not touched, journal.ErrCorrupt if
// it is damaged, and ErrBusy or ErrAccess.
func OpenSQLite(path string, opts *Options) (*Store, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	s, err := openSQLite(context.Background(), path, o)
	if err != nil {
		return nil, fault(fmt.Sprintf("open %q", path), err)
	}
	return s, nil
}

func openSQLite(ctx context.Context, path string, o Options) (*Store, error) {
	if path == "" {
		return nil, errors.New("no path")
	}
	if o.Sync < SyncFull || o.Sync > UnsafeSyncOff || o.BusyTimeout < 0 {
		return nil, fmt.Errorf("bad options: %+v", o)
	}
	if path != memory {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if err := inspectSQLite(ctx, abs, o); err != nil {
			return nil, err
		}
		path = abs
	}
	commits := new(atomic.Int64)
	write, err := openWriter(ctx, path, o, commits)
	if err != nil {
		return nil, err
	}
	read := write
	if path != memory {
		read, err = openPool(path, o, "_query_only=1&mode=rw", nil)
		if err != nil {
			write.Close()
			return nil, err
		}
		read.SetMaxOpenConns(max(4, runtime.GOMAXPROCS(0)))
		read.SetMaxIdleConns(max(4, runtime.GOMAXPROCS(0)))
	}
	s, err := newStore(ctx, write, read, commits)
	if err != nil {
		write.Close()
		read.Close()
		return nil, err
	}
	return s, nil
}

// inspectSQLite refuses a file that is not ours, before anything that could write
// to it. A database in WAL mode that nobody has open has no WAL file, and an
// ordinary connection would make one; such a file is read as immutable. os.Open is
// not an option: closing the file would drop the locks that this process holds on
// it (https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
func inspectSQLite(ctx context.Context, path string, o Options) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return ErrNotDatabase
	case info.Size() == 0:
		return nil
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	inUse := func() bool {
		_, err := os.Stat(path + "-wal")
		return err == nil
	}
	if !inUse() {
		if err := inspectThrough(ctx, path, o, "immutable=1"); !inUse() {
			return err
		}
	}
	return inspectThrough(ctx, path, o, "mode=ro")
}

func inspectThrough(ctx context.Context, path string, o Options, params string) error {
	c, err := sqlite.NewConnector(dsn(path, fmt.Sprintf("_busy_timeout=%d&%s", o.BusyTimeout.Milliseconds(), params)))
	if err != nil {
		return err
	}
	db := sql.OpenDB(c)
	defer db.Close()
	_, err = schemaVersion(ctx, db)
	return err
}

// openWriter opens the writing connection and brings the schema up to date. The
// switch to WAL mode does not wait for locks, so it is tried again.
func openWriter(ctx context.Context, path string, o Options, commits *atomic.Int64) (*sql.DB, error) {
	params := "_txlock=immediate"
	if path != memory {
		params += "&_journal_mode=WAL"
	}
	db, err := openPool(path, o, params, commits)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	deadline := time.Now().Add(o.BusyTimeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err = upgrade(ctx, db)
		if sqliteCode(err) != sqlite3.SQLITE_BUSY || time.Now().After(deadline) {
			break
		}
		time.Sleep(wait)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// upgrade migrates the database if it has to be. A file of the current version is
// opened without waiting for its writer.
func upgrade(ctx context.Context, db *sql.DB) error {
	version, err := schemaVersion(ctx, db)
	if err != nil || version == len(migrations) {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := migrate(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// openPool returns a pool of connections that all have the settings of o. Their commits
// are counted in commits, unless it is nil.
func openPool(path string, o Options, params string, commits *atomic.Int64) (*sql.DB, error) {
	base, err := sqlite.NewConnector(dsn(path, fmt.Sprintf("_busy_timeout=%d&_foreign_keys=1&_synchronous=%s&%s",
		o.BusyTimeout.Milliseconds(), [...]string{"FULL", "NORMAL", "OFF"}[o.Sync], params)))
	if err != nil {
		return nil, err
	}
	c := connector{base, []setting{{"synchronous", [...]string{"2", "1", "0"}[o.Sync]}, {"foreign_keys", "1"}}, commits}
	if path != memory {
		c.settings = append(c.settings, setting{"journal_mode", "wal"})
	}
	return sql.OpenDB(c), nil
}

// A setting is the value a pragma must have.
type setting struct{ pragma, value string }

// connector opens connections and refuses those whose settings are not in force.
type connector struct {
	driver.Connector
	settings []setting
	commits  *atomic.Int64
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range c.settings {
		got, err := readPragma(ctx, conn, s.pragma)
		if err == nil && got != s.value {
			err = fmt.Errorf("the database has %s=%s where %s is needed", s.pragma, got, s.value)
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
	}
	if c.commits == nil {
		return conn, nil
	}
	hooks, ok := conn.(sqlite.HookRegisterer)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("the SQLite driver does not say when it commits: %T", conn)
	}
	hooks.RegisterCommitHook(func() int32 {
		c.commits.Add(1)
		return 0
	})
	return conn, nil
}

func readPragma(ctx context.Context, conn driver.Conn, name string) (string, error) {
	q, ok := conn.(driver.QueryerContext)
	if !ok {
		return "", fmt.Errorf("the SQLite driver cannot read its settings: %T", conn)
	}
	rows, err := q.QueryContext(ctx, "PRAGMA "+name, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	value := make([]driver.Value, 1)
	if err := rows.Next(value); err != nil && err != io.EOF {
		return "", err
	}
	return fmt.Sprint(value[0]), nil
}

// dsn returns the data source name of a file: a URI, since only there SQLite reads
// its own parameters, and a path may hold any character.
func dsn(path, params string) string {
	if path == memory {
		return "file::memory:?" + params
	}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive letter
		path = "/" + path
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: params}
	return u.String()
}

// sqliteCode returns SQLite's primary result code in err, 0 if it has none
// (https://www.sqlite.org/rescode.html).
func sqliteCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// fault says what failed in the database, and what SQLite's error means here.
func fault(op string, err error) error {
	switch sqliteCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %s: %w", ErrBusy, op, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w: %s: %w", ErrAccess, op, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %s: %w", ErrNotDatabase, op, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %s: %w", journal.ErrCorrupt, op, err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %s: %w", ErrAccess, op, err)
	}
	return fmt.Errorf("pawl: store: %s: %w", op, err)
}
