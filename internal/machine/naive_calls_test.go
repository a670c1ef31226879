package machine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// phase is a state of the second diagram of the spec.
type phase int

const (
	asked phase = iota
	ready
	decided
	running
	entered
	leaving
	pending
	doubt
	settled
)

// callState is what the events of a call come to.
type callState struct {
	phase    phase
	attempts int
	notAfter int64
	epoch    uint64 // under which the last attempt was intended
	unknowns int
	stage    int // of what is open after an attempt [M9.1]
	possible bool
	before   bool  // the same, before the last attempt
	until    int64 // when a call in doubt may be acted on
	ask      bool  // to be asked about [M8.16]
	seen     bool  // in doubt because a driver recorded unknown
	note     string
	deadline int64
	verdict  *journal.Decided
	outcome  journal.Outcome
	output   item.Item
	attempt  bool // settled by an attempt
	cleared  bool // by guardrails
	edited   string
	digest   item.Digest
	at       int  // in the log: the first attempt or the end, whichever is first; -1 before
	end      int  // in the log
	known    bool // settled, and somebody said later what happened
}

func (w *world) turn() *turn {
	if len(w.turns) == 0 {
		return nil
	}
	return w.turns[len(w.turns)-1]
}

func (w *world) response() *response {
	if len(w.responses) == 0 {
		return nil
	}
	return w.responses[len(w.responses)-1]
}

func (w *world) managed() bool {
	return w.start.Conversation != "" || w.start.Previous != "" || w.start.Auto
}

// call returns the call at this ordinal and position, whatever the attempt.
func (w *world) call(id journal.EffectID) *call {
	for _, r := range w.responses {
		for _, c := range r.calls {
			if c.id.N == id.N && c.id.P == id.P {
				return c
			}
		}
	}
	return nil
}

// newest returns the calls that can be open: those of the newest response.
func (w *world) newest() []*call {
	if r := w.response(); r != nil {
		return r.calls
	}
	return nil
}

func (c *call) harmless() bool {
	return c.spec.Class == journal.ReadOnly || c.spec.Class == journal.Idempotent
}

func (c *call) transactional() bool { return c.spec.Class == journal.Transactional }

func (c *call) recoverable() bool {
	return c.spec.Recover && !c.harmless() && !c.transactional()
}

// told says who hears of a call in doubt: the model, or else a person.
func (c *call) told(s callState) bool {
	return c.spec.OnUnknown == journal.UnknownTell || c.spec.OnUnknown == journal.UnknownDefault && s.seen
}

// expired says that nobody decided an asked call [M9.16].
func (c *call) expired(s callState) *journal.Expired {
	if s.attempts == 0 {
		return &journal.Expired{Call: c.id}
	}
	return &journal.Expired{Call: c.id, Stage: s.stage}
}

// expiry is M9.15.
func (c *call) expiry(asked int64) int64 {
	if c.spec.Expires <= 0 {
		return 0
	}
	return asked + c.spec.Expires
}

// decision returns what was decided about the call at a stage.
func (c *call) decision(stage int) *journal.Decided {
	for _, m := range c.events {
		if d, ok := m.fact.Body.(*journal.Decided); ok && d.Stage == stage {
			return d
		}
	}
	return nil
}

// stickyFor returns the newest sticky decision on the call's tool before a place in the log; -1 is its end.
func (w *world) stickyFor(c *call, before int) *journal.Decided {
	var found *journal.Decided
	for _, s := range w.sticky {
		if c.spec.Identity != "" && s.identity == c.spec.Identity && (before < 0 || s.at < before) {
			found = s.decided
		}
	}
	return found
}

// decidedBy returns the sticky decision that M9.9 takes for the call, if it takes one.
func (w *world) decidedBy(c *call, before int) *journal.Decided {
	s := w.stickyFor(c, before)
	switch {
	case s == nil, c.planned.Gate == journal.Deny, c.decision(0) != nil:
		return nil
	case !c.planned.Output.IsZero() && c.planned.Gate == journal.Allow:
		return nil
	case s.Verdict == journal.Approve && c.planned.Gate != journal.Ask:
		return nil
	}
	return s
}

