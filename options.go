package pawl

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// Item is a conversation item.
type Item = item.Item

// Input is what a run starts with.
type Input []Item

// UserText is the input of one user message.
func UserText(s string) Input { return Input{item.UserText(s)} }

// DefaultMaxTurns bounds a run that names no bound of its own.
const DefaultMaxTurns = 10

// RunOptions are the options of a run; nil means all defaults. On a resume the run's
// id, input and conversation are what they were: ID and the conversation fields must be
// empty, and Session, if set, must be the session the run was started with. MaxTurns,
// MaxParallelTools and OmitReasoningIDs are the run's, too. Everything else belongs to the driving: give it
// again.
type RunOptions struct {
	// ID is the run's id; empty means a generated one. A run that exists with
	// the same input, agent and conversation is attached to.
	ID string
	// Session is the conversation to read and append to.
	Session session.Session
	// ConversationID, PreviousResponseID and AutoPreviousResponseID let the
	// server hold the conversation: a conversation object, a chain that begins at a
	// response, or a chain that begins with this run. They exclude each other
	// and Session.
	ConversationID         string
	PreviousResponseID     string
	AutoPreviousResponseID bool
	// MergeInput says what the model is to read of what the session held and of the input,
	// in which order, and what else; nil means one behind the other. It is called once a
	// run that has a session, also an empty one; what it returned is recorded, so that a
	// resume does not ask again. The session gets the input as it is. A list without
	// items, an output before its call and a call without its output are errors, which
	// fail the run, resumably, as its own do: each is a *FilterError. Outputs in the
	// session that have no call there are not among the history.
	MergeInput func(ctx context.Context, history, input []Item) ([]Item, error)
	// Supersede closes an open run that waits for decisions on the same session or
	// conversation, instead of refusing to start with ErrSessionWaiting: its open calls
	// are settled, what it owes the session is appended, and deciding or resuming it
	// is ErrSuperseded from then on. A run that somebody drives is not closed.
	Supersede bool
	// MaxTurns bounds the model turns of the whole run, resumes included: 0
	// means DefaultMaxTurns (on a resume: unchanged), negative means no bound.
	MaxTurns int
	// MaxParallelTools bounds the tools in flight; 0 means no bound. A resume does
	// not change it.
	MaxParallelTools int
	// OmitReasoningIDs leaves the ids of reasoning items out of what is sent to the model,
	// appended to the session and returned by Result, for servers that refuse an id they
	// did not give or do not keep. What an older run left in the session stays as it is
	// there, and is sent without ids. The ledger, and so the stream, has them. A resume
	// does not change it.
	OmitReasoningIDs bool
	// Queue is whose run it is: workers share themselves out between queues, see Work. Of the
	// runs that are due those with the highest Priority come first. A resume changes
	// neither.
	Queue    string
	Priority int
	// StartAt is when workers may begin a run that is submitted; the zero time is at once. Whoever
	// resumes it by hand does not wait. It is for Submit.
	StartAt time.Time
	// Context is handed to user code as RunContext.Value. Without a ContextCodec it is
	// not stored: give it again on a resume.
	Context any
	// ContextCodec writes Context into the ledger when the run starts, and when a resume gives
	// another one, and reads it when a resume gives none. What is changed in the value later is
	// not recorded. The ledger is no place for secrets. A run whose context was recorded cannot
	// be resumed without a codec or a Context. It is of the run itself: nested runs have the
	// caller's value, or the one of their AgentFunc.Options.
	ContextCodec ContextCodec
	// FilterInput may change what a turn's request says; nil means nothing is changed. It is
	// called in every turn, when everything else of the request is known. What it made of
	// it is recorded, so that a repeated attempt sends the same without asking again. The
	// session and Result.ToInputList have the conversation as it is, and the next turn
	// begins with that. Its error, or a panic, fails the run, resumably; so does what no
	// model can be sent, as a *FilterError.
	FilterInput func(ctx context.Context, in *ModelInput) error
	// HandoffFilter says what an agent that the conversation is handed over to is to read
	// of it, if the handoff has no Filter; nil means everything. It needs a run whose
	// conversation the server does not keep.
	HandoffFilter HandoffFilter
	// Hooks are told what happens in the run.
	Hooks *Hooks
	// ErrorHandlers turn some errors of the run into a final output.
	ErrorHandlers ErrorHandlers
	// NestHandoffs makes one message of the conversation for an agent that it is handed over
	// to, as NestHistory does, if neither the handoff nor the run has a filter; nil means
	// no. Where the server keeps the conversation nothing is changed, and
	// Result.Warnings says so.
	NestHandoffs *NestOptions
	// InputGuardrails and OutputGuardrails are asked behind those of the agent. Runs that an
	// agent's tool starts with these options have them, too.
	InputGuardrails  []InputGuardrail
	OutputGuardrails []OutputGuardrail
	// GuardBeforeApproval asks a tool's InputGuardrails also before somebody is asked to
	// approve a call, so that nobody decides on what would be rejected.
	GuardBeforeApproval bool
	// OnApprovalRequest answers the questions of the model's server whether it may call a tool of
	// an MCP server that it talks to itself: Allow, Deny, with the reason that the model reads
	// unless it is empty, or Ask. Nil, and any other answer, means that a person decides
	// (ApprovalNeeded), and so it does if the function errs, panics or takes longer than 30
	// seconds, or if the arguments cannot be read. The answer is recorded with the response, so
	// that it is asked again only if the process ended before that. What was decided with
	// Decision.Always stands: a rejection whatever it says, an approval where it asks.
	OnApprovalRequest func(ctx context.Context, r ApprovalRequest) (gate Gate, reason string, err error)
	// Model and Settings override those of every agent.
	Model    model.Model
	Settings *ModelSettings
	// ToolNotFound says what follows a call of a tool the agent does not have.
	ToolNotFound ToolNotFound
	// ToolErrors makes the texts for calls that are not run; nil or an empty
	// answer means the standard texts.
	ToolErrors func(ToolError) string
}

