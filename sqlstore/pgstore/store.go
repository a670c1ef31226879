package pgstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/group"
	"github.com/pawl-agents/pawl/internal/lent"
	"github.com/pawl-agents/pawl/journal"
)

// Store is a database of runs and sessions. It implements journal.Driver and
// journal.Transactor and is safe for concurrent use.
type Store struct {
	listens *pgx.ConnConfig
	pool    *pgxpool.Pool
	sql     *sql.DB // over the pool, to lend transactions
	backend string
	queue   group.Queue[*call]
}

var (
	_ journal.Driver     = (*Store)(nil)
	_ journal.Transactor = (*Store)(nil)
)

// Options are the choices of a store. The zero value is the safe one.
type Options struct {
	// UnsafeAsyncCommit accepts a server whose synchronous_commit is off: a crash of the
	// server may lose the last commits, and an effect that was recorded may be repeated.
	UnsafeAsyncCommit bool
	// ListenURL is the URL of the same database for Listen, if the one of the store goes through a
	// pooler that does not know LISTEN, as PgBouncer in transaction mode. Empty means the URL
	// of the store.
	ListenURL string
	// Existing refuses a database that has no tables of a store, with ErrNoStore, where else they are
	// made.
	Existing bool
}

// Errors of opening and using a store.
var (
	// ErrUnreachable: no connection could be made. Nothing was written.
	ErrUnreachable = errors.New("pawl: the database server cannot be reached")
	// ErrAccess: the server does not let this user in, or not write.
	ErrAccess = errors.New("pawl: the database refuses this user")
	// ErrNoStore: there is no such database, or it has no tables of a store and is not to get any.
	ErrNoStore = errors.New("pawl: the database has no store in it")
	// ErrUnsafe: the server's settings would lose what it acknowledged, or garble it.
	ErrUnsafe = errors.New("pawl: the database may lose what it acknowledged")
	// ErrClosed: the store was closed.
	ErrClosed = group.ErrClosed
	// ErrInTransaction: code inside Transact called the store. It has to go through the
	// transaction it was given.
	ErrInTransaction = lent.ErrInTransaction
)

// patience bounds a transaction of the store's own. What becomes of one that takes longer is
// unknown, as after a lost connection.
const patience = time.Minute

// Open opens the store in a database, which gets the store's tables if it has none. The URL is
// one of libpq (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS),
// with the parameters of pgxpool beside it: pool_max_conns is the number of connections, at
// least one for every transaction that is lent. A nil opts is the zero Options.
//
// An attempt to connect takes at most 10 s, unless the URL has a connect_timeout. When the server goes away later, calls wait
// up to 10 s for it, as long as it is certain that they did nothing yet.
//
// The error wraps ErrUnreachable, ErrAccess, ErrUnsafe, ErrNoStore, journal.ErrForeignStore if there are
// tables of our names that are not ours, or journal.ErrNewerStore; or it is a *pawl.ConfigError of a URL.
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &pawl.ConfigError{Field: "the URL of the database", Problem: err.Error()}
	}
	o := cmp.Or(opts, &Options{})
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = outage
	}
	config.AfterConnect = o.refuseUnsafe
	s := &Store{listens: config.ConnConfig}
	if o.ListenURL != "" {
		if s.listens, err = pgx.ParseConfig(o.ListenURL); err != nil {
			return nil, &pawl.ConfigError{Field: "Options.ListenURL", Problem: err.Error()}
		}
		s.listens.ConnectTimeout = cmp.Or(s.listens.ConnectTimeout, outage)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fault("open", err)
	}
	s.sql = stdlib.OpenDBFromPool(s.pool)
	err = migrate(ctx, s.pool, o.Existing)
	if err == nil {
		s.backend, err = backendOf(ctx, s.pool)
	}
	if err == nil && o.ListenURL != "" {
		err = s.checkListen(ctx)
	}
	if err != nil {
		s.pool.Close()
		return nil, fault("open", err)
	}
	return s, nil
}

// backendOf reads the name of the store in a database.
func backendOf(ctx context.Context, db querier) (string, error) {
	var id string
	err := db.QueryRow(ctx, `SELECT store FROM pawl_meta`).Scan(&id)
	return "postgres/" + id, err
}

// refuseUnsafe refuses a connection under whose settings the store does not keep what it promises.
func (o *Options) refuseUnsafe(ctx context.Context, conn *pgx.Conn) error {
	var commit, isolation, encoding string
	err := conn.QueryRow(ctx, `SELECT current_setting('synchronous_commit'), current_setting('default_transaction_isolation'), current_setting('server_encoding')`).
		Scan(&commit, &isolation, &encoding)
	switch {
	case err != nil:
		return err
	case commit == "off" && !o.UnsafeAsyncCommit:
		return fmt.Errorf("%w: synchronous_commit is off", ErrUnsafe)
	case isolation != "read committed" && isolation != "read uncommitted": // in PostgreSQL they are one
		return fmt.Errorf("%w: default_transaction_isolation is %q, where what others have just committed is not seen; add default_transaction_isolation=read%%20committed to the URL, or set it for the role",
			ErrUnsafe, isolation)
	case encoding != "UTF8":
		return fmt.Errorf("%w: its encoding is %s, not UTF8", ErrUnsafe, encoding)
	}
	return nil
}

