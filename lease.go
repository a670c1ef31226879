package pawl

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/internal/owner"
	"github.com/pawl-agents/pawl/journal"
)

// minLease keeps a lease longer than a driver needs to renew it.
const minLease = 10 * time.Millisecond

func (r *Runner) lease() time.Duration {
	if r.Lease > 0 {
		return max(r.Lease, minLease)
	}
	return DefaultLease
}

// take claims the run, under an epoch larger than above, for this process or in the name of an
// engine. A live claim whose owner is known to be gone is taken over.
func (r *Runner) take(ctx context.Context, run string, above uint64, e Engine) (*granted, error) {
	req := journal.ClaimRequest{Owner: owner.Self(), TTL: r.lease(), Above: above}
	if e != nil {
		req.Owner = engineOwner(e.Name())
	}
	from := time.Now()
	c, err := r.store().Claim(ctx, run, req)
	var held *journal.ClaimedError
	if errors.As(err, &held) && owner.Gone(held.Holder.Owner) {
		req.Takeover = held.Holder.Epoch
		from = time.Now()
		c, err = r.store().Claim(ctx, run, req)
	}
	if errors.As(err, &held) {
		err = because(ErrClaimed, err)
	}
	return &granted{c, run, from, req.Owner}, err
}

// claim takes the run, unless it was taken for this drive, and folds its ledger.
func (d *drive) claim(ctx context.Context, run string, above uint64) error {
	c := d.granted
	if d.granted = nil; c == nil {
		var err error
		if c, err = d.r.take(ctx, run, above, d.engine); err != nil {
			return err
		}
	}
	d.epoch, d.claimedRun = c.Epoch, run
	d.claimed = &journal.Claimed{Epoch: c.Epoch, Owner: c.owner}
	d.keep(c.from)
	if c.Head == 0 {
		return nil
	}
	records, err := d.store.Read(ctx, run, 0)
	if err == nil {
		var m *machine.Machine
		if m, err = replay(records); err == nil {
			d.records.add(records)
			d.use(m)
		}
	}
	if err != nil {
		d.release()
		return err
	}
	// Whoever the ledger says had the run last is gone if the process is, or if that
	// very claim was released and left no body running. A claim after it may have left no fact.
	released := c.Previous == nil && c.Epoch == d.m.Epoch()+1 && !d.m.LeftRunning()
	d.claimed.Gone = released || owner.Gone(d.m.Owner())
	return nil
}

// keep renews the lease at a third of its life until the claim is released, and looks
// for a cancellation then.
func (d *drive) keep(from time.Time) {
	ttl := d.r.lease()
	d.leaseEnd.Store(from.Add(ttl).UnixMilli())
	d.keeper.start(ttl/3, func() bool {
		if err := d.renew(ttl); err != nil {
			d.stop(err)
			return false
		}
		d.lookForCancel()
		return true
	})
}

// keeper calls a function again and again, without a goroutine that waits in between.
type keeper struct {
	mu    sync.Mutex
	timer *time.Timer // nil before start and after stop
}

// start calls fn after every pause until it returns false.
func (k *keeper) start(pause time.Duration, fn func() bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(pause, func() {
		more := fn()
		k.mu.Lock()
		defer k.mu.Unlock()
		if more && k.timer != nil {
			k.timer.Reset(pause)
		}
	})
}

// stop reports whether it ended what start began. A call that is under way goes on.
func (k *keeper) stop() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer == nil {
		return false
	}
	k.timer.Stop()
	k.timer = nil
	return true
}

// lookForCancel ends a model call in flight if somebody cancelled the run from another
// process. Everything else that comes in can wait for the answer.
func (d *drive) lookForCancel() {
	if d.calling.Load() == nil {
		return
	}
	entries, err := d.store.Inbox(d.bg, d.claimedRun)
	if err == nil && slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Key == cancelKey }) {
		d.wakeUp()
	}
}

// renew extends the lease. An error ends the driving: the claim is lost, or the lease
// ran out before the store could be reached again.
func (d *drive) renew(ttl time.Duration) error {
	now := time.Now()
	err := d.store.Renew(d.bg, d.claimedRun, d.epoch, ttl)
	switch {
	case err == nil:
		d.extend(now.Add(ttl).UnixMilli())
		return nil
	case errors.Is(err, ErrFenced):
		d.leaseEnd.Store(0)
		return err
	case time.Now().UnixMilli() < d.leaseEnd.Load():
		return nil
	}
	return err
}

// extend moves the end of the lease on. An answer that was long on its way must not move
// it back behind a newer one.
func (d *drive) extend(end int64) {
	for have := d.leaseEnd.Load(); have < end; have = d.leaseEnd.Load() {
		if d.leaseEnd.CompareAndSwap(have, end) {
			return
		}
	}
}

// hold makes sure of the lease before an effect is started.
func (d *drive) hold(now time.Time) error {
	if now.UnixMilli() < d.leaseEnd.Load() {
		return nil
	}
	return d.renew(d.r.lease())
}

func (d *drive) stop(cause error) { d.cancel(cause) }

// due is when somebody should look at the run again: its time or a deadline comes, or what
// went wrong may go right.
func (d *drive) due() time.Time {
	at := time.Time{}
	if d.m.Finished() != nil && len(d.unsaved) == 0 {
		return journal.Never
	}
	switch s := d.standing(); {
	case s == nil:
		return journal.Never
	case len(d.unsaved) > 0:
		return at
	case !s.scheduled().IsZero():
		return s.scheduled()
	case s.queued():
		return at
	case !d.parked.IsZero():
		return d.parked
	case d.m.Status() == machine.Waiting:
		at = wakes(d.m, d.unread)
	case d.m.Failure() != nil && d.park:
	case d.m.Failure() == nil && d.stopped():
		return at
	default:
		return time.Now().Add(backoff(d.records.list(), time.Now()))
	}
	if at.IsZero() {
		return journal.Never
	}
	return at
}

// standing is the state of the run as the drive has it.
func (d *drive) standing() *RunState {
	s := d.state()
	if s != nil {
		s.machine = d.m
	}
	return s
}

// stopped says that somebody wanted the driving to end.
func (d *drive) stopped() bool { return d.caller.Err() != nil || d.gone }

// wakes returns when time alone is a reason to look at a run that waits: an approval expires,
// or a decision that came too early may be taken. Zero is never.
func wakes(m *machine.Machine, inbox int) time.Time {
	at := m.Wakes(inbox)
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at)
}

// release ends the claim, which says that nothing started under it can still act. If
// a body was left running and the ledger does not say so, the claim runs out instead.
func (d *drive) release() {
	if !d.keeper.stop() {
		return
	}
	posted := d.postUnsaved()
	if !d.left || len(d.unsaved) == 0 {
		d.store.Release(d.bg, d.claimedRun, d.epoch, journal.Rest{Due: d.due(), Unread: d.unread})
		if posted {
			d.r.recordLate(d.bg, d.claimedRun)
		}
	}
}
