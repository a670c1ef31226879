// Command chaos runs a campaign of package chaos of Pawl on Temporal: it kills the workers and the server, and says what became of
// every effect. The server is the one that PAWL_TEMPORAL_DEVSERVER names. Run it with "make chaos-temporal DURATION=5m".
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/engine/temporal"
	"github.com/pawl-agents/pawl/engine/temporal/internal/devtest"
	"github.com/pawl-agents/pawl/internal/chaos"
)

func main() { chaos.Main(host) }

var host = chaos.Host{Server: serve, Join: join, Over: over}

// server is the development server.
type server struct{ devtest.Instance }

// StopImmediate lets it end by itself.
func (s *server) StopImmediate() error { return s.Stop() }

// Close ends it; what it keeps is the campaign's.
func (s *server) Close() error { return s.Kill() }

// blobs is the directory of what is too large for a history.
func blobs(dir string) string { return filepath.Join(dir, "blobs") }

func serve(dir string) (chaos.Server, string, error) {
	s := &server{devtest.Instance{File: filepath.Join(dir, "temporal.db")}}
	err := os.Mkdir(blobs(dir), 0o700)
	if err == nil {
		err = s.Start()
	}
	return s, s.Address, err
}

// quiet is the log of clients whose server is down now and then.
var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

func dial(address, dir string) (client.Client, error) {
	return client.NewLazyClient(client.Options{HostPort: address, Logger: quiet, DataConverter: temporal.DataConverter(temporal.Dir(blobs(dir)))})
}

// heartbeat is short, because so long a run waits for a worker that was killed.
const heartbeat = time.Second

// patience is how long a worker waits for a server that is down.
const patience = time.Minute

// join makes a worker.
func join(address, dir string, r *pawl.Runner, options func(string) *pawl.RunOptions) (stop func(), err error) {
	opts := temporal.WorkerOptions{RunOptions: options, Options: temporal.Options{Blobs: temporal.Dir(blobs(dir)), Heartbeat: heartbeat},
		Temporal: worker.Options{StickyScheduleToStartTimeout: time.Second}}
	c, err := dial(address, dir)
	if err != nil {
		return nil, err
	}
	r.Engine = temporal.New(c, opts.Options)
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		w, err := temporal.NewWorker(c, r, opts)
		if err == nil {
			err = w.Start()
		}
		if err == nil {
			return w.Stop, nil
		}
		if time.Now().After(end) {
			return nil, err
		}
	}
}

// over says that the workflow of a run has ended.
func over(ctx context.Context, address, run string) (bool, error) {
	c, err := client.Dial(client.Options{HostPort: address, Logger: quiet})
	if err != nil {
		return false, err
	}
	defer c.Close()
	d, err := c.DescribeWorkflow(ctx, run, "")
	if err != nil {
		return false, err
	}
	switch status := d.RawResponse.WorkflowExecutionInfo.Status; status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return false, nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return true, nil
	default:
		return false, fmt.Errorf("the workflow of run %s is %s", run, status)
	}
}
