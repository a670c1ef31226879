package explore

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
)

// reply is what becomes of an append.
type reply int

const (
	passes reply = iota // it is stored, or refused, and the writer learns it
	stored              // it is stored, or refused, and the answer is lost
	absent              // it is lost
	later               // the answer is lost, and it is stored some time later
)

func (r reply) String() string {
	return [...]string{"answered", "stored, answer lost", "lost", "lost, stored later"}[r]
}

// refusal is why a store does not take an append.
type refusal int

const (
	taken refusal = iota
	fenced
	conflict
)

// put is the store's own part of an append.
func (x *explorer) put(s *state, w write) refusal {
	st := &s.store
	if (w.epoch != st.epoch || st.holder < 0) && x.rules != NoFence {
		return fenced
	}
	if w.after != len(st.head.records) && x.rules != NoComparison {
		return conflict
	}
	for _, k := range w.consume {
		if !slices.ContainsFunc(st.inbox, func(e entry) bool { return e.key == k && !e.consumed }) {
			return conflict
		}
	}
	if w.epoch != st.epoch {
		x.violate(s, "a record was stored under epoch %d, and %d was granted", w.epoch, st.epoch)
	}
	st.head = st.head.with(w.records)
	if len(w.consume) > 0 {
		st.inbox = slices.Clone(st.inbox)
		for j := range st.inbox {
			if slices.Contains(w.consume, st.inbox[j].key) {
				st.inbox[j].consumed = true
			}
		}
	}
	s.session = add(s.session, w.batch...)
	s.done = add(s.done, w.done...)
	return taken
}

// append is one try of a driver to store what is pending.
func (x *explorer) append(s *state, i int, r reply) {
	d := &s.drivers[i]
	w := write{epoch: d.epoch, after: d.durable, records: d.pending, consume: d.consume, batch: d.batch}
	switch r {
	case passes:
		switch x.put(s, w) {
		case taken:
			x.saved(s, i)
		case fenced:
			x.unsaved(s, i)
		case conflict:
			d.phase = deciding
		}
		return
	case stored:
		x.put(s, w)
	case later:
		s.store.late = add(s.store.late, w)
	}
	d.phase = deciding
	if x.rules == TakesErrorForSuccess {
		x.saved(s, i)
	}
}

// decide reads the ledger after an append that ended in an error.
func (x *explorer) decide(s *state, i int) {
	d := &s.drivers[i]
	switch have := s.store.head; {
	case have.holds(d.durable, d.pending):
		x.saved(s, i)
	case len(have.records) > d.durable:
		x.unsaved(s, i)
	default: // it is not there, and is repeated unchanged
		d.phase = appending
		if d.tries++; d.tries == appendTries {
			x.unsaved(s, i)
		}
	}
}

// saved goes on after an append that is stored.
func (x *explorer) saved(s *state, i int) {
	d := &s.drivers[i]
	d.durable += len(d.pending)
	n := uint64(d.durable)
	d.do(func(m *machine.Machine) { m.Advance(n) })
	d.pending, d.consume, d.batch = nil, nil, nil
	if d.halted {
		d.phase = releasing
		return
	}
	x.committed(s, i)
}

// unsaved stops a driver that could not store something.
func (x *explorer) unsaved(s *state, i int) {
	d := &s.drivers[i]
	if !d.records { // what it was to record stands in the inbox
		d.unsaved = d.pending
	}
	d.pending, d.batch = nil, nil
	if d.halted {
		d.phase = releasing
		return
	}
	x.halt(s, i)
}

// deliver stores an append that was on its way. One that can never be stored is forgotten
// when that is clear.
func (x *explorer) deliver(s *state, n int) {
	w := s.store.late[n]
	s.store.late = slices.Delete(slices.Clone(s.store.late), n, n+1)
	x.put(s, w)
}

// hopeless says that an append on its way will be refused whenever it arrives.
func (x *explorer) hopeless(s *state, w write) bool {
	past := w.after < len(s.store.head.records) && x.rules != NoComparison
	return past || x.rules != NoFence && (w.epoch != s.store.epoch || s.store.holder < 0)
}
