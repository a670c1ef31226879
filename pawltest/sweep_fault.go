package pawltest

import (
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
)

// ErrSwept is the error of everything that a sweep lets fail.
var ErrSwept = errors.New("pawltest: the sweep let this fail")

// Boundary is a moment at which something becomes durable or leaves the process. A fault happens just before it or just
// after it.
type Boundary struct {
	// N counts the boundaries of a run from 1.
	N    int
	Kind BoundaryKind
	// Name says which one it is, for people.
	Name string
	// Call counts the calls of the API from 1; the boundary is one of that call.
	Call int
}

// String names the boundary.
func (b Boundary) String() string { return fmt.Sprintf("%d %s: %s", b.N, b.Kind, b.Name) }

// BoundaryKind is what happens at a boundary.
type BoundaryKind string

// The kinds of boundaries. An append of the journal that carries the intent or the outcome of a tool call is named after it.
const (
	JournalAppend   BoundaryKind = "journal append"
	ToolIntent      BoundaryKind = "tool intent"
	ToolOutcome     BoundaryKind = "tool outcome"
	ToolTransaction BoundaryKind = "tool transaction" // effect and outcome together
	ClaimRun        BoundaryKind = "claim"
	ReleaseRun      BoundaryKind = "release"
	ToolEffect      BoundaryKind = "tool effect"
	SessionAppend   BoundaryKind = "session append"
	ModelRequest    BoundaryKind = "model request"
	ModelEvent      BoundaryKind = "stream event"
	ModelAcceptance BoundaryKind = "model acceptance"
	DecisionPosted  BoundaryKind = "decision"
	InputAdded      BoundaryKind = "input"

	// Those of a Moment.
	InputGuardrail      BoundaryKind = "input guardrail"
	OutputGuardrail     BoundaryKind = "output guardrail"
	ToolInputGuardrail  BoundaryKind = "tool input guardrail"
	ToolOutputGuardrail BoundaryKind = "tool output guardrail"
	Question            BoundaryKind = "question" // any other code that may be called again until its answer is recorded
	HookTold            BoundaryKind = "hook"
)

// beside says that such code is called beside others.
func (k BoundaryKind) beside() bool {
	switch k {
	case InputGuardrail, OutputGuardrail, ToolInputGuardrail, ToolOutputGuardrail:
		return true
	}
	return false
}

// ofStore says that only a run with a store has such boundaries.
func (k BoundaryKind) ofStore() bool {
	switch k {
	case JournalAppend, ToolIntent, ToolOutcome, ToolTransaction, ClaimRun, ReleaseRun:
		return true
	}
	return false
}

// Fault is what goes wrong at a boundary.
type Fault string

// The faults. A process that crashes, or is stopped, does nothing more that anybody could notice; its claim of the run lives
// on until its lease ends.
const (
	// CrashBefore: the process dies and nothing came of it.
	CrashBefore Fault = "crash before"
	// CrashAfter: it happened, and the process dies before it knows.
	CrashAfter Fault = "crash after"
	// Fails: nothing came of it but an error. A store that fails takes nothing until the call of the API has ended.
	Fails Fault = "error"
	// AckLost: it happened, and the process gets an error.
	AckLost Fault = "lost acknowledgement"
	// Twice: it is delivered twice.
	Twice Fault = "duplicate delivery"
	// SecondDriver: at that moment another process wants to drive the run, too.
	SecondDriver Fault = "second driver"
	// Slow: the process is stopped for longer than its lease, another one takes the run over and drives it to its end, and
	// then the first goes on.
	Slow Fault = "slow beyond lease"
	// SlowTakeover is Slow, but the first goes on in the middle of the takeover: the other has claimed the run and has written
	// nothing yet.
	SlowTakeover Fault = "slow into takeover"
)

var faults = []Fault{CrashBefore, CrashAfter, Fails, AckLost, Twice, SecondDriver, Slow, SlowTakeover}

func (f Fault) crashes() bool { return f == CrashBefore || f == CrashAfter }
func (f Fault) stops() bool   { return f == Slow || f == SlowTakeover }

// noRow says why a scenario has no rows of a carrier, "" if it has.
func (s Scenario) noRow(c carrier) string {
	switch {
	case s.Cancel && c == byJSON:
		return "a document cannot be cancelled before somebody resumes it"
	case s.Committed != nil && c != inStore:
		return "a transactional tool needs a store"
	}
	return ""
}

// impossible says why a point cannot exist, "" if it can.
func (s Scenario) impossible(p point) string {
	f, k := p.fault, p.boundary.Kind
	switch {
	case s.Committed != nil && k == ToolEffect && (f == SecondDriver || f.stops()):
		return "whoever is inside a transaction keeps every other writer out"
	case p.carrier == inProcess && f.crashes():
		return "nothing is live after a crash"
	case p.carrier != inStore && (f == SecondDriver || f.stops()):
		return "without a store nobody else has the run"
	case p.carrier != inStore && (k == DecisionPosted || k == InputAdded) && (f == Fails || f == AckLost):
		return "what is staged on a state cannot fail"
	case p.carrier != inStore && k == InputAdded && f == Twice:
		return "input that is staged twice is two inputs"
	case p.carrier == byJSON && f.crashes() && p.boundary.Call == 1:
		return "no document was saved before the crash"
	case p.carrier == byJSON && f.crashes() && (s.Session == PlainSession || s.conversation() != ""):
		return "what was not saved is unknown: only a store keeps in step with a plain session or a conversation"
	case f.stops() && k == SessionAppend && s.Session == PlainSession:
		return "nobody can take back an append that is on its way to a plain session"
	case f.stops() && (k == ModelRequest || k == ModelEvent || k == ModelAcceptance) && s.conversation() != "":
		return "nobody can take back a request that is on its way to a conversation"
	case k == HookTold && (f == Fails || f == AckLost || f == Twice):
		return "a hook answers nobody"
	case f == Twice:
		return s.notTwice(k)
	}
	return ""
}

// notTwice says why something cannot be delivered twice, "" if it can.
func (s Scenario) notTwice(k BoundaryKind) string {
	switch {
	case k == ToolEffect:
		return "what a far side does with a request that comes twice is its own affair: it has the key"
	case k == Question || k.beside():
		return "the process calls its own code"
	case k == ModelAcceptance:
		return "a connection has one answer"
	case k == ModelRequest && s.conversation() != "":
		return "a server that takes a request twice has it in the conversation twice"
	case k == SessionAppend && s.Session == PlainSession:
		return "a plain session cannot tell a repeated append from another one"
	}
	return ""
}

// conversation is the id of the conversation that the server holds, empty if there is none.
func (s Scenario) conversation() string { return s.options().ConversationID }

func (s Scenario) options() *pawl.RunOptions {
	o := &pawl.RunOptions{}
	if s.Options != nil {
		s.Options(o)
	}
	return o
}
