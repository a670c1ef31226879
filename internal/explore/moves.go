package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// move is one thing that may happen next.
type move struct {
	what   string
	detail string // for a trace
	i      int    // whose driver it is, -1 if nobody's
	cost   Bound  // what goes wrong
	// calm says that it happens by itself when nothing goes wrong.
	calm bool
	do   func(*state)
}

// moves returns what may happen in a state. The first calm one is what happens if nothing goes
// wrong.
func (x *explorer) moves(s *state) []move {
	x.list = x.list[:0]
	for i := range s.drivers {
		if x.past(s, i) {
			x.loop(s, i)
			if len(x.list) > 0 {
				return x.list[:1]
			}
		}
	}
	first := max(s.store.holder, 0)
	for _, i := range []int{first, 1 - first} {
		x.driverMoves(s, i)
		x.bodyMoves(s, i)
		x.questions(s, i)
	}
	for n, b := range s.strays {
		switch {
		case b.acted:
			x.may(-1, false, Bound{}, func(s *state) { x.strayActs(s, n) }, "a body that was left says what it did", b.id)
		case s.now < b.notAfter:
			x.may(-1, false, Bound{}, func(s *state) { x.strayActs(s, n) }, "a body that was left takes effect", b.id)
		}
	}
	x.deliveries(s)
	x.people(s)
	for i := range s.drivers {
		x.opens(s, i)
	}
	x.ticks(s)
	return x.list
}

// may adds a move to the list.
func (x *explorer) may(i int, calm bool, cost Bound, do func(*state), what string, detail ...any) {
	mv := move{what: what, i: i, cost: cost, calm: calm, do: do}
	if x.trace {
		if i >= 0 {
			mv.detail = fmt.Sprintf("driver %d: ", i)
		}
		mv.detail += strings.TrimSpace(what + " " + fmt.Sprintln(detail...))
	}
	x.list = append(x.list, mv)
}

// lost is what an answer costs that is not simply given.
func lost(r reply) Bound {
	if r == passes {
		return Bound{}
	}
	return Bound{Faults: 1}
}

// past says that a driver has lost its claim and its lease. Its loop can reach nothing that others
// see any more, so its steps are taken at once: in whichever order they came, the same would follow. Its bodies
// are another matter.
func (x *explorer) past(s *state, i int) bool {
	d := &s.drivers[i]
	return d.phase != idle && s.store.epoch != d.epoch && d.lease <= s.now && x.rules == Whole
}

// driverMoves are the steps of a driver's loop, and what may befall it.
func (x *explorer) driverMoves(s *state, i int) {
	d := &s.drivers[i]
	if d.phase == idle {
		return
	}
	x.loop(s, i)
	if !d.stopped && d.phase != opening {
		x.may(i, false, Bound{Faults: 1}, func(s *state) { s.drivers[i].stopped = true }, "is told to stop")
	}
	for _, seen := range []bool{false, true} {
		x.may(i, false, Bound{Faults: 1}, func(s *state) { x.die(s, i, seen) }, "dies; others see it:", seen)
	}
}

// loop are the steps of a driver's loop.
func (x *explorer) loop(s *state, i int) {
	d := &s.drivers[i]
	if (d.lease <= s.now || s.store.epoch != d.epoch) && !d.stopped {
		x.may(i, true, Bound{}, func(s *state) { s.drivers[i].stopped = !x.renew(s, i) }, "the lease is renewed")
	}
	switch d.phase {
	case opening:
		x.may(i, true, Bound{}, func(s *state) { x.open(s, i) }, "reads the ledger")
	case appending:
		for _, r := range []reply{passes, stored, absent, later} {
			x.may(i, r == passes, lost(r), func(s *state) { x.append(s, i, r) }, "append: "+r.String(), len(d.pending))
		}
	case deciding:
		x.may(i, true, Bound{}, func(s *state) { x.decide(s, i) }, "reads what became of its append")
	case standing:
		x.may(i, true, Bound{}, func(s *state) { x.stand(s, i) }, "sees that the run stands still:", d.status)
	case starting:
		for _, r := range x.replies(d) {
			x.may(i, r == passes, lost(r), func(s *state) { x.start(s, i, r, false) }, "effects: "+r.String(), ids(d.handed))
		}
		if s.unread(d) {
			x.may(i, true, Bound{}, func(s *state) { x.start(s, i, passes, true) }, "effects, and reads the inbox", ids(d.handed))
		}
	case turning:
		x.turns(s, i)
	case awaiting:
		if !slices.ContainsFunc(d.bodies, func(b body) bool { return b.returned == nil }) {
			x.may(i, true, Bound{}, func(s *state) { x.leave(s, i) }, "leaves")
		}
	case releasing:
		x.may(i, true, Bound{}, func(s *state) { x.release(s, i) }, "releases its claim")
	}
}

