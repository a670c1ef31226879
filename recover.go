package pawl

import (
	"context"
	"errors"

	"github.com/pawl-agents/pawl/journal"
)

// DefaultParallel is how many runs Recover and Work drive at a time.
const DefaultParallel = 8

// RecoverOptions are the options of Recover and Work; nil means all defaults.
type RecoverOptions struct {
	// Parallel is how many runs are driven at a time; 0 means DefaultParallel.
	Parallel int
	// Failed includes runs that failed: what failed is tried again.
	Failed bool
	// Options are those of the resume of a run, for example its Context. Nil means
	// none. It is called from several goroutines.
	Options func(run string) *RunOptions
	// Each is called when a run was driven as far as it goes, or could not be. Nil
	// means nobody is told. It is called from several goroutines, never at the same
	// time.
	Each func(RecoveredRun)
}

// RecoveredRun is what became of a run that Recover or Work took up.
type RecoveredRun struct {
	// Run is the run's id; empty if the store could not be asked.
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
//   - a run that was submitted for later,
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
	w, err := r.newWorker(&o)
	if err != nil {
		return err
	}
	// A run that failed may be due never.
	err = w.list(ctx, journal.Query{Open: true, Due: !o.Failed}, func(info journal.RunInfo) error {
		if owned(info) || !w.wants(ctx, info.Run) {
			return ctx.Err()
		}
		select {
		case w.slots <- struct{}{}:
			w.takeUp(ctx, info.Run, func() (*granted, error) { return r.claimOf(ctx, info) }, w.free)
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	w.driving.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(append(failed, err)...)
}
