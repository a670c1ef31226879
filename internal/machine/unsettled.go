package machine

import (
	"iter"
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

// Standing says how a call stands whose effect nobody knows.
type Standing int

// The standings.
const (
	// StandsRunning: it is intended. That is doubt if nobody drives the run.
	StandsRunning Standing = iota
	StandsInDoubt
	StandsExternal
	// StandsTold: it is settled as unknown, and nothing came in since.
	StandsTold
)

// String returns the standing in lower case.
func (s Standing) String() string { return [...]string{"running", "in-doubt", "external", "told"}[s] }

// Unsettled is a call whose effect nobody knows.
type Unsettled struct {
	Standing Standing
	Frame    string           // of the call
	Call     journal.EffectID // without attempt
	Tool     string
	CallID   string
	Attempt  int
	// Begun is when the newest attempt was intended, in Unix milliseconds.
	Begun int64
	// Note is what came with the outcome, or why somebody gave up. Empty after a crash.
	Note string
	// Interruption is the id of the call's open interruption, or that under which a
	// finding is taken [M9.20]; empty without one.
	Interruption string
}

// Unsettled returns the calls whose effect nobody knows [M8.23]: those that were settled so,
// frame by frame in the order in which they were, then the open ones in model order.
func (m *Machine) Unsettled() iter.Seq[Unsettled] {
	return func(yield func(Unsettled) bool) {
		for _, f := range m.frames {
			for _, c := range f.unknowns {
				u := f.unsettled(c, StandsTold)
				u.Interruption = InterruptionID(f.name, c.id, c.stage())
				if !yield(u) {
					return
				}
			}
		}
		m.walkUnsettled(yield)
	}
}

// walkUnsettled yields the open calls of the frame and of those nested in it.
func (f *Frame) walkUnsettled(yield func(Unsettled) bool) bool {
	r := f.last()
	if r == nil || r.unsettled == 0 {
		return true
	}
	for _, c := range r.calls {
		if c.state == callEntered && !f.nested(c).walkUnsettled(yield) {
			return false
		}
		if s, ok := c.standing(); ok && !yield(f.unsettled(c, s)) {
			return false
		}
	}
	return true
}

// standing says how an open call stands whose effect nobody knows. One that does no harm
// when it is repeated, or that commits with its outcome, is not left so by a crash.
func (c *call) standing() (s Standing, ok bool) {
	switch c.state {
	case callDoubt:
		return StandsInDoubt, true
	case callPending:
		return StandsExternal, true
	case callRunning:
		return StandsRunning, !c.harmless() && !c.transactional()
	}
	return s, false
}

func (f *Frame) unsettled(c *call, s Standing) Unsettled {
	u := Unsettled{Standing: s, Frame: f.name, Call: c.id, Tool: c.spec.Name, CallID: c.callID, Attempt: c.attempt, Begun: c.begun}
	if s != StandsRunning { // the note is of an attempt before
		u.Note = c.note
	}
	if v := c.verdict(); s == StandsTold && v != nil && (v.Verdict == journal.GiveUp || c.rejectedLate()) && v.Why != "" {
		u.Note = v.Why
	}
	if _, asked := c.openKind(); asked && !f.closed() {
		u.Interruption = InterruptionID(f.name, c.id, c.stage())
	}
	return u
}

// unknown keeps a call that is settled as unknown. A call without an effect leaves nothing
// to be known.
func (f *Frame) unknown(c *call) {
	if c.spec.Class != journal.ReadOnly && !c.agent() {
		f.unknowns = append(f.unknowns, c)
	}
}

// evidence takes what an attempt of a settled call says after all [M8.13].
func (f *Frame) evidence(c *call, b *journal.Settled) {
	if b.Outcome == journal.Done || b.Outcome == journal.ToolFailed {
		f.known(c)
	}
}

// isUnknown says that the call is settled as unknown, and nobody has said what it did.
func (f *Frame) isUnknown(c *call) bool { return slices.Contains(f.unknowns, c) }

// known drops a call of which somebody has said what it did.
func (f *Frame) known(c *call) {
	f.unknowns = slices.DeleteFunc(f.unknowns, func(o *call) bool { return o == c })
}
