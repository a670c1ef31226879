package sqlstore

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/item"
)

// pythonTables are the tables that SQLiteSession of the Python SDK makes.
const pythonTables = `
CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE);
CREATE INDEX idx_agent_messages_session_id ON agent_messages (session_id, id);
`

func TestOpenPythonFile(t *testing.T) {
	for name, tables := range map[string]string{
		"current": pythonTables,
		"WAL":     `PRAGMA journal_mode=WAL;` + pythonTables,
		// The index was over created_at until 2025.
		"older": strings.Replace(pythonTables, "(session_id, id)", "(session_id, created_at)", 1),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "conversations.db")
			// As json.dumps writes: spaces after , and :, everything beyond ASCII escaped.
			rows := []string{
				`{"role": "user", "content": "Gr\u00fc\u00dfe \ud83d\ude00"}`,
				`{"id": "msg_1", "type": "message", "content": [{"type": "output_text", "text": "a</b>", "annotations": []}], "score": 1e-07, "n": 1.0}`,
			}
			database(t, path, tables+`INSERT INTO agent_sessions (session_id, created_at) VALUES ('c', '2025-01-01 00:00:00');`+
				`INSERT INTO agent_messages (session_id, message_data) VALUES ('c', '`+rows[0]+`'), ('c', '`+rows[1]+`')`)

			s := open(t, path, nil)
			items, err := s.Session("c").Items(t.Context(), -1)
			if err != nil || len(items) != 2 || items[0].Raw() != rows[0] || items[1].Raw() != rows[1] {
				t.Errorf("Items = %v, %v; want the rows as they are", items, err)
			}
			if err := s.Session("c").Append(t.Context(), []item.Item{item.UserText("from Go")}); err != nil {
				t.Error(err)
			}
			db := raw(t, path)
			if got := query[string](t, db, `SELECT group_concat(message_data, char(10)) FROM agent_messages WHERE session_id = 'c'`); got != rows[0]+"\n"+rows[1]+"\n"+`{"role":"user","content":"from Go"}` {
				t.Errorf("Python's table has %s", got)
			}
			if got := query[string](t, db, `SELECT created_at FROM agent_sessions WHERE updated_at > created_at`); got != "2025-01-01T00:00:00Z" {
				t.Errorf("the session was made at %s", got)
			}
			if got := query[int](t, db, `SELECT version FROM pawl_meta`); got != 4 {
				t.Errorf("schema version %d, want 4", got)
			}
		})
	}
}

// The definitions of Python's tables must not depend on who made them.
func TestPythonTablesAreEqual(t *testing.T) {
	dir := t.TempDir()
	database(t, filepath.Join(dir, "python.db"), pythonTables)
	open(t, filepath.Join(dir, "ours.db"), nil)
	columns := func(name string) []string {
		db := raw(t, filepath.Join(dir, name))
		all, err := texts(t.Context(), db, `SELECT concat_ws(' ', m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk)
			FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.tbl_name LIKE 'agent\_%' ESCAPE '\'
			UNION ALL SELECT concat_ws(' ', m.name, f."table", f."from", f."to", f.on_delete)
			FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.name LIKE 'agent\_%' ESCAPE '\'
			UNION ALL SELECT concat_ws(' ', i.name, c.name) FROM sqlite_schema i, pragma_index_info(i.name) c
			WHERE i.type = 'index' AND i.tbl_name LIKE 'agent\_%' ESCAPE '\' ORDER BY 1`)
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		return all
	}
	if diff := cmp.Diff(columns("python.db"), columns("ours.db")); diff != "" {
		t.Errorf("python -, ours +\n%s", diff)
	}
}
