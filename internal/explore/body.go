package explore

import (
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
	entered   bool
	cancelled bool
	returned  *journal.Settled // nil while it runs
}

func (b *body) write(e *encoder) {
	e.id(b.id)
	e.time(b.notAfter)
	e.flags(b.entered, b.cancelled, b.returned != nil)
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
		d.bodies = add(d.bodies, body{id: e.ID, notAfter: e.NotAfter, key: e.Key, call: fc})
	}
}

func (d *driver) cancelBodies() {
	d.bodies = add(d.bodies)
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
	call := b.id
	call.A = 0
	s.done = add(s.done, done{call, b.id.A})
	switch {
	case lost && x.rules == SaysNotExecuted:
		b.returned = &journal.Settled{ID: b.id, Outcome: journal.NotExecuted}
		return
	case lost:
		b.returned = b.unknown()
		return
	}
	b.returned = &journal.Settled{ID: b.id, Output: b.call.Output("did")}
}

// end ends a body that noticed that it is to stop before it did anything.
func (x *explorer) end(s *state, i, j int) {
	b := s.drivers[i].change(j)
	b.returned = b.unknown()
}

// abandon lets a driver that halts go on without a body that does not end.
func (x *explorer) abandon(s *state, i, j int) {
	d := &s.drivers[i]
	b := d.change(j)
	b.returned = b.unknown()
	b.returned.Running = x.rules != ForgetsWhatRuns
	d.left = true
	s.strays = add(s.strays, stray{i, b.id, b.notAfter, b.call})
}

// strayActs lets a body take effect whose driver went on without it. What it says is posted.
func (x *explorer) strayActs(s *state, n int) {
	b := s.strays[n]
	s.strays = without(s.strays, func(o stray) bool { return o.id == b.id })
	call := b.id
	call.A = 0
	s.done = add(s.done, done{call, b.id.A})
	if key := "late/" + b.id.String(); !s.posted(key) {
		x.post(s, key, &journal.Settled{ID: b.id, Output: b.call.Output("did")})
	}
}

func (b *body) unknown() *journal.Settled {
	return &journal.Settled{ID: b.id, Outcome: journal.Unknown, Output: b.call.Output(machine.UnknownText(b.key))}
}
