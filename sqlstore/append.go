package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"github.com/pawl-agents/pawl/internal/listing"
	"github.com/pawl-agents/pawl/journal"
)

const (
	sqlAdvance = `UPDATE pawl_runs SET head = ?, updated = ?
		WHERE id = ? AND epoch = ? AND until IS NOT NULL AND head = ?`
	// A run is listed by its first facts. It gets its final number with them.
	sqlCreate = `UPDATE pawl_runs SET id = 1 + (SELECT max(id) FROM pawl_runs), created = updated WHERE id = ? RETURNING id`
	sqlFact   = `INSERT INTO pawl_facts (id, kind, version, frame, time, payload, salt, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	sqlBind = `UPDATE pawl_runs SET session = nullif(?, ''), backend = nullif(?, ''), conversation = nullif(?, '') WHERE id = ?`
	sqlLane = `UPDATE pawl_runs SET agent = ?, queue = ?, priority = ? WHERE id = ?`
	sqlEnd  = `UPDATE pawl_runs SET ended = 1 WHERE id = ?`

	sqlHead  = `SELECT id, head FROM pawl_runs WHERE run = ?`
	sqlFacts = `SELECT seq, kind, version, frame, time, payload, salt, hash FROM pawl_facts
		WHERE id > ? AND id <= ? ORDER BY id`
)

// Append implements journal.Driver. The error wraps ErrBusy if another process kept
// the database locked: then nothing was stored. Once the transaction has begun the
// end of ctx no longer matters, so a cancelled Append that returns the context's
// error has stored nothing either. Companions get a *sql.Tx. An append with a
// companion that is not of this package holds the store's only writer while the
// companion runs: it must be short and must not use the store.
func (s *Store) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	change, err := listing.Of(recs)
	if err != nil {
		return err
	}
	work := func(t *txn) error {
		return t.add(ctx, run, epoch, after, recs, change, with...)
	}
	if slices.ContainsFunc(with, foreign) {
		return s.doAlone(ctx, work)
	}
	return s.do(ctx, work)
}

// add appends records and commits companions with them.
func (t *txn) add(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, change listing.Change, with ...journal.Companion) error {
	id, err := t.advance(run, epoch, after, len(recs))
	if err != nil {
		return err
	}
	if id, err = t.list(id, after == 0 && len(recs) > 0, change); err != nil {
		return err
	}
	if err := t.insertFacts(id, after, recs); err != nil {
		return err
	}
	for _, c := range with {
		if err := t.accompany(ctx, run, id, c); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the head of a run from after by n, if the epoch is current and
// the head is there. It returns the run's number.
func (t *txn) advance(run string, epoch, after uint64, n int) (id int64, err error) {
	if known, ok := t.store.numbers.Load(run); ok {
		id = known.(int64)
		moved, err := t.exec(sqlAdvance, clamp(after)+int64(n), now(), id, clamp(epoch), clamp(after))
		if err != nil || moved == 1 {
			return id, err
		}
	}
	r, err := t.run(run)
	switch {
	case err == sql.ErrNoRows || err == nil && !r.holds(epoch):
		return 0, journal.ErrFenced
	case err != nil:
		return 0, err
	case r.head != after:
		return 0, &journal.ConflictError{Run: run, After: after, Head: r.head}
	}
	if after > 0 { // from then on the number stays
		t.store.numbers.Store(run, r.id)
	}
	_, err = t.exec(sqlAdvance, clamp(after)+int64(n), now(), r.id, clamp(epoch), clamp(after))
	return r.id, err
}

// list brings the listing of a run up to date and returns the run's number, which
// is another one after the first facts.
func (t *txn) list(id int64, first bool, change listing.Change) (int64, error) {
	if first {
		if err := t.get(sqlCreate, []any{id}, &id); err != nil {
			return 0, err
		}
	}
	if change.Binds {
		if _, err := t.exec(sqlBind, change.To.Session, change.To.Backend, change.To.Conversation, id); err != nil {
			return 0, err
		}
	}
	if b := change.Started; b != nil {
		if _, err := t.exec(sqlLane, b.Agent, b.Queue, b.Priority, id); err != nil {
			return 0, err
		}
	}
	if change.Ends {
		if _, err := t.exec(sqlEnd, id); err != nil {
			return 0, err
		}
	}
	return id, nil
}

// maxFacts is the largest number of a fact in its run.
const maxFacts = 1<<32 - 1

// factID is the key of a fact: the facts of a run lie together and in order, without an
// index beside the table that holds them.
func factID(run int64, seq uint64) int64 { return run<<32 | int64(min(seq, maxFacts)) }

func (t *txn) insertFacts(id int64, after uint64, recs []journal.Record) error {
	for i := range recs {
		r := &recs[i]
		_, err := t.exec(sqlFact, factID(id, after+uint64(i)+1),
			string(r.Kind), r.Version, r.Frame, r.Time, r.Payload, r.Salt[:], r.Hash[:])
		if err != nil {
			return err
		}
	}
	return nil
}

// foreign reports whether a companion runs code that is not of this package.
func foreign(c journal.Companion) bool {
	switch c.(type) {
	case journal.Consumed, journal.SoleRun, *batch:
		return false
	}
	return true
}

// accompany does a companion's write.
func (t *txn) accompany(ctx context.Context, run string, id int64, c journal.Companion) (err error) {
	switch c := c.(type) {
	case journal.Consumed:
		return t.consume(run, id, c)
	case journal.SoleRun:
		return t.alone(run, id)
	case *batch:
		if c.session.store != t.store {
			return fmt.Errorf("pawl: run %s: a batch of session %q, which is in another store", run, c.session.id)
		}
		return t.appendBatch(c)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pawl: run %s: a companion panicked: %v\n%s", run, p, debug.Stack())
		}
	}()
	return c.Commit(ctx, t.tx)
}

// Read implements journal.Driver. Facts are verified: the error wraps
// journal.ErrCorrupt if one is missing or is not what was written.
func (s *Store) Read(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
	var recs []journal.Record
	err := s.view(ctx, func(v view) (err error) {
		var id int64
		var head uint64
		err = v.get(sqlHead, []any{run}, &id, &head)
		if err == sql.ErrNoRows || err == nil && head <= after {
			return nil
		}
		if err == nil {
			recs, err = v.facts(id, after, head)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w (run %s)", err, run)
	}
	return recs, nil
}

// facts reads the facts after number after, up to head, and verifies them.
func (v view) facts(id int64, after, head uint64) ([]journal.Record, error) {
	recs := make([]journal.Record, 0, min(head-after, 1<<16))
	next := func() uint64 { return after + uint64(len(recs)) + 1 }
	var seq uint64
	var row recordRow
	err := v.each(sqlFacts, []any{factID(id, after), factID(id, maxFacts)}, append([]any{&seq}, row.dest()...), func() error {
		if seq != next() {
			return fmt.Errorf("%w: fact %d is missing", journal.ErrCorrupt, next())
		}
		if err := row.rec.Verify(); err != nil {
			return fmt.Errorf("%w, number %d", err, seq)
		}
		recs = append(recs, row.rec)
		return nil
	})
	if err == nil && next() != head+1 {
		err = fmt.Errorf("%w: it has facts up to %d of %d", journal.ErrCorrupt, next()-1, head)
	}
	return recs, err
}

// clamp makes n a number of SQLite; none that is stored is as large.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64>>1)) }