// die ends a process with all it was doing. Another process may see that, or not.
func (x *explorer) die(s *state, i int, seen bool) {
	s.drivers[i] = driver{process: s.drivers[i].process + 1}
	s.strays = without(s.strays, func(b stray) bool { return b.driver == i })
	s.seen = seen
}

// turns are the ways to go on once something has come of the effects.
func (x *explorer) turns(s *state, i int) {
	d := &s.drivers[i]
	unread := s.unread(d)
	ready := len(d.queue) > 0 || x.expires(s, d.machine) || d.stopped || len(d.bodies)+len(d.waits)+len(d.asks) == 0 ||
		slices.ContainsFunc(d.bodies, func(b body) bool { return b.returned != nil }) ||
		slices.ContainsFunc(d.asks, func(a ask) bool { return a.answer != nil }) ||
		slices.ContainsFunc(d.waits, func(w wait) bool { return w.until <= s.now })
	if ready {
		x.may(i, true, Bound{}, func(s *state) { x.collect(s, i, false) }, "steps what has come")
	}
	if unread {
		x.may(i, true, Bound{}, func(s *state) { x.collect(s, i, true) }, "steps what has come, and the inbox")
	}
}

func (s *state) unread(d *driver) bool {
	return slices.ContainsFunc(s.store.inbox, func(e entry) bool { return d.unread(e) })
}

// expires says that the deadline of an approval has come.
func (x *explorer) expires(s *state, m func() *machine.Machine) bool {
	if x.openTime == 0 {
		return false
	}
	deadline := m().Deadline()
	return deadline != 0 && s.now >= deadline
}

func ids(list []machine.Effect) (names []string) {
	for _, e := range list {
		names = append(names, e.ID.String())
	}
	return names
}

// bodyMoves are the steps of the bodies that run beside a driver.
func (x *explorer) bodyMoves(s *state, i int) {
	d := &s.drivers[i]
	for j := range d.bodies {
		b := &d.bodies[j]
		switch {
		case b.returned != nil:
		case !b.entered:
			x.may(i, true, Bound{}, func(s *state) { x.enter(s, i, j) }, "a body begins", b.id)
		default:
			x.bodyActs(s, i, j)
		}
	}
}

// bodyActs are the ways of a body that was entered and has not returned.
func (x *explorer) bodyActs(s *state, i, j int) {
	d := &s.drivers[i]
	b := &d.bodies[j]
	asks := slices.Contains(x.sc.Questions, b.call.Name)
	inTime := s.now < b.notAfter || x.rules == NoLookAtTheClock
	if b.acted {
		x.may(i, true, Bound{}, func(s *state) { x.say(s, i, j) }, "a body says what it did", b.id)
	}
	if inTime && !b.acted && asks && (b.approvals == 0 || b.approvals == 1 && x.sc.GivesUp) {
		x.may(i, b.approvals == 0, Bound{}, func(s *state) { x.question(s, i, j) }, "a body asks a person", b.id)
	}
	if inTime && !b.acted && (!asks || b.approvals > 0) {
		x.may(i, true, Bound{}, func(s *state) { x.act(s, i, j, false) }, "a body takes effect", b.id)
		x.may(i, false, Bound{Faults: 1}, func(s *state) { x.act(s, i, j, true) }, "a body takes effect and does not know", b.id)
		if x.sc.Slow {
			x.may(i, false, Bound{}, func(s *state) { x.actSlowly(s, i, j) }, "a body takes effect and is slow to say so", b.id)
		}
	}
	if !b.acted && (d.stopped || b.cancelled || s.now >= b.notAfter) {
		x.may(i, true, Bound{}, func(s *state) { x.end(s, i, j) }, "a body ends before it did anything", b.id)
	}
	if x.sc.Stubborn && d.phase == awaiting && s.now < b.notAfter || b.acted && s.now >= b.notAfter {
		x.may(i, false, Bound{}, func(s *state) { x.abandon(s, i, j) }, "is left by its driver", b.id)
	}
}

