package machine_test

import (
	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

func (w *world) readFailed(m moment, b *journal.Failed) {
	if t := w.turn(); t != nil && b.ID == t.effect() {
		t.retryAt = b.RetryAt
		if b.Unknown && w.unrepeatable() {
			w.hit("M5.6 in doubt")
			t.doubt = true
		} else {
			t.open, t.doubt, t.repeat = false, false, true
			w.count(nil)
		}
	}
	if w.batch.open && b.ID == w.batch.effect() {
		w.hit("M10.7 an append failed")
		w.batch.doubt = true
	}
	ofSession := b.ID.Kind == journal.EffectSession || b.ID.Kind == journal.EffectReconcile && b.ID.P == 1
	switch {
	case b.RetryAt != 0:
	case w.closed() && !ofSession:
		w.hit("M11.1 no failure of a cancelled run")
	case w.toldOfItsCall(m, b):
	default:
		w.fail(b)
	}
}

// readExpired is M9.19.
func (w *world) readExpired(b *journal.Expired) {
	c := w.call(b.Call)
	switch {
	case !c.spec.ExpiryFails:
		w.hit("M9.18 rejected by the deadline")
	default:
		w.hit("M9.19 the run fails")
		w.fail(&journal.Failed{ID: c.id, Code: machine.CodeExpired})
	}
}

func (t *turn) effect() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectModel, N: t.prepared.N, A: t.attempt}
}

func (b batch) effect() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectSession, N: b.n, A: b.attempt}
}

// count is M5.9.
func (w *world) count(u *journal.Usage) {
	w.usage.Requests++
	if u == nil {
		w.usage.Unreported++
		return
	}
	w.usage.Input += u.Input
	w.usage.Cached += u.Cached
	w.usage.Output += u.Output
	w.usage.Reasoning += u.Reasoning
	w.usage.Total += u.Total
}

// readRequest follows the newest turn's request through its attempts [M5, M6].
func (w *world) readRequest(b journal.Body) {
	t := w.turn()
	switch b := b.(type) {
	case *journal.Prepared:
		t := &turn{prepared: b, manifest: b.Manifest, recorded: b.Same, attempt: 1, open: true}
		if b.Manifest == nil {
			t.manifest = w.turns[b.Same-1].manifest
		}
		if t.approves = w.approves(b.Upto); t.approves {
			w.hit("M5.11 a request with an approval")
		}
		if w.managed() {
			t.previous = w.previous
		}
		t.view, t.from = w.covers()
		if len(b.View) > 0 {
			w.hit("M18.9 a view")
			t.view, t.from = b.View, b.Upto
		}
		w.turns = append(w.turns, t)
	case *journal.Intended:
		if b.ID.Kind == journal.EffectModel {
			if t.doubt {
				w.hit("M5.9 counted by the next attempt")
				w.count(nil)
			}
			t.attempt, t.open, t.doubt, t.repeat, t.retryAt = b.ID.A, true, false, false, 0
		}
	case *journal.Absent:
		if b.ID.Kind == journal.EffectModel {
			w.hit("M5.7 absent")
			w.count(nil)
			t.open, t.doubt, t.repeat = false, false, true
		}
	case *journal.Fired:
		if t != nil && t.repeat && b.ID == t.wait() {
			w.hit("M5.10 fired")
			t.retryAt = 0
		}
	case *journal.Responded:
		w.count(b.Usage)
		t.open, t.doubt = false, false
		r := &response{n: len(w.responses) + 1, start: len(w.places), items: b.Items, manifest: t.manifest}
		for _, it := range b.Items {
			w.places = append(w.places, place{item: it})
		}
		r.end = len(w.places)
		w.responses = append(w.responses, r)
		if w.managed() && (w.start.Conversation != "" || b.ResponseID != "") {
			w.chain = r.end
			for _, i := range t.places() {
				w.delivered[i] = true
			}
			for i := r.start; i < r.end; i++ {
				w.delivered[i] = true
			}
		} else if w.managed() {
			w.hit("M6.4 a response without an id")
		}
		if b.ResponseID != "" {
			w.responseID = b.ResponseID
			if w.start.Conversation == "" {
				w.previous = b.ResponseID
			}
		}
	}
}

