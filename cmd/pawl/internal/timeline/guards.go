package timeline

import (
	"fmt"

	"github.com/pawl-agents/pawl/journal"
)

// checked tells what guardrails said about what an effect asked them about, or about a call.
func (s *story) checked(id journal.EffectID, checks []journal.Check) {
	about := ""
	switch id.Kind {
	case journal.EffectGuard:
		about = "the input"
	case journal.EffectOutput:
		about = "the final output"
	case journal.EffectCheck:
		id.Kind, id.A = journal.EffectTool, 0
		fallthrough
	case journal.EffectTool:
		if about = s.effect(id); id.A > 0 {
			about = "the output of " + about
		}
	}
	for _, c := range checks {
		what := "lets " + about + " pass"
		switch {
		case c.Tripped:
			what = "trips on " + about
		case c.Rejected:
			what = "rejects " + about
		}
		s.add("guardrail", "%s %s%s", c.Name, what, quoted(c.Info))
	}
}

// guardWord names an effect that asks guardrails.
func guardWord(id journal.EffectID) (string, bool) {
	switch id.Kind {
	case journal.EffectGuard:
		return "the guardrails on the input", true
	case journal.EffectOutput:
		return "the guardrails on the final output", true
	case journal.EffectCheck:
		return fmt.Sprintf("the guardrails on call %d.%d", id.N, id.P), true
	}
	return "", false
}
