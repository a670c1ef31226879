package machine_test

import (
	"errors"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// answer is what Check should say: accepted, or refused with one of these errors; any error if there are none.
type answer struct {
	accepted bool
	errs     []error
	first    *journal.Decided // of a DecidedError
}

var (
	accept = answer{accepted: true}
	refuse = answer{}
	notDue = refuseWith(machine.ErrNotDue)
)

func refuseWith(errs ...error) answer { return answer{errs: errs} }

func acceptIf(ok bool, otherwise answer) answer {
	if ok {
		return accept
	}
	return otherwise
}

// agrees compares an error of Check with the answer.
func (a answer) agrees(err error) bool {
	var other *machine.DecidedError
	switch {
	case a.accepted:
		return err == nil
	case a.first != nil:
		return errors.As(err, &other) && same(other.First, a.first)
	case len(a.errs) > 0:
		return slices.ContainsFunc(a.errs, func(e error) bool { return errors.Is(err, e) })
	}
	return err != nil
}

func known[T comparable](v T, words ...T) bool { return slices.Contains(words, v) }

// check is what the spec says about stepping a fact now.
func (w *world) check(f journal.Fact) answer {
	if f.Frame != "" {
		return w.checkInFrame(f)
	}
	return w.checkOwn(f)
}

// checkOwn is what the spec says about stepping a fact of the frame.
func (w *world) checkOwn(f journal.Fact) answer {
	if b, ok := f.Body.(*journal.Started); ok || w.start == nil {
		if !ok || w.start != nil {
			return refuse
		}
		return w.checkStarted(b)
	}
	switch b := f.Body.(type) {
	case *journal.Claimed:
		return acceptIf(b.Epoch > w.epoch, refuse)
	case *journal.Settled:
		return w.checkSettled(f.Time, b)
	case *journal.Decided:
		return w.checkDecided(f.Time, b)
	case *journal.Observed:
		return w.checkVerdicts(b)
	}
	if w.finished != nil {
		w.hit("M1.4 refused after the end")
		return refuse
	}
	switch b := f.Body.(type) {
	case *journal.Forked:
		return w.checkForked(b)
	case *journal.Cancelled:
		return acceptIf(!w.cancelled, refuseWith(machine.ErrSame))
	case *journal.Expired:
		return w.checkExpired(f.Time, b)
	case *journal.Finished:
		return w.checkFinished(b)
	case *journal.Loaded:
		history := slices.Concat(b.Items, b.Healed, w.start.Input)
		return acceptIf(!w.loaded && canView(b.View, history, nil), notDue)
	case *journal.Transferred:
		return w.checkTransferred(b)
	case *journal.Checked, *journal.Handled, *journal.Added, *journal.Admitted:
		return w.checkVerdicts(b)
	case *journal.Prepared:
		return w.checkPrepared(b)
	case *journal.Intended:
		return w.checkIntended(b)
	case *journal.Responded:
		t := w.turn()
		return acceptIf(t != nil && t.open && b.ID == t.effect(), notDue)
	case *journal.Planned:
		return w.checkPlanned(b)
	case *journal.Judged:
		return acceptIf(w.verdictDue() && b.N == len(w.responses), notDue)
	case *journal.Confirmed:
		return w.checkConfirmed(b)
	case *journal.Absent:
		t := w.turn()
		request := t != nil && t.doubt && b.ID == t.effect()
		return acceptIf(request || w.batch.doubt && b.ID == w.batch.effect() || w.answerDue(f.Time, b.ID), notDue)
	case *journal.Failed:
		return w.checkFailed(b)
	case *journal.Fired:
		return acceptIf(b.ID.Kind == journal.EffectWait, refuse)
	}
	return accept // resumed
}

// checkStarted is M1.2.
func (w *world) checkStarted(b *journal.Started) answer {
	if b.Machine > machine.Version {
		return refuseWith(journal.ErrNewerJournal)
	}
	return acceptIf(b.Run != "" && b.Agent != "" && oneBinding(b), refuse)
}

// oneBinding is the part of M1.2 that holds of nested runs too.
func oneBinding(b *journal.Started) bool {
	pointer := b.Previous != "" || b.Auto
	return (b.Session == nil || b.Conversation == "" && !pointer) &&
		(b.Conversation == "" || !pointer) &&
		known(b.Guards, journal.GuardsNone, journal.GuardsBlocking, journal.GuardsParallel, journal.GuardsBoth)
}

// checkForked is M1.9.
func (w *world) checkForked(b *journal.Forked) answer {
	switch {
	case b.Run == "", b.Session != nil && w.managed(), w.start.Conversation != "", w.tried():
		return refuse
	case b.Run == w.run && (b.Session == nil || w.session != nil):
		return refuse
	}
	return acceptIf(!w.shares(), refuse)
}

// tried says that a call that is no agent call is open after a first attempt, in any frame.
func (w *world) tried() bool {
	return slices.ContainsFunc(w.frames, func(in *world) bool {
		return slices.ContainsFunc(in.newest(), func(c *call) bool { return in.open(c) && c.spec.Agent == "" && in.state(c).attempts > 0 })
	})
}

// turnDue is M4.1, without what the fact says.
func (w *world) turnDue() bool {
	beside := known(w.start.Guards, journal.GuardsParallel, journal.GuardsBoth)
	if !w.loaded || w.batch.open || w.owed() && !beside {
		return false
	}
	if t := w.turn(); t != nil && (t.open || t.repeat) {
		return false
	}
	r := w.response()
	return !w.inputDue(0) && !w.endsTheRun() && (r == nil || r.plan != nil && !w.anyOpen() && !w.verdictDue() && !w.failed())
}

func (w *world) checkPrepared(b *journal.Prepared) answer {
	if !w.turnDue() || b.N != len(w.turns)+1 {
		return notDue
	}
	delivered := w.delivered
	if !w.managed() {
		delivered = nil
	}
	man := b.Manifest
	if man == nil && b.Same >= 1 && b.Same <= len(w.turns) {
		man = w.turns[b.Same-1].manifest
	}
	if w.managed() && man != nil && man.GuardsOutput {
		return refuse
	}
	if b.Upto != w.mark() || !canView(b.View, w.shown()[:b.Upto], delivered) {
		return refuse
	}
	if b.Manifest != nil {
		if b.Manifest.Agent != w.agent || bothKinds(b.Manifest.Tools) {
			return refuse
		}
		use := known(b.Manifest.ToolUse, machine.ToolUseAgain, machine.ToolUseFirst, machine.ToolUseNames, machine.ToolUseCustom)
		return acceptIf(b.Upto == w.mark() && b.Same == b.N && use, refuse)
	}
	earlier := b.Same >= 1 && b.Same < b.N && w.turns[b.Same-1].prepared.Manifest != nil && w.turns[b.Same-1].manifest.Agent == w.agent
	return acceptIf(b.Upto == w.mark() && earlier, refuse)
}

func (w *world) checkIntended(b *journal.Intended) answer {
	id := b.ID
	before := id
	before.A--
	if w.failure != nil { // M11.3
		return refuse
	}
	switch id.Kind {
	case journal.EffectModel: // M5.8
		t := w.turn()
		return acceptIf(t != nil && !w.closed() && before == t.effect() && b.Upto == t.prepared.Upto &&
			(t.repeat || t.doubt && !w.unrepeatable()), refuse)
	case journal.EffectTool: // M8.2
		c := w.call(id)
		return acceptIf(c != nil && !w.closed() && c.spec.Agent == "" && !c.handoff() && !c.spec.Hosted && w.cleared(c, w.state(c)) && w.state(c).phase == ready && id.A == w.state(c).attempts+1, refuse)
	case journal.EffectSession: // M10.3, M10.5, M10.6
		if w.batch.open {
			again := w.batch.absent || w.batch.doubt && w.session.Batches
			return acceptIf(again && before == w.batch.effect() && b.Upto == w.batch.upto, refuse)
		}
		first := journal.EffectID{Kind: journal.EffectSession, N: w.confirmed + 1, A: 1}
		return acceptIf(w.owed() && !w.session.Own && id == first && b.Upto == w.released(), refuse)
	}
	return refuse
}

// checkPlanned is M7.
func (w *world) checkPlanned(b *journal.Planned) answer {
	r := w.response()
	if r == nil || b.N != r.n || r.plan != nil {
		return notDue
	}
	switch b.Final {
	case journal.FinalNone, journal.FinalEmpty:
	case journal.FinalMessage, journal.FinalRefusal, journal.FinalInvalid:
		message := b.FinalAt >= 0 && b.FinalAt < len(r.items) && r.items[b.FinalAt].Type() == item.TypeMessage
		if !message && (b.Final != journal.FinalInvalid || b.FinalAt != -1) ||
			b.Final == journal.FinalRefusal && !slices.Contains(r.manifest.Handles, journal.HandlesRefusal) ||
			b.Final == journal.FinalInvalid && !slices.Contains(r.manifest.Handles, journal.HandlesInvalid) {
			return refuse
		}
	default:
		return refuse
	}
	if b.Final != journal.FinalNone && len(b.Calls) > 0 {
		return refuse
	}
	var listed, needed []int
	for _, p := range b.Calls {
		listed = append(listed, p.P)
	}
	for i, it := range r.items {
		if it.NeedsOutput() {
			needed = append(needed, i)
		}
	}
	if !slices.Equal(listed, needed) {
		return refuse
	}
	for i := range b.Calls {
		if !w.canPlan(r, b, i) {
			return refuse
		}
	}
	return acceptIf(planHandoffs(r, b) <= 1 && !bothKinds(b.Tools), refuse)
}

// canPlan is M7.3 to M7.6 for one call of a plan.
func (w *world) canPlan(r *response, b *journal.Planned, i int) bool {
	p := b.Calls[i]
	it := r.items[p.P]
	head := it.Head()
	twin, sameID := false, false
	for _, q := range b.Calls[:i] {
		other := r.items[q.P].Head()
		sameID = sameID || other.CallID == head.CallID
		twin = twin || !q.Twin && other.CallID == head.CallID && other.Name == head.Name && q.Digest == p.Digest
	}
	switch {
	case !known(p.Gate, journal.Allow, journal.Ask, journal.Deny),
		p.Tool < -1 || p.Tool >= len(r.manifest.Tools)+len(b.Tools),
		!kindFits(head.Type, slices.Concat(r.manifest.Tools, b.Tools), p),
		p.Twin && !twin, sameID && !p.Twin:
		return false
	case p.Twin:
		return p.Output.IsZero()
	}
	allowed := p.Gate == journal.Allow
	switch has := !p.Output.IsZero(); {
	case has && !pairs(it, p.Output),
		p.Tool < 0 && !(has && allowed),
		p.Unreadable && !has,
		has && !p.Unreadable && !allowed:
		return false
	}
	if earlier := w.earlier(r, head.CallID); earlier != nil {
		w.hit("M7.6 a call id used before")
		return earlier.head().Name == head.Name && earlier.planned.Digest == p.Digest && p.Output == w.state(earlier).output && allowed
	}
	return p.Output.IsZero() || head.Type != item.TypeMCPApprovalRequest
}

// earlier is the call of a response before r with this call id, if ids are unique [M7.6, M7.7].
func (w *world) earlier(r *response, callID string) (found *call) {
	if !w.start.UniqueCallIDs {
		return nil
	}
	for _, e := range w.responses[:r.n-1] {
		for _, c := range e.calls {
			if c.head().CallID == callID {
				found = c
			}
		}
	}
	return found
}

// checkDecided is M9.2 to M9.7, M9.12, M9.13 and M9.20.
func (w *world) checkDecided(now int64, d *journal.Decided) answer {
	if d.Call.Kind != journal.EffectTool || d.Call.A != 0 || d.Call.N < 1 || d.Call.P < 0 || d.Stage < 0 ||
		!known(d.Verdict, journal.Approve, journal.Reject, journal.Settle, journal.Retry, journal.GiveUp) {
		return refuse
	}
	c := w.call(d.Call)
	if c == nil {
		return notDue
	}
	s := w.state(c)
	approval := d.Stage == 0 && c.planned.Gate == journal.Ask && s.phase != settled && s.attempts == 0 && c.decision(0) == nil
	if first := c.decision(d.Stage); first != nil {
		return decidedBefore(first, first.Verdict == d.Verdict && first.Sticky == d.Sticky && first.Arguments == d.Arguments &&
			first.Text == d.Text && first.Digest == d.Digest)
	}
	if by := w.decidedBy(c, s.at); d.Stage == 0 && !approval && by != nil {
		w.hit("M9.5 decided by a sticky one")
		return decidedBefore(by, by.Verdict == d.Verdict)
	}
	if approval && w.stickyFor(c, -1) != nil {
		w.hit("M9.4 its own decision though a sticky one covers it")
	}
	if d.Stage == s.stage && w.isUnknown(c, s) {
		return w.checkFinding(d, s)
	}
	atStage := s.attempts > 0 && d.Stage == s.stage
	again, external := atStage && s.phase == asked, atStage && s.phase == pending
	inDoubt := atStage && s.phase == doubt && !c.told(s)
	if w.closed() && (approval || again || external || inDoubt) {
		w.hit("M9.13 no decision in a cancelled run")
	}
	if w.finished != nil || w.closed() || !approval && !again && !external && !inDoubt {
		return notDue
	}
	if inDoubt && s.ask {
		w.hit("M9.12 to be asked about")
		return refuseWith(machine.ErrInFlight)
	}
	var errs []error
	if d.Digest != s.digest {
		errs = append(errs, machine.ErrDigest)
	}
	fits := known(d.Verdict, journal.Approve, journal.Reject) == (approval || again) && (!external || d.Verdict == journal.Settle)
	if !fits || d.Sticky && (!approval || c.spec.Identity == "") || d.Arguments != "" && !(approval && d.Verdict == journal.Approve) {
		errs = append(errs, machine.ErrVerdict)
	}
	if d.Arguments != "" && c.spec.Hosted {
		w.hit("M9.21 no edit")
		errs = append(errs, machine.ErrVerdict)
	}
	if d.Arguments != "" && s.phase == ready && (c.handoff() || c.spec.Agent != "" || c.spec.Guarded) {
		w.hit("M9.7 too late for an edit")
		errs = append(errs, machine.ErrVerdict)
	}
	if inDoubt && now < s.until {
		errs = append(errs, machine.ErrInFlight)
	}
	if d.Arguments != "" && c.head().Type == item.TypeFunctionCall {
		if canonical, err := item.Canonical(d.Arguments); err != nil || string(canonical) != d.Arguments {
			return refuse
		}
	}
	return acceptIf(len(errs) == 0, refuseWith(errs...))
}

// checkFinding is M9.20.
func (w *world) checkFinding(d *journal.Decided, s callState) answer {
	var errs []error
	if d.Digest != s.digest {
		errs = append(errs, machine.ErrDigest)
	}
	if d.Verdict != journal.Settle || d.Sticky || d.Arguments != "" {
		errs = append(errs, machine.ErrVerdict)
	}
	if len(errs) == 0 && w.finished != nil {
		w.hit("M9.20 after the end")
	}
	return acceptIf(len(errs) == 0, refuseWith(errs...))
}

// decidedBefore is the answer of M9.5.
func decidedBefore(first *journal.Decided, same bool) answer {
	if same {
		return refuseWith(machine.ErrSame)
	}
	return answer{first: first}
}

// answerDue says that an answer about an attempt is due [M8.18, M8.19].
func (w *world) answerDue(now int64, id journal.EffectID) bool {
	c := w.call(id)
	if c == nil || id.Kind != journal.EffectTool {
		return false
	}
	s := w.state(c)
	return s.phase == doubt && s.ask && id.A == s.attempts && now >= s.until
}

// checkExpired is M9.17.
func (w *world) checkExpired(now int64, b *journal.Expired) answer {
	c := w.call(b.Call)
	if c == nil || b.Call.A != 0 || b.Call.Kind != journal.EffectTool {
		return refuse
	}
	s := w.state(c)
	stage := 0
	if s.attempts > 0 {
		stage = s.stage
	}
	return acceptIf(!w.closed() && s.phase == asked && b.Stage == stage && s.deadline != 0 && now >= s.deadline, refuse)
}

// checkSettled is M8.4, M8.11 to M8.14 and M8.19 to M8.22.
func (w *world) checkSettled(now int64, b *journal.Settled) answer {
	if b.ID.Kind != journal.EffectTool || b.ID.N < 1 || b.ID.P < 0 || b.ID.A < 0 || !known(b.Outcome, journal.Done, journal.ToolFailed,
		journal.Unknown, journal.NotExecuted, journal.Pending, journal.AsksAgain, journal.Rejected, journal.Decreed, journal.Dropped) {
		return refuse
	}
	c := w.call(b.ID)
	if c == nil {
		return notDue
	}
	s := w.state(c)
	ended := known(b.Outcome, journal.Done, journal.ToolFailed, journal.Unknown)
	last := s.phase == running && b.ID.A == s.attempts
	if len(b.Checks) > 0 && (b.ID.A == 0 || !known(b.Outcome, journal.Done, journal.ToolFailed)) {
		return refuse
	}
	switch {
	case b.Running && (b.Outcome != journal.Unknown || b.ID.A == 0 || !last && s.phase != settled):
		return refuse
	case known(b.Outcome, journal.NotExecuted, journal.Pending, journal.AsksAgain):
		return acceptIf(last && b.Output.IsZero() && !b.Late, refuse)
	case !c.pairs(b.Output), b.Late && s.phase != settled:
		return refuse
	case b.ID.A == 0:
		how, _, ok := w.settlement(c)
		return acceptIf(ok && s.phase != settled && how == b.Outcome, refuse)
	case b.ID.A > s.attempts:
		return notDue
	case c.spec.Agent != "": // M17.7
		return acceptIf(s.phase == leaving && (c.failed == nil && b.Outcome == journal.Done || c.failed != nil && b.Outcome == journal.ToolFailed), refuse)
	case s.phase == settled:
		return acceptIf(ended, refuse)
	}
	if c.transactional() && (b.ID.A < s.attempts || !known(s.phase, running, pending, doubt)) {
		w.hit("M12.8 no late result")
		return refuse
	}
	return acceptIf(ended && (last || b.Outcome != journal.Unknown || w.answerDue(now, b.ID)), refuse)
}

// checkConfirmed is M10.8.
func (w *world) checkConfirmed(b *journal.Confirmed) answer {
	if w.session != nil && w.session.Own {
		return acceptIf(w.owed() && b.N == w.confirmed+1 && b.Upto == w.released(), refuse)
	}
	if !w.batch.open || b.N != w.batch.n {
		return notDue
	}
	return acceptIf(b.Upto == w.batch.upto, refuse)
}

// checkFailed is M11.2.
func (w *world) checkFailed(b *journal.Failed) answer {
	t, id := w.turn(), b.ID
	due := map[journal.EffectID]bool{
		{Kind: journal.EffectLoad, A: 1}:                         !w.loaded,
		{Kind: journal.EffectPrepare, N: len(w.turns) + 1, A: 1}: w.turnDue(),
		{Kind: journal.EffectPlan, N: len(w.responses), A: 1}:    w.response() != nil && w.response().plan == nil,
		{Kind: journal.EffectJudge, N: len(w.responses), A: 1}:   w.verdictDue(),
		w.batch.effect(): w.batch.open && !w.batch.absent,
		{Kind: journal.EffectReconcile, N: w.batch.n, P: 1, A: w.batch.attempt}: w.batch.doubt,
	}
	for _, c := range w.newest() {
		if w.transferDue(c) {
			due[c.transfer()] = true
		}
	}
	if t != nil {
		due[t.effect()] = t.open
		due[journal.EffectID{Kind: journal.EffectReconcile, N: t.prepared.N, A: t.attempt}] = t.doubt
	}
	if id.Kind == journal.EffectEnter || id.Kind == journal.EffectLeave {
		due[id] = w.aroundDue(id)
	}
	if !due[id] && !w.askedFor(id) && !w.handleDue(id) {
		return notDue
	}
	return acceptIf(b.RetryAt == 0 || id.Kind == journal.EffectModel, refuse)
}

// checkFinished is M14.6: the rule that applies must be the one that emits it.
func (w *world) checkFinished(b *journal.Finished) answer {
	var want *journal.Finished
	switch w.rule() {
	case "10":
		want = &journal.Finished{Cancelled: true, Tripped: w.tripped != nil, At: -1}
	case "13":
		want = w.end()
	}
	return acceptIf(want != nil && *want == *b, refuse)
}
