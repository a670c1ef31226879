package machine

import (
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl/item"
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
	if m.started == nil {
		return notDue("the run has not started")
	}
	if m.finished != nil {
		return m.checkEnded(f)
	}
	switch b := f.Body.(type) {
	case *journal.Claimed:
		if b.Epoch <= m.epoch {
			return notDue("epoch %d is not newer than %d", b.Epoch, m.epoch)
		}
	case *journal.Forked, *journal.Resumed, *journal.Cancelled:
	case *journal.Loaded:
		if m.loaded {
			return notDue("the history is loaded")
		}
	case *journal.Prepared:
		return m.checkPrepared(b)
	case *journal.Intended:
		return m.checkIntended(b)
	case *journal.Responded:
		if b.ID.Kind != journal.EffectModel || !m.turn.open || b.ID != m.modelID() {
			return notDue("no request %s is open", b.ID)
		}
	case *journal.Planned:
		return m.checkPlanned(b)
	case *journal.Decided:
		return m.checkDecided(f.Time, b)
	case *journal.Settled:
		return m.checkSettled(b)
	case *journal.Judged:
		r := m.last()
		if r == nil || r.n != b.N || r.planned == nil || r.unsettled > 0 || r.judged != nil {
			return notDue("response %d waits for no verdict on its tools", b.N)
		}
	case *journal.Confirmed:
		return m.checkConfirmed(b)
	case *journal.Absent:
		return m.checkAbsent(b)
	case *journal.Failed:
		return m.checkFailed(b)
	case *journal.Fired:
		if b.ID.Kind != journal.EffectWait {
			return notDue("%s is no wait", b.ID)
		}
	case *journal.Finished:
		return m.checkFinished(b)
	default:
		return notDue("fact %T", b)
	}
	return nil
}

// checkEnded: after the end a run takes only a new claim and evidence.
func (m *Machine) checkEnded(f journal.Fact) error {
	switch b := f.Body.(type) {
	case *journal.Claimed:
		return nil
	case *journal.Settled:
		return m.checkSettled(b)
	case *journal.Decided:
		return m.checkDecided(f.Time, b)
	}
	return notDue("the run has ended")
}

func (m *Machine) checkStarted(s *journal.Started) error {
	switch {
	case m.started != nil:
		return notDue("the run has started")
	case s.Run == "" || s.Agent == "":
		return notDue("a run needs an id and an agent")
	case s.Machine > Version:
		return fmt.Errorf("%w: rules of version %d", journal.ErrNewerJournal, s.Machine)
	case s.Session != nil && (s.Conversation != "" || s.Previous != "" || s.Auto):
		return notDue("a session and a server-managed conversation exclude each other")
	case s.Conversation != "" && (s.Previous != "" || s.Auto):
		return notDue("a conversation and a previous response exclude each other")
	}
	return nil
}

func (m *Machine) checkPrepared(b *journal.Prepared) error {
	r := m.last()
	switch {
	case !m.loaded || m.turn.open || m.turn.again || r != nil && (r.planned == nil || r.unsettled > 0):
		return notDue("no turn is due")
	case b.N != m.turns+1:
		return notDue("turn %d follows turn %d", b.N, m.turns)
	case b.Upto != m.settled:
		return notDue("a request up to %d when %d is settled", b.Upto, m.settled)
	case b.Manifest == nil && m.manifests[b.Same] == nil:
		return notDue("turn %d has no manifest", b.N)
	}
	return nil
}

