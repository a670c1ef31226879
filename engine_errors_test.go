package pawl_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// Where an error over an engine comes from, and so whether errors.Is and errors.As know it.
const (
	byCaller  = "the caller's own Runner finds it, as without an engine"
	byStop    = "a worker could not begin a step: an EngineError stands for it"
	byLedger  = "the ledger says it, whoever reads it"
	byFailure = "an effect ended with it: a FailedError stands for it"
	byText    = "an effect ended with it: a FailedError has its code and text, and is not it"
	byWorker  = "a worker meets it and tries again"
	byTool    = "a tool says it, and it is no error of the run"
	byEngine  = "it is what an engine says"
)

// overEngine says of every exported error what becomes of it on an engine [S23.6].
var overEngine = map[string]string{
	"ErrUnknownAgent": byStop, "ErrSessionMissing": byStop, "ErrSessionMismatch": byStop, "ErrToolChanged": byStop, "ErrFenced": byStop,
	"ErrUnknownRun": byStop, "ErrConflict": byStop, "ConfigError": byStop, "ContextError": byStop,

	"ErrSessionAmbiguous": byFailure, "ErrDeliveryAmbiguous": byFailure,

	"MaxTurnsError": byLedger, "ErrApprovalExpired": byLedger, "ErrTooDeep": byLedger, "ErrCancelled": byLedger, "ErrSuperseded": byLedger,
	"SupersededError": byLedger, "TripwireError": byLedger,

	"ToolNotFoundError": byText, "CallIDError": byText, "RefusalError": byText, "OutputError": byText, "PanicError": byText,
	"GuardrailError": byText, "FilterError": byText, "TimeoutError": byText, "SessionAmbiguousError": byText, "LostRangeError": byText,
	"ToolSourceError": byText,

	"JournalError": byWorker,

	"ErrRunExists": byCaller, "ErrWrongAgent": byCaller, "ErrClaimed": byCaller, "ErrDecided": byCaller, "ErrNotOpen": byCaller,
	"ErrDecision": byCaller, "ErrCallInFlight": byCaller, "ErrSessionBusy": byCaller, "ErrSessionWaiting": byCaller, "SessionBusyError": byCaller,
	"SessionWaitingError": byCaller, "ErrState": byCaller, "ErrNewerState": byCaller, "ErrFork": byCaller, "ErrSeal": byCaller,
	"ErrStopped": byCaller, "ErrInputRefused": byCaller, "RunError": byCaller,

	"ErrOutcomeUnknown": byTool, "ErrPending": byTool, "AskError": byTool,

	"EngineError": byEngine, "FailedError": byEngine,
}

func TestEngineErrorsAreAllSorted(t *testing.T) {
	for name := range errorsOfPawl {
		if overEngine[name] == "" {
			t.Errorf("nobody says what becomes of a %s on an engine", name)
		}
	}
	for name := range notReturned {
		if overEngine[name] == "" {
			t.Errorf("nobody says what becomes of a %s on an engine", name)
		}
	}
	if want := len(errorsOfPawl) + len(notReturned); len(overEngine) != want {
		t.Errorf("%d errors are sorted, want %d", len(overEngine), want)
	}
	for name, where := range overEngine {
		_, stop := stops[name]
		_, effect := effectErrors[name]
		if stop != (where == byStop) || effect != (where == byFailure || where == byText) {
			t.Errorf("%s: %s; a stop: %v, of an effect: %v", name, where, stop, effect)
		}
	}
}

// stops are errors with which a worker cannot begin a step, with the codes by which they travel.
var stops = map[string]struct {
	err  error
	code string
}{
	"ErrUnknownAgent":    {pawl.ErrUnknownAgent, "unknown_agent"},
	"ErrSessionMissing":  {pawl.ErrSessionMissing, "session_missing"},
	"ErrSessionMismatch": {pawl.ErrSessionMismatch, "session_mismatch"},
	"ErrToolChanged":     {pawl.ErrToolChanged, "tool_changed"},
	"ErrFenced":          {pawl.ErrFenced, "fenced"},
	"ErrUnknownRun":      {pawl.ErrUnknownRun, "unknown_run"},
	"ErrConflict":        {pawl.ErrConflict, "conflict"},
	"ConfigError":        {&pawl.ConfigError{Field: "Agent.Tools[0]", Problem: "has no name: give it one"}, "config"},
	"ContextError":       {&pawl.ContextError{Err: errors.New("pawl: no such user")}, "context"},
}

