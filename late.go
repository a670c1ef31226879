package pawl

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// What a body says after its driver has gone on without it, or has ended, is evidence: it
// is posted to the run's inbox, where whoever drives the run finds it, and recorded at once
// if nobody does. It settles the call if that is still open [M8.12] [M8.13]. What a person
// found out about a call that is settled as unknown takes the same way [M9.20].

// lateKey is the beginning of the inbox keys of late results and of findings.
const lateKey = "late/"

// lateTimeout bounds the post of a late result.
const lateTimeout = 30 * time.Second

// latePauses are the times between the looks at a run that somebody drives: its driver
// may end without having looked into the inbox again.
var latePauses = [...]time.Duration{250 * time.Millisecond, time.Second, 3 * time.Second}

// postLate posts the outcomes that a drive which has ended did not take.
func (d *drive) postLate() {
	select {
	case <-d.ended:
	default:
		return
	}
	for {
		select {
		case o := <-d.outcomes:
			if s, ok := o.body.(*journal.Settled); ok && o.of.id.Kind == journal.EffectTool {
				d.record(o.of.frame, s)
			}
		default:
			return
		}
	}
}

// record posts an outcome and sees to it that it is recorded. Whatever goes wrong, the call
// is as open as it was.
func (d *drive) record(frame string, s *journal.Settled) {
	if !d.post(frame, s) {
		return
	}
	if d.stepper != nil && d.stepper.opts.Late != nil {
		d.stepper.opts.Late(d.claimedRun)
	}
	for _, pause := range latePauses {
		if err := d.r.recordLate(d.bg, d.claimedRun); !errors.Is(err, ErrClaimed) {
			return
		}
		time.Sleep(pause)
	}
}

// post puts an outcome in the run's inbox, if it says what happened, and reports whether it
// stands there.
func (d *drive) post(frame string, s *journal.Settled) bool {
	if !machine.SaysWhat(s) {
		return false
	}
	ctx, cancel := context.WithTimeout(d.bg, lateTimeout)
	defer cancel()
	f := journal.Fact{Frame: frame, Time: time.Now().UnixMilli(), Body: s}
	key := lateKey + s.ID.String()
	if frame != "" {
		key = lateKey + frame + "/" + s.ID.String()
	}
	err := d.store.Post(ctx, d.claimedRun, journal.Entry{Key: key, Body: journal.Encode(f, newSalt())})
	var posted *journal.EntryError // another process did, at another time
	return err == nil || errors.As(err, &posted)
}

// postUnsaved posts the outcomes of bodies that the run store did not take, in case it can
// be reached again, and reports whether there are any.
func (d *drive) postUnsaved() (posted bool) {
	for _, rec := range d.unsaved {
		f, err := journal.Decode(rec)
		if s, ok := f.Body.(*journal.Settled); ok && err == nil {
			posted = d.post(f.Frame, s) || posted
		}
	}
	return posted
}

// recordLate records what stands in the inbox of a run that nobody drives, if a late
// result, a finding or added input is there: it takes the run for a moment, and nothing is started.
func (r *Runner) recordLate(ctx context.Context, run string) error {
	entries, err := r.store().Inbox(ctx, run)
	if err != nil || !slices.ContainsFunc(entries, func(e journal.Entry) bool {
		return strings.HasPrefix(e.Key, lateKey) || strings.HasPrefix(e.Key, inputPrefix)
	}) {
		return err
	}
	d := r.newDrive(ctx, nil)
	defer d.cancel(nil)
	if err := d.claim(ctx, run, 0); err != nil {
		return err
	}
	defer func() {
		d.unsaved = nil // it stands in the inbox
		d.release()
	}()
	return d.takeIn()
}

// takeIn records what stands in the inbox of a claimed run, and starts nothing.
func (d *drive) takeIn() error {
	d.step(d.claimed)
	if _, err := d.drain(time.Now(), true); err != nil {
		return err
	}
	d.pending = append(d.pending, d.m.Flush().Facts...)
	return d.commit(nil)
}
