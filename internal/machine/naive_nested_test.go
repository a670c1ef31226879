package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// effectOf is an effect of a frame.
type effectOf struct {
	frame string
	id    journal.EffectID
}

// flying is an effect in flight in a frame.
type flying struct {
	in *world
	id journal.EffectID
}

func (w *whole) flying() (out []flying) {
	for _, in := range w.frames {
		for _, id := range in.flight {
			out = append(out, flying{in, id})
		}
	}
	return out
}

// frameOf is the frame of an effect's outcome.
func (e flying) frameOf(b journal.Body) string {
	if _, ok := b.(*journal.Started); ok {
		return e.in.inside(e.in.call(e.id))
	}
	return e.in.name
}

// somewhere draws an open frame.
func (p *player) somewhere() *world {
	w := p.n.read()
	return w.frame(pick(p.draw, "where", w.openFrames()...))
}

// nested draws the start of a nested run.
func (d *draw) nested(c *call) *journal.Started {
	b := &journal.Started{Agent: c.spec.Agent, Input: []item.Item{item.UserText(d.next("input "))},
		MaxTurns: pick(d, "max turns", 0, 0, 1, 3), Parallel: pick(d, "parallel", 0, 1), UniqueCallIDs: d.maybe("unique"), Guards: d.guards()}
	switch pick(d, "mode", "plain", "plain", "plain", "session", "conversation", "previous", "auto") {
	case "session":
		b.Session = d.session()
	case "conversation":
		b.Conversation = d.next("conv")
	case "previous":
		b.Previous = d.next("p")
	case "auto":
		b.Auto = true
	}
	return b
}

// left draws what a nested run that ended comes to.
func (d *draw) left(w *world, id journal.EffectID) journal.Body {
	c := w.call(id)
	b := &journal.Settled{ID: c.id, Output: c.answer(d.next("left "))}
	b.ID.A = 1
	if c.failed != nil {
		b.Outcome = journal.ToolFailed
	}
	return b
}

// strayNested draws the start of a nested run that may not be due, or has something wrong.
func (d *draw) strayNested(w *world, otherwise journal.Body) (string, journal.Body) {
	var calls []*call
	for _, c := range w.newest() {
		if c.spec.Agent != "" || d.seldom(3, "no agent") {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return w.name, otherwise
	}
	c := pick(d, "call", calls...)
	b := d.nested(c)
	switch pick(d, "wrong", "nothing", "run", "agent", "machine", "session", "conversation", "previous") {
	case "run":
		b.Run = "r"
	case "agent":
		b.Agent += "x"
	case "machine":
		b.Machine = machine.Version + 1
	case "session":
		b.Session = w.session
	case "conversation":
		b.Conversation = w.start.Conversation
	case "previous":
		b.Previous = pick(d, "previous", w.previous, w.start.Previous)
	}
	return w.inside(c), b
}

// descend goes down from run to nested run, for some steps.
func (p *player) descend() {
	frame := ""
	for range pick(p.draw, "steps down", 0, 6, 0, 10, 14) {
		p.ready()
		w := p.n.read().frame(frame)
		if len(w.flight) == 0 {
			return
		}
		id := w.flight[0]
		b := p.well(w, id)
		switch b := b.(type) {
		case *journal.Prepared:
			tools := slices.Clone(p.tools)
			tools[2].TellFailure = p.maybe("told")
			b.Same, b.Manifest = b.N, &journal.Manifest{Agent: w.agent, Tools: tools}
		case *journal.Responded:
			b.Items = []item.Item{item.FunctionCallItem("", p.next("c"), "boss", "{}"), p.call(w, nil)}
		case *journal.Planned:
			b.Calls[0].Gate, b.Calls[0].Output = journal.Allow, item.Item{}
		}
		e := flying{w, id}
		if b == nil || !p.doIn(e.frameOf(b), b) {
			return
		}
		frame = e.frameOf(b)
	}
}