// state reads the call's events in their order [M8, M9, M12].
func (w *world) state(c *call) callState {
	s := callState{at: -1, stage: 1, digest: c.planned.Digest}
	if d := c.decision(0); d != nil && d.Arguments != "" {
		w.hit("M9.7 edited")
		s.edited = d.Arguments
		s.digest, _, _ = item.DigestArguments(d.Arguments)
	}
	w.first(c, &s)
	if s.phase == asked {
		s.deadline = c.expiry(w.log[c.at].fact.Time)
	}
	for _, m := range c.events {
		if s.phase == settled {
			w.afterwards(&s, m.fact.Body)
			continue
		}
		switch b := m.fact.Body.(type) {
		case *journal.Intended:
			s.phase, s.attempts, s.notAfter, s.epoch, s.before = running, b.ID.A, b.NotAfter, m.epoch, s.possible
			if s.at < 0 {
				s.at = m.at
			}
		case *journal.Decided:
			if b.Stage > 0 {
				w.decidedLater(&s, b)
			}
		case *journal.Expired:
			if c.spec.ExpiryFails {
				s.deadline = 0
			}
		case *journal.Started:
			s.phase, s.attempts, s.at = entered, 1, m.at
		case *journal.Finished:
			s.phase = leaving
		case *journal.Failed:
			s.phase, s.attempts = leaving, 1
			if s.at < 0 {
				s.at = m.at
			}
		case *journal.Absent:
			w.hit("M8.18 absent")
			s.phase, s.ask, s.possible = ready, false, s.before
			s.stage++
		case *journal.Claimed:
			w.claim(c, &s, m, b)
		case *journal.Settled:
			w.outcome(c, &s, m, b)
		case *journal.Checked:
			if s.cleared = tripOf(b.Checks) == nil; !b.Output.IsZero() {
				w.hit("M19.7 rejected")
				s.phase, s.outcome, s.output = settled, journal.Rejected, b.Output
				if s.at < 0 {
					s.at = m.at
				}
			}
		case *journal.Transferred:
			s.phase, s.outcome, s.output, s.at = settled, journal.Done, b.Output, m.at
		}
	}
	if c.withheld {
		s.output = c.answer(machine.WithheldText)
	}
	return s
}

// afterwards is M8.13 and M9.20.
func (w *world) afterwards(s *callState, b journal.Body) {
	switch b := b.(type) {
	case *journal.Settled:
		w.hit("M8.13 evidence")
		s.known = s.known || b.Outcome == journal.Done || b.Outcome == journal.ToolFailed
	case *journal.Decided:
		w.hit("M9.20 a finding")
		s.known = true
		s.stage++
	}
}

// isUnknown is M8.23 for a settled call.
func (w *world) isUnknown(c *call, s callState) bool {
	return s.phase == settled && s.outcome == journal.Unknown && c.spec.Class != journal.ReadOnly && c.spec.Agent == "" && !s.known && s.end > w.forked
}

// decidedLater is M9.10, M9.11 and M9.14.
func (w *world) decidedLater(s *callState, b *journal.Decided) {
	s.stage++
	switch b.Verdict {
	case journal.Retry:
		w.hit("M9.11 retry")
		s.phase, s.verdict = ready, nil
	case journal.Approve:
		w.hit("M9.14 approved again")
		s.phase, s.verdict = ready, nil
	default:
		s.phase, s.verdict = decided, b
	}
}

// first is M8.1 and M9.9.
func (w *world) first(c *call, s *callState) {
	own, sticky := c.decision(0), w.stickyFor(c, -1)
	approved := func() {
		s.phase = ready
		if c.planned.Unreadable && s.edited == "" {
			w.hit("M9.8 approved but unreadable")
			s.phase = decided
		}
	}
	switch {
	case !c.planned.Output.IsZero() && c.planned.Gate == journal.Allow:
		w.hit("M8.1 settled by the plan")
		s.phase, s.outcome, s.output, s.at = settled, journal.Rejected, c.planned.Output, c.at
	case c.planned.Gate == journal.Deny:
		s.phase = decided
	case own != nil && own.Verdict == journal.Approve:
		approved()
	case own != nil:
		s.phase, s.verdict = decided, own
	case sticky != nil && sticky.Verdict == journal.Reject:
		w.hit("M9.9 a sticky rejection")
		s.phase, s.verdict = decided, sticky
	case c.planned.Gate == journal.Ask && sticky != nil:
		w.hit("M9.9 a sticky approval")
		approved()
	case c.planned.Gate == journal.Ask:
		s.phase = asked
	default:
		s.phase = ready
	}
}

