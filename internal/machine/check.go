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
func (m *Machine) Check(f journal.Fact) error {
	if f.Frame != "" {
		return notDue("frame %q", f.Frame)
	}
	if s, ok := f.Body.(*journal.Started); ok {
		return m.checkStarted(s)
	}
	switch {
	case m.started == nil:
		return notDue("the run has not started")
	case m.finished != nil:
		return m.checkEnded(f)
	}
	switch b := f.Body.(type) {
	case *journal.Forked:
		return m.checkForked(b)
	case *journal.Claimed:
		return m.checkClaimed(b)
	case *journal.Resumed:
		return nil
	case *journal.Cancelled:
		if m.cancelled != nil {
			return ErrSame
		}
		return nil
	case *journal.Decided:
		return m.checkDecided(f.Time, b)
	case *journal.Intended:
		return m.checkIntended(b)
	case *journal.Planned:
		return m.checkPlanned(b)
	case *journal.Settled:
		return m.checkSettled(f.Time, b)
	case *journal.Expired:
		return m.checkExpired(f.Time, b)
	case *journal.Finished:
		return m.checkFinished(b)
	}
	return m.checkOutcome(f)
}

// checkOutcome checks the facts that end an effect and need few words.
func (m *Machine) checkOutcome(f journal.Fact) error {
	switch b := f.Body.(type) {
	case *journal.Loaded:
		if m.loaded {
			return notDue("the history is loaded")
		}
		return nil
	case *journal.Prepared:
		return m.checkPrepared(b)
	case *journal.Responded: // [M5.4]
		if !m.turn.open || b.ID != m.modelID() {
			return notDue("no request %s is open", b.ID)
		}
		return nil
	case *journal.Judged:
		if r := m.last(); r == nil || r.n != b.N || !r.judgeDue() {
			return notDue("response %d waits for no verdict on its tools", b.N)
		}
		return nil
	case *journal.Confirmed:
		return m.checkConfirmed(b)
	case *journal.Absent:
		if !m.inDoubt(f.Time, b.ID) {
			return notDue("%s is not in doubt", b.ID)
		}
		return nil
	case *journal.Failed:
		return m.checkFailed(b)
	case *journal.Fired:
		if b.ID.Kind != journal.EffectWait {
			return notDue("%s is no wait", b.ID)
		}
		return nil // of a wait that is not wanted any more too [M2.5]
	}
	return notDue("fact %T", f.Body)
}

// [M1.4] After the end a run takes a new claim, evidence and findings.
func (m *Machine) checkEnded(f journal.Fact) error {
	switch b := f.Body.(type) {
	case *journal.Claimed:
		return m.checkClaimed(b)
	case *journal.Settled:
		return m.checkSettled(f.Time, b)
	case *journal.Decided:
		return m.checkDecided(f.Time, b)
	}
	return notDue("the run has ended")
}

func (m *Machine) checkStarted(s *journal.Started) error {
	managed := s.Conversation != "" || s.Previous != "" || s.Auto
	switch {
	case m.started != nil:
		return notDue("the run has started")
	case s.Run == "" || s.Agent == "":
		return notDue("a run needs an id and an agent")
	case s.Machine > Version:
		return fmt.Errorf("%w: rules of version %d", journal.ErrNewerJournal, s.Machine)
	case s.Session != nil && managed:
		return notDue("a session and a server-managed conversation exclude each other")
	case s.Conversation != "" && (s.Previous != "" || s.Auto):
		return notDue("a conversation and a previous response exclude each other")
	}
	return nil
}

// [M1.9] A call that may have happened happened in the run that was copied: under
// the fork's own key nobody could tell.
func (m *Machine) checkForked(b *journal.Forked) error {
	switch {
	case b.Run == "", b.Run == m.run && (m.session != nil || b.Session == nil):
		return notDue("a fork needs an id of its own")
	case b.Session != nil && m.managed():
		return notDue("a session and a server-managed conversation exclude each other")
	case m.started.Conversation != "":
		return notDue("two runs cannot share conversation %q", m.started.Conversation)
	case m.Exposed():
		return notDue("a call may have taken effect")
	}
	return nil
}

func (m *Machine) checkClaimed(b *journal.Claimed) error {
	if b.Epoch <= m.epoch {
		return notDue("epoch %d is not newer than %d", b.Epoch, m.epoch)
	}
	return nil
}

// prepareDue says that nothing stands before the next turn [M4.1].
func (m *Machine) prepareDue() bool {
	r := m.last()
	return m.loaded && m.open == nil && !m.owed() && !m.turn.open && !m.turn.again &&
		(r == nil || r.whole() && !r.judgeDue() && r.final() == nil)
}

