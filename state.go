package pawl

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// RunState is a run as it was at one moment: its ledger, and decisions and input staged on
// this copy. Two states of one run do not share them. It is not safe for
// concurrent use.
//
// Resuming from a state whose run is in the Runner's store takes from it the run's
// id, its position and what is staged; the store says the rest.
type RunState struct {
	records ledger           // shared, never changed
	unsaved []journal.Record // facts the store did not take
	staged  []Decision
	input   []journal.Record // added, and not submitted
	machine *machine.Machine // the fold of records, for questions
}

// replay folds records into a machine.
func replay(records []journal.Record) (*machine.Machine, error) {
	m := machine.New()
	for i := range records {
		f, err := journal.Decode(records[i])
		if err != nil {
			return nil, err
		}
		if err := m.Replay(f); err != nil {
			return nil, err
		}
	}
	if m.Started() == nil {
		return nil, fmt.Errorf("%w: it has no facts", ErrState)
	}
	return m, nil
}

// ledger is the records of a run, in the parts in which they were appended: it grows
// without being copied.
type ledger struct {
	parts [][]journal.Record
	size  int
}

func (l *ledger) add(recs []journal.Record) {
	if len(recs) > 0 {
		l.parts = append(l.parts, recs)
		l.size += len(recs)
	}
}

// list returns the records as one slice.
func (l *ledger) list() []journal.Record {
	if len(l.parts) != 1 {
		l.parts = [][]journal.Record{slices.Concat(l.parts...)}
	}
	return l.parts[0]
}

// behind returns the records behind number n.
func (l *ledger) behind(n int) []journal.Record {
	from := l.size
	i := len(l.parts)
	for i > 0 && from > n {
		i--
		from -= len(l.parts[i])
	}
	parts := l.parts[i:]
	switch {
	case from >= l.size:
		return nil
	case len(parts) == 1:
		return parts[0][n-from:]
	}
	return slices.Concat(parts...)[n-from:]
}

// ledgerOf returns the ledger of these records.
func ledgerOf(records []journal.Record) (l ledger) {
	l.add(records[:len(records):len(records)])
	return l
}

// newState returns the state of a ledger that is known to be sound.
func newState(records ledger, unsaved []journal.Record) *RunState {
	records.parts = records.parts[:len(records.parts):len(records.parts)] // the drive's own grows on
	return &RunState{records: records, unsaved: unsaved}
}

// fold returns the machine of the state. The records passed replay when the state
// was made, so it cannot fail.
func (s *RunState) fold() *machine.Machine {
	if s.machine == nil {
		m, err := replay(s.records.list())
		if err != nil {
			m = machine.New()
		}
		s.machine = m
	}
	return s.machine
}

// Run returns the run's id.
func (s *RunState) Run() string { return s.fold().Run() }

// AgentKey returns the key of the run's agent.
func (s *RunState) AgentKey() string {
	if s.records.size == 0 {
		return ""
	}
	return s.fold().Started().Agent
}

// SessionID returns the id of the run's session, empty without one.
func (s *RunState) SessionID() string {
	if ref := s.fold().Session(); ref != nil {
		return ref.ID
	}
	return ""
}

// Facts returns the number of facts in the ledger.
func (s *RunState) Facts() int { return s.records.size }

// Status says where the run stands. A run that somebody drives, or whose driver
// is gone, is StatusRunning.
func (s *RunState) Status() Status { return statusOf(s.fold()) }

// Interruptions returns what waits for a decision, in the order of the model's
// calls, without what is decided on this state.
func (s *RunState) Interruptions() []Interruption {
	staged := make(map[string]bool, len(s.staged))
	for _, d := range s.staged {
		staged[d.Interruption] = true
	}
	var list []Interruption
	for _, in := range interruptionsOf(s.fold()) {
		if !staged[in.ID] {
			list = append(list, in)
		}
	}
	return list
}

// Staged returns the decisions that resuming from this state will submit.
func (s *RunState) Staged() []Decision { return append([]Decision(nil), s.staged...) }

// Result returns what the run has come to so far.
func (s *RunState) Result() *Result {
	m := s.fold()
	return newResult(m, s, &Agent{Key: m.Agent()})
}

