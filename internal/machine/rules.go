package machine

import (
	"math"
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

// rule is one of the rules of the loop, in their fixed order [M2.2].
type rule int

const (
	ruleEnded rule = iota
	ruleFailed
	ruleLoad
	ruleGuard
	ruleBeside
	ruleBatch
	ruleRequest
	rulePlan
	ruleCalls
	ruleFlight
	rulePending
	ruleOwed
	ruleCancel
	ruleWaiting
	ruleJudge
	ruleOutput
	ruleVerdict
	ruleFinal
	ruleHandle
	ruleMaxTurns
	rulePrepare
)

// next returns the first rule that applies. Ready acts on it and Status reads it.
func (f *Frame) next() rule {
	r := f.last()
	closed := f.closed()
	switch {
	case f.started == nil, f.finished != nil:
		return ruleEnded
	case f.m.failure != nil:
		return ruleFailed
	case !f.loaded && !closed:
		return ruleLoad
	case !closed && f.guardDue(guardBlocking):
		return ruleGuard
	case !closed && f.besideDue():
		return ruleBeside
	case f.open != nil:
		return ruleBatch
	case f.requestDue():
		return ruleRequest
	case r != nil && r.planned == nil && !closed:
		return rulePlan
	case r != nil && f.anyActionable(r):
		return ruleCalls
	case f.busy() > 0:
		return ruleFlight
	case !closed && f.admitDue():
		return rulePending
	case f.owed():
		return ruleOwed
	case closed && (r == nil || r.unsettled == 0):
		return ruleCancel
	case r != nil && r.unsettled > 0:
		return ruleWaiting
	case r != nil && r.judgeDue():
		return ruleJudge
	}
	return f.nextTurn()
}

// nextTurn returns the rule that applies when nothing is left to do for the newest response.
func (f *Frame) nextTurn() rule {
	if f.end() != nil {
		switch _, due := f.outputDue(); {
		case due:
			return ruleOutput
		case f.unchecked():
			return ruleVerdict
		}
		return ruleFinal
	}
	switch kind, _ := f.Unhandled(); {
	case kind != "":
		return ruleHandle
	case f.outOfTurns():
		return ruleMaxTurns
	}
	return rulePrepare
}

// step acts on the first rule that applies and reports whether anything came of it.
func (f *Frame) step() bool {
	switch f.next() {
	case ruleLoad:
		return f.hand(loadID)
	case ruleGuard:
		return f.hand(guardID(0, guardBlocking))
	case ruleBeside:
		return f.hand(guardID(0, guardParallel))
	case ruleBatch:
		return f.stepBatch()
	case ruleRequest:
		return f.stepRequest()
	case rulePlan:
		return f.hand(effect(journal.EffectPlan, f.last().n))
	case ruleCalls:
		return f.stepCalls(f.last())
	case rulePending:
		return f.stepPending()
	case ruleOwed:
		return f.stepOwed()
	case ruleCancel:
		return f.add(&journal.Finished{Cancelled: true, Tripped: f.trips != nil, At: -1})
	case ruleJudge:
		return f.hand(effect(journal.EffectJudge, f.last().n))
	case ruleOutput:
		n, _ := f.outputDue()
		return f.hand(effect(journal.EffectOutput, n))
	case ruleFinal:
		return f.add(f.end())
	case ruleHandle:
		_, n := f.Unhandled()
		return f.hand(effect(journal.EffectHandle, n))
	case ruleMaxTurns:
		return f.add(&journal.Failed{ID: effect(journal.EffectPrepare, f.turns+1), Code: CodeMaxTurns})
	case rulePrepare:
		return f.hand(effect(journal.EffectPrepare, f.turns+1))
	}
	return false
}

// expire ends the approvals whose deadline has come [M9.16].
func (f *Frame) expire() {
	r := f.last()
	if r == nil || r.unsettled == 0 || f.finished != nil || f.closed() {
		return
	}
	for _, c := range r.calls {
		switch {
		case c.state == callEntered:
			f.nested(c).expire()
		case f.m.failure == nil && !f.ending && c.expires(f.m.now):
			f.add(&journal.Expired{Call: c.id, Stage: c.stage()})
		}
	}
}

// add emits a fact that follows from a rule.
func (f *Frame) add(b journal.Body) bool {
	f.m.emit(journal.Fact{Frame: f.name, Time: f.m.now, Body: b})
	return true
}

// [M10.3] What is settled is owed to the session. In the run store's own database
// the batch commits with its fact; elsewhere its intent comes first.
func (f *Frame) stepOwed() bool {
	n, upto := f.batches+1, f.released()
	if f.session.Own {
		f.m.ranges = append(f.m.ranges, Range{Frame: f.name, N: n, From: f.persisted, Upto: upto})
		return f.add(&journal.Confirmed{N: n, Upto: upto})
	}
	return f.add(&journal.Intended{ID: effect(journal.EffectSession, n), Upto: upto})
}

// [M10.4] [M10.5] [M10.6] An open batch is appended; one in doubt is looked for
// first, unless the session remembers batches.
func (f *Frame) stepBatch() bool {
	b := f.open
	if b.doubt && !f.session.Batches {
		return f.hand(reconcileID(b.id()))
	}
	if b.doubt || b.absent {
		id := b.id()
		id.A++
		return f.add(&journal.Intended{ID: id, Upto: b.upto})
	}
	return f.hand(b.id())
}

// requestDue says that the turn's request is open or to be repeated [M5.2].
func (f *Frame) requestDue() bool {
	return !f.closed() && (f.turn.open || f.turn.again)
}

// [M5.3] A request in doubt is repeated if that does no harm; else what became of it is
// found out first.
func (f *Frame) stepRequest() bool {
	t := &f.turn
	id := f.modelID()
	switch {
	case t.doubt && f.unrepeatable():
		return f.hand(reconcileID(id))
	case t.retryAt > f.m.now:
		return f.hand(f.retryID())
	case t.doubt || t.again:
		id.A++
		return f.add(&journal.Intended{ID: id, Upto: t.upto})
	}
	return f.hand(id)
}

// anyActionable says that something can be done for a call of the response.
func (f *Frame) anyActionable(r *response) bool {
	return r.unsettled > 0 && slices.ContainsFunc(r.calls, f.actionable)
}

// actionable says that something can be done for the call now [M8.5].
func (f *Frame) actionable(c *call) bool {
	if f.closed() {
		return c.state != callRunning && c.state != callEntered && c.state != callSettled
	}
	switch c.state {
	case callDecided:
		return true
	case callLeaving:
		return !f.handed[leaveID(c)]
	case callReady:
		switch {
		case c.guarded():
			return !f.handed[checkID(c)]
		case !f.cleared(c):
			return false
		case c.agent():
			return !f.handed[enterID(c)]
		case c.handoff():
			return f.transferDue(c) && !f.handed[transferID(c)]
		case c.hosted():
			return true
		}
		return f.started.Parallel <= 0 || f.running < f.started.Parallel
	case callDoubt:
		return (c.query || c.tells()) && !f.handed[waitID(c)] && !f.handed[reconcileID(c.last())]
	}
	return false
}

// [M8.6] Every call for which something can be done goes one step, in call order.
func (f *Frame) stepCalls(r *response) bool {
	some := false
	for _, c := range r.calls {
		if f.actionable(c) && f.stepCall(c) {
			some = true
		}
	}
	return some
}

func (f *Frame) stepCall(c *call) bool {
	switch {
	case c.state == callDecided:
		return f.settleDecided(c)
	case f.closed():
		return f.settleCancelled(c)
	case c.state == callReady && c.guarded(): // [M19.7]
		return f.hand(checkID(c))
	case c.agent():
		return f.stepAgent(c)
	case c.state == callReady && c.handoff(): // [M18.3]
		return f.hand(transferID(c))
	case f.approved(c):
		return f.settleApproved(c)
	case c.state == callReady:
		return f.startCall(c)
	case c.blocked > f.m.now: // [M8.9]
		return f.hand(waitID(c))
	case c.query: // [M8.17]
		return f.hand(reconcileID(c.last()))
	}
	return f.settleUnknown(c)
}

// last is the id of the call's last attempt.
func (c *call) last() journal.EffectID {
	id := c.id
	id.A = c.attempt
	return id
}

// [M8.7] The intent comes first, and the effect carries the key.
func (f *Frame) startCall(c *call) bool {
	id := c.id
	id.A = c.attempt + 1
	f.add(&journal.Intended{ID: id, NotAfter: later(f.m.now, c.timeout())})
	return f.hand(id)
}

// DefaultTimeout bounds a tool's body when the tool names no bound, in milliseconds.
const DefaultTimeout = 10 * 60 * 1000

func (c *call) timeout() int64 {
	if c.spec.Timeout > 0 {
		return min(c.spec.Timeout, math.MaxInt64/2)
	}
	return DefaultTimeout
}

// The tool-use behaviours of a manifest.
const (
	ToolUseAgain  = ""
	ToolUseFirst  = "first"
	ToolUseNames  = "names"
	ToolUseCustom = "custom"
)

// whole says that the response is planned and none of its calls is open.
func (r *response) whole() bool { return r.planned != nil && r.unsettled == 0 }

// judgeDue says that a custom tool-use behaviour has a say on the response [M14.4].
func (r *response) judgeDue() bool {
	return r.whole() && r.judged == nil && !r.transferred && r.manifest.ToolUse == ToolUseCustom && slices.ContainsFunc(r.calls, (*call).result)
}

// final returns how the run ends after this response, nil if it goes on [M14.1]
// [M14.2].
func (r *response) final() *journal.Finished {
	if !r.whole() {
		return nil
	}
	switch {
	case r.planned.Final == journal.FinalMessage:
		return &journal.Finished{At: r.first + r.planned.FinalAt}
	case r.planned.Final == journal.FinalEmpty:
		return &journal.Finished{At: -1}
	case r.judged != nil && r.judged.Final:
		return &journal.Finished{At: -1, Text: r.judged.Text}
	}
	use := r.manifest.ToolUse
	if r.transferred || use != ToolUseFirst && use != ToolUseNames { // [M18.5]
		return nil
	}
	for _, c := range r.calls {
		if c.result() && (use == ToolUseFirst || slices.Contains(r.manifest.StopAt, c.spec.Name)) {
			return &journal.Finished{At: c.out}
		}
	}
	return nil
}

// CodeMaxTurns is the code of the failure of a run that is out of turns.
const CodeMaxTurns = "max_turns"
