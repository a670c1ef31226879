package sqlstore

import (
	"context"

	"github.com/pawl-agents/pawl/internal/group"
	"github.com/pawl-agents/pawl/internal/lent"
)

// A write is work for the writing connection.
type write = group.Write[func(tx *txn) error]

// do runs work in a transaction, which other writes may share, and returns its
// error or that of the commit. If ctx ends before the transaction has begun, work
// does not run; after that, ctx does not matter.
func (s *Store) do(ctx context.Context, work func(tx *txn) error) error {
	return s.submit(ctx, work, false)
}

// doAlone is do in a transaction of its own, for work that runs code of others on it.
func (s *Store) doAlone(ctx context.Context, work func(tx *txn) error) error {
	return s.submit(ctx, work, true)
}

func (s *Store) submit(ctx context.Context, work func(tx *txn) error, alone bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if lent.Has(ctx, s) {
		return ErrInTransaction
	}
	return s.queue.Do(ctx, work, alone, s.serve)
}

// serve does writes in one transaction.
func (s *Store) serve(ctx context.Context, take func() []*write) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.end()
	return tx.serve(take())
}
