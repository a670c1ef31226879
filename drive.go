package pawl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// drive is one process's hold on a run: it asks the machine what comes next, records
// it and does it. All of it but the tools' bodies runs on the caller's goroutine.
type drive struct {
	r       *Runner
	store   journal.Driver
	agent   *Agent
	opts    *RunOptions
	session session.Session
	resumed bool
	staged  []Decision // submitted, for the state of an error

	m          *machine.Machine
	claimed    *journal.Claimed
	claimedRun string
	epoch      uint64
	records    ledger
	pending    []journal.Fact // handed out by the machine, not recorded
	salts      [][16]byte     // of the facts encoded last
	consume    []string

	caller context.Context
	ctx    context.Context // ends when the drive stops
	cancel context.CancelCauseFunc
	bg     context.Context // for the store: what happened is recorded also after ctx
	emit   func(Event) bool
	inEmit bool  // the reader's code runs
	gone   bool  // the reader left
	err    error // the first error, for the caller
	shown  bool  // output of the current attempt was visible
	ended  chan struct{}

	outcomes chan outcome
	next     chan *body // to a goroutine that has run one
	queue    []outcome
	bodies   map[journal.EffectID]*body
	waits    int
	alarm    chan struct{}
	timer    *time.Timer // sends the alarm
	alarmAt  time.Time   // zero if it is not set
	drained  time.Time
	leaseEnd atomic.Int64
	unkeep   chan struct{}
	wake     chan struct{}
	calling  atomic.Pointer[context.CancelFunc] // cancels the model call in flight
	unsaved  []journal.Record
	handed   []machine.Effect // not started yet
	left     bool             // a body was left running

	request request
}

// outcome is how an effect ended.
type outcome struct {
	id   journal.EffectID
	body journal.Body // the fact; nil if the effect ended without one
	err  error        // the error behind a failed fact
}

