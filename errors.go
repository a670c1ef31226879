package pawl

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// Errors that tell a caller what to do. They are wrapped by a *RunError when a run
// is known; test with errors.Is.
var (
	// ErrRunExists: the run id is in use with another input, agent or conversation.
	ErrRunExists = errors.New("pawl: the run id is in use with another input, agent or conversation; resume that run, or choose another id")
	// ErrUnknownRun: the store has no such run.
	ErrUnknownRun = journal.ErrUnknownRun
	// ErrUnknownAgent: the run's agent was not given and is not among
	// Runner.Agents.
	ErrUnknownAgent = errors.New("pawl: the run's agent is not known here")
	// ErrWrongAgent: the run was started with an agent of another key.
	ErrWrongAgent = errors.New("pawl: the run belongs to another agent")
	// ErrClaimed: another driver has the run. It is a *journal.ClaimedError too.
	ErrClaimed = errors.New("pawl: the run is being driven elsewhere")
	// ErrFenced: the run was taken over while this driver had it; what it did
	// since is refused.
	ErrFenced = journal.ErrFenced
	// ErrConflict: the state is not a beginning of the stored run, or decides what
	// has moved on.
	ErrConflict = errors.New("pawl: the state and the stored run have gone different ways")
	// ErrStopped: the driving was stopped with StopAfterTurn. The run can be resumed.
	ErrStopped = errors.New("pawl: the driving was stopped before the next turn")
	// ErrDecided: the interruption was decided otherwise before.
	ErrDecided = errors.New("pawl: the interruption was decided otherwise before")
	// ErrNotOpen: the interruption is not open, or not of this run.
	ErrNotOpen = errors.New("pawl: the interruption is not open")
	// ErrDecision: the decision does not fit the interruption or its arguments.
	ErrDecision = errors.New("pawl: the decision does not fit the interruption")
	// ErrCallInFlight: the call may still be running elsewhere; decide it later.
	ErrCallInFlight = errors.New("pawl: the call may still be running")
	// ErrToolChanged: a call's tool is gone or is another one than when the call
	// was planned.
	ErrToolChanged = errors.New("pawl: the call's tool has changed")
	// ErrOutcomeUnknown, wrapped by a tool's error, says that the tool may have
	// taken effect.
	ErrOutcomeUnknown = errors.New("pawl: the outcome is unknown")
	// ErrPending, returned or wrapped by a tool's body, says that the tool has started
	// something whose result comes later: the run shows an External interruption, which
	// Settle answers. The text of a wrapping error is its Note.
	ErrPending = errors.New("pawl: the result comes later")
	// ErrApprovalExpired: nobody decided an approval in time, and its tool says that
	// the run fails then. Resuming the run opens the approval again.
	ErrApprovalExpired = errors.New("pawl: an approval has expired")
	// ErrSessionMissing: the run has a session, and none was given.
	ErrSessionMissing = errors.New("pawl: the run's session is missing")
	// ErrSessionMismatch: the session is not the one the run recorded.
	ErrSessionMismatch = errors.New("pawl: the session is not the run's session")
	// ErrSessionBusy: another open run has the session or the conversation, and
	// somebody drives it. It is a *SessionBusyError.
	ErrSessionBusy = errors.New("pawl: another run has the session and is being driven")
	// ErrSessionWaiting: another open run has the session or the conversation, and
	// waits for decisions. It is a *SessionWaitingError.
	ErrSessionWaiting = errors.New("pawl: another run has the session and waits for decisions")
	// ErrSuperseded: the run was closed to make room for another one. It is a
	// *SupersededError, and ErrCancelled too.
	ErrSuperseded = errors.New("pawl: the run was closed to make room for another")
	// ErrSessionAmbiguous: after a failed append nobody can tell whether the
	// session has the batch. It is a *SessionAmbiguousError.
	ErrSessionAmbiguous = errors.New("pawl: the session's tail does not say whether the batch was stored")
	// ErrDeliveryAmbiguous: after a failed request nobody can tell what the conversation
	// holds, or whether the server acted on the approval of a hosted tool. Nothing is sent.
	ErrDeliveryAmbiguous = errors.New("pawl: nobody can tell whether the request was processed")
	// ErrState: a RunState document is damaged, edited, or not one.
	ErrState = errors.New("pawl: the run state cannot be read")
	// ErrNewerState: a RunState document of a newer schema.
	ErrNewerState = errors.New("pawl: the run state was written by a newer version of Pawl")
	// ErrFork: the run cannot be forked as it stands.
	ErrFork = errors.New("pawl: the run cannot be forked now")
	// ErrTooDeep: an agent was to be called as a tool below eight others. It was not
	// started; if AgentFunc.FailRun does not say so, the model is told.
	ErrTooDeep = errors.New("pawl: agents are nested too deep")
	// ErrCancelled: the run was cancelled.
	ErrCancelled = errors.New("pawl: the run was cancelled")
)