// Backend names the store: "postgres/" and the id that it was given when its tables were
// made, so it is equal in all processes.
func (s *Store) Backend() string { return s.backend }

// Close waits for the writes that were accepted and closes the store. Later calls return
// ErrClosed.
func (s *Store) Close() error {
	if s.queue.Close() {
		s.sql.Close()
		s.pool.Close()
	}
	return nil
}

// ready refuses what cannot begin.
func (s *Store) ready(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.queue.Closed():
		return ErrClosed
	case lent.Has(ctx, s):
		return ErrInTransaction
	}
	return nil
}

// maxID is the most bytes of an id: two of them and what a batch adds fit in an entry of an index.
const maxID = 1024

// fits refuses an id that no index of the database takes. A run is not to learn that from its
// first batch.
func fits(what, id string) error {
	switch {
	case len(id) > maxID:
		return &pawl.ConfigError{Field: what, Problem: fmt.Sprintf("has %d bytes, and a PostgreSQL store takes %d", len(id), maxID)}
	case strings.ContainsRune(id, 0), !utf8.ValidString(id):
		return &pawl.ConfigError{Field: what, Problem: "is no text that PostgreSQL takes: it has a NUL, or is not UTF-8"}
	}
	return nil
}

// begun is the context of what has begun: it ends when patience does.
func begun(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// outage is how long a call waits for a server that is away, as while it is started again: what
// drives a run is not to give it up because of that, and with it the tools that are at work.
const outage = 10 * time.Second

// insist does what is refused without having been begun again and again, as long as the server is away.
func (s *Store) insist(ctx context.Context, do func() (begun bool, err error)) error {
	end := time.Now().Add(outage)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		begun, err := do()
		if err == nil || begun || !away(err) || time.Until(end) < pause || s.queue.Closed() {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// away says that an error is of a server that may be back in a moment: it is the end of its connection, or it takes none.
func away(err error) bool {
	if state := sqlState(err); state != "" {
		return strings.HasPrefix(state, "57P")
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, broken := errors.AsType[*net.OpError](err)
	return connecting || broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// unsent says that an error is of a statement that the server has not got.
func unsent(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	return connecting || pgconn.SafeToRetry(err)
}

// query reads a row, and is a transaction of its own. The error is pgx.ErrNoRows without one.
func (s *Store) query(ctx context.Context, q string, args []any, dest ...any) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	err := s.insist(ctx, func() (bool, error) {
		err := s.pool.QueryRow(ctx, q, args...).Scan(dest...)
		return !unsent(err), err
	})
	if err != nil && err != pgx.ErrNoRows {
		return fault("query", err)
	}
	return err
}

// each reads the rows of a result, in one moment; dest are set for each call of row. It only reads, so it
// is done again as long as there was no row.
func (s *Store) each(ctx context.Context, q string, args []any, dest []any, row func() error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	var own error // of row
	err := s.insist(ctx, func() (some bool, err error) {
		rows, err := s.pool.Query(ctx, q, args...)
		if err != nil {
			return false, err
		}
		defer rows.Close()
		for rows.Next() {
			some = true
			if err := rows.Scan(dest...); err != nil {
				return some, err
			}
			if own = row(); own != nil {
				return some, nil
			}
		}
		return some, rows.Err()
	})
	switch {
	case own != nil:
		return own
	case err != nil:
		return fault("query", err)
	}
	return nil
}

// sqlState returns the code of the server's error, empty if it is none
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// fault says what failed in the database, and what that means here.
func fault(op string, err error) error {
	if config, ok := errors.AsType[*pawl.ConfigError](err); ok {
		return config
	}
	for _, known := range []error{ErrUnsafe, ErrAccess, ErrNoStore, journal.ErrForeignStore, journal.ErrNewerStore, journal.ErrCorrupt} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch sqlState(err) {
	case "28000", "28P01", "42501", "25006":
		return fmt.Errorf("%w: %s: %w", ErrAccess, op, err)
	case "3D000":
		return fmt.Errorf("%w: %s: %w", ErrNoStore, op, err)
	case "26000", "42P05":
		return fmt.Errorf("pawl: store: %s: the database is behind a pooler that does not know prepared statements, as PgBouncer before 1.21; add default_query_exec_mode=exec to its URL: %w", op, err)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return fmt.Errorf("%w: %s: %w", ErrUnreachable, op, err)
	}
	return fmt.Errorf("pawl: store: %s: %w", op, err)
}
