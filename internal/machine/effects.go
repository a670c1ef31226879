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

// retryID is the wait before a request is repeated.
func (m *Machine) retryID() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectWait, N: m.turn.n, A: m.turn.attempt}
}

func (m *Machine) modelID() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectModel, N: m.turn.n, A: m.turn.attempt}
}

func (b *batch) id() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectSession, N: b.n, A: b.attempt}
}
