package journal

import "github.com/pawl-agents/pawl/item"

// Kind names a kind of fact.
type Kind string

// The kinds of facts. Their meaning is in docs/spec.md.
const (
	KindStarted     Kind = "started"
	KindForked      Kind = "forked"
	KindClaimed     Kind = "claimed"
	KindResumed     Kind = "resumed"
	KindLoaded      Kind = "loaded"
	KindPrepared    Kind = "prepared"
	KindIntended    Kind = "intended"
	KindResponded   Kind = "responded"
	KindPlanned     Kind = "planned"
	KindDecided     Kind = "decided"
	KindSettled     Kind = "settled"
	KindExpired     Kind = "expired"
	KindJudged      Kind = "judged"
	KindConfirmed   Kind = "confirmed"
	KindAbsent      Kind = "absent"
	KindFailed      Kind = "failed"
	KindFired       Kind = "fired"
	KindTransferred Kind = "transferred"
	KindChecked     Kind = "checked"
	KindHandled     Kind = "handled"
	KindAdded       Kind = "added"
	KindAdmitted    Kind = "admitted"
	KindObserved    Kind = "observed"
	KindCancelled   Kind = "cancelled"
	KindFinished    Kind = "finished"
)

// Fact is one thing that happened in a run. Facts are never changed once they are
// appended.
type Fact struct {
	// Frame is the nested run the fact belongs to; empty for the run itself.
	Frame string
	// Time is when the driver stepped the fact, in Unix milliseconds.
	Time int64
	// Body is one of the pointer types of this package, for example *Started.
	Body Body
}

// Body is the content of a fact. Its implementations are the structs of this
// package.
type Body interface {
	// Kind names the fact.
	Kind() Kind
}

// Started is the first fact of a run, and of a nested one.
type Started struct {
	Run   string
	Agent string // the agent's key
	// Digest is over the input and the agent's key; an equal one attaches.
	Digest item.Digest
	Input  []item.Item
	// Session is nil without one.
	Session *SessionRef
	// Conversation, Previous and Auto choose a server-managed conversation.
	Conversation string
	Previous     string
	Auto         bool
	// MaxTurns bounds the admitted turns; 0 means unlimited.
	MaxTurns int
	// Parallel bounds the tools in flight; 0 means no bound.
	Parallel int
	// UniqueCallIDs is what the model's adapter declared.
	UniqueCallIDs bool
	// Guards are the guardrails on Input.
	Guards Guards
	// OmitReasoningIDs says that reasoning items are sent and stored without their ids.
	OmitReasoningIDs bool
	// Context is what a codec of the application wrote of the run's context value; empty
	// without one.
	Context string
	// Queue, Priority and Due say when a worker is to take the run up: whose runs it shares
	// its turn with, the higher the sooner, and from when on, in Unix milliseconds; 0 is at once.
	Queue    string
	Priority int
	Due      int64
	// Machine is the version of the rules the run started under.
	Machine int
}

// SessionRef is the session a run is bound to.
type SessionRef struct {
	ID      string
	Backend string
	// Own says that the session lives in the run store's own database, so that
	// a batch and its fact commit together.
	Own bool
	// Batches says that the session remembers batch ids.
	Batches bool
}

// Forked turns a copy of a ledger into a run of its own.
type Forked struct {
	Run string
	// Session is nil unless the fork was given one.
	Session *SessionRef
}

// Claimed says that a driver took the run. What was in flight under an older epoch
// is in doubt.
type Claimed struct {
	Epoch uint64
	Owner Owner
	// Gone says that the owner in the claimed fact before is known to be gone, so
	// that nothing it had started can still be running.
	Gone bool
}

// Owner says who holds a claim. On one host, a process that no longer exists, or
// whose start time differs, is gone.
type Owner struct {
	Host string
	Boot string // the host's boot id
	PID  int
	// Start is the process's start time in the operating system's own units.
	Start string
}

// Resumed clears a failure: the run tries again from where it was.
type Resumed struct {
	// MaxTurns replaces the run's bound when not 0; negative means unlimited.
	MaxTurns int
	// Context, when not empty, replaces what was recorded of the run's context value.
	Context string
}

// Loaded is the history read from the session at the start of the run.
type Loaded struct {
	Items []item.Item
	// Healed are outputs for open calls found in that history; they are owed
	// to the session before anything else.
	Healed []item.Item
	// View, when not empty, is what requests send instead of the history with the
	// run's input.
	View []Span
}

// Prepared is the request of turn N, and the intent of its first attempt.
type Prepared struct {
	N int
	// Upto is the place in the history where the request ends.
	Upto int
	// Manifest is what the turn was offered. It is recorded once: a turn equal
	// to an earlier one has a nil Manifest and names the earlier one in Same.
	Manifest *Manifest
	// Same is the turn whose manifest this turn shares; N when it has its own.
	Same int
	// View, when not empty, is what this turn's request sends instead of what it would.
	View []Span
}

