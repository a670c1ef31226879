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

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/engine/temporal"
	"github.com/pawl-agents/pawl/enginetest"
	"github.com/pawl-agents/pawl/scenarios"
	"github.com/pawl-agents/pawl/sqlstore"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m, host)) }

// make enginetest plays all.
var every = flag.Int("every", 20, "play one case of so many")

func TestEngine(t *testing.T) {
	here.file = filepath.Join(t.TempDir(), "temporal.db")
	if err := here.start(); err != nil {
		t.Fatal(err)
	}
	defer here.kill()
	if r := enginetest.Play(t, host, &enginetest.Options{Every: *every}); r.Played == 0 {
		t.Error("nothing was played")
	}
}

var (
	here   server
	places int // on it
)

// host has runs in namespaces of the server, one for each place, because the id of a run is that of its workflow.
var host = enginetest.Host{
	Name:    "temporal",
	Durable: true,
	Engine:  true,
	KillServer: func() error {
		if err := here.kill(); err != nil {
			return err
		}
		return here.start()
	},
	Rolled: func(address, run string) (bool, error) {
		p := placeAt(address)
		c, err := p.dial()
		if err != nil {
			return false, err
		}
		defer c.Close()
		d, err := c.DescribeWorkflowExecution(context.Background(), run, "")
		if err != nil {
			return false, err
		}
		return d.WorkflowExecutionInfo.FirstRunId != d.WorkflowExecutionInfo.Execution.RunId, nil
	},
	New: func(t *testing.T) string {
		t.Helper()
		places++
		p := place{here.address, fmt.Sprint("place", places), t.TempDir()}
		if err := here.newNamespace(t.Context(), p.namespace); err != nil {
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

func (p place) blobs() temporal.Blobs { return temporal.Dir(filepath.Join(p.dir, "blobs")) }

func (p place) dial() (client.Client, error) {
	return client.Dial(client.Options{HostPort: p.server, Namespace: p.namespace, Logger: quiet, DataConverter: temporal.DataConverter(p.blobs())})
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
	return &backend{client: c, store: st, opts: temporal.Options{Namespace: p.namespace, Blobs: p.blobs(), Heartbeat: 2 * time.Second}}, nil
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
