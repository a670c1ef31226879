package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// fenced is a store that another driver takes a run from when its n-th append is due.
type fenced struct {
	journal.Driver
	n int
}

func (f *fenced) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if f.n--; f.n == 0 {
		return journal.ErrFenced
	}
	return f.Driver.Append(ctx, run, epoch, after, recs, with...)
}

// asking5 is an agent whose run "r" waits for the approval of a call.
func asking5(e *effects) *pawl.Agent {
	return agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", e, asking))
}

// waiting5 is a Runner whose run "r" waits for an approval, and its agent.
func waiting5(t *testing.T) (*pawl.Runner, *pawl.Agent, *pawl.RunState) {
	agent := asking5(new(effects))
	r := &pawl.Runner{Agents: []*pawl.Agent{agent}}
	return r, agent, must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
}

// runs returns the error of a run "r" whose model answers with the steps.
func runs(t *testing.T, change func(*pawl.Agent, *pawl.RunOptions), steps ...step) error {
	agent, opts := agentWith(newScript(steps...), charging("charge", new(effects), nil)), &pawl.RunOptions{ID: "r"}
	if change != nil {
		change(agent, opts)
	}
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), opts)
	return err
}

func parse(doc string) error {
	_, err := pawl.ParseRunState([]byte(doc))
	return err
}

// Every error says what is wrong, once, and whose it is; of a run also which one, and what can be done if that is not plain.
// Every error there is has been seen.
func TestErrorsAsTheyRead(t *testing.T) {
	seen := map[string]bool{}
	for want, f := range asTheyRead {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := f(t)
				if err == nil || err.Error() != want {
					t.Errorf("\n got %v\nwant %s", err, want)
				}
				if text := fmt.Sprint(err); strings.Count(text, "pawl: ") != 1 {
					t.Errorf("it says whose it is %d times", strings.Count(text, "pawl: "))
				}
				for name, is := range errorsOfPawl {
					seen[name] = seen[name] || is(err)
				}
			})
		})
	}
	for name := range errorsOfPawl {
		if !seen[name] {
			t.Errorf("nobody has seen a %s", name)
		}
	}
}

// errorsOfPawl tell the errors of this package, by name.
var errorsOfPawl = map[string]func(error) bool{
	"ErrRunExists": is(pawl.ErrRunExists), "ErrUnknownRun": is(pawl.ErrUnknownRun), "ErrUnknownAgent": is(pawl.ErrUnknownAgent),
	"ErrWrongAgent": is(pawl.ErrWrongAgent), "ErrClaimed": is(pawl.ErrClaimed), "ErrFenced": is(pawl.ErrFenced),
	"ErrConflict": is(pawl.ErrConflict), "ErrDecided": is(pawl.ErrDecided), "ErrNotOpen": is(pawl.ErrNotOpen),
	"ErrDecision": is(pawl.ErrDecision), "ErrCallInFlight": is(pawl.ErrCallInFlight), "ErrToolChanged": is(pawl.ErrToolChanged),
	"ErrApprovalExpired": is(pawl.ErrApprovalExpired), "ErrSessionMissing": is(pawl.ErrSessionMissing),
	"ErrSessionMismatch": is(pawl.ErrSessionMismatch), "ErrSessionBusy": is(pawl.ErrSessionBusy),
	"ErrSessionWaiting": is(pawl.ErrSessionWaiting), "ErrSuperseded": is(pawl.ErrSuperseded),
	"ErrSessionAmbiguous": is(pawl.ErrSessionAmbiguous), "ErrDeliveryAmbiguous": is(pawl.ErrDeliveryAmbiguous),
	"ErrState": is(pawl.ErrState), "ErrNewerState": is(pawl.ErrNewerState), "ErrFork": is(pawl.ErrFork),
	"ErrCancelled": is(pawl.ErrCancelled), "ErrSeal": is(pawl.ErrSeal), "ErrStopped": is(pawl.ErrStopped),
	"ErrTooDeep": is(pawl.ErrTooDeep),

	"RunError": as[*pawl.RunError], "ConfigError": as[*pawl.ConfigError], "MaxTurnsError": as[*pawl.MaxTurnsError],
	"ToolNotFoundError": as[*pawl.ToolNotFoundError], "CallIDError": as[*pawl.CallIDError], "RefusalError": as[*pawl.RefusalError],
	"OutputError": as[*pawl.OutputError], "PanicError": as[*pawl.PanicError], "TimeoutError": as[*pawl.TimeoutError],
	"SessionAmbiguousError": as[*pawl.SessionAmbiguousError], "JournalError": as[*pawl.JournalError],
	"SessionBusyError": as[*pawl.SessionBusyError], "SessionWaitingError": as[*pawl.SessionWaitingError],
	"ErrInputRefused": is(pawl.ErrInputRefused), "ContextError": as[*pawl.ContextError],
	"SupersededError": as[*pawl.SupersededError], "LostRangeError": as[*pawl.LostRangeError], "FilterError": as[*pawl.FilterError],
	"GuardrailError": as[*pawl.GuardrailError], "TripwireError": as[*pawl.TripwireError], "EngineError": as[*pawl.EngineError],
	"ToolSourceError": as[*pawl.ToolSourceError],
}

// notReturned are the errors of this package that no function of it returns, and why.
var notReturned = map[string]string{
	"ErrOutcomeUnknown": "a tool says it: the model is told that the outcome is unknown, or somebody is asked",
	"ErrPending":        "a tool says it: somebody is asked for the result",
	"AskError":          "a tool says it: somebody is asked",
	"FailedError":       "the cause of a failure that only the ledger knows; a resume begins with the failure cleared",
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Every exported error is among those that are seen, or it is said why it is not.
func TestErrorsAreAllRead(t *testing.T) {
	exported := map[string]bool{}
	for _, f := range parseModule(t)["."].files {
		maps.Copy(exported, exportedErrors(f))
	}
	for name := range exported {
		if _, ok := errorsOfPawl[name]; ok == (notReturned[name] != "") {
			t.Errorf("%s has no row in TestErrorsAsTheyRead", name)
		}
	}
	if len(exported) != len(errorsOfPawl)+len(notReturned) {
		t.Errorf("%d exported errors, want the %d of this test", len(exported), len(errorsOfPawl)+len(notReturned))
	}
}

// exportedErrors returns the names of a file's exported errors: variables, and types that have a method Error.
func exportedErrors(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if ok && decl.Tok == token.VAR && strings.HasPrefix(v.Names[0].Name, "Err") {
					names[v.Names[0].Name] = true
				}
			}
		case *ast.FuncDecl:
			if decl.Name.Name != "Error" || decl.Recv == nil {
				continue
			}
			recv := decl.Recv.List[0].Type
			if star, ok := recv.(*ast.StarExpr); ok {
				recv = star.X
			}
			if id, ok := recv.(*ast.Ident); ok && id.IsExported() {
				names[id.Name] = true
			}
		}
	}
	return names
}

// badSession holds something that is no item.
type badSession struct{ session.Session }

func (badSession) Items(context.Context, int) ([]pawl.Item, error) { return []pawl.Item{{}}, nil }
