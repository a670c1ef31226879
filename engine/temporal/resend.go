package temporal

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
)

// resendEvery is how often a worker looks for messages that were posted to the inbox of a run and
// perhaps never sent to its workflow: a process that decides posts first, and may die then.
const resendEvery = time.Minute

// resender looks for them.
type resender struct {
	stepper *pawl.Stepper
	every   time.Duration
	send    func(ctx context.Context, run string)

	mu     sync.Mutex
	cancel context.CancelFunc
	ended  chan struct{}
}

func (s *resender) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ended = cancel, make(chan struct{})
	go s.watch(ctx, s.ended)
}

func (s *resender) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
		<-s.ended
	}
}

// watch sends what stood in an inbox a look ago and still does: the rest is most likely on its way.
func (s *resender) watch(ctx context.Context, ended chan<- struct{}) {
	defer close(ended)
	ticks := time.NewTicker(s.every)
	defer ticks.Stop()
	var before map[string]bool
	for {
		runs, _ := s.stepper.Unread(ctx) // a store that does not answer is asked again
		now := make(map[string]bool, len(runs))
		for _, run := range runs {
			now[run] = true
			if before[run] && ctx.Err() == nil {
				s.send(ctx, run)
			}
		}
		before = now
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// resend sends a workflow what stands in the inbox of its run; it takes each message once. What fails is found when the run
// rests, or sent again.
func resend(ctx context.Context, e *Engine, r *pawl.Runner, run string) {
	ctx, cancel := context.WithTimeout(ctx, blobTimeout)
	defer cancel()
	if r.Store == nil {
		return
	}
	if entries, err := r.Store.Inbox(ctx, run); err == nil && len(entries) > 0 {
		_ = e.Tell(ctx, run, entries)
	}
}
