package machine

import (
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

var loadID = journal.EffectID{Kind: journal.EffectLoad, A: 1}

// reconcileID is the id of the effect that finds out what became of another.
func reconcileID(about journal.EffectID) journal.EffectID {
	kind := map[journal.EffectKind]int{journal.EffectModel: 0, journal.EffectSession: 1}[about.Kind]
	return journal.EffectID{Kind: journal.EffectReconcile, N: about.N, P: kind, A: about.A}
}

// rule is one of the rules of the loop, in their fixed order [M2].
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
	ruleJudge
	ruleOwed
	ruleCancel
	ruleWaiting
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
	case m.requestDue(cancelled):
		return ruleRequest
	case r != nil && r.planned == nil && !cancelled:
		return rulePlan
	case r != nil && m.actionable(r) != nil:
		return ruleCalls
	case len(m.flight) > 0:
		return ruleFlight
	case r != nil && r.planned != nil && r.unsettled == 0 && r.judged == nil && m.judges(r) && !cancelled:
		return ruleJudge
	case m.session != nil && m.loaded && m.persisted < m.settled:
		return ruleOwed
	case cancelled && (r == nil || r.unsettled == 0):
		return ruleCancel
	case r != nil && r.unsettled > 0:
		return ruleWaiting
	case r != nil && m.final(r) != nil:
		return ruleFinal
	case m.maxTurns > 0 && m.turns >= m.maxTurns:
		return ruleMaxTurns
	}
	return rulePrepare
}

// blocked says that only a decision can go on.
func (m *Machine) blocked() bool { return m.next() == ruleWaiting }

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
		return m.hand(Effect{ID: journal.EffectID{Kind: journal.EffectPlan, N: m.last().n, A: 1}})
	case ruleCalls:
		return m.stepCall(m.actionable(m.last()))
	case ruleJudge:
		return m.hand(Effect{ID: journal.EffectID{Kind: journal.EffectJudge, N: m.last().n, A: 1}})
	case ruleOwed:
		m.stepOwed()
		return true
	case ruleCancel:
		m.emit(m.fact(&journal.Finished{Cancelled: true, At: -1}))
		return true
	case ruleFinal:
		m.emit(m.fact(m.final(m.last())))
		return true
	case ruleMaxTurns:
		m.emit(m.fact(&journal.Failed{ID: journal.EffectID{Kind: journal.EffectPrepare, N: m.turns + 1, A: 1}, Code: CodeMaxTurns}))
		return true
	case rulePrepare:
		return m.hand(Effect{ID: journal.EffectID{Kind: journal.EffectPrepare, N: m.turns + 1, A: 1}, Upto: m.settled})
	}
	return false
}

// [M10] What is settled is owed to the session. In the run store's own database
// the batch commits with its fact; elsewhere its intent comes first.
func (m *Machine) stepOwed() {
	n := m.batches + 1
	if m.session.Own {
		m.batch = &Range{N: n, From: m.persisted, Upto: m.settled}
		m.emit(m.fact(&journal.Confirmed{N: n, Upto: m.settled}))
		return
	}
	m.emit(m.fact(&journal.Intended{ID: journal.EffectID{Kind: journal.EffectSession, N: n, A: 1}, Upto: m.settled}))
}

// [M10] An open batch is appended; one in doubt is looked for first, unless the
// session remembers batches.
func (m *Machine) stepBatch() bool {
	b := m.open
	id := journal.EffectID{Kind: journal.EffectSession, N: b.n, A: b.attempt}
	if b.doubt && !m.session.Batches {
		return m.hand(Effect{ID: reconcileID(id), About: id, From: m.persisted, Upto: b.upto})
	}
	if b.doubt || b.absent {
		m.emit(m.fact(&journal.Intended{ID: journal.EffectID{Kind: journal.EffectSession, N: b.n, A: b.attempt + 1}, Upto: b.upto}))
		return true
	}
	return m.hand(Effect{ID: id, From: m.persisted, Upto: b.upto})
}

// requestDue says that the turn's request is in flight, in doubt or to be repeated.
func (m *Machine) requestDue(cancelled bool) bool {
	t := &m.turn
	if cancelled {
		return t.open && m.flight[m.modelID()]
	}
	return t.open || t.again
}

func (m *Machine) modelID() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectModel, N: m.turn.n, A: m.turn.attempt}
}