func (m *Machine) checkIntended(b *journal.Intended) error {
	switch b.ID.Kind {
	case journal.EffectModel:
		if b.ID.N == m.turn.n && b.ID.A == m.turn.attempt+1 && (m.turn.doubt || m.turn.again) {
			return nil
		}
	case journal.EffectSession:
		next := m.batches + 1
		first := m.open == nil && b.ID.A == 1 && m.persisted < m.settled
		again := m.open != nil && b.ID.A == m.open.attempt+1 && b.Upto == m.open.upto
		if b.ID.N == next && m.session != nil && b.Upto <= m.settled && b.Upto > m.persisted && (first || again) {
			return nil
		}
	case journal.EffectTool:
		if c := m.find(b.ID); c != nil && c.state == callReady && c.spec != nil && b.ID.A == c.attempt+1 {
			return nil
		}
	}
	return notDue("no effect %s is due", b.ID)
}

func (m *Machine) checkPlanned(b *journal.Planned) error {
	r := m.last()
	if r == nil || r.n != b.N || r.planned != nil {
		return notDue("response %d waits for no plan", b.N)
	}
	next := 0
	for i := range b.Calls {
		pc := &b.Calls[i]
		if pc.P < next || r.first+pc.P >= r.end {
			return notDue("call at %d of response %d", pc.P, b.N)
		}
		for ; next < pc.P; next++ {
			if m.history[r.first+next].item.NeedsOutput() {
				return notDue("the call at %d of response %d is not planned", next, b.N)
			}
		}
		next++
		if err := m.checkPlannedCall(r, pc); err != nil {
			return err
		}
	}
	for ; r.first+next < r.end; next++ {
		if m.history[r.first+next].item.NeedsOutput() {
			return notDue("the call at %d of response %d is not planned", next, b.N)
		}
	}
	if b.Final == journal.FinalMessage && (b.FinalAt < 0 || r.first+b.FinalAt >= r.end) || b.Final != journal.FinalNone && len(b.Calls) > 0 {
		return notDue("response %d is not final", b.N)
	}
	return nil
}

func (m *Machine) checkPlannedCall(r *response, pc *journal.PlannedCall) error {
	it := m.history[r.first+pc.P].item
	switch {
	case !it.NeedsOutput():
		return notDue("item %d of response %d is no call", pc.P, r.n)
	case pc.Tool < -1 || pc.Tool >= len(r.manifest.Tools):
		return notDue("tool %d of response %d", pc.Tool, r.n)
	case pc.Tool == -1 && (pc.Output.IsZero() || pc.Gate != journal.Allow) && !pc.Twin:
		return notDue("the call at %d of response %d has no tool and no output", pc.P, r.n)
	case pc.Unreadable && pc.Output.IsZero() && !pc.Twin:
		return notDue("the unreadable call at %d of response %d has no output", pc.P, r.n)
	case !pc.Output.IsZero() && !pairs(it, pc.Output):
		return notDue("the output at %d of response %d is for another call", pc.P, r.n)
	}
	return nil
}

// pairs says that out is the output of call.
func pairs(call, out item.Item) bool {
	c, o := call.Head(), out.Head()
	return o.Type == item.OutputType(c.Type) && o.CallID == c.CallID
}

// checkDecided binds a decision to the interruption and the arguments its decider
// saw [M9].
func (m *Machine) checkDecided(now int64, b *journal.Decided) error {
	c := m.find(b.Call)
	if c == nil {
		return notDue("there is no call %s", b.Call)
	}
	if b.Stage < c.stage {
		first := c.decisions[b.Stage]
		if sameDecision(first, b) {
			return ErrSame
		}
		return &DecidedError{First: first}
	}
	kind, open := c.openKind()
	switch {
	case b.Stage != c.stage || !open || m.finished != nil || m.cancelled != nil:
		return notDue("call %s is not open for a decision", b.Call)
	case b.Digest != c.plan.Digest:
		return fmt.Errorf("%w (call %s)", ErrDigest, b.Call)
	case !fits(kind, b.Verdict):
		return fmt.Errorf("%w: %s cannot settle %s", ErrVerdict, b.Verdict, kind)
	case b.Sticky && (kind != Approval || c.spec == nil || c.spec.Identity == ""):
		return fmt.Errorf("%w: only an approval of a known tool can be sticky", ErrVerdict)
	case b.Arguments != "" && (b.Verdict != journal.Approve || c.attempt > 0):
		return fmt.Errorf("%w: arguments can be edited only while approving a call that never started", ErrVerdict)
	case kind == InDoubt && now < c.blocked:
		return fmt.Errorf("%w (call %s, until %d)", ErrInFlight, b.Call, c.blocked)
	}
	if b.Arguments != "" {
		if _, err := item.Canonical(b.Arguments); err != nil {
			return fmt.Errorf("%w: %w", ErrVerdict, err)
		}
	}
	return nil
}

