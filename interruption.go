package pawl

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// InterruptionKind says why a run waits for somebody.
type InterruptionKind string

// The kinds of interruptions.
const (
	// ApprovalNeeded: a rule, or the tool itself with AskAgain, asks whether the call may
	// run. Approve or Reject.
	ApprovalNeeded InterruptionKind = "approval"
	// InDoubt: the call may have taken effect, and its class forbids a silent
	// repeat. Settle, Retry or GiveUp.
	InDoubt InterruptionKind = "in-doubt"
	// External: the tool has started something whose result comes later (ErrPending).
	// Settle, by whoever learns of the result.
	External InterruptionKind = "external"
)

// Interruption is a call that waits for a decision. As JSON it has the members below.
type Interruption struct {
	// ID names the interruption within its run. It is never reused: a call that
	// has to be decided again gets another.
	ID   string           `json:"id"`
	Kind InterruptionKind `json:"kind"`
	Run  string           `json:"run"`
	// Agent is the key of the agent whose call it is.
	Agent string `json:"agent"`
	// AgentPath are the keys of the agents from the run's own to Agent, if the call is one
	// of a nested run; nil otherwise.
	AgentPath []string `json:"agent_path,omitempty"`
	Tool      string   `json:"tool"`
	// Server is the label of the MCP server whose tool the model's server wants to call: it asks
	// for nothing but an answer, so nothing runs here, there is no Key, and the arguments
	// cannot be edited. It is empty for every other call.
	Server string `json:"server,omitempty"`
	// CallID is the model's id of the call; models reuse it.
	CallID string `json:"call_id"`
	// Arguments are what the call would run with, as the model wrote them.
	Arguments string `json:"arguments"`
	// Unreadable says that the arguments are no JSON object that fits the tool.
	// Approving the call as it is gives the model an error; edited arguments
	// make it run.
	Unreadable bool `json:"unreadable,omitempty"`
	// Key is the call's idempotency key: ask the far side with it what became of
	// a call in doubt.
	Key string `json:"key,omitempty"`
	// NotBefore is when a call in doubt may be decided: until then it may still
	// be running. The zero time means now.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Expires is when an approval expires; the zero time means never.
	Expires time.Time `json:"expires,omitzero"`
	// Note is what the tool said: its question, what it waits for, or why its
	// outcome is unknown. It is empty if a rule asks, and after a crash.
	Note string `json:"note,omitempty"`

	// Digest is of the arguments. It binds a decision to what its decider saw.
	Digest item.Digest `json:"digest,omitzero"`
}

func interruptionsOf(m *machine.Machine) []Interruption {
	open := m.Interruptions()
	list := make([]Interruption, 0, len(open))
	for _, in := range open {
		v := Interruption{ID: machine.InterruptionID(in.Frame, in.Call, in.Stage), Kind: ApprovalNeeded, Run: m.Run(), Agent: in.Route[len(in.Route)-1],
			Tool: in.Tool, Server: in.Server, CallID: in.CallID, Arguments: in.Arguments, Unreadable: in.Unreadable, Key: in.Key, Digest: in.Digest,
			NotBefore: timeOf(in.NotBefore), Expires: timeOf(in.Deadline), Note: in.Note}
		if in.Frame != "" {
			v.AgentPath = in.Route
		}
		switch in.Kind {
		case machine.InDoubt:
			v.Kind = InDoubt
		case machine.External:
			v.Kind = External
		}
		list = append(list, v)
	}
	return list
}

// timeOf reads a time of the ledger.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Verdict is what is decided about an interruption.
type Verdict = journal.Verdict

// Decision settles an interruption. It is bound to the interruption and to the
// arguments the decider saw, and consumed once. As JSON it has the members below, as in a
// RunState document, and refuses others; if it comes from a browser, set By from what you
// know of its user.
type Decision struct {
	// Interruption is the interruption's id.
	Interruption string  `json:"interruption"`
	Verdict      Verdict `json:"verdict"`
	// By is who decided, Why the reason; both are kept in the ledger.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Always extends an approval or a rejection to the open and later calls of
	// the same tool in this run. A decision of a call wins over it, and a rule
	// that denies always wins.
	Always bool `json:"always,omitempty"`
	// Arguments, for an approval, replace the model's arguments: a JSON object
	// that fits the tool. The model is told.
	Arguments string `json:"arguments,omitempty"`
	// Message, for a rejection, is what the model reads.
	Message string `json:"message,omitempty"`
	// Output, for Settle, is the output of the call as the model reads it.
	Output string `json:"output,omitempty"`

	// Digest is the interruption's; a decision that has it is refused for other
	// arguments. Without it the decision is for whatever the call asks.
	Digest item.Digest `json:"digest,omitzero"`
}

