package machine

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// The texts the model reads when a call has no output of its own.
const (
	RejectedText  = "Tool execution was not approved."
	CancelledText = "The tool was not executed: the run was cancelled."
	StoppedText   = "The agent was stopped before it had finished. What its tools had done is not undone."
	WithheldText  = "The output of this tool call was withheld by a guardrail."
	ExpiredText   = "Tool execution was not approved: the approval expired, nobody decided in time."
)

// ExpiredBy is who rejects a call whose approval expired [M9.18].
const ExpiredBy = "the deadline"

// CodeExpired is the code of the failure of a run whose approval expired [M9.19].
const CodeExpired = "approval_expired"

// UnknownText tells the model that a call's outcome is unknown, and the key under
// which the call was made [M8.10].
func UnknownText(key string) string {
	return "The outcome of this tool call is unknown: it may or may not have taken effect. " +
		"Do not assume that it failed. Its idempotency key is " + key + "."
}

// EditedText is what the model reads before the output of a call that ran with other
// arguments than its own; empty if edited is [M9.7].
func EditedText(edited string) string {
	if edited == "" {
		return ""
	}
	return "The reviewer changed the arguments to " + edited + ".\n"
}

// output builds the output item of a call.
func (f *Frame) output(c *call, text string) item.Item {
	it := f.history[c.slot].item
	switch c.kind {
	case item.TypeCustomToolCall:
		if cc, err := it.CustomToolCall(); err == nil {
			return cc.Output(text)
		}
		return item.CustomOutput(c.callID, text)
	case item.TypeMCPApprovalRequest: // what is said in words is no approval
		return item.ApprovalReply(c.callID, false, text)
	}
	if fc, err := it.FunctionCall(); err == nil {
		return fc.Output(text)
	}
	return item.FunctionOutput(c.callID, text)
}

// verdict returns what settles a decided call: the newest decision at a stage above 0,
// else what lets it run or not; nil if the rule denied it.
func (c *call) verdict() *journal.Decided {
	if n := len(c.later); n > 0 {
		return c.later[n-1]
	}
	return c.ruling
}

// ending returns the outcome with which a decided call is settled [M9.10].
func (c *call) ending() journal.Outcome {
	switch v := c.verdict(); {
	case v != nil && v.Verdict == journal.Settle:
		return journal.Decreed
	case v != nil && v.Verdict == journal.GiveUp, c.rejectedLate():
		return journal.Unknown
	}
	return journal.Rejected
}

// rejectedLate says that a decided call was rejected when an attempt may have happened: it had
// asked again.
func (c *call) rejectedLate() bool {
	n := len(c.later)
	return c.exposed && c.spec.Class != journal.ReadOnly && n > 0 && c.later[n-1].Verdict == journal.Reject
}

// [M9.10] A decided call is settled by its verdict.
func (f *Frame) settleDecided(c *call) bool {
	v := c.verdict()
	s := &journal.Settled{ID: c.id, Outcome: c.ending()}
	switch {
	case v != nil && v.Verdict == journal.GiveUp:
		return f.settleUnknown(c)
	case v != nil && v.Verdict == journal.Approve:
		s.Output = c.plan.Output
	case v != nil && v.Verdict == journal.Settle:
		s.Output = f.output(c, EditedText(c.edited)+v.Text)
	case c.rejectedLate():
		s.Output = f.output(c, c.rejection(v)+"\n"+f.unknownText(c))
	default:
		s.Output = f.output(c, c.rejection(v))
	}
	return f.add(s)
}

// rejection is what the model reads of a call that was rejected, or denied.
func (c *call) rejection(v *journal.Decided) string {
	switch {
	case v != nil && v.Text != "":
		return v.Text
	case c.plan.Reject != "":
		return c.plan.Reject
	}
	return RejectedText
}

// [M15.3] An open call of a cancelled run did not run, or nobody knows.
func (f *Frame) settleCancelled(c *call) bool {
	if f.exposed(c) {
		return f.settleUnknown(c)
	}
	return f.add(&journal.Settled{ID: c.id, Outcome: journal.Dropped, Output: f.dropped(c)})
}

// unknownText is what the model reads of a call whose outcome is unknown [M8.10].
func (f *Frame) unknownText(c *call) string {
	return EditedText(c.edited) + UnknownText(f.KeyOf(c.id))
}

func (f *Frame) settleUnknown(c *call) bool {
	return f.add(&journal.Settled{ID: c.id, Outcome: journal.Unknown, Output: f.output(c, f.unknownText(c))})
}