// A stop is the error that it stands for, behind its code and its text, and reads as it does.
func TestEngineStopsAreErrors(t *testing.T) {
	for name, s := range stops {
		stop := pawl.EngineStop(&pawl.RunError{Run: "r", Err: s.err})
		if stop == nil || stop.Code != s.code {
			t.Errorf("%s: %+v, want the code %s", name, stop, s.code)
			continue
		}
		err := fmt.Errorf("run r: %w", &pawl.EngineError{Code: stop.Code, Text: stop.Text})
		if !errorsOfPawl[name](err) || err.Error() != "run r: "+s.err.Error() {
			t.Errorf("%s comes as %v", name, err)
		}
	}
	var config *pawl.ConfigError
	if !errors.As(pawl.EngineStop(stops["ConfigError"].err), &config) || *config != *stops["ConfigError"].err.(*pawl.ConfigError) {
		t.Errorf("%+v", config)
	}
	var context *pawl.ContextError
	if !errors.As(pawl.EngineStop(stops["ContextError"].err), &context) || context.Err.Error() != "no such user" || context.Error() != stops["ContextError"].err.Error() {
		t.Errorf("%+v", context)
	}
	for err, code := range map[error]string{journal.ErrNewerJournal: "newer_journal", journal.ErrCorrupt: "corrupt"} {
		if stop := pawl.EngineStop(err); stop == nil || stop.Code != code || !errors.Is(stop, err) {
			t.Errorf("%v: %+v, want the code %s", err, stop, code)
		}
	}
	for _, err := range []error{pawl.ErrClaimed, &pawl.JournalError{Err: errors.New("no disk")}, errors.New("no net"), nil} {
		if stop := pawl.EngineStop(err); stop != nil {
			t.Errorf("%v is tried again, and is a stop: %+v", err, stop)
		}
	}
	if (&pawl.EngineError{Code: "of a later version", Text: "pawl: odd"}).Unwrap() != nil {
		t.Error("an unknown code stands for something")
	}
}

// effectErrors are errors of effects, with the codes that the ledger has of them.
var effectErrors = map[string]struct {
	err  error
	code string
}{
	"ErrSessionAmbiguous":   {fmt.Errorf("a batch: %w", pawl.ErrSessionAmbiguous), "session_ambiguous"},
	"ErrDeliveryAmbiguous":  {pawl.ErrDeliveryAmbiguous, "delivery_ambiguous"},
	"SessionAmbiguousError": {&pawl.SessionAmbiguousError{}, "session_ambiguous"},
	"ToolNotFoundError":     {&pawl.ToolNotFoundError{Tool: "pay", CallID: "c1"}, "tool_not_found"},
	"CallIDError":           {&pawl.CallIDError{CallID: "c1"}, "call_id_reused"},
	"RefusalError":          {&pawl.RefusalError{Refusal: "no"}, "refusal"},
	"OutputError":           {&pawl.OutputError{Err: errors.New("no JSON")}, "invalid_output"},
	"PanicError":            {&pawl.PanicError{In: "m1.0.1", Value: "oh"}, "panic"},
	"GuardrailError":        {&pawl.GuardrailError{Guardrail: "g", Err: errors.New("no net")}, "guardrail"},
	"FilterError":           {&pawl.FilterError{Err: errors.New("no")}, "filter"},
	"ToolSourceError":       {&pawl.ToolSourceError{Source: "s", Err: errors.New("no net")}, "tool_source"},
	"TimeoutError":          {&pawl.TimeoutError{Err: errors.New("late")}, "error"},
	"LostRangeError":        {&pawl.LostRangeError{Err: errors.New("gone")}, "error"},
	"model.Error":           {&model.Error{Status: 400, Delivery: model.DeliveryRefused, Err: errors.New("no")}, "model"},
}

// The failure of an effect comes with its code and its text, and is the error where the code alone says it.
func TestEngineFailuresAreErrors(t *testing.T) {
	for name, e := range effectErrors {
		t.Run(name, func(t *testing.T) {
			agent := agentWith(newScript(failing(e.err)))
			r, _ := onEngine(t, agent, pawl.StepperOptions{})
			_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			var run *pawl.RunError
			var failed *pawl.FailedError
			if !errors.As(err, &run) || !errors.As(err, &failed) || failed.Code != e.code {
				t.Fatalf("%v, want the code %s", err, e.code)
			}
			if failed.Error() != e.err.Error() && failed.Error() != "pawl: "+e.err.Error() {
				t.Errorf("it reads %s, want %s", failed, e.err)
			}
			if is := errorsOfPawl[name]; is != nil && is(err) != (overEngine[name] == byFailure) {
				t.Errorf("it is one: %v; but %s", is(err), overEngine[name])
			}
		})
	}
}
