package pawl

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// commit records everything handed out, with the session batches and the inbox
// entries it consumed, and then shows it.
func (d *drive) commit(batches []machine.Range) error {
	if len(d.pending) == 0 {
		return nil
	}
	recs := d.encode(d.pending)
	var with []journal.Companion
	for _, batch := range batches {
		f, err := d.frame(batch.Frame)
		if err != nil {
			return err
		}
		own := f.session.(ownSession)
		with = append(with, own.Companion(f.batchID(batch.N), storedItems(f.m, batch.From, batch.Upto)))
	}
	if len(d.consume) > 0 {
		with = append(with, journal.Consume(d.consume...))
	}
	if err := d.append(recs, with); err != nil {
		d.unsaved, d.pending = recs, nil
		return err
	}
	d.records.add(recs)
	d.m.Advance(uint64(d.records.size))
	facts := d.pending
	d.pending, d.consume, d.staged, d.input = facts[:0], nil, nil, nil
	d.show(facts)
	d.r.bells.ring(d.m.Run())
	return nil
}

// batchID names a batch to a session: no other batch of any run has the id.
func (f *frame) batchID(n int) string {
	id := fmt.Sprintf("%s/%d", f.d.m.Run(), n)
	if frame := f.m.Name(); frame != "" {
		id += "@" + frame
	}
	return id
}

// saltsDrawn is how many salts are drawn together: asking for a few costs as much as for many.
const saltsDrawn = 32

// encode draws the salts once: a repeated append writes the same bytes.
func (d *drive) encode(facts []journal.Fact) []journal.Record {
	const size = len(journal.Record{}.Salt)
	need := size * len(facts)
	if len(d.salts) < need {
		d.salts = make([]byte, max(need, size*saltsDrawn))
		rand.Read(d.salts)
	}
	recs := journal.EncodeAll(facts, d.salts[:need])
	d.salts = d.salts[need:]
	return recs
}

// appendTries and appendPause say how long the driver insists before it stops.
const appendTries = 3

const appendPause = 20 * time.Millisecond

// append records facts. An error does not say whether they are stored: the ledger
// is read to find out, and the append repeated unchanged if they are not. What stays
// undecided stops the driver; it never goes on in memory.
func (d *drive) append(recs []journal.Record, with []journal.Companion) error {
	after := uint64(d.records.size)
	var first error
	for try := range appendTries {
		if try > 0 {
			time.Sleep(appendPause << try)
		}
		err := d.store.Append(d.bg, d.m.Run(), d.epoch, after, recs, with...)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
		if errors.Is(err, ErrFenced) {
			first = err
			break
		}
		if busy, ok := errors.AsType[*journal.BusyError](err); ok {
			return busy
		}
		have, err := d.store.Read(d.bg, d.m.Run(), after)
		if err == nil && len(have) > 0 {
			if sameRecords(have, recs) {
				return nil
			}
			first = ErrFenced
			break
		}
	}
	return &JournalError{Unrecorded: len(recs), Err: first}
}

func sameRecords(have, recs []journal.Record) bool {
	return len(have) >= len(recs) && slices.EqualFunc(have[:len(recs)], recs, func(a, b journal.Record) bool { return a.Hash == b.Hash })
}

// inboxPause is how long the driver goes on without looking into the inbox: reading
// it costs as much as a tenth of a durable turn.
const inboxPause = 200 * time.Millisecond

// drain steps what stands in the run's inbox, at most every inboxPause unless it
// must, and reports whether there was anything. What the run refuses by now is
// consumed too: whoever posted it was told, or the run has moved on.
func (d *drive) drain(now time.Time, must bool) (bool, error) {
	select {
	case <-d.wake:
		must = true
	default:
	}
	if d.nudged.Load() {
		d.nudged.Store(false)
		must = true
	}
	if !must && now.Sub(d.drained) < inboxPause {
		return false, nil
	}
	d.drained = now
	if d.records.size == 0 {
		return false, nil
	}
	entries, err := d.store.Inbox(d.bg, d.m.Run())
	if err != nil && len(d.bodies)+d.beside > 0 && now.UnixMilli() < d.leaseEnd.Load() {
		d.nudged.Store(must)
		return false, nil // as when the lease cannot be renewed: what is at work goes on until that ends
	}
	stepped, terr := d.take(entries, now)
	d.unread = 0
	for _, e := range entries {
		if !slices.Contains(d.consume, e.Key) {
			d.unread++
		}
	}
	return stepped, cmp.Or(terr, err)
}

// takeInput steps the input that a hook has added, before what follows is started: it is not
// to be too late because of an effect that the hook could not know of.
func (d *drive) takeInput(now time.Time) error {
	if !d.hooked || !d.nudged.Load() {
		return nil
	}
	entries, err := d.store.Inbox(d.bg, d.m.Run())
	if err != nil {
		return err
	}
	_, err = d.take(slices.DeleteFunc(entries, func(e journal.Entry) bool { return !strings.HasPrefix(e.Key, inputPrefix) }), now)
	return err
}

// take steps entries of the inbox, and reports whether the run took one.
func (d *drive) take(entries []journal.Entry, now time.Time) (stepped bool, err error) {
	for _, e := range entries {
		if slices.Contains(d.consume, e.Key) {
			continue
		}
		f, err := journal.Decode(e.Body)
		if err != nil {
			return stepped, err
		}
		f.Time = now.UnixMilli()
		switch took, err := d.m.Take(f); {
		case err == nil:
			stepped = stepped || took
			if _, ok := f.Body.(*journal.Cancelled); ok {
				d.cancelClosed()
			}
		case errors.Is(err, machine.ErrInFlight):
			continue
		default:
			if err := d.lostInput(e.Key); err != nil {
				d.consume = append(d.consume, e.Key)
				return stepped, err
			}
		}
		d.consume = append(d.consume, e.Key)
	}
	return stepped, nil
}
