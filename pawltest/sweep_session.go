package pawltest

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// plainSession is a session as a process of a scenario sees it. It knows nothing of batches.
type plainSession struct {
	session.Session
	world *World
}

func (s plainSession) Items(ctx context.Context, limit int) ([]item.Item, error) {
	if err := s.world.alive(); err != nil {
		return nil, err
	}
	return s.Session.Items(ctx, limit)
}

func (s plainSession) Append(ctx context.Context, items []item.Item) error {
	return s.append(items, func() error { return s.Session.Append(ctx, items) })
}

func (s plainSession) append(items []item.Item, do func() error) error {
	return s.world.at(SessionAppend, fmt.Sprintf("%d items", len(items)), do)
}

// batchSession also remembers batches, and says where it is kept.
type batchSession struct{ plainSession }

func (s batchSession) AppendBatch(ctx context.Context, id string, items []item.Item) error {
	return s.append(items, func() error { return s.Session.(session.BatchAppender).AppendBatch(ctx, id, items) })
}

func (s batchSession) Backend() string { return s.Session.(session.Backend).Backend() }

// storeSession is kept by the run's own store.
type storeSession struct{ batchSession }

func (s storeSession) Store() journal.Driver { return s.world.store }

func (s storeSession) Companion(batchID string, items []item.Item) journal.Companion {
	return s.Session.(interface {
		Companion(string, []item.Item) journal.Companion
	}).Companion(batchID, items)
}
