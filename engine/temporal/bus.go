package temporal

import (
	"context"
	"sync"

	"github.com/pawl-agents/pawl"
)

// Bus brings what no history has, the deltas of a model's answer, from the workers to those who
// stream a run. It may lose events: what counts is recorded. Its methods are called from any
// goroutine.
type Bus interface {
	// Publish sends an event of a run. It does not wait for readers.
	Publish(run string, ev pawl.Event)
	// Subscribe calls show with the events of a run, one at a time, until ctx ends.
	Subscribe(ctx context.Context, run string, show func(pawl.Event))
}

// LocalBus is the Bus of a single process. The zero value is ready.
type LocalBus struct {
	mu      sync.Mutex
	readers map[string]map[chan pawl.Event]bool
}

// busBuffer is how many events a reader may be behind before it misses some.
const busBuffer = 1024

// Publish sends an event to whoever reads the run in this process.
func (b *LocalBus) Publish(run string, ev pawl.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r := range b.readers[run] {
		select {
		case r <- ev:
		default:
		}
	}
}

// Subscribe shows the events that are published from now on.
func (b *LocalBus) Subscribe(ctx context.Context, run string, show func(pawl.Event)) {
	r := make(chan pawl.Event, busBuffer)
	b.mu.Lock()
	if b.readers == nil {
		b.readers = make(map[string]map[chan pawl.Event]bool)
	}
	if b.readers[run] == nil {
		b.readers[run] = make(map[chan pawl.Event]bool)
	}
	b.readers[run][r] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.readers[run], r); len(b.readers[run]) == 0 {
			delete(b.readers, run)
		}
	}()
	for {
		select {
		case ev := <-r:
			show(ev)
		case <-ctx.Done():
			return
		}
	}
}
