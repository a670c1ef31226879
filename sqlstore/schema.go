package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/journal"
)

// application is what pawl_meta says the database belongs to.
const application = "github.com/pawl-agents/pawl"

// migrations bring a database to the current schema: the first from nothing, or
// from the two tables of the Python SDK, to version 1, and so on. A released one is
// never changed.
var migrations = [...]string{schema1, schema2, schema3, schema4}

// schema1 is version 1. The definitions of the agent_ tables and their index are
// those of the Python SDK; files of its older versions have another index of the
// same name, which is left as it is.
const schema1 = `
CREATE TABLE pawl_meta (
	application TEXT NOT NULL,
	version     INTEGER NOT NULL,
	store       TEXT NOT NULL
) STRICT;
INSERT INTO pawl_meta VALUES ('` + application + `', 0, lower(hex(randomblob(16))));

CREATE TABLE pawl_runs (
	id      INTEGER PRIMARY KEY,
	run     TEXT NOT NULL UNIQUE,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL,
	head    INTEGER NOT NULL DEFAULT 0,
	session TEXT,
	ended   INTEGER NOT NULL DEFAULT 0,
	epoch   INTEGER NOT NULL DEFAULT 0,
	-- The claim of that epoch; until is NULL when it was released.
	until   INTEGER,
	host    TEXT NOT NULL DEFAULT '',
	boot    TEXT NOT NULL DEFAULT '',
	pid     INTEGER NOT NULL DEFAULT 0,
	start   TEXT NOT NULL DEFAULT ''
) STRICT;
-- An index ends with the id, so each gives its runs in order.
CREATE INDEX pawl_runs_open ON pawl_runs (id) WHERE ended = 0;
CREATE INDEX pawl_runs_session ON pawl_runs (session) WHERE session IS NOT NULL;
CREATE INDEX pawl_runs_session_open ON pawl_runs (session) WHERE session IS NOT NULL AND ended = 0;

CREATE TABLE pawl_facts (
	-- The run's number in the upper 32 bits, the fact's in the lower.
	id      INTEGER PRIMARY KEY,
	run     INTEGER AS (id >> 32),
	seq     INTEGER AS (id & 0xffffffff),
	kind    TEXT NOT NULL,
	version INTEGER NOT NULL,
	frame   TEXT NOT NULL,
	time    INTEGER NOT NULL,
	payload TEXT NOT NULL,
	salt    BLOB NOT NULL,
	hash    BLOB NOT NULL
) STRICT;

CREATE TABLE pawl_inbox (
	id       INTEGER PRIMARY KEY,
	run      INTEGER NOT NULL REFERENCES pawl_runs (id),
	key      TEXT NOT NULL,
	kind     TEXT NOT NULL,
	version  INTEGER NOT NULL,
	frame    TEXT NOT NULL,
	time     INTEGER NOT NULL,
	payload  TEXT NOT NULL,
	salt     BLOB NOT NULL,
	hash     BLOB NOT NULL,
	consumed INTEGER NOT NULL DEFAULT 0,
	UNIQUE (run, key)
) STRICT;

CREATE TABLE pawl_batches (
	session_id TEXT NOT NULL,
	batch_id   TEXT NOT NULL,
	PRIMARY KEY (session_id, batch_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS agent_sessions (
	session_id TEXT PRIMARY KEY,
	created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
	updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS agent_messages (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	session_id TEXT NOT NULL,
	message_data TEXT NOT NULL,
	created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
	FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS idx_agent_messages_session_id ON agent_messages (session_id, id);
`

// schema2 adds what tells apart the runs that continue one conversation, and an index
// of what waits in the inboxes. The newest of the facts that bind a run counts.
const schema2 = `
ALTER TABLE pawl_runs ADD COLUMN backend TEXT;
ALTER TABLE pawl_runs ADD COLUMN conversation TEXT;
CREATE INDEX pawl_runs_conversation_open ON pawl_runs (conversation) WHERE conversation IS NOT NULL AND ended = 0;
CREATE INDEX pawl_inbox_waiting ON pawl_inbox (run) WHERE consumed = 0;
UPDATE pawl_runs SET (backend, conversation) = (
	SELECT json_extract(payload, '$.session.backend'), json_extract(payload, '$.conv') FROM pawl_facts f
	WHERE f.id > pawl_runs.id << 32 AND f.id < (pawl_runs.id + 1) << 32 AND frame = '' AND kind IN ('started', 'forked')
	ORDER BY f.id DESC LIMIT 1)
WHERE ended = 0;
`