// claim is M8.16, M12.3 to M12.5, M12.8 and M15.3.
func (w *world) claim(c *call, s *callState, m moment, b *journal.Claimed) {
	switch {
	case s.phase == running && c.transactional():
		w.hit("M12.8 a transactional call is ready again")
		s.phase = ready
	case s.phase == running && c.harmless():
		w.hit("M12.3 a harmless call is ready again")
		s.phase, s.possible = ready, true
	case s.phase == running:
		s.phase, s.possible, s.seen, s.until, s.note = doubt, true, false, s.notAfter+2000, ""
	case s.phase == pending:
		w.hit("M8.20 claimed")
	case s.phase == doubt && c.recoverable() && !s.ask:
		w.hit("M8.16 asked about again")
	}
	s.ask = s.phase == doubt && c.recoverable()
	if s.phase == doubt && b.Gone {
		if s.epoch == m.before {
			w.hit("M12.5 the owner is gone")
			s.until = 0
		} else {
			w.hit("M12.5 an older owner")
		}
	}
}

// outcome is M8.3, M8.11, M8.12 and M8.19 to M8.21.
func (w *world) outcome(c *call, s *callState, m moment, b *journal.Settled) {
	settle := func() {
		s.phase, s.outcome, s.output, s.attempt, s.end = settled, b.Outcome, b.Output, b.ID.A > 0, m.at
		if s.at < 0 {
			s.at = m.at
		}
	}
	switch {
	case b.ID.A == 0:
		settle()
	case b.Outcome == journal.NotExecuted:
		w.hit("M8.11 not executed")
		s.phase = ready
	case b.Outcome == journal.Pending:
		w.hit("M8.20 pending")
		s.phase, s.possible, s.note = pending, true, b.Error
	case b.Outcome == journal.AsksAgain:
		w.hit("M8.21 asks")
		s.phase, s.note, s.deadline = asked, b.Error, c.expiry(m.fact.Time)
	case b.Outcome == journal.Unknown && s.phase == doubt:
		w.hit("M8.19 the far side cannot tell")
		s.ask, s.note = false, b.Error
	case b.Outcome != journal.Unknown:
		if s.phase != running || b.ID.A != s.attempts {
			w.hit("M8.12 a late result")
		}
		if s.phase == pending {
			w.hit("M8.20 its result")
		}
		settle()
	default:
		s.possible, s.note = true, b.Error
		s.unknowns++
		switch {
		case c.harmless() && s.unknowns < 3:
			w.hit("M8.3 ready again")
			s.phase = ready
		case c.recoverable() || c.spec.OnUnknown == journal.UnknownWait:
			s.phase, s.until, s.ask, s.seen = doubt, 0, c.recoverable(), true
			if b.Running {
				w.hit("M8.3 unknown and running")
				s.until = s.notAfter + 2000
			}
		case c.harmless():
			w.hit("M8.3 unknown too often")
			settle()
		default:
			w.hit("M8.3 the model is told at once")
			settle()
		}
	}
}

func (w *world) open(c *call) bool { return w.state(c).phase != settled }

func (w *world) anyOpen() bool { return slices.ContainsFunc(w.newest(), w.open) }

func (w *world) running() (n int) {
	for _, c := range w.newest() {
		if w.state(c).phase == running {
			n++
		}
	}
	return n
}

// key is M16.3.
func (w *world) key(c *call) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{"pawl-key/1", w.run, w.name, c.id.String()}, "\x00")))
	return "pawl_" + hex.EncodeToString(sum[:])[:32]
}

// answer makes the output of a call out of a text [M8.4].
func (c *call) answer(text string) item.Item {
	if call, err := c.item.FunctionCall(); err == nil {
		return call.Output(text)
	}
	if request, err := c.item.ApprovalRequest(); err == nil { // M8.24
		return item.ApprovalReply(request.ID, false, text)
	}
	call, _ := c.item.CustomToolCall()
	return call.Output(text)
}

func (c *call) head() item.Head { return c.item.Head() }

// pairs is M8.4.
func (c *call) pairs(out item.Item) bool { return pairs(c.item, out) }

func pairs(call, out item.Item) bool {
	return out.Head().Type == item.OutputType(call.Type()) && out.Head().CallID == call.Head().CallID
}

// tell is the text of M8.10.
func (w *world) tell(c *call) string { return w.edited(c) + machine.UnknownText(w.key(c)) }

// edited is what the model reads of edited arguments [M9.7].
func (w *world) edited(c *call) string {
	if s := w.state(c); s.edited != "" {
		return "The reviewer changed the arguments to " + s.edited + ".\n"
	}
	return ""
}

