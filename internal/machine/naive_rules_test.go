package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// naive is a second reading of docs/spec.md: it keeps everything that happened in a list and knows nothing else.
type naive struct {
	log    []event
	queued []journal.Fact
	hit    func(tag string)
	known  *world // what the list says, until something happens
}

func (n *naive) read() *world {
	if n.known == nil || len(n.known.log) != len(n.log) {
		n.known = read(n.log, n.hit)
	}
	return n.known
}

func (n *naive) step(f journal.Fact) {
	if b, ok := f.Body.(*journal.Settled); ok {
		w := n.read().frame(f.Frame)
		late := *b
		late.Late = !w.open(w.call(b.ID)) // M8.13
		f.Body = &late
	}
	n.log = append(n.log, event{fact: &f, stepped: true})
	n.queued = append(n.queued, f)
}

func (n *naive) replay(f journal.Fact) { n.log = append(n.log, event{fact: &f}) }

func (n *naive) advance(durable int) { n.log = append(n.log, event{durable: durable}) }

func (n *naive) end(frame string, id journal.EffectID) {
	n.log = append(n.log, event{frame: frame, ended: id})
}

// facts are all facts of the log.
func (n *naive) facts() (out []journal.Fact) {
	for _, e := range n.log {
		if e.fact != nil {
			out = append(out, *e.fact)
		}
	}
	return out
}

// flush is M1.6.
func (n *naive) flush() machine.Ready {
	w := n.read()
	rd := machine.Ready{Facts: n.queued, Status: w.status(), MustSync: w.mustBeSaved || w.durable < w.facts}
	n.queued = nil
	return rd
}

// ready is M2.1.
func (n *naive) ready(now int64) machine.Ready {
	r := ruling{naive: n, now: now}
	r.expire("")
	r.frame("")
	w := n.read()
	rd := n.flush()
	rd.Batches, rd.Effects = r.batches, r.effects
	rd.MustSync = w.mustBeSaved || w.durable < w.facts && rd.Status != machine.Running // M13.1, M13.3
	return rd
}

// frame is M17.5. It says whether anything followed.
func (r *ruling) frame(name string) (some bool) {
	for {
		before := len(r.log)
		r.world = r.read().frame(name)
		rule := r.world.rule()
		r.hit("M2.2 rule " + rule)
		r.apply(rule)
		if len(r.log) > before {
			some = true
			continue
		}
		for _, inner := range r.world.entered() {
			if r.frame(inner) {
				before = -1
			}
		}
		if before >= 0 {
			return some
		}
		some = true
	}
}

// rule is M2.2: the first rule whose condition holds.
func (w *world) rule() string {
	r := w.response()
	for _, rule := range []struct {
		name  string
		holds func() bool
	}{
		{"1", func() bool { return w.start == nil || w.finished != nil }},
		{"2", func() bool { return w.failure != nil }},
		{"3", func() bool { return !w.loaded && !w.closed() }},
		{"3a", func() bool { return w.inputDue(0) && !w.closed() }},
		{"3b", func() bool { return w.besideDue() && !w.closed() }},
		{"4", func() bool { return w.batch.open }},
		{"5", w.requestDue},
		{"6", func() bool { return r != nil && r.plan == nil && !w.closed() }},
		{"7", func() bool { return slices.ContainsFunc(w.newest(), w.canDo) }},
		{"8", func() bool { return w.busy() > 0 }},
		{"8a", func() bool { return w.admitDue() && !w.closed() }},
		{"9", w.owed},
		{"10", func() bool { return w.closed() && !w.anyOpen() }},
		{"11", w.anyOpen},
		{"12", w.verdictDue},
		{"12a", w.outputDue},
		{"12b", func() bool { return w.endsTheRun() && w.unchecked() }},
		{"13", w.endsTheRun},
		{"13a", func() bool { kind, _ := w.unhandled(); return kind != "" }},
		{"14", w.outOfTurns},
	} {
		if rule.holds() {
			return rule.name
		}
	}
	return "15"
}

