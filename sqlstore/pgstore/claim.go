package pgstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

const (
	sqlClaim = `SELECT epoch, head, (previous).epoch, (previous).until, (previous).host, (previous).boot, (previous).pid, (previous).start
		FROM pawl_claim($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlRenew   = `UPDATE pawl_runs SET until = pawl_now() + $1 WHERE run = $2 AND epoch = $3 AND until IS NOT NULL`
	sqlRelease = `UPDATE pawl_runs SET until = NULL, due = $1 WHERE run = $2 AND epoch = $3 AND until IS NOT NULL`
)

// A claimRow is the claim of a run as the database has it.
type claimRow struct {
	epoch uint64
	until *int64 // nil: the claim was released, or there was none
	owner journal.Owner
}

func (c *claimRow) dest() []any {
	return []any{&c.epoch, &c.until, &c.owner.Host, &c.owner.Boot, &c.owner.PID, &c.owner.Start}
}

// holder returns the claim, nil if there is none.
func (c *claimRow) holder() *journal.Holder {
	if c.until == nil {
		return nil
	}
	return &journal.Holder{Epoch: c.epoch, Owner: c.owner, Until: time.UnixMilli(*c.until)}
}

// Claim implements journal.Driver. Leases end by the clock of the server, to the millisecond.
func (s *Store) Claim(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
	if req.TTL <= 0 {
		return journal.Claim{}, badTTL(run, req.TTL)
	}
	if err := fits("the id of the run", run); err != nil {
		return journal.Claim{}, err
	}
	var claim journal.Claim
	var epoch *uint64
	var previous claimRow
	o := req.Owner
	err := s.query(ctx, sqlClaim, []any{run, millis(req.TTL), o.Host, o.Boot, o.PID, o.Start, clamp(req.Takeover), clamp(req.Above)},
		append([]any{&epoch, &claim.Head}, previous.dest()...)...)
	switch {
	case err != nil:
		return journal.Claim{}, err
	case epoch == nil:
		return journal.Claim{}, &journal.ClaimedError{Run: run, Holder: *previous.holder()}
	}
	claim.Epoch, claim.Previous = *epoch, previous.holder()
	return claim, nil
}

// Renew implements journal.Driver.
func (s *Store) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	if ttl <= 0 {
		return badTTL(run, ttl)
	}
	renewed, err := s.exec(ctx, sqlRenew, millis(ttl), run, clamp(epoch))
	if err == nil && renewed == 0 {
		err = journal.ErrFenced
	}
	return err
}

// Release implements journal.Driver.
func (s *Store) Release(ctx context.Context, run string, epoch uint64, due time.Time) error {
	at := int64(0)
	if !due.IsZero() {
		at = due.UnixMilli()
	}
	_, err := s.exec(ctx, sqlRelease, at, run, clamp(epoch))
	return err
}

// exec runs a statement, a transaction of its own, and returns the number of rows it changed.
func (s *Store) exec(ctx context.Context, q string, args ...any) (int64, error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	tag, err := s.pool.Exec(ctx, q, args...)
	if err != nil {
		return 0, fault("write", err)
	}
	return tag.RowsAffected(), nil
}

func badTTL(run string, ttl time.Duration) error {
	return fmt.Errorf("pawl: claim of run %s for %v: the time must be positive", run, ttl)
}

// millis is a time in the store's unit, rounded up.
func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// clamp makes n a number of the database; none that is stored is as large.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64>>1)) }
