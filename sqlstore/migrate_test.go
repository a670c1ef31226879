package sqlstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/journal"
)

// A file of schema 1, made by the version that had it, opens, and its runs are where they were: one that ended, one that
// waits on the same session, one that failed on a conversation, and a fork with a session of its own.
func TestOpenSchema1(t *testing.T) {
	dump, err := os.ReadFile("testdata/schema1.sql")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pawl.db")
	database(t, path, string(dump))
	s := open(t, path, nil)
	got, err := s.List(t.Context(), journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	want := []journal.RunInfo{
		{Agent: "support", Run: "fork", Session: "other", Head: 11},
		{Agent: "support", Run: "failed", Head: 4},
		{Agent: "support", Run: "waiting", Session: "chat", Head: 7, Inbox: 1},
		{Run: "ended", Session: "chat", Head: 9, Ended: true},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(journal.RunInfo{}, "Created", "Updated")); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	for _, info := range want {
		if recs, err := s.Read(t.Context(), info.Run, 0); err != nil || len(recs) != int(info.Head) {
			t.Errorf("run %s has %d facts, %v", info.Run, len(recs), err)
		}
	}
	backend := s.Backend()
	for run, tt := range map[string]struct {
		b    *journal.Started
		open string
	}{
		"chats":      {&journal.Started{Session: &journal.SessionRef{ID: "chat", Backend: backend}}, "waiting"},
		"elsewhere":  {&journal.Started{Session: &journal.SessionRef{ID: "chat", Backend: "another"}}, ""},
		"others":     {&journal.Started{Session: &journal.SessionRef{ID: "other", Backend: backend}}, "fork"},
		"conversing": {&journal.Started{Conversation: "conv_1"}, "failed"},
	} {
		tt.b.Run = run
		err := s.Append(t.Context(), run, claim(t, s, run), 0, []journal.Record{encode("", tt.b)}, journal.SoleRun{})
		if busy, _ := errors.AsType[*journal.BusyError](err); busy != nil && busy.Open != tt.open || busy == nil && (err != nil || tt.open != "") {
			t.Errorf("run %s: %v, want open run %q", run, err, tt.open)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, nil)
}

// A store of schema 1 has the same tables once it is opened as one that was made today.
func TestSchemasAreEqual(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.db")
	database(t, old, schema1+"; UPDATE pawl_meta SET version = 1")
	made := filepath.Join(dir, "made.db")
	var schemas []string
	for _, path := range []string{old, made} {
		open(t, path, nil)
		schemas = append(schemas, query[string](t, raw(t, path), `SELECT group_concat(name || ': ' || sql, char(10)) FROM (SELECT * FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name)`))
	}
	if diff := cmp.Diff(schemas[1], schemas[0]); diff != "" {
		t.Errorf("-made +migrated:\n%s", diff)
	}
}