// questions are the answers of far sides.
func (x *explorer) questions(s *state, i int) {
	for j, a := range s.drivers[i].asks {
		if a.answer == nil {
			x.may(i, true, Bound{}, func(s *state) { x.answer(s, i, j, true) }, "the far side answers", a.about)
			x.may(i, false, Bound{}, func(s *state) { x.answer(s, i, j, false) }, "the far side cannot tell", a.about)
		}
	}
}

// deliveries are what was on its way and arrives.
func (x *explorer) deliveries(s *state) {
	for n, w := range s.store.late {
		x.may(-1, false, Bound{}, func(s *state) { x.deliver(s, n) }, "an append arrives late", w.epoch, len(w.records))
	}
	for n, b := range s.late {
		x.may(-1, false, Bound{}, func(s *state) {
			s.late = slices.Delete(slices.Clone(s.late), n, n+1)
			x.batch(s, b.n, b.items)
		}, "a batch arrives late", b.n)
	}
}

// people are the decisions and the cancellation that may come in.
func (x *explorer) people(s *state) {
	v := s.store.head.view()
	if v.finished || len(s.store.head.records) == 0 {
		return
	}
	for _, in := range v.interruptions {
		id := machine.InterruptionID(in.Frame, in.Call, in.Stage)
		if s.posted(id) || in.NotBefore > s.now {
			continue
		}
		for n, verdict := range x.verdicts(s, in) {
			b := &journal.Decided{Call: in.Call, Stage: in.Stage, Digest: in.Digest, Verdict: verdict, By: "p"}
			if verdict == journal.Settle {
				b.Text = "did"
			}
			x.may(-1, n == 0, Bound{}, func(s *state) { x.post(s, id, b) }, "somebody decides: "+string(verdict), id)
		}
	}
	for _, e := range s.store.inbox {
		b, ok := e.fact.Body.(*journal.Decided)
		if key := e.key + " again"; ok && len(x.sc.Later) > 0 && b.Verdict == journal.Settle && b.By == "p" && !s.posted(key) {
			x.again(s, key, b)
		}
	}
	if x.sc.Cancel && !s.posted("cancel") {
		x.may(-1, false, Bound{}, func(s *state) { x.post(s, "cancel", &journal.Cancelled{By: "p", Successor: successor}) }, "somebody cancels the run")
	}
}

// again lets a result come in a second time: the same one, or another. A store keeps the second
// entry with a key out; here the machine has to.
func (x *explorer) again(s *state, key string, first *journal.Decided) {
	for _, text := range []string{first.Text, "did more"} {
		b := *first
		b.By, b.Text = "q", text
		x.may(-1, false, Bound{}, func(s *state) { x.post(s, key, &b) }, "a result is delivered again", text)
	}
}

func (s *state) posted(key string) bool {
	return slices.ContainsFunc(s.store.inbox, func(e entry) bool { return e.key == key })
}

func (x *explorer) post(s *state, key string, b journal.Body) {
	f := journal.Fact{Body: b}
	s.store.inbox = add(s.store.inbox, entry{key: key, fact: f, what: x.name(key + journal.Encode(f, [16]byte{}).Payload)})
}

