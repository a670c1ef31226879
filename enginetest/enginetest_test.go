//go:build unix

package enginetest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/enginetest"
	"github.com/pawl-agents/pawl/internal/pgtest"
	"github.com/pawl-agents/pawl/scenarios"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
)

func TestMain(m *testing.M) {
	os.Exit(enginetest.Main(m, scenarios.Memory, scenarios.SQLite, postgres))
}

// make enginetest plays all.
var every = flag.Int("every", 20, "play one case of so many")

func TestMemory(t *testing.T) { play(t, scenarios.Memory) }

func TestSQLite(t *testing.T) { play(t, scenarios.SQLite) }

func TestPostgres(t *testing.T) {
	var err error
	if server, err = pgtest.New("fsync=off", "max_connections=200"); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	play(t, postgres)
}

func play(t *testing.T, h enginetest.Host) {
	if r := enginetest.Play(t, h, &enginetest.Options{Every: *every}); r.Played == 0 {
		t.Error("nothing was played")
	}
}

// The number of the cases of each host, and of those that it cannot have, is pinned: none is left out silently.
func TestCases(t *testing.T) {
	for _, test := range []struct {
		host  enginetest.Host
		cases int
		not   map[string]int
	}{
		{scenarios.Memory, 298, map[string]int{
			"a document saved before the call ran cannot know that it ran":          8,
			"a refused input leaves no document":                                    4,
			"a run in memory has no store that could fail":                          52,
			"a run in memory is gone with its process":                              98,
			"a run that is a document alone is not known to who starts another one": 8,
			"an append of the journal is one transaction: there is no half of it":   4,
			"nothing is live after the process has gone":                            4,
			"the history of a run is never cut":                                     4,
			"the host has no server":                                                4,
			"the runs of one store know of each other":                              2,
		}},
		{scenarios.SQLite, 250, map[string]int{
			"an append of the journal is one transaction: there is no half of it": 2,
			"the history of a run is never cut":                                   4,
			"the host has no server":                                              4,
			"the runs of one store know of each other":                            2,
		}},
		{postgres, 254, map[string]int{
			"an append of the journal is one transaction: there is no half of it": 2,
			"the history of a run is never cut":                                   4,
			"the runs of one store know of each other":                            2,
		}},
	} {
		r := enginetest.Play(t, test.host, &enginetest.Options{Every: -1})
		if r.Cases != test.cases {
			t.Errorf("%s: %d cases, want %d", test.host.Name, r.Cases, test.cases)
		}
		if diff := cmp.Diff(test.not, r.NotApplicable); diff != "" {
			t.Errorf("%s: not applicable (-want +got):\n%s", test.host.Name, diff)
		}
	}
}

var (
	server *pgtest.Server
	places int // in it
)

// postgres keeps runs and sessions in a schema of a database, one for each place.
var postgres = enginetest.Host{
	Name:    "postgres",
	Durable: true,
	KillServer: func() error {
		if err := server.Kill(); err != nil {
			return err
		}
		return server.Start()
	},
	New: func(t *testing.T) string {
		t.Helper()
		places++
		schema := fmt.Sprint("place", places)
		if err := newSchema(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
		return server.URL("postgres") + "&search_path=" + schema
	},
	Open: func(url string) (enginetest.Backend, error) {
		st, err := pgstore.Open(context.Background(), url+"&pool_max_conns=4", nil)
		if err != nil {
			return nil, err
		}
		return enginetest.Store(st, func(id string) enginetest.Session { return st.Session(id) }, st.Close), nil
	},
	Rows: func(ctx context.Context, url, session string) ([]json.RawMessage, error) {
		return scenarios.SQLRows(ctx, "pgx", url, "SELECT message_data FROM agent_messages WHERE session_id = $1 ORDER BY id", session)
	},
}

func newSchema(ctx context.Context, name string) error {
	db, err := sql.Open("pgx", server.URL("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "CREATE SCHEMA "+name)
	return err
}
