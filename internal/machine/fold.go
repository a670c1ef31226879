package machine

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// fold applies a fact that passed Check. It cannot fail.
func (m *Machine) fold(f journal.Fact) {
	m.facts++
	switch b := f.Body.(type) {
	case *journal.Started:
		m.foldStarted(b)
	case *journal.Forked:
		m.run, m.session = b.Run, b.Session
		m.persisted, m.batches, m.open = 0, 0, nil
		if !m.loaded {
			m.loadInput()
		}
	case *journal.Claimed:
		m.foldClaimed(b)
	case *journal.Resumed:
		m.failure = nil
		if b.MaxTurns != 0 {
			m.maxTurns = max(b.MaxTurns, 0)
		}
	case *journal.Loaded:
		m.foldLoaded(b)
	case *journal.Prepared:
		m.foldPrepared(b)
	case *journal.Intended:
		m.foldIntended(b)
	case *journal.Responded:
		m.foldResponded(b)
	case *journal.Planned:
		m.foldPlanned(b)
	case *journal.Decided:
		m.foldDecided(b)
	case *journal.Settled:
		m.foldSettled(b)
	case *journal.Judged:
		delete(m.flight, journal.EffectID{Kind: journal.EffectJudge, N: b.N, A: 1})
		m.last().judged = b
	case *journal.Confirmed:
		m.foldConfirmed(b)
	case *journal.Absent:
		m.foldAbsent(b)
	case *journal.Failed:
		m.foldFailed(b)
	case *journal.Fired:
		delete(m.flight, b.ID)
		if b.ID.P == 0 {
			m.turn.retryAt = 0
		}
	case *journal.Cancelled:
		m.cancelled = b
		m.failure = nil
	case *journal.Finished:
		m.finished = b
	}
}

func (m *Machine) foldStarted(b *journal.Started) {
	m.started, m.run, m.session = b, b.Run, b.Session
	m.maxTurns = b.MaxTurns
	m.manifests = make(map[int]*journal.Manifest)
	m.sticky = make(map[string]*journal.Decided)
	m.chain.id = b.Previous
	if b.UniqueCallIDs {
		m.seen = make(map[string]*call)
	}
	if b.Session == nil {
		m.loadInput()
	}
}

func (m *Machine) loadInput() {
	m.loaded = true
	m.extend(m.started.Input)
	m.settled = len(m.history)
}

// [M3] The history is what the session held, the outputs that heal it, the input.
func (m *Machine) foldLoaded(b *journal.Loaded) {
	delete(m.flight, loadID)
	m.extend(b.Items)
	m.persisted = len(m.history)
	m.extend(b.Healed)
	m.loadInput()
}

func (m *Machine) extend(items []item.Item) {
	for _, it := range items {
		m.history = append(m.history, slot{item: it})
	}
}

// [M12] Everything that was in flight under an older epoch is in doubt.
func (m *Machine) foldClaimed(b *journal.Claimed) {
	m.epoch, m.gone = b.Epoch, b.Gone
	clear(m.flight)
	if m.open != nil && !m.open.absent {
		m.open.doubt = true
	}
	if m.turn.open {
		m.turn.doubt = true
	}
	r := m.last()
	if r == nil {
		return
	}
	for _, c := range r.calls {
		switch {
		case c.state == callRunning && c.harmless():
			c.state = callReady
		case c.state == callRunning:
			c.state, c.blocked = callDoubt, c.notAfter+Margin
			if b.Gone {
				c.blocked = 0
			}
		case c.state == callDoubt && b.Gone:
			c.blocked = 0
		}
	}
}

func (m *Machine) foldPrepared(b *journal.Prepared) {
	delete(m.flight, journal.EffectID{Kind: journal.EffectPrepare, N: b.N, A: 1})
	man, same := b.Manifest, b.N
	if man == nil {
		man, same = m.manifests[b.Same], b.Same
	} else {
		m.manifests[b.N] = man
	}
	m.turns = b.N
	m.turn = turn{n: b.N, upto: b.Upto, manifest: man, same: same, attempt: 1, open: true}
	if m.managed() {
		m.turn.from = m.chain.covered
	}
}

func (m *Machine) foldIntended(b *journal.Intended) {
	switch b.ID.Kind {
	case journal.EffectModel:
		if m.turn.doubt {
			m.usage.add(nil)
		}
		m.turn.attempt, m.turn.open, m.turn.doubt, m.turn.again, m.turn.retryAt = b.ID.A, true, false, false, 0
	case journal.EffectSession:
		m.open = &batch{n: b.ID.N, upto: b.Upto, attempt: b.ID.A}
	case journal.EffectTool:
		c := m.find(b.ID)
		c.state, c.attempt, c.epoch, c.notAfter = callRunning, b.ID.A, m.epoch, b.NotAfter
	}
}

