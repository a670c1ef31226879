package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"modernc.org/sqlite"
)

// database makes a database with other means than ours.
func database(t *testing.T, path, statements string) {
	t.Helper()
	db := raw(t, path)
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// raw opens a database with one connection and SQLite's own settings.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "_txlock=immediate"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func query[T any](t *testing.T, db *sql.DB, q string, args ...any) T {
	t.Helper()
	var v T
	if err := db.QueryRow(q, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return v
}

// files are the contents of a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOpenRefuses(t *testing.T) {
	const ours = `CREATE TABLE pawl_meta (application TEXT NOT NULL, version INTEGER NOT NULL, store TEXT NOT NULL);`
	for _, tt := range []struct {
		name       string
		statements string // of a database,
		content    string // or the content of a file
		want       error
		text       string
	}{
		{name: "table of another program", statements: `CREATE TABLE orders (id INTEGER)`,
			want: journal.ErrForeignStore, text: "table orders"},
		{name: "in WAL mode", statements: `PRAGMA journal_mode=WAL; CREATE TABLE orders (id INTEGER)`,
			want: journal.ErrForeignStore, text: "table orders"},
		{name: "Python's tables and another", statements: pythonTables + `CREATE TABLE message_structure (id INTEGER)`,
			want: journal.ErrForeignStore, text: "table message_structure"},
		{name: "Python's tables and a view", statements: pythonTables + `CREATE VIEW latest AS SELECT * FROM agent_messages`,
			want: journal.ErrForeignStore, text: "view latest"},
		{name: "Python's tables and a trigger",
			statements: pythonTables + `CREATE TRIGGER audit AFTER INSERT ON agent_messages BEGIN SELECT 1; END`,
			want:       journal.ErrForeignStore, text: "trigger audit"},
		{name: "one of Python's tables", statements: `CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at, updated_at)`,
			want: journal.ErrForeignStore, text: "table agent_messages"},
		{name: "Python's table with other columns",
			statements: pythonTables + `ALTER TABLE agent_sessions ADD COLUMN total_tokens INTEGER`,
			want:       journal.ErrForeignStore, text: "session_id created_at updated_at total_tokens"},
		{name: "pawl_meta of something else", statements: `CREATE TABLE pawl_meta (id INTEGER)`,
			want: journal.ErrForeignStore, text: "pawl_meta"},
		{name: "pawl_meta of another application", statements: ours + `INSERT INTO pawl_meta VALUES ('example.org/x', 1, '')`,
			want: journal.ErrForeignStore, text: "example.org/x"},
		{name: "a newer schema", statements: ours + `INSERT INTO pawl_meta VALUES ('github.com/pawl-agents/pawl', 5, '')`,
			want: journal.ErrNewerStore, text: "version 5, this one knows 4"},
		{name: "a text file", content: strings.Repeat("not a database\n", 1000), want: ErrNotDatabase},
		{name: "a short file", content: "hello\n", want: ErrNotDatabase},
		{name: "a header alone", content: "SQLite format 3\x00", want: ErrNotDatabase},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.db")
			if tt.statements != "" {
				database(t, path, tt.statements)
			} else if err := os.WriteFile(path, []byte(tt.content), 0o666); err != nil {
				t.Fatal(err)
			}
			before := files(t, dir)
			s, err := OpenSQLite(path, nil)
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, tt.want) || !strings.Contains(fmt.Sprint(err), tt.text) || !strings.HasPrefix(fmt.Sprint(err), "pawl: ") {
				t.Errorf("OpenSQLite: %v, want %v with %q", err, tt.want, tt.text)
			}
			if diff := cmp.Diff(before, files(t, dir)); diff != "" {
				t.Errorf("files changed:\n%.500s", diff)
			}
		})
	}
	if !errors.Is(ErrNotDatabase, journal.ErrForeignStore) {
		t.Error("ErrNotDatabase does not wrap journal.ErrForeignStore")
	}
}

