package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/schema"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// Effect is a tool's effect class: what is promised when nobody knows whether a
// call took effect.
type Effect = journal.Class

// The effect classes.
const (
	// AtMostOnce, the default: a call in doubt is never repeated by itself; the
	// run waits for somebody to settle it.
	AtMostOnce = journal.AtMostOnce
	// Idempotent: a call in doubt runs again with the same Call.Key. It takes
	// effect once if the far side honours the key.
	Idempotent = journal.Idempotent
	// ReadOnly: a call in doubt runs again; there is no effect to repeat.
	ReadOnly = journal.ReadOnly
	// Transactional: the body writes through Call.Tx, the transaction in which its
	// outcome is recorded, so that both are there or neither. It needs a store that is a
	// journal.Transactor; sqlstore.NewTxTool makes such a tool.
	Transactional = journal.Transactional
)

// OnUnknown says what follows when a call's outcome is unknown and its class forbids
// a repeat.
type OnUnknown = journal.OnUnknown

// What follows an unknown outcome.
const (
	// UnknownDefault tells the model when a live driver saw it happen (a
	// timeout, a cancellation) and waits after a crash.
	UnknownDefault = journal.UnknownDefault
	// UnknownTell tells the model: outcome unknown, do not assume failure.
	UnknownTell = journal.UnknownTell
	// UnknownWait waits for somebody to settle the call.
	UnknownWait = journal.UnknownWait
)

// Gate is the answer of an approval rule.
type Gate = journal.Gate

// The answers of a rule.
const (
	Allow = journal.Allow
	Ask   = journal.Ask
	Deny  = journal.Deny
)

// Bounds of a tool's functions that name none of their own. A Transactional body holds
// the store's only writer, so it has less time.
const (
	DefaultToolTimeout = 10 * time.Minute
	DefaultTxTimeout   = 10 * time.Second
)

// OnExpiry says what becomes of a call whose approval nobody decided in time.
type OnExpiry int

// What becomes of it.
const (
	// ExpiryRejects answers the call with: the approval has expired.
	ExpiryRejects OnExpiry = iota
	// ExpiryFails fails the run with ErrApprovalExpired. Resuming it opens the
	// approval again, without a deadline.
	ExpiryFails
)

// Call is one tool call, as its rule and its body see it.
type Call struct {
	RunContext
	// Tool is the tool's name.
	Tool string
	// ID is the model's id of the call. Models repeat and reuse ids: use Key to
	// recognise a call.
	ID string
	// Key is the idempotency key: equal over retry, resume and process,
	// different for every call. It is empty in an approval rule.
	Key string
	// Attempt counts the call's attempts from 1; 0 in an approval rule.
	Attempt int
	// Arguments are the arguments as JSON, edited ones if somebody edited them.
	Arguments string
	// ApprovedBy is who approved the call, the last time; empty if nobody had to.
	ApprovedBy string
	// Approvals counts the questions of the tool's own, asked with AskAgain, that were
	// approved.
	Approvals int
	// Tx is the store's transaction for a Transactional body, a *sql.Tx for SQL stores;
	// nil for every other.
	Tx any
}

