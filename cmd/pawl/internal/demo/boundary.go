package demo

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
)

// Write is a kind of durable write.
type Write string

// The kinds of writes.
const (
	WriteStore   Write = "store"   // to the run store
	WriteRefund  Write = "refund"  // a refund, to the shop
	WriteMail    Write = "mail"    // a mail, to the shop
	WriteSession Write = "session" // a batch, to a session beside the run store
)

// Kill makes the process die of SIGKILL at a durable boundary: right before or right after one of its writes. The
// zero value never does. It is how the command's own tests reach every boundary.
type Kill struct {
	// N is the number of the write, from 1, among those of kind Only, or among all if that is empty.
	N     int64
	Only  Write
	After bool

	writes atomic.Int64
}

// around runs a durable write, or dies beside it.
func (k *Kill) around(kind Write, write func() error) error {
	due := (k.Only == "" || k.Only == kind) && k.writes.Add(1) == k.N
	if due && !k.After {
		die()
	}
	err := write()
	if due {
		die()
	}
	return err
}

// die ends the process as kill -9 does.
func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // the signal is on its way
}

// store is the run store with its writes counted.
type store struct {
	*sqlstore.Store
	kill *Kill
}

// Claim implements journal.Driver.
func (s *store) Claim(ctx context.Context, run string, req journal.ClaimRequest) (c journal.Claim, err error) {
	err = s.kill.around(WriteStore, func() error {
		c, err = s.Store.Claim(ctx, run, req)
		return err
	})
	return c, err
}

// Renew implements journal.Driver.
func (s *store) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	return s.kill.around(WriteStore, func() error { return s.Store.Renew(ctx, run, epoch, ttl) })
}

// Release implements journal.Driver.
func (s *store) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	return s.kill.around(WriteStore, func() error { return s.Store.Release(ctx, run, epoch, rest) })
}

// Append implements journal.Driver.
func (s *store) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	return s.kill.around(WriteStore, func() error { return s.Store.Append(ctx, run, epoch, after, recs, with...) })
}

// Post implements journal.Driver.
func (s *store) Post(ctx context.Context, run string, e journal.Entry) error {
	return s.kill.around(WriteStore, func() error { return s.Store.Post(ctx, run, e) })
}

// storeSession is a session in that store. Batches commit with their facts, so they are among the store's
// writes.
type storeSession struct {
	*sqlstore.Session
	store *store
}

// Store is the driver whose transactions the session joins.
func (s *storeSession) Store() journal.Driver { return s.store }

// AppendBatch implements session.BatchAppender.
func (s *storeSession) AppendBatch(ctx context.Context, id string, items []item.Item) error {
	return s.store.kill.around(WriteSession, func() error { return s.Session.AppendBatch(ctx, id, items) })
}
