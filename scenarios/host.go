package scenarios

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// Host is where runs live: what carries a run from one call of the API to the next. It is a value to be copied; its functions
// are called by one goroutine at a time.
type Host struct {
	// Name names the host in the output.
	Name string
	// Durable says that a run outlives the process that drives it.
	Durable bool
	// Engine says that the calls of a runner wait for workers, which have to be there; else a call drives the run itself.
	Engine bool
	// KillServer kills the server that keeps the runs with SIGKILL and starts it again. Nil if there is no server.
	KillServer func() error
	// Rolled reports whether the host has begun a new history for a run, because the old one became long. Nil if it never does.
	Rolled func(address, run string) (bool, error)
	// New makes an empty place for runs and sessions, which lasts as long as the test, and returns its address.
	New func(t *testing.T) string
	// Open opens the place of an address, in this process or in another one.
	Open func(address string) (Backend, error)
	// Rows reads the items of a session there, by a way of its own, nil if there is no session of that id.
	Rows func(ctx context.Context, address, session string) ([]json.RawMessage, error)
}

// Backend is an open place for runs and sessions.
type Backend interface {
	// Bind puts a runner there that is new: it sets what says where its runs are kept.
	Bind(r *pawl.Runner)
	// Work drives runs that nobody else drives, with the agents and sessions of a bound runner and these options, until ctx
	// ends. It calls ready when it can be counted on.
	Work(ctx context.Context, r *pawl.Runner, opts func(run string) *pawl.RunOptions, ready func()) error
	// Session is the session of that id.
	Session(id string) Session
	// Close ends it. What it keeps stays.
	Close() error
}

// Session is a session of a store.
type Session interface {
	session.Session
	session.BatchAppender
	session.Backend
	// Pop takes out the newest item; ok is false if there is none.
	Pop(ctx context.Context) (it item.Item, ok bool, err error)
	// Store is the store of the session.
	Store() journal.Driver
	// Companion is the write of a batch, for an append of the store to commit with.
	Companion(batchID string, items []item.Item) journal.Companion
}

// StoreBackend is the backend of a store: session gives its sessions, end closes it.
func StoreBackend(d journal.Driver, session func(id string) Session, end func() error) Backend {
	return &storeBackend{d, session, end}
}

type storeBackend struct {
	driver  journal.Driver
	session func(id string) Session
	end     func() error
}

func (b *storeBackend) Bind(r *pawl.Runner)       { r.Store = b.driver }
func (b *storeBackend) Session(id string) Session { return b.session(id) }
func (b *storeBackend) Close() error              { return b.end() }

func (b *storeBackend) Work(ctx context.Context, r *pawl.Runner, opts func(run string) *pawl.RunOptions, ready func()) error {
	ready()
	return r.Work(ctx, &pawl.WorkOptions{RecoverOptions: pawl.RecoverOptions{Options: opts}, Poll: 100 * time.Millisecond})
}

// SQLite keeps runs and sessions in a file.
var SQLite = Host{
	Name:    "sqlite",
	Durable: true,
	New:     func(t *testing.T) string { return filepath.Join(t.TempDir(), "pawl.db") },
	Open: func(file string) (Backend, error) {
		// What a loss of power would do is not asked here.
		st, err := sqlstore.OpenSQLite(file, &sqlstore.Options{Sync: sqlstore.UnsafeSyncOff})
		if err != nil {
			return nil, err
		}
		return StoreBackend(st, func(id string) Session { return st.Session(id) }, st.Close), nil
	},
	Rows: func(ctx context.Context, file, session string) ([]json.RawMessage, error) {
		return SQLRows(ctx, "sqlite", file, "SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id", session)
	},
}

// Memory keeps runs in the process that drives them, beside sessions in a file.
var Memory = Host{Name: "memory", New: SQLite.New, Open: SQLite.Open, Rows: SQLite.Rows}

// SQLRows reads the items of a session by a query with the session's id, from a database that is opened for it.
func SQLRows(ctx context.Context, driver, address, query, session string) ([]json.RawMessage, error) {
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	found, err := db.QueryContext(ctx, query, session)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var list []json.RawMessage
	for found.Next() {
		var data string
		if err := found.Scan(&data); err != nil {
			return nil, err
		}
		list = append(list, json.RawMessage(data))
	}
	return list, found.Err()
}

// hosts are those that a cell can name.
var hosts = map[string]Host{"": SQLite}

// Main runs the tests of a package that plays cases on hosts, or makes the call that another process asks for. A package calls
// it from TestMain, with all its hosts, and exits with what it returns.
func Main(m *testing.M, known ...Host) int {
	for _, h := range known {
		hosts[h.Name] = h
	}
	if done, exit := otherProcess(); done {
		return exit
	}
	return m.Run()
}

// carriers are what carries a run from call to call on the host.
func (h Host) carriers() []carrier {
	if h.Durable {
		return []carrier{store}
	}
	return []carrier{live, byJSON}
}

func hostNamed(name string) (Host, error) {
	h, ok := hosts[name]
	if !ok {
		return Host{}, fmt.Errorf("no host is named %q: TestMain has to give it to Main", name)
	}
	return h, nil
}
