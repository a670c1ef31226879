package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pawl-agents/pawl/internal/group"
	"github.com/pawl-agents/pawl/internal/lent"
	"github.com/pawl-agents/pawl/internal/listing"
	"github.com/pawl-agents/pawl/journal"
)

const (
	sqlAppend = `SELECT refused, head, other FROM pawl_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`
	sqlHolder = `SELECT epoch, until, host, boot, pid, start FROM pawl_runs WHERE run = $1 AND until > pawl_now()`
)

// A call is an append as one call of the database's function.
type call struct {
	run   string
	after uint64
	args  []any

	refused, other *string
	head           *uint64
}

// newCall makes the call of an append, with the companions of this package.
func (s *Store) newCall(run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) (*call, error) {
	change, err := listing.Of(recs)
	if err != nil {
		return nil, err
	}
	lane := cmp.Or(change.Started, &journal.Started{})
	if err := errors.Join(fits("the id of the session", change.To.Session), fits("the id of the conversation", change.To.Conversation),
		fits("the key of the agent", lane.Agent), fits("the queue", lane.Queue)); err != nil {
		return nil, err
	}
	n := len(recs)
	kinds, versions, frames, times := make([]string, n), make([]int32, n), make([]string, n), make([]int64, n)
	payloads, salts, hashes := make([]string, n), make([][]byte, n), make([][]byte, n)
	for i := range recs {
		r := &recs[i]
		kinds[i], versions[i], frames[i], times[i], payloads[i] = string(r.Kind), int32(r.Version), r.Frame, r.Time, r.Payload
		salts[i], hashes[i] = r.Salt[:], r.Hash[:]
	}
	consume, sole := []string{}, false
	sessions, batches, items, of := []string{}, []string{}, []string{}, []int32{}
	for _, c := range with {
		switch c := c.(type) {
		case journal.Consumed:
			consume = append(consume, c...)
		case journal.SoleRun:
			sole = true
		case *batch:
			if c.session.store != s {
				return nil, fmt.Errorf("pawl: run %s: a batch of session %q, which is in another store", run, c.session.id)
			}
			if err := c.session.check(c.items); err != nil {
				return nil, err
			}
			sessions, batches = append(sessions, c.session.id), append(batches, c.id)
			for _, it := range c.items {
				items, of = append(items, it.Raw()), append(of, int32(len(batches)))
			}
		}
	}
	return &call{run: run, after: after, args: []any{run, clamp(epoch), clamp(after), kinds, versions, frames, times, payloads, salts, hashes,
		change.Binds, change.To.Session, change.To.Backend, change.To.Conversation, change.Ends, change.Started != nil, lane.Agent, lane.Queue, lane.Priority, consume, sole, sessions, batches, of, items}}, nil
}

// err is what the function's answer means.
func (c *call) err() error {
	if c.refused == nil {
		return nil
	}
	switch *c.refused {
	case "fenced":
		return journal.ErrFenced
	case "conflict":
		return &journal.ConflictError{Run: c.run, After: c.after, Head: *c.head}
	case "busy":
		return &journal.BusyError{Run: c.run, Open: *c.other}
	}
	return fmt.Errorf("pawl: the inbox of run %s has no entry %q to consume", c.run, *c.other)
}

// Append implements journal.Driver. Companions get a Tx. An append with a companion that is not
// of this package has a connection of its own while the companion runs.
func (s *Store) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	c, err := s.newCall(run, epoch, after, recs, with)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(with, foreign) {
		err = s.appendWith(ctx, c, with)
	} else {
		err = s.queue.Do(ctx, c, false, s.serve)
	}
	if busy, ok := errors.AsType[*journal.BusyError](err); ok {
		var row claimRow
		if s.query(ctx, sqlHolder, []any{busy.Open}, row.dest()...) == nil {
			busy.Holder = row.holder()
		}
	}
	return err
}

// serve does the appends of a group in one transaction: they are sent together and commit
// together. An error of the server's undid them all, so that each is done alone then.
func (s *Store) serve(ctx context.Context, take func() []*group.Write[*call]) error {
	var conn *pgxpool.Conn
	err := s.insist(ctx, func() (_ bool, err error) {
		conn, err = s.pool.Acquire(ctx)
		return false, err
	})
	if err != nil {
		return fault("connect", err)
	}
	defer conn.Release()
	calls := take()
	ctx, end := begun(ctx)
	defer end()
	err = send(ctx, conn.Conn(), calls)
	if sqlState(err) == "" || len(calls) == 1 {
		return err
	}
	for i, w := range calls {
		if err := send(ctx, conn.Conn(), calls[i:i+1]); err != nil {
			w.Err = err
		}
	}
	return nil
}

// send is one transaction of appends. Its error is everybody's; a refusal is in the write.
func send(ctx context.Context, conn *pgx.Conn, calls []*group.Write[*call]) error {
	var b pgx.Batch
	for _, w := range calls {
		b.Queue(sqlAppend, w.Work.args...)
	}
	results := conn.SendBatch(ctx, &b)
	for _, w := range calls {
		if err := results.QueryRow().Scan(&w.Work.refused, &w.Work.head, &w.Work.other); err != nil {
			results.Close()
			return fault("append", err)
		}
	}
	if err := results.Close(); err != nil { // the commit is in it
		return fault("commit", err)
	}
	for _, w := range calls {
		w.Err = w.Work.err()
	}
	return nil
}

// appendWith is an append with companions that run code of others.
func (s *Store) appendWith(ctx context.Context, c *call, with []journal.Companion) error {
	return s.transact(ctx, c.run, func(t *txn) error {
		if err := t.call(c); err != nil {
			return err
		}
		for _, companion := range with {
			if !foreign(companion) {
				continue
			}
			if err := lent.Call(ctx, s, func(ctx context.Context) error { return companion.Commit(ctx, t.lent) }); err != nil {
				return fmt.Errorf("pawl: run %s: a companion: %w", c.run, err)
			}
		}
		return nil
	})
}

// foreign reports whether a companion runs code that is not of this package.
func foreign(c journal.Companion) bool {
	switch c.(type) {
	case journal.Consumed, journal.SoleRun, *batch:
		return false
	}
	return true
}
