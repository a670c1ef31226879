package machine

import (
	"math"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// [M7.2] The plan reserves the places of the outputs, in call order.
func (f *Frame) foldPlanned(now int64, b *journal.Planned) {
	r := f.last()
	f.landed(effect(journal.EffectPlan, b.N))
	calls := make([]call, len(b.Calls))
	r.calls = make([]*call, 0, len(b.Calls))
	for i := range b.Calls {
		pc := &b.Calls[i]
		at := r.first + pc.P
		if pc.Twin {
			f.history[at].dropped = true
			continue
		}
		head := &f.heads[pc.P]
		c := &calls[i]
		*c = call{
			id:     journal.EffectID{Kind: journal.EffectTool, N: r.n, P: pc.P},
			slot:   at,
			out:    len(f.history),
			kind:   head.Type,
			callID: head.CallID,
			plan:   pc,
			digest: pc.Digest,
			spec:   r.toolOf(b, pc),
		}
		f.history = append(f.history, slot{})
		r.calls = append(r.calls, c)
		r.unsettled++
		if f.seen != nil {
			f.seen[c.callID] = c
		}
		if !pc.Output.IsZero() && pc.Gate == journal.Allow { // [M8.1]
			f.settle(r, c, journal.Rejected, pc.Output)
			continue
		}
		if pc.Gate == journal.Ask {
			c.deadline = c.expiry(now)
		}
		f.gate(c)
	}
	r.outEnd = len(f.history)
	r.planned = b
	for i := range b.Calls {
		f.trip(journal.EffectID{Kind: journal.EffectTool, N: r.n, P: b.Calls[i].P}, b.Calls[i].Checks)
	}
	f.settleResponse(r)
}

// [M12.3] What a claim finds running may have happened, unless effect and outcome
// commit together; it is repeated if that does no harm. gone says that whoever ran it is
// known to be gone.
func (f *Frame) claimCall(c *call, gone bool) {
	if c.state == callRunning {
		c.exposed = c.exposed || !c.transactional()
		if c.harmless() || c.transactional() {
			f.move(c, callReady)
			return
		}
		f.move(c, callDoubt)
		c.live, c.note, c.blocked = false, "", later(c.notAfter, Margin) // [M12.4]
	}
	if c.state != callDoubt {
		return
	}
	c.query = c.recoverable() // [M8.16]
	if gone {                 // [M12.5]
		c.blocked = 0
	}
}

// later adds durations to a time and stays in range whatever the ledger says.
func later(t, d int64) int64 {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

func (f *Frame) foldSettled(now int64, b *journal.Settled) {
	f.landed(b.ID)
	c := f.find(b.ID)
	if c.state == callSettled {
		f.evidence(c, b)
		return
	}
	f.trip(b.ID, b.Checks)
	switch {
	case b.Outcome == journal.NotExecuted:
		f.move(c, callReady)
		return
	case b.Outcome == journal.Pending: // [M8.20]
		c.exposed, c.note = true, b.Error
		f.move(c, callPending)
		return
	case b.Outcome == journal.AsksAgain: // [M8.21]
		c.note, c.deadline = b.Error, c.expiry(now)
		f.move(c, callAsked)
		return
	case b.Outcome == journal.Unknown && b.ID.A > 0 && f.foldUnknown(c, b):
		return
	}
	f.settle(f.responses[b.ID.N-1], c, b.Outcome, b.Output)
}

// foldUnknown folds an attempt's unknown outcome and reports whether the call is open
// all the same.
func (f *Frame) foldUnknown(c *call, b *journal.Settled) bool {
	c.note = b.Error
	if c.state == callDoubt { // [M8.19]
		f.answer(c)
		return true
	}
	c.unknown++
	c.exposed = true
	switch {
	case c.harmless() && c.unknown < MaxUnknown: // [M8.3]
		f.move(c, callReady)
	case c.recoverable() || c.spec.OnUnknown == journal.UnknownWait:
		f.move(c, callDoubt)
		c.query, c.live, c.blocked = c.recoverable(), true, 0
		if b.Running {
			c.blocked = later(c.notAfter, Margin)
		}
	default:
		return false
	}
	return true
}

// answer ends the question what became of a call in doubt: it waits for nothing any
// more [M8.15].
func (f *Frame) answer(c *call) {
	f.landed(waitID(c))
	f.landed(reconcileID(c.last()))
	c.query = false
}

// foldExpired rejects a call that nobody decided, or fails the run.
func (f *Frame) foldExpired(now int64, b *journal.Expired) {
	c := f.find(b.Call)
	c.deadline = 0
	switch {
	case !c.spec.ExpiryFails: // [M9.18]
		f.decide(c, &journal.Decided{Call: b.Call, Stage: b.Stage, Digest: c.digest, Verdict: journal.Reject, Text: ExpiredText, By: ExpiredBy, At: now})
	default: // [M9.19]
		f.fails(&journal.Failed{ID: b.Call, Code: CodeExpired, Error: "pawl: the approval " + InterruptionID(f.name, b.Call, b.Stage) + " expired"})
	}
}

func (f *Frame) settle(r *response, c *call, o journal.Outcome, out item.Item) {
	switch {
	case c.state == callDoubt:
		f.answer(c)
	case c.agent():
		f.landed(enterID(c))
		f.landed(leaveID(c))
	case c.handoff():
		f.landed(transferID(c))
	}
	if c.spec != nil && c.spec.Guarded {
		f.landed(checkID(c))
	}
	f.move(c, callSettled)
	c.outcome = o
	if o == journal.Unknown {
		f.unknown(c)
	}
	f.history[c.out].item = out
	r.unsettled--
	f.settleResponse(r)
}

// settleResponse moves the settled mark over a response whose calls all have their
// output [M3.4].
func (f *Frame) settleResponse(r *response) {
	if !r.whole() {
		return
	}
	f.settled = r.outEnd
	if f.withheld() {
		f.withhold(r)
	}
}
