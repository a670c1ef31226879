package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

const (
	sqlTake   = `SELECT pawl_take($1, $2, $3)`
	sqlNewest = `SELECT message_data FROM agent_messages WHERE session_id = $1 ORDER BY id DESC`
	// The session's row is what writers of the session wait for.
	sqlPop = `WITH s AS (SELECT session_id FROM agent_sessions WHERE session_id = $1 FOR UPDATE)
		DELETE FROM agent_messages WHERE id = (SELECT m.id FROM agent_messages m JOIN s USING (session_id) ORDER BY m.id DESC LIMIT 1) RETURNING message_data`
	sqlClear = `DELETE FROM agent_sessions WHERE session_id = $1` // and with it its messages
)

// Session is a conversation in a store. It is safe for
// concurrent use, and any number of them may stand for the same conversation.
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

// Store returns the store that holds the session. A run with a ledger in that store commits its
// batches together with its facts.
func (s *Session) Store() journal.Driver { return s.store }

// errStop ends the reading of rows.
var errStop = errors.New("enough")

// Items returns the newest limit items, oldest first; a negative limit means all. Rows that
// hold no item are passed over and do not count; Append makes none.
func (s *Session) Items(ctx context.Context, limit int) ([]item.Item, error) {
	if limit == 0 {
		return nil, ctx.Err()
	}
	var items []item.Item
	var text string
	err := s.store.each(ctx, sqlNewest, []any{s.id}, []any{&text}, func() error {
		if it, err := item.ParseString(text); err == nil {
			items = append(items, it)
		}
		if len(items) == limit {
			return errStop
		}
		return nil
	})
	if err != nil && err != errStop {
		return nil, err
	}
	slices.Reverse(items)
	return items, nil
}

// Append adds the items at the end, all or none.
func (s *Session) Append(ctx context.Context, items []item.Item) error {
	return s.take(ctx, nil, items)
}

// AppendBatch implements session.BatchAppender.
func (s *Session) AppendBatch(ctx context.Context, batchID string, items []item.Item) error {
	return s.take(ctx, &batchID, items)
}

func (s *Session) take(ctx context.Context, batchID *string, items []item.Item) error {
	if err := s.check(items); err != nil {
		return err
	}
	_, err := s.store.exec(ctx, sqlTake, s.id, batchID, texts(items))
	return err
}

func texts(items []item.Item) []string {
	list := make([]string, len(items))
	for i, it := range items {
		list[i] = it.Raw()
	}
	return list
}

// Pop removes and returns the newest item. Newer rows that hold no item go with it.
func (s *Session) Pop(ctx context.Context) (it item.Item, ok bool, err error) {
	for !ok {
		var text string
		err := s.store.query(ctx, sqlPop, []any{s.id}, &text)
		if err == pgx.ErrNoRows {
			return item.Item{}, false, nil
		}
		if err != nil {
			return item.Item{}, false, err
		}
		it, err = item.ParseString(text)
		ok = err == nil
	}
	return it, ok, nil
}

// Clear removes all items. The ids of batches stay.
func (s *Session) Clear(ctx context.Context) error {
	_, err := s.store.exec(ctx, sqlClear, s.id)
	return err
}

// Companion returns the write of AppendBatch as a companion of an append to the session's own
// store: batch and facts commit together or not at all.
func (s *Session) Companion(batchID string, items []item.Item) journal.Companion {
	return &batch{s, batchID, items}
}

// A batch is items that a session takes once.
type batch struct {
	session *Session
	id      string
	items   []item.Item
}

// Commit implements journal.Companion. tx must be a transaction of the session's store.
func (b *batch) Commit(ctx context.Context, tx any) error {
	own, ok := tx.(*Tx)
	if !ok {
		return fmt.Errorf("pawl: a batch of session %q, which is in another store", b.session.id)
	}
	if err := b.session.check(b.items); err != nil {
		return err
	}
	if _, err := own.Exec(ctx, sqlTake, b.session.id, b.id, texts(b.items)); err != nil {
		return fault("write", err)
	}
	return nil
}

// check refuses what the session cannot take.
func (s *Session) check(items []item.Item) error {
	if slices.ContainsFunc(items, item.Item.IsZero) {
		return session.ErrZeroItem
	}
	return fits("the id of the session", s.id)
}
