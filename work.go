package pawl

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/internal/owner"
	"github.com/pawl-agents/pawl/journal"
)

// DefaultPoll is how often a worker looks for runs.
const DefaultPoll = time.Second

// WorkOptions are the options of Work; nil means all defaults.
type WorkOptions struct {
	RecoverOptions
	// Queues are the queues whose runs are taken up, at least one; nil means all. Runs started
	// without a queue are in the queue "".
	Queues []string
	// MaxPerQueue is how many runs of one queue this worker drives at a time; 0 means as
	// many as of all.
	MaxPerQueue int
	// Poll is the pause between two looks at the store when there is nothing to do; 0 means
	// DefaultPoll.
	Poll time.Duration
	// Drain is how long runs that are being driven may go on when ctx ends. What is driven
	// after that stops within Runner.Grace.
	Drain time.Duration
}

func (o *WorkOptions) check() error {
	switch {
	case o.Queues != nil && len(o.Queues) == 0:
		return &ConfigError{Field: "WorkOptions.Queues", Problem: "is empty, and not nil: no run would be taken up"}
	case o.MaxPerQueue < 0:
		return &ConfigError{Field: "WorkOptions.MaxPerQueue", Problem: "is negative"}
	case o.Poll < 0:
		return &ConfigError{Field: "WorkOptions.Poll", Problem: "is negative"}
	case o.Drain < 0:
		return &ConfigError{Field: "WorkOptions.Drain", Problem: "is negative"}
	}
	return nil
}

// Work drives runs until ctx ends: those that were submitted and are due, that a decision
// came in for, whose approval expired, or that lost their owner. Any number of processes may
// work on one store; each run is driven by one of them. A worker takes the runs of
// the agents in Runner.Agents, and of other agents those that are cancelled.
//
// When several runs are due, those with the highest RunOptions.Priority come first, then those of
// the queue of which this worker drives the fewest runs, or of which it took the last one up the longest ago, then those that
// have been due for longest. A run that waits for somebody, or for its time, takes no
// place and no memory here: whoever left it said in the store when it is due.
//
// The store is asked every Poll, when a run ends, and, if it is a journal.Listener, when a
// run becomes due. A run that cannot be driven is reported to Each and is due again
// after a pause that doubles, up to five minutes. One that failed stays as it is until somebody
// resumes it, unless Failed says that it is tried again in the same way.
//
// When ctx ends nothing more is taken up; what is being driven may go on for Drain, then it
// stops within Runner.Grace, stays resumable, and is due at once for other workers. Work returns nil then. An error is a
// *ConfigError, before anything happened.
func (r *Runner) Work(ctx context.Context, opts *WorkOptions) error {
	if opts == nil {
		opts = &WorkOptions{}
	}
	if err := opts.check(); err != nil {
		return err
	}
	w, err := r.newWorker(&opts.RecoverOptions)
	if err != nil {
		return err
	}
	w.shares = true
	poll := opts.Poll
	if poll == 0 {
		poll = DefaultPoll
	}
	driving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s := &shift{worker: w, opts: opts, pause: min(poll, maxPause), driving: driving, woken: make(chan struct{}, 1), lanes: make(map[string]*lane)}
	var listening sync.WaitGroup
	defer listening.Wait()
	if l, ok := r.store().(journal.Listener); ok {
		listening.Go(func() { listen(ctx, l, poll, s.wake) })
	}
	ticks := time.NewTicker(poll)
	defer ticks.Stop()
	s.takeOver(ctx)
	for ctx.Err() == nil {
		s.fill(ctx)
		select {
		case <-ctx.Done():
		case <-s.woken:
		case <-ticks.C:
			s.takeOver(ctx)
		}
	}
	ended := make(chan struct{})
	go func() {
		w.driving.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(opts.Drain):
	}
	stop()
	<-ended
	return nil
}

