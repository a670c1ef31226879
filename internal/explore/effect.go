package explore

import (
	"slices"
	"strconv"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// hold makes sure of the lease before effects are started.
func (x *explorer) hold(s *state, i int) bool {
	d := &s.drivers[i]
	if s.now < d.lease || x.renew(s, i) {
		return true
	}
	x.halt(s, i)
	return false
}

// renew extends the lease, also one that ran out, while nobody else has the run.
func (x *explorer) renew(s *state, i int) bool {
	d := &s.drivers[i]
	if s.store.epoch != d.epoch || s.store.holder < 0 {
		d.lease = 0
		return false
	}
	d.lease = s.now + leaseTime
	s.store.until = d.lease
	return true
}

// start starts what is handed out: tools and waits beside the driver, and the first other effect, which
// ends like that. What came of it is stepped at once.
func (x *explorer) start(s *state, i int, r reply, drain bool) {
	d := &s.drivers[i]
	if !x.hold(s, i) {
		return
	}
	moved := false
	for len(d.handed) > 0 {
		e := d.handed[0]
		switch {
		case x.transactional(d, e):
			d.handed = d.handed[1:]
			if !x.transact(s, i, e, r) {
				return
			}
			moved = true
		case e.ID.Kind == journal.EffectTool:
			x.startTools(d)
		case e.ID.Kind == journal.EffectWait:
			d.handed = d.handed[1:]
			d.waits = add(d.waits, wait{e.ID, e.Until})
		case e.About.Kind == journal.EffectTool:
			d.handed = d.handed[1:]
			d.asks = add(d.asks, ask{id: e.ID, about: e.About})
		default:
			d.handed = d.handed[1:]
			d.queue = add(d.queue, outcome{e.ID, x.inline(s, i, e, r)})
			if len(d.handed) > 0 {
				return
			}
		}
	}
	d.phase = turning
	if len(d.queue) > 0 || moved {
		x.collect(s, i, drain)
	}
}

// transactional says that an effect is a call whose body works in the store's transaction.
func (x *explorer) transactional(d *driver, e machine.Effect) bool {
	if e.ID.Kind != journal.EffectTool {
		return false
	}
	info, _ := d.machine().Call(e.ID)
	return info.Spec.Class == journal.Transactional
}

// transact runs a body in the store's transaction: what it did and its outcome are stored together.
// It reports whether the driver goes on.
func (x *explorer) transact(s *state, i int, e machine.Effect, r reply) bool {
	d := &s.drivers[i]
	info, _ := d.machine().Call(e.ID)
	fc, _ := info.Item.FunctionCall()
	fact := journal.Fact{Time: s.now, Body: x.result(e.ID, fc)}
	w := write{epoch: d.epoch, after: d.durable, records: []*record{x.record(fact, d.epoch)}, done: []done{{callOf(e.ID), e.ID.A}}}
	if x.rules == ActsApart {
		s.done, w.done = add(s.done, w.done...), nil
	}
	refused := taken
	switch r {
	case passes:
		refused = x.put(s, w)
	case stored:
		x.put(s, w)
	case later:
		s.store.late = add(s.store.late, w)
	}
	have := s.store.head
	switch {
	case refused == taken && have.holds(d.durable, w.records):
		d.do(func(m *machine.Machine) { _ = m.Replay(fact) })
		d.durable++
		n := uint64(d.durable)
		d.do(func(m *machine.Machine) { m.Advance(n) })
	case refused != taken, len(have.records) > d.durable:
		x.halt(s, i)
		return false
	default: // what takes its place keeps a late commit out
		d.queue = add(d.queue, outcome{e.ID, &journal.Settled{ID: e.ID, Outcome: journal.NotExecuted}})
	}
	return true
}

// answer is what the far side says of a call in doubt, or that it cannot tell.
func (x *explorer) answer(s *state, i, j int, tells bool) {
	d := &s.drivers[i]
	d.asks = append([]ask(nil), d.asks...)
	a := &d.asks[j]
	info, _ := d.machine().Call(a.about)
	fc, _ := info.Item.FunctionCall()
	switch {
	case !tells && x.rules == TakesSilenceForNo:
		a.answer = &journal.Absent{ID: a.about}
	case !tells:
		a.answer = &journal.Settled{ID: a.about, Outcome: journal.Unknown, Output: fc.Output(machine.UnknownText(d.m.KeyOf(a.about)))}
	case s.happened(a.about) > 0:
		a.answer = &journal.Settled{ID: a.about, Output: fc.Output("did")}
	default:
		a.answer = &journal.Absent{ID: a.about}
	}
}

// replies returns how the next effect that is not beside the driver may end.
func (x *explorer) replies(d *driver) []reply {
	for _, e := range d.handed {
		if x.transactional(d, e) {
			return []reply{passes, stored, absent, later}
		}
		if beside(e.ID) {
			continue
		}
		switch e.ID.Kind {
		case journal.EffectModel:
			return []reply{passes, stored, absent}
		case journal.EffectSession:
			if x.sc.Session.Batches {
				return []reply{passes, stored, absent, later}
			}
			return []reply{passes, stored, absent}
		}
		break
	}
	return []reply{passes}
}

// inline does an effect and returns its outcome.
func (x *explorer) inline(s *state, i int, e machine.Effect, r reply) journal.Body {
	m := s.drivers[i].machine()
	switch e.ID.Kind {
	case journal.EffectLoad:
		return &journal.Loaded{Items: s.session}
	case journal.EffectPrepare:
		if man, turn := m.Manifest(); man != nil {
			return &journal.Prepared{N: e.ID.N, Upto: e.Upto, Same: turn}
		}
		return &journal.Prepared{N: e.ID.N, Upto: e.Upto, Same: e.ID.N, Manifest: &journal.Manifest{Agent: "a", Tools: x.sc.Tools}}
	case journal.EffectPlan:
		n, items, man := m.Response()
		return x.sc.plan(n, items, man)
	case journal.EffectModel:
		return x.callModel(s, m, e, r)
	case journal.EffectSession:
		return x.appendSession(s, m, e, r)
	}
	if e.About.Kind == journal.EffectModel {
		return x.reconcileModel(s, m, e)
	}
	return x.reconcileSession(s, m, e)
}

// callModel asks the server, which answers from the script.
func (x *explorer) callModel(s *state, m *machine.Machine, e machine.Effect, r reply) journal.Body {
	input := slices.Collect(m.Items(e.From, e.Upto))
	known := slices.Clone(s.talk)
	previous := -1
	if e.Previous != "" {
		previous, _ = strconv.Atoi(e.Previous)
		known = s.whole(previous)
	}
	if want := slices.Collect(m.Items(0, e.Upto)); !slices.Equal(want, append(known, input...)) {
		x.violate(s, "request %s makes of the conversation\n%v\nwant\n%v", e.ID, append(known, input...), want)
	}
	if err := paired(append(known, input...)); err != nil {
		x.violate(s, "request %s: %v", e.ID, err)
	}
	answer := x.sc.Turns[min(e.ID.N, len(x.sc.Turns))-1]
	res := &journal.Responded{ID: e.ID, Items: answer}
	switch {
	case r == absent:
	case x.sc.Chain:
		s.sent = add(s.sent, request{previous, slices.Concat(input, answer)})
		res.ResponseID = strconv.Itoa(len(s.sent) - 1)
	case x.sc.Conversation != "":
		s.talk = add(s.talk, slices.Concat(input, answer)...)
	}
	if r == passes {
		return res
	}
	return &journal.Failed{ID: e.ID, Unknown: true}
}

// whole returns what the server has up to a response.
func (s *state) whole(response int) []item.Item {
	if response < 0 {
		return nil
	}
	r := s.sent[response]
	return append(s.whole(r.previous), r.items...)
}

// reconcileModel reads the conversation to find out what became of a request.
func (x *explorer) reconcileModel(s *state, m *machine.Machine, e machine.Effect) journal.Body {
	before := slices.Collect(m.Items(0, e.Upto))
	switch after := len(s.talk) - len(before); {
	case len(s.talk) == len(slices.Collect(m.Items(0, e.From))):
		return &journal.Absent{ID: e.About}
	case after > 0 && slices.Equal(s.talk[:len(before)], before):
		return &journal.Responded{ID: e.About, Items: s.talk[len(before):]}
	}
	return &journal.Failed{ID: e.ID}
}

// appendSession appends a batch to a session outside the store.
func (x *explorer) appendSession(s *state, m *machine.Machine, e machine.Effect, r reply) journal.Body {
	items := slices.Collect(m.Items(e.From, e.Upto))
	switch r {
	case passes, stored:
		x.batch(s, e.ID.N, items)
	case later:
		s.late = add(s.late, lateBatch{e.ID.N, items})
	}
	if r != passes {
		return &journal.Failed{ID: e.ID, Unknown: true}
	}
	return &journal.Confirmed{N: e.ID.N, Upto: e.Upto}
}

// batch is the session's own part of an append.
func (x *explorer) batch(s *state, n int, items []item.Item) {
	if x.sc.Session.Batches {
		if slices.Contains(s.batches, n) {
			return
		}
		s.batches = add(s.batches, n)
	}
	s.session = add(s.session, items...)
}

// reconcileSession compares the session's tail with the batch and with what was before it.
func (x *explorer) reconcileSession(s *state, m *machine.Machine, e machine.Effect) journal.Body {
	switch {
	case x.rules == AppendsAgain, slices.Equal(s.session, slices.Collect(m.Items(0, e.From))):
		return &journal.Absent{ID: e.About}
	case slices.Equal(s.session, slices.Collect(m.Items(0, e.Upto))):
		return &journal.Confirmed{N: e.About.N, Upto: e.Upto, Found: true}
	}
	return &journal.Failed{ID: e.ID}
}
