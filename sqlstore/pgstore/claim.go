package pgstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pawl-agents/pawl/journal"
)

const (
	sqlClaim = `SELECT epoch, head, (previous).epoch, (previous).until, (previous).host, (previous).boot, (previous).pid, (previous).start
		FROM pawl_claim($1, $2, $3, $4, $5, $6, $7, $8)`
	sqlRenew   = `UPDATE pawl_runs SET until = pawl_now() + $1 WHERE run = $2 AND epoch = $3 AND until IS NOT NULL`
	sqlRelease = `SELECT pawl_release($1, $2, $3, $4)`
	sqlNext    = `SELECT run, (previous).queue, epoch, head, (previous).epoch, (previous).until, (previous).host, (previous).boot, (previous).pid, (previous).start
		FROM pawl_next($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) WHERE run IS NOT NULL`
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
func (s *Store) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	at := int64(0)
	if !rest.Due.IsZero() {
		at = rest.Due.UnixMilli()
	}
	_, err := s.exec(ctx, sqlRelease, run, clamp(epoch), at, rest.Unread)
	return err
}

// Next implements journal.Driver: choosing the run and claiming it is one statement.
func (s *Store) Next(ctx context.Context, req journal.NextRequest) (*journal.Next, error) {
	if req.TTL <= 0 {
		return nil, badTTL("", req.TTL)
	}
	full, loaded, loads := append([]string{}, req.Full...), []string{}, []int64{}
	for queue, load := range req.Load {
		loaded, loads = append(loaded, queue), append(loads, load)
	}
	var next journal.Next
	var previous claimRow
	o := req.Owner
	err := s.query(ctx, sqlNext, []any{millis(req.TTL), o.Host, o.Boot, o.PID, o.Start, req.Agents, req.Queues, full, loaded, loads},
		append([]any{&next.Run, &next.Queue, &next.Claim.Epoch, &next.Claim.Head}, previous.dest()...)...)
	switch {
	case err == pgx.ErrNoRows:
		return nil, nil
	case err != nil:
		return nil, err
	}
	next.Claim.Previous = previous.holder()
	return &next, nil
}

// exec runs a statement, a transaction of its own, and returns the number of rows it changed.
func (s *Store) exec(ctx context.Context, q string, args ...any) (int64, error) {
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	var tag pgconn.CommandTag
	err := s.insist(ctx, func() (_ bool, err error) {
		tag, err = s.pool.Exec(ctx, q, args...)
		return !unsent(err), err
	})
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