// bare is the text of an error that stands behind another one's.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "pawl: ") }

// because is the error is, explained by its cause, which may say the same in more words.
func because(is, cause error) error { return &explainedError{is, cause, cause.Error()} }

type explainedError struct {
	is, cause error
	why       string
}

func (e *explainedError) Error() string {
	if strings.HasPrefix(e.why, e.is.Error()) {
		return e.why
	}
	return e.is.Error() + ": " + strings.TrimPrefix(e.why, "pawl: ")
}

func (e *explainedError) Unwrap() []error { return []error{e.is, e.cause} }

// RunError is an error of a run. It carries the state from which the run can be
// resumed.
type RunError struct {
	// Run is the run's id.
	Run string
	// Effect is what failed, for example "model call of turn 2, attempt 1"; empty if
	// nothing failed but the driving.
	Effect string
	// State is the run as it is recorded; nil if it had not begun.
	State *RunState
	// Err is the cause.
	Err error
}

// Error names the run, what failed, and why.
func (e *RunError) Error() string {
	at := ""
	if e.Effect != "" {
		at = ", " + e.Effect
	}
	return fmt.Sprintf("pawl: run %s%s: %s", e.Run, at, bare(e.Err))
}

// Unwrap returns the cause.
func (e *RunError) Unwrap() error { return e.Err }

// ConfigError is a mistake in how an agent, a tool or a run is described. It is
// returned before anything happened.
type ConfigError struct{ Field, Problem string }

// Error names the field and what is wrong with it.
func (e *ConfigError) Error() string {
	return "pawl: " + e.Field + ": " + strings.TrimPrefix(e.Problem, "pawl: ")
}

// MaxTurnsError says that the run used up its turns. Resume it with a larger
// RunOptions.MaxTurns.
type MaxTurnsError struct{ MaxTurns int }

// Error names the bound.
func (e *MaxTurnsError) Error() string {
	return fmt.Sprintf("pawl: no final output after %d turns; resume the run with a larger MaxTurns", e.MaxTurns)
}

// ToolNotFoundError says that the model called a tool the agent does not have, or that is
// disabled. No call of the response was started; resume the run with the tool added or
// enabled, or with ToolNotFound set to TellModel.
type ToolNotFoundError struct {
	Tool, CallID string
	// Disabled says that the agent has the tool, and its Enabled says no.
	Disabled bool
	// Tools are the names that were offered.
	Tools []string
}

// Error names the tool and what there is instead.
func (e *ToolNotFoundError) Error() string {
	why := "the agent does not have"
	if e.Disabled {
		why = "is configured, but disabled"
	}
	return fmt.Sprintf("pawl: the model called the tool %q (call %s), which %s; it has %s", e.Tool, e.CallID, why, cmp.Or(strings.Join(e.Tools, ", "), "none"))
}

// CallIDError says that a response reuses a call id for another call. Nothing of the
// response was started.
type CallIDError struct{ CallID string }

// Error names the id.
func (e *CallIDError) Error() string {
	return fmt.Sprintf("pawl: the model used the call id %q for two different calls", e.CallID)
}

// RefusalError says that the model refused to answer.
type RefusalError struct{ Refusal string }

// Error quotes the refusal.
func (e *RefusalError) Error() string { return "pawl: the model refused: " + e.Refusal }

// OutputError says that the final output does not fit the agent's output type.
type OutputError struct {
	Text string
	Err  error
}

// Error says what does not fit.
func (e *OutputError) Error() string {
	return "pawl: the final output does not fit its type: " + bare(e.Err)
}

// Unwrap returns the cause.
func (e *OutputError) Unwrap() error { return e.Err }

// PanicError is a panic of user code, recovered.
type PanicError struct {
	// In says which user code, for example `tool "refund"`.
	In    string
	Value any
	Stack string
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Error quotes the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("pawl: %s panicked: %v", e.In, e.Value) }