// verdicts are what a person may decide who looks what happened.
func (x *explorer) verdicts(s *state, in machine.Interruption) []journal.Verdict {
	var list []journal.Verdict
	switch {
	case in.Kind == machine.Approval:
		list = []journal.Verdict{journal.Approve, journal.Reject}
	case in.Kind == machine.External:
		return []journal.Verdict{journal.Settle}
	case s.happened(in.Call) > 0:
		list = []journal.Verdict{journal.Settle, journal.GiveUp}
	default:
		list = []journal.Verdict{journal.Retry, journal.GiveUp}
	}
	if !x.sc.GivesUp {
		return list[:1]
	}
	return list
}

// opens are the drives that may begin.
func (x *explorer) opens(s *state, i int) {
	v := s.store.head.view()
	if s.drivers[i].phase != idle || s.live() && !(s.seen && s.gone()) {
		return
	}
	if slices.ContainsFunc(s.store.inbox, func(e entry) bool { return !e.consumed && strings.HasPrefix(e.key, lateKey) }) {
		x.may(i, false, Bound{Opens: 1}, func(s *state) {
			x.claim(s, i)
			s.drivers[i].records = true
		}, "claims the run to record what came late")
	}
	if v.finished {
		return
	}
	if s.store.epoch == 0 && i > 0 {
		return // which of the drivers is the first makes no difference
	}
	// A run that waits is opened again when somebody has decided, or nobody in time.
	calm := len(v.interruptions) == 0 || v.m.Status() != machine.Waiting || x.expires(s, func() *machine.Machine { return v.m }) ||
		slices.ContainsFunc(s.store.inbox, func(e entry) bool { return !e.consumed })
	x.may(i, calm, Bound{Opens: 1}, func(s *state) { x.claim(s, i) }, "claims the run")
}

// ticks let time pass until the next moment that matters. A process that does not sleep
// renews its lease.
func (x *explorer) ticks(s *state) {
	next, slow := x.moments(s, -1)
	if next > 0 {
		cost, what := Bound{}, "time passes"
		if slow {
			cost, what = Bound{Faults: 1}, "time passes, and a body was too slow"
		}
		x.may(-1, !slow, cost, func(s *state) { x.pass(s, next, -1) }, what, next)
	}
	for i := range s.drivers {
		if s.drivers[i].phase == idle || s.drivers[i].stopped {
			continue
		}
		if next, _ := x.moments(s, i); next > 0 {
			x.may(-1, false, Bound{Faults: 1}, func(s *state) { x.pass(s, next, i) }, "time passes while the driver sleeps:", i, next)
		}
	}
}

// moments returns the next moment at which something may happen that cannot before, 0 if there
// is none, and whether a body is too slow by then. Driver asleep does not renew its lease.
func (x *explorer) moments(s *state, asleep int) (next int64, slow bool) {
	at := func(t int64) {
		if t > s.now && (next == 0 || t < next) {
			next = t
		}
	}
	h := s.store.holder
	if h >= 0 && (s.gone() || h == asleep) {
		at(s.store.until)
	}
	for _, in := range s.store.head.view().interruptions {
		at(in.NotBefore)
		at(in.Deadline)
	}
	for i := range s.drivers {
		for _, w := range s.drivers[i].waits {
			at(w.until)
		}
		for _, b := range s.drivers[i].bodies {
			if b.returned == nil {
				at(b.notAfter)
			}
		}
	}
	for i := range s.drivers {
		for _, b := range s.drivers[i].bodies {
			slow = slow || i != asleep && b.returned == nil && next >= b.notAfter && s.now < b.notAfter
		}
	}
	return next, slow
}

// pass moves the clock. Drivers that are awake have renewed their leases, or learnt that they
// lost them.
func (x *explorer) pass(s *state, now int64, asleep int) {
	s.now = now
	for i := range s.drivers {
		if d := &s.drivers[i]; i != asleep && d.phase != idle && !d.stopped {
			d.stopped = !x.renew(s, i)
		}
	}
}