// [M6] A response takes its place in the history; the chain moves on.
func (m *Machine) foldResponded(b *journal.Responded) {
	delete(m.flight, b.ID)
	m.dropReconcile(b.ID)
	m.usage.add(b.Usage)
	t := &m.turn
	t.open, t.doubt, t.again = false, false, false
	r := &response{n: len(m.responses) + 1, turn: t.n, id: b.ResponseID, first: len(m.history), manifest: t.manifest}
	m.extend(b.Items)
	r.end, r.outEnd = len(m.history), len(m.history)
	m.responses = append(m.responses, r)
	switch {
	case m.started.Conversation != "":
		m.chain.covered = r.end
	case m.managed() && b.ResponseID != "":
		m.chain = chain{id: b.ResponseID, covered: r.end}
	}
}

// [M7] The plan reserves the places of the outputs, in call order.
func (m *Machine) foldPlanned(b *journal.Planned) {
	r := m.last()
	delete(m.flight, journal.EffectID{Kind: journal.EffectPlan, N: b.N, A: 1})
	calls := make([]call, len(b.Calls))
	for i := range b.Calls {
		pc := &b.Calls[i]
		at := r.first + pc.P
		if pc.Twin {
			m.history[at].dropped = true
			continue
		}
		c := &calls[i]
		*c = call{
			id:     journal.EffectID{Kind: journal.EffectTool, N: r.n, P: pc.P},
			slot:   at,
			out:    len(m.history),
			callID: m.history[at].item.Head().CallID,
			plan:   pc,
		}
		if pc.Tool >= 0 {
			c.spec = &r.manifest.Tools[pc.Tool]
		}
		m.history = append(m.history, slot{})
		r.calls = append(r.calls, c)
		r.unsettled++
		if m.seen != nil {
			m.seen[c.callID] = c
		}
		m.admit(r, c)
	}
	r.outEnd = len(m.history)
	r.planned = b
	m.settleResponse(r)
}

// admit gives a planned call its first state [M8].
func (m *Machine) admit(r *response, c *call) {
	sticky := m.stickyFor(c)
	switch {
	case !c.plan.Output.IsZero() && c.plan.Gate == journal.Allow:
		m.settle(r, c, journal.Rejected, c.plan.Output)
	case c.plan.Gate == journal.Deny:
		c.state = callDecided
	case sticky != nil && sticky.Verdict == journal.Reject:
		c.state, c.verdict = callDecided, sticky
	case c.plan.Gate == journal.Ask && sticky == nil:
		c.state = callAsked
	case c.plan.Unreadable:
		c.state = callDecided
	default:
		c.state = callReady
	}
}

func (m *Machine) foldSettled(b *journal.Settled) {
	id := b.ID
	delete(m.flight, id)
	c := m.find(id)
	if c.state == callSettled {
		return
	}
	switch b.Outcome {
	case journal.NotExecuted:
		c.state = callReady
		return
	case journal.Unknown:
		if c.state == callRunning {
			c.unknown++
			if c.harmless() && c.unknown < MaxUnknown {
				c.state = callReady
				return
			}
			if c.spec.OnUnknown == journal.UnknownWait {
				c.state = callDoubt
				return
			}
		}
	}
	m.settle(m.responses[id.N-1], c, b.Outcome, b.Output)
}

func (m *Machine) settle(r *response, c *call, o journal.Outcome, out item.Item) {
	c.state, c.outcome = callSettled, o
	m.history[c.out].item = out
	r.unsettled--
	m.settleResponse(r)
}

// settleResponse moves the settled mark over a response whose calls all have
// their output [M10].
func (m *Machine) settleResponse(r *response) {
	if r.planned != nil && r.unsettled == 0 {
		m.settled = r.outEnd
	}
}

func (m *Machine) foldConfirmed(b *journal.Confirmed) {
	if m.open != nil {
		id := journal.EffectID{Kind: journal.EffectSession, N: b.N, A: m.open.attempt}
		delete(m.flight, id)
		m.dropReconcile(id)
	}
	m.open, m.persisted, m.batches = nil, b.Upto, b.N
}

func (m *Machine) foldAbsent(b *journal.Absent) {
	m.dropReconcile(b.ID)
	switch b.ID.Kind {
	case journal.EffectSession:
		m.open.doubt, m.open.absent = false, true
	case journal.EffectModel:
		m.turn.open, m.turn.doubt, m.turn.again = false, false, true
	}
}

// [M11] A failure stops new effects until a resumed fact; what is in doubt because
// of it is found out then.
func (m *Machine) foldFailed(b *journal.Failed) {
	delete(m.flight, b.ID)
	switch b.ID.Kind {
	case journal.EffectModel:
		m.usage.add(nil)
		t := &m.turn
		t.retryAt = b.RetryAt
		t.open, t.doubt, t.again = false, false, true
		if b.Unknown && m.started.Conversation != "" {
			t.open, t.doubt, t.again = true, true, false
		}
	case journal.EffectSession:
		m.open.doubt = true
	}
	if b.RetryAt == 0 && m.failure == nil {
		m.failure = b
	}
}

func (m *Machine) dropReconcile(about journal.EffectID) {
	delete(m.flight, reconcileID(about))
}
