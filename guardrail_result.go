package pawl

import (
	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// GuardrailResult is what a guardrail said.
type GuardrailResult struct {
	Stage GuardrailStage
	// Guardrail is its name, Agent the key of the agent that it was asked for.
	Guardrail, Agent string
	// Tool and CallID name the call, at the stages of tools.
	Tool, CallID string
	// Tripped says that it ended the run, Rejected that the model read its message instead
	// of the output of the call.
	Tripped, Rejected bool
	// Info is what it had to say about it, as JSON, empty for nil.
	Info string
}

// Guardrails returns what guardrails have said in the run and in the runs nested in it, see
// RunState.Guardrails.
func (r *Result) Guardrails() []GuardrailResult { return r.state.Guardrails() }

// Guardrails returns what guardrails have said in the run and in the runs nested in it, in the
// order in which that was recorded; those of one stage in the order in which they are declared.
// Of guardrails that gave no verdict, or that were stopped because another one had tripped,
// there is nothing. It is read from the ledger, each time.
func (s *RunState) Guardrails() []GuardrailResult {
	var list []GuardrailResult
	m := machine.New()
	for _, rec := range s.records.list() {
		f, err := journal.Decode(rec)
		if err == nil {
			err = m.Replay(f)
		}
		if err != nil {
			return list // it was read before: this does not happen
		}
		frame := m.Frame(f.Frame)
		add := func(id journal.EffectID, checks []journal.Check) {
			for _, c := range checks {
				list = append(list, guardrailResult(frame, id, c))
			}
		}
		switch b := f.Body.(type) {
		case *journal.Checked:
			add(b.ID, b.Checks)
		case *journal.Planned:
			for i := range b.Calls {
				add(journal.EffectID{Kind: journal.EffectTool, N: b.N, P: b.Calls[i].P}, b.Calls[i].Checks)
			}
		case *journal.Settled:
			if !b.Late {
				add(b.ID, b.Checks)
			}
		}
	}
	return list
}

// guardrailResult describes what a guardrail said under an id: that of the effect that asked
// it, or of the call or the attempt that it was about.
func guardrailResult(f *machine.Frame, id journal.EffectID, c journal.Check) GuardrailResult {
	r := GuardrailResult{Guardrail: c.Name, Agent: f.Agent(), Tripped: c.Tripped, Rejected: c.Rejected, Info: c.Info}
	switch {
	case id.Kind == journal.EffectGuard:
		r.Stage = StageInput
		return r
	case id.Kind == journal.EffectOutput:
		r.Stage = StageOutput
		return r
	case id.Kind == journal.EffectTool && id.A > 0:
		r.Stage = StageToolOutput
	default:
		r.Stage = StageToolInput
	}
	info, _ := f.Call(callOf(id))
	r.Agent, r.Tool, r.CallID = f.ManifestOf(id.N).Agent, info.Spec.Name, info.CallID
	return r
}

// tripwire is the error of what ended a run, or a nested one.
func tripwire(m *machine.Machine, t *machine.Trip) error {
	r := guardrailResult(m.Frame(t.Frame), t.ID, t.Check)
	return &TripwireError{Stage: r.Stage, Guardrail: r.Guardrail, Agent: r.Agent, Tool: r.Tool, CallID: r.CallID, Info: r.Info}
}

// endError is the error of a run that was cancelled, or that a guardrail ended; nil for others.
func endError(m *machine.Machine, s *RunState) error {
	if m.Cancelled() {
		return &RunError{Run: m.Run(), State: s, Err: cancelled(m)}
	}
	if t := m.Tripped(); t != nil && m.Finished() != nil {
		return &RunError{Run: m.Run(), Effect: effectRef{t.Frame, t.ID}.String(), State: s, Err: tripwire(m, t)}
	}
	return nil
}
