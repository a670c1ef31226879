package machine

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// checkPlanned checks that the plan names every call of the response once, in order
// [M7.1].
func (f *Frame) checkPlanned(b *journal.Planned) error {
	r := f.last()
	if r == nil || r.n != b.N || r.planned != nil {
		return notDue("response %d waits for no plan", b.N)
	}
	var ids map[string]named
	if len(b.Calls) > 1 {
		ids = make(map[string]named, len(b.Calls))
	}
	items := f.history[r.first:r.end]
	next := 0
	for i := range items {
		head := &f.heads[i]
		planned := next < len(b.Calls) && b.Calls[next].P == i
		if needsOutput(items[i].item, head.Type) != planned {
			return notDue("the item at %d of response %d is not planned as what it is", i, b.N)
		}
		if !planned {
			continue
		}
		pc := &b.Calls[next]
		if pc.Tool >= len(r.manifest.Tools)+len(b.Tools) { // [M7.3]
			return notDue("no tool for the call at %d of response %d", i, r.n)
		}
		if err := checkKind(r, head, pc, r.toolOf(b, pc)); err != nil {
			return err
		}
		if err := f.checkPlannedCall(r, head, pc, ids); err != nil {
			return err
		}
		next++
	}
	if next < len(b.Calls) {
		return notDue("response %d has no call at %d", b.N, b.Calls[next].P)
	}
	if err := checkTools(b.Tools); err != nil {
		return err
	}
	if f.handoffs(b) > 1 { // [M18.2]
		return notDue("response %d has two handoffs", b.N)
	}
	return checkFinal(b, items, r.manifest)
}

// needsOutput is Item.NeedsOutput of an item whose type is known.
func needsOutput(it item.Item, t item.Type) bool {
	return t == item.TypeFunctionCall || item.IsCall(t) && it.NeedsOutput()
}

// [M7.8]
func checkFinal(b *journal.Planned, items []slot, man *journal.Manifest) error {
	if b.Final == journal.FinalNone {
		return nil
	}
	ok := len(b.Calls) == 0
	message := b.FinalAt >= 0 && b.FinalAt < len(items) && items[b.FinalAt].item.Type() == item.TypeMessage
	switch b.Final {
	case journal.FinalEmpty:
	case journal.FinalMessage:
		ok = ok && message
	case journal.FinalRefusal: // [M20.1]
		ok = ok && message && handles(man, journal.HandlesRefusal)
	case journal.FinalInvalid:
		ok = ok && (message || b.FinalAt == -1) && handles(man, journal.HandlesInvalid)
	default:
		ok = false
	}
	if !ok {
		return notDue("response %d is not final so", b.N)
	}
	return nil
}

// named is a call under a call id.
type named struct {
	tool   string
	digest item.Digest
}

// toolOf returns the tool that a planned call names, nil without one.
func (r *response) toolOf(b *journal.Planned, pc *journal.PlannedCall) *journal.ToolSpec {
	switch offered := len(r.manifest.Tools); {
	case pc.Tool < 0:
		return nil
	case pc.Tool < offered:
		return &r.manifest.Tools[pc.Tool]
	default:
		return &b.Tools[pc.Tool-offered]
	}
}

// checkKind checks that a call can be planned as what it is [M7.3] [M7.10].
func checkKind(r *response, head *item.Head, pc *journal.PlannedCall, spec *journal.ToolSpec) error {
	hosted := spec != nil && spec.Hosted
	switch head.Type {
	case item.TypeFunctionCall, item.TypeCustomToolCall:
		if pc.Tool >= -1 && !hosted {
			return nil
		}
	case item.TypeMCPApprovalRequest:
		if hosted && !pc.Unreadable {
			return nil
		}
	}
	return notDue("no tool for the %s at %d of response %d", head.Type, pc.P, r.n)
}

// checkPlannedCall checks one call; ids are those of the calls before it, nil if there
// is only this one.
func (f *Frame) checkPlannedCall(r *response, head *item.Head, pc *journal.PlannedCall, ids map[string]named) error {
	switch {
	case pc.Gate != journal.Allow && pc.Gate != journal.Ask && pc.Gate != journal.Deny:
		return notDue("gate %q", pc.Gate)
	}
	self := named{head.Name, pc.Digest}
	first, known := ids[head.CallID]
	c := f.seen[head.CallID]
	settled := !pc.Output.IsZero()
	if pc.Twin { // [M7.5]
		if known && first == self && !settled {
			return nil
		}
		return notDue("the call at %d of response %d is no twin", pc.P, r.n)
	}
	if ids != nil {
		ids[head.CallID] = self
	}
	switch {
	case pc.Tool == -1 && (!settled || pc.Gate != journal.Allow): // [M7.3]
		return notDue("the call at %d of response %d has no tool and no output", pc.P, r.n)
	case pc.Unreadable && !settled, settled && !pc.Unreadable && pc.Gate != journal.Allow: // [M7.4]
		return notDue("the output planned for the call at %d of response %d", pc.P, r.n)
	case settled && c == nil && head.Type == item.TypeMCPApprovalRequest: // [M7.10]
		return notDue("the plan answers the request at %d of response %d", pc.P, r.n)
	case settled && !pairs(head.Type, head.CallID, pc.Output):
		return notDue("the output at %d of response %d is for another call", pc.P, r.n)
	case known, c != nil && self != named{f.toolName(c), c.plan.Digest}: // [M7.6]
		return notDue("the call id at %d of response %d was used before", pc.P, r.n)
	case c != nil && (pc.Gate != journal.Allow || pc.Output != f.history[c.out].item):
		return notDue("the call at %d of response %d is not answered from the record", pc.P, r.n)
	}
	return nil
}

