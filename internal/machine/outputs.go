package machine

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// The texts the model reads when a call has no output of its own.
const (
	RejectedText  = "Tool execution was not approved."
	CancelledText = "The tool was not executed: the run was cancelled."
)

// UnknownText tells the model that a call's outcome is unknown, and the key under
// which the call was made.
func UnknownText(key string) string {
	return "The outcome of this tool call is unknown: it may or may not have taken effect. " +
		"Do not assume that it failed. Its idempotency key is " + key + "."
}

// output builds the output item of a call.
func (m *Machine) output(c *call, text string) item.Item {
	it := m.history[c.slot].item
	if cc, err := it.CustomToolCall(); err == nil {
		return cc.Output(text)
	}
	fc, err := it.FunctionCall()
	if err != nil {
		return item.FunctionOutput(c.callID, text)
	}
	return fc.Output(text)
}

// settleDecided settles a call by its verdict, or by its plan when a rule denied
// it or a plain approval met unreadable arguments [M9].
func (m *Machine) settleDecided(c *call) {
	s := &journal.Settled{ID: c.id, Outcome: journal.Rejected}
	v := c.verdict
	switch {
	case v == nil && !c.plan.Output.IsZero() && c.plan.Gate != journal.Deny:
		s.Output = c.plan.Output
	case v != nil && v.Verdict == journal.Settle:
		s.Outcome, s.Output = journal.Decreed, m.output(c, v.Text)
	case v != nil && v.Verdict == journal.GiveUp:
		s.Outcome, s.Output = journal.Unknown, m.output(c, UnknownText(m.Key(c)))
	case v != nil && v.Text != "":
		s.Output = m.output(c, v.Text)
	case c.plan.Reject != "":
		s.Output = m.output(c, c.plan.Reject)
	default:
		s.Output = m.output(c, RejectedText)
	}
	m.emit(m.fact(s))
}

// settleCancelled settles an open call of a cancelled run [M15].
func (m *Machine) settleCancelled(c *call) {
	s := &journal.Settled{ID: c.id, Outcome: journal.Dropped, Output: m.output(c, CancelledText)}
	if c.state == callDoubt || c.unknown > 0 {
		s.Outcome, s.Output = journal.Unknown, m.output(c, UnknownText(m.Key(c)))
	}
	m.emit(m.fact(s))
}
