package sqlstore

import (
	"path/filepath"
	"testing"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
)

// open opens a store that is closed at the end of the test.
func open(t testing.TB, path string, opts *Options) *Store {
	t.Helper()
	s, err := OpenSQLite(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func TestDriver(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journal.Driver {
			return open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
		})
	})
	t.Run("memory", func(t *testing.T) {
		journaltest.Run(t, func(t *testing.T) journal.Driver { return open(t, ":memory:", nil) })
	})
}
