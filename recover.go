package pawl

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// Defaults of RecoverOptions and SuperviseOptions.
const (
	DefaultRecoverParallel = 4
	DefaultInterval        = 5 * time.Second
)

// RecoverOptions are the options of Recover and Supervise; nil means all defaults.
type RecoverOptions struct {
	// Parallel is how many runs are driven at a time; 0 means DefaultRecoverParallel.
	Parallel int
	// Failed includes runs that failed: what failed is tried again.
	Failed bool
	// Options are those of the resume of a run, for example its Context. Nil means
	// none. It is called from several goroutines.
	Options func(run string) *RunOptions
	// Each is called when a run was driven as far as it goes, or could not be. Nil
	// means nobody is told. It is called from several goroutines, never at the same
	// time, and no other run is begun while it works.
	Each func(RecoveredRun)
}

// SuperviseOptions are the options of Supervise; nil means all defaults.
type SuperviseOptions struct {
	RecoverOptions
	// Interval is the pause between two looks at the store; 0 means DefaultInterval.
	Interval time.Duration
}

// RecoveredRun is what became of a run that Recover or Supervise took up.
type RecoveredRun struct {
	// Run is the run's id; empty if the store could not be listed.
	Run string
	// Result is what the run has come to; nil if there is only an error.
	Result *Result
	// Err is nil for a run that finished or waits now. A cancelled run has both,
	// and so has one that a guardrail ended.
	Err error
}

// check reports options that make no sense.
func (o *RecoverOptions) check() error {
	if o.Parallel < 0 {
		return &ConfigError{Field: "RecoverOptions.Parallel", Problem: "is negative"}
	}
	return nil
}

// Recover finds the runs that have not ended and have no owner any more, and drives them
// on, each as Resume with its agent among Runner.Agents and its session from
// Runner.Sessions does. It returns when all of them have ended, wait or failed.
//
// A run has an owner while its claim is live, unless the process that holds it is known
// to be gone: it ran on this host. Taking a run over fences that owner off: what it
// still records is ErrFenced. Recover leaves alone
//   - a run that waits, unless something stands in its inbox or the deadline of an
//     approval has passed,
//   - a run that failed, unless Failed says otherwise; one that is cancelled is brought to
//     its end all the same,
//   - a run whose agent is not known here; it is reported with ErrUnknownAgent.
//
// A run that somebody else takes up at the same moment is left to them. The error joins
// those of all runs that could not be recovered, nil if there are none, and that of the
// store if it cannot be listed; one run's does not keep another from being recovered.
// When ctx ends nothing more is taken up, the driving stops within Runner.Grace, and the
// error is that of ctx.
func (r *Runner) Recover(ctx context.Context, opts *RecoverOptions) error {
	if opts == nil {
		opts = &RecoverOptions{}
	}
	var failed []error // told one at a time
	o := *opts
	o.Each = func(run RecoveredRun) {
		if run.Err != nil && !(run.Result != nil && errors.Is(run.Err, ErrCancelled)) {
			failed = append(failed, run.Err)
		}
		if opts.Each != nil {
			opts.Each(run)
		}
	}
	w, err := r.newWatch(&o, 0)
	if err != nil {
		return err
	}
	err = w.look(ctx)
	w.driving.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(append(failed, err)...)
}

// Supervise does for a service, until ctx ends, what Recover does once: every Interval it
// takes up the runs that lost their owner, that a decision came in for, or whose approval
// expired. Any number of processes may supervise one store: a run is driven by one of them. A
// store that is a journal.Listener is also looked at when a decision is posted.
//
// A run that cannot be recovered is reported to Each and tried again after a pause that
// doubles, up to five minutes, or when something happens to it. A run that waits costs
// nothing: whoever left it said when it is due.
//
// When ctx ends nothing more is taken up, what is being driven stops within Runner.Grace
// and stays resumable, and Supervise returns nil. An error is a *ConfigError, before
// anything happened.
func (r *Runner) Supervise(ctx context.Context, opts *SuperviseOptions) error {
	if opts == nil {
		opts = &SuperviseOptions{}
	}
	interval := opts.Interval
	switch {
	case interval < 0:
		return &ConfigError{Field: "SuperviseOptions.Interval", Problem: "is negative"}
	case interval == 0:
		interval = DefaultInterval
	}
	w, err := r.newWatch(&opts.RecoverOptions, interval)
	if err != nil {
		return err
	}
	defer w.driving.Wait()
	posted := make(chan struct{}, 1)
	if l, ok := r.store().(journal.Listener); ok {
		w.driving.Go(func() { listen(ctx, l, interval, posted) })
	}
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.tell(RecoveredRun{Err: err})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-posted:
		case <-ticks.C:
		}
	}
}

// listen says when something is posted. Listening that ends is begun again after a pause; the
// looks in between need none.
func listen(ctx context.Context, l journal.Listener, pause time.Duration, posted chan<- struct{}) {
	for ctx.Err() == nil {
		_ = l.Listen(ctx, func() {
			select {
			case posted <- struct{}{}:
			default:
			}
		})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
