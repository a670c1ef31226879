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

func (d *drive) lease() time.Duration {
	if d.r.Lease > 0 {
		return max(d.r.Lease, minLease)
	}
	return DefaultLease
}

// claim takes the run, under an epoch larger than above, and folds its ledger. A live
// claim whose owner is known to be gone is taken over.
func (d *drive) claim(ctx context.Context, run string, above uint64) error {
	req := journal.ClaimRequest{Owner: owner.Self(), TTL: d.lease(), Above: above}
	from := time.Now()
	c, err := d.store.Claim(ctx, run, req)
	var held *journal.ClaimedError
	if errors.As(err, &held) && owner.Gone(held.Holder.Owner) {
		req.Takeover = held.Holder.Epoch
		from = time.Now()
		c, err = d.store.Claim(ctx, run, req)
	}
	if err != nil {
		if errors.As(err, &held) {
			err = because(ErrClaimed, err)
		}
		return err
	}
	d.epoch, d.claimedRun = c.Epoch, run
	d.claimed = &journal.Claimed{Epoch: c.Epoch, Owner: req.Owner}
	d.keep(from)
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
	ttl := d.lease()
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
	return d.renew(d.lease())
}

func (d *drive) stop(cause error) { d.cancel(cause) }

// due is when somebody should look at the run again: what it waits for may come in, or a
// deadline may pass.
func (d *drive) due() time.Time {
	if len(d.unsaved) > 0 || d.m.Status() != machine.Waiting {
		return time.Time{}
	}
	if at := wakes(d.m, 0); !at.IsZero() {
		return at
	}
	return journal.Never
}

// release ends the claim, which says that nothing started under it can still act. If
// a body was left running and the ledger does not say so, the claim runs out instead.
func (d *drive) release() {
	if !d.keeper.stop() {
		return
	}
	posted := d.postUnsaved()
	if !d.left || len(d.unsaved) == 0 {
		d.store.Release(d.bg, d.claimedRun, d.epoch, d.due())
		if posted {
			d.r.recordLate(d.bg, d.claimedRun)
		}
	}
}
