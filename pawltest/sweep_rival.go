package pawltest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// tripOf names the guardrail that ended the run with an error, empty if none did. The error's text names the turn too, and a fault
// may have cost one.
func tripOf(err error) string {
	trip, _ := errors.AsType[*pawl.TripwireError](err)
	if trip == nil {
		return ""
	}
	return trip.Guardrail
}

// lostRace says that an error is what the loser of two drivers gets.
func (st *stage) lostRace(err error) bool {
	if st.point.fault != SecondDriver && !st.point.fault.stops() {
		return false
	}
	return errors.Is(err, pawl.ErrClaimed) || errors.Is(err, pawl.ErrFenced)
}

// claimed says that an error is that of a run whose last driver lives, or died, was stopped, or did not get to release it.
func (st *stage) claimed(err error) bool {
	f := st.point.fault
	return errors.Is(err, pawl.ErrClaimed) && (f.crashes() || f.stops() || f == SecondDriver || st.point.boundary.Kind.ofStore())
}

// missedRun says that an error is what a process gets that was stopped while it gave the run more input: another one brought the run
// to its end meanwhile, so the input is refused [S20.6]; or that other driver was kept waiting until the time for AddInput was over.
func (st *stage) missedRun(err error) bool {
	if !st.zombie.adds {
		return false
	}
	if errors.Is(err, pawl.ErrInputRefused) {
		st.adds.refused++
		return true
	}
	return st.point.fault == SlowTakeover && errors.Is(err, context.DeadlineExceeded)
}

// undeliverable says that the run cannot go on because nobody can tell what became of a request. Two requests are such ends:
// the first one on a conversation, if the server took it and nothing came back, because the run knows nothing yet by which to
// find it there; and off a conversation one that approves a hosted call, if the ledger has its intent and no outcome.
func (st *stage) undeliverable(err error) bool {
	if !errors.Is(err, pawl.ErrDeliveryAmbiguous) {
		return false
	}
	open, approves, responses := newestRequest(st.facts())
	if st.scenario.conversation() != "" {
		return open && responses == 0 && st.far.answered() > 0
	}
	return open && approves
}

// newestRequest says of the newest request whether it is open, which is from its intent to its outcome, whether it approves
// a hosted call, and how many responses there are before it.
func newestRequest(ledger []journal.Record) (open, approves bool, responses int) {
	for _, r := range ledger {
		model := strings.HasPrefix(effectOf(r), "m")
		switch {
		case r.Frame != "":
		case r.Kind == journal.KindPrepared, r.Kind == journal.KindIntended && model:
			open = true
		case r.Kind == journal.KindAbsent && model, r.Kind == journal.KindFailed && model && !strings.Contains(r.Payload, `"unknown":true`):
			open = false
		case r.Kind == journal.KindSettled && strings.Contains(r.Payload, `mcp_approval_response`) && strings.Contains(r.Payload, `"approve":true`):
			approves = true
		case r.Kind == journal.KindResponded:
			open, approves, responses = false, false, responses+1
		}
	}
	return open, approves, responses
}

// facts are the run's facts, as the store or the state has them.
func (st *stage) facts() []journal.Record {
	if st.store != nil {
		st.far.mu.Lock()
		defer st.far.mu.Unlock()
		return slices.Clone(st.far.ledger)
	}
	var doc struct {
		Facts []struct {
			Kind    journal.Kind `json:"k"`
			Frame   string       `json:"f"`
			Payload string       `json:"p"`
		} `json:"facts"`
	}
	text, err := json.Marshal(st.state)
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		st.far.problem("G4: the state: %v", err)
	}
	var list []journal.Record
	for _, f := range doc.Facts {
		list = append(list, journal.Record{Kind: f.Kind, Frame: f.Frame, Payload: f.Payload})
	}
	return list
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
		if !st.lostRace(f.err) && !st.missedRun(f.err) && f.err.Error() != st.clean.Error {
			st.far.problem("the process that was stopped got: %v", f.err)
		}
	}
}
