package machine

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// Trip says which guardrail ended a run, or a nested one.
type Trip struct {
	// Frame and ID are where the guardrail said so: the effect that asked it, or the call
	// that it was about.
	Frame string
	ID    journal.EffectID
	Check journal.Check
}

// CodeTripped is the code of what a model is told of when a guardrail ended the nested run
// of its call [M19.12].
const CodeTripped = "tripped"

// tripped returns the first guardrail that tripped, nil if none did.
func tripped(checks []journal.Check) *journal.Check {
	i := slices.IndexFunc(checks, func(c journal.Check) bool { return c.Tripped })
	if i < 0 {
		return nil
	}
	return &checks[i]
}

// trip reports whether a guardrail tripped. That ends the frame, and those around it up to
// one whose call is told of it, or else the run [M19.11] [M19.12].
func (f *Frame) trip(id journal.EffectID, checks []journal.Check) bool {
	check := tripped(checks)
	if check == nil {
		return false
	}
	t := &Trip{Frame: f.name, ID: id, Check: *check}
	if f.trips == nil {
		f.trips = t
	}
	if f.closed() {
		return true
	}
	g := f
	for ; g.parent != nil && !g.call.spec.TellFailure; g = g.parent {
		g.parent.trips = t
	}
	if g.parent == nil {
		f.m.failure, f.m.failedIn = nil, ""
	} else {
		g.call.trouble = &journal.Failed{ID: id, Code: CodeTripped, Error: "pawl: guardrail " + check.Name + " tripped"}
	}
	g.close()
	return true
}

// Tripped returns the guardrail that ended the frame, nil if none did.
func (f *Frame) Tripped() *Trip { return f.trips }

// withholdOpen takes back what no guardrail has passed yet, before the frame is closed
// [M19.9].
func (f *Frame) withholdOpen() {
	from := f.released()
	if _, _, held := f.held(); f.closed() || f.trips == nil && !f.unchecked() && !held {
		return
	}
	for _, r := range f.responses {
		if r.first >= from {
			f.withhold(r)
		}
	}
	if f.handled != nil && f.handledAt >= from {
		f.history[f.handledAt].dropped = true
	}
}

// withhold drops what a response says beside its calls; a candidate of the final output
// that is a tool's output is replaced.
func (f *Frame) withhold(r *response) {
	for i := r.first; i < r.end; i++ {
		if t := f.history[i].item.Type(); t == item.TypeMessage || t == item.TypeReasoning {
			f.history[i].dropped = true
		}
	}
	end := r.final()
	if _, _, held := f.held(); !held || end == nil || r != f.last() {
		return
	}
	for _, c := range r.calls {
		if c.out == end.At {
			f.history[c.out].item = f.output(c, WithheldText)
		}
	}
}

// withheld says that a response whose last call was settled in a closed frame is not to be
// seen as it is [M19.9].
func (f *Frame) withheld() bool {
	_, _, held := f.held()
	return f.closed() && (f.trips != nil || f.unchecked() || held)
}
