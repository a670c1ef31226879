package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// serverVariable makes the test's binary the server.
const serverVariable = "PAWL_DEVSERVER_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start starts a server and returns its address once it is ready.
func start(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), serverVariable+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	host, ready := strings.CutPrefix(strings.TrimSpace(line), "READY ")
	if !ready {
		t.Fatalf("the server says %q (%v), want READY", line, err)
	}
	return cmd, host
}

func dial(t *testing.T, host string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: host, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// question runs an activity, waits for a signal and puts both together.
func question(ctx workflow.Context) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var asked, answer string
	if err := workflow.ExecuteActivity(ctx, ask).Get(ctx, &asked); err != nil {
		return "", err
	}
	workflow.GetSignalChannel(ctx, "answer").Receive(ctx, &answer)
	return asked + " " + answer, nil
}

var asks int

func ask(context.Context) (string, error) {
	asks++
	return "ready?", nil
}

func serve(t *testing.T, c client.Client) worker.Worker {
	t.Helper()
	w := worker.New(c, "questions", worker.Options{})
	w.RegisterWorkflow(question)
	w.RegisterActivity(ask)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// A workflow that waits is there again after the server was killed, with what it has done,
// and a signal that was sent while no worker was up reaches it.
func TestHistorySurvivesKill(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "temporal.db")
	first, host := start(t, "-port", "0", "-db", file)
	c := dial(t, host)
	w := serve(t, c)
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "q", TaskQueue: "questions"}, question)
	if err != nil {
		t.Fatal(err)
	}
	for asked := false; !asked; time.Sleep(10 * time.Millisecond) {
		events := c.GetWorkflowHistory(ctx, "q", run.GetRunID(), false, 0)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			asked = asked || e.GetActivityTaskCompletedEventAttributes() != nil
		}
	}
	w.Stop()
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed

	second, host := start(t, "-port", "0", "-db", file)
	c = dial(t, host)
	if err := c.SignalWorkflow(ctx, "q", run.GetRunID(), "answer", "yes"); err != nil {
		t.Fatal(err)
	}
	defer serve(t, c).Stop()
	var got string
	if err := c.GetWorkflow(ctx, "q", run.GetRunID()).Get(ctx, &got); err != nil || got != "ready? yes" || asks != 1 {
		t.Errorf("the workflow ends with %q (%v) after %d activities, want %q after 1", got, err, asks, "ready? yes")
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

func TestInMemory(t *testing.T) {
	_, host := start(t, "-port", "0")
	c := dial(t, host)
	defer serve(t, c).Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "q", TaskQueue: "questions"}, question)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SignalWorkflow(t.Context(), "q", "", "answer", "no"); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != "ready? no" {
		t.Errorf("the workflow ends with %q (%v), want %q", got, err, "ready? no")
	}
}
