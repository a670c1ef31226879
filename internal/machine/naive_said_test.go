package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// checks draws what guardrails say.
func (d *draw) checks() []journal.Check {
	checks := []journal.Check{{Name: d.next("guard "), Info: "fine"}}
	if d.seldom(4, "trips") {
		checks = append(checks, journal.Check{Name: d.next("guard "), Tripped: true})
	}
	return checks
}

// checked draws the verdict of guardrails.
func (d *draw) checked(w *world, id journal.EffectID) *journal.Checked {
	b := &journal.Checked{ID: id, Checks: d.checks()}
	if c := w.call(id); id.Kind == journal.EffectCheck && c != nil && tripOf(b.Checks) == nil && d.seldom(2, "rejects") {
		b.Output = c.answer(d.next("guarded "))
	}
	return b
}

// handles draws what an error handler says.
func (d *draw) handles(id journal.EffectID) *journal.Handled {
	b := &journal.Handled{N: id.N}
	switch pick(d, "handler", "text", "message", "declines") {
	case "declines":
		b.Declined = true
	case "message":
		b.Item = d.message()
	}
	if !b.Declined {
		b.Text = d.next("handled ")
	}
	return b
}

func (d *draw) input() *journal.Added {
	return &journal.Added{Items: []item.Item{item.UserText(d.next("more "))}, By: d.next("person ")}
}

// strayVerdict draws what guardrails and handlers might say that nobody asked, and input that cannot be.
func (d *draw) strayVerdict(w *world, kind journal.Kind) journal.Body {
	switch kind {
	case journal.KindChecked:
		id := d.verdictID(w)
		b := d.checked(w, id)
		if d.seldom(2, "an output") {
			b.Output = pick(d, "output", item.FunctionOutput("another", ""), item.UserText(""))
		}
		return b
	case journal.KindHandled:
		_, n := w.unhandled()
		b := d.handles(journal.EffectID{N: max(n, 1) + pick(d, "n", 0, 1)})
		switch pick(d, "wrong", "nothing", "declined", "item") {
		case "declined":
			b.Declined = !b.Declined
		case "item":
			b.Item = pick(d, "item", item.UserText("no"), item.ReasoningItem("", "no"))
		}
		return b
	case journal.KindAdded:
		b := d.input()
		if d.maybe("odd") {
			b.Items = pick(d, "items", nil, []item.Item{item.FunctionOutput("c", "")}, []item.Item{item.FunctionCallItem("", "c", "pay", "{}")}, []item.Item{{}},
				[]item.Item{item.FunctionCallItem("", "c", "pay", "{}"), item.FunctionOutput("c", "")})
		}
		return b
	case journal.KindAdmitted:
		return &journal.Admitted{N: w.admitted + pick(d, "n", 1, 0, 2)}
	}
	return &journal.Observed{N: uint64(max(0, w.facts-pick(d, "facts", 0, 1, -1, 2)))}
}

// verdictID draws the id of a verdict that is due, or nearly.
func (d *draw) verdictID(w *world) journal.EffectID {
	n, _ := w.held()
	call := d.callID(w, 0)
	_, handle := w.unhandled()
	id := pick(d, "verdict", guardOf(0, 0), guardOf(0, 1), guardOf(w.admitted+1, 0), journal.EffectID{Kind: journal.EffectOutput, N: n, A: 1},
		around(call, journal.EffectCheck), journal.EffectID{Kind: journal.EffectHandle, N: handle, A: 1})
	if d.seldom(3, "another attempt") {
		id.A++
	}
	return id
}

// guarded draws the guardrails and handlers of a manifest.
func (d *draw) guarded(w *world, man *journal.Manifest) {
	man.GuardsOutput = (!w.managed() || d.seldom(4, "managed")) && d.maybe("guards output")
	man.GuardsInput = d.maybe("guards input")
	man.Handles = pick(d, "handles", nil, []journal.Handles{journal.HandlesRefusal, journal.HandlesInvalid, journal.HandlesMaxTurns}, []journal.Handles{journal.HandlesMaxTurns})
}

// said is what else is said of a frame.
type said struct {
	Tripped   *machine.Trip
	Candidate *journal.Finished
	Unhandled journal.Handles
	Under     int
	Pending   []*journal.Added
}

func (w *world) said() said {
	s := said{Tripped: w.tripped, Candidate: w.end(), Pending: w.added[w.admitted:]}
	if w.finished != nil {
		s.Candidate = w.finished
	}
	s.Unhandled, s.Under = w.unhandled()
	return s
}

func saidOf(f *machine.Frame) said {
	s := said{Tripped: f.Tripped(), Candidate: f.Candidate(), Pending: slices.Clone(f.Pending())}
	s.Unhandled, s.Under = f.Unhandled()
	return s
}
