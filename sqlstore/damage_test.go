package sqlstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

func TestDamagedRows(t *testing.T) {
	for _, tt := range []struct{ name, damage, text string }{
		{"a payload", `UPDATE pawl_facts SET payload = '{}' WHERE seq = 2`, "does not have its hash, number 2"},
		{"a kind", `UPDATE pawl_facts SET kind = 'absent' WHERE seq = 1`, "does not have its hash, number 1"},
		{"a time", `UPDATE pawl_facts SET time = time + 1 WHERE seq = 3`, "does not have its hash, number 3"},
		{"a salt", `UPDATE pawl_facts SET salt = zeroblob(16) WHERE seq = 3`, "does not have its hash, number 3"},
		{"a short salt", `UPDATE pawl_facts SET salt = x'00' WHERE seq = 3`, "1 bytes where 16 belong"},
		{"a short hash", `UPDATE pawl_facts SET hash = substr(hash, 2) WHERE seq = 3`, "31 bytes where 32 belong"},
		{"the first fact", `DELETE FROM pawl_facts WHERE seq = 1`, "fact 1 is missing"},
		{"a fact", `DELETE FROM pawl_facts WHERE seq = 3`, "fact 3 is missing"},
		{"the last fact", `DELETE FROM pawl_facts WHERE seq = 4`, "facts up to 3 of 4"},
		{"all facts", `DELETE FROM pawl_facts`, "facts up to 0 of 4"},
		{"a fact too many", `UPDATE pawl_runs SET head = 3`, "facts up to 4 of 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
			epoch := claim(t, s, "run")
			first, _ := pair(0)
			second, _ := pair(2)
			if err := s.Append(t.Context(), "run", epoch, 0, append(first, second...)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.write.Exec(tt.damage); err != nil {
				t.Fatal(err)
			}
			recs, err := s.Read(t.Context(), "run", 0)
			if !errors.Is(err, journal.ErrCorrupt) || !strings.Contains(err.Error(), tt.text) || recs != nil {
				t.Errorf("Read: %v, %v; want ErrCorrupt with %q", recs, err, tt.text)
			}
		})
	}
}

func TestDamagedInbox(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	epoch := claim(t, s, "run")
	recs, _ := pair(0)
	if err := s.Append(t.Context(), "run", epoch, 0, recs); err != nil {
		t.Fatal(err)
	}
	if err := s.Post(t.Context(), "run", journal.Entry{Key: "k", Body: recs[0]}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write.Exec(`UPDATE pawl_inbox SET payload = '{"n":7}'`); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Inbox(t.Context(), "run"); !errors.Is(err, journal.ErrCorrupt) || got != nil {
		t.Errorf("Inbox: %v, %v; want ErrCorrupt", got, err)
	}
}

// A file whose pages were overwritten is refused when it is opened or read.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, err := OpenSQLite(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	epoch := claim(t, s, "run")
	recs, _ := pair(0)
	if err := s.Append(t.Context(), "run", epoch, 0, recs, s.Session("s").Companion("b", []item.Item{item.UserText("hi")})); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]int{"schema": 100, "tables": 4096} {
		data := []byte(string(whole))
		for i := from; i < len(data); i++ {
			data[i] = 0xa5
		}
		damaged := filepath.Join(t.TempDir(), "pawl.db")
		if err := os.WriteFile(damaged, data, 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSQLite(damaged, nil)
		if err == nil {
			_, err = s.Read(t.Context(), "run", 0)
			s.Close()
		}
		if !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}