// [M5] A request in doubt is repeated if the server keeps nothing or a chain; what
// a conversation holds is read back first.
func (m *Machine) stepRequest() bool {
	t := &m.turn
	id := m.modelID()
	if t.doubt && m.started.Conversation != "" {
		return m.hand(Effect{ID: reconcileID(id), About: id, From: t.from, Upto: t.upto})
	}
	if t.retryAt > m.now {
		return m.hand(Effect{ID: journal.EffectID{Kind: journal.EffectWait, N: t.n, A: t.attempt}, Until: t.retryAt})
	}
	if t.doubt || t.again {
		next := journal.EffectID{Kind: journal.EffectModel, N: t.n, A: t.attempt + 1}
		m.emit(m.fact(&journal.Intended{ID: next, Upto: t.upto}))
		return true
	}
	return m.hand(Effect{ID: id, From: t.from, Upto: t.upto, Previous: m.chain.id})
}

// actionable returns the first call in call order for which something can be done
// now, nil if there is none [M8].
func (m *Machine) actionable(r *response) *call {
	if r.unsettled == 0 {
		return nil
	}
	running := 0
	for _, c := range r.calls {
		if c.state == callRunning {
			running++
		}
	}
	full := m.started.Parallel > 0 && running >= m.started.Parallel
	for _, c := range r.calls {
		switch c.state {
		case callDecided:
			return c
		case callReady:
			if !full || m.cancelled != nil {
				return c
			}
		case callAsked:
			if m.cancelled != nil {
				return c
			}
		case callDoubt:
			if m.cancelled != nil || c.spec.OnUnknown == journal.UnknownTell && !m.flight[waitID(c)] {
				return c
			}
		}
	}
	return nil
}

// waitID is the wait for the time from which a call in doubt may be acted on.
func waitID(c *call) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectWait, N: c.id.N, P: c.id.P + 1, A: c.attempt}
}

// [M8] One call goes one step: settled without a body, or started.
func (m *Machine) stepCall(c *call) bool {
	switch {
	case m.cancelled != nil:
		m.settleCancelled(c)
	case c.state == callDecided:
		m.settleDecided(c)
	case c.state == callDoubt && c.blocked > m.now:
		return m.hand(Effect{ID: waitID(c), Until: c.blocked})
	case c.state == callDoubt:
		m.emit(m.fact(&journal.Settled{ID: c.id, Outcome: journal.Unknown, Output: m.output(c, UnknownText(m.Key(c)))}))
	default:
		id := c.id
		id.A = c.attempt + 1
		notAfter := m.now + c.timeout()
		m.emit(m.fact(&journal.Intended{ID: id, NotAfter: notAfter}))
		m.hand(Effect{ID: id, Key: m.Key(c), NotAfter: notAfter})
	}
	return true
}

// Key returns the call's idempotency key.
func (m *Machine) Key(c *call) string { return Key(m.run, "", c.id) }

// DefaultTimeout bounds a tool's body when the tool names no bound, in milliseconds.
const DefaultTimeout = 10 * 60 * 1000

func (c *call) timeout() int64 {
	if c.spec.Timeout > 0 {
		return c.spec.Timeout
	}
	return DefaultTimeout
}

// judges says that a custom tool-use behaviour has a say after this response: a
// body of one of its tools ran.
func (m *Machine) judges(r *response) bool {
	return r.manifest.ToolUse == ToolUseCustom && r.firstResult(anyTool) != nil
}

func anyTool(string) bool { return true }

// firstResult returns the first call in call order whose body ran to an end and
// whose tool's name matches.
func (r *response) firstResult(match func(name string) bool) *call {
	for _, c := range r.calls {
		ran := c.outcome == journal.Done || c.outcome == journal.ToolFailed
		if c.state == callSettled && ran && c.attempt > 0 && match(c.spec.Name) {
			return c
		}
	}
	return nil
}

// The tool-use behaviours of a manifest.
const (
	ToolUseAgain  = ""
	ToolUseFirst  = "first"
	ToolUseNames  = "names"
	ToolUseCustom = "custom"
)

// final returns how the run finishes after this response, nil if it goes on [M14].
func (m *Machine) final(r *response) *journal.Finished {
	if r.planned == nil || r.unsettled > 0 {
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
	var c *call
	switch r.manifest.ToolUse {
	case ToolUseFirst:
		c = r.firstResult(anyTool)
	case ToolUseNames:
		c = r.firstResult(func(name string) bool { return slices.Contains(r.manifest.StopAt, name) })
	}
	if c == nil {
		return nil
	}
	return &journal.Finished{At: c.out}
}

// CodeMaxTurns is the code of the failure that ends a run out of turns.
const CodeMaxTurns = "max_turns"