// Approve lets a call run.
func Approve(interruption, by string) Decision {
	return Decision{Interruption: interruption, Verdict: journal.Approve, By: by}
}

// Reject answers a call with a message instead of running it; an empty message means
// the standard text.
func Reject(interruption, by, message string) Decision {
	return Decision{Interruption: interruption, Verdict: journal.Reject, By: by, Message: message}
}

// Edit lets a call run with other arguments, which the rule is not asked about again.
// Empty arguments are refused, rather than read as those of the model.
func Edit(interruption, by, arguments string) Decision {
	if arguments == "" {
		arguments = " "
	}
	return Decision{Interruption: interruption, Verdict: journal.Approve, By: by, Arguments: arguments}
}

// Settle gives a call in doubt the output it is known to have had, or an External one
// its result. For a call that is settled as unknown, with Unsettled.Interruption, it
// records what became of it; the model is not told.
func Settle(interruption, by, output string) Decision {
	return Decision{Interruption: interruption, Verdict: journal.Settle, By: by, Output: output}
}

// Retry runs a call in doubt again, with the same arguments and key.
func Retry(interruption, by string) Decision {
	return Decision{Interruption: interruption, Verdict: journal.Retry, By: by}
}

// GiveUp answers a call in doubt with: the outcome is unknown.
func GiveUp(interruption, by string) Decision {
	return Decision{Interruption: interruption, Verdict: journal.GiveUp, By: by}
}

// fact turns the decision into the fact it becomes. The machine knows the call, so a
// decision made from a bare id is bound to the arguments recorded for it.
func (d Decision) fact(m *machine.Machine, now time.Time) (journal.Fact, error) {
	frame, call, stage, err := machine.ParseInterruptionID(d.Interruption)
	if err != nil {
		return journal.Fact{}, err
	}
	for _, text := range []string{d.Message, d.Output, d.By, d.Why} {
		if !utf8.ValidString(text) {
			return journal.Fact{}, fmt.Errorf("pawl: the decision on %s is not valid UTF-8", d.Interruption)
		}
	}
	switch {
	case d.Message != "" && d.Verdict != journal.Reject:
		return journal.Fact{}, errors.New("pawl: a message goes with a rejection")
	case d.Output != "" && d.Verdict != journal.Settle:
		return journal.Fact{}, errors.New("pawl: an output goes with Settle")
	}
	b := &journal.Decided{Call: call, Stage: stage, Digest: d.Digest, Verdict: d.Verdict, Sticky: d.Always,
		Arguments: d.Arguments, Text: d.Message + d.Output, By: d.By, Why: d.Why, At: now.UnixMilli()}
	if b.Digest.IsZero() {
		b.Digest = askedAbout(m.Frame(frame), call, stage)
	}
	if d.Arguments != "" {
		canonical, err := item.Canonical(d.Arguments)
		if err != nil {
			return journal.Fact{}, err
		}
		b.Arguments = string(canonical)
	}
	return journal.Fact{Frame: frame, Time: now.UnixMilli(), Body: b}, nil
}

// askedAbout returns the digest of the arguments that somebody is, or was, asked about at
// a stage: the first question is about the model's own, whatever they were edited to since.
func askedAbout(f *machine.Frame, call journal.EffectID, stage int) item.Digest {
	if f == nil { // the decision is refused
		return item.Digest{}
	}
	info, _ := f.Call(call)
	if fc, err := info.Item.FunctionCall(); stage == 0 && info.Edited != "" && err == nil {
		digest, _, _ := item.DigestArguments(argumentsOf(fc.Arguments)) // unreadable ones have a digest too
		return digest
	}
	return info.Digest
}

// checkEdits refuses edited arguments that a call's tool would not take. A tool that is
// not the agent's any more says so when the call is to start.
func (s *RunState) checkEdits(agent *Agent, decisions []Decision) error {
	m := s.fold()
	for _, d := range decisions {
		frame, call, _, err := machine.ParseInterruptionID(d.Interruption)
		if err != nil || d.Arguments == "" {
			continue // what else is wrong is found when it is submitted
		}
		a := agent.agentIn(m, frame)
		if a == nil {
			continue
		}
		info, _ := m.Frame(frame).Call(call)
		if t := a.tool(info.Spec.Name); t != nil && t.id == info.Spec.Identity {
			if err := t.schema.Validate(d.Arguments); err != nil {
				return s.refused(because(ErrDecision, fmt.Errorf("the arguments for %s: %s", d.Interruption, bare(err))))
			}
		}
	}
	return nil
}
