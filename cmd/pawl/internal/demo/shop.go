package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// ErrForeignShop: the file is not the demo's shop.
var ErrForeignShop = errors.New("pawl: the file is not the demo's shop")

// Shop is the database of a small shop. It knows nothing of Pawl: runs reach it through the tools of the
// desk. It is safe for concurrent use.
type Shop struct {
	db *sql.DB
	// around runs every write that the desk makes.
	around func(kind Write, write func() error) error
}

// shopID marks the file as the demo's shop (https://www.sqlite.org/pragma.html#pragma_application_id).
const shopID = 0x50617764

const shopSchema = `
CREATE TABLE IF NOT EXISTS customers (
	id    INTEGER PRIMARY KEY,
	name  TEXT NOT NULL,
	email TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE IF NOT EXISTS orders (
	id       INTEGER PRIMARY KEY,
	customer INTEGER NOT NULL REFERENCES customers (id),
	item     TEXT NOT NULL,
	cents    INTEGER NOT NULL,
	express  INTEGER NOT NULL,
	status   TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS orders_customer ON orders (customer);
CREATE TABLE IF NOT EXISTS refunds (
	id       INTEGER PRIMARY KEY,
	key      TEXT NOT NULL UNIQUE,
	run      TEXT NOT NULL,
	call     TEXT NOT NULL,
	"order"  INTEGER NOT NULL REFERENCES orders (id),
	cents    INTEGER NOT NULL,
	reason   TEXT NOT NULL,
	-- How often a refund was asked for with this key.
	requests INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE IF NOT EXISTS mails (
	id        INTEGER PRIMARY KEY,
	run       TEXT NOT NULL,
	call      TEXT NOT NULL,
	recipient TEXT NOT NULL,
	subject   TEXT NOT NULL,
	body      TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS tickets (
	number   INTEGER PRIMARY KEY,
	customer INTEGER NOT NULL REFERENCES customers (id),
	"order"  INTEGER NOT NULL REFERENCES orders (id),
	text     TEXT NOT NULL,
	mode     TEXT NOT NULL,
	model    TEXT NOT NULL,
	base_url TEXT NOT NULL
) STRICT;
-- Conversations kept the plain way, for runs whose session is not in the run store.
CREATE TABLE IF NOT EXISTS conversations (
	id      INTEGER PRIMARY KEY,
	session TEXT NOT NULL,
	item    TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS conversations_session ON conversations (session, id);
-- What demos are still to let go wrong, once each.
CREATE TABLE IF NOT EXISTS faults (
	session TEXT PRIMARY KEY,
	fault   TEXT NOT NULL
) STRICT;
`

const (
	seededCustomers = 80
	seededOrders    = 320
	firstOrder      = 5001
	firstTicket     = 1001
)

// OpenShop opens the shop in a file, which is made and filled if there is none. The error wraps
// ErrForeignShop if the file is something else, which then is left alone.
func OpenShop(ctx context.Context, path string) (*Shop, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := checkShop(ctx, abs); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", shopDSN(abs, "_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))
	if err != nil {
		return nil, fmt.Errorf("pawl: open the shop %q: %w", path, err)
	}
	s := &Shop{db: db, around: func(_ Write, write func() error) error { return write() }}
	if err := s.found(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("pawl: open the shop %q: %w", path, err)
	}
	return s, nil
}

// checkShop looks at a file that exists without changing it.
func checkShop(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", shopDSN(path, "_pragma=query_only(1)"))
	if err != nil {
		return err
	}
	defer db.Close()
	var id, tables int
	err = db.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&id, &tables)
	if err != nil || id != shopID && tables > 0 {
		return fmt.Errorf("%w: %q", ErrForeignShop, path)
	}
	return nil
}

func shopDSN(path, options string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "_txlock=immediate&_pragma=busy_timeout(5000)&" + options}
	return u.String()
}

// Close closes the database.
func (s *Shop) Close() error { return s.db.Close() }

// found makes the tables and their rows, unless they are there.
func (s *Shop) found(ctx context.Context) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		var id int
		if err := tx.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, shopSchema); err != nil || id == shopID {
			return err
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", shopID)); err != nil {
			return err
		}
		return seed(ctx, tx)
	})
}

// seed fills the shop, every time with the same rows.
func seed(ctx context.Context, tx *sql.Tx) error {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range seededCustomers {
		name, email := customerOf(i)
		if _, err := tx.ExecContext(ctx, `INSERT INTO customers VALUES (?, ?, ?)`, i+1, name, email); err != nil {
			return err
		}
	}
	for i := range seededOrders {
		p := products[rnd.IntN(len(products))]
		express := rnd.IntN(2) * expressCents
		status := [...]string{"delivered", "delivered", "returned", "lost"}[rnd.IntN(4)]
		if _, err := tx.ExecContext(ctx, `INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)`,
			firstOrder+i, 1+rnd.IntN(seededCustomers), p.name, p.cents, express, status); err != nil {
			return err
		}
	}
	return nil
}

// inTx runs f in a transaction that holds the write lock from its beginning.
func (s *Shop) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

const expressCents = 690

type product struct {
	name  string
	cents int64
}

var products = [...]product{
	{"copper kettle", 8400}, {"desk lamp", 6250}, {"walnut tray", 5900}, {"enamel teapot", 7300}, {"wool blanket", 11900},
	{"cast iron pan", 9450}, {"glass carafe", 5250}, {"linen apron", 5400}, {"paper lantern", 6800}, {"chess set", 14900},
}

// customerOf returns the name and the address of seeded customer i.
func customerOf(i int) (name, email string) {
	first := [...]string{"Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farah", "Goran", "Hana", "Ivo", "Jun"}
	last := [...]string{"Lindqvist", "Okafor", "Moretti", "Petrov", "Yilmaz", "Haddad", "Kovac", "Novak"}
	f, l := first[i%len(first)], last[(i/len(first)+i)%len(last)]
	return f + " " + l, strings.ToLower(f+"."+l) + "@example.com"
}
