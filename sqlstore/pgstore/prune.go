package pgstore

import (
	"context"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// sqlPrune deletes a hundred runs behind a number, and leaves out those that somebody else is at.
const sqlPrune = `WITH gone AS (
	DELETE FROM pawl_runs WHERE id IN (
		SELECT id FROM pawl_runs WHERE number > $1 AND ended AND updated < $2 AND (until IS NULL OR until <= (SELECT pawl_now()))
		ORDER BY number LIMIT 100 FOR UPDATE SKIP LOCKED)
	RETURNING id, number
), facts AS (
	DELETE FROM pawl_facts f USING gone WHERE f.run = gone.id
), entries AS (
	DELETE FROM pawl_inbox i USING gone WHERE i.run = gone.id
) SELECT count(*), coalesce(max(number), 0) FROM gone`

var _ journal.Pruner = (*Store)(nil)

// Prune implements journal.Pruner, a hundred runs in a transaction. It may be called by several
// processes at once.
func (s *Store) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for last := int64(0); ; {
		pruned := 0
		if err := s.query(ctx, sqlPrune, []any{last, before.UnixMilli()}, &pruned, &last); err != nil || pruned == 0 {
			return n, err
		}
		n += pruned
	}
}
