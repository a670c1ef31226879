package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pawl-agents/pawl"
)

// jobWord is the first argument of a process that is started for a call; the second names the file of the call. Such a process
// runs no tests.
const jobWord = "scenario-job"

// job is a call for another process, and then its outcome.
type job struct {
	Setup    setup
	Request  request
	Document json.RawMessage
	Outcome  *outcome
	// Work makes the process a worker, see world.worker.
	Work bool
}

// elsewhere makes a call in a process of its own.
func elsewhere(ctx context.Context, t *testing.T, j job) *outcome {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.json")
	if err := write(file, j); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe, jobWord, file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the other process: %v\n%s", err, out)
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil || j.Outcome == nil {
		t.Fatalf("the other process left no outcome: %v", err)
	}
	return j.Outcome
}

// write writes a job. The bytes of items are left as they are.
func write(file string, j job) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(j); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

// otherProcess does what this process was started for, if it is one that another process started.
func otherProcess() (done bool, exit int) {
	if len(os.Args) == 3 && os.Args[1] == jobWord {
		return true, doJob(os.Args[2])
	}
	return false, 0
}

// doJob is the other process.
func doJob(file string) (exit int) {
	err := func() error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var j job
		if err := json.Unmarshal(data, &j); err != nil {
			return err
		}
		if j.Work {
			return work(j)
		}
		var state *pawl.RunState
		if string(j.Document) != "null" { // else it is a new run
			if state, err = pawl.ParseRunState(j.Document); err != nil {
				return err
			}
		}
		p, err := open(j.Setup)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		defer cancel()
		j.Outcome = p.call(ctx, j.Request, state)
		if err := p.close(); err != nil {
			return err
		}
		return write(file, j)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
