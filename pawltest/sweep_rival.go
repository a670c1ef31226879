package pawltest

import (
	"context"
	"errors"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// isTrip says that an error is a guardrail's that ended the run. It names the turn, and a fault may have cost one.
func isTrip(err error) bool {
	_, ok := errors.AsType[*pawl.TripwireError](err)
	return ok
}

// lostRace says that an error is what the loser of two drivers gets.
func (st *stage) lostRace(err error) bool {
	if st.point.fault != SecondDriver && !st.point.fault.stops() {
		return false
	}
	for _, typed := range []error{pawl.ErrClaimed, pawl.ErrFenced, pawl.ErrConflict, pawl.ErrUnknownRun, pawl.ErrNotOpen, pawl.ErrRunExists, pawl.ErrCallInFlight,
		pawl.ErrInputRefused, context.DeadlineExceeded} {
		if errors.Is(err, typed) {
			return true
		}
	}
	return false
}

// undeliverable says that the run cannot go on because nobody can tell what became of a request: one on a conversation, if an
// answer was lost, or one that approves a call of a hosted tool, if it may have been made.
func (st *stage) undeliverable(err error) bool {
	f := st.far
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Is(err, pawl.ErrDeliveryAmbiguous) &&
		(st.store == nil || f.accepted > f.recorded || st.scenario.conversation() == "" && f.unanswered())
}

// unanswered says that the ledger has a request without its response. The caller holds the lock.
func (f *far) unanswered() (open bool) {
	for _, r := range f.ledger {
		switch r.Kind {
		case journal.KindPrepared:
			open = true
		case journal.KindResponded:
			open = false
		}
	}
	return open
}

// rival is the second driver: it wants to drive the run at this moment. Either it has the run, or it gets a typed error.
func (st *stage) rival() {
	w := st.boot()
	var from pawl.Resumable
	if st.far.begun() {
		from = pawl.RunID(st.runID())
	}
	f := w.call(func() (*pawl.Result, error) { return w.drive(from) })
	if f.err != nil {
		st.far.note("  the second driver: %v", f.err)
		if !st.lostRace(f.err) && (st.clean == nil || f.err.Error() != st.clean.Error) {
			st.far.problem("the second driver got: %v", f.err)
		}
	}
}

// takeover lets the process that was stopped go on in the middle of the takeover.
func (st *stage) takeover(w *World) {
	if st.point.fault == SlowTakeover && st.zombie != nil && st.zombie != w {
		st.goOn()
	}
}

// goOn lets the process that was stopped go on to the end of its call.
func (st *stage) goOn() {
	if st.zombie == nil || st.back {
		return
	}
	st.back = true
	st.far.note("process %d goes on", st.zombie.number)
	st.zombie.goOn()
	f := <-st.zombie.calls[len(st.zombie.calls)-1].fate
	if f.err != nil {
		st.far.note("  its error: %v", f.err)
		if !st.lostRace(f.err) && f.err.Error() != st.clean.Error {
			st.far.problem("the process that was stopped got: %v", f.err)
		}
	}
}
