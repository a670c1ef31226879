package pgstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-agents/pawl/journal"
)

const (
	// The left join gives a run without facts one row, of its head.
	sqlFacts = `SELECT r.head, coalesce(f.seq, 0), coalesce(f.kind, ''), coalesce(f.version, 0), coalesce(f.frame, ''), coalesce(f.time, 0),
		coalesce(f.payload, ''), f.salt, f.hash
		FROM pawl_runs r LEFT JOIN pawl_facts f ON f.run = r.id AND f.seq > $2 WHERE r.run = $1 ORDER BY f.seq`

	sqlPost = `SELECT known, coalesce((first).kind, ''), coalesce((first).version, 0), coalesce((first).frame, ''), coalesce((first).time, 0),
		coalesce((first).payload, ''), (first).salt, (first).hash FROM pawl_post($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	sqlInbox = `SELECT i.key, i.kind, i.version, i.frame, i.time, i.payload, i.salt, i.hash
		FROM pawl_inbox i JOIN pawl_runs r ON r.id = i.run WHERE r.run = $1 AND NOT i.consumed ORDER BY i.id`

	sqlNumber = `SELECT number FROM pawl_runs WHERE run = $1 AND number IS NOT NULL`
	sqlListed = `SELECT run, coalesce(session, ''), agent, queue, priority, head, created, updated, ended, epoch, CASE WHEN until > pawl_now() THEN until END, host, boot, pid, start,
		(SELECT count(*) FROM pawl_inbox i WHERE i.run = pawl_runs.id AND NOT i.consumed)
		FROM pawl_runs WHERE number < $1 `
	sqlList            = sqlListed + `ORDER BY number DESC LIMIT $2`
	sqlListOpen        = sqlListed + `AND NOT ended ORDER BY number DESC LIMIT $2`
	sqlListSession     = sqlListed + `AND session = $3 ORDER BY number DESC LIMIT $2`
	sqlListSessionOpen = sqlListed + `AND session = $3 AND NOT ended ORDER BY number DESC LIMIT $2`
	sqlDue             = `AND NOT ended AND id IN (SELECT id FROM pawl_runs WHERE NOT ended AND due <= (SELECT pawl_now())
		UNION ALL SELECT run FROM pawl_inbox i WHERE NOT consumed GROUP BY run HAVING count(*) > (SELECT unread FROM pawl_runs r WHERE r.id = i.run)) ORDER BY number DESC LIMIT $2`
	sqlListDue        = sqlListed + sqlDue
	sqlListSessionDue = sqlListed + `AND session = $3 ` + sqlDue
	sqlListHeld       = sqlListed + `AND id IN (SELECT id FROM pawl_runs WHERE NOT ended AND due = 0 AND until IS NOT NULL AND host = $3) ORDER BY number DESC LIMIT $2`
)

// recordRow takes the columns of a record from a result.
type recordRow struct {
	rec        journal.Record
	salt, hash []byte
}

func (r *recordRow) dest() []any {
	return []any{(*string)(&r.rec.Kind), &r.rec.Version, &r.rec.Frame, &r.rec.Time, &r.rec.Payload, &r.salt, &r.hash}
}

// record returns the row's record, or journal.ErrCorrupt.
func (r *recordRow) record() (journal.Record, error) {
	if len(r.salt) != len(r.rec.Salt) || len(r.hash) != len(r.rec.Hash) {
		return r.rec, fmt.Errorf("%w: a salt of %d and a hash of %d bytes", journal.ErrCorrupt, len(r.salt), len(r.hash))
	}
	copy(r.rec.Salt[:], r.salt)
	copy(r.rec.Hash[:], r.hash)
	return r.rec, nil
}

// Read implements journal.Driver. Facts are verified: the error wraps journal.ErrCorrupt if
// one is missing or is not what was written.
func (s *Store) Read(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
	var recs []journal.Record
	var head, seq uint64
	var row recordRow
	next := func() uint64 { return after + uint64(len(recs)) + 1 }
	err := s.each(ctx, sqlFacts, []any{run, clamp(after)}, append([]any{&head, &seq}, row.dest()...), func() error {
		if seq == 0 {
			return nil
		}
		if seq != next() {
			return fmt.Errorf("%w: fact %d is missing", journal.ErrCorrupt, next())
		}
		rec, err := row.record()
		if err == nil {
			err = rec.Verify()
		}
		if err != nil {
			return fmt.Errorf("%w, number %d", err, seq)
		}
		recs = append(recs, rec)
		return nil
	})
	if err == nil && head > after && next() != head+1 {
		err = fmt.Errorf("%w: it has facts up to %d of %d", journal.ErrCorrupt, next()-1, head)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (run %s)", err, run)
	}
	return recs, nil
}

// Post implements journal.Driver. Whoever listens hears of the entry.
func (s *Store) Post(ctx context.Context, run string, e journal.Entry) error {
	var known bool
	var row recordRow
	b := &e.Body
	err := s.query(ctx, sqlPost, []any{run, e.Key, string(b.Kind), b.Version, b.Frame, b.Time, b.Payload, b.Salt[:], b.Hash[:]},
		append([]any{&known}, row.dest()...)...)
	switch {
	case err != nil:
		return err
	case !known:
		return journal.ErrUnknownRun
	}
	first, err := row.record()
	if err != nil {
		return err
	}
	if first != e.Body {
		return &journal.EntryError{Run: run, First: journal.Entry{Key: e.Key, Body: first}}
	}
	return nil
}

// Inbox implements journal.Driver.
func (s *Store) Inbox(ctx context.Context, run string) ([]journal.Entry, error) {
	var entries []journal.Entry
	var key string
	var row recordRow
	err := s.each(ctx, sqlInbox, []any{run}, append([]any{&key}, row.dest()...), func() error {
		rec, err := row.record()
		if err == nil {
			err = rec.Verify()
		}
		entries = append(entries, journal.Entry{Key: key, Body: rec})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w (inbox of run %s)", err, run)
	}
	return entries, nil
}

// List implements journal.Driver. Runs are in the order of their first facts.
func (s *Store) List(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	below := int64(math.MaxInt64)
	if q.Before != "" {
		switch err := s.query(ctx, sqlNumber, []any{q.Before}, &below); {
		case err == pgx.ErrNoRows:
			return nil, fmt.Errorf("%w: %s", journal.ErrUnknownRun, q.Before)
		case err != nil:
			return nil, err
		}
	}
	query, args := selection(q, below)
	var infos []journal.RunInfo
	var info journal.RunInfo
	var created, updated int64
	var claim claimRow
	dest := append([]any{&info.Run, &info.Session, &info.Agent, &info.Queue, &info.Priority, &info.Head, &created, &updated, &info.Ended}, claim.dest()...)
	err := s.each(ctx, query, args, append(dest, &info.Inbox), func() error {
		info.Created, info.Updated = time.UnixMilli(created), time.UnixMilli(updated)
		info.Holder = claim.holder()
		infos = append(infos, info)
		return nil
	})
	return infos, err
}

// selection returns the statement of a listing with its arguments.
func selection(q journal.Query, below int64) (query string, args []any) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	switch {
	case q.Host != "":
		return sqlListHeld, []any{below, limit, q.Host}
	case q.Due && q.Session == "":
		return sqlListDue, []any{below, limit}
	case q.Due:
		return sqlListSessionDue, []any{below, limit, q.Session}
	case q.Session == "" && !q.Open:
		return sqlList, []any{below, limit}
	case q.Session == "":
		return sqlListOpen, []any{below, limit}
	case !q.Open:
		return sqlListSession, []any{below, limit, q.Session}
	}
	return sqlListSessionOpen, []any{below, limit, q.Session}
}
