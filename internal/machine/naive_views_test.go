package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// readTransferred is M18.5 to M18.7.
func (w *world) readTransferred(m moment, b *journal.Transferred) {
	w.hit("M18.5 handed over")
	c := w.call(journal.EffectID{N: b.N, P: b.P})
	c.events = append(c.events, m)
	w.agent = b.Agent
	w.setView(b.View)
}

func (w *world) setView(view []journal.Span) {
	if len(view) > 0 {
		w.hit("M18.7 a view")
		w.viewed, w.viewedTo = view, w.mark()
	}
}

// covers is M6.3, M18.7 and M18.9: what a request without a view of its own covers.
func (w *world) covers() (view []journal.Span, from int) {
	if !w.managed() {
		return w.viewed, w.viewedTo
	}
	for i := range w.chain {
		switch n := len(view); {
		case w.delivered[i]:
		case n > 0 && view[n-1].Upto == i:
			view[n-1].Upto++
		default:
			view = append(view, journal.Span{From: i, Upto: i + 1})
		}
	}
	if len(view) > 0 {
		w.hit("M18.9 sent first")
	}
	return view, w.chain
}

// places are those of the history that a turn's request sends.
func (t *turn) places() (out []int) {
	for _, s := range append(slices.Clone(t.view), journal.Span{From: t.from, Upto: t.prepared.Upto}) {
		for i := s.From; i < s.Upto; i++ {
			out = append(out, i)
		}
	}
	return out
}

// shown are the items of places, the zero Item where there is none.
func (w *world) shown() (out []item.Item) {
	for _, p := range w.places {
		switch {
		case p.dropped:
			out = append(out, item.Item{})
		case p.call != nil:
			out = append(out, w.state(p.call).output)
		default:
			out = append(out, p.item)
		}
	}
	return out
}

// couple pairs outputs with calls before them: which outputs have none, and which calls.
func couple(list []item.Item) (outputs, calls []int) {
	for i, it := range list {
		switch {
		case item.IsCall(it.Type()):
			calls = append(calls, i)
		case item.IsOutput(it.Type()):
			at := slices.IndexFunc(calls, func(c int) bool { return pairs(list[c], it) })
			if at < 0 {
				outputs = append(outputs, i)
				continue
			}
			calls = slices.Delete(calls, at, at+1)
		}
	}
	return outputs, calls
}

// canView is M18.8: may these parts be sent, of a history of which the model has some?
func canView(view []journal.Span, history []item.Item, delivered map[int]bool) bool {
	if len(view) == 0 {
		return true
	}
	var list []item.Item
	var from []int // the place, -1 for an item of its own
	for i, it := range history {
		if delivered[i] {
			list, from = append(list, it), append(from, i)
		}
	}
	for _, s := range view {
		if !s.Item.IsZero() {
			if s.From != 0 || s.Upto != 0 {
				return false
			}
			known := slices.ContainsFunc(history, func(it item.Item) bool {
				return it.Type() == s.Item.Type() && it.Head().CallID == s.Item.Head().CallID && it.Head().Name == s.Item.Head().Name
			})
			if item.IsCall(s.Item.Type()) && !known {
				return false
			}
			list, from = append(list, s.Item), append(from, -1)
			continue
		}
		if s.From < 0 || s.From >= s.Upto || s.Upto > len(history) {
			return false
		}
		for i := s.From; i < s.Upto; i++ {
			if slices.Contains(from, i) {
				return false
			}
			list, from = append(list, history[i]), append(from, i)
		}
	}
	orphans, alone := couple(history)
	strays, open := couple(list)
	for _, i := range strays {
		if from[i] < 0 || !slices.Contains(orphans, from[i]) {
			return false
		}
	}
	for _, i := range open {
		same := func(of []item.Item, at []int) (n int) {
			for _, j := range at {
				if of[j].Type() == list[i].Type() && of[j].Head().CallID == list[i].Head().CallID {
					n++
				}
			}
			return n
		}
		if same(list, open) > same(history, alone) {
			return false
		}
	}
	return true
}

// transferDue is M18.3.
func (w *world) transferDue(c *call) bool {
	return c != nil && c.handoff() && w.state(c).phase == ready && w.cleared(c, w.state(c)) && w.openCalls() == 1
}

