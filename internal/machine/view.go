package machine

import (
	"fmt"
	"iter"
	"slices"

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
	Kind InterruptionKind
	// Frame is the frame of the call, empty for the run's own, and Route the keys of
	// the agents from the run's own to the one that made the call.
	Frame     string
	Route     []string
	Call      journal.EffectID
	Stage     int
	CallID    string
	Tool      string
	Server    string // the label of the MCP server of a hosted tool
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

// Interruptions returns the open interruptions of the frame and of those nested in it, in
// model order [M9.1].
func (f *Frame) Interruptions() []Interruption {
	r := f.last()
	if r == nil || r.unsettled == 0 || f.finished != nil || f.closed() {
		return nil
	}
	var list []Interruption
	var route []string
	for _, c := range r.calls {
		if c.state == callEntered {
			list = append(list, f.nested(c).Interruptions()...)
			continue
		}
		kind, open := c.openKind()
		if !open {
			continue
		}
		if route == nil {
			route = f.Route()
		}
		list = append(list, f.interruption(c, kind, route))
	}
	return list
}

func (f *Frame) interruption(c *call, kind InterruptionKind, route []string) Interruption {
	in := Interruption{Kind: kind, Frame: f.name, Route: route, Call: c.id, Stage: c.stage(), CallID: c.callID, Tool: c.spec.Name,
		Arguments: f.Arguments(c.id), Digest: c.digest, Unreadable: c.plan.Unreadable && c.edited == "", Key: f.KeyOf(c.id), Note: c.note}
	if c.hosted() {
		request, _ := f.history[c.slot].item.ApprovalRequest()
		in.Server, in.Key = request.ServerLabel, ""
	}
	switch kind {
	case Approval:
		in.Deadline = c.deadline
	case InDoubt:
		in.NotBefore = c.blocked
	}
	return in
}

// Deadline returns the earliest deadline of an open approval, in Unix milliseconds, 0 if
// there is none [M9.15].
func (f *Frame) Deadline() (first int64) {
	for _, in := range f.Interruptions() {
		if in.Deadline != 0 && (first == 0 || in.Deadline < first) {
			first = in.Deadline
		}
	}
	return first
}

// Wakes returns when time alone is a reason to look at a run that waits, in Unix milliseconds:
// an approval expires, or a decision that came too early may be taken, if there are such
// decisions. 0 is never.
func (m *Machine) Wakes(early int) (first int64) {
	for _, in := range m.Interruptions() {
		for _, at := range [...]int64{in.Deadline, in.NotBefore} {
			if at > 0 && (at == in.Deadline || early > 0) && (first == 0 || at < first) {
				first = at
			}
		}
	}
	return first
}

// toolName returns the name under which the model called the tool.
func (f *Frame) toolName(c *call) string {
	if c.spec != nil {
		return c.spec.Name
	}
	return f.history[c.slot].item.Head().Name
}

// Arguments returns the arguments a call runs with: the edited ones, else the
// model's.
func (f *Frame) Arguments(id journal.EffectID) string {
	c := f.find(id)
	if c == nil {
		return ""
	}
	if c.edited != "" {
		return c.edited
	}
	it := f.history[c.slot].item
	switch c.kind {
	case item.TypeCustomToolCall:
		cc, _ := it.CustomToolCall()
		return cc.Input
	case item.TypeMCPApprovalRequest:
		request, _ := it.ApprovalRequest()
		return request.Arguments
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
	// Failure is what the model is to be told of, of a call whose nested run failed
	// [M17.8].
	Failure *journal.Failed
}

// Call returns a call; ok is false if there is none with a tool.
func (f *Frame) Call(id journal.EffectID) (info CallInfo, ok bool) {
	c := f.find(id)
	if c == nil || c.spec == nil {
		return info, false
	}
	info = CallInfo{Item: f.history[c.slot].item, CallID: c.callID, Spec: *c.spec, Digest: c.digest, Edited: c.edited, Attempt: c.attempt, Failure: c.trouble}
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
func (f *Frame) OutputOf(id journal.EffectID) item.Item {
	c := f.find(id)
	if c == nil {
		return item.Item{}
	}
	return f.history[c.out].item
}

// KeyOf returns the idempotency key of a call.
func (f *Frame) KeyOf(id journal.EffectID) string { return Key(f.m.id, f.name, id) }

// Recorded returns the output of an earlier call with the same call id, tool and
// digest, if the model's adapter declares that it never reuses ids [M7.7].
func (f *Frame) Recorded(callID, tool string, d item.Digest) (out item.Item, ok bool, err error) {
	c := f.seen[callID]
	if c == nil {
		return out, false, nil
	}
	if c.plan.Digest != d || f.toolName(c) != tool {
		return out, false, fmt.Errorf("pawl: call id %q was used before with other arguments", callID)
	}
	return f.history[c.out].item, true, nil
}

// Items returns the items of a range of the history, dropped ones left out.
func (f *Frame) Items(from, upto int) iter.Seq[item.Item] {
	return func(yield func(item.Item) bool) {
		for _, s := range f.history[from:upto] {
			if !s.dropped && !s.item.IsZero() && !yield(s.item) {
				return
			}
		}
	}
}

// Persisted returns where what the session holds ends.
func (f *Frame) Persisted() int { return f.persisted }

// Settled returns where the settled part of the history ends.
func (f *Frame) Settled() int { return f.settled }

// InputEnd returns where the session's history ends and the input begins, and where
// the input ends and what the run made begins.
func (f *Frame) InputEnd() (history, input int) {
	if f.started == nil || !f.loaded {
		return 0, 0
	}
	return f.inputEnd - len(f.started.Input), f.inputEnd
}

// Response returns the newest response: its ordinal, its items and the manifest it was
// asked under. The ordinal is 0 before the first.
func (f *Frame) Response() (n int, items []item.Item, man *journal.Manifest) {
	r := f.last()
	if r == nil {
		return 0, nil, nil
	}
	items = make([]item.Item, 0, r.end-r.first)
	for _, s := range f.history[r.first:r.end] {
		items = append(items, s.item)
	}
	return r.n, items, r.manifest
}

// ManifestOf returns the manifest that response n was asked under.
func (f *Frame) ManifestOf(n int) *journal.Manifest { return f.responses[n-1].manifest }

// Heads returns the heads of the newest response's items. They are valid until the next
// response.
func (f *Frame) Heads() []item.Head { return f.heads }

// Result is one settled call for a custom tool-use behaviour.
type Result struct {
	Name, CallID, Arguments string
	Output                  item.Item
}

// Results returns the calls of the newest response whose body ran to an end [M14.3].
func (f *Frame) Results() []Result {
	r := f.last()
	if r == nil {
		return nil
	}
	var list []Result
	for _, c := range r.calls {
		if c.result() {
			list = append(list, Result{Name: c.spec.Name, CallID: c.callID, Arguments: f.Arguments(c.id), Output: f.history[c.out].item})
		}
	}
	return list
}

// FoundAbsent counts how often an earlier attempt of the turn's request was found absent. It may have
// been processed since [M5.6].
func (f *Frame) FoundAbsent() int { return f.turn.absent }

// Run, Started, Session, Turn, ... are what the ledger says of the run.
func (m *Machine) Run() string                { return m.id }
func (f *Frame) Started() *journal.Started    { return f.started }
func (f *Frame) Session() *journal.SessionRef { return f.session }
func (f *Frame) Turn() int                    { return f.turns }
func (f *Frame) MaxTurns() int                { return f.maxTurns }
func (f *Frame) Attempt() int                 { return f.turn.attempt }
func (f *Frame) Loaded() bool                 { return f.loaded }
func (m *Machine) Usage() Usage               { return m.usage }
func (m *Machine) FailedIn() string           { return m.failedIn }
func (m *Machine) Failure() *journal.Failed   { return m.failure }
func (f *Frame) Finished() *journal.Finished  { return f.finished }
func (m *Machine) Cancelled() bool            { return m.cancelled != nil }

// Context returns what a codec wrote of the run's context value [M1.11].
func (m *Machine) Context() string { return m.context }

// Successor returns the run that a cancelled one made room for, empty if there is none.
func (m *Machine) Successor() string {
	if m.cancelled == nil {
		return ""
	}
	return m.cancelled.Successor
}

// At returns the item at a place of the history, zero if there is none.
func (f *Frame) At(i int) item.Item {
	if i < 0 || i >= len(f.history) {
		return item.Item{}
	}
	return f.history[i].item
}

// ResponseID returns the newest id a response had, empty before the first.
func (f *Frame) ResponseID() string {
	for i := len(f.responses) - 1; i >= 0; i-- {
		if id := f.responses[i].id; id != "" {
			return id
		}
	}
	return ""
}

// Manifest returns the manifest of the newest turn and the turn that recorded it.
func (f *Frame) Manifest() (man *journal.Manifest, turn int) {
	return f.turn.manifest, f.turn.same
}

// Requested returns what the request of the newest turn sends: a view, then a range of the
// history.
func (f *Frame) Requested() (view []journal.Span, from, upto int) {
	return f.turn.view, f.turn.from, f.turn.upto
}

// Startable returns the calls of the frame that may start, also those that wait for their
// turn [M8.5].
func (f *Frame) Startable() iter.Seq[journal.EffectID] {
	return func(yield func(journal.EffectID) bool) {
		r := f.last()
		if r == nil || r.unsettled == 0 || f.closed() {
			return
		}
		for _, c := range r.calls {
			if c.state == callReady && !c.handoff() && !c.hosted() && !yield(c.id) {
				return
			}
		}
	}
}

// anyCall says that a call of the newest response of an open frame is such.
func (m *Machine) anyCall(such func(*call) bool) bool {
	for f := range m.Frames() {
		if r := f.last(); r != nil && slices.ContainsFunc(r.calls, such) {
			return true
		}
	}
	return false
}

// Exposed says that an attempt of an open call may have happened.
func (m *Machine) Exposed() bool {
	return m.anyCall(func(c *call) bool { return c.state != callSettled && c.attempt > 0 && !c.agent() })
}

// LeftRunning says that a call of the newest claim is in doubt because its driver went on
// while the body was still running [M8.3].
func (m *Machine) LeftRunning() bool {
	return m.anyCall(func(c *call) bool { return c.state == callDoubt && c.blocked > 0 && c.epoch == m.epoch })
}