// requestDue is M5.2.
func (w *world) requestDue() bool {
	t := w.turn()
	if t == nil || !t.open && !t.repeat {
		return false
	}
	inFlight := slices.ContainsFunc(w.flight, func(id journal.EffectID) bool {
		return id.N == t.prepared.N && id.A == t.attempt && (id.Kind == journal.EffectModel ||
			(id.Kind == journal.EffectReconcile || id.Kind == journal.EffectWait) && id.P == 0)
	})
	return !w.closed() || inFlight
}

// canDo is M8.5.
func (w *world) canDo(c *call) bool {
	s := w.state(c)
	switch {
	case w.closed():
		return s.phase != settled && s.phase != running && s.phase != entered
	case s.phase == ready && c.spec.Guarded && !s.cleared:
		return !slices.Contains(w.flight, c.check())
	case s.phase == ready && !w.cleared(c, s):
		return false
	case s.phase == ready && c.spec.Agent != "":
		return !slices.Contains(w.flight, c.around(journal.EffectEnter))
	case s.phase == leaving:
		return !slices.Contains(w.flight, c.around(journal.EffectLeave))
	case s.phase == ready && c.handoff():
		return w.transferDue(c) && !slices.Contains(w.flight, c.transfer())
	case s.phase == ready && c.spec.Hosted:
		return true
	case s.phase == ready:
		if w.start.Parallel != 0 && w.running() >= w.start.Parallel {
			w.hit("M8.8 a call waits for its turn")
			return false
		}
		return true
	case s.phase == doubt && (s.ask || c.told(s)):
		return !slices.ContainsFunc(w.flight, func(id journal.EffectID) bool {
			return id.N == c.id.N && (id.Kind == journal.EffectWait && id.P == c.id.P+1 || id.Kind == journal.EffectReconcile && id.P == c.id.P+2)
		})
	}
	return s.phase == decided
}

// mark is the settled mark [M3.4].
func (w *world) mark() int {
	mark := w.inputEnd
	for _, r := range w.responses {
		if r.plan == nil || slices.ContainsFunc(r.calls, w.open) {
			break
		}
		mark = r.end
	}
	for mark < len(w.places) && w.places[mark].extra {
		mark++
	}
	return mark
}

// owed is M10.2.
func (w *world) owed() bool {
	if w.session == nil || !w.loaded {
		return false
	}
	for i := w.persisted; i < w.released(); i++ {
		if !w.places[i].dropped {
			return true
		}
	}
	return false
}

// verdictDue is M14.4.
func (w *world) verdictDue() bool {
	r := w.response()
	return r != nil && r.plan != nil && !w.anyOpen() && r.manifest.ToolUse == machine.ToolUseCustom &&
		r.judged == nil && len(w.results()) > 0 && !w.handedOver()
}

func (w *world) endsTheRun() bool { return w.end() != nil }

// end is M14.1, M20.5 and M21.4.
func (w *world) end() *journal.Finished {
	switch {
	case w.handled != nil && w.handledAt >= 0:
		return &journal.Finished{At: w.handledAt}
	case w.handled != nil:
		return &journal.Finished{At: -1, Text: w.handled.Text}
	case w.followed():
		w.hit("M21.4 followed by input")
		return nil
	}
	return w.ownEnd()
}

// ownEnd is M14.1 and M14.2: how the newest response ends the run, if it does.
func (w *world) ownEnd() *journal.Finished {
	r := w.response()
	if r == nil || r.plan == nil || w.anyOpen() {
		return nil
	}
	switch {
	case r.plan.Final == journal.FinalMessage:
		w.hit("M14.1 a message")
		return &journal.Finished{At: r.start + r.plan.FinalAt}
	case r.plan.Final == journal.FinalEmpty:
		w.hit("M14.1 empty")
		return &journal.Finished{At: -1}
	case r.judged != nil && r.judged.Final:
		w.hit("M14.1 a verdict")
		return &journal.Finished{At: -1, Text: r.judged.Text}
	}
	if w.handedOver() {
		w.hit("M18.5 no result ends the run")
		return nil
	}
	for _, c := range w.results() {
		use := r.manifest.ToolUse
		if use == machine.ToolUseFirst || use == machine.ToolUseNames && slices.Contains(r.manifest.StopAt, c.spec.Name) {
			w.hit("M14.1 a result, tool use " + use)
			return &journal.Finished{At: c.place}
		}
	}
	return nil
}

