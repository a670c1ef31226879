package machine

import (
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl/journal"
)

// Errors of Check that a caller acts on.
var (
	// ErrNotDue: the fact answers nothing that is open.
	ErrNotDue = errors.New("pawl: nothing open waits for this")
	// ErrSame: the same decision was taken before; there is nothing to do.
	ErrSame = errors.New("pawl: the same decision was taken before")
	// ErrInFlight: the call may still be running under an older claim.
	ErrInFlight = errors.New("pawl: the call may still be running")
	// ErrDigest: the decision was taken for other arguments.
	ErrDigest = errors.New("pawl: the decision is for other arguments than the call's")
	// ErrVerdict: the interruption cannot be settled by this verdict.
	ErrVerdict = errors.New("pawl: this verdict does not fit the interruption")
)

// DecidedError says that a call was decided otherwise before.
type DecidedError struct{ First *journal.Decided }

// Error names the first verdict and who took it.
func (e *DecidedError) Error() string {
	return fmt.Sprintf("pawl: call %s was already decided: %s by %q", e.First.Call, e.First.Verdict, e.First.By)
}

// InFlightError says until when a call may still be running, in Unix milliseconds. It is
// ErrInFlight.
type InFlightError struct {
	Call  journal.EffectID
	Until int64
}

// Error names the call and the time.
func (e *InFlightError) Error() string {
	return fmt.Sprintf("%s (call %s, until %d)", ErrInFlight, e.Call, e.Until)
}

// Unwrap returns ErrInFlight.
func (e *InFlightError) Unwrap() error { return ErrInFlight }

func notDue(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNotDue}, args...)...)
}

// Check says whether a fact may be stepped now. It changes nothing. What passed
// Check folds without failing, so every bound that fold relies on is here.
func (m *Machine) Check(fact journal.Fact) error {
	if fact.Frame == "" {
		return m.root.check(fact)
	}
	switch b := fact.Body.(type) { // [M17.4]
	case *journal.Started:
		return m.checkEntered(fact.Frame, b)
	case *journal.Forked, *journal.Claimed, *journal.Resumed, *journal.Cancelled, *journal.Added, *journal.Admitted, *journal.Observed:
		return notDue("%T in frame %q", b, fact.Frame)
	}
	f := m.Frame(fact.Frame)
	if f == nil {
		return notDue("there is no frame %q", fact.Frame)
	}
	return f.check(fact)
}

func (f *Frame) check(fact journal.Fact) error {
	if s, ok := fact.Body.(*journal.Started); ok {
		return f.checkStarted(s)
	}
	switch {
	case f.started == nil:
		return notDue("the run has not started")
	case f.finished != nil:
		return f.checkEnded(fact)
	}
	switch b := fact.Body.(type) {
	case *journal.Observed:
		return f.m.checkObserved(b)
	case *journal.Forked:
		return f.checkForked(b)
	case *journal.Claimed:
		return f.checkClaimed(b)
	case *journal.Resumed:
		return nil
	case *journal.Cancelled:
		if f.m.cancelled != nil {
			return ErrSame
		}
		return nil
	case *journal.Decided:
		return f.checkDecided(fact.Time, b)
	case *journal.Intended:
		return f.checkIntended(b)
	case *journal.Planned:
		return f.checkPlanned(b)
	case *journal.Settled:
		return f.checkSettled(fact.Time, b)
	case *journal.Expired:
		return f.checkExpired(fact.Time, b)
	case *journal.Finished:
		return f.checkFinished(b)
	}
	return f.checkOutcome(fact)
}