// Approve stages an approval. It is invisible to other copies of the state until
// Resume or Decide submits it.
func (s *RunState) Approve(in Interruption, by string) error {
	return s.decideOn(in, Approve(in.ID, by))
}

// Reject stages a rejection; an empty message means the standard text.
func (s *RunState) Reject(in Interruption, by, message string) error {
	return s.decideOn(in, Reject(in.ID, by, message))
}

// decideOn stages a decision on what its decider was shown: an interruption of another
// run, or with other arguments, is refused.
func (s *RunState) decideOn(in Interruption, d Decision) error {
	d.Digest = in.Digest
	frame, call, _, err := machine.ParseInterruptionID(in.ID)
	switch {
	case err != nil:
	case in.Run != "" && in.Run != s.Run():
		return s.refused(fmt.Errorf("%w: %s is of run %s", ErrDecision, in.ID, in.Run))
	case in.Arguments != "" && in.Arguments != s.asked(frame, call):
		return s.refused(fmt.Errorf("%w: %s does not ask for %s", ErrDecision, in.ID, in.Arguments))
	}
	return s.Decide(d)
}

// asked returns the arguments of a call of a frame, empty if there is no such frame.
func (s *RunState) asked(frame string, call journal.EffectID) string {
	if f := s.fold().Frame(frame); f != nil {
		return f.Arguments(call)
	}
	return ""
}

// Decide stages any decision. It returns ErrNotOpen, ErrDecided or ErrDecision, wrapped,
// for a decision the run would refuse; the same decision again changes nothing.
func (s *RunState) Decide(d Decision) error {
	m := s.fold()
	f, err := d.fact(m, time.Now())
	if err != nil {
		return s.refused(because(ErrDecision, err))
	}
	switch err := m.Check(f); {
	case errors.Is(err, machine.ErrSame):
		return nil
	case err != nil:
		return s.refused(s.refusal(err))
	}
	for _, have := range s.staged {
		if have.Interruption == d.Interruption {
			return s.repeated(have, f)
		}
	}
	d.Digest = f.Body.(*journal.Decided).Digest // also in a document it is for these arguments
	s.staged = append(s.staged[:len(s.staged):len(s.staged)], d)
	return nil
}

// repeated is what a second decision on an interruption meets: nothing if it decides the
// same, whoever takes it.
func (s *RunState) repeated(first Decision, f journal.Fact) error {
	have, err := first.fact(s.fold(), time.Now())
	if err == nil && machine.SameDecision(have.Body.(*journal.Decided), f.Body.(*journal.Decided)) {
		return nil
	}
	return s.refused(fmt.Errorf("%w: %s is decided here: %s by %q", ErrDecided, first.Interruption, first.Verdict, first.By))
}

func (s *RunState) refused(err error) error { return &RunError{Run: s.Run(), State: s, Err: err} }

// Fork returns a copy of the run as a run of its own, with the given id: its calls
// have keys of their own, so an effect of both runs happens twice. It has no session
// unless one is given when it is resumed. Staged decisions and input are copied. ErrFork if the run
// has ended, if a call may be running or is in doubt, or if the server holds the
// conversation object, which two runs cannot share.
func (s *RunState) Fork(id string) (*RunState, error) {
	m := s.fold()
	switch {
	case s.records.size == 0:
		return nil, fmt.Errorf("%w: the state is empty", ErrFork)
	case id == "" || id == m.Run():
		return nil, s.refused(fmt.Errorf("%w: a fork needs an id of its own", ErrFork))
	case m.Finished() != nil:
		return nil, s.refused(fmt.Errorf("%w: it has ended", ErrFork))
	case m.Started().Conversation != "":
		return nil, s.refused(fmt.Errorf("%w: two runs cannot share conversation %s", ErrFork, m.Started().Conversation))
	case len(s.unsaved) > 0 || m.Exposed():
		return nil, s.refused(fmt.Errorf("%w: a call may have taken effect", ErrFork))
	}
	fact := journal.Fact{Time: time.Now().UnixMilli(), Body: &journal.Forked{Run: id}}
	if err := m.Check(fact); err != nil {
		return nil, s.refused(because(ErrFork, err))
	}
	rec := journal.Encode(fact, newSalt())
	f := newState(s.records, nil)
	f.records.add([]journal.Record{rec})
	f.staged, f.input = append([]Decision(nil), s.staged...), s.input
	return f, nil
}
