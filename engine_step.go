package pawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/internal/owner"
	"github.com/pawl-agents/pawl/journal"
)

// StepperOptions are the options of a Stepper.
type StepperOptions struct {
	// Engine is the name of the engine, as Engine.Name returns it.
	Engine string
	// Options are the options of a run that do not travel: those that RunOptions says belong to
	// the driving. Nil means none. It is called from several goroutines.
	Options func(run string) *RunOptions
	// MaxOutcome is the most bytes that the outcome of an effect may have; 0 means no bound. A longer
	// output of a tool is replaced by a text that says so; any other is a failure of the run.
	MaxOutcome int
	// Late is told of a run in whose inbox a tool has put its result after its step was over.
	// Nil means nobody is.
	Late func(run string)
	// Runs is how many runs are kept in memory between their steps; 0 means 100. Others are
	// read from the store again.
	Runs int
}

// Stepper carries out the steps of runs that an engine drives: one of them at a time, in any
// process that has the agents and opens the store. It finds agents and sessions in its Runner as
// a resume does. It is safe for concurrent use.
type Stepper struct {
	r    *Runner
	opts StepperOptions

	mu   sync.Mutex
	idle []*drive // of runs, the one used last at the end
}

// NewStepper returns a Stepper. An error is a *ConfigError.
func NewStepper(r *Runner, opts StepperOptions) (*Stepper, error) {
	switch {
	case opts.Engine == "":
		return nil, &ConfigError{Field: "StepperOptions.Engine", Problem: "is empty"}
	case opts.MaxOutcome < 0:
		return nil, &ConfigError{Field: "StepperOptions.MaxOutcome", Problem: "is negative"}
	case opts.Runs < 0:
		return nil, &ConfigError{Field: "StepperOptions.Runs", Problem: "is negative"}
	case opts.Runs == 0:
		opts.Runs = 100
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return &Stepper{r: r, opts: opts}, nil
}

// Self is the process in which the Stepper works, as Open wants to know it of those that are lost.
func (s *Stepper) Self() journal.Owner { return owner.Self() }

// EngineRun is a run that was claimed for its engine.
type EngineRun struct {
	// Claimed is the fact to step.
	Claimed *journal.Claimed
	// Facts are those of the projection.
	Facts []journal.Fact
}

// Open claims a run for the engine, when its loop begins and when an effect is lost that must not
// be repeated: from then on nothing that belongs to an older claim can be recorded. lost are the
// processes in which effects were lost.
func (s *Stepper) Open(ctx context.Context, run string, lost []journal.Owner) (*EngineRun, error) {
	req := journal.ClaimRequest{Owner: engineOwner(s.opts.Engine), TTL: engineLease}
	c, err := s.r.store().Claim(ctx, run, req)
	if held, ok := errors.AsType[*journal.ClaimedError](err); ok && (held.Holder.Owner == req.Owner || owner.Gone(held.Holder.Owner)) {
		req.Takeover = held.Holder.Epoch
		c, err = s.r.store().Claim(ctx, run, req)
	}
	if err != nil {
		return nil, &RunError{Run: run, Err: err}
	}
	gone := len(lost) > 0 && !slices.ContainsFunc(lost, func(o journal.Owner) bool { return !owner.Gone(o) })
	o := &EngineRun{Claimed: &journal.Claimed{Epoch: c.Epoch, Owner: req.Owner, Gone: gone}}
	o.Facts, err = s.Facts(ctx, run)
	if errors.Is(err, ErrUnknownRun) { // it is of another store, and its id stays free here
		err = cmp.Or(s.r.store().Release(context.WithoutCancel(ctx), run, c.Epoch, journal.Rest{Due: journal.Never}), err)
	}
	return o, err
}

// Facts returns the projection of a run.
func (s *Stepper) Facts(ctx context.Context, run string) ([]journal.Fact, error) {
	records, err := s.r.store().Read(ctx, run, 0)
	if err == nil && len(records) == 0 {
		err = ErrUnknownRun
	}
	facts := make([]journal.Fact, len(records))
	for i := range records {
		if err == nil {
			facts[i], err = journal.Decode(records[i])
		}
	}
	if err != nil {
		return nil, &RunError{Run: run, Err: err}
	}
	return facts, nil
}

// Unread returns the runs that the engine has and in whose inboxes something stands. It was perhaps
// posted and never sent to their loops: whoever was to send it died.
func (s *Stepper) Unread(ctx context.Context) (runs []string, err error) {
	q := journal.Query{Host: engineOwner(s.opts.Engine).Host, Limit: 1000}
	for {
		infos, err := s.r.store().List(ctx, q)
		if err != nil {
			return runs, fmt.Errorf("pawl: listing the runs of %s: %w", s.opts.Engine, err)
		}
		for _, info := range infos {
			if info.Inbox > 0 {
				runs = append(runs, info.Run)
			}
		}
		if len(infos) < q.Limit {
			return runs, nil
		}
		q.Before = infos[len(infos)-1].Run
	}
}

// Step is what a Stepper is to do for a run.
type Step struct {
	Run string
	// Epoch is that of the newest claim.
	Epoch uint64
	// After is how many facts the projection is known to have, Facts are those behind them: they
	// are recorded first, with the session batches that they confirm, and the messages taken from the inbox.
	After   uint64
	Facts   []journal.Fact
	Consume []string
	// Frame and Effect name the effect to carry out; the zero Effect is none.
	Frame  string
	Effect journal.EffectID
	// Again says that the step was perhaps begun before.
	Again bool
	// Show is called with events that no fact tells of; nil means that nobody reads them.
	Show func(Event)
}

// StepOutcome is what came of a step.
type StepOutcome struct {
	// Outcome is the body of the fact with which the effect ended. In a run that is cancelled it
	// may be nil: the effect ended without one.
	Outcome journal.Body
	// Stored is the fact, if it is in the projection already, behind those of the step.
	Stored *journal.Fact
	// Inbox are the messages that the run has not taken, if the step had no effect.
	Inbox []journal.Entry
}

// stepTries is how often a step is begun anew when another one of the run recorded something at
// the same time.
const stepTries = 5

// Perform brings the projection of a run up to date, and carries out one effect. An error says
// that the effect was not begun, or that it was stopped because ctx ended; EngineStop tells what
// to do about it. What goes wrong in an effect that was begun is its outcome.
func (s *Stepper) Perform(ctx context.Context, st *Step) (out *StepOutcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &RunError{Run: st.Run, Err: &PanicError{In: st.Effect.String(), Value: v, Stack: string(debug.Stack())}}
		}
	}()
	for range stepTries {
		var d *drive
		if d, err = s.seat(ctx, st); err == nil {
			if err = d.recordStep(st); err == nil {
				out, err = d.carryOut(st)
				s.leave(d, err == nil && ctx.Err() == nil)
				return out, stepError(st.Run, err)
			}
			s.leave(d, false)
		}
		if ctx.Err() != nil || EngineStop(err) != nil && !errors.Is(err, ErrFenced) {
			break
		}
		time.Sleep(appendPause)
	}
	return nil, stepError(st.Run, err)
}