// Func describes a tool made of Go functions. In is a struct; its JSON Schema is
// derived as OpenAI's strict mode wants it, with these tags: json, jsonschema (the
// description), enum, minimum, maximum, pattern, format. Out is any type that
// encoding/json can write; a string is sent as it is.
type Func[In, Out any] struct {
	// Name is what the model calls, 1 to 64 letters, digits, _ or -.
	Name string
	// Description tells the model what the tool does.
	Description string
	// Effect is the effect class; the zero value is AtMostOnce.
	Effect Effect
	// Enabled says whether a turn offers the tool; nil means always. It is asked in every
	// turn, and again when the model calls the tool: a call of a disabled tool is
	// treated as one of a tool that the agent does not have. Its error, or a panic,
	// fails the run, resumably.
	Enabled func(ctx context.Context, rc *RunContext) (bool, error)
	// Approve is the approval rule; nil allows every call. An error or a panic of
	// the rule, or an answer that takes longer than 30 seconds, means that somebody
	// has to decide. It may run again after a crash, until its answer is recorded.
	Approve func(ctx context.Context, c *Call, in In) (Gate, error)
	// Expires is how long an approval of a call may take; 0 means for ever. OnExpiry says
	// what follows.
	Expires  time.Duration
	OnExpiry OnExpiry
	// Run is the body. An error is shown to the model. An error that wraps a
	// context error, ErrOutcomeUnknown, io.EOF or a broken connection, or whose
	// Timeout() is true, means that the outcome is unknown. A panic is recovered and
	// is an error. ErrPending says that the result comes later, AskAgain that somebody
	// has to be asked first.
	//
	// An error of a Transactional body, whatever it is, rolls back what the body did;
	// only ErrPending does not.
	Run func(ctx context.Context, c *Call, in In) (Out, error)
	// Recover, for a tool that is AtMostOnce, asks the far side what became of a call in
	// doubt: did the call with that Key happen, and with which output? It is called when
	// nothing of the call can be running any more, has 30 seconds, must change nothing,
	// and may run again until its answer is recorded. An error or a panic is CannotTell.
	Recover func(ctx context.Context, c *Call, in In) (Recovered[Out], error)
	// Timeout bounds the body; 0 means DefaultToolTimeout, or DefaultTxTimeout for a
	// Transactional tool. What happened to a call that ran into it is unknown, unless
	// the tool is Transactional: then nothing did, and the call has failed.
	Timeout time.Duration
	// OnUnknown says what follows an unknown outcome.
	OnUnknown OnUnknown
	// OnError makes the text the model reads for an error of the body; nil means
	// a standard text.
	OnError func(ctx context.Context, c *Call, err error) string
	// InputGuardrails check a call before it starts, OutputGuardrails what the body, or
	// Recover, returned.
	InputGuardrails  []ToolInputGuardrail
	OutputGuardrails []ToolOutputGuardrail
}

// Recovered is what a far side says of a call in doubt.
type Recovered[Out any] struct {
	Answer RecoverAnswer
	// Output is what the body would have returned, if Answer is Happened.
	Output Out
}

// RecoverAnswer says whether a call in doubt happened.
type RecoverAnswer int

// The answers of a Recover function.
const (
	// CannotTell: the call is treated as if there were no Recover.
	CannotTell RecoverAnswer = iota
	// Happened: the call is settled with the output.
	Happened
	// DidNotHappen: the call did not happen and will not: it runs again.
	DidNotHappen
)

