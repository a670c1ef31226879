package pawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/internal/owner"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

func (a *Agent) model(opts *RunOptions) model.Model {
	if opts.Model != nil {
		return opts.Model
	}
	return a.Model
}

// resume opens a run that has begun.
func (d *drive) resume(ctx context.Context, agent *Agent, from Resumable, opts *RunOptions) error {
	if err := checkEngine(d.engine, opts); err != nil {
		return err
	}
	var given *RunState
	var run string
	switch from := from.(type) {
	case RunID:
		run = string(from)
	case *RunState:
		if from == nil {
			return &ConfigError{Field: "Resume", Problem: "the state is nil"}
		}
		if from.records.size == 0 {
			return &ConfigError{Field: "Resume", Problem: "the state is empty; read one with ParseRunState"}
		}
		given, run = from, from.Run()
	default:
		return &ConfigError{Field: "Resume", Problem: "nothing to resume from"}
	}
	stored, isNew, err := d.r.stored(ctx, run, given)
	if err != nil {
		return &RunError{Run: run, State: given, Err: err}
	}
	refused := func(err error) error { // nothing is submitted yet, so that it is still to be
		s := *stored
		if given != nil {
			s.staged = given.staged
		}
		return s.refused(err)
	}
	ended := stored.fold().Finished() != nil && !isNew && (given == nil || len(given.staged)+len(given.input) == 0)
	if d.root.team, err = d.r.teamFor(ctx, agent, stored, ended); err != nil {
		return refused(err)
	}
	d.root.opts, d.resumed = opts, true
	if ended && opts.Session == nil {
		d.records = stored.records
		d.use(stored.fold())
		return nil
	}
	if d.context, err = opts.recordedContext(); err == nil && !ended {
		err = d.recallContext(ctx, stored)
	}
	if err != nil {
		return stored.refused(err)
	}
	if !d.root.team.bare {
		if err := d.root.team.check(opts, d.store, managed(stored.fold().Started()), nil); err != nil {
			return refused(err)
		}
		if err := opts.check(d.root.team.root.model(opts), true); err != nil {
			return refused(err)
		}
	}
	if d.root.session, err = d.r.bind(stored.fold().Session(), opts.Session, isNew && given.forked()); err != nil {
		return refused(err)
	}
	if given != nil {
		d.staged, d.input = given.staged, given.input
		if err := stored.checkEdits(d.root.team.find(stored.fold().Agent()), given.staged); err != nil {
			return err
		}
	}
	return d.reopen(ctx, stored, given, isNew)
}

// teamFor finds the agents of a run. A run that has ended, or is cancelled, needs none.
func (r *Runner) teamFor(ctx context.Context, given *Agent, s *RunState, ended bool) (t team, err error) {
	root, err := r.agentFor(given, s.AgentKey())
	if err == nil {
		t, err = r.teamWith(root, s.fold().Agent())
	}
	if !errors.Is(err, ErrUnknownAgent) {
		return t, err
	}
	if !ended {
		if cancelled, ierr := r.cancelAsked(ctx, s); ierr != nil || !cancelled {
			return team{}, errors.Join(err, ierr)
		}
	}
	return bareTeam(s.AgentKey()), nil
}

// managed says that the server keeps the conversation of a run.
func managed(s *journal.Started) bool {
	return s.Conversation != "" || s.Previous != "" || s.Auto
}

// stored returns what the store knows of a run. A run it does not have is new to it:
// a document in a Runner without a store, or a fork.
func (r *Runner) stored(ctx context.Context, run string, given *RunState) (s *RunState, isNew bool, err error) {
	records, err := r.store().Read(ctx, run, 0)
	if err != nil {
		return nil, false, err
	}
	if len(records) == 0 {
		if given == nil || r.Store != nil && !given.forked() {
			return nil, false, ErrUnknownRun
		}
		return given, true, nil
	}
	if given != nil {
		n := given.records.size
		if n > len(records) || records[n-1].Hash != given.records.list()[n-1].Hash {
			return nil, false, fmt.Errorf("%w; resume the run by its id, or fork the state", ErrConflict)
		}
	}
	m, err := replay(records)
	if err != nil {
		return nil, false, err
	}
	s = newState(ledgerOf(records), nil)
	s.machine = m
	return s, false, nil
}

// forked says that the state is a fork nobody has driven yet.
func (s *RunState) forked() bool {
	return s != nil && s.records.list()[s.records.size-1].Kind == journal.KindForked
}

