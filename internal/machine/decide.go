package machine

import (
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// What a rule asks is a call's stage 0; what is open after an attempt is a stage from 1
// on [M9.1].

// gate gives a call that never started its state: its own decision counts more than
// a sticky one, and that more than the rule, but a rule that denies is final and a
// sticky rejection covers allowed calls too [M9.9].
func (f *Frame) gate(c *call) {
	sticky := f.stickyFor(c)
	gate := c.plan.Gate
	c.ruling = nil
	switch {
	case gate == journal.Deny:
		f.move(c, callDecided)
	case c.approval != nil:
		f.rule(c, c.approval)
	case sticky != nil && (sticky.Verdict == journal.Reject || gate == journal.Ask):
		f.rule(c, sticky)
	case gate == journal.Ask:
		f.move(c, callAsked)
	default:
		f.move(c, callReady)
	}
}

// rule applies an approval or a rejection. Unreadable arguments never run [M9.8].
func (f *Frame) rule(c *call, d *journal.Decided) {
	c.ruling = d
	if d.Verdict == journal.Reject || c.plan.Unreadable && c.edited == "" {
		f.move(c, callDecided)
		return
	}
	f.move(c, callReady)
}

// stickyFor returns the newest sticky decision on the call's tool, nil without one.
func (f *Frame) stickyFor(c *call) *journal.Decided {
	if c.spec == nil || c.spec.Identity == "" {
		return nil
	}
	return f.sticky[c.spec.Identity]
}

// foldDecided applies a decision to its call, and a sticky one to the calls of the
// same tool that never started [M9.6].
func (f *Frame) foldDecided(b *journal.Decided) {
	c := f.find(b.Call)
	if c.state == callSettled { // [M9.20]
		c.later = append(c.later, b)
		f.known(c)
		return
	}
	f.decide(c, b)
	if !b.Sticky {
		return
	}
	f.sticky[c.spec.Identity] = b
	for _, o := range f.last().calls {
		if o.attempt == 0 && o.state != callSettled && o.spec != nil && o.spec.Identity == c.spec.Identity {
			f.gate(o)
		}
	}
}

// decide applies a decision to its call alone.
func (f *Frame) decide(c *call, b *journal.Decided) {
	switch {
	case b.Stage == 0:
		c.approval = b
		if b.Arguments != "" { // [M9.7]
			c.edited = b.Arguments
			c.digest, _, _ = item.DigestArguments(b.Arguments)
		}
		f.gate(c)
		return
	case b.Verdict == journal.Retry || b.Verdict == journal.Approve: // [M9.11] [M9.14]
		f.move(c, callReady)
	default:
		f.move(c, callDecided)
	}
	c.later = append(c.later, b)
}

// openKind says what a call waits for, and whether it waits at all.
func (c *call) openKind() (InterruptionKind, bool) {
	switch {
	case c.state == callAsked:
		return Approval, true
	case c.state == callPending:
		return External, true
	case c.state == callDoubt && !c.query && !c.tells():
		return InDoubt, true
	}
	return 0, false
}

// waits says that every open call of the frame, and of those nested in it, waits for a
// decision, or is a handoff that waits for the others.
func (f *Frame) waits() bool {
	if f.next() != ruleWaiting || f.inFlight > 0 {
		return false
	}
	r := f.last()
	return !slices.ContainsFunc(r.calls, func(c *call) bool {
		_, open := c.openKind()
		behind := c.handoff() && c.state == callReady && r.unsettled > 1
		return c.state != callSettled && !open && !behind && (c.state != callEntered || !f.nested(c).waits())
	})
}

// stage returns the stage of the call's open interruption, or of its next one. A question that is answered
// by the far side takes its stage with it: what somebody decides on it comes too late.
func (c *call) stage() int {
	if c.state == callAsked && c.attempt == 0 {
		return 0
	}
	return 1 + len(c.later) + c.absent
}

// revisable says that the call is decided by a sticky decision only and has not
// started, so that its own decision still counts [M9.4].
func (c *call) revisable() bool {
	return c.plan.Gate == journal.Ask && c.approval == nil && c.attempt == 0 && c.state != callSettled
}

// checkDecided binds a decision to the interruption and the arguments its decider
// saw.
func (f *Frame) checkDecided(now int64, b *journal.Decided) error {
	c := f.find(b.Call)
	id := InterruptionID(f.Name(), b.Call, b.Stage)
	if c == nil || b.Call.A != 0 || b.Stage < 0 {
		return notDue("there is no %s", id)
	}
	if err := c.answered(b); err != nil {
		return err
	}
	if b.Stage == c.stage() && f.isUnknown(c) {
		return c.checkFinding(b)
	}
	kind, open := c.openKind()
	open = open && b.Stage == c.stage() || b.Stage == 0 && c.revisable()
	if b.Stage == 0 {
		kind = Approval
	}
	ended := f.finished != nil || f.closed()
	switch {
	case !ended && c.state == callDoubt && c.query && !c.tells() && b.Stage == c.stage():
		return fmt.Errorf("%w (call %s: the far side is asked first what became of it)", ErrInFlight, b.Call)
	case ended:
		return notDue("the run of %s has ended", id)
	case !open:
		return notDue("%s waits for no decision now", id)
	case b.Digest != c.digest:
		return fmt.Errorf("%w (call %s)", ErrDigest, b.Call)
	case !fits(kind, b.Verdict):
		return fmt.Errorf("%w: %s is of kind %s, which takes %s, not %s", ErrVerdict, id, kind, answers[kind], b.Verdict)
	case b.Sticky && (b.Stage > 0 || c.spec == nil || c.spec.Identity == ""):
		return fmt.Errorf("%w: only the approval that a rule asks for can be sticky, of a known tool", ErrVerdict)
	case kind == InDoubt && now < c.blocked:
		return &InFlightError{Call: b.Call, Until: c.blocked}
	}
	return c.checkArguments(b)
}

// checkFinding checks what somebody found out about a call that is settled as unknown
// [M9.20].
func (c *call) checkFinding(b *journal.Decided) error {
	switch {
	case b.Digest != c.digest:
		return fmt.Errorf("%w (call %s)", ErrDigest, b.Call)
	case b.Verdict != journal.Settle || b.Sticky || b.Arguments != "":
		return fmt.Errorf("%w: the call is settled as unknown; only what became of it can be said", ErrVerdict)
	}
	return nil
}

// answered returns what a decision meets that comes after the call was decided
// [M9.5].
func (c *call) answered(b *journal.Decided) error {
	switch {
	case b.Stage == 0 && c.approval != nil:
		return answer(c.approval, SameDecision(c.approval, b))
	case b.Stage == 0 && c.ruling != nil && !c.revisable():
		return answer(c.ruling, c.ruling.Verdict == b.Verdict)
	}
	if i := slices.IndexFunc(c.later, func(d *journal.Decided) bool { return d.Stage == b.Stage }); i >= 0 {
		return answer(c.later[i], SameDecision(c.later[i], b))
	}
	return nil
}

func answer(first *journal.Decided, same bool) error {
	if same {
		return ErrSame
	}
	return &DecidedError{First: first}
}

// checkArguments checks edited arguments [M9.7].
func (c *call) checkArguments(b *journal.Decided) error {
	if b.Arguments == "" {
		return nil
	}
	if b.Verdict != journal.Approve || b.Stage > 0 {
		return fmt.Errorf("%w: arguments can be edited only while approving, before the first attempt", ErrVerdict)
	}
	if c.hosted() { // [M9.21]
		return fmt.Errorf("%w: the arguments of a hosted tool are the server's", ErrVerdict)
	}
	if c.state == callReady && (c.agent() || c.handoff() || c.spec.Guarded) {
		return fmt.Errorf("%w: what comes before the call's first attempt may have begun with other arguments", ErrVerdict)
	}
	if c.kind == item.TypeCustomToolCall {
		return nil
	}
	canonical, err := item.Canonical(b.Arguments)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerdict, err)
	}
	if string(canonical) != b.Arguments {
		return fmt.Errorf("%w: the edited arguments are not in canonical form", ErrVerdict)
	}
	return nil
}

// SameDecision says that two decisions decide the same, whoever took them.
func SameDecision(a, b *journal.Decided) bool {
	return a.Verdict == b.Verdict && a.Sticky == b.Sticky && a.Arguments == b.Arguments && a.Text == b.Text && a.Digest == b.Digest
}

// answers names the verdicts that fit, for people.
var answers = map[InterruptionKind]string{Approval: "approve or reject", InDoubt: "settle, retry or giveup", External: "settle"}

// fits says which verdicts settle which interruption [M9.3].
func fits(kind InterruptionKind, v journal.Verdict) bool {
	switch v {
	case journal.Approve, journal.Reject:
		return kind == Approval
	case journal.Settle:
		return kind == InDoubt || kind == External
	case journal.Retry, journal.GiveUp:
		return kind == InDoubt
	}
	return false
}
