package machine

import "github.com/pawl-agents/pawl/journal"

// The positions of the guardrails on the first input.
const (
	guardBlocking = 0
	guardParallel = 1
)

// guardID is the effect that asks the guardrails on the first input, with n 0, or on
// pending input.
func guardID(n, p int) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectGuard, N: n, P: p, A: 1}
}

// checkID is the effect that asks the guardrails on a call.
func checkID(c *call) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectCheck, N: c.id.N, P: c.id.P, A: 1}
}

// guardDue says that a verdict on the first input is missing [M19.2].
func (f *Frame) guardDue(p int) bool {
	g := f.started.Guards
	return f.loaded && !f.verdicts[p] && (g == journal.GuardsBoth || g == journal.GuardsBlocking && p == guardBlocking ||
		g == journal.GuardsParallel && p == guardParallel)
}

// unchecked says that nobody knows yet whether the run may go on with its input [M19.4].
func (f *Frame) unchecked() bool { return f.guardDue(guardBlocking) || f.guardDue(guardParallel) }

// besideDue says that the guardrails beside the turns are to be asked.
func (f *Frame) besideDue() bool {
	if !f.guardDue(guardParallel) {
		return false
	}
	_, handed := f.handed[guardID(0, guardParallel)]
	return !handed
}

// busy counts the effects in flight that the rules wait for: not the guardrails beside the
// turns [M19.3].
func (f *Frame) busy() int {
	if f.started.Guards != journal.GuardsNone && !f.closed() && f.handed[guardID(0, guardParallel)] {
		return f.inFlight - 1
	}
	return f.inFlight
}

// guarded says that the guardrails on the call have not passed it [M19.7].
func (c *call) guarded() bool { return c.spec.Guarded && !c.checked }

// cleared says that no guardrail keeps the ready call from starting [M19.4] [M19.7].
func (f *Frame) cleared(c *call) bool {
	readOnly := c.spec.Class == journal.ReadOnly && !c.agent() && !c.handoff()
	return !c.guarded() && (readOnly || !f.unchecked())
}

// candidate returns the ordinal of what may become the final output, and where it begins
// in the history; 0 if there is nothing.
func (f *Frame) candidate() (n, from int) {
	r := f.last()
	switch {
	case f.handled != nil:
		return f.handled.N, f.handledFrom
	case r != nil && (r.judgeDue() || f.end() != nil):
		return r.n, r.first
	}
	return 0, 0
}

// held says that what may become the final output was not checked, and where it begins
// [M19.5].
func (f *Frame) held() (n, from int, ok bool) {
	if man := f.turn.manifest; man == nil || !man.GuardsOutput {
		return 0, 0, false
	}
	n, from = f.candidate()
	return n, from, n > 0 && n != f.passed
}

// outputDue says that the guardrails on the final output are to be asked [M19.6].
func (f *Frame) outputDue() (n int, ok bool) {
	n, _, held := f.held()
	return n, held && f.end() != nil
}

// released is where the history ends that the session may see: the settled part without
// what waits for a verdict [M19.5].
func (f *Frame) released() int {
	switch {
	case f.closed():
		return f.settled
	case f.unchecked():
		return f.inputEnd
	}
	if _, from, ok := f.held(); ok {
		return from
	}
	return f.settled
}

// verdictDue says that guardrails are to be asked under that id [M19.8].
func (f *Frame) verdictDue(id journal.EffectID) bool {
	switch id.Kind {
	case journal.EffectGuard:
		if id.N > 0 {
			return f.inputGuarded() && id == guardID(f.admitted+1, 0)
		}
		return (id.P == guardBlocking || id.P == guardParallel) && f.guardDue(id.P) && id == guardID(0, id.P)
	case journal.EffectOutput:
		n, due := f.outputDue()
		return due && id == effect(journal.EffectOutput, n)
	case journal.EffectCheck:
		c := f.callOf(id)
		return c != nil && c.state == callReady && c.guarded() && id == checkID(c)
	}
	return false
}

// callOf returns the call that an effect about a call names, nil if there is none.
func (f *Frame) callOf(id journal.EffectID) *call {
	return f.find(journal.EffectID{Kind: journal.EffectTool, N: id.N, P: id.P})
}

// [M19.8]
func (f *Frame) checkChecked(b *journal.Checked) error {
	if !f.verdictDue(b.ID) {
		return notDue("no verdict %s is due", b.ID)
	}
	if b.Output.IsZero() {
		return nil
	}
	c := f.callOf(b.ID)
	if b.ID.Kind != journal.EffectCheck || tripped(b.Checks) != nil || !pairs(c.kind, c.callID, b.Output) {
		return notDue("%s has an output that answers no call", b.ID)
	}
	return nil
}

func (f *Frame) foldChecked(b *journal.Checked) {
	f.landed(b.ID)
	trips := f.trip(b.ID, b.Checks)
	switch b.ID.Kind {
	case journal.EffectGuard:
		if b.ID.N > 0 {
			f.inputPassed = b.ID.N
		} else {
			f.verdicts[b.ID.P] = true
		}
	case journal.EffectOutput:
		f.passed = b.ID.N
	case journal.EffectCheck:
		c := f.callOf(b.ID)
		if !b.Output.IsZero() {
			f.settle(f.last(), c, journal.Rejected, b.Output)
			return
		}
		c.checked = !trips
	}
}
