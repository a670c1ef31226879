package journal

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// index keeps what a worker chooses a run by, if s is not nil.
func (r *memoryRun) index(s *Started) {
	if s != nil {
		r.agent, r.queue, r.priority = s.Agent, s.Queue, s.Priority
	}
}

// A candidate is a run that may be the next.
type candidate struct {
	run      *memoryRun
	priority int
	load     int64
	due      time.Time // zero if its inbox makes it due, or its claim ran out
}

// Next implements Driver. It looks at every open run.
func (m *Memory) Next(ctx context.Context, req NextRequest) (*Next, error) {
	if err := checkTTL(ctx, "", req.TTL); err != nil {
		return nil, err
	}
	m.mu.Lock()
	runs := slices.Clone(m.created)
	m.mu.Unlock()
	now := time.Now()
	var candidates []candidate
	for _, r := range runs {
		r.mu.Lock()
		if c, ok := r.candidate(now, &req); ok {
			candidates = append(candidates, c)
		}
		r.mu.Unlock()
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.load, b.load), a.due.Compare(b.due))
	})
	for _, c := range candidates {
		if next := c.run.take(&req); next != nil {
			return next, nil
		}
	}
	return nil, nil
}

// candidate says whether a locked run may be the next.
func (r *memoryRun) candidate(now time.Time, req *NextRequest) (c candidate, ok bool) {
	c = candidate{run: r, priority: r.priority, load: req.Load[r.queue], due: r.due}
	waiting := 0
	for _, e := range r.inbox {
		if !e.consumed {
			waiting++
		}
	}
	switch {
	case r.ended || r.live(now) != nil || slices.Contains(req.Full, r.queue) || req.Queues != nil && !slices.Contains(req.Queues, r.queue):
		return c, false
	case waiting > r.unread:
		c.due = time.Time{}
		return c, true
	}
	return c, !r.due.After(now) && (req.Agents == nil || slices.Contains(req.Agents, r.agent))
}

// take claims a run if it still is a candidate.
func (r *memoryRun) take(req *NextRequest) *Next {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if _, ok := r.candidate(now, req); !ok {
		return nil
	}
	return &Next{Run: r.id, Queue: r.queue, Claim: r.claim(now, ClaimRequest{Owner: req.Owner, TTL: req.TTL})}
}
