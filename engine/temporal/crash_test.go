package temporal

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/engine/temporal/internal/devtest"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
)

// crasher is a worker process that is killed. It has a tool of each class, which notes its call
// in a file outside of the store and then waits until there is a file that lets it go on.
type crasher struct{ dir, address, queue, role string }

// The roles of worker processes that are no more than a worker.
const (
	dying = "dying" // at the first outcome that does not fit into the history
	bare  = "bare"  // it has no agents
)

func (c crasher) path(name string) string { return filepath.Join(c.dir, name) }

// agents of the process and of the client.
func (c crasher) agents() []*pawl.Agent {
	var agents []*pawl.Agent
	for name, class := range map[string]pawl.Effect{"once": pawl.AtMostOnce, "idempotent": pawl.Idempotent} {
		tool := pawl.NewTool(pawl.Func[note, string]{Name: name, Description: "Acts.", Effect: class, Run: c.act})
		agents = append(agents, &pawl.Agent{Name: name, Model: calls{name, 1, 10}, Tools: []pawl.Tool{tool}})
	}
	return append(agents, &pawl.Agent{Name: "book", Model: calls{"book", 1, 10}, Tools: []pawl.Tool{booking()}})
}

// booking is a tool whose effect is a row in the store, and whose output is large.
func booking() pawl.Tool {
	return sqlstore.NewTxTool(sqlstore.TxFunc[note, string]{Name: "book", Description: "Books.",
		Run: func(ctx context.Context, tx *sql.Tx, c *pawl.Call, _ note) (string, error) {
			if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS bookings (key TEXT)"); err != nil {
				return "", err
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO bookings VALUES (?)", c.Key)
			return strings.Repeat("x", 2*spillAbove), err
		}})
}

// deadly are blobs whose writer dies.
type deadly struct{ Blobs }

