package journal

import (
	"context"
	"slices"
	"time"
)

// Pruner is what a driver implements that can forget runs.
type Pruner interface {
	// Prune deletes the runs that have ended, whose last append was before a time, and that
	// have no live claim: their records and their inboxes. Open runs and sessions stay. It returns
	// how many it deleted, also beside an error.
	//
	// The id of a run that is gone must not be used again: the keys of its calls and the ids of
	// its session batches were made of it, and others remember those.
	Prune(ctx context.Context, before time.Time) (n int, err error)
}

// Prune implements Pruner.
func (m *Memory) Prune(ctx context.Context, before time.Time) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	runs := slices.Clone(m.created)
	m.mu.Unlock()
	gone := map[*memoryRun]bool{}
	now := time.Now()
	for _, r := range runs {
		r.mu.Lock()
		if r.ended && r.updated.Before(before) && r.live(now) == nil {
			gone[r] = true
		}
		r.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.created = slices.DeleteFunc(m.created, func(r *memoryRun) bool { return gone[r] })
	for r := range gone {
		delete(m.runs, r.id)
	}
	return len(gone), nil
}