// reopen submits the staged decisions, claims the run and folds what the store has.
func (d *drive) reopen(ctx context.Context, stored, given *RunState, isNew bool) error {
	run := stored.Run()
	if !isNew {
		if err := stored.submit(ctx, d.store, d.staged); err != nil {
			return behind(err, stored, given)
		}
		if err := stored.submitInput(ctx, d.store, d.input); err != nil {
			return err
		}
		if stored.fold().Finished() != nil {
			return d.lookBack(ctx, stored)
		}
	}
	var above uint64
	if isNew {
		above = given.fold().Epoch()
	}
	if err := d.claim(ctx, run, above); err != nil {
		return &RunError{Run: run, State: stored, Err: err}
	}
	if isNew {
		if err := d.adopt(ctx, given); err != nil {
			d.release()
			return err
		}
	}
	if d.m.Finished() != nil {
		defer d.release()
		if isNew && len(d.staged) > 0 { // findings
			return d.takeIn()
		}
		return d.tooLate()
	}
	if d.stays != nil && d.stays() {
		d.release()
		return errStays
	}
	d.goOn(given)
	return nil
}

// lookBack opens a run that has ended, once the findings that were staged on it are
// recorded.
func (d *drive) lookBack(ctx context.Context, ended *RunState) error {
	if len(d.staged) > 0 {
		err := d.r.recordLate(ctx, ended.Run())
		if err == nil {
			ended, _, err = d.r.stored(ctx, ended.Run(), nil)
		}
		if err != nil && !errors.Is(err, ErrClaimed) {
			return ended.refused(err)
		}
	}
	d.staged, d.input, d.records = nil, nil, ended.records
	d.use(ended.fold())
	return nil
}

// tooLate refuses decisions and input that were submitted when somebody else had just brought the run
// to its end, unless they are the recorded ones.
func (d *drive) tooLate() error {
	s := newState(d.records, nil)
	s.machine = d.m
	for _, decision := range d.staged {
		f, err := decision.fact(d.m, time.Now())
		if err == nil {
			err = d.m.Check(f)
		}
		if err != nil && !errors.Is(err, machine.ErrSame) {
			return s.refused(fmt.Errorf("somebody else has just finished the run: %w", s.refusal(err)))
		}
	}
	for _, rec := range d.input {
		if !s.took(rec) {
			return s.refused(fmt.Errorf("%w: somebody else has just finished it", ErrInputRefused))
		}
	}
	return nil
}

// behind explains a refused decision by the state being old, if it is.
func behind(err error, stored, given *RunState) error {
	if given == nil || given.records.size == stored.records.size || errors.Is(err, ErrDecided) || errors.Is(err, ErrCallInFlight) {
		return err
	}
	return stored.refused(because(ErrConflict, err))
}

// adopt brings a run into a store that does not have it. A fork gets its session with
// the same append.
func (d *drive) adopt(ctx context.Context, given *RunState) error {
	if d.records.size > 0 {
		return given.refused(fmt.Errorf("%w: it came into the store at this moment", ErrClaimed))
	}
	records := given.records.list()
	if d.root.session != nil && given.fold().Session() == nil {
		bound := &journal.Forked{Run: given.Run(), Session: d.r.sessionRef(d.root.session)}
		rec := journal.Encode(journal.Fact{Time: time.Now().UnixMilli(), Body: bound}, newSalt())
		records = append(records[:len(records):len(records)], rec)
	}
	m, err := replay(records)
	if err != nil {
		return given.refused(err)
	}
	d.use(m)
	if err := d.admit(ctx, records); err != nil {
		return given.refused(err)
	}
	// Nothing in this store was released by whoever had the run elsewhere.
	d.claimed.Gone = owner.Gone(m.Owner())
	if err := given.submit(ctx, d.store, given.staged); err != nil {
		return err
	}
	return given.submitInput(ctx, d.store, given.input)
}

// attach goes on with a run that Run found in the store.
func (d *drive) attach(opts *RunOptions) error {
	sess, err := d.r.bind(d.m.Session(), opts.Session, false)
	if err != nil {
		d.release()
		return d.fail("", err)
	}
	d.root.session = sess
	if d.m.Finished() != nil {
		d.release()
		return nil
	}
	s := d.state()
	s.machine = d.m
	if err := d.recallContext(d.caller, s); err != nil {
		d.release()
		return d.fail("", err)
	}
	d.goOn(nil)
	return nil
}

// goOn steps what begins a resume: the claim, what a failed store did not take, and
// that a failure is to be tried again.
func (d *drive) goOn(given *RunState) {
	d.step(d.claimed)
	d.enlist()
	if given != nil {
		d.recall(given.unsaved)
	}
	replaced := ""
	if d.context != d.m.Context() {
		replaced = d.context
	}
	if d.m.Failure() != nil || d.root.opts.MaxTurns != 0 || replaced != "" {
		d.step(&journal.Resumed{MaxTurns: d.root.opts.MaxTurns, Context: replaced})
	}
}