func (deadly) Put(context.Context, string, []byte) error {
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (c crasher) act(ctx context.Context, call *pawl.Call, _ note) (string, error) {
	f, err := os.OpenFile(c.path("effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(f, call.Key, call.Attempt)
	if err := f.Close(); err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(c.path("go")); err == nil {
			return "acted", nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (c crasher) effects() []string {
	data, _ := os.ReadFile(c.path("effects"))
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func (c crasher) options() WorkerOptions {
	return WorkerOptions{Options: Options{TaskQueue: c.queue, Heartbeat: 2 * time.Second, Blobs: Dir(c.dir)}}
}

// crasherEnv tells a test binary to be a worker.
const crasherEnv = "PAWL_TEST_WORKER"

// work is the worker process.
func (c crasher) work() error {
	store, err := sqlstore.OpenSQLite(c.path("runs.db"), nil)
	if err != nil {
		return err
	}
	cl, err := client.Dial(client.Options{HostPort: c.address, Identity: "test", Logger: quiet, DataConverter: DataConverter(Dir(c.dir))})
	if err != nil {
		return err
	}
	o := c.options()
	o.Temporal.StickyScheduleToStartTimeout = time.Second
	agents := c.agents()
	switch c.role {
	case dying:
		o.Blobs = deadly{o.Blobs}
	case bare:
		agents = nil
	}
	w, err := NewWorker(cl, &pawl.Runner{Store: store, Agents: agents}, o)
	if err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return err
	}
	fmt.Println("READY")
	<-worker.InterruptCh()
	return nil
}

// start starts a worker process.
func (c crasher) start(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), crasherEnv+"="+strings.Join([]string{c.dir, c.address, c.queue, c.role}, "|"))
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, devtest.ChildOf()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "READY" {
		t.Fatalf("the worker says %q", lines.Text())
	}
	t.Cleanup(func() { kill(cmd) })
	return cmd
}

// newCrasher returns a worker process to be started, and a client of its runs.
func newCrasher(t *testing.T, role string) (crasher, *site) {
	t.Helper()
	address, err := devtest.Server()
	if err != nil {
		t.Fatal(err)
	}
	c := crasher{t.TempDir(), address, t.Name(), role}
	store, err := sqlstore.OpenSQLite(c.path("runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return c, onServer(t, &pawl.Runner{Store: store, Agents: c.agents()}, c.options())
}

func kill(cmd *exec.Cmd) {
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
}

// A worker is killed in the middle of a tool [S23.4].
func TestKilledWorker(t *testing.T) {
	for _, agent := range []string{"once", "idempotent"} {
		t.Run(agent, func(t *testing.T) {
			c, s := newCrasher(t, "")
			first := c.start(t)
			run, err := s.Submit(t.Context(), s.agent(agent), pawl.UserText("go"), &pawl.RunOptions{ID: s.run()})
			if err != nil {
				t.Fatal(err)
			}
			for len(c.effects()[0]) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			kill(first)
			if err := os.WriteFile(c.path("go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			c.start(t)
			res, err := s.Resume(t.Context(), nil, pawl.RunID(run), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := 2
			if agent == "once" {
				want = 1
				if !res.Waiting() || res.Interruptions[0].Kind != pawl.InDoubt || time.Until(res.Interruptions[0].NotBefore) > 0 {
					t.Fatalf("result %+v", res)
				}
				if err := s.Decide(t.Context(), run, pawl.Settle(res.Interruptions[0].ID, "ann", "it acted")); err != nil {
					t.Fatal(err)
				}
				if res, err = s.Resume(t.Context(), nil, pawl.RunID(run), nil); err != nil {
					t.Fatal(err)
				}
			}
			if res.FinalOutput != "done" {
				t.Errorf("result %+v", res)
			}
			effects := c.effects()
			if len(effects) != want || effects[0] != effects[len(effects)-1] {
				t.Errorf("effects %q, want %d with one key", effects, want)
			}
			s.record("killed-" + agent)
		})
	}
}

// A worker dies after the commit of a transactional call, and the next one lacks the agent: the
// outcome is found all the same, and the run goes on with it once there is a worker that can
// [S23.10].
func TestKilledAfterCommit(t *testing.T) {
	c, s := newCrasher(t, dying)
	first := c.start(t)
	run, err := s.Submit(t.Context(), s.agent("book"), pawl.UserText("go"), &pawl.RunOptions{ID: s.run()})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Fatal("the worker did not die")
	}
	c.role = bare
	second := c.start(t)
	if _, err := s.Resume(t.Context(), nil, pawl.RunID(run), nil); !errors.Is(err, pawl.ErrUnknownAgent) {
		t.Fatalf("the run goes on without its agent: %v", err)
	}
	kill(second)
	c.role = ""
	c.start(t)
	res, err := s.Resume(t.Context(), nil, pawl.RunID(run), nil)
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := s.Store.Read(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	outcomes = slices.DeleteFunc(outcomes, func(r journal.Record) bool { return r.Kind != journal.KindSettled })
	if res.FinalOutput != "done" || len(outcomes) != 1 {
		t.Errorf("%q, with %d outcomes", res.FinalOutput, len(outcomes))
	}
	db, err := sql.Open("sqlite", c.path("runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow("SELECT count(*) FROM bookings").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d bookings, %v", n, err)
	}
}

func (s *site) agent(name string) *pawl.Agent {
	for _, a := range s.Agents {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Deltas reach a stream in the process of the worker, and a request that is made again says so
// [S23.1].
func TestStream(t *testing.T) {
	agent := &pawl.Agent{Name: "clerk", Model: calls{"note", 1, 5}, Tools: []pawl.Tool{noting("note", map[string]int{})}}
	s := onServer(t, &pawl.Runner{Store: memory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{Options: Options{Bus: new(LocalBus)}}).start()
	var seen []string
	for ev, err := range s.Stream(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: s.run()}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case *pawl.Delta:
			seen = append(seen, "delta "+ev.Text)
		case *pawl.ItemCreated:
			seen = append(seen, string(ev.Name))
		case *pawl.ToolStarted:
			seen = append(seen, "started "+ev.Tool)
		case *pawl.Done:
			seen = append(seen, ev.Result.FinalOutput)
		}
	}
	want := []string{"tool_called", "started note", "tool_output", "delta do", "delta ne", "message_output_created", "done"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
