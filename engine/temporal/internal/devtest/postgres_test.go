//go:build unix

package devtest

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-agents/pawl/internal/pgtest"
)

// startOn starts a server on a database and returns a client of it.
func startOn(t *testing.T, database string) (*exec.Cmd, client.Client) {
	t.Helper()
	if os.Getenv(Env) == "" {
		t.Fatal(Env + " is not set; make temporal sets it")
	}
	cmd := exec.Command(os.Getenv(Env), "-port", "0", "-postgres", database, "-log", "fatal")
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, ChildOf()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ready := strings.CutPrefix(strings.TrimSpace(line), "READY ")
	if !ready {
		t.Fatalf("the server says %q (%v), want READY", line, err)
	}
	c, err := client.Dial(client.Options{HostPort: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return cmd, c
}

var asked int

func ask(context.Context) (string, error) {
	asked++
	return "ready?", nil
}

// question runs an activity, and then waits for a signal.
func question(ctx workflow.Context) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var said, answer string
	if err := workflow.ExecuteActivity(ctx, ask).Get(ctx, &said); err != nil {
		return "", err
	}
	workflow.GetSignalChannel(ctx, "answer").Receive(ctx, &answer)
	return said + " " + answer, nil
}

func work(t *testing.T, c client.Client) worker.Worker {
	t.Helper()
	w := worker.New(c, "questions", worker.Options{})
	w.RegisterWorkflow(question)
	w.RegisterActivity(ask)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// On PostgreSQL the server makes its two databases, and what a workflow has done is there again after the
// server was killed.
func TestServerOnPostgres(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	pg, err := pgtest.New("fsync=off", "max_connections=100")
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close()
	first, c := startOn(t, pg.URL("temporal"))
	w := work(t, c)
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "q", TaskQueue: "questions"}, question)
	if err != nil {
		t.Fatal(err)
	}
	for done := false; !done; time.Sleep(10 * time.Millisecond) {
		for events := c.GetWorkflowHistory(ctx, "q", run.GetRunID(), false, 0); events.HasNext(); {
			ev, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			done = done || ev.GetActivityTaskCompletedEventAttributes() != nil
		}
	}
	w.Stop()
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed

	second, c := startOn(t, pg.URL("temporal"))
	if err := c.SignalWorkflow(ctx, "q", "", "answer", "yes"); err != nil {
		t.Fatal(err)
	}
	defer work(t, c).Stop()
	var got string
	if err := c.GetWorkflow(ctx, "q", run.GetRunID()).Get(ctx, &got); err != nil || got != "ready? yes" || asked != 1 {
		t.Errorf("the workflow ends with %q (%v) after %d activities, want %q after 1", got, err, asked, "ready? yes")
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
