package machine

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// asked are the ids under which guardrails and handlers are asked, or were.
func asked(d *dice, f *Frame) journal.EffectID {
	ids := []journal.EffectID{guardID(0, guardBlocking), guardID(0, guardParallel), guardID(f.admitted+1, 0)}
	if n, _ := f.candidate(); n > 0 {
		ids = append(ids, effect(journal.EffectOutput, n))
	}
	if kind, n := f.Unhandled(); kind != "" {
		ids = append(ids, effect(journal.EffectHandle, n))
	}
	if r := f.last(); r != nil {
		for _, c := range r.calls {
			ids = append(ids, checkID(c))
		}
	}
	if due := slices.DeleteFunc(slices.Clone(ids), func(id journal.EffectID) bool { return !f.verdictDue(id) && !f.handleDue(id) }); len(due) > 0 && d.roll(4) > 0 {
		ids = due
	}
	return ids[d.roll(len(ids))]
}

// guardedCall says that a call waits for its guardrails.
func (f *Frame) guardedCall() bool {
	r := f.last()
	return r != nil && slices.ContainsFunc(r.calls, func(c *call) bool { return c.state == callReady && c.guarded() })
}

// handleWaits says that an error or a candidate waits for somebody.
func (f *Frame) handleWaits() bool {
	kind, _ := f.Unhandled()
	_, output := f.outputDue()
	return kind != "" || output
}

// randomSaid describes what guardrails or a handler said.
func randomSaid(d *dice, f *Frame) journal.Body {
	id := asked(d, f)
	if id.Kind == journal.EffectHandle {
		return randomHandled(d, id)
	}
	b := &journal.Checked{ID: id, Checks: []journal.Check{{Name: "g", Tripped: d.roll(16) == 1}}}
	if c := f.callOf(id); id.Kind == journal.EffectCheck && c != nil && d.roll(4) == 1 {
		b.Output = f.output(c, "guarded")
	}
	return b
}

func randomHandled(d *dice, id journal.EffectID) journal.Body {
	switch b := (&journal.Handled{N: id.N, Text: "handled"}); d.roll(4) {
	case 0:
		return &journal.Handled{N: id.N, Declined: true}
	case 1:
		b.Item = fuzzItems[d.roll(len(fuzzItems))]
		return b
	default:
		return b
	}
}

// randomAdded describes pending input, and what follows from it.
func randomAdded(d *dice, f *Frame) journal.Body {
	switch d.roll(4) {
	case 0:
		return &journal.Admitted{N: f.admitted + d.roll(3)}
	case 1:
		return &journal.Observed{N: f.m.observed + uint64(d.roll(4))}
	}
	return &journal.Added{Items: randomItems(d), By: "ann"}
}

func randomGuards(d *dice) journal.Guards {
	return pick(d, journal.GuardsNone, journal.GuardsNone, journal.GuardsBlocking, journal.GuardsParallel, journal.GuardsBoth)
}

func randomManifestGuards(d *dice, f *Frame, man *journal.Manifest) {
	man.GuardsInput, man.GuardsOutput = d.flip(), d.flip() && (!f.managed() || d.roll(16) == 1)
	if d.flip() {
		man.Handles = []journal.Handles{journal.HandlesMaxTurns, journal.HandlesRefusal, journal.HandlesInvalid}
	}
}

// said is what a live driver's guardrails and handlers say.
func (l *live) said(f *Frame, e Effect) journal.Body {
	d := &l.d
	if e.ID.Kind == journal.EffectHandle {
		b := &journal.Handled{N: e.ID.N, Text: "handled"}
		if d.flip() {
			b.Item = item.MessageItem("", "handled")
		}
		return b
	}
	b := &journal.Checked{ID: e.ID, Checks: []journal.Check{{Name: "g", Tripped: d.roll(24) == 1}}}
	if c := f.callOf(e.ID); e.ID.Kind == journal.EffectCheck && c != nil && tripped(b.Checks) == nil && d.roll(4) == 1 {
		b.Output = f.output(c, "guarded")
	}
	return b
}
