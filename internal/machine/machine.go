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
//	m.Step a claimed fact
//	for {
//		rd := m.Ready(now)
//		if rd.MustSync { append everything not yet durable, then m.Advance }
//		start rd.Effects; wait for an outcome; m.Check and m.Step it
//	}
//
// To stop, it ends its effects, steps their outcomes, and appends what m.Flush hands
// out.
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

// MaxUnknown is how many unknown outcomes a call whose repeat is harmless may have: after
// that many it does not run again.
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
	// Frame is the frame the effect belongs to, empty for the run's own.
	Frame string
	ID    journal.EffectID
	// From and Upto are the range of the history a model request or a session
	// batch covers. View, of a request, stands before it.
	From, Upto int
	View       []journal.Span
	// Previous is the pointer of a chained request.
	Previous string
	// Key is the idempotency key of a tool's call, or of the call that a reconcile is
	// about or that enters a nested run.
	Key string
	// NotAfter is when a tool's body must have ended, in Unix milliseconds.
	NotAfter int64
	// Until is when a wait ends, in Unix milliseconds.
	Until int64
	// About is what a reconcile is about, and the call that enters or leaves a
	// nested run.
	About journal.EffectID
}

// Ready is what the driver is to do now. Its slices are used again: they are valid until
// the next Step, Ready or Flush.
type Ready struct {
	// Facts are to be appended, in order, behind everything handed out before.
	Facts []journal.Fact
	// Batches are the session batches to commit in the same transaction as the
	// facts, at most one of a frame.
	Batches []Range
	// MustSync says that everything handed out must be durable before the
	// effects start or anything is shown.
	MustSync bool
	// Effects are to be started, in this order.
	Effects []Effect
	Status  Status
}

// Range is a range of a frame's history and the ordinal of the batch it makes.
type Range struct {
	Frame         string
	N, From, Upto int
}

// Machine is one run. It is not safe for concurrent use. The methods of its root frame
// are its own.
type Machine struct {
	run
	*root
	frames   []*Frame          // in the order in which they started, the root first
	named    map[string]*Frame // the nested ones, by name; nil without any
	queue    []journal.Fact
	ranges   []Range // the session batches that go with the queue
	effects  []Effect
	stable   uint64 // facts known to be durable
	sync     bool
	inFlight int // of all frames
	now      int64
}

// New returns the machine of a run without facts.
func New() *Machine {
	m := &Machine{}
	m.root = &Frame{m: m, handed: make(map[journal.EffectID]bool)}
	m.frames = append(m.frames, m.root)
	return m
}

// Replay folds a fact that is durable already. A fact that the rules do not allow
// is an error: the ledger was edited.
func (m *Machine) Replay(f journal.Fact) error {
	if err := m.Check(f); err != nil {
		return fmt.Errorf("pawl: fact %d (%T) does not follow from the ledger: %w", m.facts+1, f.Body, err)
	}
	m.fold(f)
	m.stable = m.facts
	return nil
}

// Step folds a fact and queues it for the next Ready. It must have passed Check. An
// outcome of a call that is settled already is recorded as late [M8.13].
func (m *Machine) Step(f journal.Fact) {
	if s, ok := f.Body.(*journal.Settled); ok && !s.Late && m.Frame(f.Frame).find(s.ID).state == callSettled {
		late := *s
		late.Late = true
		f.Body = &late
	}
	m.emit(f)
}

func (m *Machine) emit(f journal.Fact) {
	m.fold(f)
	m.queue = append(m.queue, f)
	m.sync = m.sync || m.Frame(f.Frame).syncs(f.Body)
}

// Ready applies the rules until nothing more follows and hands out what is queued
// [M2.1]. now is the driver's time in Unix milliseconds.
func (m *Machine) Ready(now int64) Ready {
	m.now = now
	m.effects = m.effects[:0]
	m.expire()
	m.root.run()
	rd := Ready{Facts: m.queue, Batches: m.ranges, Effects: m.effects, Status: m.Status()}
	rd.MustSync = m.sync || rd.Status != Running && m.stable < m.facts // [M13.1] [M13.3]
	m.queue, m.ranges = m.queue[:0], nil
	return rd
}

// Flush hands out what is queued and applies no rule: the driver stops, and the
// outcomes of the effects it ended are recorded without new intents behind them [M1.6].
func (m *Machine) Flush() Ready {
	rd := Ready{Facts: m.queue, Batches: m.ranges, MustSync: m.sync || m.stable < m.facts, Status: m.Status()}
	m.queue, m.ranges = m.queue[:0], nil
	return rd
}

// Advance says that the first n facts of the ledger are durable.
func (m *Machine) Advance(n uint64) {
	m.stable = n
	if n == m.facts {
		m.sync = false
	}
}

// InFlight returns the number of effects handed out and not ended.
func (m *Machine) InFlight() int { return m.inFlight }

// Facts returns the number of facts folded.
func (m *Machine) Facts() uint64 { return m.facts }

// Epoch returns the epoch of the last claim.
func (m *Machine) Epoch() uint64 { return m.epoch }

// Owner returns who took the run with the last claim [M12.7].
func (m *Machine) Owner() journal.Owner { return m.owner }

// Status says where the run stands [M1.5].
func (m *Machine) Status() Status {
	switch {
	case m.finished != nil && m.finished.Cancelled:
		return Cancelled
	case m.finished != nil:
		return Finished
	case m.failure != nil && m.inFlight == 0:
		return Failed
	case !m.root.closed() && m.root.waits():
		return Waiting
	}
	return Running
}

// Key returns the idempotency key of a call: equal over retry, resume, process and
// engine, different for every call of every run.
func Key(run, frame string, id journal.EffectID) string {
	call := journal.EffectID{Kind: id.Kind, N: id.N, P: id.P}
	text := append(make([]byte, 0, 128), "pawl-key/1\x00"...)
	text = append(append(text, run...), 0)
	text = append(append(text, frame...), 0)
	d := sha256.Sum256(call.Append(text))
	key := append(make([]byte, 0, 64), "pawl_"...)
	return string(hex.AppendEncode(key, d[:16]))
}
