package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

const (
	sqlTouchSession = `INSERT INTO agent_sessions (session_id) VALUES (?)
		ON CONFLICT DO UPDATE SET updated_at = CURRENT_TIMESTAMP`
	sqlMessage = `INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)`
	sqlBatch   = `INSERT INTO pawl_batches (session_id, batch_id) VALUES (?, ?) ON CONFLICT DO NOTHING`
	sqlPop     = `DELETE FROM agent_messages WHERE id =
		(SELECT id FROM agent_messages WHERE session_id = ? ORDER BY id DESC LIMIT 1) RETURNING message_data`
	sqlClearMessages = `DELETE FROM agent_messages WHERE session_id = ?`
	sqlClearSession  = `DELETE FROM agent_sessions WHERE session_id = ?`

	sqlNewest = `SELECT message_data FROM agent_messages WHERE session_id = ? ORDER BY id DESC`
)

// Session is a conversation in a store, in the layout of the Python SDK. It is safe
// for concurrent use, and any number of them may stand for the same conversation.
type Session struct {
	store *Store
	id    string
}

var (
	_ session.Session       = (*Session)(nil)
	_ session.BatchAppender = (*Session)(nil)
	_ session.Backend       = (*Session)(nil)
)

// Session returns the session of that id. It is made by the first append.
func (s *Store) Session(id string) *Session { return &Session{s, id} }

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Backend returns the store's Backend.
func (s *Session) Backend() string { return s.store.backend }

// Store returns the store that holds the session. A run with a ledger in that store
// commits its batches together with its facts.
func (s *Session) Store() journal.Driver { return s.store }

// Items returns the newest limit items, oldest first; a negative limit means all.
// Rows that hold no item are passed over and do not count; Append makes none.
func (s *Session) Items(ctx context.Context, limit int) ([]item.Item, error) {
	if limit == 0 {
		return nil, ctx.Err()
	}
	var items []item.Item
	err := s.store.view(ctx, func(v view) error {
		var text string
		return v.each(sqlNewest, []any{s.id}, []any{&text}, func() error {
			if it, err := item.ParseString(text); err == nil {
				items = append(items, it)
			}
			if len(items) == limit {
				return errStop
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(items)
	return items, nil
}

// Append adds the items at the end, all or none. It stores nothing if it returns
// the context's error or one that wraps ErrBusy.
func (s *Session) Append(ctx context.Context, items []item.Item) error {
	if err := checkItems(items); err != nil {
		return err
	}
	return s.store.do(ctx, func(t *txn) error { return t.appendItems(s.id, items) })
}

// AppendBatch implements session.BatchAppender.
func (s *Session) AppendBatch(ctx context.Context, batchID string, items []item.Item) error {
	b := &batch{s, batchID, items}
	if err := checkItems(items); err != nil {
		return err
	}
	return s.store.do(ctx, func(t *txn) error { return t.appendBatch(b) })
}

// Pop removes and returns the newest item. Newer rows that hold no item go with
// it.
func (s *Session) Pop(ctx context.Context) (it item.Item, ok bool, err error) {
	err = s.store.do(ctx, func(t *txn) error {
		for !ok {
			var text string
			err := t.get(sqlPop, []any{s.id}, &text)
			if err == sql.ErrNoRows {
				return nil
			}
			if err != nil {
				return err
			}
			it, err = item.ParseString(text)
			ok = err == nil
		}
		return nil
	})
	if err != nil {
		return item.Item{}, false, err
	}
	return it, ok, nil
}

// Clear removes all items. The ids of batches stay.
func (s *Session) Clear(ctx context.Context) error {
	return s.store.do(ctx, func(t *txn) error {
		if _, err := t.exec(sqlClearMessages, s.id); err != nil {
			return err
		}
		_, err := t.exec(sqlClearSession, s.id)
		return err
	})
}

// Companion returns the write of AppendBatch as a companion of an append to the
// session's own store: batch and facts commit together or not at all.
func (s *Session) Companion(batchID string, items []item.Item) journal.Companion {
	return &batch{s, batchID, items}
}

// A batch is items that a session takes once.
type batch struct {
	session *Session
	id      string
	items   []item.Item
}

// Commit implements journal.Companion. tx must be a transaction of the session's
// store.
func (b *batch) Commit(_ context.Context, tx any) error {
	sqlTx, ok := tx.(*sql.Tx)
	if !ok {
		return fmt.Errorf("pawl: a batch of session %q, which is in another store", b.session.id)
	}
	return newTxn(b.session.store, sqlTx).appendBatch(b)
}

func (t *txn) appendBatch(b *batch) error {
	if err := checkItems(b.items); err != nil {
		return err
	}
	fresh, err := t.exec(sqlBatch, b.session.id, b.id)
	if err != nil || fresh == 0 {
		return err
	}
	return t.appendItems(b.session.id, b.items)
}

func (t *txn) appendItems(id string, items []item.Item) error {
	if len(items) == 0 {
		return nil
	}
	if _, err := t.exec(sqlTouchSession, id); err != nil {
		return err
	}
	for _, it := range items {
		if _, err := t.exec(sqlMessage, id, it.Raw()); err != nil {
			return err
		}
	}
	return nil
}

func checkItems(items []item.Item) error {
	if slices.ContainsFunc(items, item.Item.IsZero) {
		return session.ErrZeroItem
	}
	return nil
}
