package pgstore

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pawl-agents/pawl/journal"
)

// application is what pawl_meta says the tables belong to.
const application = "github.com/pawl-agents/pawl"

//go:embed schema1.sql
var schema1 string

// migrations bring a database to the current schema: the first from nothing to version 1, and
// so on. A released one is never changed.
var migrations = [...]string{schema1}

// sqlMigrating is a lock that whoever migrates holds until its transaction ends: processes that
// start together migrate once.
const sqlMigrating = `SELECT pg_advisory_xact_lock(8102097708)`

// sqlTables says whether there are tables of our names. It reads the catalogue, because
// to_regclass may answer from before the lock.
const sqlTables = `SELECT coalesce(bool_or(relname = 'pawl_meta'), false), coalesce(bool_or(relname = 'pawl_runs'), false)
	FROM pg_class WHERE relname IN ('pawl_meta', 'pawl_runs') AND pg_table_is_visible(oid)`

// taken are what the server says when something has a name of ours already, or is not what we know by that name: a
// duplicate table, function or object, an undefined column, and types that do not go together.
var taken = []string{"42P07", "42723", "42710", "42703", "42804", "42830"}

// migrate brings the database to the current schema. One of the current version is opened
// without waiting for anybody. One without a schema may have to have one.
func migrate(ctx context.Context, pool *pgxpool.Pool, existing bool) error {
	version, err := schemaVersion(ctx, pool)
	switch {
	case err != nil || version == len(migrations):
		return err
	case version == 0 && existing:
		return ErrNoStore
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlMigrating); err != nil {
			return err
		}
		version, err := schemaVersion(ctx, tx)
		if err != nil {
			return err
		}
		for ; version < len(migrations); version++ {
			_, err := tx.Exec(ctx, migrations[version])
			if slices.Contains(taken, sqlState(err)) {
				err = fmt.Errorf("%w: %w", journal.ErrForeignStore, err)
			}
			if err != nil {
				return fmt.Errorf("pawl: migration to version %d: %w", version+1, err)
			}
			if _, err := tx.Exec(ctx, `UPDATE pawl_meta SET version = $1`, version+1); err != nil {
				return fmt.Errorf("pawl: migration to version %d: %w", version+1, err)
			}
		}
		return nil
	})
}

// A querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, q string, args ...any) pgx.Row
}

// schemaVersion returns the version of the schema in a database, 0 for one without our
// tables. The error wraps journal.ErrForeignStore or journal.ErrNewerStore if they are not ours
// to open. Other tables are none of our business: a database is shared.
func schemaVersion(ctx context.Context, db querier) (int, error) {
	var meta, ours bool
	err := db.QueryRow(ctx, sqlTables).Scan(&meta, &ours)
	switch {
	case err != nil:
		return 0, err
	case !meta && ours:
		return 0, fmt.Errorf("%w: it has a table pawl_runs, and no pawl_meta", journal.ErrForeignStore)
	case !meta:
		return 0, nil
	}
	var name string
	var version int
	switch err := db.QueryRow(ctx, `SELECT application, version FROM pawl_meta`).Scan(&name, &version); {
	case err == pgx.ErrNoRows || sqlState(err) == "42703":
		return 0, fmt.Errorf("%w: its table pawl_meta is another", journal.ErrForeignStore)
	case err != nil:
		return 0, err
	case name != application:
		return 0, fmt.Errorf("%w: pawl_meta names the application %q", journal.ErrForeignStore, name)
	case version > len(migrations):
		return 0, fmt.Errorf("%w: its schema has version %d, this one knows %d", journal.ErrNewerStore, version, len(migrations))
	}
	return version, nil
}
