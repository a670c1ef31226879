package machine

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// handoff says that the call hands the conversation to another agent: it has no body.
func (c *call) handoff() bool { return c.spec != nil && c.spec.Handoff != "" }

// handoffs counts the handoffs of a plan that it does not settle itself [M18.2].
func (f *Frame) handoffs(b *journal.Planned) (n int) {
	r := f.last()
	for i := range b.Calls {
		pc := &b.Calls[i]
		settled := pc.Twin || !pc.Output.IsZero() && pc.Gate == journal.Allow
		if spec := r.toolOf(b, pc); spec != nil && spec.Handoff != "" && !settled {
			n++
		}
	}
	return n
}

// transferID is the effect that asks what a handoff's target is to see.
func transferID(c *call) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectTransfer, N: c.id.N, P: c.id.P, A: 1}
}

// transferDue says that a handoff may start and that nothing else of its response is open
// [M18.3].
func (f *Frame) transferDue(c *call) bool {
	return c.handoff() && c.state == callReady && f.cleared(c) && f.responses[c.id.N-1].unsettled == 1
}

// transferOf is the due handoff of an effect id, nil if there is none.
func (f *Frame) transferOf(id journal.EffectID) *call {
	c := f.find(journal.EffectID{Kind: journal.EffectTool, N: id.N, P: id.P})
	if c == nil || !f.transferDue(c) || id != transferID(c) {
		return nil
	}
	return c
}

// [M18.4]
func (f *Frame) checkTransferred(b *journal.Transferred) error {
	c := f.transferOf(journal.EffectID{Kind: journal.EffectTransfer, N: b.N, P: b.P, A: 1})
	switch {
	case c == nil:
		return notDue("response %d waits for no handoff at %d", b.N, b.P)
	case b.Agent == "":
		return notDue("a handoff needs an agent")
	case !pairs(c.kind, c.callID, b.Output):
		return notDue("the output is not for call %s", c.id)
	case len(b.View) > 0 && f.managed():
		return notDue("the server keeps the history: a handoff cannot change it")
	}
	places := f.Places(len(f.history))
	places[c.out] = b.Output
	return checkView(b.View, places, f.unsent(len(places)))
}

// foldTransferred settles the handoff: the conversation is the other agent's [M18.5].
func (f *Frame) foldTransferred(b *journal.Transferred) {
	r := f.last()
	r.transferred, f.agent = true, b.Agent
	f.settle(r, f.find(journal.EffectID{Kind: journal.EffectTool, N: b.N, P: b.P}), journal.Done, b.Output)
	f.see(b.View)
}

// Agent returns the key of the agent that has the conversation [M18.6].
func (f *Frame) Agent() string { return f.agent }

// Activates says that a turn that is prepared is the first one of its agent since that got the
// conversation [M18.11].
func (f *Frame) Activates(turn int) bool { return turn == 1 || f.responses[turn-2].transferred }

// HandedOver returns what there is to be read once the handoff of a call is settled with that
// output: a view, then the history from a place on. The newest response begins at the place
// response.
func (f *Frame) HandedOver(call journal.EffectID, out item.Item) (view []journal.Span, from, response int, places []item.Item) {
	view, from = f.base()
	places = f.Places(len(f.history))
	places[f.find(call).out] = out
	return view, from, f.last().first, places
}
