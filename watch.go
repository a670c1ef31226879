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

// watch looks for runs without an owner and drives them on.
type watch struct {
	r       *Runner
	opts    *RecoverOptions
	pause   time.Duration // before a run that failed to recover is tried again
	slots   chan struct{}
	driving sync.WaitGroup

	telling sync.Mutex // while Each runs

	mu     sync.Mutex
	parked map[string]*parked // every open run that was looked at
}

// parked is what is remembered of a run that need not be looked at now.
type parked struct {
	busy bool // it is being looked at, or driven, here
	// The run as it was listed when it was left. Only a change, or the time, is a reason
	// to look at it again.
	head  uint64
	inbox int
	until time.Time // zero means that the time is no reason
	tries int       // how often in a row it could not be recovered
}

func (r *Runner) newWatch(opts *RecoverOptions, pause time.Duration) (*watch, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	n := opts.Parallel
	if n == 0 {
		n = DefaultRecoverParallel
	}
	return &watch{r: r, opts: opts, pause: pause, slots: make(chan struct{}, n), parked: make(map[string]*parked)}, nil
}

func (w *watch) tell(run RecoveredRun) {
	if w.opts.Each == nil {
		return
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	w.opts.Each(run)
}

// page is how many runs are listed at a time.
const page = 200

// look goes over the open runs that are due once, the newest first, and begins with those that may be
// recovered. It waits for a slot, not for the runs.
func (w *watch) look(ctx context.Context) error {
	open := make(map[string]bool)
	q := journal.Query{Open: true, Due: true, Limit: page}
	for {
		infos, err := w.r.store().List(ctx, q)
		if err != nil {
			return fmt.Errorf("pawl: listing the open runs: %w", err)
		}
		for _, info := range infos {
			open[info.Run] = true
			if err := w.consider(ctx, info); err != nil {
				return err
			}
		}
		if len(infos) < page {
			break
		}
		q.Before = infos[len(infos)-1].Run
	}
	w.forget(open)
	return nil
}

// forget drops what is remembered of runs that are not open any more.
func (w *watch) forget(open map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for run, p := range w.parked {
		if !open[run] && !p.busy {
			delete(w.parked, run)
		}
	}
}

// owned says that somebody has the run who is not known to be gone.
func owned(info journal.RunInfo) bool { return info.Holder != nil && !owner.Gone(info.Holder.Owner) }

// consider takes up a run if it may have to be driven. The error is that of ctx.
func (w *watch) consider(ctx context.Context, info journal.RunInfo) error {
	if owned(info) || !w.due(info) {
		return ctx.Err()
	}
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mark(info)
	w.driving.Go(func() {
		defer func() { <-w.slots }()
		w.takeUp(ctx, info)
	})
	return nil
}

// due says that there is a reason to look at a run.
func (w *watch) due(info journal.RunInfo) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.parked[info.Run]
	switch {
	case p == nil:
		return true
	case p.busy:
		return false
	case p.head != info.Head || p.inbox != info.Inbox:
		return true
	}
	return !p.until.IsZero() && !time.Now().Before(p.until)
}

func (w *watch) mark(info journal.RunInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.parked[info.Run]
	if p == nil {
		p = &parked{}
		w.parked[info.Run] = p
	}
	p.busy = true
}

// takeUp looks at a run, drives it on if that is due, and remembers how it was left.
func (w *watch) takeUp(ctx context.Context, info journal.RunInfo) {
	left, err := w.recover(ctx, info)
	w.mu.Lock()
	defer w.mu.Unlock()
	if left == nil {
		delete(w.parked, info.Run)
		return
	}
	if err != nil {
		left.tries = w.parked[info.Run].tries + 1
		left.until = time.Now().Add(w.backoff(left.tries))
	}
	w.parked[info.Run] = left
}