// panicked makes a panic of user code the error: of the code called in, that of name unless it
// is empty. It is deferred, also where nothing must be made for a panic that does not come.
func panicked(in, name string, err *error) {
	if v := recover(); v != nil {
		if name != "" {
			in = fmt.Sprintf("%s %q", in, name)
		}
		*err = &PanicError{In: in, Value: v, Stack: string(debug.Stack())}
	}
}

// TimeoutError says that a model attempt ran into Settings.Timeout.
type TimeoutError struct{ Err error }

// Error says so.
func (e *TimeoutError) Error() string {
	return "pawl: the model did not answer in time: " + bare(e.Err)
}

// Unwrap returns the cause.
func (e *TimeoutError) Unwrap() error { return e.Err }

// Timeout returns true.
func (e *TimeoutError) Timeout() bool { return true }

// SessionAmbiguousError is what a caller needs to repair a session by hand: it says
// what the run wanted to append and what the session ends with. Make the session end
// with the batch, or without it behind the items before, and resume.
type SessionAmbiguousError struct {
	Session string
	// Batch is what was to be appended, Before what the session is to end with
	// before it, Tail what it ends with.
	Batch, Before, Tail []Item
}

// Error names the session.
func (e *SessionAmbiguousError) Error() string {
	return fmt.Sprintf("%s: session %q, a batch of %d; make the session end with the batch or without it, and resume the run", ErrSessionAmbiguous, e.Session, len(e.Batch))
}

// Unwrap returns ErrSessionAmbiguous.
func (e *SessionAmbiguousError) Unwrap() error { return ErrSessionAmbiguous }

// JournalError says that the store did not take what happened. The run stopped; its
// State has the facts that could not be recorded, so resuming it in this process
// records them.
type JournalError struct {
	// Unrecorded is how many facts the store does not have.
	Unrecorded int
	Err        error
}

// Error says how much is not recorded, and why.
func (e *JournalError) Error() string {
	return fmt.Sprintf("pawl: the run store failed with %d facts to record: %s", e.Unrecorded, bare(e.Err))
}

// Unwrap returns the cause.
func (e *JournalError) Unwrap() error { return e.Err }

// AskAgain, returned by a tool's body that did nothing yet, says that somebody has to be
// asked first: the run shows an ApprovalNeeded interruption with the question as its Note.
// Approved, the body runs again, with the same key and arguments, and Call.Approvals says
// that it has been answered; rejected, the call is answered with that.
func AskAgain(question string) error { return &AskError{Question: question} }

// AskError is the error that AskAgain returns.
type AskError struct{ Question string }

// Error quotes the question.
func (e *AskError) Error() string { return "pawl: the tool asks: " + e.Question }

// FailedError is a failure read from a ledger: the effect's error as text. Unwrap returns the error of this package that
// the code stands for, ErrSessionAmbiguous or ErrDeliveryAmbiguous, nil if there is none.
type FailedError struct{ Code, Text string }

// Error quotes it.
func (e *FailedError) Error() string { return "pawl: " + strings.TrimPrefix(e.Text, "pawl: ") }

// Unwrap returns what the code stands for.
func (e *FailedError) Unwrap() error {
	for _, c := range failureCodes {
		if c.code == e.Code {
			return c.is
		}
	}
	return nil
}

// failureCodes are the errors that a ledger keeps of a failure besides its text.
var failureCodes = []struct {
	code string
	is   error
}{
	{"session_ambiguous", ErrSessionAmbiguous}, {"delivery_ambiguous", ErrDeliveryAmbiguous},
}

// refusal turns a refusal of the machine into the error a caller acts on.
func refusal(err error) error {
	var decided *machine.DecidedError
	var inFlight *machine.InFlightError
	switch {
	case errors.As(err, &decided):
		return &explainedError{ErrDecided, err, fmt.Sprintf("%s by %q", decided.First.Verdict, decided.First.By)}
	case errors.As(err, &inFlight):
		return &explainedError{ErrCallInFlight, err, "decide it after " + time.UnixMilli(inFlight.Until).UTC().Format(time.RFC3339)}
	}
	for _, t := range []struct{ is, as error }{
		{machine.ErrInFlight, ErrCallInFlight}, {machine.ErrDigest, ErrDecision}, {machine.ErrVerdict, ErrDecision}, {machine.ErrNotDue, ErrNotOpen},
	} {
		if errors.Is(err, t.is) {
			return &explainedError{t.as, err, strings.TrimPrefix(err.Error(), t.is.Error()+": ")}
		}
	}
	return err
}