// Manifest is what a turn offers the model, as far as the rules need it.
type Manifest struct {
	Agent string
	// Instructions is the system prompt as sent.
	Instructions string
	// Prompt is the stored prompt as sent, a JSON object; empty without one.
	Prompt string
	// Settings is the digest of the settings and the model's name.
	Settings string
	Tools    []ToolSpec
	// ToolUse is what follows a turn's tools: "", "first", "names" or "custom".
	ToolUse string
	// StopAt are the names for ToolUse "names".
	StopAt []string
	// Output is the digest of the structured output's schema, empty for text.
	Output string
	// GuardsInput and GuardsOutput say that the agent has guardrails: on input that
	// is added to the run, and on its final output.
	GuardsInput  bool
	GuardsOutput bool
	// Handles are the errors for which the application has a handler.
	Handles []Handles
}

// Class is a tool's effect class.
type Class string

// The effect classes.
const (
	AtMostOnce Class = ""
	Idempotent Class = "idempotent"
	ReadOnly   Class = "readonly"
	// Transactional: the effect and its outcome commit together, in the run store's
	// own database.
	Transactional Class = "transactional"
)

// OnUnknown says what follows when a call's outcome is unknown.
type OnUnknown string

// What follows an unknown outcome.
const (
	// UnknownDefault tells the model when a live driver saw it happen and waits
	// for a person after a crash.
	UnknownDefault OnUnknown = ""
	UnknownTell    OnUnknown = "tell"
	UnknownWait    OnUnknown = "wait"
)

// ToolSpec is a tool as recorded in a manifest. Class and identity govern the
// call from then on.
type ToolSpec struct {
	Name string
	// Identity is origin, name and schema digest.
	Identity string
	Class    Class
	// Timeout bounds the body, in milliseconds.
	Timeout   int64
	OnUnknown OnUnknown
	// Recover says that the far side can be asked what became of a call in doubt.
	Recover bool
	// Expires is how long an approval stays open, in milliseconds; 0 means for ever.
	Expires int64
	// ExpiryFails says that an approval that expired fails the run, which can be
	// resumed; without it the call is rejected.
	ExpiryFails bool
	// Agent is the key of the agent that the tool runs; such a tool has no body.
	Agent string
	// TellFailure says that the model is told when the nested run of that agent
	// fails; without it the whole run fails.
	TellFailure bool
	// Handoff is the key of the agent that a call hands the conversation to; such a
	// tool has no body.
	Handoff string
	// Guarded says that guardrails check a call before it starts.
	Guarded bool
	// Hosted says that the model's server runs the tool: what it asks for is an approval, and
	// the answer is all there is to a call.
	Hosted bool
}

// Intended says that an effect is about to start.
type Intended struct {
	ID EffectID
	// Upto is where a session batch or a request ends in the history.
	Upto int
	// NotAfter is when a tool's body must have ended, in Unix milliseconds.
	NotAfter int64
}

// Responded is a response the model completed.
type Responded struct {
	ID         EffectID
	ResponseID string
	RequestID  string
	Items      []item.Item
	Usage      *Usage
}

// Usage counts the tokens of one model request. A nil Usage means unknown.
type Usage struct {
	Input, Cached, Output, Reasoning, Total int64
	Raw                                     string
}

// Gate is what an approval rule answered.
type Gate string

// The answers of a rule.
const (
	Allow Gate = ""
	Ask   Gate = "ask"
	Deny  Gate = "deny"
)

// Planned is the classification of response N.
type Planned struct {
	N     int
	Calls []PlannedCall
	// Tools are the tools of calls whose tool is not in the turn's manifest as it
	// is now: it was added or changed since the request.
	Tools []ToolSpec
	// Final says where the candidate of the final output is.
	Final Final
	// FinalAt is the position, among the response's items, of the message that
	// holds it.
	FinalAt int
	// Refusal is the text of a refusal.
	Refusal string
}

// Final says what a response without calls means.
type Final string

// What a response without calls means.
const (
	FinalNone    Final = ""        // go on
	FinalMessage Final = "message" // the text of the message at FinalAt
	FinalEmpty   Final = "empty"   // no message: the empty text
	FinalRefusal Final = "refusal" // the model refuses, in the message at FinalAt
	FinalInvalid Final = "invalid" // the message at FinalAt, or no message, is no valid output
)

// PlannedCall is one call of a response.
type PlannedCall struct {
	// P is the call's position among the response's items.
	P int
	// Tool is the tool's place in the turn's manifest and, counted on, in the plan's
	// Tools; -1 if there is none.
	Tool int
	// Digest is over the canonical arguments, or over the raw ones if they are
	// unreadable.
	Digest item.Digest
	Gate   Gate
	// Unreadable says that the arguments cannot be read: the body never runs
	// with them.
	Unreadable bool
	// Twin says that the call repeats an earlier one of the same response; it is
	// dropped.
	Twin bool
	// Output settles the call at once: an unknown tool, unreadable arguments.
	Output item.Item
	// Reject is the output to use if the call is denied or rejected without a
	// text of the reviewer's.
	Reject string
	// Checks are what guardrails said before anybody was asked for an approval.
	Checks []Check
}

