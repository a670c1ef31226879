package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

// outcome gives an effect that is in flight an outcome, sometimes twice.
func (p *player) outcome(how func(*world, journal.EffectID) journal.Body) {
	list := p.n.read().flying()
	if len(list) == 0 {
		return
	}
	// A guardrail beside the run mostly takes its time, or nothing would ever have to wait for it.
	others := slices.DeleteFunc(slices.Clone(list), func(e flying) bool { return e.id.Kind == journal.EffectGuard && e.id.P == 1 })
	if len(others) > 0 && !p.seldom(3, "guardrail first") {
		list = others
	}
	e := pick(p.draw, "effect", list...)
	if b := how(e.in, e.id); b != nil {
		p.doIn(e.frameOf(b), b)
		if p.seldom(3, "twice") {
			p.doIn(e.frameOf(b), b)
		}
	}
}

// well draws the outcome that a driver hopes for.
func (p *player) well(w *world, id journal.EffectID) journal.Body {
	switch id.Kind {
	case journal.EffectLoad:
		return p.loaded(w)
	case journal.EffectPrepare:
		return p.prepared(w)
	case journal.EffectModel:
		return p.responded(w, id)
	case journal.EffectPlan:
		return p.planned(w)
	case journal.EffectJudge:
		return &journal.Judged{N: id.N, Final: p.maybe("final"), Text: p.next("verdict ")}
	case journal.EffectSession:
		return &journal.Confirmed{N: id.N, Upto: w.batch.upto}
	case journal.EffectTransfer:
		return p.transferred(w, id)
	case journal.EffectGuard, journal.EffectOutput, journal.EffectCheck:
		return p.checked(w, id)
	case journal.EffectHandle:
		return p.handles(id)
	case journal.EffectWait:
		if until := p.until[effectOf{w.name, id}]; p.now < until && !p.seldom(3, "early") {
			p.now = until
		}
		if p.seldom(2, "not fired") {
			return nil
		}
		return &journal.Fired{ID: id}
	case journal.EffectEnter:
		return p.nested(w.call(id))
	case journal.EffectLeave:
		return p.left(w, id)
	case journal.EffectTool:
		b := &journal.Settled{ID: id, Outcome: pick(p.draw, "outcome", journal.Done, journal.ToolFailed),
			Output: w.call(id).answer(p.next("output ")), Error: p.next("error ")}
		if p.seldom(2, "guarded") {
			b.Checks = p.checks()
		}
		return b
	}
	if id.P >= 2 {
		return p.answered(w, id)
	}
	about := journal.EffectID{Kind: journal.EffectModel, N: id.N, A: id.A}
	if id.P == 1 {
		about.Kind = journal.EffectSession
	}
	switch {
	case p.maybe("absent"):
		return &journal.Absent{ID: about}
	case id.P == 1:
		return &journal.Confirmed{N: id.N, Upto: w.batch.upto, Found: true}
	}
	return p.responded(w, about)
}

// answered draws what the far side says of a call.
func (p *player) answered(w *world, id journal.EffectID) journal.Body {
	about := journal.EffectID{Kind: journal.EffectTool, N: id.N, P: id.P - 2, A: id.A}
	switch pick(p.draw, "the far side says", "absent", "done", "unknown") {
	case "absent":
		return &journal.Absent{ID: about}
	case "done":
		return &journal.Settled{ID: about, Output: w.call(about).answer(p.next("found "))}
	}
	return &journal.Settled{ID: about, Outcome: journal.Unknown, Output: w.call(about).answer(p.next("unknown ")), Error: p.next("cannot tell ")}
}

// badly draws an outcome that a driver fears.
func (p *player) badly(w *world, id journal.EffectID) journal.Body {
	switch id.Kind {
	case journal.EffectWait:
		return nil
	case journal.EffectTool:
		switch pick(p.draw, "outcome", journal.Unknown, journal.Unknown, journal.Unknown, journal.NotExecuted, journal.Pending, journal.AsksAgain) {
		case journal.NotExecuted:
			return &journal.Settled{ID: id, Outcome: journal.NotExecuted}
		case journal.Pending:
			return &journal.Settled{ID: id, Outcome: journal.Pending, Error: p.next("waits for ")}
		case journal.AsksAgain:
			return &journal.Settled{ID: id, Outcome: journal.AsksAgain, Error: p.next("question ")}
		}
		return &journal.Settled{ID: id, Outcome: journal.Unknown, Output: w.call(id).answer(p.next("unknown ")), Error: p.next("error "),
			Running: p.maybe("running")}
	case journal.EffectModel:
		return &journal.Failed{ID: id, Code: p.next("code "), Unknown: p.maybe("unknown"),
			RetryAt: pick(p.draw, "retry at", p.now+500, p.now+1, 0)}
	}
	return &journal.Failed{ID: id, Code: p.next("code "), Unknown: p.maybe("unknown")}
}

// decide decides a call, or lets its result come late.
func (p *player) decide() {
	w := p.somewhere()
	var calls []*call
	for _, c := range w.newest() {
		s := w.state(c)
		open := s.phase == doubt && !c.told(s) || s.phase == pending || s.phase == asked
		if open || c.planned.Gate == journal.Ask && c.decision(0) == nil && s.phase != settled {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return
	}
	c := pick(p.draw, "call", calls...)
	s := w.state(c)
	if s.phase == asked && s.deadline > 0 && p.maybe("too late") {
		p.now = max(p.now, s.deadline)
		switch pick(p.draw, "expired", "by itself", "by a driver", "not yet") {
		case "by itself":
			p.ready()
		case "by a driver":
			p.doIn(w.name, c.expired(s))
		}
	}
	if (s.phase == doubt || s.phase == pending) && p.seldom(2, "late") {
		id := c.id
		id.A = pick(p.draw, "attempt", s.attempts, 1)
		p.doIn(w.name, &journal.Settled{ID: id, Output: c.answer(p.next("late "))})
		return
	}
	if s.phase == doubt && p.maybe("in time") {
		p.now = max(p.now, s.until)
	}
	p.doIn(w.name, p.decision(w, c))
}

// endEffect ends an effect, which may have an outcome all the same.
func (p *player) endEffect() {
	w := p.n.read()
	e := pick(p.draw, "ended", append(w.flying(), flying{w, journal.EffectID{Kind: journal.EffectPlan, N: 1, A: 1}})...)
	p.note("ended %s %v", e.in.name, e.id)
	p.n.end(e.in.name, e.id)
	p.m.Frame(e.in.name).Ended(e.id)
	if slices.Contains(e.in.flight, e.id) && p.maybe("ends all the same") {
		how := p.well
		if p.maybe("badly") {
			how = p.badly
		}
		if b := how(e.in, e.id); b != nil {
			p.doIn(e.frameOf(b), b)
		}
	}
}