func sameDecision(a, b *journal.Decided) bool {
	return a.Verdict == b.Verdict && a.Sticky == b.Sticky && a.Arguments == b.Arguments && a.Text == b.Text && a.Digest == b.Digest
}

func fits(kind InterruptionKind, v journal.Verdict) bool {
	switch v {
	case journal.Approve, journal.Reject:
		return kind == Approval
	case journal.Settle, journal.Retry, journal.GiveUp:
		return kind == InDoubt
	}
	return false
}

func (m *Machine) checkSettled(b *journal.Settled) error {
	c := m.find(b.ID)
	switch {
	case c == nil || b.ID.A > c.attempt:
		return notDue("no attempt %s was intended", b.ID)
	case c.state != callSettled && b.Late:
		return notDue("call %s is open", b.ID)
	case b.Outcome == journal.NotExecuted:
		if c.state != callRunning || b.ID.A != c.attempt || c.epoch != m.epoch {
			return notDue("only the driver that intended %s may say it was not executed", b.ID)
		}
		return nil
	case b.ID.A == 0 && (b.Outcome == journal.Done || b.Outcome == journal.ToolFailed):
		return notDue("call %s cannot end without an attempt", b.ID)
	case b.ID.A > 0 && (c.state == callAsked || c.attempt == 0):
		return notDue("call %s never started", b.ID)
	case b.Output.IsZero() || !pairs(m.history[c.slot].item, b.Output):
		return notDue("the output is not for call %s", b.ID)
	}
	return nil
}

func (m *Machine) checkConfirmed(b *journal.Confirmed) error {
	if m.session == nil || b.N != m.batches+1 || b.Upto > m.settled || b.Upto <= m.persisted {
		return notDue("no batch %d is open", b.N)
	}
	if !m.session.Own && (m.open == nil || b.Upto != m.open.upto) {
		return notDue("batch %d was not intended", b.N)
	}
	return nil
}

func (m *Machine) checkAbsent(b *journal.Absent) error {
	switch b.ID.Kind {
	case journal.EffectSession:
		if m.open != nil && m.open.doubt && b.ID.N == m.open.n && b.ID.A == m.open.attempt {
			return nil
		}
	case journal.EffectModel:
		if m.turn.doubt && b.ID == m.modelID() {
			return nil
		}
	}
	return notDue("%s is not in doubt", b.ID)
}

func (m *Machine) checkFailed(b *journal.Failed) error {
	switch b.ID.Kind {
	case journal.EffectModel:
		if !m.turn.open || b.ID != m.modelID() {
			return notDue("no request %s is open", b.ID)
		}
	case journal.EffectSession:
		if m.open == nil || b.ID.N != m.open.n || b.ID.A != m.open.attempt {
			return notDue("no batch %s is open", b.ID)
		}
	case journal.EffectTool, journal.EffectWait:
		return notDue("%s cannot fail", b.ID)
	}
	return nil
}

func (m *Machine) checkFinished(b *journal.Finished) error {
	switch {
	case b.Cancelled && m.cancelled == nil:
		return notDue("the run was not cancelled")
	case b.At < -1 || b.At >= len(m.history):
		return notDue("there is no item %d", b.At)
	case !b.Cancelled && (m.last() == nil || m.final(m.last()) == nil):
		return notDue("the run has no final output")
	}
	return nil
}
