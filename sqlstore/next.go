package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

// sqlNext lists the runs that may be the next. A lane is the runs of one agent, queue and
// priority; of each it has the one that has been due for longest, whatever the number of runs. Beside
// them it has the runs that entries make due.
const sqlNext = `
WITH RECURSIVE lane (agent, queue, priority) AS (
	SELECT * FROM (SELECT agent, queue, priority FROM pawl_runs WHERE ended = 0 AND due < ` + never + ` ORDER BY agent, queue, priority LIMIT 1)
	UNION ALL
	SELECT n.agent, n.queue, n.priority FROM lane l JOIN pawl_runs n ON n.id = coalesce(
		(SELECT id FROM pawl_runs r WHERE ended = 0 AND due < ` + never + ` AND r.agent = l.agent AND r.queue = l.queue AND r.priority > l.priority
			ORDER BY r.priority LIMIT 1),
		(SELECT id FROM pawl_runs r WHERE ended = 0 AND due < ` + never + ` AND r.agent = l.agent AND r.queue > l.queue ORDER BY r.queue, r.priority LIMIT 1),
		(SELECT id FROM pawl_runs r WHERE ended = 0 AND due < ` + never + ` AND r.agent > l.agent ORDER BY r.agent, r.queue, r.priority LIMIT 1))
)
SELECT n.run, n.queue, n.priority, n.due FROM lane l JOIN pawl_runs n ON n.id = (
	SELECT r.id FROM pawl_runs r WHERE ended = 0 AND due < ` + never + ` AND due <= ?1 AND r.agent = l.agent AND r.queue = l.queue AND r.priority = l.priority
	AND (r.until IS NULL OR r.until <= ?1) AND r.head > 0 ORDER BY r.due LIMIT 1)
	WHERE ?2 IS NULL OR l.agent IN (SELECT value FROM json_each(?2))
UNION ALL
SELECT run, queue, priority, 0 FROM pawl_runs WHERE ended = 0 AND (until IS NULL OR until <= ?1) AND id IN (` + sqlUnseen + `)`

// sqlFree says whether a run is due.
const sqlFree = `SELECT ended = 0 AND (due <= ?2 OR (SELECT count(*) FROM pawl_inbox i WHERE i.run = r.id AND consumed = 0) > unread) FROM pawl_runs r WHERE id = ?1`

// A candidate is a run that may be the next.
type candidate struct {
	run, queue string
	priority   int
	due        int64
}

// Next implements journal.Driver. Who finds nothing to do does not wait for the store's
// writer.
func (s *Store) Next(ctx context.Context, req journal.NextRequest) (*journal.Next, error) {
	if req.TTL <= 0 {
		return nil, badTTL("", req.TTL)
	}
	for {
		c, err := s.candidate(ctx, &req)
		if c.run == "" || err != nil {
			return nil, err
		}
		next, err := s.take(ctx, &c, &req)
		if next != nil || err != nil {
			return next, err
		}
	}
}

// candidate returns the run that may be the next, one without an id if there is none.
func (s *Store) candidate(ctx context.Context, req *journal.NextRequest) (best candidate, err error) {
	var agents any
	if req.Agents != nil {
		b, err := json.Marshal(req.Agents)
		if err != nil {
			return best, err
		}
		agents = string(b)
	}
	var c candidate
	err = s.view(ctx, func(v view) error {
		return v.each(sqlNext, []any{now(), agents}, []any{&c.run, &c.queue, &c.priority, &c.due}, func() error {
			if slices.Contains(req.Full, c.queue) || req.Queues != nil && !slices.Contains(req.Queues, c.queue) {
				return nil
			}
			if best.run == "" || cmp.Or(cmp.Compare(best.priority, c.priority), cmp.Compare(req.Load[c.queue], req.Load[best.queue]), cmp.Compare(c.due, best.due)) < 0 {
				best = c
			}
			return nil
		})
	})
	return best, err
}

// take claims a run unless somebody else did since it was looked at.
func (s *Store) take(ctx context.Context, c *candidate, req *journal.NextRequest) (next *journal.Next, err error) {
	err = s.do(ctx, func(t *txn) error {
		next = nil
		r, err := t.run(c.run)
		if err != nil || r.live() != nil {
			return err
		}
		var free bool
		if err := t.get(sqlFree, []any{r.id, now()}, &free); err != nil || !free {
			return err
		}
		claim, err := t.claim(&r, journal.ClaimRequest{Owner: req.Owner, TTL: req.TTL})
		next = &journal.Next{Run: c.run, Queue: c.queue, Claim: claim}
		return err
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}