// checkOutcome checks the facts that end an effect and need few words.
func (f *Frame) checkOutcome(fact journal.Fact) error {
	switch b := fact.Body.(type) {
	case *journal.Loaded:
		return f.checkLoaded(b)
	case *journal.Prepared:
		return f.checkPrepared(b)
	case *journal.Responded: // [M5.4]
		if !f.turn.open || b.ID != f.modelID() {
			return notDue("no request %s is open", b.ID)
		}
		return nil
	case *journal.Judged:
		if r := f.last(); r == nil || r.n != b.N || !r.judgeDue() {
			return notDue("response %d waits for no verdict on its tools", b.N)
		}
		return nil
	case *journal.Transferred:
		return f.checkTransferred(b)
	case *journal.Checked:
		return f.checkChecked(b)
	case *journal.Handled:
		return f.checkHandled(b)
	case *journal.Added:
		return f.checkAdded(b)
	case *journal.Admitted:
		return f.checkAdmitted(b)
	case *journal.Confirmed:
		return f.checkConfirmed(b)
	case *journal.Absent:
		if !f.inDoubt(fact.Time, b.ID) {
			return notDue("%s is not in doubt", b.ID)
		}
		return nil
	case *journal.Failed:
		return f.checkFailed(b)
	case *journal.Fired:
		if b.ID.Kind != journal.EffectWait {
			return notDue("%s is no wait", b.ID)
		}
		return nil // of a wait that is not wanted any more too [M2.5]
	}
	return notDue("fact %T", fact.Body)
}

// [M1.4] After the end a run takes a new claim, evidence and findings.
func (f *Frame) checkEnded(fact journal.Fact) error {
	switch b := fact.Body.(type) {
	case *journal.Claimed:
		return f.checkClaimed(b)
	case *journal.Observed:
		return f.m.checkObserved(b)
	case *journal.Settled:
		return f.checkSettled(fact.Time, b)
	case *journal.Decided:
		return f.checkDecided(fact.Time, b)
	}
	return notDue("the run has ended")
}

// prepareDue says that nothing stands before the next turn [M4.1].
func (f *Frame) prepareDue() bool {
	r := f.last()
	beside := f.started.Guards == journal.GuardsParallel || f.started.Guards == journal.GuardsBoth
	return f.loaded && f.open == nil && (beside || !f.owed()) && !f.turn.open && !f.turn.again &&
		!f.guardDue(guardBlocking) && f.end() == nil && (r == nil || r.whole() && !r.judgeDue() && !f.failed())
}

func (f *Frame) checkPrepared(b *journal.Prepared) error {
	switch {
	case !f.prepareDue():
		return notDue("no turn is due")
	case b.N != f.turns+1:
		return notDue("turn %d follows turn %d", b.N, f.turns)
	case b.Upto != f.settled:
		return notDue("a request up to %d when %d is settled", b.Upto, f.settled)
	case b.Manifest == nil && f.manifests[b.Same] == nil, b.Manifest != nil && b.Same != b.N:
		return notDue("turn %d has no manifest of turn %d", b.N, b.Same)
	}
	man := b.Manifest
	if man == nil {
		man = f.manifests[b.Same]
	}
	if man.Agent != f.agent { // [M18.6]
		return notDue("a turn of agent %q when agent %q has the conversation", man.Agent, f.agent)
	}
	if man.GuardsOutput && f.managed() { // [M19.6]
		return notDue("the server keeps what guardrails on the output would withhold")
	}
	if b.Manifest != nil {
		if err := checkManifest(b.Manifest); err != nil {
			return err
		}
	}
	if len(b.View) == 0 {
		return nil
	}
	return checkView(b.View, f.Places(b.Upto), f.unsent(b.Upto))
}

func checkManifest(man *journal.Manifest) error {
	switch man.ToolUse {
	case ToolUseAgain, ToolUseFirst, ToolUseNames, ToolUseCustom:
	default:
		return notDue("tool use %q", man.ToolUse)
	}
	return checkTools(man.Tools)
}

// [M7.9]
func checkTools(tools []journal.ToolSpec) error {
	for i := range tools {
		t := &tools[i]
		switch {
		case t.Agent != "" && t.Handoff != "":
			return notDue("tool %q runs an agent and hands over to one", t.Name)
		case t.Hosted && (t.Agent != "" || t.Handoff != "" || t.Guarded):
			return notDue("tool %q is hosted, and something is to happen here before it runs", t.Name)
		}
	}
	return nil
}