// schema3 adds when somebody should look at a run again, 0 while it has a claim.
const schema3 = `
ALTER TABLE pawl_runs ADD COLUMN due INTEGER NOT NULL DEFAULT 0;
CREATE INDEX pawl_runs_due ON pawl_runs (due) WHERE ended = 0;
`

// schema4 adds what a worker chooses a run by. Its index has no run that only an entry makes
// due.
const schema4 = `
ALTER TABLE pawl_runs ADD COLUMN agent    TEXT NOT NULL DEFAULT '';
ALTER TABLE pawl_runs ADD COLUMN queue    TEXT NOT NULL DEFAULT '';
ALTER TABLE pawl_runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
-- Entries of the inbox that whoever released the run had seen.
ALTER TABLE pawl_runs ADD COLUMN unread   INTEGER NOT NULL DEFAULT 0;
UPDATE pawl_runs SET agent = coalesce((
	SELECT json_extract(payload, '$.agent') FROM pawl_facts f
	WHERE f.id > pawl_runs.id << 32 AND f.id < (pawl_runs.id + 1) << 32 AND frame = '' AND kind = 'started' LIMIT 1), '')
WHERE ended = 0;
CREATE INDEX pawl_runs_lane ON pawl_runs (agent, queue, priority, due) WHERE ended = 0 AND due < ` + never + `;
`

// never is journal.Never in the store's unit.
const never = `4611686018427387904`

// A querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// schemaVersion returns the version of the schema in a database, 0 for one that is
// empty or holds only the tables of the Python SDK. The error wraps
// journal.ErrForeignStore or journal.ErrNewerStore if it is not ours to open.
func schemaVersion(ctx context.Context, db querier) (int, error) {
	objects, err := texts(ctx, db, `SELECT type || ' ' || name FROM sqlite_schema
		WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' AND type <> 'index'`)
	if err != nil {
		return 0, err
	}
	if slices.Contains(objects, "table pawl_meta") {
		return ownVersion(ctx, db)
	}
	if len(objects) == 0 {
		return 0, nil
	}
	return 0, pythonOnly(ctx, db, objects)
}

// ownVersion reads pawl_meta. Its columns application and version are in every
// version of the schema.
func ownVersion(ctx context.Context, db querier) (int, error) {
	rows, err := db.QueryContext(ctx, `SELECT application, version FROM pawl_meta`)
	if err != nil {
		return 0, fmt.Errorf("%w: pawl_meta: %w", journal.ErrForeignStore, err)
	}
	defer rows.Close()
	var name string
	var version int
	if rows.Next() {
		err = rows.Scan(&name, &version)
	}
	if err = cmp.Or(err, rows.Err()); err != nil {
		return 0, err
	}
	if name != application {
		return 0, fmt.Errorf("%w: pawl_meta names the application %q", journal.ErrForeignStore, name)
	}
	if version > len(migrations) {
		return 0, fmt.Errorf("%w: its schema has version %d, this one knows %d", journal.ErrNewerStore, version, len(migrations))
	}
	return version, nil
}

// pythonOnly checks that the objects are the two tables of the Python SDK, with
// their columns.
func pythonOnly(ctx context.Context, db querier, objects []string) error {
	tables := []struct{ name, columns string }{
		{"agent_sessions", "session_id created_at updated_at"},
		{"agent_messages", "id session_id message_data created_at"},
	}
	for _, o := range objects {
		if o != "table agent_sessions" && o != "table agent_messages" {
			return fmt.Errorf("%w: it has the %s", journal.ErrForeignStore, o)
		}
	}
	for _, t := range tables {
		got, err := texts(ctx, db, `SELECT name FROM pragma_table_info(?) ORDER BY cid`, t.name)
		if err != nil {
			return err
		}
		if columns := strings.Join(got, " "); columns != t.columns {
			return fmt.Errorf("%w: the columns of its table %s are %q", journal.ErrForeignStore, t.name, columns)
		}
	}
	return nil
}

// migrate brings the database to the current schema. It belongs in a transaction.
func migrate(ctx context.Context, db querier) error {
	version, err := schemaVersion(ctx, db)
	if err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		if _, err := db.ExecContext(ctx, migrations[version]); err != nil {
			return fmt.Errorf("pawl: migration to version %d: %w", version+1, err)
		}
		if _, err := db.ExecContext(ctx, `UPDATE pawl_meta SET version = ?`, version+1); err != nil {
			return fmt.Errorf("pawl: migration to version %d: %w", version+1, err)
		}
	}
	return nil
}

// texts returns the one column of a query's result.
func texts(ctx context.Context, db querier, query string, args ...any) ([]string, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}
