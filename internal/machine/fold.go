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
		m.foldForked(b)
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
		m.foldIntended(f.Time, b)
	case *journal.Responded:
		m.foldResponded(b)
	case *journal.Planned:
		m.foldPlanned(f.Time, b)
	case *journal.Decided:
		m.foldDecided(b)
	case *journal.Settled:
		m.foldSettled(f.Time, b)
	case *journal.Expired:
		m.foldExpired(f.Time, b)
	case *journal.Judged:
		m.landed(effect(journal.EffectJudge, b.N))
		m.last().judged = b
	case *journal.Confirmed:
		m.foldConfirmed(b)
	case *journal.Absent:
		m.foldAbsent(b)
	case *journal.Failed:
		m.foldFailed(b)
	case *journal.Fired:
		m.landed(b.ID)
		if m.turn.again && b.ID == m.retryID() { // [M5.10]
			m.turn.retryAt = 0
		}
	case *journal.Cancelled:
		m.foldCancelled(b)
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

// [M1.8] A fork has another run's past and nothing of its own in flight.
func (m *Machine) foldForked(b *journal.Forked) {
	if b.Run != m.run {
		m.epoch, m.owner = 0, journal.Owner{}
		m.unknowns = nil // they are that run's
	}
	m.run, m.session = b.Run, b.Session
	m.persisted, m.batches, m.open = 0, 0, nil
	m.grounded()
	if !m.loaded && b.Session == nil {
		m.loadInput()
	}
}

// grounded forgets every effect that was handed out.
func (m *Machine) grounded() {
	clear(m.handed)
	m.inFlight = 0
}

func (m *Machine) loadInput() {
	m.loaded = true
	m.extend(m.started.Input)
	m.settled = len(m.history)
}

// [M3.2] The history is what the session held, the outputs that heal it, the input.
func (m *Machine) foldLoaded(b *journal.Loaded) {
	m.landed(loadID)
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

// [M12] What was open under the older epoch is in doubt.
func (m *Machine) foldClaimed(b *journal.Claimed) {
	before := m.epoch
	m.epoch, m.owner = b.Epoch, b.Owner
	m.grounded()
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
		m.claimCall(c, b.Gone && c.epoch == before)
	}
}

func (m *Machine) foldPrepared(b *journal.Prepared) {
	m.landed(effect(journal.EffectPrepare, b.N))
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

func (m *Machine) foldIntended(now int64, b *journal.Intended) {
	switch b.ID.Kind {
	case journal.EffectModel:
		t := &m.turn
		m.landed(m.retryID())
		if t.doubt {
			m.usage.add(nil) // [M5.9]
		}
		t.attempt, t.open, t.doubt, t.again, t.retryAt = b.ID.A, true, false, false, 0
	case journal.EffectSession:
		m.open = &batch{n: b.ID.N, upto: b.Upto, attempt: b.ID.A}
	case journal.EffectTool:
		c := m.find(b.ID)
		m.move(c, callRunning)
		c.attempt, c.epoch, c.begun, c.notAfter, c.before = b.ID.A, m.epoch, now, b.NotAfter, c.exposed
	}
}

// [M6.1] A response takes its place in the history; the chain moves on [M6.4].
func (m *Machine) foldResponded(b *journal.Responded) {
	m.landed(b.ID)
	m.landed(reconcileID(b.ID))
	m.usage.add(b.Usage)
	t := &m.turn
	t.open, t.doubt, t.again, t.retryAt = false, false, false, 0
	r := &response{n: len(m.responses) + 1, turn: t.n, id: b.ResponseID, first: len(m.history), manifest: t.manifest}
	m.extend(b.Items)
	m.heads = m.heads[:0]
	for _, it := range b.Items {
		m.heads = append(m.heads, it.Head())
	}
	r.end, r.outEnd = len(m.history), len(m.history)
	m.responses = append(m.responses, r)
	switch {
	case m.started.Conversation != "":
		m.chain.covered = r.end
	case m.managed() && b.ResponseID != "":
		m.chain = chain{id: b.ResponseID, covered: r.end}
	}
}

func (m *Machine) foldConfirmed(b *journal.Confirmed) {
	if m.open != nil {
		id := journal.EffectID{Kind: journal.EffectSession, N: b.N, A: m.open.attempt}
		m.landed(id)
		m.landed(reconcileID(id))
	}
	m.open, m.persisted, m.batches = nil, b.Upto, b.N
}

func (m *Machine) foldAbsent(b *journal.Absent) {
	m.landed(reconcileID(b.ID))
	switch b.ID.Kind {
	case journal.EffectSession:
		m.open.doubt, m.open.absent = false, true
	case journal.EffectModel:
		m.usage.add(nil) // [M5.9]
		m.turn.open, m.turn.doubt, m.turn.again = false, false, true
		m.turn.absent++
	case journal.EffectTool: // [M8.18]
		c := m.find(b.ID)
		m.answer(c)
		c.exposed = c.before
		c.absent++
		m.move(c, callReady)
	}
}

// [M11.1] A failure stops new effects until a resumed fact; what is in doubt because
// of it is found out then.
func (m *Machine) foldFailed(b *journal.Failed) {
	m.landed(b.ID)
	fatal := m.cancelled == nil && b.RetryAt == 0
	switch b.ID.Kind {
	case journal.EffectModel:
		m.landed(reconcileID(b.ID))
		t := &m.turn
		t.retryAt = b.RetryAt
		if b.Unknown && m.started.Conversation != "" { // [M5.6]
			t.doubt = true
			break
		}
		m.usage.add(nil)
		t.open, t.doubt, t.again = false, false, true
	case journal.EffectSession:
		m.landed(reconcileID(b.ID))
		m.open.doubt, fatal = true, true // [M10.7]
	case journal.EffectReconcile:
		fatal = fatal || b.ID.P == ReconcileSession
	}
	if fatal && m.failure == nil {
		m.failure = b
	}
}

// [M15.2] A cancelled run waits for what may have an outcome, not for a time.
func (m *Machine) foldCancelled(b *journal.Cancelled) {
	m.cancelled, m.failure = b, nil
	for id := range m.handed {
		if id.Kind == journal.EffectWait {
			m.landed(id)
		}
	}
}