// Tool is something a model may call. Make one with NewTool, NewRawTool, AgentTool or
// NewAgentTool. It is immutable and safe for concurrent use.
type Tool struct {
	name, description string
	schema            *schema.Schema
	effect            Effect
	timeout           time.Duration
	onUnknown         OnUnknown
	onError           func(context.Context, *Call, error) string
	enabled           func(context.Context, *RunContext) (bool, error) // nil means always
	gated             bool
	expires           time.Duration
	onExpiry          OnExpiry
	// approve, run and recover decode the call's arguments. Those that a rule is asked
	// about fit the schema; run is told whether they are known to.
	approve func(context.Context, *Call) (Gate, error)
	run     func(ctx context.Context, c *Call, fits bool) (any, error)
	recover func(context.Context, *Call) (Recovered[any], error) // nil without one
	agent   *agentTool                                           // instead of a body: the call runs an agent
	handoff *handoff                                             // instead of a body: the call hands the conversation over

	guardsIn  []ToolInputGuardrail
	guardsOut []ToolOutputGuardrail

	id  string // the identity: where the tool is from, its name, what arguments it takes
	err error
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// NewTool makes a tool. What is wrong with the description (a name the API would
// refuse, no body, a type without a strict schema) is returned by Err, and by every
// run of an agent that has the tool before any effect.
func NewTool[In, Out any](f Func[In, Out]) Tool {
	s, err := schema.For[In]()
	t := Tool{name: f.Name, description: f.Description, schema: s, effect: f.Effect, timeout: f.Timeout, enabled: f.Enabled,
		onUnknown: f.OnUnknown, onError: f.OnError, expires: f.Expires, onExpiry: f.OnExpiry,
		guardsIn: f.InputGuardrails, guardsOut: f.OutputGuardrails, err: err}
	if f.Run == nil {
		t.err = errors.New("has no Run function")
		return t.named()
	}
	t.run = func(ctx context.Context, c *Call, fits bool) (any, error) {
		decode := s.Decode
		if fits {
			decode = s.DecodeValid
		}
		var in In
		if err := decode(c.Arguments, &in); err != nil {
			return nil, err
		}
		return f.Run(ctx, c, in)
	}
	if f.Approve != nil {
		t.gated = true
		t.approve = func(ctx context.Context, c *Call) (Gate, error) {
			var in In
			if err := s.DecodeValid(c.Arguments, &in); err != nil {
				return Ask, err
			}
			return f.Approve(ctx, c, in)
		}
	}
	if f.Recover != nil {
		t.recover = func(ctx context.Context, c *Call) (Recovered[any], error) {
			var in In
			if err := s.Decode(c.Arguments, &in); err != nil {
				return Recovered[any]{}, err
			}
			r, err := f.Recover(ctx, c, in)
			return Recovered[any]{Answer: r.Answer, Output: r.Output}, err
		}
	}
	return t.named()
}

// RawFunc describes a tool by a JSON Schema of its own.
type RawFunc struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments, an object.
	Schema string
	// Loose keeps a schema that strict mode does not allow as it is. If it does not forbid
	// additional properties, a body that decodes Call.Arguments into a struct may find one
	// in a field of another spelling: encoding/json reads "Cents" into a field "cents".
	Loose    bool
	Effect   Effect
	Enabled  func(ctx context.Context, rc *RunContext) (bool, error)
	Approve  func(ctx context.Context, c *Call) (Gate, error)
	Expires  time.Duration
	OnExpiry OnExpiry
	Run      func(ctx context.Context, c *Call) (string, error)
	// RunAny is the body instead of Run, for results that are no text: as those of Func.Run.
	RunAny    func(ctx context.Context, c *Call) (any, error)
	Recover   func(ctx context.Context, c *Call) (Recovered[string], error)
	Timeout   time.Duration
	OnUnknown OnUnknown
	OnError   func(ctx context.Context, c *Call, err error) string

	InputGuardrails  []ToolInputGuardrail
	OutputGuardrails []ToolOutputGuardrail
}

// NewRawTool makes a tool whose body reads Call.Arguments itself. The fields mean
// what they mean in Func.
func NewRawTool(f RawFunc) Tool {
	s, err := schema.FromJSON([]byte(f.Schema), !f.Loose)
	t := Tool{name: f.Name, description: f.Description, schema: s, effect: f.Effect, timeout: f.Timeout, enabled: f.Enabled,
		onUnknown: f.OnUnknown, onError: f.OnError, expires: f.Expires, onExpiry: f.OnExpiry,
		gated: f.Approve != nil, approve: f.Approve, guardsIn: f.InputGuardrails, guardsOut: f.OutputGuardrails, err: err}
	switch {
	case f.Run == nil && f.RunAny == nil:
		t.err = errors.New("has no Run function")
		return t.named()
	case f.Run != nil && f.RunAny != nil:
		t.err = errors.New("has Run and RunAny, and one body only can run")
		return t.named()
	case f.Run != nil:
		t.run = func(ctx context.Context, c *Call, _ bool) (any, error) { return f.Run(ctx, c) }
	default:
		t.run = func(ctx context.Context, c *Call, _ bool) (any, error) { return f.RunAny(ctx, c) }
	}
	if f.Recover != nil {
		t.recover = func(ctx context.Context, c *Call) (Recovered[any], error) {
			r, err := f.Recover(ctx, c)
			return Recovered[any]{Answer: r.Answer, Output: r.Output}, err
		}
	}
	return t.named()
}

// AlwaysAsk is an approval rule that asks for every call.
func AlwaysAsk[In any](context.Context, *Call, In) (Gate, error) { return Ask, nil }

