package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// Decide submits decisions to a run, whoever drives it or nobody. They are durable
// when it returns, and take effect when the run is driven. The same decision again
// changes nothing; another one is ErrDecided. ErrNotOpen, ErrDecision and ErrCallInFlight say
// why a decision is refused; none is submitted then. Edited arguments are compared with
// the tool's schema if the run's agent is among Runner.Agents, and the tool is its own;
// otherwise the model reads what is wrong with them.
//
// Settle also takes what somebody found out about a call that is settled as unknown,
// whatever the run has done since: see Unsettled. It is recorded at once, or by whoever
// drives the run at the moment; should that driver end without it, submitting it again
// records it.
func (r *Runner) Decide(ctx context.Context, run string, decisions ...Decision) error {
	s, err := r.State(ctx, run)
	if err != nil {
		return err
	}
	if err := s.checkEdits(r.lookUp(s.AgentKey(), s.fold().Agent()), decisions); err != nil {
		return err
	}
	err = s.submit(ctx, r.store(), decisions)
	told := r.tellEngine(ctx, run) // also when somebody was faster, who may have died before it was told
	if err == nil && told != nil {
		err = s.refused(told)
	}
	if err != nil {
		return err
	}
	if !s.finds(decisions) {
		return nil
	}
	if err := r.recordLate(ctx, run); err != nil && !errors.Is(err, ErrClaimed) {
		return s.refused(err)
	}
	return nil
}

// finds says that one of the decisions is about a call that is settled: it can only be a
// finding [M9.20].
func (s *RunState) finds(decisions []Decision) bool {
	return slices.ContainsFunc(decisions, func(d Decision) bool {
		frame, call, _, err := machine.ParseInterruptionID(d.Interruption)
		f := s.fold().Frame(frame)
		return err == nil && f != nil && !f.OutputOf(call).IsZero()
	})
}

// submit checks decisions against the state and posts them.
func (s *RunState) submit(ctx context.Context, store journal.Driver, decisions []Decision) error {
	m := s.fold()
	opens := false // a decision on an open call is among them
	var entries []journal.Entry
	for i, d := range decisions {
		f, err := d.fact(m, time.Now())
		if err != nil {
			return s.refused(because(ErrDecision, err))
		}
		switch err := m.Check(f); {
		case errors.Is(err, machine.ErrSame):
		case err != nil:
			return s.refused(s.refusal(err))
		default:
			if first := slices.IndexFunc(decisions[:i], func(o Decision) bool { return o.Interruption == d.Interruption }); first >= 0 {
				if err := s.repeated(decisions[first], f); err != nil {
					return err
				}
				continue
			}
			key := lateKey + d.Interruption
			if !s.finds(decisions[i : i+1]) {
				key, opens = d.Interruption, true
			}
			entries = append(entries, journal.Entry{Key: key, Body: journal.Encode(f, newSalt())})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	waiting, err := store.Inbox(ctx, m.Run())
	if err != nil {
		return s.refused(err)
	}
	if opens && slices.ContainsFunc(waiting, func(e journal.Entry) bool { return e.Key == cancelKey }) {
		return s.refused(fmt.Errorf("%w: the run is cancelled", ErrNotOpen))
	}
	for _, e := range entries {
		if err := post(ctx, store, m.Run(), e); err != nil {
			return s.refused(err)
		}
	}
	return nil
}

// post puts a decision in the inbox. Two drivers may submit the same decision at
// different times, so what stands there already is compared by what it decides.
func post(ctx context.Context, store journal.Driver, run string, e journal.Entry) error {
	err := store.Post(ctx, run, e)
	var other *journal.EntryError
	if !errors.As(err, &other) {
		return err
	}
	first, err1 := journal.Decode(other.First.Body)
	mine, err2 := journal.Decode(e.Body)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	a, isA := first.Body.(*journal.Decided)
	b, isB := mine.Body.(*journal.Decided)
	if isA && isB && machine.SameDecision(a, b) {
		return nil
	}
	if isA {
		return fmt.Errorf("%w: %s is decided: %s by %q", ErrDecided, strings.TrimPrefix(e.Key, lateKey), a.Verdict, a.By)
	}
	return nil
}

// cancelKey is the inbox key of a cancellation.
const cancelKey = "cancel"

// Cancel ends a run: what is in flight is cancelled, open calls are settled as not
// executed or unknown, what is owed to the session is appended. It is durable when
// Cancel returns, and is carried out by whoever drives the run; if nobody does, resume it.
// A driver in another process sees it within half a second between effects and while
// tools run, and within a third of its lease while a model answers. The body of a
// Transactional tool holds the store's only writer: one that this Runner runs is rolled
// back at once, and Cancel waits for one of another process, as every write does.
// Cancelling a run that has ended changes nothing.
func (r *Runner) Cancel(ctx context.Context, run, by, why string) error {
	s, err := r.State(ctx, run)
	if err != nil {
		return err
	}
	if m := s.fold(); m.Finished() != nil || m.Cancelled() {
		return nil
	}
	if d, ok := r.active.Load(run); ok {
		defer d.(*drive).rollBack()()
	}
	f := journal.Fact{Time: time.Now().UnixMilli(), Body: &journal.Cancelled{By: by, Why: why}}
	if err := post(ctx, r.store(), run, journal.Entry{Key: cancelKey, Body: journal.Encode(f, newSalt())}); err != nil {
		return s.refused(err)
	}
	if d, ok := r.active.Load(run); ok {
		d.(*drive).wakeUp()
	}
	if err := r.tellEngine(ctx, run); err != nil {
		return s.refused(err)
	}
	return nil
}
