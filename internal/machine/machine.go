// Package machine is the run loop as pure data.
//
// A Machine folds the facts of one run and says what comes next: facts to append
// and effects to start once those are durable. It does no I/O, reads no clock, starts
// no goroutine, draws nothing at random and runs no user code, so a run, a stream, a
// resume and every engine drive the same rules. The rules are numbered in
// docs/spec.md; each stands here beside its number.
//
// A driver does, on one goroutine:
//
//	m := machine.New()
//	replay the ledger with m.Replay, or m.Step a started fact
//	for {
//		rd := m.Ready(now)
//		if rd.MustSync { append everything not yet durable, then m.Advance }
//		start rd.Effects; wait for an outcome; m.Check and m.Step it
//	}
package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/pawl-agents/pawl/journal"
)

// Version is the version of the rules, recorded in every started fact.
const Version = 1

// Margin is added to a call's notAfter before anybody else may act on the call,
// in milliseconds: it covers clocks that differ a little and a body that needs a
// moment to notice its deadline.
const Margin = 2000

// MaxUnknown is how often a call of a repeatable class runs again after an unknown
// outcome before the model is told.
const MaxUnknown = 3

// Status says where a run stands.
type Status int

// The states of a run.
const (
	// Running: there is something to do or in flight.
	Running Status = iota
	// Waiting: only a decision can go on.
	Waiting
	// Failed: an effect failed; a resumed fact tries again.
	Failed
	// Finished: the run has a final output.
	Finished
	// Cancelled: the run was ended without one.
	Cancelled
)

// String returns the status in lower case.
func (s Status) String() string {
	return [...]string{"running", "waiting", "failed", "finished", "cancelled"}[s]
}

// Effect is something the driver is to do. What it carries depends on ID.Kind.
type Effect struct {
	ID journal.EffectID
	// From and Upto are the range of the history a model request or a session
	// batch covers.
	From, Upto int
	// Previous is the pointer of a chained request.
	Previous string
	// Key is a tool's idempotency key.
	Key string
	// NotAfter is when a tool's body must have ended, in Unix milliseconds.
	NotAfter int64
	// Until is when a wait ends, in Unix milliseconds.
	Until int64
	// About is what a reconcile is about.
	About journal.EffectID
}

// Ready is what the driver is to do now.
type Ready struct {
	// Facts are to be appended, in order, behind everything handed out before.
	Facts []journal.Fact
	// Batch, when not nil, is a session batch to commit in the same
	// transaction as the facts.
	Batch *Range
	// MustSync says that everything handed out must be durable before the
	// effects start or anything is shown.
	MustSync bool
	// Effects are to be started, in this order.
	Effects []Effect
	Status  Status
}

// Range is a range of the history and the ordinal of the batch it makes.
type Range struct{ N, From, Upto int }

// Machine is one run. It is not safe for concurrent use.
type Machine struct {
	state
	queue   []journal.Fact
	batch   *Range
	sync    bool
	flight  map[journal.EffectID]bool
	now     int64
	effects []Effect
}

// New returns the machine of a run without facts.
func New() *Machine {
	return &Machine{flight: make(map[journal.EffectID]bool)}
}

// Replay folds a fact that is durable already. A fact that the rules do not allow
// is an error: the ledger was edited.
func (m *Machine) Replay(f journal.Fact) error {
	if err := m.Check(f); err != nil {
		return fmt.Errorf("pawl: fact %d (%s) does not follow from the ledger: %w", m.facts+1, f.Body.Kind(), err)
	}
	m.fold(f)
	m.stable = m.facts
	return nil
}

// Step folds a fact and queues it for the next Ready. It must have passed Check. An
// outcome of a call that is settled already is recorded as late.
func (m *Machine) Step(f journal.Fact) {
	if s, ok := f.Body.(*journal.Settled); ok && m.find(s.ID).state == callSettled && !s.Late {
		late := *s
		late.Late = true
		f.Body = &late
	}
	m.emit(f)
}

func (m *Machine) emit(f journal.Fact) {
	m.fold(f)
	m.queue = append(m.queue, f)
	m.sync = m.sync || m.syncs(f.Body)
}

// syncs says which facts are made durable at once [M13].
func (m *Machine) syncs(b journal.Body) bool {
	switch b := b.(type) {
	case *journal.Started, *journal.Forked, *journal.Settled, *journal.Decided, *journal.Failed,
		*journal.Cancelled, *journal.Finished, *journal.Absent:
		return true
	case *journal.Intended:
		return b.ID.Kind != journal.EffectModel || m.started.Conversation != ""
	case *journal.Prepared, *journal.Responded:
		return m.started.Conversation != ""
	case *journal.Confirmed:
		return true
	}
	return false
}

// Ready applies the rules until nothing more follows and hands out what is queued.
// now is the driver's time in Unix milliseconds.
func (m *Machine) Ready(now int64) Ready {
	m.now = now
	for m.step() {
	}
	rd := Ready{Facts: m.queue, Batch: m.batch, Effects: m.effects, Status: m.Status()}
	rd.MustSync = m.sync || rd.Status != Running && len(rd.Facts) > 0
	m.queue, m.batch, m.effects = nil, nil, nil
	return rd
}

// Advance says that the first n facts of the ledger are durable.
func (m *Machine) Advance(n uint64) {
	m.stable = n
	if n == m.facts {
		m.sync = false
	}
}

// Ended drops the in-flight mark of an effect that ended without a fact: the driver
// stopped. The effect is handed out again only after a new claim.
func (m *Machine) Ended(id journal.EffectID) { delete(m.flight, id) }

// InFlight returns the number of effects handed out and not ended.
func (m *Machine) InFlight() int { return len(m.flight) }

// Facts returns the number of facts folded.
func (m *Machine) Facts() uint64 { return m.facts }

// Epoch returns the epoch of the last claim.
func (m *Machine) Epoch() uint64 { return m.epoch }

// Status says where the run stands.
func (m *Machine) Status() Status {
	switch {
	case m.finished != nil && m.finished.Cancelled:
		return Cancelled
	case m.finished != nil:
		return Finished
	case m.failure != nil && len(m.flight) == 0:
		return Failed
	case m.started != nil && m.cancelled == nil && len(m.flight) == 0 && m.blocked():
		return Waiting
	}
	return Running
}

// hand gives an effect to the driver unless it has it already.
func (m *Machine) hand(e Effect) bool {
	if m.flight[e.ID] {
		return false
	}
	m.flight[e.ID] = true
	m.effects = append(m.effects, e)
	return true
}

func (m *Machine) fact(b journal.Body) journal.Fact {
	return journal.Fact{Time: m.now, Body: b}
}

// Key returns the idempotency key of a call: equal over retry, resume, process and
// engine, different for every call of every run.
func Key(run, frame string, id journal.EffectID) string {
	call := journal.EffectID{Kind: id.Kind, N: id.N, P: id.P}
	d := sha256.Sum256([]byte("pawl-key/1\x00" + run + "\x00" + frame + "\x00" + call.String()))
	return "pawl_" + hex.EncodeToString(d[:16])
}
