package scenarios

import (
	"context"
	"errors"
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

// died is what a process that dies on purpose exits with.
const died = 7

// here ends the process if this is where it is to die.
func (d death) here(point death) {
	if d == point {
		os.Exit(died)
	}
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
	cmd := exec.CommandContext(w.Context(), exe)
	cmd.Env = append(os.Environ(), jobVariable+"="+file)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != died {
		w.Fatalf("the process was to die %s: %v\n%s", r.Dies, err, out)
	}
}
