package pgstore

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-agents/pawl/internal/pgtest"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/session/sessiontest"
)

// server is that of all tests. What a crash of the machine would lose is not what they look
// for.
var server *pgtest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = pgtest.New("fsync=off", "max_connections=300"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// newServer is a server for one test, which may crash it.
func newServer() (*pgtest.Server, error) { return pgtest.New() }

// execIn runs statements in a database.
func execIn(t testing.TB, url, q string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), q); err != nil {
		t.Fatal(err)
	}
}

var schemas atomic.Int64

// database makes an empty schema, which is to the store what a database of its own is, and
// made faster.
func database(t testing.TB) (url string) {
	t.Helper()
	schema := fmt.Sprintf("test%d", schemas.Add(1))
	execIn(t, server.URL("postgres"), "CREATE SCHEMA "+schema)
	return server.URL("postgres") + "&search_path=" + schema
}

// open opens a store that is closed at the end of the test.
func open(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, nil)
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
	journaltest.Run(t, func(t *testing.T) journal.Driver { return open(t, database(t)) })
}

func TestSession(t *testing.T) {
	sessiontest.Run(t, func(t *testing.T) sessiontest.Open {
		s := open(t, database(t))
		return func(id string) session.Session { return s.Session(id) }
	})
}
