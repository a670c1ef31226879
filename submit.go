package pawl

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// Submit starts a run that a worker is to drive, see Work, and returns its id once it is
// recorded. What is wrong with the agent, the input or the options is an error as of Run. An id
// that the store has is the run's if it was started with the same input, agent and
// conversation, else ErrRunExists: a submission may be repeated. Of the options the run keeps what a resume
// cannot change, its Context if there is a ContextCodec, and Queue, Priority and StartAt; the
// rest is what the worker's Options say. A Runner with an Engine has that drive the run.
func (r *Runner) Submit(ctx context.Context, agent *Agent, input Input, opts *RunOptions) (run string, err error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if err := checkEngine(r.Engine, opts.orDefault()); err != nil {
		return "", err
	}
	d := r.newDrive(ctx, nil)
	defer d.cancel(nil)
	d.engine = r.Engine
	err = d.opened(func(d *drive) (err error) {
		run, err = d.submit(ctx, agent, input, opts.orDefault())
		return err
	})
	if err == nil && r.Engine != nil {
		err = r.Engine.Start(ctx, run)
	}
	if err != nil {
		return "", err
	}
	return run, nil
}

// submit records the beginning of a run.
func (d *drive) submit(ctx context.Context, agent *Agent, input Input, opts *RunOptions) (string, error) {
	o := *opts
	o.StartAt = time.Time{}
	started, err := d.prepare(agent, input, &o)
	if err != nil {
		return "", err
	}
	if !opts.StartAt.IsZero() {
		started.Due = max(opts.StartAt.UnixMilli(), 0)
	}
	run := started.Run
	known, err := d.store.Read(ctx, run, 0)
	if err == nil && len(known) > 0 {
		return run, d.knows(started)
	}
	if err == nil {
		err = d.claim(ctx, run, 0)
	}
	if err != nil {
		if s, _ := d.r.State(d.bg, run); s != nil { // somebody was faster
			return run, d.knows(started)
		}
		return "", &RunError{Run: run, Err: err}
	}
	defer d.release()
	if d.records.size > 0 {
		return run, d.knows(started)
	}
	d.step(started)
	if err := d.admit(ctx, d.encode(d.m.Flush().Facts)); err != nil {
		return "", &RunError{Run: run, Err: err}
	}
	if d.engine != nil {
		err = d.yield()
	}
	return run, err
}

// knows compares a beginning with that of the stored run.
func (d *drive) knows(started *journal.Started) error {
	s, err := d.r.State(d.bg, started.Run)
	if err != nil {
		return err
	}
	if !sameStart(s.fold().Started(), started) {
		return &RunError{Run: started.Run, State: s, Err: ErrRunExists}
	}
	return nil
}

// queued says that a run was submitted, and nobody has begun it: no claim stands behind its
// beginning but of who recorded input.
func (s *RunState) queued() bool {
	records := s.records.list()
	begun := func(r journal.Record) bool {
		return r.Kind != journal.KindStarted && r.Kind != journal.KindClaimed && r.Kind != journal.KindAdded
	}
	first := slices.IndexFunc(records, func(r journal.Record) bool { return r.Kind == journal.KindClaimed })
	return !slices.ContainsFunc(records, begun) && (first < 0 || first+1 < len(records) && records[first+1].Kind == journal.KindAdded)
}

// scheduled is when a run is to begin; the zero time if it has begun, or may at once.
func (s *RunState) scheduled() time.Time {
	if due := s.fold().Started().Due; due > 0 && s.queued() {
		return time.UnixMilli(due)
	}
	return time.Time{}
}
