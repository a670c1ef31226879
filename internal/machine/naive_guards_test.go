package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

func guardOf(n, p int) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectGuard, N: n, P: p, A: 1}
}

// inputDue is M19.2: a verdict on the first input is missing.
func (w *world) inputDue(p int) bool {
	words := []journal.Guards{journal.GuardsBoth, journal.GuardsBlocking}
	if p == 1 {
		words[1] = journal.GuardsParallel
	}
	return w.loaded && known(w.start.Guards, words...) && !w.verdicts[guardOf(0, p)]
}

func (w *world) unchecked() bool { return w.inputDue(0) || w.inputDue(1) }

// busy is M19.3: the effects in flight that rule 8 is about.
func (w *world) busy() int {
	n := len(w.flight)
	if !w.closed() && slices.Contains(w.flight, guardOf(0, 1)) {
		w.hit("M19.3 beside")
		n--
	}
	return n
}

func (w *world) besideDue() bool {
	return w.inputDue(1) && !slices.Contains(w.flight, guardOf(0, 1)) && !slices.Contains(w.notAgain, guardOf(0, 1))
}

func (c *call) check() journal.EffectID { return around(c.id, journal.EffectCheck) }

// cleared is M19.4 and M19.7: no guardrail keeps a ready call from starting.
func (w *world) cleared(c *call, s callState) bool {
	if c.spec.Guarded && !s.cleared {
		return false
	}
	free := c.spec.Class == journal.ReadOnly && c.spec.Agent == "" && !c.handoff()
	if w.unchecked() && !free {
		w.hit("M19.4 a call waits for the verdict")
		return false
	}
	return true
}

// held is M19.5: the ordinal of what may be the final output and was not checked, and where it begins; 0 if there is none.
func (w *world) held() (n, from int) {
	t := w.turn()
	if t == nil || !t.manifest.GuardsOutput {
		return 0, 0
	}
	switch r := w.response(); {
	case w.handled != nil:
		n, from = w.handled.N, w.handledFrom
	case r != nil && (w.verdictDue() || w.end() != nil):
		n, from = r.n, r.start
	}
	if w.verdicts[journal.EffectID{Kind: journal.EffectOutput, N: n, A: 1}] {
		return 0, 0
	}
	return n, from
}

// outputDue is M19.6.
func (w *world) outputDue() bool {
	n, _ := w.held()
	return n > 0 && w.end() != nil
}

// released is M19.5.
func (w *world) released() int {
	n, from := w.held()
	switch {
	case w.closed():
		return w.mark()
	case w.unchecked():
		return w.inputEnd
	case n > 0:
		w.hit("M19.5 held")
		return from
	}
	return w.mark()
}

// tripOf returns the first guardrail that tripped.
func tripOf(checks []journal.Check) *journal.Check {
	for i := range checks {
		if checks[i].Tripped {
			return &checks[i]
		}
	}
	return nil
}

// readTrips is M19.10 to M19.12, before the fact does what else it does.
func (w *world) readTrips(b journal.Body) {
	switch b := b.(type) {
	case *journal.Checked:
		w.trip(b.ID, b.Checks)
	case *journal.Settled:
		if w.open(w.call(b.ID)) {
			w.trip(b.ID, b.Checks)
		}
	}
}

func (w *world) trip(id journal.EffectID, checks []journal.Check) {
	check := tripOf(checks)
	if check == nil {
		return
	}
	t := &machine.Trip{Frame: w.name, ID: id, Check: *check}
	if w.tripped == nil {
		w.tripped = t
	}
	if w.closed() {
		w.hit("M19.11 in a closed frame")
		return
	}
	in := w
	for in.outer != nil && !in.caller.spec.TellFailure {
		in = in.outer
		in.tripped = t
	}
	if in.outer == nil {
		w.hit("M19.11 the run")
		w.failure, w.failedIn = nil, ""
	} else {
		w.hit("M19.12 told")
		in.caller.failed = &journal.Failed{ID: id, Code: machine.CodeTripped}
	}
	in.close()
}

// underVerdict says that a verdict is open on what the frame said, or that it tripped [M19.9].
func (w *world) underVerdict() bool {
	n, _ := w.held()
	return w.tripped != nil || w.unchecked() || n > 0
}

// takeBackOpen is M19.9, before the frame is closed.
func (w *world) takeBackOpen() {
	if w.start == nil || w.closed() || !w.underVerdict() {
		return
	}
	from := w.released()
	for _, r := range w.responses {
		if r.start >= from {
			w.takeBack(r)
		}
	}
	if w.handled != nil && w.handledAt >= from {
		w.hit("M19.9 a handler's message")
		w.places[w.handledAt].dropped = true
	}
}

func (w *world) takeBack(r *response) {
	n, _ := w.held()
	end := w.ownEnd()
	for i, it := range r.items {
		if known(it.Type(), item.TypeMessage, item.TypeReasoning) {
			w.hit("M19.9 dropped")
			w.places[r.start+i].dropped = true
		}
	}
	for _, c := range r.calls {
		if n > 0 && end != nil && r == w.response() && c.place == end.At {
			w.hit("M19.9 an output is replaced")
			c.withheld = true
		}
	}
}

// readVerdicts reads what guardrails and handlers said, and input that came.
func (w *world) readVerdicts(m moment) {
	switch b := m.fact.Body.(type) {
	case *journal.Checked:
		w.verdicts[b.ID] = true
		if b.ID.Kind == journal.EffectCheck {
			c := w.call(b.ID)
			c.events = append(c.events, m)
		}
	case *journal.Handled:
		w.readHandled(b)
	case *journal.Added:
		w.added = append(w.added, b)
	case *journal.Admitted:
		w.hit("M21.2 admitted")
		w.extra(w.added[w.admitted].Items...)
		w.admitted++
	case *journal.Observed:
		w.observed = b.N
	}
}

