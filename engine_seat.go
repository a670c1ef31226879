package pawl

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// A seat is a drive that carries out single steps: the engine has the loop, and what is folded
// here are the facts that the engine recorded. It is kept from one step of its run to the next,
// because of what a drive keeps from turn to turn.

// sit makes a drive ready for a step.
func (d *drive) sit(ctx context.Context, st *Step) {
	d.caller, d.bg = ctx, context.WithoutCancel(ctx)
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	d.wakeable, d.gone, d.emit, d.again = nil, false, nil, st.Again
	if st.Show != nil {
		d.emit = func(ev Event) bool {
			st.Show(ev)
			return true
		}
	}
}

// rise ends a seat. What a body that was left running says later is posted to the run's inbox.
func (d *drive) rise() {
	d.cancel(nil)
	close(d.ended)
	close(d.next)
	if d.timer != nil {
		d.timer.Stop()
	}
	d.postLate()
}

// takeSeat makes the drive go on from what the store has of the run, as a resume does.
func (d *drive) takeSeat(opts *RunOptions) error {
	s, _, err := d.r.stored(d.caller, d.claimedRun, nil)
	if err != nil {
		return err
	}
	if d.root.team, err = d.r.teamFor(d.caller, nil, s, s.fold().Finished() != nil); err != nil {
		return err
	}
	d.root.opts = opts
	if err := d.recallContext(d.caller, s); err != nil {
		return err
	}
	if !d.root.team.bare {
		if err := d.root.team.check(opts, d.store, managed(s.fold().Started()), nil); err != nil {
			return err
		}
	}
	if d.root.session, err = d.r.bind(s.fold().Session(), opts.Session, false); err != nil {
		return err
	}
	d.records = s.records
	d.use(s.fold())
	d.hooked = d.root.team.hooked(d.root.opts)
	return d.root.turnTo(d.m.Agent())
}

// recordStep brings the projection up to date. An error leaves the drive unusable: it may be
// ahead of the store.
func (d *drive) recordStep(st *Step) error {
	size := uint64(d.records.size)
	if size < st.After || st.Again || d.alone(st) {
		if err := d.readOn(); err != nil {
			return err
		}
		size = uint64(d.records.size)
	}
	if size < st.After {
		return fmt.Errorf("%w: the store of run %s has %d facts of %d", ErrConflict, st.Run, size, st.After)
	}
	stored := min(int(size-st.After), len(st.Facts))
	if err := sameFacts(d.records.behind(int(st.After)), st.Facts[:stored]); err != nil {
		return fmt.Errorf("%w in run %s behind fact %d", err, st.Run, st.After)
	}
	told := st.Facts[stored:]
	with, err := d.foldStep(st.Facts[stored:])
	if err != nil {
		return err
	}
	consume, err := d.unconsumed(st.Consume)
	if err != nil {
		return err
	}
	if len(consume) > 0 {
		with = append(with, journal.Consume(consume...))
	}
	if len(told)+len(with) > 0 {
		recs := d.encode(told)
		if err := d.append(recs, with); err != nil {
			return err
		}
		d.records.add(recs)
		d.r.bells.ring(st.Run)
	}
	if st.Again {
		told = st.Facts // whoever began the step before may not have come to it
	}
	if d.hooked && len(told) > 0 {
		d.tellHooks(told)
	}
	return nil
}

// alone says that a step may have recorded its outcome before: it is the store's own.
func (d *drive) alone(st *Step) bool {
	f := d.m.Frame(st.Frame)
	if f == nil || st.Effect.Kind != journal.EffectTool {
		return false
	}
	info, ok := f.Call(st.Effect)
	return ok && info.Spec.Class == Transactional
}

