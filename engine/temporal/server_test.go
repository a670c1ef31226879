package temporal

import (
	"cmp"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/engine/temporal/internal/devtest"
	"github.com/pawl-agents/pawl/journal"
)

func TestMain(m *testing.M) {
	if place := strings.Split(os.Getenv(crasherEnv), "|"); len(place) == 4 {
		if err := (crasher{place[0], place[1], place[2], place[3]}).work(); err != nil {
			slog.Error(err.Error())
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	devtest.Stop()
	os.Exit(code)
}

var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

// site is a runner on the server and a worker in this process.
type site struct {
	*pawl.Runner
	t      *testing.T
	client client.Client
	opts   WorkerOptions
	worker worker.Worker
}

// onServer makes a runner with a worker, on a task queue of the test's own.
func onServer(t *testing.T, r *pawl.Runner, opts WorkerOptions) *site {
	t.Helper()
	address, err := devtest.Server()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(client.Options{HostPort: address, Identity: "test", Logger: quiet, DataConverter: DataConverter(opts.Blobs)})
	if err != nil {
		t.Fatal(err)
	}
	opts.TaskQueue = cmp.Or(opts.TaskQueue, t.Name())
	opts.Temporal.StickyScheduleToStartTimeout = time.Second
	r.Engine = New(c, opts.Options)
	s := &site{Runner: r, t: t, client: c, opts: opts}
	t.Cleanup(func() {
		s.stop()
		c.Close()
	})
	return s
}

// start starts the worker.
func (s *site) start() *site {
	s.t.Helper()
	w, err := NewWorker(s.client, s.Runner, s.opts)
	if err == nil {
		err = w.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.worker = w
	return s
}

// stop stops the worker.
func (s *site) stop() {
	if s.worker != nil {
		s.worker.Stop()
		s.worker = nil
		time.Sleep(300 * time.Millisecond) // the server may hand a task to a poll that has just ended
	}
}

// run names a run of the test.
func (s *site) run() string { return strings.ReplaceAll(s.t.Name(), "/", "-") }

// watchDone watches the run to its end, and does nothing for it.
func (s *site) watchDone() {
	s.t.Helper()
	for ev, err := range s.Watch(s.t.Context(), s.run(), pawl.Cursor{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		if _, over := ev.Event.(*pawl.Done); over {
			return
		}
	}
	s.t.Fatal("the run is not done")
}

func memory() *journal.Memory { return journal.NewMemory() }