// A foreign database whose tables are in its WAL file only, because its program
// runs or crashed, is recognised and keeps every byte.
func TestOpenRefusesDatabaseInUse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	db := raw(t, path)
	for _, s := range []string{`PRAGMA journal_mode=WAL`, `CREATE TABLE orders (id INTEGER)`} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	crashed := t.TempDir()
	for name, data := range files(t, dir) {
		if name == "x.db-shm" {
			continue
		}
		if err := os.WriteFile(filepath.Join(crashed, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{crashed, dir} {
		before := files(t, dir)
		if len(before["x.db-wal"]) == 0 {
			t.Fatal("the table is not in the WAL file")
		}
		if _, err := OpenSQLite(filepath.Join(dir, "x.db"), nil); !errors.Is(err, journal.ErrForeignStore) {
			t.Errorf("OpenSQLite: %v, want ErrForeignStore", err)
		}
		after := files(t, dir)
		for _, name := range []string{"x.db", "x.db-wal"} {
			if before[name] != after[name] {
				t.Errorf("%s changed", name)
			}
		}
	}
}

func TestOpenBadInput(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name, path string
		opts       *Options
	}{
		{"no path", "", nil},
		{"a directory", dir, nil},
		{"a directory that is not there", filepath.Join(dir, "no", "x.db"), nil},
		{"an unknown sync", filepath.Join(dir, "x.db"), &Options{Sync: 3}},
		{"a negative sync", filepath.Join(dir, "x.db"), &Options{Sync: -1}},
		{"a negative timeout", filepath.Join(dir, "x.db"), &Options{BusyTimeout: -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := OpenSQLite(tt.path, tt.opts)
			if err == nil {
				s.Close()
				t.Fatal("the store was opened")
			}
			if !strings.HasPrefix(err.Error(), "pawl: ") || !strings.Contains(err.Error(), tt.path) {
				t.Errorf("error %q does not begin with pawl: or does not name the path", err)
			}
		})
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("files were made: %v", slices.Collect(maps.Keys(got)))
	}
}

// A migration that fails leaves the schema it found.
func TestMigrationIsOneTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	database(t, path, pythonTables+`CREATE INDEX pawl_runs_session ON agent_messages (session_id)`)
	s, err := OpenSQLite(path, nil)
	if err == nil {
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "migration to version 1") {
		t.Fatalf("OpenSQLite: %v, want the migration's error", err)
	}
	db := raw(t, path)
	if got := query[string](t, db, `SELECT group_concat(name, ' ' ORDER BY name) FROM sqlite_schema WHERE type = 'table'`); got != "agent_messages agent_sessions sqlite_sequence" {
		t.Errorf("tables after the failed migration: %s", got)
	}
	if _, err := db.Exec(`DROP INDEX pawl_runs_session`); err != nil {
		t.Fatal(err)
	}
	open(t, path, nil)
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a ?b#c%20 'ü.db")
	first, err := OpenSQLite(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	recs, items := turn()
	claim, err := first.Claim(t.Context(), "run", journal.ClaimRequest{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Append(t.Context(), "run", claim.Epoch, 0, recs, first.Session("s").Companion("run/1", items)); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(maps.Keys(files(t, dir))); !slices.Equal(got, []string{"a ?b#c%20 'ü.db"}) {
		t.Errorf("a closed store has the files %q", got)
	}

	again := open(t, path, nil)
	if got, err := again.Read(t.Context(), "run", 0); err != nil || !slices.Equal(got, recs) {
		t.Errorf("Read = %v, %v", got, err)
	}
	if got, err := again.Session("s").Items(t.Context(), -1); err != nil || !slices.Equal(got, items) {
		t.Errorf("Items = %v, %v", got, err)
	}
	if got := again.Session("s").Backend(); got != first.Backend() || got != again.Backend() || !strings.HasPrefix(got, "sqlite/") {
		t.Errorf("backend %q, was %q", got, first.Backend())
	}
	if other := open(t, filepath.Join(dir, "other.db"), nil); other.Backend() == first.Backend() {
		t.Errorf("two stores have the name %q", other.Backend())
	}
}

func TestSettingsAreInForce(t *testing.T) {
	for sync, want := range map[Sync]int{SyncFull: 2, UnsafeSyncNormal: 1, UnsafeSyncOff: 0} {
		s := open(t, filepath.Join(t.TempDir(), "x.db"), &Options{Sync: sync, BusyTimeout: 1234 * time.Millisecond})
		for name, pool := range map[string]*sql.DB{"write": s.write, "read": s.read} {
			for pragma, want := range map[string]int{"synchronous": want, "foreign_keys": 1, "busy_timeout": 1234} {
				if got := query[int](t, pool, "PRAGMA "+pragma); got != want {
					t.Errorf("Sync %d: %s of the %s pool is %d, want %d", sync, pragma, name, got, want)
				}
			}
			if got := query[string](t, pool, "PRAGMA journal_mode"); got != "wal" {
				t.Errorf("Sync %d: journal_mode of the %s pool is %s", sync, name, got)
			}
		}
		if _, err := s.read.Exec(`DELETE FROM pawl_runs`); err == nil {
			t.Error("the read pool can write")
		}
	}
}

func TestConnectionWithOtherSettingsIsRefused(t *testing.T) {
	base, err := sqlite.NewConnector(dsn(filepath.Join(t.TempDir(), "x.db"), "_synchronous=NORMAL"))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector{base, []setting{{"synchronous", "2"}}, nil})
	defer db.Close()
	err = db.Ping()
	if want := "the database has synchronous=1 where 2 is needed"; err == nil || err.Error() != want {
		t.Errorf("Ping: %v, want %q", err, want)
	}
}

// Many open a new file at once: one makes the schema, nobody fails.
func TestOpenAtOnce(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "x.db")
		backends := make([]string, 8)
		var wg sync.WaitGroup
		for i := range backends {
			wg.Go(func() {
				s, err := OpenSQLite(path, &Options{BusyTimeout: time.Minute})
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				backends[i] = s.Backend()
				if err := s.Session("s").Append(context.Background(), []item.Item{item.UserText("hi")}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if all := slices.Compact(backends); len(all) != 1 {
			t.Errorf("backends %q", all)
		}
		if items, err := open(t, path, nil).Session("s").Items(t.Context(), -1); err != nil || len(items) != 8 {
			t.Errorf("%d items, %v; want 8", len(items), err)
		}
	}
}
