//go:build unix

package enginetest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/engine/temporal"
	"github.com/pawl-agents/pawl/engine/temporal/internal/devtest"
	"github.com/pawl-agents/pawl/enginetest"
	"github.com/pawl-agents/pawl/scenarios"
	"github.com/pawl-agents/pawl/sqlstore"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m, host)) }

// make enginetest plays all.
var every = flag.Int("every", 20, "play one case of so many")

func TestEngine(t *testing.T) {
	here.File = filepath.Join(t.TempDir(), "temporal.db")
	if err := here.Start(); err != nil {
		t.Fatal(err)
	}
	defer here.Kill()
	if r := enginetest.Play(t, host, &enginetest.Options{Every: *every}); r.Played == 0 {
		t.Error("nothing was played")
	}
}

// The number of the cases, and of those that the host cannot have, is pinned: none is left out silently.
func TestCases(t *testing.T) {
	r := enginetest.Play(t, host, &enginetest.Options{Every: -1})
	if want := 184; r.Cases != want {
		t.Errorf("%d cases, want %d", r.Cases, want)
	}
	not := map[string]int{
		"an append of the journal is one transaction: there is no half of it": 2,
		"an engine brings the text of an error, not what the error holds":     2,
		"the runs of one store know of each other":                            2,
		"what an engine writes, when, and how often it tries, is its own":     20,
		"who stops waiting for a run of an engine does not stop it":           4,
	}
	if diff := cmp.Diff(not, r.NotApplicable); diff != "" {
		t.Errorf("not applicable (-want +got):\n%s", diff)
	}
}

var (
	here   devtest.Instance
	places int // on it
)

// host has runs in namespaces of the server, one for each place, because the id of a run is that of its workflow.
var host = enginetest.Host{
	Name:    "temporal",
	Durable: true,
	Engine:  true,
	KillServer: func() error {
		if err := here.Kill(); err != nil {
			return err
		}
		return here.Start()
	},
	Rolled: func(address, run string) (bool, error) {
		p := placeAt(address)
		c, err := p.dial()
		if err != nil {
			return false, err
		}
		defer c.Close()
		d, err := c.DescribeWorkflow(context.Background(), run, "")
		if err != nil {
			return false, err
		}
		return d.RawResponse.WorkflowExecutionInfo.FirstRunId != d.RawResponse.WorkflowExecutionInfo.Execution.RunId, nil
	},
	New: func(t *testing.T) string {
		t.Helper()
		places++
		p := place{here.Address, fmt.Sprint("place", places), t.TempDir()}
		err := newNamespace(t.Context(), here.Address, p.namespace)
		if err == nil {
			err = os.Mkdir(p.blobs(), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p.address()
	},
	Open: func(address string) (enginetest.Backend, error) { return placeAt(address).open() },
	Rows: func(ctx context.Context, address, session string) ([]json.RawMessage, error) {
		return scenarios.SQLite.Rows(ctx, placeAt(address).file(), session)
	},
}

// place is a namespace of a server, and a folder for what is kept beside it.
type place struct{ server, namespace, dir string }

func placeAt(address string) place {
	parts := strings.SplitN(address, "|", 3)
	return place{parts[0], parts[1], parts[2]}
}

func (p place) address() string { return p.server + "|" + p.namespace + "|" + p.dir }

func (p place) file() string { return filepath.Join(p.dir, "pawl.db") }

func (p place) blobs() string { return filepath.Join(p.dir, "blobs") }

func (p place) dial() (client.Client, error) {
	return client.Dial(client.Options{HostPort: p.server, Namespace: p.namespace, Logger: quiet, DataConverter: temporal.DataConverter(temporal.Dir(p.blobs()))})
}

func (p place) open() (enginetest.Backend, error) {
	st, err := sqlstore.OpenSQLite(p.file(), &sqlstore.Options{Sync: sqlstore.UnsafeSyncOff})
	if err != nil {
		return nil, err
	}
	c, err := p.dial()
	if err != nil {
		st.Close()
		return nil, err
	}
	return &backend{client: c, store: st, opts: temporal.Options{Namespace: p.namespace, Blobs: temporal.Dir(p.blobs()), Heartbeat: 2 * time.Second}}, nil
}

// backend is an open place.
type backend struct {
	client client.Client
	store  *sqlstore.Store
	opts   temporal.Options
}

func (b *backend) Bind(r *pawl.Runner) { r.Store, r.Engine = b.store, temporal.New(b.client, b.opts) }

func (b *backend) Work(ctx context.Context, r *pawl.Runner, opts func(string) *pawl.RunOptions, ready func()) error {
	w, err := temporal.NewWorker(b.client, r, temporal.WorkerOptions{Options: b.opts, RunOptions: opts,
		Temporal: worker.Options{StickyScheduleToStartTimeout: time.Second}})
	if err == nil {
		err = w.Start()
	}
	if err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	w.Stop()
	return nil
}

func (b *backend) Session(id string) enginetest.Session { return b.store.Session(id) }

func (b *backend) Close() error {
	b.client.Close()
	return b.store.Close()
}