func (r *Runner) newDrive(ctx context.Context, emit func(Event) bool) *drive {
	d := &drive{r: r, store: r.store(), emit: emit, caller: ctx, bg: context.WithoutCancel(ctx), m: machine.New(),
		outcomes: make(chan outcome, 16), next: make(chan *body), bodies: make(map[journal.EffectID]*body), wake: make(chan struct{}, 1), alarm: make(chan struct{}, 1),
		ended: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	return d
}

func (d *drive) state() *RunState {
	if d.records.size == 0 {
		return nil
	}
	s := newState(d.records.list(), d.unsaved)
	s.staged = d.staged
	return s
}

// fail makes the error of a run: it carries the state to resume from.
func (d *drive) fail(effect string, err error) error {
	var re *RunError
	if errors.As(err, &re) {
		return err
	}
	return &RunError{Run: d.m.Run(), Effect: effect, State: d.state(), Err: err}
}

// step steps a fact the driver makes itself.
func (d *drive) step(b journal.Body) {
	d.m.Step(journal.Fact{Time: time.Now().UnixMilli(), Body: b})
}

// run drives until the run ends, waits or fails, or the driving is stopped. If the
// reader's loop panics, the driving stops as if the reader had left.
func (d *drive) run() (res *Result, err error) {
	if d.m.Finished() != nil {
		d.hello()
		return d.result()
	}
	defer close(d.ended)
	defer d.release()
	defer func() {
		if d.timer != nil {
			d.timer.Stop()
		}
	}()
	d.r.active.Store(d.m.Run(), d)
	defer d.r.active.CompareAndDelete(d.m.Run(), d)
	returned := false
	defer func() {
		if !returned {
			d.gone = true
			d.halt(context.Canceled)
		}
	}()
	d.hello()
	res, err = d.loop()
	returned = true
	return res, err
}

// hello shows what every stream begins with.
func (d *drive) hello() {
	d.send(&RunStarted{Run: d.m.Run(), Resumed: d.resumed})
	d.send(&AgentUpdated{Agent: d.agent})
}

func (d *drive) loop() (*Result, error) {
	for {
		now := time.Now()
		if _, err := d.drain(now, d.drained.IsZero()); err != nil {
			return nil, d.halt(err)
		}
		if err := d.unchanged(); err != nil {
			return nil, d.halt(err)
		}
		rd := d.m.Ready(now.UnixMilli())
		d.pending = append(d.pending, rd.Facts...)
		d.handed = rd.Effects
		if rd.MustSync {
			if err := d.commit(rd.Batch); err != nil {
				return nil, d.halt(err)
			}
		}
		if rd.Status != machine.Running {
			again, err := d.more(rd.Status)
			if err != nil {
				return nil, d.halt(err)
			}
			if !again {
				return d.end(rd.Status)
			}
			continue
		}
		if d.gone || d.ctx.Err() != nil {
			return nil, d.halt(d.cause())
		}
		if err := d.hold(); err != nil {
			return nil, d.halt(err)
		}
		if len(rd.Facts)+len(rd.Effects)+len(d.bodies)+d.waits == 0 {
			return nil, d.halt(errNothing)
		}
		for len(d.handed) > 0 {
			e := d.handed[0]
			d.handed = d.handed[1:]
			d.start(e)
		}
		if err := d.collect(); err != nil {
			return nil, d.halt(err)
		}
	}
}

// errNothing ends a drive that would turn for ever. A claim hands out again what has no
// outcome.
var errNothing = errors.New("pawl: nothing follows from the ledger; resume the run")

// cause says why the drive stops. Whoever cancelled the caller's context finds its
// error in it.
func (d *drive) cause() error {
	cause := context.Cause(d.ctx)
	if err := d.caller.Err(); err != nil && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return cause
}

// more reports whether a run that stopped goes on after all, because of something
// that came in meanwhile.
func (d *drive) more(status machine.Status) (bool, error) {
	if status != machine.Waiting && status != machine.Failed {
		return false, nil
	}
	return d.drain(time.Now(), true)
}

func (d *drive) end(status machine.Status) (*Result, error) {
	if status == machine.Failed {
		return nil, d.failure()
	}
	return d.result()
}

// unchanged refuses to go on while a call that may start has a tool that is gone or
// another one than when the call was planned.
func (d *drive) unchanged() error {
	for id := range d.m.Startable() {
		if err := d.changed(id); err != nil {
			return err
		}
	}
	return nil
}

// result is what the drive has come to. A stored result of an earlier drive is
// the same.
func (d *drive) result() (*Result, error) {
	s := newState(d.records.list(), nil)
	s.machine = d.m
	res := newResult(d.m, s)
	res.output = d.agent.Output
	if d.m.Cancelled() {
		return res, &RunError{Run: d.m.Run(), State: s, Err: ErrCancelled}
	}
	return res, nil
}

// failure is the first error of the drive, or what the ledger says of it.
func (d *drive) failure() error {
	f := d.m.Failure()
	err := d.err
	switch {
	case f.Code == machine.CodeMaxTurns:
		err = &MaxTurnsError{MaxTurns: d.m.MaxTurns()}
	case err == nil:
		err = &FailedError{Code: f.Code, Text: f.Error}
	}
	return d.fail(effectName(f.ID), err)
}

// effectName names an effect for people.
func effectName(id journal.EffectID) string {
	names := map[journal.EffectKind]string{
		journal.EffectLoad: "reading the session", journal.EffectPrepare: "preparing turn %d", journal.EffectModel: "model call of turn %d, attempt %d",
		journal.EffectPlan: "reading response %d", journal.EffectJudge: "tool-use decision on response %d", journal.EffectSession: "session batch %d, attempt %d",
		journal.EffectReconcile: "reading back %d", journal.EffectWait: "wait %d", journal.EffectTool: "call %d",
	}
	switch id.Kind {
	case journal.EffectLoad:
		return names[id.Kind]
	case journal.EffectModel, journal.EffectSession:
		return fmt.Sprintf(names[id.Kind], id.N, id.A)
	}
	return fmt.Sprintf(names[id.Kind], id.N)
}

// commit records everything handed out, with the session batch and the inbox
// entries it consumed, and then shows it.
func (d *drive) commit(batch *machine.Range) error {
	if len(d.pending) == 0 {
		return nil
	}
	recs := d.encode(d.pending)
	var with []journal.Companion
	if batch != nil {
		own := d.session.(ownSession)
		with = append(with, own.Companion(d.batchID(batch.N), itemsOf(d.m, batch.From, batch.Upto)))
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
	d.pending, d.consume, d.staged = facts[:0], nil, nil
	d.show(facts)
	return nil
}

func (d *drive) batchID(n int) string { return fmt.Sprintf("%s/%d", d.m.Run(), n) }

// encode draws the salts once: a repeated append writes the same bytes.
func (d *drive) encode(facts []journal.Fact) []journal.Record {
	d.salts = slices.Grow(d.salts[:0], len(facts))[:len(facts)]
	for i := range d.salts {
		rand.Read(d.salts[i][:])
	}
	return journal.EncodeAll(facts, d.salts)
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
	if !must && now.Sub(d.drained) < inboxPause {
		return false, nil
	}
	d.drained = now
	if d.records.size == 0 {
		return false, nil
	}
	entries, err := d.store.Inbox(d.bg, d.m.Run())
	stepped := false
	for _, e := range entries {
		if slices.Contains(d.consume, e.Key) {
			continue
		}
		f, err := journal.Decode(e.Body)
		if err != nil {
			return false, err
		}
		f.Time = now.UnixMilli()
		switch err := d.m.Check(f); {
		case err == nil:
			d.m.Step(f)
			stepped = true
			if _, ok := f.Body.(*journal.Cancelled); ok {
				d.cancelBodies()
			}
		case errors.Is(err, machine.ErrInFlight):
			continue
		}
		d.consume = append(d.consume, e.Key)
	}
	return stepped, err
}

// send shows an event unless the reader left.
func (d *drive) send(ev Event) {
	if d.emit == nil || d.gone {
		return
	}
	d.inEmit = true
	stay := d.emit(ev)
	d.inEmit = false
	if !stay {
		d.gone = true
		d.stop(context.Canceled)
	}
}

// wakeUp makes the driver look into the inbox now. It is called from any goroutine.
func (d *drive) wakeUp() {
	if cancel := d.calling.Load(); cancel != nil {
		(*cancel)()
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// input returns the items of a range as a request input, growing the one of the last
// request where it can.
func (d *drive) input(from, upto int) model.Input {
	q := &d.request
	if from != q.from || q.upto > upto {
		q.input, q.from, q.upto = model.Input{}, from, from
	}
	q.input, q.upto = q.input.Append(itemsOf(d.m, q.upto, upto)...), upto
	return q.input
}
