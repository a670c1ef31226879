package machine

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// fold applies a fact that passed Check. It cannot fail.
func (m *Machine) fold(fact journal.Fact) {
	m.facts++
	switch b := fact.Body.(type) {
	case *journal.Forked:
		m.foldForked(b)
	case *journal.Claimed:
		m.foldClaimed(b)
	case *journal.Resumed:
		m.foldResumed(b)
	case *journal.Cancelled:
		m.foldCancelled(b)
	case *journal.Started:
		if fact.Frame != "" {
			m.enter(fact.Frame, b)
			return
		}
		m.id, m.context = b.Run, b.Context
		m.foldStarted(b)
	default:
		m.Frame(fact.Frame).fold(fact)
	}
}

// fold applies a fact of the frame alone.
func (f *Frame) fold(fact journal.Fact) {
	switch b := fact.Body.(type) {
	case *journal.Loaded:
		f.foldLoaded(b)
	case *journal.Prepared:
		f.foldPrepared(b)
	case *journal.Intended:
		f.foldIntended(fact.Time, b)
	case *journal.Responded:
		f.foldResponded(b)
	case *journal.Planned:
		f.foldPlanned(fact.Time, b)
	case *journal.Decided:
		f.foldDecided(b)
	case *journal.Settled:
		f.foldSettled(fact.Time, b)
	case *journal.Expired:
		f.foldExpired(fact.Time, b)
	case *journal.Judged:
		f.landed(effect(journal.EffectJudge, b.N))
		f.last().judged = b
	case *journal.Transferred:
		f.foldTransferred(b)
	case *journal.Checked:
		f.foldChecked(b)
	case *journal.Handled:
		f.foldHandled(b)
	case *journal.Added:
		f.added = append(f.added, b)
	case *journal.Admitted:
		f.foldAdmitted(b)
	case *journal.Observed:
		f.m.observed = b.N
	case *journal.Confirmed:
		f.foldConfirmed(b)
	case *journal.Absent:
		f.foldAbsent(b)
	case *journal.Failed:
		f.foldFailed(b)
	case *journal.Fired:
		f.landed(b.ID)
		if f.turn.again && b.ID == f.retryID() { // [M5.10]
			f.turn.retryAt = 0
		}
	case *journal.Finished:
		f.finished = b
		f.left()
	}
}

func (f *Frame) foldStarted(b *journal.Started) {
	f.started, f.session = b, b.Session
	f.maxTurns, f.agent = b.MaxTurns, b.Agent
	f.manifests = make(map[int]*journal.Manifest)
	f.sticky = make(map[string]*journal.Decided)
	f.chain.id = b.Previous
	if b.UniqueCallIDs {
		f.seen = make(map[string]*call)
	}
	if b.Session == nil {
		f.loadInput()
	}
}

// [M4.5] A new bound is that of whoever ran out of turns.
func (m *Machine) foldResumed(b *journal.Resumed) {
	f := m.root
	if m.failure != nil && m.failure.Code == CodeMaxTurns {
		f = m.Frame(m.failedIn)
	}
	m.failure, m.failedIn = nil, ""
	if b.Context != "" { // [M1.11]
		m.context = b.Context
	}
	if b.MaxTurns != 0 {
		f.maxTurns = max(b.MaxTurns, 0)
	}
}

// [M1.8] A fork has another run's past and nothing of its own in flight.
func (m *Machine) foldForked(b *journal.Forked) {
	other := b.Run != m.id
	if other {
		m.epoch, m.owner = 0, journal.Owner{}
	}
	m.id, m.session = b.Run, b.Session
	m.persisted, m.batches, m.open = 0, 0, nil
	for _, f := range m.frames {
		f.grounded()
		if other {
			f.unknowns = nil // they are that run's
		}
	}
	if !m.loaded && b.Session == nil {
		m.loadInput()
	}
}

// grounded forgets every effect that was handed out.
func (f *Frame) grounded() {
	clear(f.handed)
	f.flies(-f.inFlight)
}

func (f *Frame) loadInput() {
	f.loaded = true
	f.extend(f.started.Input)
	f.settled, f.inputEnd = len(f.history), len(f.history)
}

// [M3.2] The history is what the session held, the outputs that heal it, the input.
func (f *Frame) foldLoaded(b *journal.Loaded) {
	f.landed(loadID)
	f.extend(b.Items)
	f.persisted = len(f.history)
	f.extend(b.Healed)
	f.loadInput()
	f.see(b.View)
}

func (f *Frame) extend(items []item.Item) {
	for _, it := range items {
		f.history = append(f.history, slot{item: it})
	}
}

// [M12] What was open under the older epoch is in doubt.
func (m *Machine) foldClaimed(b *journal.Claimed) {
	before := m.epoch
	m.epoch, m.owner = b.Epoch, b.Owner
	for f := range m.Frames() {
		f.claim(before, b.Gone)
	}
}

