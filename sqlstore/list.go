package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// The listings, newest first, each with an index of its own.
const (
	sqlListed = `SELECT run, coalesce(session, ''), agent, queue, priority, head, created, updated, ended, epoch, until, host, boot, pid, start,
		(SELECT count(*) FROM pawl_inbox i WHERE i.run = pawl_runs.id AND i.consumed = 0)
		FROM pawl_runs WHERE head > 0 AND id < ? `
	sqlList            = sqlListed + `ORDER BY id DESC LIMIT ?`
	sqlListOpen        = sqlListed + `AND ended = 0 ORDER BY id DESC LIMIT ?`
	sqlListSession     = sqlListed + `AND session = ? ORDER BY id DESC LIMIT ?`
	sqlListSessionOpen = sqlListed + `AND session = ? AND ended = 0 ORDER BY id DESC LIMIT ?`
	sqlDue             = `AND ended = 0 AND id IN (SELECT id FROM pawl_runs WHERE ended = 0 AND due <= ? UNION ALL ` + sqlUnseen + `)
		ORDER BY id DESC LIMIT ?`
	sqlUnseen = `SELECT run FROM pawl_inbox i WHERE consumed = 0 GROUP BY run
		HAVING count(*) > (SELECT unread FROM pawl_runs r WHERE r.id = i.run)`
	sqlListDue        = sqlListed + sqlDue
	sqlListSessionDue = sqlListed + `AND session = ? ` + sqlDue
	sqlListHeld       = sqlListed + `AND id IN (SELECT id FROM pawl_runs WHERE ended = 0 AND due = 0 AND until IS NOT NULL AND host = ?) ORDER BY id DESC LIMIT ?`
)

// List implements journal.Driver. Runs are in the order of their first facts.
func (s *Store) List(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	var infos []journal.RunInfo
	err := s.view(ctx, func(v view) error {
		below, err := v.before(q.Before)
		if err != nil {
			return err
		}
		query, args := selection(q, below)
		var r runRow
		var info journal.RunInfo
		var created, updated int64
		o := &r.holder.Owner
		dest := []any{&info.Run, &info.Session, &info.Agent, &info.Queue, &info.Priority, &info.Head, &created, &updated, &info.Ended,
			&r.epoch, &r.until, &o.Host, &o.Boot, &o.PID, &o.Start, &info.Inbox}
		return v.each(query, args, dest, func() error {
			info.Created, info.Updated = time.UnixMilli(created), time.UnixMilli(updated)
			info.Holder = r.live()
			infos = append(infos, info)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return infos, nil
}

// before returns the number below which a listing begins.
func (v view) before(run string) (number int64, err error) {
	if run == "" {
		return math.MaxInt64, nil
	}
	var head uint64
	err = v.get(sqlHead, []any{run}, &number, &head)
	if err == sql.ErrNoRows || err == nil && head == 0 {
		return 0, fmt.Errorf("%w: %s", journal.ErrUnknownRun, run)
	}
	return number, err
}

// selection returns the statement of a listing with its arguments.
func selection(q journal.Query, below int64) (query string, args []any) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	switch {
	case q.Host != "":
		return sqlListHeld, []any{below, q.Host, limit}
	case q.Due && q.Session == "":
		return sqlListDue, []any{below, now(), limit}
	case q.Due:
		return sqlListSessionDue, []any{below, q.Session, now(), limit}
	case q.Session == "" && !q.Open:
		return sqlList, []any{below, limit}
	case q.Session == "":
		return sqlListOpen, []any{below, limit}
	case !q.Open:
		return sqlListSession, []any{below, q.Session, limit}
	}
	return sqlListSessionOpen, []any{below, q.Session, limit}
}
