package machine

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// pending says that input waits for its turn.
func (f *Frame) pending() bool { return f.admitted < len(f.added) }

// followed says that input stands behind the newest response, or is going to: the run
// goes on whatever that response says [M21.4].
func (f *Frame) followed() bool {
	r := f.last()
	return f.pending() || r != nil && r.whole() && f.settled > r.outEnd
}

// Pending returns the input that waits for its turn, oldest first [M21.1].
func (f *Frame) Pending() []*journal.Added { return f.added[f.admitted:] }

// Added returns all the input that came later, oldest first [M21.1].
func (f *Frame) Added() []*journal.Added { return f.added }

// inputGuarded says that the oldest pending input is to be checked [M21.3].
func (f *Frame) inputGuarded() bool {
	guarded := f.started.Guards != journal.GuardsNone
	if man := f.turn.manifest; man != nil {
		guarded = man.GuardsInput
	}
	return guarded && f.admitDue() && f.inputPassed <= f.admitted
}

// admitDue says that pending input can become part of the history [M21.2].
func (f *Frame) admitDue() bool {
	r := f.last()
	return f.pending() && f.loaded && f.open == nil && !f.turn.open && !f.turn.again && !f.outOfTurns() &&
		f.handled == nil && (r == nil || r.whole() && !r.judgeDue())
}

// stepPending asks for a verdict on pending input, or admits it.
func (f *Frame) stepPending() bool {
	n := f.admitted + 1
	if f.inputGuarded() {
		return f.hand(guardID(n, 0))
	}
	return f.add(&journal.Admitted{N: n})
}

// [M21.1]
func (f *Frame) checkAdded(b *journal.Added) error {
	switch kind, _ := f.Unhandled(); {
	case f.parent != nil || f.closed():
		return notDue("the run takes no input")
	case f.outOfTurns() || f.end() != nil || kind != "":
		return notDue("no turn follows that could take more input")
	case !isInput(b.Items):
		return notDue("the input is empty, or it has a call without its output or an output without its call")
	}
	return nil
}

// isInput says that items can be given to a run.
func isInput(items []item.Item) bool {
	open := make(pairing)
	for _, it := range items {
		h := it.Head()
		if it.IsZero() || !open.add(it) && h.CallID != "" {
			return false
		}
	}
	for _, it := range items { // the server has run it
		if h := it.Head(); item.IsCall(h.Type) && !it.NeedsOutput() {
			open[answered{item.OutputType(h.Type), h.CallID}]--
		}
	}
	//workflowcheck:ignore
	for _, n := range open { // in any order
		if n > 0 {
			return false
		}
	}
	return len(items) > 0
}

func (f *Frame) checkAdmitted(b *journal.Admitted) error {
	if !f.admitDue() || f.inputGuarded() || f.closed() || b.N != f.admitted+1 {
		return notDue("no input %d is to be admitted", b.N)
	}
	return nil
}

func (f *Frame) foldAdmitted(b *journal.Admitted) {
	f.extend(f.added[f.admitted].Items)
	f.admitted = b.N
	f.settled = len(f.history)
}

// [M22.1]
func (m *Machine) checkObserved(b *journal.Observed) error {
	if b.N <= m.observed || b.N > m.facts {
		return notDue("hooks were called for %d facts of %d, now for %d", m.observed, m.facts, b.N)
	}
	return nil
}

// Observed returns for how many facts hooks were called [M22.1].
func (m *Machine) Observed() uint64 { return m.observed }