// readOn folds what the store has behind what the drive knows.
func (d *drive) readOn() error {
	recs, err := d.store.Read(d.caller, d.claimedRun, uint64(d.records.size))
	if err != nil || len(recs) == 0 {
		return err
	}
	for i := range recs {
		f, err := journal.Decode(recs[i])
		if err == nil {
			_, err = d.foldStep([]journal.Fact{f})
		}
		if err != nil {
			return err
		}
	}
	d.records.add(recs)
	return nil
}

// foldStep folds facts that the engine has recorded, and returns the session batches that they
// confirm in the run's own store.
func (d *drive) foldStep(facts []journal.Fact) (with []journal.Companion, err error) {
	for _, fact := range facts {
		var from int
		frame := d.m.Frame(fact.Frame)
		if frame != nil {
			from = frame.Persisted()
		}
		if err := d.m.Replay(fact); err != nil {
			return nil, err
		}
		switch b := fact.Body.(type) {
		case *journal.Confirmed:
			if ref := frame.Session(); !ref.Own {
				continue
			}
			f, err := d.frame(fact.Frame)
			if err != nil {
				return nil, err
			}
			with = append(with, f.session.(ownSession).Companion(f.batchID(b.N), storedItems(f.m, from, b.Upto)))
		case *journal.Transferred:
			err = d.transferred(fact.Frame, b.Agent)
		case *journal.Prepared:
			if f := d.frames[fact.Frame]; fact.Frame == "" || f != nil {
				d.offeredElsewhere(fact.Frame, b)
			}
		case *journal.Resumed:
			d.renewed = d.renewed || b.Context != ""
		}
		if err != nil {
			return nil, err
		}
	}
	return with, nil
}

// offeredElsewhere forgets what this drive prepared for a turn that was recorded otherwise.
func (d *drive) offeredElsewhere(frame string, b *journal.Prepared) {
	f, err := d.frame(frame)
	if err == nil && f.request.offer != nil && f.request.offer.recorded == b.N && b.Same != b.N {
		f.request = request{}
	}
}

// sameFacts compares what the store has with what the engine says.
func sameFacts(have []journal.Record, want []journal.Fact) error {
	for i, rec := range journal.EncodeAll(want, make([]byte, 16*len(want))) {
		h := have[i]
		if h.Kind != rec.Kind || h.Frame != rec.Frame || h.Time != rec.Time || h.Payload != rec.Payload {
			return fmt.Errorf("%w: the store has %s where the engine has %s", ErrConflict, h.Kind, rec.Kind)
		}
	}
	return nil
}

// unconsumed returns the keys that stand in the inbox.
func (d *drive) unconsumed(keys []string) (open []string, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	entries, err := d.store.Inbox(d.bg, d.claimedRun)
	for _, e := range entries {
		if slices.Contains(keys, e.Key) {
			open = append(open, e.Key)
		}
	}
	return open, err
}

// carryOut carries out the effect of a step.
func (d *drive) carryOut(st *Step) (*StepOutcome, error) {
	out := &StepOutcome{}
	if st.Effect == (journal.EffectID{}) {
		var err error
		out.Inbox, err = d.store.Inbox(d.bg, st.Run)
		return out, err
	}
	f, err := d.frame(st.Frame)
	if err != nil {
		return nil, err
	}
	if done := d.records.behind(int(st.After) + len(st.Facts)); d.alone(st) && len(done) > 0 {
		fact, err := journal.Decode(done[0])
		out.Stored = &fact
		return out, err
	}
	e := f.m.Effect(st.Effect)
	if st.Effect.Kind == journal.EffectTool {
		if err := f.changed(st.Effect); err != nil {
			return nil, err
		}
	}
	f.freshen(e.ID)
	of := effectRef{st.Frame, st.Effect}
	if err := d.carry(f, e); err != nil {
		return nil, err
	}
	if d.moved { // in the store's transaction
		d.moved = false
		fact, err := journal.Decode(d.records.behind(d.records.size - 1)[0])
		out.Stored = &fact
		return out, err
	}
	o := d.outcomeOf()
	switch {
	case o.body == nil && d.ctx.Err() != nil:
		return nil, d.cause()
	case o.body == nil:
		return nil, fmt.Errorf("pawl: %s ended without an outcome", of)
	}
	if most := d.stepper.opts.MaxOutcome; most > 0 {
		rec := journal.Encode(journal.Fact{Body: o.body}, [16]byte{})
		if n := len(rec.Payload); n > most {
			if o.body, err = f.outcomeTooLong(st.Effect, o.body, n, most); err != nil {
				return nil, err
			}
		}
	}
	if d.alone(st) {
		return d.storeOutcome(of, o.body)
	}
	out.Outcome = o.body
	return out, nil
}

