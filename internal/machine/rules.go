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
	ruleBatch
	ruleRequest
	rulePlan
	ruleCalls
	ruleFlight
	ruleOwed
	ruleCancel
	ruleWaiting
	ruleJudge
	ruleFinal
	ruleMaxTurns
	rulePrepare
)

// next returns the first rule that applies. Ready acts on it and Status reads it.
func (m *Machine) next() rule {
	r := m.last()
	cancelled := m.cancelled != nil
	switch {
	case m.started == nil, m.finished != nil:
		return ruleEnded
	case m.failure != nil:
		return ruleFailed
	case !m.loaded && !cancelled:
		return ruleLoad
	case m.open != nil:
		return ruleBatch
	case m.requestDue():
		return ruleRequest
	case r != nil && r.planned == nil && !cancelled:
		return rulePlan
	case r != nil && m.anyActionable(r):
		return ruleCalls
	case m.inFlight > 0:
		return ruleFlight
	case m.owed():
		return ruleOwed
	case cancelled && (r == nil || r.unsettled == 0):
		return ruleCancel
	case r != nil && r.unsettled > 0:
		return ruleWaiting
	case r != nil && r.judgeDue():
		return ruleJudge
	case r != nil && r.final() != nil:
		return ruleFinal
	case m.maxTurns > 0 && m.turns >= m.maxTurns:
		return ruleMaxTurns
	}
	return rulePrepare
}

// step acts on the first rule that applies and reports whether anything came of it.
func (m *Machine) step() bool {
	switch m.next() {
	case ruleLoad:
		return m.hand(Effect{ID: loadID})
	case ruleBatch:
		return m.stepBatch()
	case ruleRequest:
		return m.stepRequest()
	case rulePlan:
		return m.hand(Effect{ID: effect(journal.EffectPlan, m.last().n)})
	case ruleCalls:
		return m.stepCalls(m.last())
	case ruleOwed:
		return m.stepOwed()
	case ruleCancel:
		return m.add(&journal.Finished{Cancelled: true, At: -1})
	case ruleJudge:
		return m.hand(Effect{ID: effect(journal.EffectJudge, m.last().n)})
	case ruleFinal:
		return m.add(m.last().final())
	case ruleMaxTurns:
		return m.add(&journal.Failed{ID: effect(journal.EffectPrepare, m.turns+1), Code: CodeMaxTurns})
	case rulePrepare:
		return m.hand(Effect{ID: effect(journal.EffectPrepare, m.turns+1), Upto: m.settled})
	}
	return false
}

// expire ends the approvals whose deadline has come [M9.16].
func (m *Machine) expire() {
	r := m.last()
	if r == nil || m.finished != nil || m.cancelled != nil {
		return
	}
	for _, c := range r.calls {
		if m.failure == nil && c.expires(m.now) {
			m.add(&journal.Expired{Call: c.id, Stage: c.stage()})
		}
	}
}

// add emits a fact that follows from a rule.
func (m *Machine) add(b journal.Body) bool {
	m.emit(journal.Fact{Time: m.now, Body: b})
	return true
}

// [M10.3] What is settled is owed to the session. In the run store's own database
// the batch commits with its fact; elsewhere its intent comes first.
func (m *Machine) stepOwed() bool {
	n := m.batches + 1
	if m.session.Own {
		m.batch = &Range{N: n, From: m.persisted, Upto: m.settled}
		return m.add(&journal.Confirmed{N: n, Upto: m.settled})
	}
	return m.add(&journal.Intended{ID: effect(journal.EffectSession, n), Upto: m.settled})
}

// [M10.4] [M10.5] [M10.6] An open batch is appended; one in doubt is looked for
// first, unless the session remembers batches.
func (m *Machine) stepBatch() bool {
	b := m.open
	if b.doubt && !m.session.Batches {
		return m.hand(Effect{ID: reconcileID(b.id()), About: b.id(), From: m.persisted, Upto: b.upto})
	}
	if b.doubt || b.absent {
		id := b.id()
		id.A++
		return m.add(&journal.Intended{ID: id, Upto: b.upto})
	}
	return m.hand(Effect{ID: b.id(), From: m.persisted, Upto: b.upto})
}

// requestDue says that the turn's request is open or to be repeated [M5.2].
func (m *Machine) requestDue() bool {
	return m.cancelled == nil && (m.turn.open || m.turn.again)
}

// [M5.3] A request in doubt is repeated if the server keeps nothing or a chain; what
// a conversation holds is read back first.
func (m *Machine) stepRequest() bool {
	t := &m.turn
	id := m.modelID()
	switch {
	case t.doubt && m.started.Conversation != "":
		return m.hand(Effect{ID: reconcileID(id), About: id, From: t.from, Upto: t.upto})
	case t.retryAt > m.now:
		return m.hand(Effect{ID: m.retryID(), Until: t.retryAt})
	case t.doubt || t.again:
		id.A++
		return m.add(&journal.Intended{ID: id, Upto: t.upto})
	}
	return m.hand(Effect{ID: id, From: t.from, Upto: t.upto, Previous: m.chain.id})
}

// anyActionable says that something can be done for a call of the response.
func (m *Machine) anyActionable(r *response) bool {
	return r.unsettled > 0 && slices.ContainsFunc(r.calls, m.actionable)
}

// actionable says that something can be done for the call now [M8.5].
func (m *Machine) actionable(c *call) bool {
	if m.cancelled != nil {
		return c.state != callRunning && c.state != callSettled
	}
	switch c.state {
	case callDecided:
		return true
	case callReady:
		return m.started.Parallel <= 0 || m.running < m.started.Parallel
	case callDoubt:
		return (c.query || c.tells()) && !m.handed[waitID(c)] && !m.handed[reconcileID(c.last())]
	}
	return false
}

// [M8.6] Every call for which something can be done goes one step, in call order.
func (m *Machine) stepCalls(r *response) bool {
	some := false
	for _, c := range r.calls {
		if m.actionable(c) && m.stepCall(c) {
			some = true
		}
	}
	return some
}

func (m *Machine) stepCall(c *call) bool {
	switch {
	case c.state == callDecided:
		return m.settleDecided(c)
	case m.cancelled != nil:
		return m.settleCancelled(c)
	case c.state == callReady:
		return m.startCall(c)
	case c.blocked > m.now: // [M8.9]
		return m.hand(Effect{ID: waitID(c), Until: c.blocked})
	case c.query: // [M8.17]
		return m.hand(Effect{ID: reconcileID(c.last()), About: c.last(), Key: m.KeyOf(c.id)})
	}
	return m.settleUnknown(c)
}

// last is the id of the call's last attempt.
func (c *call) last() journal.EffectID {
	id := c.id
	id.A = c.attempt
	return id
}

// [M8.7] The intent comes first, and the effect carries the key.
func (m *Machine) startCall(c *call) bool {
	id := c.id
	id.A = c.attempt + 1
	notAfter := later(m.now, c.timeout())
	m.add(&journal.Intended{ID: id, NotAfter: notAfter})
	return m.hand(Effect{ID: id, Key: m.KeyOf(c.id), NotAfter: notAfter})
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
	return r.whole() && r.judged == nil && r.manifest.ToolUse == ToolUseCustom && slices.ContainsFunc(r.calls, (*call).result)
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
	if use != ToolUseFirst && use != ToolUseNames {
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
