package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
)

// death is a point at which a process ends, without a word to anybody.
type death string

const (
	nowhere      death = ""
	inRule       death = "in the rule"
	beforeEffect death = "before the effect"
	afterEffect  death = "after the effect"
	beforeAppend death = "before the session has the batch"
	afterAppend  death = "after the session has the batch"
	atAdvance    death = "at the entry of the write after the result"
)

// here kills the process if this is where it is to die.
func (d death) here(point death) {
	if d != point {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	panic(fmt.Sprint("the process goes on after it was killed: ", err))
}

// killed reports whether an error is that of a process that was killed.
func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && !exit.Exited()
}

// dyingSession is a session whose process dies when the output of a call is appended.
type dyingSession struct {
	session.Session
	at    death
	order *order
}

func (s dyingSession) Append(ctx context.Context, items []item.Item) error {
	if !slices.ContainsFunc(items, func(it item.Item) bool { return it.Head().Type == item.TypeFunctionCallOutput }) {
		return s.Session.Append(ctx, items)
	}
	if err := s.order.enter(theAdvance); err != nil {
		return err
	}
	s.at.here(beforeAppend)
	err := s.Session.Append(ctx, items)
	s.at.here(afterAppend)
	return err
}

// dies makes a call in a process that does not survive it.
func (w *world) dies(r request) {
	w.Helper()
	r.Mode = w.cell.mode(len(w.outcomes))
	file := filepath.Join(w.TempDir(), "job.json")
	if err := write(file, job{Setup: w.setup, Request: r}); err != nil {
		w.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.CommandContext(w.Context(), exe, jobWord, file)
	if out, err := cmd.CombinedOutput(); !killed(err) {
		w.Fatalf("the process was to die %s: %v\n%s", r.Dies, err, out)
	}
}