// shift is what one call of Work knows.
type shift struct {
	*worker
	opts    *WorkOptions
	pause   time.Duration // before a slot is used again whose run could not be driven
	driving context.Context
	woken   chan struct{}

	mu     sync.Mutex
	lanes  map[string]*lane // by queue
	served int64            // how many runs were taken up
}

// lane is what a worker does for a queue.
type lane struct {
	running int
	last    int64 // the number of the last run that was taken up
}

// maxPause bounds the pause of a slot after an error.
const maxPause = time.Second

// wake makes the worker look at the store.
func (s *shift) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// fill takes runs up until none is due or no slot is free.
func (s *shift) fill(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case s.slots <- struct{}{}:
		default:
			return
		}
		from := time.Now()
		next, err := s.r.store().Next(ctx, s.request())
		if next == nil {
			s.worker.free(false)
			if err != nil && ctx.Err() == nil {
				s.tell(RecoveredRun{Err: fmt.Errorf("pawl: asking for the next run: %w", err)})
			}
			return
		}
		s.begin(next.Run, next.Queue, func() (*granted, error) { return &granted{next.Claim, next.Run, from, owner.Self()}, nil })
	}
}

// begin drives a run in a slot that was taken.
func (s *shift) begin(run, queue string, claim func() (*granted, error)) {
	s.count(queue, 1)
	s.takeUp(s.driving, run, claim, func(failed bool) {
		if failed {
			select {
			case <-time.After(s.pause):
			case <-s.driving.Done():
			}
		}
		s.count(queue, -1)
		s.worker.free(failed)
		s.wake()
	})
}

// takeOver takes up runs whose process is known to be gone, as far as there are free slots.
func (s *shift) takeOver(ctx context.Context) {
	err := s.list(ctx, journal.Query{Host: owner.Self().Host}, func(info journal.RunInfo) error {
		req := s.request()
		if info.Holder == nil || owned(info) || !slices.Contains(req.Agents, info.Agent) || slices.Contains(req.Full, info.Queue) ||
			req.Queues != nil && !slices.Contains(req.Queues, info.Queue) {
			return ctx.Err()
		}
		select {
		case s.slots <- struct{}{}:
			s.begin(info.Run, info.Queue, func() (*granted, error) { return s.r.claimOf(s.driving, info) })
			return ctx.Err()
		default:
			return errFull
		}
	})
	if err != nil && err != errFull && ctx.Err() == nil {
		s.tell(RecoveredRun{Err: err})
	}
}

// errFull ends a listing when all slots are taken.
var errFull = fmt.Errorf("pawl: no slot is free")

// maxLanes bounds how many queues without a running run a worker remembers.
const maxLanes = 1000

// count notes that a run of the queue was taken up, or left.
func (s *shift) count(queue string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[queue]
	if l == nil {
		l = &lane{}
		s.lanes[queue] = l
	}
	l.running += n
	if n > 0 {
		s.served++
		l.last = s.served
	}
	if len(s.lanes) > 2*maxLanes {
		for q, l := range s.lanes {
			if l.running == 0 && l.last < s.served-maxLanes {
				delete(s.lanes, q)
			}
		}
	}
}

// request asks for a run of the queues that were served least.
func (s *shift) request() journal.NextRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	req := journal.NextRequest{Owner: owner.Self(), TTL: s.r.lease(), Agents: s.r.keys(), Queues: s.opts.Queues, Load: make(map[string]int64, len(s.lanes))}
	for queue, l := range s.lanes {
		if s.opts.MaxPerQueue > 0 && l.running >= s.opts.MaxPerQueue {
			req.Full = append(req.Full, queue)
		}
		req.Load[queue] = int64(l.running)<<40 | l.last
	}
	return req
}

// listen says when something is posted. Listening that ends is begun again after a pause; the
// looks in between need none.
func listen(ctx context.Context, l journal.Listener, pause time.Duration, posted func()) {
	for ctx.Err() == nil {
		_ = l.Listen(ctx, posted)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