// named checks what every kind of tool has, and puts the tool's name before its error.
func (t Tool) named() Tool {
	switch {
	case t.err != nil:
	case !toolName.MatchString(t.name):
		t.err = errors.New("the name must be 1 to 64 letters, digits, _ or -")
	case t.timeout < 0:
		t.err = errors.New("the timeout is negative")
	case t.expires < 0:
		t.err = errors.New("the time for an approval is negative")
	case t.onExpiry != ExpiryRejects && t.onExpiry != ExpiryFails:
		t.err = fmt.Errorf("there is no OnExpiry %d", t.onExpiry)
	case t.effect != AtMostOnce && t.effect != Idempotent && t.effect != ReadOnly && t.effect != Transactional:
		t.err = fmt.Errorf("there is no effect class %q", t.effect)
	case t.recover != nil && t.effect != AtMostOnce:
		t.err = fmt.Errorf("has a Recover function, and is %s: only a tool that is AtMostOnce is asked", t.effect)
	case t.onUnknown != UnknownDefault && t.onUnknown != UnknownTell && t.onUnknown != UnknownWait:
		t.err = fmt.Errorf("there is no OnUnknown %q", t.onUnknown)
	default:
		t.err = t.checkGuardrails()
	}
	what, origin := "tool", "local"
	if t.handoff != nil {
		what, origin = "handoff", "handoff"
	}
	if t.err != nil {
		t.err = fmt.Errorf("pawl: %s %q: %s", what, t.name, strings.TrimPrefix(t.err.Error(), "pawl: "))
		return t
	}
	t.id = origin + "/" + t.name + "/" + t.schema.Digest()
	return t
}

// Name returns the tool's name.
func (t Tool) Name() string { return t.name }

// Effect returns the tool's effect class.
func (t Tool) Effect() Effect { return t.effect }

// Agent returns the agent that the tool runs, nil for every other tool.
func (t Tool) Agent() *Agent {
	if t.agent == nil {
		return nil
	}
	return t.agent.agent
}

// Schema returns the JSON Schema of the arguments, empty if there is an error.
func (t Tool) Schema() string {
	if t.schema == nil {
		return ""
	}
	return t.schema.JSON()
}

// Err returns what is wrong with the tool, nil if nothing is.
func (t Tool) Err() error {
	if t.run == nil && t.agent == nil && t.err == nil {
		return fmt.Errorf("pawl: tool %q: has no body; make it with NewTool", t.name)
	}
	return t.err
}

// isEnabled asks whether the tool is enabled. A panic is an error.
func (t *Tool) isEnabled(ctx context.Context, rc *RunContext) (on bool, err error) {
	if t.enabled == nil {
		return true, nil
	}
	defer panicked("Enabled of tool", t.name, &err)
	if on, err = t.enabled(ctx, rc); err != nil {
		return false, because(fmt.Errorf("pawl: tool %q: Enabled", t.name), err)
	}
	return on, nil
}

func (t *Tool) spec() journal.ToolSpec {
	timeout := t.timeout
	if timeout == 0 && t.effect == Transactional {
		timeout = DefaultTxTimeout
	}
	spec := journal.ToolSpec{Name: t.name, Identity: t.id, Class: t.effect, Timeout: bound(timeout), OnUnknown: t.onUnknown,
		Recover: t.recover != nil, Guarded: len(t.guardsIn) > 0, Expires: bound(t.expires), ExpiryFails: t.expires > 0 && t.onExpiry == ExpiryFails}
	if t.agent != nil {
		spec.Agent, spec.TellFailure = t.agent.agent.key(), !t.agent.failRun
	}
	return spec
}

// bound is a time as the ledger has it: one below its unit is still a bound.
func bound(d time.Duration) int64 {
	if d > 0 {
		return max(d.Milliseconds(), 1)
	}
	return 0
}

// outputItem writes a tool's result: a string as it is, parts as parts, anything else
// as JSON. note, if there is one, comes first.
func outputItem(fc item.FunctionCall, out any, note string) (item.Item, error) {
	var parts []item.Part
	switch v := out.(type) {
	case string:
		return fc.Output(note + v), nil
	case item.Part:
		parts = []item.Part{v}
	case []item.Part:
		parts = v
	default:
		b, err := json.Marshal(out)
		if err != nil {
			return item.Item{}, fmt.Errorf("pawl: the tool ran, and its result cannot be written as JSON: %w", err)
		}
		return fc.Output(note + string(b)), nil
	}
	if note != "" {
		parts = append([]item.Part{item.InputText(note)}, parts...)
	}
	return fc.OutputParts(parts...), nil
}
