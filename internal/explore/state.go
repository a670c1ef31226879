package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// The times of the model, in milliseconds. machine.Margin lies between the end of a body and
// the moment from which somebody else may act.
const (
	leaseTime = 1000
	bodyTime  = 3000
	openTime  = 500 // of an approval that expires
)

// Bound says how much may go wrong on one path, and how often the run is opened.
type Bound struct {
	// Faults counts answers of a store, a session, a server or a tool that are lost, bodies that are
	// too slow, processes that die or sleep beyond their lease, and drives that are told to stop.
	Faults int
	// Opens counts the drives begun.
	Opens int
}

// state is the world at one moment. A state is not changed once it is made; slices are
// shared between states.
type state struct {
	now     int64
	seen    bool // that a process died can be seen: it was on the same host
	store   store
	drivers [2]driver
	strays  []stray     // bodies that their drivers left running
	done    []done      // what tools did, in order
	session []item.Item // of a session outside the store
	batches []int       // those it remembers
	late    []lateBatch // appends to it that are still on their way
	sent    []request   // what a server that keeps responses has
	talk    []item.Item // what a server that keeps a conversation has
	spent   Bound
	broken  string // the rule that was broken on the way here
}

// done is something a tool did.
type done struct {
	call    journal.EffectID // without attempt
	attempt int
}

// stray is a body whose driver went on without it. Its process lives.
type stray struct {
	driver   int
	epoch    uint64 // of the drive
	id       journal.EffectID
	notAfter int64
	call     item.FunctionCall
	acted    bool
}

// request is a response a server keeps: what came before it, what was asked and answered.
type request struct {
	previous int // place of the response before, -1 without one
	items    []item.Item
}

type lateBatch struct {
	n     int
	items []item.Item
}

// store is what the run's store has.
type store struct {
	head  *ledger
	epoch uint64 // the last that was granted
	// holder is the driver whose claim is the last one, -1 if that was released or there is
	// none; process is the one that took it.
	holder, process int
	until           int64
	inbox           []entry
	late            []write
}

// entry is a message to the run.
type entry struct {
	key      string
	fact     journal.Fact
	what     int
	consumed bool
}

// write is an append to the store.
type write struct {
	epoch   uint64
	after   int
	records []*record
	consume []string
	batch   []item.Item // for a session in the store
	done    []done      // by a tool in the store's transaction
}

// live says that the store's claim has not run out.
func (s *state) live() bool { return s.store.holder >= 0 && s.now < s.store.until }

// gone says that the process of the store's last claim is dead.
func (s *state) gone() bool {
	return s.store.holder >= 0 && s.drivers[s.store.holder].process != s.store.process
}

// happened says how often a call took effect.
func (s *state) happened(call journal.EffectID) int {
	n := 0
	for _, d := range s.done {
		if d.call == callOf(call) {
			n++
		}
	}
	return n
}

// clone returns a copy in which driver i has the machine, which only one state may have.
func (s *state) clone(i int) *state {
	n := *s
	for j := range n.drivers {
		if j != i {
			n.drivers[j].m = nil
		}
	}
	if i >= 0 {
		s.drivers[i].m = nil
	}
	return &n
}

// key is what a state is recognised by.
type key [16]byte

// encoder writes a state down, with times as seen from now: what is long over is equal.
type encoder struct {
	x   *explorer
	now int64
	b   []byte
}

func (e *encoder) ints(list ...int) {
	for _, v := range list {
		e.b = binary.AppendVarint(e.b, int64(v))
	}
}

func (e *encoder) flags(list ...bool) {
	for _, v := range list {
		e.b = append(e.b, map[bool]byte{true: 1}[v])
	}
}

func (e *encoder) time(t int64) {
	if t != 0 {
		t = max(t-e.now, -machine.Margin) + machine.Margin + 1
	}
	e.b = binary.AppendVarint(e.b, t)
}

func (e *encoder) id(id journal.EffectID) { e.ints(int(id.Kind), id.N, id.P, id.A) }

func (e *encoder) records(list []*record) {
	e.ints(len(list))
	for _, r := range list {
		e.ints(r.what, int(r.epoch))
		e.time(r.until)
	}
}

func (e *encoder) items(list []item.Item) {
	e.ints(len(list))
	for _, it := range list {
		e.ints(e.x.name(it.Raw()))
	}
}

func (e *encoder) texts(list []string) {
	e.ints(len(list))
	for _, s := range list {
		e.ints(e.x.name(s))
	}
}

func (e *encoder) outcomes(list []outcome) {
	e.ints(len(list))
	for _, o := range list {
		e.id(o.id)
		if o.body != nil {
			r := e.x.record(journal.Fact{Body: o.body}, 0)
			e.ints(r.what)
		}
	}
}

// key returns the key of a state.
func (x *explorer) key(s *state) key {
	e := &encoder{x: x, now: s.now, b: x.buf[:0]}
	e.flags(s.seen)
	st := &s.store
	e.records(st.head.records)
	e.ints(int(st.epoch), st.holder, st.process)
	e.time(st.until)
	for _, in := range st.inbox {
		e.ints(in.what)
		e.flags(in.consumed)
	}
	e.ints(-1)
	for _, w := range st.late {
		e.ints(int(w.epoch), w.after)
		e.records(w.records)
	}
	e.ints(-1)
	for _, d := range s.done {
		e.id(d.call)
		e.ints(d.attempt)
	}
	e.items(s.session)
	e.ints(s.batches...)
	e.ints(-1, len(s.late))
	for _, b := range s.late {
		e.ints(b.n)
	}
	for _, r := range s.sent {
		e.ints(r.previous)
		e.items(r.items)
	}
	e.items(s.talk)
	for i := range s.drivers {
		s.drivers[i].write(e)
	}
	for _, b := range s.strays {
		e.id(b.id)
		e.ints(b.driver, int(b.epoch))
		e.time(b.notAfter)
		e.flags(b.acted)
	}
	e.ints(s.spent.Faults, s.spent.Opens)
	x.buf = e.b
	sum := sha256.Sum256(e.b)
	return key(sum[:16])
}

// add appends to a slice that other states share.
func add[T any](list []T, v ...T) []T { return append(slices.Clip(list), v...) }
