package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/internal/owner"
	"github.com/pawl-agents/pawl/journal"
)

// SessionBusyError says that a run was not started, because another open run has its
// session or its conversation and is being driven. Nothing was done: start again when
// that run has ended or waits, or cancel it.
type SessionBusyError struct {
	// Session is the id of the session or of the conversation.
	Session string
	// Run is the open run, Holder who drives it.
	Run    string
	Holder journal.Holder
}

// Error names the session and the run that has it.
func (e *SessionBusyError) Error() string {
	return fmt.Sprintf("%s: session %q, run %s; wait until it ends or waits, or cancel it", ErrSessionBusy, e.Session, e.Run)
}

// Unwrap returns ErrSessionBusy.
func (e *SessionBusyError) Unwrap() error { return ErrSessionBusy }

// SessionWaitingError says that a run was not started, because another open run has its
// session or its conversation and waits for decisions. Nothing was done: decide and
// resume that run, cancel it, or start again with RunOptions.Supersede.
type SessionWaitingError struct {
	// Session is the id of the session or of the conversation.
	Session string
	// Run is the open run, Interruptions what it waits for.
	Run           string
	Interruptions []Interruption
	// State is the open run, to be decided and resumed.
	State *RunState
}

// Error names the session, the run that has it, and the calls that wait.
func (e *SessionWaitingError) Error() string {
	var calls []string
	for _, in := range e.Interruptions {
		calls = append(calls, in.ID+" "+in.Tool)
	}
	return fmt.Sprintf("%s: session %q, run %s (%s); decide and resume it, cancel it, or supersede it", ErrSessionWaiting, e.Session, e.Run, strings.Join(calls, ", "))
}

// Unwrap returns ErrSessionWaiting.
func (e *SessionWaitingError) Unwrap() error { return ErrSessionWaiting }

// SupersededError says that a run was closed because another one was started on its
// session or its conversation. It cannot be resumed or decided any more.
type SupersededError struct {
	// Run was closed, Successor has the session since.
	Run, Successor string
}

// Error names both runs.
func (e *SupersededError) Error() string {
	return fmt.Sprintf("%s: run %s has the session of run %s now", ErrSuperseded, e.Successor, e.Run)
}

// Unwrap returns ErrSuperseded and ErrCancelled.
func (e *SupersededError) Unwrap() []error { return []error{ErrSuperseded, ErrCancelled} }

// cancelled is the error of a run that was cancelled.
func cancelled(m *machine.Machine) error {
	if next := m.Successor(); next != "" {
		return &SupersededError{Run: m.Run(), Successor: next}
	}
	return ErrCancelled
}

// refusal is refusal, which names the run that has this one's session since.
func (s *RunState) refusal(err error) error {
	err = refusal(err)
	if next := s.fold().Successor(); next != "" && !errors.Is(err, ErrDecided) {
		return fmt.Errorf("%w: %w", &SupersededError{Run: s.Run(), Successor: next}, err)
	}
	return err
}

// cancelAsked says that a run is cancelled, carried out or not.
func (r *Runner) cancelAsked(ctx context.Context, s *RunState) (bool, error) {
	if s.fold().Cancelled() {
		return true, nil
	}
	entries, err := r.store().Inbox(ctx, s.Run())
	return slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Key == cancelKey }), err
}

// conversation returns the id of the session or of the conversation object that a run has
// to itself, empty if it has neither.
func conversation(m *machine.Machine) string {
	if ref := m.Session(); ref != nil {
		return ref.ID
	}
	return m.Started().Conversation
}

// admit appends the first facts of a run. If the run has a conversation, no other run may
// have it: one that nobody drives any more is closed first. Nothing of the run has
// happened before admit returns nil.
func (d *drive) admit(ctx context.Context, recs []journal.Record) error {
	var with []journal.Companion
	if conversation(d.m) != "" && d.m.Finished() == nil {
		with = append(with, journal.SoleRun{})
	}
	for {
		err := d.append(recs, with)
		if err == nil {
			d.records.add(recs)
			d.m.Advance(uint64(d.records.size))
			return nil
		}
		busy, ok := errors.AsType[*journal.BusyError](err)
		if !ok {
			return err
		}
		if err := d.makeRoom(ctx, busy); err != nil {
			return err
		}
	}
}

// makeRoom closes the open run that has this run's conversation, or says why that run
// keeps it: somebody drives it, or somebody has to decide something.
func (d *drive) makeRoom(ctx context.Context, busy *journal.BusyError) error {
	if h := busy.Holder; h != nil && d.engine != nil && h.Owner == engineOwner(d.engine.Name()) {
		return d.makeRoomOnEngine(ctx, busy)
	}
	if h := busy.Holder; h != nil && !owner.Gone(h.Owner) {
		return &SessionBusyError{Session: conversation(d.m), Run: busy.Open, Holder: *h}
	}
	s, err := d.r.State(ctx, busy.Open)
	if err == nil {
		err = d.mayClose(ctx, s)
	}
	if err != nil {
		return err
	}
	if s.queued() && !d.root.opts.Supersede {
		return &SessionBusyError{Session: conversation(d.m), Run: busy.Open}
	}
	c := d.r.newDrive(ctx, nil)
	defer c.cancel(nil)
	err = c.close(ctx, d, s)
	if held, ok := errors.AsType[*journal.ClaimedError](err); ok {
		return &SessionBusyError{Session: conversation(d.m), Run: busy.Open, Holder: held.Holder}
	}
	return err
}

// mayClose refuses to close a run that waits for somebody.
func (d *drive) mayClose(ctx context.Context, s *RunState) error {
	if s.Status() != StatusWaiting || d.root.opts.Supersede {
		return nil
	}
	switch cancelled, err := d.r.cancelAsked(ctx, s); {
	case err != nil:
		return err
	case cancelled:
		return nil
	}
	return &SessionWaitingError{Session: conversation(d.m), Run: s.Run(), Interruptions: s.Interruptions(), State: s}
}

// close cancels the open run s, which has the conversation of the drive next, and drives it
// to its end: what is open is settled, and what is owed to the session appended. No
// user code of that run's agent is needed for it.
func (d *drive) close(ctx context.Context, next *drive, s *RunState) error {
	d.root.team, d.root.opts, d.resumed = bareTeam(s.AgentKey()), &RunOptions{}, true
	failed := func(err error) error {
		return fmt.Errorf("pawl: closing run %s, which has the session %q: %w", s.Run(), conversation(s.fold()), err)
	}
	var err error
	if d.root.session, err = d.r.bind(s.fold().Session(), next.root.session, false); err != nil {
		return failed(err)
	}
	if err := d.claim(ctx, s.Run(), 0); err != nil {
		return failed(err)
	}
	now := newState(d.records, nil)
	now.machine = d.m
	if err := next.mayClose(ctx, now); err != nil || d.m.Finished() != nil {
		d.release()
		return err
	}
	d.step(d.claimed)
	switch {
	case !d.m.Cancelled():
		d.step(&journal.Cancelled{By: "pawl", Why: "run " + next.m.Run() + " was started on the session", Successor: next.m.Run()})
	case d.m.Failure() != nil: // an earlier attempt to close it failed
		d.step(&journal.Resumed{})
	}
	if _, err := d.run(); d.m.Finished() == nil {
		return failed(err)
	}
	return nil
}
