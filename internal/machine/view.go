package machine

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// InterruptionKind says why a run waits for somebody.
type InterruptionKind int

// The kinds of interruptions.
const (
	// Approval: a rule asks whether the call may run, at stage 0; at a later one the
	// tool itself asks again.
	Approval InterruptionKind = iota
	// InDoubt: the call may have taken effect and must not be repeated silently.
	InDoubt
	// External: the call started something whose result arrives later.
	External
)

// String returns the kind in lower case.
func (k InterruptionKind) String() string { return [...]string{"approval", "in-doubt", "external"}[k] }

// Interruption is a call that waits for a decision.
type Interruption struct {
	Kind      InterruptionKind
	Call      journal.EffectID
	Stage     int
	CallID    string
	Tool      string
	Arguments string
	Digest    item.Digest
	// Unreadable says that the arguments cannot be read.
	Unreadable bool
	Key        string
	// NotBefore is when an InDoubt may be decided, in Unix milliseconds.
	NotBefore int64
	// Deadline is when an Approval expires, in Unix milliseconds, 0 if it does not.
	Deadline int64
	// Note is what came with the outcome that left the call open: the tool's question,
	// what it waits for, or why nobody knows what happened. Empty at stage 0 and after a
	// crash.
	Note string
}

// Interruptions returns the open interruptions in model order.
func (m *Machine) Interruptions() []Interruption {
	r := m.last()
	if r == nil || m.finished != nil || m.cancelled != nil {
		return nil
	}
	var list []Interruption
	for _, c := range r.calls {
		kind, open := c.openKind()
		if !open {
			continue
		}
		in := Interruption{Kind: kind, Call: c.id, Stage: c.stage(), CallID: c.callID, Tool: c.spec.Name, Arguments: m.Arguments(c.id),
			Digest: c.digest, Unreadable: c.plan.Unreadable && c.edited == "", Key: m.KeyOf(c.id), Note: c.note}
		switch kind {
		case Approval:
			in.Deadline = c.deadline
		case InDoubt:
			in.NotBefore = c.blocked
		}
		list = append(list, in)
	}
	return list
}

// Deadline returns the earliest deadline of an open approval, in Unix milliseconds, 0 if
// there is none [M9.15].
func (m *Machine) Deadline() (first int64) {
	for _, in := range m.Interruptions() {
		if in.Deadline != 0 && (first == 0 || in.Deadline < first) {
			first = in.Deadline
		}
	}
	return first
}

// toolName returns the name under which the model called the tool.
func (m *Machine) toolName(c *call) string {
	if c.spec != nil {
		return c.spec.Name
	}
	return m.history[c.slot].item.Head().Name
}

// Arguments returns the arguments a call runs with: the edited ones, else the
// model's.
func (m *Machine) Arguments(id journal.EffectID) string {
	c := m.find(id)
	if c == nil {
		return ""
	}
	if c.edited != "" {
		return c.edited
	}
	it := m.history[c.slot].item
	if c.kind == item.TypeCustomToolCall {
		cc, _ := it.CustomToolCall()
		return cc.Input
	}
	fc, _ := it.FunctionCall()
	return fc.Arguments
}

// CallInfo is what the driver needs to run a call.
type CallInfo struct {
	Item   item.Item
	CallID string
	Spec   journal.ToolSpec
	Digest item.Digest
	// Edited are the arguments that replace the model's, empty if nobody
	// edited them.
	Edited  string
	Attempt int
	// By is who approved the call, by the newest approval; empty if nobody had to.
	By string
	// Approvals counts the questions of the tool itself that were approved [M9.14].
	Approvals int
}

// Call returns a call; ok is false if there is none with a tool.
func (m *Machine) Call(id journal.EffectID) (info CallInfo, ok bool) {
	c := m.find(id)
	if c == nil || c.spec == nil {
		return info, false
	}
	info = CallInfo{Item: m.history[c.slot].item, CallID: c.callID, Spec: *c.spec, Digest: c.digest, Edited: c.edited, Attempt: c.attempt}
	if c.ruling != nil && c.ruling.Verdict == journal.Approve {
		info.By = c.ruling.By
	}
	for _, d := range c.later {
		if d.Verdict == journal.Approve {
			info.By = d.By
			info.Approvals++
		}
	}
	return info, true
}

// OutputOf returns the output a call is settled with, zero while it is open.
func (m *Machine) OutputOf(id journal.EffectID) item.Item {
	c := m.find(id)
	if c == nil {
		return item.Item{}
	}
	return m.history[c.out].item
}

// KeyOf returns the idempotency key of a call.
func (m *Machine) KeyOf(id journal.EffectID) string { return Key(m.run, "", id) }

// Recorded returns the output of an earlier call with the same call id, tool and
// digest, if the model's adapter declares that it never reuses ids [M7.7].
func (m *Machine) Recorded(callID, tool string, d item.Digest) (out item.Item, ok bool, err error) {
	c := m.seen[callID]
	if c == nil {
		return out, false, nil
	}
	if c.plan.Digest != d || m.toolName(c) != tool {
		return out, false, fmt.Errorf("pawl: call id %q was used before with other arguments", callID)
	}
	return m.history[c.out].item, true, nil
}

// Items returns the items of a range of the history, dropped ones left out.
func (m *Machine) Items(from, upto int) iter.Seq[item.Item] {
	return func(yield func(item.Item) bool) {
		for _, s := range m.history[from:upto] {
			if !s.dropped && !s.item.IsZero() && !yield(s.item) {
				return
			}
		}
	}
}