// status is M1.5.
func (w *world) status() machine.Status {
	switch {
	case w.finished != nil && w.finished.Cancelled:
		return machine.Cancelled
	case w.finished != nil:
		return machine.Finished
	case w.failure != nil && w.inFlight() == 0:
		w.hit("M1.5 failed")
		return machine.Failed
	}
	if !w.closed() && w.waits() {
		w.hit("M1.5 waiting")
		return machine.Waiting
	}
	return machine.Running
}

// waits is the part of M1.5 that is about a frame.
func (w *world) waits() bool {
	if w.rule() != "11" || len(w.flight) > 0 {
		return false
	}
	for _, c := range w.newest() {
		s := w.state(c)
		asks := s.phase == asked || s.phase == pending || s.phase == doubt && !s.ask && !c.told(s)
		behind := c.handoff() && s.phase == ready && w.openCalls() > 1 // it waits for the others
		if s.phase != settled && !asks && !behind && (s.phase != entered || !w.frame(w.inside(c)).waits()) {
			return false
		}
	}
	return true
}

// ruling is one Ready.
type ruling struct {
	*naive
	now     int64
	world   *world
	effects []machine.Effect
	batches []machine.Range
}

func (r *ruling) emit(b journal.Body) {
	r.step(journal.Fact{Frame: r.world.name, Time: r.now, Body: b})
}

// hand is M2.3.
func (r *ruling) hand(e machine.Effect) {
	w := r.read().frame(r.world.name)
	if slices.Contains(w.flight, e.ID) {
		return
	}
	if slices.Contains(w.notAgain, e.ID) {
		r.hit("M2.3 ended, not handed again")
		return
	}
	e.Frame = w.name
	r.log = append(r.log, event{frame: w.name, handed: e.ID})
	r.effects = append(r.effects, e)
}

func (r *ruling) apply(rule string) {
	w := r.world
	newest := len(w.responses)
	next := len(w.turns) + 1
	switch rule {
	case "3a":
		r.hand(machine.Effect{ID: guardOf(0, 0)})
	case "3b":
		r.hand(machine.Effect{ID: guardOf(0, 1)})
	case "8a":
		if w.pendingGuarded() {
			r.hit("M21.3 checked")
			r.hand(machine.Effect{ID: guardOf(w.admitted+1, 0)})
			return
		}
		r.emit(&journal.Admitted{N: w.admitted + 1})
	case "12a":
		n, _ := w.held()
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectOutput, N: n, A: 1}})
	case "13a":
		_, n := w.unhandled()
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectHandle, N: n, A: 1}})
	case "3":
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectLoad, A: 1}})
	case "4":
		r.applyBatch()
	case "5":
		r.applyRequest()
	case "6":
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectPlan, N: newest, A: 1}})
	case "7":
		for _, c := range w.newest() {
			r.applyCall(c.id)
		}
	case "9":
		r.applyOwed()
	case "10":
		if w.turn() != nil && (w.turn().open || w.turn().repeat) {
			r.hit("M4.6 cancelled with a request")
		}
		if w.response() != nil && w.response().plan == nil {
			r.hit("M15.4 a response without a plan")
		}
		if w.endsTheRun() {
			r.hit("M15.5 cancelled at its end")
		}
		r.emit(&journal.Finished{Cancelled: true, Tripped: w.tripped != nil, At: -1})
	case "12":
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectJudge, N: newest, A: 1}})
	case "13":
		r.emit(w.end())
	case "14":
		r.emit(&journal.Failed{ID: journal.EffectID{Kind: journal.EffectPrepare, N: next, A: 1}, Code: machine.CodeMaxTurns})
	case "15":
		view, from := w.covers()
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectPrepare, N: next, A: 1}, View: view, From: from, Upto: w.mark()})
	}
}

// applyBatch is M10.4 to M10.6.
func (r *ruling) applyBatch() {
	b := r.world.batch
	next := b.effect()
	next.A++
	switch {
	case b.absent:
		r.hit("M10.6 absent")
		r.emit(&journal.Intended{ID: next, Upto: b.upto})
	case !b.doubt:
		r.hand(machine.Effect{ID: b.effect(), From: r.world.persisted, Upto: b.upto})
	case r.world.session.Batches:
		r.hit("M10.5 the session remembers")
		r.emit(&journal.Intended{ID: next, Upto: b.upto})
	default:
		r.hit("M10.5 reconciled")
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectReconcile, N: b.n, P: 1, A: b.attempt},
			About: b.effect(), From: r.world.persisted, Upto: b.upto})
	}
}

