package temporal

import (
	"bufio"
	"cmp"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// server is the Temporal server of the tests of this package.
var server = sync.OnceValues(func() (string, error) {
	path := os.Getenv("PAWL_TEMPORAL_DEVSERVER")
	if path == "" {
		path, _ = filepath.Abs("devserver/devserver")
	}
	cmd := exec.Command(path, "-port", "0")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = childOf()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", errors.Join(errors.New("make temporal-devserver builds the server of these tests, or PAWL_TEMPORAL_DEVSERVER names it"), err)
	}
	stopServer = func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "READY "); ok {
			return address, nil
		}
	}
	return "", errors.New("the server did not start")
})

var stopServer = func() {}

func TestMain(m *testing.M) {
	if place := strings.Split(os.Getenv(crasherEnv), "|"); len(place) == 3 {
		if err := (crasher{place[0], place[1], place[2]}).work(); err != nil {
			slog.Error(err.Error())
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	stopServer()
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
	address, err := server()
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

func memory() *journal.Memory { return journal.NewMemory() }