func (f *Frame) checkIntended(b *journal.Intended) error {
	if f.m.failure != nil {
		return notDue("the run has failed")
	}
	due := false
	switch b.ID.Kind {
	case journal.EffectModel: // [M5.8]
		t := &f.turn
		next := f.modelID()
		next.A++
		due = b.ID == next && b.Upto == t.upto && !f.closed() && (t.again || t.doubt && !f.unrepeatable())
	case journal.EffectSession:
		due = f.appendDue(b)
	case journal.EffectTool: // [M8.2]
		c := f.find(b.ID)
		due = c != nil && c.state == callReady && !c.agent() && !c.handoff() && !c.hosted() && f.cleared(c) && b.ID.A == c.attempt+1 && !f.closed()
	}
	if !due {
		return notDue("no effect %s is due", b.ID)
	}
	return nil
}

// appendDue says that a batch, or another attempt of the open one, may be intended
// [M10.3] [M10.5] [M10.6].
func (f *Frame) appendDue(b *journal.Intended) bool {
	if f.session == nil || f.session.Own {
		return false
	}
	if f.open == nil {
		return f.owed() && b.ID == effect(journal.EffectSession, f.batches+1) && b.Upto == f.released()
	}
	next := f.open.id()
	next.A++
	return b.ID == next && b.Upto == f.open.upto && (f.open.absent || f.open.doubt && f.session.Batches)
}

// [M10.8]
func (f *Frame) checkConfirmed(b *journal.Confirmed) error {
	switch {
	case f.open != nil && b.N == f.open.n && b.Upto == f.open.upto:
		return nil
	case f.open == nil && f.owed() && f.session.Own && b.N == f.batches+1 && b.Upto == f.released():
		return nil
	}
	return notDue("no batch %d is open", b.N)
}

// inDoubt says that a request, an append or an attempt of a call of that id is in
// doubt, and may be found not to have happened.
func (f *Frame) inDoubt(now int64, id journal.EffectID) bool {
	switch id.Kind {
	case journal.EffectModel:
		return f.turn.doubt && id == f.modelID()
	case journal.EffectSession:
		return f.open != nil && f.open.doubt && id == f.open.id()
	case journal.EffectTool:
		c := f.find(id)
		return c != nil && c.queried(now, id.A)
	}
	return false
}

// [M11.2] Only what is due can fail, and only a request is tried again by itself.
func (f *Frame) checkFailed(b *journal.Failed) error {
	if b.RetryAt != 0 && b.ID.Kind != journal.EffectModel {
		return notDue("%s is not tried again by itself", b.ID)
	}
	r := f.last()
	var due bool
	switch b.ID.Kind {
	case journal.EffectLoad:
		due = !f.loaded && b.ID == loadID
	case journal.EffectPrepare:
		due = f.prepareDue() && b.ID == effect(journal.EffectPrepare, f.turns+1)
	case journal.EffectModel:
		due = f.turn.open && b.ID == f.modelID()
	case journal.EffectPlan:
		due = r != nil && r.planned == nil && b.ID == effect(journal.EffectPlan, r.n)
	case journal.EffectJudge:
		due = r != nil && r.judgeDue() && b.ID == effect(journal.EffectJudge, r.n)
	case journal.EffectTransfer:
		due = f.transferOf(b.ID) != nil
	case journal.EffectGuard, journal.EffectOutput, journal.EffectCheck:
		due = f.verdictDue(b.ID)
	case journal.EffectHandle:
		due = f.handleDue(b.ID)
	case journal.EffectSession:
		due = f.open != nil && !f.open.absent && b.ID == f.open.id()
	case journal.EffectEnter, journal.EffectLeave:
		due = f.agentDue(b.ID)
	case journal.EffectReconcile:
		due = f.turn.doubt && b.ID == reconcileID(f.modelID()) || f.open != nil && f.open.doubt && b.ID == reconcileID(f.open.id())
	}
	if !due {
		return notDue("no effect %s is due", b.ID)
	}
	return nil
}

// [M14.6] A run ends only as its rules end it.
func (f *Frame) checkFinished(b *journal.Finished) error {
	switch f.next() {
	case ruleCancel:
		if b.Cancelled && b.Tripped == (f.trips != nil) && b.At == -1 && b.Text == "" {
			return nil
		}
	case ruleFinal:
		if *b == *f.end() {
			return nil
		}
	}
	return notDue("the run does not end so")
}