// Verdict is what was decided about an interruption.
type Verdict string

// The verdicts.
const (
	Approve Verdict = "approve"
	Reject  Verdict = "reject"
	// Settle, Retry and GiveUp decide a call that is in doubt; Settle alone one
	// whose result arrives later.
	Settle Verdict = "settle"
	Retry  Verdict = "retry"
	GiveUp Verdict = "giveup"
)

// Decided is a decision, as it was taken.
type Decided struct {
	// Call is the call's effect id without an attempt. Stage is 0 for what its
	// rule asks, and counts what was open about the call from then on.
	Call  EffectID
	Stage int
	// Digest is of the arguments the decider saw.
	Digest  item.Digest
	Verdict Verdict
	// Sticky extends an approval or rejection to open and later calls of the
	// same tool identity.
	Sticky bool
	// Arguments replace the call's arguments; canonical.
	Arguments string
	// Text is a rejection message, or the output that settles the call.
	Text string
	By   string
	Why  string
	// At is when it was decided, in Unix milliseconds.
	At int64
}

// Outcome is how an attempt of a tool ended.
type Outcome string

// The outcomes.
const (
	Done        Outcome = ""
	ToolFailed  Outcome = "failed"
	Unknown     Outcome = "unknown"
	NotExecuted Outcome = "notexecuted"
	// Pending: the tool started something whose result arrives later.
	Pending Outcome = "pending"
	// AsksAgain: the tool did nothing yet and asks a person first.
	AsksAgain Outcome = "asks"
	// Rejected, Decreed and Dropped settle a call without a body: a person or
	// a rule rejected it, a person settled it, the run was cancelled.
	Rejected Outcome = "rejected"
	Decreed  Outcome = "decreed"
	Dropped  Outcome = "dropped"
)

// Settled is the outcome of an attempt of a tool.
type Settled struct {
	ID      EffectID
	Outcome Outcome
	// Output is the item the model will read; none for NotExecuted, Pending and
	// AsksAgain.
	Output item.Item
	// Error is the error's text, for people; with AsksAgain the question.
	Error string
	// Late says that the call was settled before: this is evidence only.
	Late bool
	// Running says that the body had not returned when its outcome was recorded as
	// Unknown: it may still act.
	Running bool
	// Checks are what guardrails on the output said.
	Checks []Check
}

// Expired says that nobody decided an approval before its deadline.
type Expired struct {
	// Call is the call's effect id without an attempt.
	Call  EffectID
	Stage int
}

// Judged is the answer of a custom tool-use behaviour for response N.
type Judged struct {
	N     int
	Final bool
	Text  string
}

// Confirmed says that the session holds everything below Upto. In the run store's
// own database it is the batch's intent too.
type Confirmed struct {
	N    int
	Upto int
	// Found says that the batch was found when the session was read back.
	Found bool
}

// Absent says that an effect in doubt provably did not happen.
type Absent struct{ ID EffectID }

// Failed says that an effect ended in an error. The run is resumable.
type Failed struct {
	ID   EffectID
	Code string
	// Error is the error's text.
	Error string
	// Unknown says that the effect may have happened all the same.
	Unknown bool
	// RetryAt, when not 0, is when the effect is tried again without anybody
	// resuming the run, in Unix milliseconds.
	RetryAt int64
}

// Fired says that a wait is over.
type Fired struct{ ID EffectID }

// Cancelled asks a run to end: open calls settle, what is owed is appended, then
// the run is finished.
type Cancelled struct {
	By, Why string
	// Successor is the run that has the session or the conversation from then on.
	Successor string
}

// Finished is the last fact of every run that ended.
type Finished struct {
	// Cancelled says that the run was cancelled and has no final output.
	Cancelled bool
	// Tripped says that a guardrail cancelled it.
	Tripped bool
	// At is the place in the history of the item that holds the final output,
	// -1 when Text does.
	At   int
	Text string
}

// Kind returns the fact's kind.
func (*Started) Kind() Kind   { return KindStarted }
func (*Forked) Kind() Kind    { return KindForked }
func (*Claimed) Kind() Kind   { return KindClaimed }
func (*Resumed) Kind() Kind   { return KindResumed }
func (*Loaded) Kind() Kind    { return KindLoaded }
func (*Prepared) Kind() Kind  { return KindPrepared }
func (*Intended) Kind() Kind  { return KindIntended }
func (*Responded) Kind() Kind { return KindResponded }
func (*Planned) Kind() Kind   { return KindPlanned }
func (*Decided) Kind() Kind   { return KindDecided }
func (*Settled) Kind() Kind   { return KindSettled }
func (*Expired) Kind() Kind   { return KindExpired }
func (*Judged) Kind() Kind    { return KindJudged }
func (*Confirmed) Kind() Kind { return KindConfirmed }
func (*Absent) Kind() Kind    { return KindAbsent }
func (*Failed) Kind() Kind    { return KindFailed }
func (*Fired) Kind() Kind     { return KindFired }
func (*Cancelled) Kind() Kind { return KindCancelled }
func (*Finished) Kind() Kind  { return KindFinished }
