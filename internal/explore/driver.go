package explore

import (
	"cmp"
	"errors"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// phase is where a driver's loop is.
type phase int

const (
	idle      phase = iota // nobody drives here
	opening                // it has the claim and is to read the ledger
	appending              // an append is on its way
	deciding               // the append's answer was an error: the ledger is to be read
	standing               // the run stands still: the inbox is to be looked into once more
	starting               // effects are to be started
	turning                // it waits for outcomes, or has some
	awaiting               // it has halted and awaits its bodies
	releasing              // the claim is to be given up
)

// appendTries is how often an append is tried. The root package tries three times; what
// follows on a third try follows on a second.
const appendTries = 2

// driver is one process and what it does with the run.
type driver struct {
	process int // another one after each crash
	phase   phase
	epoch   uint64
	lease   int64 // when it ends, for all the driver knows
	// first says that no claim before was left unreleased.
	first   bool
	stopped bool // its context has ended
	halted  bool
	left    bool // a body was left running
	records bool // it only records what came late

	read    *ledger // as it was when the driver opened the run
	ops     []func(*machine.Machine)
	m       *machine.Machine // the ops done; nil if that is to be done again
	durable int              // records known to be stored
	pending []*record        // handed out by the machine and not stored
	consume []string
	batch   []item.Item // to be stored with them
	tries   int
	status  machine.Status
	follows bool // the machine handed out something the last time
	handed  []machine.Effect
	bodies  []body
	waits   []wait
	asks    []ask
	queue   []outcome
	ended   []journal.EffectID
	unsaved []*record // what a store that failed did not take
}

type wait struct {
	id    journal.EffectID
	until int64
}

// ask is a question to the far side of a call in doubt.
type ask struct {
	id, about journal.EffectID
	answer    journal.Body // nil until it came
}

// outcome is how an effect ended: with a fact, or without.
type outcome struct {
	id   journal.EffectID
	body journal.Body
}

func (d *driver) write(e *encoder) {
	e.ints(d.process, int(d.phase), int(d.epoch))
	e.time(d.lease)
	e.flags(d.first, d.stopped, d.halted, d.left, d.records, d.follows)
	e.ints(d.durable, d.tries, int(d.status))
	e.records(d.pending)
	e.texts(d.consume)
	e.items(d.batch)
	for _, h := range d.handed {
		e.id(h.ID)
	}
	e.ints(-1)
	for _, b := range d.bodies {
		b.write(e)
	}
	e.ints(-1)
	for _, w := range d.waits {
		e.id(w.id)
		e.time(w.until)
	}
	for _, a := range d.asks {
		e.id(a.id)
		if a.answer != nil {
			e.outcomes([]outcome{{a.id, a.answer}})
		}
	}
	e.ints(-1)
	e.outcomes(d.queue)
	for _, id := range d.ended {
		e.id(id)
	}
	e.records(d.unsaved)
}

// machine returns the driver's machine, made again if another state has it.
func (d *driver) machine() *machine.Machine {
	if d.m == nil {
		d.m = machine.New()
		for _, r := range d.read.records {
			// A driver replays what it reads; that this works is checked elsewhere.
			_ = d.m.Replay(r.fact)
		}
		for _, op := range d.ops {
			op(d.m)
		}
	}
	return d.m
}

// do does something to the machine and notes it.
func (d *driver) do(op func(*machine.Machine)) {
	op(d.machine())
	d.ops = add(d.ops, op)
}

func (d *driver) step(now int64, b journal.Body) {
	d.do(func(m *machine.Machine) { m.Step(journal.Fact{Time: now, Body: b}) })
}

// claim opens a drive: the lease is the driver's, the ledger not read yet.
func (x *explorer) claim(s *state, i int) {
	d := &s.drivers[i]
	first := s.store.holder < 0
	s.store.epoch++
	s.store.holder, s.store.process, s.store.until = i, d.process, s.now+leaseTime
	*d = driver{process: d.process, phase: opening, epoch: s.store.epoch, lease: s.now + leaseTime, first: first, unsaved: d.unsaved}
}

// open reads the ledger and begins to drive.
func (x *explorer) open(s *state, i int) {
	d := &s.drivers[i]
	d.read, d.durable = s.store.head, len(s.store.head.records)
	m := d.machine()
	claimed := &journal.Claimed{Epoch: d.epoch, Owner: journal.Owner{Host: "h", PID: i, Start: string(rune('a' + d.process))}}
	if d.durable == 0 {
		d.first = false
		d.step(s.now, x.sc.started())
		d.step(s.now, claimed)
		x.turn(s, i, true)
		return
	}
	if m.Finished() != nil && !d.records {
		d.phase = releasing
		return
	}
	owner := m.Owner()
	dead := s.seen && string(rune('a'+s.drivers[owner.PID].process)) != owner.Start
	claimed.Gone = dead || d.first && d.epoch == m.Epoch()+1 && !m.LeftRunning() || x.rules == TakesSilenceForDeath
	d.first = false
	d.step(s.now, claimed)
	if d.records {
		x.drain(s, i)
		d.stopped, d.halted = true, true
		x.flush(s, i)
		return
	}
	d.recall()
	if m.Failure() != nil {
		d.step(s.now, &journal.Resumed{})
	}
	x.turn(s, i, true)
}

// recall steps the outcomes that the process knows and the store did not take.
func (d *driver) recall() {
	unsaved := d.unsaved
	d.unsaved = nil
	for _, r := range unsaved {
		switch b := r.fact.Body.(type) {
		case *journal.Settled:
			if b.Outcome == journal.NotExecuted || !d.machine().OutputOf(b.ID).IsZero() {
				continue
			}
		case *journal.Prepared, *journal.Responded:
		case *journal.Intended:
			if b.ID.Kind != journal.EffectModel {
				continue
			}
		case *journal.Confirmed:
			if ref := d.machine().Session(); ref == nil || ref.Own {
				continue
			}
		default:
			continue
		}
		if d.machine().Check(r.fact) == nil {
			d.do(func(m *machine.Machine) { m.Step(r.fact) })
		}
	}
}

// drain steps what stands in the inbox.
func (x *explorer) drain(s *state, i int) (stepped bool) {
	d := &s.drivers[i]
	for _, e := range s.store.inbox {
		if !d.unread(e) {
			continue
		}
		f := e.fact
		f.Time = s.now
		if d.says(f.Body) {
			d.consume = add(d.consume, e.key) // the ledger says so already
			continue
		}
		switch err := d.machine().Check(f); {
		case err == nil:
			d.do(func(m *machine.Machine) { m.Step(f) })
			stepped = true
			if _, ok := f.Body.(*journal.Cancelled); ok {
				d.cancelBodies()
			}
		case errors.Is(err, machine.ErrInFlight):
			continue
		}
		d.consume = add(d.consume, e.key)
	}
	return stepped
}

// unread says that an entry is not consumed and not about to be.
func (d *driver) unread(e entry) bool {
	return !e.consumed && !slices.Contains(d.consume, e.key)
}

// turn is the top of the loop: it asks the machine what comes next and records it.
func (x *explorer) turn(s *state, i int, drain bool) {
	d := &s.drivers[i]
	if drain {
		x.drain(s, i)
	}
	if d.stopped { // no intent is recorded for what will not start
		x.halt(s, i)
		return
	}
	var rd machine.Ready
	now := s.now
	d.machine()
	d.ops = add(d.ops, func(m *machine.Machine) { m.Ready(now) })
	rd = d.m.Ready(now)
	for _, f := range rd.Facts {
		d.pending = add(d.pending, x.record(f, d.epoch))
	}
	d.handed = slices.Clone(rd.Effects)
	d.status, d.follows = rd.Status, len(rd.Facts)+len(rd.Effects) > 0
	x.take(d, rd.Batches)
	if x.rules == StartsBeforeDurable {
		x.startTools(d)
	}
	if rd.MustSync && len(d.pending) > 0 {
		d.phase, d.tries = appending, 0
		return
	}
	x.committed(s, i)
}

// take notes the session batch that is to be stored with the facts.
func (x *explorer) take(d *driver, batches []machine.Range) {
	for _, batch := range batches {
		d.batch = slices.Collect(d.m.Items(batch.From, batch.Upto))
	}
}

// committed goes on once nothing has to be stored any more.
func (x *explorer) committed(s *state, i int) {
	d := &s.drivers[i]
	follows := d.follows
	d.follows, d.tries = false, 0
	switch {
	case d.status == machine.Waiting || d.status == machine.Failed:
		d.phase = standing
	case d.status != machine.Running:
		d.phase = releasing
	case d.stopped || !follows && len(d.bodies)+len(d.waits)+len(d.asks) == 0:
		x.halt(s, i)
	case len(d.handed) > 0 && d.handed[0].ID.Kind == journal.EffectPrepare, len(d.handed) > 0 && d.handed[0].ID.Kind == journal.EffectPlan:
		d.phase = starting
		if s.now < d.lease { // nothing but the driver itself has to do with it
			x.start(s, i, passes, false)
		}
	case len(d.handed) > 0:
		d.phase = starting
	default:
		d.phase = turning
	}
}

// stand looks into the inbox before a run that stands still is left.
func (x *explorer) stand(s *state, i int) {
	d := &s.drivers[i]
	if x.drain(s, i) {
		x.turn(s, i, false)
		return
	}
	d.phase = releasing
}

// collect steps what came of the effects and goes on.
func (x *explorer) collect(s *state, i int, drain bool) {
	x.arrive(s, i)
	x.settle(s, i)
	x.turn(s, i, drain)
}

// arrive puts what has ended beside the driver into its queue.
func (x *explorer) arrive(s *state, i int) {
	d := &s.drivers[i]
	for _, b := range d.bodies {
		if b.returned != nil {
			d.queue = add(d.queue, outcome{b.id, b.returned})
		}
	}
	for _, a := range d.asks {
		if a.answer != nil {
			d.queue = add(d.queue, outcome{a.id, a.answer})
		}
	}
	for _, w := range d.waits {
		if w.until <= s.now {
			d.queue = add(d.queue, outcome{w.id, &journal.Fired{ID: w.id}})
		}
	}
}

// settle steps the outcomes in the queue.
func (x *explorer) settle(s *state, i int) {
	d := &s.drivers[i]
	queue := d.queue
	d.queue = nil
	for _, o := range queue {
		d.bodies = without(d.bodies, func(b body) bool { return b.id == o.id })
		d.waits = without(d.waits, func(w wait) bool { return w.id == o.id })
		d.asks = without(d.asks, func(a ask) bool { return a.id == o.id })
		if o.body == nil || x.rules != RecordsAgain && d.says(o.body) {
			d.end(o.id)
			continue
		}
		err := d.machine().Check(journal.Fact{Time: s.now, Body: o.body})
		switch {
		case err == nil:
			d.step(s.now, o.body)
		case errors.Is(err, machine.ErrNotDue) && beside(o.id):
			d.end(o.id)
		default:
			x.violate(s, "the outcome of %s does not fit: %v", o.id, err)
		}
	}
}

// says says that the ledger has the outcome of a call already, from somebody else.
func (d *driver) says(b journal.Body) bool {
	s, ok := b.(*journal.Settled)
	return ok && !s.Output.IsZero() && d.machine().OutputOf(s.ID) == s.Output
}

// beside says that an effect goes on beside the driver.
func beside(id journal.EffectID) bool {
	return id.Kind == journal.EffectTool || id.Kind == journal.EffectWait || id.Kind == journal.EffectReconcile && id.P > 1
}

// end takes an effect out of flight that has no outcome.
func (d *driver) end(id journal.EffectID) {
	d.do(func(m *machine.Machine) { m.Ended(id) })
	d.ended = add(d.ended, id)
	slices.SortFunc(d.ended, func(a, b journal.EffectID) int { return cmp.Compare(a.String(), b.String()) })
}

// halt stops the driving: what is handed out and not started is not executed.
func (x *explorer) halt(s *state, i int) {
	d := &s.drivers[i]
	d.stopped, d.halted = true, true
	for _, e := range d.handed {
		if e.ID.Kind == journal.EffectTool {
			d.queue = add(d.queue, outcome{e.ID, &journal.Settled{ID: e.ID, Outcome: journal.NotExecuted}})
		}
	}
	d.handed = nil
	x.settle(s, i)
	d.asks = nil // they are asked again
	d.phase = awaiting
}

// leave records what came of the bodies, all of which have returned, and ends the drive.
func (x *explorer) leave(s *state, i int) {
	x.arrive(s, i)
	x.settle(s, i)
	x.flush(s, i)
}

// flush records what is queued, before the drive ends.
func (x *explorer) flush(s *state, i int) {
	d := &s.drivers[i]
	d.machine()
	d.ops = add(d.ops, func(m *machine.Machine) { m.Flush() })
	rd := d.m.Flush()
	for _, f := range rd.Facts {
		d.pending = add(d.pending, x.record(f, d.epoch))
	}
	x.take(d, rd.Batches)
	switch {
	case len(d.unsaved) > 0:
		d.unsaved, d.pending = add(d.unsaved, d.pending...), nil
		d.phase = releasing
	case len(d.pending) > 0:
		d.phase, d.tries = appending, 0
	default:
		d.phase = releasing
	}
}

// release gives the claim up, unless a body was left running and the ledger does not say so. What
// came too late for the drive is posted.
func (x *explorer) release(s *state, i int) {
	d := &s.drivers[i]
	if (!d.left || len(d.unsaved) == 0) && s.store.epoch == d.epoch {
		s.store.holder, s.store.until = -1, 0
	}
	for _, o := range d.queue {
		x.postLate(s, o)
	}
	*d = driver{process: d.process, unsaved: d.unsaved}
}

func without[T any](list []T, drop func(T) bool) []T {
	if !slices.ContainsFunc(list, drop) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), drop)
}
