package journal

import (
	"fmt"
	"slices"
	"time"
)

// Import puts in a run that came from elsewhere, for example in a document. It is
// refused with *ConflictError if the run is here and its ledger is not a beginning
// of recs, and with *ClaimedError if somebody is driving it; if recs are a beginning
// of the ledger here, there is nothing to do. Claims made from then on have epochs
// above those recorded. Records are verified: the error wraps ErrCorrupt,
// or ErrNewerJournal.
func (m *Memory) Import(run string, recs []Record) error {
	for _, rec := range recs {
		if err := rec.Verify(); err != nil {
			return err
		}
	}
	about, err := readAbout(recs)
	if err != nil {
		return err
	}
	r := m.lockOrCreate(run)
	defer r.mu.Unlock()
	known := int(r.head)
	common := min(known, len(recs))
	if !slices.Equal(recs[:common], r.after(0)[:common]) {
		return &ConflictError{Run: run, After: uint64(len(recs)), Head: uint64(known)}
	}
	if len(recs) == common {
		return nil
	}
	if h := r.live(time.Now()); h != nil {
		return &ClaimedError{Run: run, Holder: *h}
	}
	// The gap says that the last claim was not released here: who made it elsewhere may
	// still be at it.
	r.epoch = max(r.epoch, about.epoch+1)
	m.bind(r, r.standing().with(about), false)
	r.index(about.started)
	m.store(r, recs[common:])
	return nil
}

// about is what a store needs to know of the facts it is given.
type about struct {
	rebound bool // bound is the run's from here on
	bound   Binding
	epoch   uint64 // the largest that a claimed fact names
	ended   bool
	started *Started
}

func readAbout(recs []Record) (about, error) {
	var a about
	for i := range recs {
		rec := &recs[i]
		if len(rec.Payload) > MaxPayload {
			return about{}, fmt.Errorf("pawl: fact %q has %d bytes, the limit is %d", rec.Kind, len(rec.Payload), MaxPayload)
		}
		if rec.Frame != "" {
			continue
		}
		switch rec.Kind {
		case KindFinished:
			a.ended = true
		case KindStarted, KindForked, KindClaimed:
			f, err := Decode(*rec)
			if err != nil {
				return about{}, err
			}
			a.add(f.Body)
		}
	}
	return a, nil
}

func (a *about) add(b Body) {
	if s, ok := b.(*Started); ok {
		a.started = s
	}
	if to, ok := BindingOf(b); ok {
		a.rebound, a.bound = true, to
	}
	if c, ok := b.(*Claimed); ok {
		a.epoch = max(a.epoch, c.Epoch)
	}
}