func (m *Machine) checkPrepared(b *journal.Prepared) error {
	switch {
	case !m.prepareDue():
		return notDue("no turn is due")
	case b.N != m.turns+1:
		return notDue("turn %d follows turn %d", b.N, m.turns)
	case b.Upto != m.settled:
		return notDue("a request up to %d when %d is settled", b.Upto, m.settled)
	case b.Manifest == nil && m.manifests[b.Same] == nil, b.Manifest != nil && b.Same != b.N:
		return notDue("turn %d has no manifest of turn %d", b.N, b.Same)
	}
	if b.Manifest == nil {
		return nil
	}
	switch b.Manifest.ToolUse {
	case ToolUseAgain, ToolUseFirst, ToolUseNames, ToolUseCustom:
		return nil
	}
	return notDue("tool use %q", b.Manifest.ToolUse)
}

func (m *Machine) checkIntended(b *journal.Intended) error {
	if m.failure != nil {
		return notDue("the run has failed")
	}
	due := false
	switch b.ID.Kind {
	case journal.EffectModel: // [M5.8]
		t := &m.turn
		next := m.modelID()
		next.A++
		due = b.ID == next && b.Upto == t.upto && m.cancelled == nil && (t.again || t.doubt && m.started.Conversation == "")
	case journal.EffectSession:
		due = m.appendDue(b)
	case journal.EffectTool: // [M8.2]
		c := m.find(b.ID)
		due = c != nil && c.state == callReady && b.ID.A == c.attempt+1 && m.cancelled == nil
	}
	if !due {
		return notDue("no effect %s is due", b.ID)
	}
	return nil
}

// appendDue says that a batch, or another attempt of the open one, may be intended
// [M10.3] [M10.5] [M10.6].
func (m *Machine) appendDue(b *journal.Intended) bool {
	if m.session == nil || m.session.Own {
		return false
	}
	if m.open == nil {
		return m.owed() && b.ID == effect(journal.EffectSession, m.batches+1) && b.Upto == m.settled
	}
	next := m.open.id()
	next.A++
	return b.ID == next && b.Upto == m.open.upto && (m.open.absent || m.open.doubt && m.session.Batches)
}

// [M10.8]
func (m *Machine) checkConfirmed(b *journal.Confirmed) error {
	switch {
	case m.open != nil && b.N == m.open.n && b.Upto == m.open.upto:
		return nil
	case m.open == nil && m.owed() && m.session.Own && b.N == m.batches+1 && b.Upto == m.settled:
		return nil
	}
	return notDue("no batch %d is open", b.N)
}

// inDoubt says that a request, an append or an attempt of a call of that id is in
// doubt, and may be found not to have happened.
func (m *Machine) inDoubt(now int64, id journal.EffectID) bool {
	switch id.Kind {
	case journal.EffectModel:
		return m.turn.doubt && id == m.modelID()
	case journal.EffectSession:
		return m.open != nil && m.open.doubt && id == m.open.id()
	case journal.EffectTool:
		c := m.find(id)
		return c != nil && c.queried(now, id.A)
	}
	return false
}

// [M11.2] Only what is due can fail, and only a request is tried again by itself.
func (m *Machine) checkFailed(b *journal.Failed) error {
	if b.RetryAt != 0 && b.ID.Kind != journal.EffectModel {
		return notDue("%s is not tried again by itself", b.ID)
	}
	r := m.last()
	var due bool
	switch b.ID.Kind {
	case journal.EffectLoad:
		due = !m.loaded && b.ID == loadID
	case journal.EffectPrepare:
		due = m.prepareDue() && b.ID == effect(journal.EffectPrepare, m.turns+1)
	case journal.EffectModel:
		due = m.turn.open && b.ID == m.modelID()
	case journal.EffectPlan:
		due = r != nil && r.planned == nil && b.ID == effect(journal.EffectPlan, r.n)
	case journal.EffectJudge:
		due = r != nil && r.judgeDue() && b.ID == effect(journal.EffectJudge, r.n)
	case journal.EffectSession:
		due = m.open != nil && !m.open.absent && b.ID == m.open.id()
	case journal.EffectReconcile:
		due = m.turn.doubt && b.ID == reconcileID(m.modelID()) || m.open != nil && m.open.doubt && b.ID == reconcileID(m.open.id())
	}
	if !due {
		return notDue("no effect %s is due", b.ID)
	}
	return nil
}

// [M14.6] A run ends only as its rules end it.
func (m *Machine) checkFinished(b *journal.Finished) error {
	switch m.next() {
	case ruleCancel:
		if b.Cancelled && b.At == -1 && b.Text == "" {
			return nil
		}
	case ruleFinal:
		if *b == *m.last().final() {
			return nil
		}
	}
	return notDue("the run does not end so")
}