// settlement is M9.10 and M15.3: how a call ends without an attempt. ok is false if it does not.
func (w *world) settlement(c *call) (how journal.Outcome, out item.Item, ok bool) {
	s := w.state(c)
	reject := func(text string) (journal.Outcome, item.Item, bool) {
		if text == "" {
			text = c.planned.Reject
		}
		if text == "" {
			text = machine.RejectedText
		}
		if s.verdict != nil && s.possible && c.spec.Class != journal.ReadOnly {
			w.hit("M9.10 rejected when an attempt may have happened")
			return journal.Unknown, c.answer(text + "\n" + w.tell(c)), true
		}
		return journal.Rejected, c.answer(text), true
	}
	switch {
	case s.phase == decided && s.verdict == nil && c.planned.Gate != journal.Deny:
		return journal.Rejected, c.planned.Output, true
	case s.phase == decided && s.verdict == nil:
		w.hit("M9.10 denied")
		return reject("")
	case s.phase == decided && s.verdict.Verdict == journal.Settle:
		w.hit("M9.10 settle")
		return journal.Decreed, c.answer(w.edited(c) + s.verdict.Text), true
	case s.phase == decided && s.verdict.Verdict == journal.GiveUp:
		w.hit("M9.10 give up")
		return journal.Unknown, c.answer(w.tell(c)), true
	case s.phase == decided:
		w.hit("M9.10 rejected")
		return reject(s.verdict.Text)
	case s.phase == entered:
	case w.closed() && s.phase == leaving && !w.knows(c):
		w.hit("M17.10 unknown")
		return journal.Unknown, c.answer(w.tell(c)), true
	case w.closed() && w.frame(w.inside(c)) != nil && s.phase == leaving:
		w.hit("M17.10 stopped")
		return journal.Dropped, c.answer(machine.StoppedText), true
	case w.closed() && s.phase != running && s.phase != settled && s.possible:
		w.hit("M15.3 unknown")
		return journal.Unknown, c.answer(w.tell(c)), true
	case w.closed() && s.phase != running && s.phase != settled:
		w.hit("M15.3 dropped")
		return journal.Dropped, c.answer(machine.CancelledText), true
	case s.phase == doubt && !s.ask && c.told(s):
		return journal.Unknown, c.answer(w.tell(c)), true
	case s.phase == ready && c.spec.Hosted && w.cleared(c, s):
		w.hit("M8.24 approved")
		return journal.Decreed, item.ApprovalReply(c.head().ID, true, ""), true
	}
	return "", item.Item{}, false
}

// results is M14.3.
func (w *world) results() (out []*call) {
	for _, c := range w.newest() {
		if s := w.state(c); s.phase == settled && s.attempt && (s.outcome == journal.Done || s.outcome == journal.ToolFailed) {
			out = append(out, c)
		}
	}
	return out
}

// interruptions is M9.1.
func (w *world) interruptions() (out []machine.Interruption) {
	if w.finished != nil || w.closed() {
		return nil
	}
	for _, c := range w.newest() {
		s := w.state(c)
		if s.phase == entered {
			out = append(out, w.frame(w.inside(c)).interruptions()...)
			continue
		}
		in := machine.Interruption{Frame: w.name, Route: w.route(), Call: c.id, CallID: c.head().CallID, Tool: c.spec.Name, Arguments: w.arguments(c),
			Digest: s.digest, Unreadable: c.planned.Unreadable && s.edited == "", Key: w.key(c), Note: s.note}
		if s.attempts > 0 {
			in.Stage = s.stage
		}
		if request, err := c.item.ApprovalRequest(); err == nil { // M9.21
			in.Server, in.Key = request.ServerLabel, ""
		}
		switch {
		case s.phase == asked:
			in.Deadline = s.deadline
		case s.phase == pending:
			in.Kind = machine.External
		case s.phase == doubt && !s.ask && !c.told(s):
			in.Kind, in.NotBefore = machine.InDoubt, s.until
		default:
			continue
		}
		out = append(out, in)
	}
	return out
}

// arguments are those in force [M9.7].
func (w *world) arguments(c *call) string {
	if s := w.state(c); s.edited != "" {
		return s.edited
	}
	if call, err := c.item.FunctionCall(); err == nil {
		return call.Arguments
	}
	if request, err := c.item.ApprovalRequest(); err == nil {
		return request.Arguments
	}
	call, _ := c.item.CustomToolCall()
	return call.Input
}