// settledNewest says that the newest response is planned and has no open call.
func (w *world) settledNewest() bool {
	r := w.response()
	return r != nil && r.plan != nil && !w.anyOpen()
}

// extra puts items in the history that are no response's.
func (w *world) extra(items ...item.Item) {
	for _, it := range items {
		w.places = append(w.places, place{item: it, extra: true})
	}
}

// readHandled is M20.4.
func (w *world) readHandled(b *journal.Handled) {
	kind, _ := w.unhandled()
	switch {
	case w.closed():
	case b.Declined:
		w.hit("M20.4 declined")
		w.fail(&journal.Failed{ID: journal.EffectID{Kind: journal.EffectHandle, N: b.N, A: 1}, Code: string(kind)})
	default:
		w.hit("M20.4 " + string(kind))
		w.handled, w.handledAt, w.handledFrom = b, -1, len(w.places)
		if b.N == w.response().n {
			w.handledFrom = w.response().start
		}
		if !b.Item.IsZero() {
			w.handledAt = len(w.places)
			w.extra(b.Item)
		}
	}
}

// failed is M20.1.
func (w *world) failed() bool {
	r := w.response()
	return r != nil && r.plan != nil && !w.followed() && known(r.plan.Final, journal.FinalRefusal, journal.FinalInvalid)
}

func (w *world) outOfTurns() bool { return w.maxTurns > 0 && len(w.turns) >= w.maxTurns }

// unhandled is M20.2.
func (w *world) unhandled() (kind journal.Handles, n int) {
	r, t := w.response(), w.turn()
	if w.handled != nil || r == nil || r.plan == nil || w.anyOpen() || w.verdictDue() || w.end() != nil || t.open || t.repeat {
		return "", 0
	}
	switch {
	case w.failed() && r.plan.Final == journal.FinalRefusal:
		return journal.HandlesRefusal, r.n
	case w.failed():
		return journal.HandlesInvalid, r.n
	case w.outOfTurns() && slices.Contains(t.manifest.Handles, journal.HandlesMaxTurns):
		return journal.HandlesMaxTurns, len(w.turns) + 1
	}
	return "", 0
}

func (w *world) handleDue(id journal.EffectID) bool {
	kind, n := w.unhandled()
	return kind != "" && id == journal.EffectID{Kind: journal.EffectHandle, N: n, A: 1}
}

// followed is M21.4: input stands behind the newest response, or is going to.
func (w *world) followed() bool {
	r := w.response()
	return w.pending() || r != nil && len(w.places) > r.end && w.places[r.end].extra
}

func (w *world) pending() bool { return w.admitted < len(w.added) }

// admitDue is M21.2.
func (w *world) admitDue() bool {
	t, r := w.turn(), w.response()
	return w.pending() && w.loaded && !w.batch.open && (t == nil || !t.open && !t.repeat) && !w.outOfTurns() && w.handled == nil &&
		(r == nil || r.plan != nil && !w.anyOpen() && !w.verdictDue())
}

// pendingGuarded is M21.3.
func (w *world) pendingGuarded() bool {
	guarded := w.start.Guards != ""
	if t := w.turn(); t != nil {
		guarded = t.manifest.GuardsInput
	}
	return guarded && !w.verdicts[guardOf(w.admitted+1, 0)]
}

// askedFor says that a verdict of that id is due [M19.8].
func (w *world) askedFor(id journal.EffectID) bool {
	if id.A != 1 {
		return false
	}
	switch id.Kind {
	case journal.EffectGuard:
		if id.N == 0 {
			return known(id.P, 0, 1) && w.inputDue(id.P)
		}
		return w.admitDue() && w.pendingGuarded() && id == guardOf(w.admitted+1, 0)
	case journal.EffectOutput:
		n, _ := w.held()
		return w.outputDue() && id.N == n && id.P == 0
	case journal.EffectCheck:
		c := w.call(id)
		return c != nil && c.spec.Guarded && w.state(c).phase == ready && !w.state(c).cleared
	}
	return false
}

// checkVerdicts is M19.8, M20.3, M21.1, M21.2 and M22.1.
func (w *world) checkVerdicts(b journal.Body) answer {
	switch b := b.(type) {
	case *journal.Checked:
		if !w.askedFor(b.ID) {
			return notDue
		}
		rejects := b.ID.Kind == journal.EffectCheck && tripOf(b.Checks) == nil && w.call(b.ID).pairs(b.Output)
		return acceptIf(b.Output.IsZero() || rejects, refuse)
	case *journal.Handled:
		if !w.handleDue(journal.EffectID{Kind: journal.EffectHandle, N: b.N, A: 1}) {
			return notDue
		}
		message := b.Item.Type() == item.TypeMessage && b.Item.Head().Role == "assistant"
		return acceptIf((b.Item.IsZero() || message) && (!b.Declined || b.Text == "" && b.Item.IsZero()), refuse)
	case *journal.Added:
		kind, _ := w.unhandled()
		outputs, calls := couple(b.Items)
		sound := len(b.Items) > 0 && len(outputs)+len(calls) == 0 && !slices.ContainsFunc(b.Items, item.Item.IsZero)
		return acceptIf(sound && w.outer == nil && !w.closed() && !w.outOfTurns() && w.end() == nil && kind == "", refuse)
	case *journal.Admitted:
		return acceptIf(w.admitDue() && !w.closed() && !w.pendingGuarded() && b.N == w.admitted+1, refuse)
	case *journal.Observed:
		return acceptIf(b.N > w.observed && b.N <= uint64(w.facts), refuse)
	}
	return refuse
}
