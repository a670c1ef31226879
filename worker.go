package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/internal/owner"
	"github.com/pawl-agents/pawl/journal"
)

// worker takes runs up and drives them on.
type worker struct {
	r       *Runner
	opts    *RecoverOptions
	shares  bool // runs of agents that are not known here are somebody else's
	slots   chan struct{}
	driving sync.WaitGroup
	telling sync.Mutex // while Each runs
}

func (r *Runner) newWorker(opts *RecoverOptions) (*worker, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.Engine != nil {
		return nil, &ConfigError{Field: "Runner.Engine", Problem: "drives the runs; a Runner that recovers, supervises or works has none"}
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	n := opts.Parallel
	if n == 0 {
		n = DefaultParallel
	}
	return &worker{r: r, opts: opts, slots: make(chan struct{}, n)}, nil
}

func (w *worker) tell(run RecoveredRun) {
	if w.opts.Each == nil {
		return
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	w.opts.Each(run)
}

// free gives back a slot.
func (w *worker) free(bool) { <-w.slots }

// page is how many runs are listed at a time.
const page = 200

// list calls each for the runs of a listing, the newest first. Its error ends the listing.
func (w *worker) list(ctx context.Context, q journal.Query, each func(journal.RunInfo) error) error {
	q.Limit = page
	for {
		infos, err := w.r.store().List(ctx, q)
		if err != nil {
			return fmt.Errorf("pawl: listing the open runs: %w", err)
		}
		for _, info := range infos {
			if err := each(info); err != nil {
				return err
			}
		}
		if len(infos) < page {
			return nil
		}
		q.Before = infos[len(infos)-1].Run
	}
}

// owned says that somebody has the run who is not known to be gone.
func owned(info journal.RunInfo) bool { return info.Holder != nil && !owner.Gone(info.Holder.Owner) }

// granted is a claim that was made before its run was opened.
type granted struct {
	journal.Claim
	run   string
	from  time.Time // its lease begins here or later
	owner journal.Owner
}

// claimOf claims a run that has no owner.
func (r *Runner) claimOf(ctx context.Context, info journal.RunInfo) (*granted, error) {
	req := journal.ClaimRequest{Owner: owner.Self(), TTL: r.lease()}
	if info.Holder != nil {
		req.Takeover = info.Holder.Epoch
	}
	from := time.Now()
	c, err := r.store().Claim(ctx, info.Run, req)
	return &granted{c, info.Run, from, req.Owner}, err
}

// takeUp claims a run and drives it on, on a goroutine of its own. done is told whether it
// could not be driven.
func (w *worker) takeUp(ctx context.Context, run string, claim func() (*granted, error), done func(failed bool)) {
	w.driving.Go(func() {
		failed := false
		defer func() { done(failed) }()
		g, err := claim()
		var res *Result
		if err == nil {
			res, err = w.resume(ctx, run, g)
		}
		var claimed *journal.ClaimedError
		if errors.Is(err, errStays) || errors.Is(err, errParked) || errors.As(err, &claimed) {
			return
		}
		failed = err != nil && res == nil
		w.tell(RecoveredRun{Run: run, Result: res, Err: err})
	})
}

// wants says that a run is one to be driven on, before it is claimed. What cannot be read is
// claimed, and told then.
func (w *worker) wants(ctx context.Context, run string) bool {
	s, err := w.r.State(ctx, run)
	if err != nil {
		return true
	}
	inbox, err := w.r.store().Inbox(ctx, run)
	return err != nil || !w.stays(s, inbox)
}

// stays says that a run without an owner is to be left alone.
func (w *worker) stays(s *RunState, inbox []journal.Entry) bool {
	m := s.fold()
	cancelled := m.Cancelled() || slices.ContainsFunc(inbox, func(e journal.Entry) bool { return e.Key == cancelKey })
	switch {
	case m.Finished() != nil:
		return true
	case cancelled:
		return false
	case m.Failure() != nil:
		return !w.opts.Failed
	case time.Now().Before(s.scheduled()):
		return true
	case m.Status() != machine.Waiting || len(inbox) > 0:
		return false
	}
	deadline := m.Deadline()
	return deadline == 0 || time.Now().UnixMilli() < deadline
}

// errStays ends a drive of a run that turned out to be left alone.
var errStays = errors.New("pawl: the run has ended or failed meanwhile")

// errParked ends a drive that has nothing to do for a while.
var errParked = errors.New("pawl: the run goes on later")

// maxWait is how long a run that only waits for a time keeps its place in a worker.
const maxWait = 5 * time.Second

// parks says that the drive does nothing but wait, and for so long that it is left to whoever takes the run up then.
func (d *drive) parks() bool {
	if !d.shared || len(d.waits) == 0 || d.beside > len(d.waits) || len(d.bodies)+len(d.queue)+len(d.requests) > 0 {
		return false
	}
	var first time.Time
	for _, at := range d.waits {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if time.Until(first) > maxWait {
		d.parked = first
	}
	return !d.parked.IsZero()
}

// resume is Resume of a claimed run, unless it is to be left alone.
func (w *worker) resume(ctx context.Context, run string, g *granted) (*Result, error) {
	opts := &RunOptions{}
	if w.opts.Options != nil {
		opts = w.opts.Options(run).orDefault()
	}
	return w.r.drive(ctx, nil, func(d *drive) error {
		d.granted, d.shared, d.park = g, w.shares, w.shares && !w.opts.Failed
		d.stays = func() bool {
			inbox, err := d.store.Inbox(d.bg, run)
			if err != nil || !w.stays(d.standing(), inbox) {
				return false
			}
			d.unread = len(inbox)
			return true
		}
		err := d.resume(ctx, nil, RunID(run), opts)
		if d.granted != nil && d.letGo(err) && w.shares {
			return errStays
		}
		if ctx.Err() != nil && err != nil || err == nil && d.m.Finished() != nil {
			return errStays
		}
		return err
	})
}

// letGo releases a claim under which the run could not be opened. A run whose agent is not known here
// is due at once for somebody who does know it; leaves says that it is such a one.
func (d *drive) letGo(err error) (leaves bool) {
	rest := journal.Rest{Due: time.Now().Add(maxBackoff)}
	re, ok := errors.AsType[*RunError](err)
	switch {
	case d.caller.Err() != nil:
		rest.Due = time.Time{}
	case ok && re.State != nil:
		rest.Due = time.Now().Add(backoff(re.State.records.list(), time.Now()))
		if errors.Is(err, ErrUnknownAgent) && !slices.Contains(d.r.keys(), re.State.AgentKey()) {
			rest.Due, leaves = time.Time{}, true
		}
	}
	if inbox, err := d.store.Inbox(d.bg, d.granted.run); err == nil {
		rest.Unread = len(inbox)
	}
	d.store.Release(d.bg, d.granted.run, d.granted.Epoch, rest)
	return leaves
}

// keys are those of the agents that are known here.
func (r *Runner) keys() []string {
	keys := []string{}
	for _, a := range r.Agents {
		if a != nil {
			keys = append(keys, a.key())
		}
	}
	return keys
}

// What is tried again waits as long as the run has stood still, between these bounds: the pause doubles,
// whoever tries.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// backoff is the pause before a run that could not be driven on is tried again.
func backoff(records []journal.Record, now time.Time) time.Duration {
	var still time.Duration
	for _, rec := range slices.Backward(records) {
		switch rec.Kind {
		case journal.KindClaimed, journal.KindResumed, journal.KindIntended, journal.KindFailed, journal.KindObserved:
			continue
		}
		still = now.Sub(time.UnixMilli(rec.Time))
		break
	}
	return min(max(still, minBackoff), maxBackoff)
}