// recall steps outcomes this process knows and the store did not take. The ledger
// says that they are open, so they are what it waits for.
func (d *drive) recall(unsaved []journal.Record) {
	for _, rec := range unsaved {
		f, err := journal.Decode(rec)
		if err != nil {
			continue
		}
		switch b := f.Body.(type) {
		case *journal.Settled:
			if b.Outcome == journal.NotExecuted || !d.outputOf(f.Frame, b.ID).IsZero() {
				continue
			}
		case *journal.Prepared, *journal.Responded, *journal.Transferred:
		case *journal.Intended: // a request's, for the response behind it
			if b.ID.Kind != journal.EffectModel {
				continue
			}
		case *journal.Confirmed:
			if frame := d.m.Frame(f.Frame); frame == nil || frame.Session() == nil || frame.Session().Own {
				continue
			}
		default:
			continue
		}
		if d.m.Check(f) == nil {
			d.m.Step(f)
		}
	}
}

// bind finds the session of a run and checks that it is the recorded one. A fork may
// be given one.
func (r *Runner) bind(ref *journal.SessionRef, given session.Session, fork bool) (session.Session, error) {
	if ref == nil {
		if given != nil && !fork {
			return nil, fmt.Errorf("%w: the run has none, and %q was given", ErrSessionMismatch, given.ID())
		}
		return given, nil
	}
	if given == nil && r.Sessions != nil {
		var err error
		if given, err = r.findSession(ref.ID); err != nil {
			return nil, err
		}
	}
	if given == nil {
		return nil, fmt.Errorf("%w: it is %q in %s; give it in RunOptions.Session", ErrSessionMissing, ref.ID, ref.Backend)
	}
	have := r.sessionRef(given)
	if have.ID == ref.ID && have.Backend == ref.Backend && have.Own != ref.Own {
		return nil, fmt.Errorf("%w: it is kept by the run's own store, open it through that value", ErrSessionMismatch)
	}
	if have.ID != ref.ID || have.Backend != ref.Backend {
		return nil, fmt.Errorf("%w: it is %q in %s, and %q in %s was given", ErrSessionMismatch, ref.ID, ref.Backend, have.ID, have.Backend)
	}
	return given, nil
}

// findSession asks Runner.Sessions; a panic there is an error.
func (r *Runner) findSession(id string) (s session.Session, err error) {
	defer panicked(fmt.Sprintf("Runner.Sessions(%q)", id), "", &err)
	if s = r.Sessions(id); isNil(s) {
		return nil, nil
	}
	return s, nil
}

// ownSession is a session that may live in the run store's own database.
type ownSession interface {
	// Store is the driver whose transactions Companion joins.
	Store() journal.Driver
	Companion(batchID string, items []item.Item) journal.Companion
}

func (r *Runner) sessionRef(s session.Session) *journal.SessionRef {
	if s == nil {
		return nil
	}
	ref := &journal.SessionRef{ID: s.ID(), Backend: fmt.Sprintf("%T", s)}
	if b, ok := s.(session.Backend); ok {
		ref.Backend = b.Backend()
	}
	if own, ok := s.(ownSession); ok && own.Store() == r.store() {
		ref.Own = true
	}
	_, ref.Batches = s.(session.BatchAppender)
	return ref
}

// changed says that the tool of a call that may run is gone or is another one, or that a source
// of tools cannot say whether it is.
func (f *frame) changed(id journal.EffectID) error {
	info, ok := f.m.Call(id)
	if !ok {
		return nil
	}
	if err := f.relist(); err != nil {
		return err
	}
	t := f.tool(info.Spec.Name)
	switch {
	case t == nil && f.opts.ToolNotFound == TellModel && info.Spec.Handoff == "":
		return nil // it is answered with that
	case t == nil:
		return toolChanged(info, "is gone")
	case t.id != info.Spec.Identity || (t.agent != nil) != (info.Spec.Agent != ""):
		return toolChanged(info, "takes other arguments now")
	case info.Spec.Agent != "" && t.agent.agent.key() != info.Spec.Agent:
		return toolChanged(info, fmt.Sprintf("runs agent %q now, not %q", t.agent.agent.key(), info.Spec.Agent))
	case t.handoff != nil && f.team.key(t.handoff.agent) != info.Spec.Handoff:
		return toolChanged(info, "hands over to another agent now")
	case info.Spec.Class == Transactional && t.effect != Transactional:
		return toolChanged(info, "does not work in the store's transaction any more")
	}
	return nil
}

func toolChanged(info machine.CallInfo, how string) error {
	return fmt.Errorf("%w: %q %s (call %s); resume the run with the tool as it was", ErrToolChanged, info.Spec.Name, how, info.CallID)
}
