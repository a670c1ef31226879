package explore

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// body is a call whose body runs beside the driver.
type body struct {
	id        journal.EffectID
	notAfter  int64
	key       string
	call      item.FunctionCall
	approvals int // of the questions of earlier attempts
	entered   bool
	acted     bool // it took effect
	cancelled bool
	returned  *journal.Settled // nil while it runs
}

func (b *body) write(e *encoder) {
	e.id(b.id)
	e.time(b.notAfter)
	e.flags(b.entered, b.acted, b.cancelled, b.returned != nil)
	if b.returned != nil {
		e.outcomes([]outcome{{b.id, b.returned}})
	}
}

// startTools hands the tools among what is handed out to their bodies.
func (x *explorer) startTools(d *driver) {
	for len(d.handed) > 0 && d.handed[0].ID.Kind == journal.EffectTool && !x.transactional(d, d.handed[0]) {
		e := d.handed[0]
		d.handed = d.handed[1:]
		info, _ := d.machine().Call(e.ID)
		fc, _ := info.Item.FunctionCall()
		d.bodies = add(d.bodies, body{id: e.ID, notAfter: e.NotAfter, key: e.Key, call: fc, approvals: info.Approvals})
	}
}

func (d *driver) cancelBodies() {
	d.bodies = slices.Clone(d.bodies)
	for j := range d.bodies {
		d.bodies[j].cancelled = true
	}
}

// change changes a body of the driver's, in this state only.
func (d *driver) change(j int) *body {
	d.bodies = append([]body(nil), d.bodies...)
	return &d.bodies[j]
}

// enter enters a body, or does not.
func (x *explorer) enter(s *state, i, j int) {
	d := &s.drivers[i]
	b := d.change(j)
	late := s.now >= min(b.notAfter, d.lease)
	if x.rules == NoLookAtTheClock {
		late = false
	}
	if late {
		b.returned = &journal.Settled{ID: b.id, Outcome: journal.NotExecuted}
		return
	}
	b.entered = true
	switch {
	case s.now >= b.notAfter:
		x.violate(s, "the body of %s is entered after its time", b.id)
	case s.store.epoch != d.epoch:
		x.violate(s, "the body of %s is entered under epoch %d, and %d was granted", b.id, d.epoch, s.store.epoch)
	case s.store.head.view().intents[b.id] != d.epoch:
		x.violate(s, "the body of %s is entered without an intent", b.id)
	}
}

// recallBodies ends the bodies that were not entered and will not be: they were cancelled.
func (d *driver) recallBodies() {
	for j := range d.bodies {
		if b := &d.bodies[j]; !b.entered && b.returned == nil && (d.stopped || b.cancelled) {
			d.change(j).returned = &journal.Settled{ID: b.id, Outcome: journal.NotExecuted}
		}
	}
}

// act lets a body take effect and return; its own answer may be lost.
func (x *explorer) act(s *state, i, j int, lost bool) {
	b := s.drivers[i].change(j)
	s.took(b.id)
	b.acted = true
	switch {
	case lost && x.rules == SaysNotExecuted:
		b.returned = &journal.Settled{ID: b.id, Outcome: journal.NotExecuted}
		return
	case lost:
		b.returned = b.unknown()
		return
	}
	b.returned = x.result(b.id, b.call)
}

// took notes that a call took effect.
func (s *state) took(id journal.EffectID) {
	s.done = add(s.done, done{callOf(id), id.A})
}

// result is what a body that took effect says.
func (x *explorer) result(id journal.EffectID, call item.FunctionCall) *journal.Settled {
	if slices.Contains(x.sc.Later, call.Name) {
		return &journal.Settled{ID: id, Outcome: journal.Pending, Error: "ticket 7"}
	}
	return &journal.Settled{ID: id, Output: call.Output("did")}
}

// actSlowly lets a body take effect that does not say so yet.
func (x *explorer) actSlowly(s *state, i, j int) {
	b := s.drivers[i].change(j)
	s.took(b.id)
	b.acted = true
}

// say lets a body return that took effect.
func (x *explorer) say(s *state, i, j int) {
	b := s.drivers[i].change(j)
	b.returned = x.result(b.id, b.call)
}

// question lets a body ask a person before it does anything.
func (x *explorer) question(s *state, i, j int) {
	b := s.drivers[i].change(j)
	b.returned = &journal.Settled{ID: b.id, Outcome: journal.AsksAgain, Error: "really?"}
}

// end ends a body that noticed that it is to stop before it did anything.
func (x *explorer) end(s *state, i, j int) {
	b := s.drivers[i].change(j)
	b.returned = b.unknown()
}

// abandon lets a driver go on without a body that does not end: one that halts, or whose body is
// overdue.
func (x *explorer) abandon(s *state, i, j int) {
	d := &s.drivers[i]
	b := d.change(j)
	b.returned = b.unknown()
	b.returned.Running = x.rules != ForgetsWhatRuns
	d.left = d.left || s.now < b.notAfter
	s.strays = add(s.strays, stray{i, d.epoch, b.id, b.notAfter, b.call, b.acted})
}

// strayActs lets a body return whose driver went on without it; it takes effect first, if it has not. What
// it says comes to the drive, or is posted if that has ended.
func (x *explorer) strayActs(s *state, n int) {
	b := s.strays[n]
	s.strays = without(s.strays, func(o stray) bool { return o.id == b.id })
	if !b.acted {
		s.took(b.id)
	}
	o := outcome{b.id, x.result(b.id, b.call)}
	if d := &s.drivers[b.driver]; d.phase != idle && d.epoch == b.epoch {
		d.queue = add(d.queue, o)
		return
	}
	x.postLate(s, o)
}

// lateKey is the beginning of the inbox keys of late results.
const lateKey = "late/"

// postLate posts an outcome that comes when the drive has ended, if it says what happened.
func (x *explorer) postLate(s *state, o outcome) {
	b, ok := o.body.(*journal.Settled)
	if key := lateKey + o.id.String(); ok && b.Outcome == journal.Done && !s.posted(key) {
		x.post(s, key, b)
	}
}

func (b *body) unknown() *journal.Settled {
	return &journal.Settled{ID: b.id, Outcome: journal.Unknown, Output: b.call.Output(machine.UnknownText(b.key))}
}