// ToolNotFound says what follows a call of a tool the agent does not have.
type ToolNotFound int

// What follows a call of an unknown tool.
const (
	// FailRun fails the run with a *ToolNotFoundError, before any call of the
	// response is started.
	FailRun ToolNotFound = iota
	// TellModel answers the call with an error output, and the run goes on.
	TellModel
)

// ToolError describes a call that is not run, for RunOptions.ToolErrors.
type ToolError struct {
	Kind   ToolErrorKind
	Tool   string
	CallID string
	// Default is the standard text.
	Default string
}

// ToolErrorKind says why a call is not run.
type ToolErrorKind string

// Why a call is not run.
const (
	ToolErrorNotFound  ToolErrorKind = "tool_not_found"
	ToolErrorRejected  ToolErrorKind = "approval_rejected"
	ToolErrorArguments ToolErrorKind = "invalid_arguments"
	// ToolErrorIgnored: a handoff, behind another one in the same response.
	ToolErrorIgnored ToolErrorKind = "handoff_ignored"
)

func (o *RunOptions) orDefault() *RunOptions {
	if o == nil {
		return &RunOptions{}
	}
	return o
}

// check reports options that exclude each other.
func (o *RunOptions) check(m model.Model, resume bool) error {
	if isNil(o.Session) {
		return &ConfigError{Field: "RunOptions.Session", Problem: fmt.Sprintf("is a nil %T", o.Session)}
	}
	managed := 0
	for _, set := range []bool{o.ConversationID != "", o.PreviousResponseID != "" || o.AutoPreviousResponseID, o.Session != nil} {
		if set {
			managed++
		}
	}
	switch {
	case managed > 1:
		return &ConfigError{Field: "RunOptions", Problem: "a session, a conversation id and a previous response id exclude each other"}
	case o.server() && !m.Info().ServerState:
		return &ConfigError{Field: "RunOptions", Problem: "the model's server keeps no conversation, as ConversationID, PreviousResponseID and AutoPreviousResponseID ask for"}
	case resume && (o.server() || o.ID != ""):
		return &ConfigError{Field: "RunOptions", Problem: "a resumed run keeps its id and its conversation"}
	case !utf8.ValidString(o.ID):
		return &ConfigError{Field: "RunOptions.ID", Problem: notUTF8}
	case o.Session != nil && !utf8.ValidString(o.Session.ID()):
		return &ConfigError{Field: "RunOptions.Session", Problem: "its id " + notUTF8}
	case !utf8.ValidString(o.Queue):
		return &ConfigError{Field: "RunOptions.Queue", Problem: notUTF8}
	case !resume && !o.StartAt.IsZero():
		return &ConfigError{Field: "RunOptions.StartAt", Problem: "is for Submit: a run that is driven has begun"}
	case o.MaxParallelTools < 0:
		return &ConfigError{Field: "RunOptions.MaxParallelTools", Problem: "is negative"}
	case o.ToolNotFound != FailRun && o.ToolNotFound != TellModel:
		return &ConfigError{Field: "RunOptions.ToolNotFound", Problem: "is neither FailRun nor TellModel"}
	}
	if err := checkInputGuardrails(o.InputGuardrails); err != nil {
		return &ConfigError{Field: "RunOptions.InputGuardrails", Problem: err.Error()}
	}
	if err := checkOutputGuardrails(o.OutputGuardrails); err != nil {
		return &ConfigError{Field: "RunOptions.OutputGuardrails", Problem: err.Error()}
	}
	return nil
}

func (o *RunOptions) server() bool {
	return o.ConversationID != "" || o.PreviousResponseID != "" || o.AutoPreviousResponseID
}