// pairs says that out answers a call of that type and id [M8.4].
func pairs(call item.Type, callID string, out item.Item) bool {
	o := out.Head()
	return o.Type == item.OutputType(call) && o.CallID == callID
}

func (f *Frame) checkSettled(now int64, b *journal.Settled) error {
	c := f.find(b.ID)
	switch {
	case c == nil || b.ID.A < 0 || b.ID.A > c.attempt:
		return notDue("no attempt %s was intended", b.ID)
	case c.state != callSettled && b.Late:
		return notDue("call %s is open", b.ID)
	}
	if !f.mayEnd(now, c, b) {
		return notDue("%s cannot end as %q", b.ID, b.Outcome)
	}
	if b.Running && (b.Outcome != journal.Unknown || b.ID.A == 0 || c.state == callDoubt) { // [M8.22]
		return notDue("%s cannot be running and end as %q", b.ID, b.Outcome)
	}
	if len(b.Checks) > 0 && (b.ID.A == 0 || b.Outcome != journal.Done && b.Outcome != journal.ToolFailed) { // [M19.10]
		return notDue("guardrails on the output of %s that ended as %q", b.ID, b.Outcome)
	}
	switch b.Outcome {
	case journal.NotExecuted, journal.Pending, journal.AsksAgain:
		if !b.Output.IsZero() {
			return notDue("%s has an output and ended as %q", b.ID, b.Outcome)
		}
		return nil
	}
	if !pairs(c.kind, c.callID, b.Output) {
		return notDue("the output is not for call %s", b.ID)
	}
	return nil
}

// mayEnd says whether an attempt, or with attempt 0 the call itself, may have that
// outcome now.
func (f *Frame) mayEnd(now int64, c *call, b *journal.Settled) bool {
	current := c.state == callRunning && b.ID.A == c.attempt
	switch {
	case b.ID.A == 0:
		return f.mayEndUnstarted(c, b.Outcome)
	case c.agent():
		return c.mayEndAgent(b)
	case b.Outcome == journal.Done, b.Outcome == journal.ToolFailed: // [M8.12] [M8.13]
		return c.state == callSettled || !c.transactional() || c.mayHaveCommitted(b.ID.A)
	case b.Outcome == journal.Unknown:
		return current || c.state == callSettled || c.queried(now, b.ID.A)
	case b.Outcome == journal.Pending, b.Outcome == journal.AsksAgain: // [M8.20] [M8.21]
		return current
	case b.Outcome == journal.NotExecuted: // [M8.11]
		return current && c.epoch == f.m.epoch
	}
	return false
}

// mayHaveCommitted says that an attempt of a transactional call may have had its effect
// [M12.8].
func (c *call) mayHaveCommitted(attempt int) bool {
	return attempt == c.attempt && (c.state == callRunning || c.state == callPending || c.state == callDoubt)
}

// mayEndUnstarted says which outcomes are the machine's own [M8.14].
func (f *Frame) mayEndUnstarted(c *call, o journal.Outcome) bool {
	switch {
	case c.state == callSettled || c.state == callRunning || c.state == callEntered:
		return false
	case c.state == callDecided:
		return o == c.ending()
	case f.closed() && f.exposed(c):
		return o == journal.Unknown
	case f.closed():
		return o == journal.Dropped
	case f.approved(c):
		return o == journal.Decreed
	}
	return c.state == callDoubt && !c.query && c.tells() && o == journal.Unknown
}

// [M9.17] Only what nobody decided in time expires.
func (f *Frame) checkExpired(now int64, b *journal.Expired) error {
	c := f.find(b.Call)
	if c == nil || b.Call.A != 0 || b.Stage != c.stage() || !c.expires(now) || f.closed() {
		return notDue("no approval of call %s expires at stage %d", b.Call, b.Stage)
	}
	return nil
}