func (w *world) openCalls() (n int) {
	for _, c := range w.newest() {
		if w.open(c) {
			n++
		}
	}
	return n
}

func (c *call) handoff() bool { return c.spec.Handoff != "" }

func (c *call) transfer() journal.EffectID {
	return journal.EffectID{Kind: journal.EffectTransfer, N: c.id.N, P: c.id.P, A: 1}
}

// checkTransferred is M18.4.
func (w *world) checkTransferred(b *journal.Transferred) answer {
	c := w.call(journal.EffectID{N: b.N, P: b.P})
	if !w.transferDue(c) {
		return notDue
	}
	history := w.shown()
	history[c.place] = b.Output
	return acceptIf(b.Agent != "" && c.pairs(b.Output) && (len(b.View) == 0 || !w.managed()) && canView(b.View, history, nil), refuse)
}

// planHandoffs is M18.2.
func planHandoffs(r *response, b *journal.Planned) (n int) {
	tools := slices.Concat(r.manifest.Tools, b.Tools)
	for _, p := range b.Calls {
		settled := !p.Output.IsZero() && p.Gate == journal.Allow
		if p.Tool >= 0 && !p.Twin && !settled && tools[p.Tool].Handoff != "" {
			n++
		}
	}
	return n
}

func bothKinds(tools []journal.ToolSpec) bool {
	return slices.ContainsFunc(tools, func(t journal.ToolSpec) bool {
		return t.Agent != "" && t.Handoff != "" || t.Hosted && (t.Agent != "" || t.Handoff != "" || t.Guarded)
	})
}

// handedOver says that a handoff of the newest response was transferred.
func (w *world) handedOver() bool {
	return slices.ContainsFunc(w.newest(), func(c *call) bool {
		return c.handoff() && w.state(c).phase == settled && w.state(c).outcome == journal.Done
	})
}

// view draws a view of a history, mostly a sound one.
func (d *draw) view(history []item.Item, delivered map[int]bool) (view []journal.Span) {
	if !d.seldom(2, "a view") || len(history) == 0 {
		return nil
	}
	cut := pick(d, "cut", 0, 1, len(history)-1)
	switch pick(d, "view", "all", "from", "calls", "odd") {
	case "from":
		view = []journal.Span{{From: cut, Upto: len(history)}}
	case "calls": // without them
		view = []journal.Span{{Item: item.UserText(d.next("summary "))}}
		for i, it := range history {
			if !delivered[i] && !item.IsCall(it.Type()) && !item.IsOutput(it.Type()) {
				view = append(view, journal.Span{From: i, Upto: i + 1})
			}
		}
	case "odd":
		view = []journal.Span{{From: cut, Upto: len(history) + pick(d, "upto", 0, 1)}, {From: pick(d, "again", 0, cut), Upto: len(history) - 1}}
	default:
		for i := range history {
			if !delivered[i] {
				view = append(view, journal.Span{From: i, Upto: i + 1})
			}
		}
	}
	if d.seldom(2, "own item") {
		own := append(slices.Clone(history), item.UserText("own"), item.FunctionCallItem("", "invented", "pay", "{}"), item.FunctionOutput("invented", ""))
		view = slices.Insert(view, pick(d, "at", 0, len(view)), journal.Span{Item: pick(d, "own", own...), From: pick(d, "from", 0, 0, 1)})
	}
	return view
}

func (d *draw) transferred(w *world, id journal.EffectID) *journal.Transferred {
	b := &journal.Transferred{N: id.N, P: id.P, Agent: pick(d, "agent", "b", "a", "c"), Output: item.UserText("stray")}
	c := w.call(id)
	if c == nil {
		return b
	}
	b.Output = c.answer(d.next("handed over "))
	if !w.managed() || d.seldom(3, "managed") {
		history := w.shown()
		history[c.place] = b.Output
		b.View = d.view(history, nil)
	}
	return b
}

// strayTransferred draws one and spoils it.
func (d *draw) strayTransferred(w *world) *journal.Transferred {
	b := d.transferred(w, d.callID(w, 0))
	switch pick(d, "wrong", "nothing", "agent", "output") {
	case "agent":
		b.Agent = ""
	case "output":
		b.Output = item.FunctionOutput("another", "")
	}
	return b
}