func stepError(run string, err error) error {
	if err == nil || errors.As(err, new(*RunError)) {
		return err
	}
	return &RunError{Run: run, Err: err}
}

// Stop lets go of what is kept of runs between their steps. No step is being carried out.
func (s *Stepper) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.idle {
		d.rise()
	}
	s.idle = nil
}

// Close ends the engine's claim on a run whose loop is over. What came in meanwhile is recorded.
func (s *Stepper) Close(ctx context.Context, run string, epoch uint64) error {
	if err := s.r.store().Release(ctx, run, epoch, journal.Rest{Due: journal.Never}); err != nil {
		return &RunError{Run: run, Err: err}
	}
	if err := s.r.recordLate(ctx, run); err != nil && !errors.Is(err, ErrClaimed) {
		return &RunError{Run: run, Err: err}
	}
	return nil
}

// seat returns a drive of the run for a step: one that is idle and not ahead of the step, or a
// new one that has read the ledger.
func (s *Stepper) seat(ctx context.Context, st *Step) (*drive, error) {
	s.mu.Lock()
	for i, d := range s.idle {
		if d.claimedRun == st.Run && d.epoch == st.Epoch && uint64(d.records.size) <= st.After+uint64(len(st.Facts)) && !st.Again {
			s.idle = slices.Delete(s.idle, i, i+1)
			s.mu.Unlock()
			d.sit(ctx, st)
			return d, nil
		}
	}
	s.mu.Unlock()
	d := s.r.newDrive(ctx, nil)
	d.claimedRun, d.epoch, d.stepper = st.Run, st.Epoch, s
	d.leaseEnd.Store(1 << 62)
	d.sit(ctx, st)
	if err := d.takeSeat(s.optionsOf(st.Run)); err != nil {
		s.leave(d, false)
		return nil, err
	}
	return d, nil
}

func (s *Stepper) optionsOf(run string) *RunOptions {
	if s.opts.Options == nil {
		return &RunOptions{}
	}
	return s.opts.Options(run).orDefault()
}

// leave gives a drive back; one that is not whole is ended.
func (s *Stepper) leave(d *drive, whole bool) {
	d.cancel(nil)
	if !whole || d.left || d.renewed {
		d.rise()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, d)
	if len(s.idle) > s.opts.Runs {
		s.idle[0].rise()
		s.idle = slices.Delete(s.idle, 0, 1)
	}
}

// outcomeTooLong is what stands for an outcome that has too many bytes.
func (f *frame) outcomeTooLong(id journal.EffectID, b journal.Body, size, most int) (journal.Body, error) {
	if s, ok := b.(*journal.Settled); ok {
		info, _ := f.m.Call(s.ID)
		short := *s
		var err error
		short.Output, err = answer(info.Item, fmt.Sprintf("The tool ran. Its output of %d bytes is too long to be kept: at most %d.", size, most))
		return &short, err
	}
	return &journal.Failed{ID: id, Code: "too_long", Error: fmt.Sprintf("pawl: %s has an outcome of %d bytes, and at most %d can be kept", effectRef{f.m.Name(), id}, size, most)}, nil
}