// claim puts in doubt what is open in the frame. gone says that the owner of the epoch
// before is known to be gone.
func (f *Frame) claim(before uint64, gone bool) {
	f.grounded()
	if f.open != nil && !f.open.absent {
		f.open.doubt = true
	}
	if f.turn.open {
		f.turn.doubt = true
	}
	r := f.last()
	if r == nil {
		return
	}
	for _, c := range r.calls {
		f.claimCall(c, gone && c.epoch == before)
	}
}

func (f *Frame) foldPrepared(b *journal.Prepared) {
	f.landed(effect(journal.EffectPrepare, b.N))
	man, same := b.Manifest, b.N
	if man == nil {
		man, same = f.manifests[b.Same], b.Same
	} else {
		f.manifests[b.N] = man
	}
	f.turns = b.N
	view, from := f.base()
	f.turn = turn{n: b.N, from: from, upto: b.Upto, view: view, manifest: man, same: same, attempt: 1, open: true, approves: f.approves(b.Upto)}
	if len(b.View) > 0 { // [M18.9]
		f.turn.view, f.turn.from = b.View, b.Upto
		if f.managed() {
			f.turn.left = f.leftOut(b.View, b.Upto)
		}
	}
}

func (f *Frame) foldIntended(now int64, b *journal.Intended) {
	switch b.ID.Kind {
	case journal.EffectModel:
		t := &f.turn
		f.landed(f.retryID())
		if t.doubt {
			f.m.usage.add(nil) // [M5.9]
		}
		t.attempt, t.open, t.doubt, t.again, t.retryAt = b.ID.A, true, false, false, 0
	case journal.EffectSession:
		f.open = &batch{n: b.ID.N, upto: b.Upto, attempt: b.ID.A}
	case journal.EffectTool:
		c := f.find(b.ID)
		f.move(c, callRunning)
		c.attempt, c.epoch, c.begun, c.notAfter, c.before = b.ID.A, f.m.epoch, now, b.NotAfter, c.exposed
	}
}

// [M6.1] A response takes its place in the history; the chain moves on [M6.4].
func (f *Frame) foldResponded(b *journal.Responded) {
	f.landed(b.ID)
	f.landed(reconcileID(b.ID))
	f.m.usage.add(b.Usage)
	t := &f.turn
	t.open, t.doubt, t.again, t.retryAt = false, false, false, 0
	r := &response{n: len(f.responses) + 1, turn: t.n, id: b.ResponseID, first: len(f.history), manifest: t.manifest}
	f.extend(b.Items)
	f.heads = f.heads[:0]
	for _, it := range b.Items {
		f.heads = append(f.heads, it.Head())
	}
	r.end, r.outEnd = len(f.history), len(f.history)
	f.responses = append(f.responses, r)
	switch {
	case f.started.Conversation != "":
		f.chain.covered, f.chain.left = r.end, t.left
	case f.managed() && b.ResponseID != "":
		f.chain = chain{id: b.ResponseID, covered: r.end, left: t.left}
	}
}

func (f *Frame) foldConfirmed(b *journal.Confirmed) {
	if f.open != nil {
		id := journal.EffectID{Kind: journal.EffectSession, N: b.N, A: f.open.attempt}
		f.landed(id)
		f.landed(reconcileID(id))
	}
	f.open, f.persisted, f.batches = nil, b.Upto, b.N
}

func (f *Frame) foldAbsent(b *journal.Absent) {
	f.landed(reconcileID(b.ID))
	switch b.ID.Kind {
	case journal.EffectSession:
		f.open.doubt, f.open.absent = false, true
	case journal.EffectModel:
		f.m.usage.add(nil) // [M5.9]
		f.turn.open, f.turn.doubt, f.turn.again = false, false, true
		f.turn.absent++
	case journal.EffectTool: // [M8.18]
		c := f.find(b.ID)
		f.answer(c)
		c.exposed = c.before
		c.absent++
		f.move(c, callReady)
	}
}

// [M11.1] A failure stops new effects until a resumed fact; what is in doubt because
// of it is found out then.
func (f *Frame) foldFailed(b *journal.Failed) {
	f.landed(b.ID)
	fatal := !f.closed() && b.RetryAt == 0
	switch b.ID.Kind {
	case journal.EffectModel:
		f.landed(reconcileID(b.ID))
		t := &f.turn
		t.retryAt = b.RetryAt
		if b.Unknown && f.unrepeatable() { // [M5.6]
			t.doubt = true
			break
		}
		f.m.usage.add(nil)
		t.open, t.doubt, t.again = false, false, true
	case journal.EffectSession:
		f.landed(reconcileID(b.ID))
		f.open.doubt, fatal = true, true // [M10.7]
	case journal.EffectReconcile:
		fatal = fatal || b.ID.P == ReconcileSession
	case journal.EffectEnter, journal.EffectLeave:
		fatal = fatal && !f.failAgent(b)
	}
	if fatal {
		f.fails(b)
	}
}

// [M15] Every open frame is closed with it.
func (m *Machine) foldCancelled(b *journal.Cancelled) {
	for f := range m.Frames() {
		f.withholdOpen()
		f.dropWaits()
	}
	m.cancelled, m.failure, m.failedIn = b, nil, ""
}
