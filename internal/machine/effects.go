package machine

import "github.com/pawl-agents/pawl/journal"

// The ids of effects [M16.2].

var loadID = journal.EffectID{Kind: journal.EffectLoad, A: 1}

// effect returns the id of an effect that has no position and one attempt.
func effect(kind journal.EffectKind, n int) journal.EffectID {
	return journal.EffectID{Kind: kind, N: n, A: 1}
}

// The positions of a reconcile say what is read back.
const (
	ReconcileModel   = 0
	ReconcileSession = 1
	ReconcileCall    = 2 // and on, by the call's position
)

// reconcileID is the id of the effect that finds out what became of a request, of an
// append or of a call.
func reconcileID(about journal.EffectID) journal.EffectID {
	id := journal.EffectID{Kind: journal.EffectReconcile, N: about.N, P: ReconcileModel, A: about.A}
	switch about.Kind {
	case journal.EffectSession:
		id.P = ReconcileSession
	case journal.EffectTool:
		id.P = ReconcileCall + about.P
	}
	return id
}

// waitID is the wait for the time from which a call in doubt may be acted on.
func waitID(c *call) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectWait, N: c.id.N, P: c.id.P + 1, A: c.attempt}
}

// enterID and leaveID are the effects around the nested run of a call.
func enterID(c *call) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectEnter, N: c.id.N, P: c.id.P, A: 1}
}

func leaveID(c *call) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectLeave, N: c.id.N, P: c.id.P, A: 1}
}

// retryID is the wait before a request is repeated.
func (f *Frame) retryID() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectWait, N: f.turn.n, A: f.turn.attempt}
}

func (f *Frame) modelID() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectModel, N: f.turn.n, A: f.turn.attempt}
}

func (b *batch) id() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectSession, N: b.n, A: b.attempt}
}

// Ended takes an effect out of flight that ended without a fact: the driver stopped.
// The effect is handed out again only after a new claim [M1.7].
func (f *Frame) Ended(id journal.EffectID) {
	if f.handed[id] {
		f.handed[id] = false
		f.flies(-1)
	}
}

// Withdrawn takes an effect out of flight that the driver did not start: it is handed again
// when its rule applies [M1.7].
func (f *Frame) Withdrawn(id journal.EffectID) { f.landed(id) }

// hand gives an effect to the driver unless it was handed out before [M2.3].
func (f *Frame) hand(id journal.EffectID) bool {
	if _, before := f.handed[id]; before {
		return false
	}
	f.handed[id] = true
	f.flies(1)
	f.m.effects = append(f.m.effects, f.Effect(id))
	return true
}

// Effect returns an effect that is due. What it carries follows from its id and the ledger, so
// that whoever has both can carry it out, in another process too [M2.6].
func (f *Frame) Effect(id journal.EffectID) Effect {
	e := Effect{Frame: f.name, ID: id}
	t := &f.turn
	switch id.Kind {
	case journal.EffectPrepare:
		e.View, e.From = f.base()
		e.Upto = f.settled
	case journal.EffectModel:
		e.View, e.From, e.Upto, e.Previous = t.view, t.from, t.upto, f.chain.id
	case journal.EffectSession:
		if f.open != nil {
			e.From, e.Upto = f.persisted, f.open.upto
		}
	case journal.EffectTool, journal.EffectEnter, journal.EffectLeave:
		f.ofCall(&e, id.P)
	case journal.EffectReconcile:
		switch {
		case id.P == ReconcileModel:
			e.About, e.View, e.From, e.Upto = f.modelID(), t.view, t.from, t.upto
		case id.P >= ReconcileCall:
			f.ofCall(&e, id.P-ReconcileCall)
		case f.open != nil:
			e.About, e.From, e.Upto = f.open.id(), f.persisted, f.open.upto
		}
	case journal.EffectWait:
		e.Until = t.retryAt
		if id.P > 0 {
			f.ofCall(&e, id.P-1)
		}
	}
	return e
}

// ofCall fills in what an effect carries that is about the call at a position.
func (f *Frame) ofCall(e *Effect, p int) {
	c := f.find(journal.EffectID{Kind: journal.EffectTool, N: e.ID.N, P: p})
	if c == nil {
		return
	}
	switch e.ID.Kind {
	case journal.EffectTool:
		e.Key, e.NotAfter = f.KeyOf(c.id), c.notAfter
	case journal.EffectEnter:
		e.Key, e.About = f.KeyOf(c.id), c.id
	case journal.EffectLeave:
		e.About = c.id
	case journal.EffectReconcile:
		e.Key, e.About = f.KeyOf(c.id), c.last()
	case journal.EffectWait:
		e.Until = c.blocked
	}
}

// landed takes an effect out of flight: its outcome is known, or no longer wanted.
func (f *Frame) landed(id journal.EffectID) {
	if flying, handed := f.handed[id]; handed {
		if flying {
			f.flies(-1)
		}
		delete(f.handed, id)
	}
}

// flies counts what is in flight.
func (f *Frame) flies(n int) {
	f.inFlight += n
	f.m.inFlight += n
}

// syncs says which facts are made durable at once [M13.2].
func (f *Frame) syncs(b journal.Body) bool {
	switch b := b.(type) {
	case *journal.Forked, *journal.Decided, *journal.Settled, *journal.Expired, *journal.Confirmed,
		*journal.Absent, *journal.Failed, *journal.Transferred, *journal.Added, *journal.Cancelled:
		return true
	case *journal.Started, *journal.Finished: // a nested run's are no news to anybody outside
		return f.parent == nil
	case *journal.Intended:
		return b.ID.Kind != journal.EffectModel || f.unrepeatable()
	case *journal.Prepared, *journal.Responded:
		return f.unrepeatable()
	}
	return false
}