// recover drives a run on if that is due. It returns how the run was left, nil if it is to
// be looked at whenever it is listed.
func (w *watch) recover(ctx context.Context, info journal.RunInfo) (*parked, error) {
	s, err := w.r.State(ctx, info.Run)
	var inbox []journal.Entry
	if err == nil {
		inbox, err = w.r.store().Inbox(ctx, info.Run)
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		w.tell(RecoveredRun{Run: info.Run, Err: err})
		return &parked{head: info.Head, inbox: info.Inbox}, err
	}
	left := &parked{head: uint64(s.Facts()), inbox: len(inbox)}
	if w.stays(s.fold(), inbox) {
		left.until = wakes(s.fold(), len(inbox))
		return left, nil
	}
	res, err := w.resume(ctx, info.Run)
	if errors.Is(err, errStays) || errors.Is(err, ErrClaimed) {
		return nil, nil
	}
	w.tell(RecoveredRun{Run: info.Run, Result: res, Err: err})
	if ctx.Err() != nil || res != nil && !res.Waiting() {
		return nil, nil
	}
	if re, ok := errors.AsType[*RunError](err); ok && re.State != nil {
		left.head = uint64(re.State.Facts())
	}
	// Entries that came in since are a reason to look again, those the run left are not.
	rest, ierr := w.r.store().Inbox(ctx, info.Run)
	rest = slices.DeleteFunc(rest, func(e journal.Entry) bool {
		return !slices.ContainsFunc(inbox, func(seen journal.Entry) bool { return seen.Key == e.Key })
	})
	if ierr == nil {
		left.inbox = len(rest)
	}
	if res != nil {
		left.head, left.until = uint64(res.state.Facts()), wakes(res.state.fold(), left.inbox)
	}
	return left, err
}

// stays says that a run without an owner is to be left alone.
func (w *watch) stays(m *machine.Machine, inbox []journal.Entry) bool {
	cancelled := m.Cancelled() || slices.ContainsFunc(inbox, func(e journal.Entry) bool { return e.Key == cancelKey })
	switch {
	case m.Finished() != nil:
		return true
	case m.Failure() != nil:
		return !cancelled && !w.opts.Failed
	case m.Status() != machine.Waiting || len(inbox) > 0:
		return false
	}
	deadline := m.Deadline()
	return deadline == 0 || time.Now().UnixMilli() < deadline
}

// wakes returns when time alone is a reason to look at a run that stays: an approval expires,
// or a decision that came too early may be taken. Zero is never.
func wakes(m *machine.Machine, inbox int) (at time.Time) {
	earlier := func(ms int64) {
		if t := time.UnixMilli(ms); ms > 0 && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	earlier(m.Deadline())
	for _, in := range m.Interruptions() {
		if inbox > 0 {
			earlier(in.NotBefore)
		}
	}
	return at
}

// errStays ends a drive of a run that turned out to be left alone.
var errStays = errors.New("pawl: the run has ended or failed meanwhile")

// resume is Resume, but of a run that did not end or fail since it was looked at.
func (w *watch) resume(ctx context.Context, run string) (*Result, error) {
	opts := &RunOptions{}
	if w.opts.Options != nil {
		opts = w.opts.Options(run).orDefault()
	}
	return w.r.drive(ctx, nil, func(d *drive) error {
		d.stays = func() bool {
			inbox, err := d.store.Inbox(ctx, run)
			return err == nil && d.m.Failure() != nil && w.stays(d.m, inbox)
		}
		err := d.resume(ctx, nil, RunID(run), opts)
		if ctx.Err() != nil && err != nil || err == nil && d.m.Finished() != nil {
			return errStays
		}
		return err
	})
}

// maxBackoff bounds the pause before a run that cannot be recovered is tried again.
const maxBackoff = 5 * time.Minute

func (w *watch) backoff(tries int) time.Duration {
	pause := w.pause
	for ; tries > 0 && pause < maxBackoff; tries-- {
		pause *= 2
	}
	return min(pause, maxBackoff)
}
