package sqlstore

import (
	"context"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

const (
	sqlEnded      = `SELECT id FROM pawl_runs WHERE id > ?1 AND ended = 1 AND updated < ?2 AND (until IS NULL OR until <= ?3) ORDER BY id LIMIT 100`
	sqlPrunable   = `SELECT count(*) FROM pawl_runs WHERE id = ?1 AND ended = 1 AND updated < ?2 AND (until IS NULL OR until <= ?3)`
	sqlPruneRun   = `DELETE FROM pawl_runs WHERE id = ?`
	sqlPruneFacts = `DELETE FROM pawl_facts WHERE id > ? AND id <= ?`
	sqlPruneInbox = `DELETE FROM pawl_inbox WHERE run = ?`
)

var _ journal.Pruner = (*Store)(nil)

// Prune implements journal.Pruner, a hundred runs in a transaction. The file keeps its size:
// what is free in it is used again.
func (s *Store) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for last := int64(0); ; {
		var ids []int64
		var id int64
		err := s.view(ctx, func(v view) error {
			return v.each(sqlEnded, []any{last, before.UnixMilli(), now()}, []any{&id}, func() error {
				ids = append(ids, id)
				return nil
			})
		})
		if err != nil || len(ids) == 0 {
			return n, err
		}
		last = ids[len(ids)-1]
		pruned := 0
		err = s.do(ctx, func(t *txn) error {
			pruned = 0
			for _, id := range ids {
				gone, err := t.prune(id, before.UnixMilli())
				if err != nil {
					return err
				}
				if gone {
					pruned++
				}
			}
			return nil
		})
		if err != nil {
			return n, err
		}
		n += pruned
	}
}

// prune deletes a run, unless something happened to it since it was looked at.
func (t *txn) prune(id, before int64) (gone bool, err error) {
	var ended bool
	if err := t.get(sqlPrunable, []any{id, before, now()}, &ended); err != nil || !ended {
		return false, err
	}
	if _, err := t.exec(sqlPruneInbox, id); err != nil {
		return false, err
	}
	if _, err := t.exec(sqlPruneFacts, factID(id, 0), factID(id, maxFacts)); err != nil {
		return false, err
	}
	_, err = t.exec(sqlPruneRun, id)
	return err == nil, err
}
