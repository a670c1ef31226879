package machine

import (
	"errors"

	"github.com/pawl-agents/pawl/journal"
)

// What every driver does with what comes in, whether it carries effects out itself or has them
// carried out elsewhere.

// End steps the outcome of an effect that was handed out; nil says that it ended without one. It
// reports false for an outcome that answers nothing any more [M2.5]. An error is of one that does
// not fit the run.
func (m *Machine) End(frame string, of journal.EffectID, outcome journal.Body, now int64) (stepped bool, err error) {
	f := m.Frame(frame)
	if outcome == nil || m.says(frame, outcome) {
		f.Ended(of)
		return false, nil
	}
	fact := journal.Fact{Frame: frame, Time: now, Body: outcome}
	if _, ok := outcome.(*journal.Started); ok {
		fact.Frame = FrameName(frame, of)
	}
	switch err := m.Check(fact); {
	case errors.Is(err, ErrNotDue) && mayBeUnwanted(of):
		f.Ended(of)
		return false, nil
	case err != nil:
		return false, err
	}
	m.Step(fact)
	return true, nil
}

// mayBeUnwanted says that the outcome of an effect may answer nothing that is open any more.
func mayBeUnwanted(id journal.EffectID) bool {
	switch id.Kind {
	case journal.EffectTool, journal.EffectEnter, journal.EffectLeave, journal.EffectWait, journal.EffectGuard, journal.EffectOutput, journal.EffectCheck:
		return true
	}
	return id.Kind == journal.EffectReconcile && id.P >= ReconcileCall
}

// says reports whether the ledger has the outcome of a call already: its late result, and what
// the far side says of it, may both come.
func (m *Machine) says(frame string, b journal.Body) bool {
	s, ok := b.(*journal.Settled)
	f := m.Frame(frame)
	return ok && f != nil && !s.Output.IsZero() && f.OutputOf(s.ID) == s.Output
}

// Take steps what somebody sent to the run, and reports whether that changed anything. Its
// message is done with then, and after an error too, which says why the run refuses it; only
// with ErrInFlight it is to be kept and taken again.
func (m *Machine) Take(f journal.Fact) (stepped bool, err error) {
	if s, ok := f.Body.(*journal.Settled); ok && !SaysWhat(s) || m.says(f.Frame, f.Body) {
		return false, nil
	}
	if err := m.Check(f); err != nil {
		return false, err
	}
	m.Step(f)
	return true, nil
}

// SaysWhat reports whether an outcome of a call is one that a body may have sent late: it says
// what happened.
func SaysWhat(s *journal.Settled) bool {
	return s.ID.A > 0 && (s.Outcome == journal.Done || s.Outcome == journal.ToolFailed)
}

// Repeatable says that an effect in flight may be carried out again, with the same id and key,
// when nobody knows what became of it [M2.6]. What became of any other is found out after a new
// claim.
func (f *Frame) Repeatable(id journal.EffectID) bool {
	switch id.Kind {
	case journal.EffectModel:
		return !f.unrepeatable()
	case journal.EffectSession:
		return f.session != nil && f.session.Batches
	case journal.EffectTool:
		c := f.find(id)
		return c != nil && (c.harmless() || c.transactional())
	}
	return true
}