// applyOwed is M10.3.
func (r *ruling) applyOwed() {
	w := r.world
	n, upto := w.confirmed+1, w.released()
	if w.session.Own {
		r.hit("M10.3 own")
		r.batches = append(r.batches, machine.Range{Frame: w.name, N: n, From: w.persisted, Upto: upto})
		r.emit(&journal.Confirmed{N: n, Upto: upto})
		return
	}
	r.emit(&journal.Intended{ID: journal.EffectID{Kind: journal.EffectSession, N: n, A: 1}, Upto: upto})
}

// applyRequest is M5.3.
func (r *ruling) applyRequest() {
	w := r.world
	t := w.turn()
	id := t.effect()
	switch {
	case t.doubt && w.unrepeatable():
		r.hit("M5.3 reconciled")
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectReconcile, N: id.N, A: id.A}, About: id,
			View: t.view, From: t.from, Upto: t.prepared.Upto})
	case t.retryAt > r.now:
		r.hit("M5.3 waits")
		r.hand(machine.Effect{ID: t.wait(), Until: t.retryAt})
	case t.doubt || t.repeat:
		r.hit("M5.3 the next attempt")
		id.A++
		r.emit(&journal.Intended{ID: id, Upto: t.prepared.Upto})
	default:
		r.hand(machine.Effect{ID: id, View: t.view, From: t.from, Upto: t.prepared.Upto, Previous: t.previous})
	}
}

// expire is M9.16.
func (r *ruling) expire(name string) {
	for _, c := range r.read().frame(name).newest() {
		w := r.read().frame(name)
		s := w.state(w.call(c.id))
		if s.phase == entered {
			r.expire(w.inside(c))
			continue
		}
		r.world = w
		if w.finished != nil || w.closed() || w.failure != nil || s.phase != asked || s.deadline == 0 || s.deadline > r.now {
			continue
		}
		if s.attempts > 0 {
			r.hit("M9.16 a question of the tool expires")
		}
		r.emit(c.expired(s))
	}
}

// applyCall is M8.6, M8.7, M8.9 and M8.17.
func (r *ruling) applyCall(id journal.EffectID) {
	w := r.read().frame(r.world.name)
	c := w.call(id)
	if !w.canDo(c) {
		return
	}
	s := w.state(c)
	inDoubt := s.phase == doubt && !w.closed()
	about := journal.EffectID{Kind: journal.EffectTool, N: id.N, P: id.P, A: s.attempts}
	switch {
	case inDoubt && r.now < s.until:
		r.hit("M8.9 waits")
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectWait, N: id.N, P: id.P + 1, A: s.attempts}, Until: s.until})
		return
	case inDoubt && s.ask:
		r.hit("M8.17 asks the far side")
		r.hand(machine.Effect{ID: journal.EffectID{Kind: journal.EffectReconcile, N: id.N, P: id.P + 2, A: s.attempts}, About: about, Key: w.key(c)})
		return
	}
	if how, out, ok := w.settlement(c); ok {
		if inDoubt {
			r.hit("M8.9 told")
		}
		r.emit(&journal.Settled{ID: c.id, Outcome: how, Output: out})
		return
	}
	if s.phase == ready && c.spec.Guarded && !s.cleared {
		r.hit("M19.7 asked")
		r.hand(machine.Effect{ID: c.check()})
		return
	}
	if c.spec.Agent != "" {
		r.applyAgent(w, c, s)
		return
	}
	if c.handoff() {
		r.hit("M18.3 handed")
		r.hand(machine.Effect{ID: c.transfer()})
		return
	}
	timeout := c.spec.Timeout
	if timeout <= 0 {
		timeout = 10 * 60 * 1000
	}
	id.A = s.attempts + 1
	r.emit(&journal.Intended{ID: id, NotAfter: r.now + timeout})
	r.hand(machine.Effect{ID: id, Key: w.key(c), NotAfter: r.now + timeout})
}
