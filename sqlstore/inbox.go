package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pawl-agents/pawl/journal"
)

const (
	sqlPost = `INSERT INTO pawl_inbox (run, key, kind, version, frame, time, payload, salt, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	sqlEntry   = `SELECT kind, version, frame, time, payload, salt, hash FROM pawl_inbox WHERE run = ? AND key = ?`
	sqlConsume = `UPDATE pawl_inbox SET consumed = 1 WHERE run = ? AND key = ? AND consumed = 0`

	sqlInbox = `SELECT i.key, i.kind, i.version, i.frame, i.time, i.payload, i.salt, i.hash
		FROM pawl_inbox i JOIN pawl_runs r ON r.id = i.run WHERE r.run = ? AND i.consumed = 0 ORDER BY i.id`
)

// Post implements journal.Driver.
func (s *Store) Post(ctx context.Context, run string, e journal.Entry) error {
	return s.do(ctx, func(t *txn) error {
		r, err := t.run(run)
		if err == sql.ErrNoRows || err == nil && r.head == 0 {
			return journal.ErrUnknownRun
		}
		if err != nil {
			return err
		}
		b := &e.Body
		posted, err := t.exec(sqlPost, r.id, e.Key,
			string(b.Kind), b.Version, b.Frame, b.Time, b.Payload, b.Salt[:], b.Hash[:])
		if err != nil || posted == 1 {
			return err
		}
		var row recordRow
		if err := t.get(sqlEntry, []any{r.id, e.Key}, row.dest()...); err != nil {
			return err
		}
		if row.rec != e.Body {
			return &journal.EntryError{Run: run, First: journal.Entry{Key: e.Key, Body: row.rec}}
		}
		return nil
	})
}

// consume marks entries as consumed.
func (t *txn) consume(run string, id int64, keys []string) error {
	for _, key := range keys {
		consumed, err := t.exec(sqlConsume, id, key)
		if err != nil {
			return err
		}
		if consumed == 0 {
			return fmt.Errorf("pawl: the inbox of run %s has no entry %q to consume", run, key)
		}
	}
	return nil
}

// Inbox implements journal.Driver.
func (s *Store) Inbox(ctx context.Context, run string) ([]journal.Entry, error) {
	var entries []journal.Entry
	err := s.view(ctx, func(v view) error {
		var key string
		var row recordRow
		return v.each(sqlInbox, []any{run}, append([]any{&key}, row.dest()...), func() error {
			entries = append(entries, journal.Entry{Key: key, Body: row.rec})
			return row.rec.Verify()
		})
	})
	if err != nil {
		return nil, fmt.Errorf("%w (inbox of run %s)", err, run)
	}
	return entries, nil
}