// storeOutcome records the outcome of a transactional call that did not commit with what the
// body wrote, so that a commit that is still on its way finds its place taken.
func (d *drive) storeOutcome(of effectRef, b journal.Body) (*StepOutcome, error) {
	fact := journal.Fact{Frame: of.frame, Time: time.Now().UnixMilli(), Body: b}
	recs := d.encode([]journal.Fact{fact})
	if err := d.append(recs, nil); err != nil {
		return nil, err
	}
	if _, err := d.foldStep([]journal.Fact{fact}); err != nil {
		return nil, err
	}
	d.records.add(recs)
	return &StepOutcome{Stored: &fact}, nil
}

// outcomeOf waits for the outcome of the effect that was started. When the step is to stop, the
// effect has a grace.
func (d *drive) outcomeOf() outcome {
	flies := func() bool { return len(d.queue) == 0 && len(d.bodies)+d.beside > 0 }
	for flies() && d.ctx.Err() == nil {
		d.wait()
	}
	if flies() {
		grace := time.NewTimer(d.r.grace())
		defer grace.Stop()
		for flies() {
			select {
			case o := <-d.outcomes:
				d.queue = append(d.queue, o)
			case r := <-d.relayed:
				r.stays <- false
			case <-grace.C:
				d.left = true
				d.giveUp(true)
				d.beside = 0
			}
		}
	}
	var o outcome
	if len(d.queue) > 0 {
		o = d.queue[0]
	}
	if o.raw {
		o = d.ending(o.of, o.body, o.err)
	}
	if s, ok := o.body.(*journal.Settled); ok && s.Running {
		d.left = true
	}
	for _, b := range d.bodies {
		b.cancel()
	}
	clear(d.bodies)
	clear(d.requests)
	d.queue, d.beside = d.queue[:0], 0
	return o
}

// freshen drops what an earlier attempt at the same effect left behind, and finds out how often
// the request of a turn was made since somebody resumed the run.
func (f *frame) freshen(id journal.EffectID) {
	q := &f.request
	switch {
	case id.Kind == journal.EffectPrepare && q.offer != nil && q.offer.recorded >= id.N:
		f.request = request{}
	case id.Kind == journal.EffectModel:
		q.turn, q.attempts = id.N, f.attemptsBefore(id)
	}
}

// attemptsBefore counts the requests of a turn that were made before the run was resumed or
// claimed the last time: whoever did tries anew.
func (f *frame) attemptsBefore(id journal.EffectID) int {
	if id.A == 1 {
		return 0
	}
	since := 0
	records := f.d.records.list()
	for i := len(records) - 1; i >= 0; i-- {
		rec := &records[i]
		switch {
		case rec.Kind == journal.KindResumed, rec.Kind == journal.KindClaimed:
			return id.A - max(since, 1)
		case rec.Frame != f.m.Name():
		case rec.Kind == journal.KindPrepared:
			return 0
		case rec.Kind == journal.KindIntended:
			fact, err := journal.Decode(*rec)
			if b, ok := fact.Body.(*journal.Intended); err == nil && ok && b.ID.Kind == journal.EffectModel && b.ID.N == id.N {
				since++
			}
		}
	}
	return 0
}