// Settled returns where the settled part of the history ends.
func (m *Machine) Settled() int { return m.settled }

// InputEnd returns where the session's history ends and the input begins, and where
// the input ends and what the run made begins.
func (m *Machine) InputEnd() (history, input int) {
	if len(m.responses) > 0 {
		input = m.responses[0].first
	} else {
		input = len(m.history)
	}
	if m.started == nil || !m.loaded {
		return 0, input
	}
	return input - len(m.started.Input), input
}

// Response returns the newest response: its ordinal, its items and the manifest it was
// asked under. The ordinal is 0 before the first.
func (m *Machine) Response() (n int, items []item.Item, man *journal.Manifest) {
	r := m.last()
	if r == nil {
		return 0, nil, nil
	}
	items = make([]item.Item, 0, r.end-r.first)
	for _, s := range m.history[r.first:r.end] {
		items = append(items, s.item)
	}
	return r.n, items, r.manifest
}

// Heads returns the heads of the newest response's items. They are valid until the next
// response.
func (m *Machine) Heads() []item.Head { return m.heads }

// Result is one settled call for a custom tool-use behaviour.
type Result struct {
	Name, CallID, Arguments string
	Output                  item.Item
}

// Results returns the calls of the newest response whose body ran to an end [M14.3].
func (m *Machine) Results() []Result {
	r := m.last()
	if r == nil {
		return nil
	}
	var list []Result
	for _, c := range r.calls {
		if c.result() {
			list = append(list, Result{Name: c.spec.Name, CallID: c.callID, Arguments: m.Arguments(c.id), Output: m.history[c.out].item})
		}
	}
	return list
}

// FoundAbsent counts how often an earlier attempt of the turn's request was found absent. It may have
// been processed since [M5.6].
func (m *Machine) FoundAbsent() int { return m.turn.absent }

// Run, Started, Session, Turn, ... are what the ledger says of the run.
func (m *Machine) Run() string                  { return m.run }
func (m *Machine) Started() *journal.Started    { return m.started }
func (m *Machine) Session() *journal.SessionRef { return m.session }
func (m *Machine) Turn() int                    { return m.turns }
func (m *Machine) MaxTurns() int                { return m.maxTurns }
func (m *Machine) Attempt() int                 { return m.turn.attempt }
func (m *Machine) Loaded() bool                 { return m.loaded }
func (m *Machine) Usage() Usage                 { return m.usage }
func (m *Machine) Failure() *journal.Failed     { return m.failure }
func (m *Machine) Finished() *journal.Finished  { return m.finished }
func (m *Machine) Cancelled() bool              { return m.cancelled != nil }

// Successor returns the run that a cancelled one made room for, empty if there is none.
func (m *Machine) Successor() string {
	if m.cancelled == nil {
		return ""
	}
	return m.cancelled.Successor
}

// At returns the item at a place of the history, zero if there is none.
func (m *Machine) At(i int) item.Item {
	if i < 0 || i >= len(m.history) {
		return item.Item{}
	}
	return m.history[i].item
}

// ResponseID returns the newest id a response had, empty before the first.
func (m *Machine) ResponseID() string {
	for i := len(m.responses) - 1; i >= 0; i-- {
		if id := m.responses[i].id; id != "" {
			return id
		}
	}
	return ""
}

// Manifest returns the manifest of the newest turn and the turn that recorded it.
func (m *Machine) Manifest() (man *journal.Manifest, turn int) {
	return m.turn.manifest, m.turn.same
}

// InterruptionID names an interruption: the call and its stage, never reused.
func InterruptionID(call journal.EffectID, stage int) string {
	return fmt.Sprintf("%d.%d#%d", call.N, call.P, stage)
}

// ParseInterruptionID reads what InterruptionID wrote.
func ParseInterruptionID(s string) (call journal.EffectID, stage int, err error) {
	bad := fmt.Errorf("pawl: %q is not an interruption id", s)
	at, st, ok := strings.Cut(s, "#")
	n, p, ok2 := strings.Cut(at, ".")
	if !ok || !ok2 {
		return call, 0, bad
	}
	call.Kind = journal.EffectTool
	for dst, text := range map[*int]string{&call.N: n, &call.P: p, &stage: st} {
		v, err := strconv.Atoi(text)
		if err != nil || v < 0 {
			return journal.EffectID{}, 0, bad
		}
		*dst = v
	}
	return call, stage, nil
}

// Startable returns the calls that may start, also those that wait for their turn
// [M8.5].
func (m *Machine) Startable() iter.Seq[journal.EffectID] {
	return func(yield func(journal.EffectID) bool) {
		r := m.last()
		if r == nil || r.unsettled == 0 || m.cancelled != nil {
			return
		}
		for _, c := range r.calls {
			if c.state == callReady && !yield(c.id) {
				return
			}
		}
	}
}

// Exposed says that an attempt of an open call may have happened.
func (m *Machine) Exposed() bool {
	r := m.last()
	return r != nil && slices.ContainsFunc(r.calls, func(c *call) bool { return c.state != callSettled && c.attempt > 0 })
}

// LeftRunning says that a call of the newest claim is in doubt because its driver went on
// while the body was still running [M8.3].
func (m *Machine) LeftRunning() bool {
	r := m.last()
	return r != nil && slices.ContainsFunc(r.calls, func(c *call) bool { return c.state == callDoubt && c.blocked > 0 && c.epoch == m.epoch })
}
