package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

const (
	sqlNewRun = `INSERT INTO pawl_runs (run, created, updated) VALUES (?1, ?2, ?2) ON CONFLICT DO NOTHING`
	sqlRun    = `SELECT id, head, epoch, until, host, boot, pid, start FROM pawl_runs WHERE run = ?`
	sqlClaim  = `UPDATE pawl_runs SET epoch = ?, until = ?, host = ?, boot = ?, pid = ?, start = ?, due = 0 WHERE id = ?`
	sqlRenew  = `UPDATE pawl_runs SET until = ? WHERE run = ? AND epoch = ? AND until IS NOT NULL`
	// A released claim is no longer current: its epoch stays, to be counted on.
	sqlRelease = `UPDATE pawl_runs SET until = NULL, due = ?, unread = ? WHERE run = ? AND epoch = ? AND until IS NOT NULL`
)

// A runRow is what pawl_runs says of a run and its claim.
type runRow struct {
	id     int64
	head   uint64
	epoch  uint64
	until  sql.NullInt64 // not valid: the claim was released, or there was none
	holder journal.Holder
}

// holds reports whether the claim of the epoch is the current one, live or not.
func (r *runRow) holds(epoch uint64) bool { return r.until.Valid && r.epoch == epoch }

// current returns the current claim, nil if there is none.
func (r *runRow) current() *journal.Holder {
	if !r.until.Valid {
		return nil
	}
	h := r.holder
	h.Epoch, h.Until = r.epoch, time.UnixMilli(r.until.Int64)
	return &h
}

// live returns the current claim if its time is not over.
func (r *runRow) live() *journal.Holder {
	if h := r.current(); h != nil && now() < r.until.Int64 {
		return h
	}
	return nil
}

// run reads a run. The error is sql.ErrNoRows if it was never claimed.
func (t *txn) run(run string) (r runRow, err error) {
	o := &r.holder.Owner
	err = t.get(sqlRun, []any{run}, &r.id, &r.head, &r.epoch, &r.until, &o.Host, &o.Boot, &o.PID, &o.Start)
	return r, err
}

// Claim implements journal.Driver. Leases end by the clock of the processes on the
// host, to the millisecond.
func (s *Store) Claim(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
	if req.TTL <= 0 {
		return journal.Claim{}, badTTL(run, req.TTL)
	}
	var claim journal.Claim
	err := s.do(ctx, func(t *txn) error {
		if _, err := t.exec(sqlNewRun, run, now()); err != nil {
			return err
		}
		r, err := t.run(run)
		if err != nil {
			return err
		}
		if h := r.live(); h != nil && h.Epoch != req.Takeover {
			return &journal.ClaimedError{Run: run, Holder: *h}
		}
		claim, err = t.claim(&r, req)
		return err
	})
	if err != nil {
		return journal.Claim{}, err
	}
	return claim, nil
}

// claim grants a claim of a run.
func (t *txn) claim(r *runRow, req journal.ClaimRequest) (journal.Claim, error) {
	claim := journal.Claim{Epoch: max(r.epoch, uint64(clamp(req.Above))) + 1, Head: r.head, Previous: r.current()}
	o := req.Owner
	_, err := t.exec(sqlClaim, claim.Epoch, until(req.TTL), o.Host, o.Boot, o.PID, o.Start, r.id)
	return claim, err
}

// Renew implements journal.Driver.
func (s *Store) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	if ttl <= 0 {
		return badTTL(run, ttl)
	}
	return s.do(ctx, func(t *txn) error {
		renewed, err := t.exec(sqlRenew, until(ttl), run, clamp(epoch))
		if err == nil && renewed == 0 {
			err = journal.ErrFenced
		}
		return err
	})
}

// Release implements journal.Driver.
func (s *Store) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	s.numbers.Delete(run)
	return s.do(ctx, func(t *txn) error {
		_, err := t.exec(sqlRelease, dueTime(rest.Due), rest.Unread, run, clamp(epoch))
		return err
	})
}

// dueTime is when a run is due, in the store's unit. It is never 0, which a claim has.
func dueTime(due time.Time) int64 {
	if due.IsZero() {
		return now()
	}
	return due.UnixMilli()
}

func badTTL(run string, ttl time.Duration) error {
	return fmt.Errorf("pawl: claim of run %s for %v: the time must be positive", run, ttl)
}

// until is the end of a lease that begins now, rounded up.
func until(ttl time.Duration) int64 {
	return time.Now().Add(ttl + time.Millisecond - 1).UnixMilli()
}

// now is the time in the store's unit, Unix milliseconds.
func now() int64 { return time.Now().UnixMilli() }
