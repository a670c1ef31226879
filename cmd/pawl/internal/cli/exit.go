package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/audit"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/sqlstore"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
)

// The exit codes; exitCodes explains them.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitWaiting     = 3
	exitStore       = 4
	exitRun         = 5
	exitTampered    = 6
	exitInterrupted = 130
)

// Errors of the command itself.
var (
	errWaiting      = errors.New("the run waits for a decision")
	errNoStore      = errors.New("there is no store")
	errAmbiguousRun = errors.New("several runs begin like that")
	errNothingOpen  = errors.New("nothing of the run waits for such a decision")
	errWhichCall    = errors.New("several calls wait; say which one")
	errNoSuchCall   = errors.New("no waiting call is called that")
	errSeveralCalls = errors.New("several calls are called that; say which one")
	errNotWhole     = errors.New("a call has more than one effect, or not exactly one output")
)

// kinds says what an error means to a script: its code in JSON and the exit code. The first that fits counts.
var kinds = []struct {
	is   error
	code string
	exit int
}{
	{errWaiting, "waiting", exitWaiting},
	{audit.ErrMismatch, "tampered", exitTampered},
	{errNoStore, "no_store", exitStore},
	{journal.ErrForeignStore, "foreign_store", exitStore},
	{demo.ErrForeignShop, "foreign_store", exitStore},
	{journal.ErrNewerStore, "newer_store", exitStore},
	{journal.ErrNewerJournal, "newer_store", exitStore},
	{journal.ErrCorrupt, "damaged_store", exitStore},
	{pawl.ErrState, "damaged_store", exitStore},
	{sqlstore.ErrBusy, "store_busy", exitStore},
	{sqlstore.ErrAccess, "no_access", exitStore},
	{pgstore.ErrAccess, "no_access", exitStore},
	{pgstore.ErrUnreachable, "unreachable_store", exitStore},
	{pgstore.ErrUnsafe, "unsafe_store", exitStore},
	{fs.ErrPermission, "no_access", exitStore},
	{errAmbiguousRun, "ambiguous_run", exitRun},
	{errWhichCall, "which_call", exitRun},
	{errSeveralCalls, "which_call", exitRun},
	{errNoSuchCall, "unknown_call", exitRun},
	{audit.ErrNoCall, "unknown_call", exitRun},
	{errNothingOpen, "not_waiting", exitRun},
	{pawl.ErrUnknownRun, "unknown_run", exitRun},
	{pawl.ErrRunExists, "run_exists", exitRun},
	{pawl.ErrSessionBusy, "session_busy", exitRun},
	{pawl.ErrSessionWaiting, "session_busy", exitRun},
	{pawl.ErrUnknownAgent, "other_program", exitRun},
	{demo.ErrUnknownTicket, "unknown_ticket", exitRun},
	{pawl.ErrClaimed, "driven_elsewhere", exitRun},
	{pawl.ErrFenced, "driven_elsewhere", exitRun},
	{pawl.ErrDecided, "decided", exitRun},
	{pawl.ErrNotOpen, "not_waiting", exitRun},
	{pawl.ErrCallInFlight, "in_flight", exitRun},
	{pawl.ErrDecision, "bad_decision", exitRun},
	{pawl.ErrCancelled, "cancelled", exitRun},
}

// failure is an error as it is reported.
type failure struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Hints   []string `json:"hints,omitempty"`
	exit    int
}

func (a *app) failure(ctx context.Context, err error) *failure {
	f := &failure{Code: "failed", Message: strings.TrimPrefix(err.Error(), "pawl: "), exit: exitFailed}
	var wrong *usageError
	switch {
	case errors.As(err, &wrong) || strings.HasPrefix(err.Error(), "unknown command"):
		f.Code, f.exit = "usage", exitUsage
		f.Hints = []string{a.help()}
		return f
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		f.Code, f.exit = "interrupted", exitInterrupted
		f.Message = "interrupted"
	}
	for _, k := range kinds {
		if f.Code == "failed" && errors.Is(err, k.is) {
			f.Code, f.exit = k.code, k.exit
		}
	}
	f.Hints = a.hints(err, f)
	return f
}

// hints are the commands that go on from an error.
func (a *app) hints(err error, f *failure) []string {
	var hinted *hintedError
	if errors.As(err, &hinted) {
		return hinted.hints
	}
	switch f.Code {
	case "no_store":
		return []string{a.command("demo")}
	case "unknown_run", "ambiguous_run":
		return []string{a.command("runs")}
	}
	var re *pawl.RunError
	if !errors.As(err, &re) || re.State == nil {
		return nil
	}
	switch f.Code {
	case "failed", "interrupted", "store_busy":
		var unreachable *model.Error
		if errors.As(err, &unreachable) && unreachable.Status == 0 {
			f.Message += " (the model's server could not be reached or broke off)"
		}
		return []string{a.command("resume", re.Run)}
	case "not_waiting", "decided", "in_flight", "bad_decision":
		return []string{a.command("show", re.Run)}
	}
	return nil
}

// hintedError is an error with hints of its own.
type hintedError struct {
	err   error
	hints []string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// finish reports how a command ended and returns the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	result, err := split(err)
	doc := struct {
		Exit   int      `json:"exit"`
		Result any      `json:"result,omitempty"`
		Error  *failure `json:"error,omitempty"`
	}{Result: result}
	if err != nil {
		doc.Error = a.failure(ctx, err)
		doc.Exit = doc.Error.exit
	}
	if a.json {
		if result != nil || doc.Error != nil {
			enc := json.NewEncoder(a.out)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			_ = enc.Encode(doc) // there is nowhere left to report to
		}
		return doc.Exit
	}
	a.screen.endLine()
	if doc.Error != nil && doc.Error.exit != exitWaiting {
		a.complain(doc.Error)
	}
	return doc.Exit
}

func (a *app) complain(f *failure) {
	fmt.Fprintf(a.errors, "pawl: %s\n", printable(f.Message))
	switch {
	case f.Code == "usage":
		fmt.Fprintf(a.errors, "For help: %s\n", f.Hints[0])
	case f.Code == "interrupted" && len(f.Hints) > 0:
		fmt.Fprintf(a.errors, "Nothing is lost. Go on with:\n  %s\n", f.Hints[0])
	case len(f.Hints) > 0:
		fmt.Fprintf(a.errors, "Go on with:\n  %s\n", strings.Join(f.Hints, "\n  "))
	}
}