func (t *turn) wait() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectWait, N: t.prepared.N, A: t.attempt}
}

func (w *world) readBatch(b journal.Body) {
	switch b := b.(type) {
	case *journal.Intended:
		if b.ID.Kind == journal.EffectSession {
			w.batch = batch{open: true, n: b.ID.N, upto: b.Upto, attempt: b.ID.A}
		}
	case *journal.Absent:
		if b.ID.Kind == journal.EffectSession {
			w.batch.doubt, w.batch.absent = false, true
		}
	}
}

// readPlan is M7.2, M7.3 and M7.5.
func (w *world) readPlan(i int, b *journal.Planned) {
	r := w.response()
	r.plan = b
	for _, p := range b.Calls {
		if p.Twin {
			w.hit("M7.5 a twin")
			w.places[r.start+p.P].dropped = true
			continue
		}
		it := r.items[p.P]
		c := &call{id: journal.EffectID{Kind: journal.EffectTool, N: r.n, P: p.P}, at: i, place: len(w.places),
			item: it, planned: p}
		if tools := len(r.manifest.Tools); p.Tool >= tools {
			w.hit("M7.3 the plan's own tool")
			c.spec = b.Tools[p.Tool-tools]
		} else if p.Tool >= 0 {
			c.spec = r.manifest.Tools[p.Tool]
		}
		r.calls = append(r.calls, c)
		w.places = append(w.places, place{call: c})
	}
	r.end = len(w.places)
	for _, p := range b.Calls {
		w.trip(journal.EffectID{Kind: journal.EffectTool, N: r.n, P: p.P}, p.Checks)
	}
}

// readCalls puts a fact with the calls it is about.
func (w *world) readCalls(m moment) {
	switch b := m.fact.Body.(type) {
	case *journal.Claimed:
		if r := w.response(); r != nil {
			for _, c := range r.calls {
				c.events = append(c.events, m)
			}
		}
	case *journal.Intended:
		if b.ID.Kind == journal.EffectTool {
			c := w.call(b.ID)
			c.events = append(c.events, m)
		}
	case *journal.Settled:
		c := w.call(b.ID)
		c.events = append(c.events, m)
	case *journal.Absent:
		if b.ID.Kind == journal.EffectTool {
			c := w.call(b.ID)
			c.events = append(c.events, m)
		}
	case *journal.Expired:
		c := w.call(b.Call)
		c.events = append(c.events, m)
		if !c.spec.ExpiryFails { // M9.18
			m.fact.Body = &journal.Decided{Call: c.id, Stage: b.Stage, Digest: w.state(c).digest, Verdict: journal.Reject,
				Text: machine.ExpiredText, By: machine.ExpiredBy, At: m.fact.Time}
			c.events = append(c.events, m)
		}
	case *journal.Decided:
		c := w.call(b.Call)
		c.events = append(c.events, m)
		if b.Sticky {
			w.sticky = append(w.sticky, stickyDecision{m.at, c.spec.Identity, b})
		}
	}
}

// asksForSync is M13.2 and M13.4.
func (w *world) asksForSync(f journal.Fact) bool {
	switch b := f.Body.(type) {
	case *journal.Started, *journal.Finished:
		return w.outer == nil
	case *journal.Claimed, *journal.Resumed, *journal.Loaded, *journal.Planned, *journal.Judged, *journal.Fired, *journal.Checked,
		*journal.Handled, *journal.Admitted, *journal.Observed:
		return false
	case *journal.Prepared, *journal.Responded:
		return w.unrepeatable()
	case *journal.Intended:
		return b.ID.Kind != journal.EffectModel || w.unrepeatable()
	}
	return true
}
