package steps

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// Host is what a Driver needs of an engine.
type Host interface {
	// Now is the time in Unix milliseconds.
	Now() int64
	// Start begins a step; Wait returns its end. A step that must not be begun twice says Once.
	Start(Request)
	// Cancel asks a step to stop. Its end comes all the same.
	Cancel(Ref)
	// Wait waits for something to come in, at most until a time; 0 is for ever.
	Wait(until int64) []Event
	// Open claims the run anew, and returns what the projection has behind so many facts. lost are
	// the workers that were lost, as Failure names them.
	Open(lost []string, after uint64) (*journal.Claimed, []journal.Fact)
	// Close ends the claim.
	Close(epoch uint64)
	// Full says that the engine would rather go on with a new loop.
	Full() bool
}

// Request is a step.
type Request struct {
	// Of is the effect, zero for none: then the step only brings the projection up to date.
	Of    Ref
	Epoch uint64
	Delta Delta
	// Once says that nobody may begin the step twice.
	Once bool
	// NotAfter is when the body of a tool must have ended, in Unix milliseconds, 0 for other effects.
	NotAfter int64
}

// Event is something that came in: one of its members is set.
type Event struct {
	End     *End
	Message *journal.Entry
	Resume  *Resume
}

// End is the end of a step.
type End struct {
	Of Ref
	// Outcome and Stored say how the effect ended, Inbox what the run did not take yet; as a
	// pawl.StepOutcome.
	Outcome journal.Body
	Stored  *journal.Fact
	Inbox   []journal.Entry
	// Failure says that the step has no outcome.
	Failure *Failure
}

// Failure says why a step has no outcome.
type Failure struct {
	Kind FailureKind
	// Stop is why the run is not driven on.
	Stop *Stop
	// Lost names the worker that was lost with the step. The host knows what the name means.
	Lost string
	// Begun says of a step that was stopped that an attempt before may have begun the effect.
	Begun bool
}

// FailureKind is what a failure of a step means.
type FailureKind int

// The kinds of failures.
const (
	// NotBegun: the effect was not begun, and may be started again.
	NotBegun FailureKind = iota
	// Stopped: it was not begun, and somebody has to do something first.
	Stopped
	// Ended: it was cancelled, and ended without an outcome.
	Ended
	// Lost: nobody knows what became of it.
	Lost
)

// Stop says why a run is not driven on before somebody resumes it.
type Stop struct{ Code, Text string }

// Resume asks a run to go on.
type Resume struct {
	Token string
	Fact  journal.Resumed
}

// Driver drives a Loop on a Host. It does nothing by itself: all that comes in comes from Wait.
type Driver struct {
	*Loop
	// Stop is why the run is not driven on, nil if it is; Tokens are those of the resumes.
	Stop   *Stop
	Tokens []string

	host     Host
	epoch    uint64
	flight   []flight
	waits    []machine.Effect
	alone    []Ref // to be started one after the other
	backlog  []Event
	reclaims bool     // what is lost is found out once nothing is in flight
	losses   []string // workers that may still be at what must not be begun twice
	tries    int      // steps in a row that were not begun
	pause    int64    // until when nothing is started, because of them
	due      int64    // the time of the run, until it has come
	recorded bool     // the projection shows that the run rests
}

// flight is a step that was started and has not ended.
type flight struct {
	of        Ref
	delta     Delta
	cancelled bool
}

// maxTokens is how many resumes are remembered.
const maxTokens = 20

// maxPause bounds the pause before a step that was not begun is started again, in milliseconds.
const maxPause = 60_000

// NewDriver returns the driver of a run that was claimed at an epoch.
func NewDriver(l *Loop, h Host, epoch uint64) *Driver {
	d := &Driver{Loop: l, host: h, epoch: epoch}
	if root := l.M.Frame(""); root.Turn() == 0 {
		d.due = root.Started().Due
	}
	return d
}

// Epoch is that of the newest claim.
func (d *Driver) Epoch() uint64 { return d.epoch }

// Run drives the run to its end. It reports false if the loop is to go on from Save on another
// host.
func (d *Driver) Run() (over bool, err error) {
	for {
		now := d.host.Now()
		if len(d.flight)+len(d.alone) == 0 && d.reclaims {
			if err := d.reclaim(nil); err != nil {
				return false, err
			}
		}
		if len(d.flight)+len(d.alone) == 0 && d.Stop == nil && d.host.Full() && d.quiet() {
			return false, nil
		}
		until, started, err := d.advance(now)
		if err != nil {
			return false, err
		}
		if started {
			continue
		}
		if len(d.flight) == 0 && until == rests {
			again, over, err := d.rest()
			if over || err != nil {
				return over, err
			}
			if again {
				continue
			}
			until = d.Wakes()
		}
		until = max(until, 0)
		if err := d.take(d.wait(until)); err != nil {
			return false, err
		}
	}
}

// quiet says that everything that came in was taken.
func (d *Driver) quiet() bool {
	if len(d.backlog) == 0 {
		d.backlog = d.host.Wait(d.host.Now())
	}
	return len(d.backlog) == 0
}

// rests, in place of a time, says that the run goes on only if something comes in.
const rests = -1

// advance starts what is due. It returns until when to wait for an end or a message.
func (d *Driver) advance(now int64) (until int64, started bool, err error) {
	if d.Stop != nil {
		return rests, false, nil
	}
	switch {
	case d.pause > now:
		return d.pause, false, nil
	case d.due > now && len(d.Delta().Consume) > 0: // whoever sent input waits until it is recorded
		d.Flush()
		return 0, true, d.record()
	case d.due > now:
		return d.due, false, nil
	}
	d.fire(now)
	effects, status := d.Next(now)
	if len(effects) > 0 {
		d.recorded = false
	}
	delta := d.Delta()
	for _, e := range effects {
		switch of := (Ref{e.Frame, e.ID}); {
		case e.ID.Kind == journal.EffectWait:
			d.waits = append(d.waits, e)
		case d.Alone(of):
			d.alone = append(d.alone, of)
		default:
			d.start(of, delta)
		}
	}
	if len(d.alone) > 0 {
		of := d.alone[0]
		d.alone = d.alone[1:]
		return 0, true, d.carryAlone(of)
	}
	if status != machine.Running {
		return rests, false, nil
	}
	for _, w := range d.waits {
		if until == 0 || w.Until < until {
			until = w.Until
		}
	}
	if until == 0 && len(d.flight) == 0 {
		until = rests // nothing follows but by a message
	}
	return until, false, nil
}

func (d *Driver) start(of Ref, delta Delta) {
	d.flight = append(d.flight, flight{of: of, delta: delta})
	r := Request{Of: of, Epoch: d.epoch, Delta: delta}
	if of != (Ref{}) {
		r.Once, r.NotAfter = d.Once(of), d.M.Frame(of.Frame).Effect(of.ID).NotAfter
	}
	d.host.Start(r)
}

// fire ends the waits whose time has come.
func (d *Driver) fire(now int64) {
	d.waits = slices.DeleteFunc(d.waits, func(w machine.Effect) bool {
		if w.Until > now {
			return false
		}
		d.End(Ref{w.Frame, w.ID}, &journal.Fired{ID: w.ID}, now) // of any wait it is accepted
		return true
	})
}

// carryAlone carries out an effect while nothing else is taken. If it is lost, its outcome may be
// in the projection, where nothing may come before it: what became of it is found out at once, and
// with it of all that is in flight, which a new claim would keep from recording anything.
func (d *Driver) carryAlone(of Ref) error {
	if d.M.Frame(of.Frame).Closed() {
		return d.ended(&End{Of: of, Failure: &Failure{Kind: NotBegun}}, d.host.Now())
	}
	d.start(of, d.Delta())
	e := d.await(of)
	if err := d.take([]Event{{End: e}}); err != nil || e.Failure == nil || !d.lost(e) {
		return err
	}
	var others []Event
	for _, f := range d.flight {
		others = append(others, Event{End: d.await(f.of)})
	}
	return d.reclaim(others)
}

// record brings the projection up to date.
func (d *Driver) record() error {
	d.start(Ref{}, d.Delta())
	return d.take([]Event{{End: d.await(Ref{})}})
}

// await waits for the end of a step. What else comes in is taken later.
func (d *Driver) await(of Ref) *End {
	for {
		i := slices.IndexFunc(d.backlog, func(ev Event) bool { return ev.End != nil && ev.End.Of == of })
		if i >= 0 {
			end := d.backlog[i].End
			d.backlog = slices.Delete(d.backlog, i, i+1)
			return end
		}
		d.backlog = append(d.backlog, d.host.Wait(0)...)
	}
}

func (d *Driver) wait(until int64) []Event {
	if len(d.backlog) > 0 {
		events := d.backlog
		d.backlog = nil
		return events
	}
	return d.host.Wait(until)
}

// take takes what came in.
func (d *Driver) take(events []Event) error {
	now := d.host.Now()
	for _, ev := range events {
		switch {
		case ev.End != nil:
			if err := d.landed(ev.End, now); err != nil {
				return err
			}
		case ev.Message != nil:
			d.Take(*ev.Message, now) // whoever sent what is refused was told, or the run has moved on
			d.recorded = false
			if d.M.Cancelled() {
				d.Stop, d.pause, d.due = nil, 0, 0 // to its end a run is driven without agents too, and at once
			}
		case ev.Resume != nil:
			d.resume(ev.Resume, now)
		}
	}
	d.cancelClosed()
	return nil
}

func (d *Driver) resume(r *Resume, now int64) {
	d.Tokens = append(d.Tokens[max(0, len(d.Tokens)-maxTokens):], r.Token)
	d.Stop, d.pause, d.due, d.tries, d.recorded = nil, 0, 0, 0, false
	if d.M.Failure() != nil || r.Fact.MaxTurns != 0 || r.Fact.Context != "" {
		fact := r.Fact
		d.Step(&fact, now) // refused once the run has ended
	}
}

// landed takes the end of a step.
func (d *Driver) landed(e *End, now int64) error {
	i := slices.IndexFunc(d.flight, func(f flight) bool { return f.of == e.Of })
	if i < 0 {
		return nil
	}
	delta := d.flight[i].delta
	d.flight = slices.Delete(d.flight, i, i+1)
	if e.Failure == nil {
		d.Stored(delta)
		d.tries = 0
	}
	return d.ended(e, now)
}

func (d *Driver) ended(e *End, now int64) error {
	switch {
	case e.Of == (Ref{}):
		return d.failed(e.Failure, now)
	case e.Failure == nil && e.Stored != nil:
		return d.EndStored(*e.Stored)
	case e.Failure == nil:
		return d.Loop.End(e.Of, e.Outcome, now)
	case d.lost(e):
		d.reclaims = true
		if d.Once(e.Of) {
			d.losses = append(d.losses, e.Failure.Lost)
		}
		if e.Failure.Kind == Lost {
			return nil
		}
		return d.failed(e.Failure, now)
	case e.Failure.Kind == Ended:
		return d.Loop.End(e.Of, nil, now)
	}
	if err := d.failed(e.Failure, now); err != nil {
		return err
	}
	if e.Of.ID.Kind == journal.EffectTool {
		return d.Loop.End(e.Of, &journal.Settled{ID: e.Of.ID, Outcome: journal.NotExecuted}, now)
	}
	d.M.Frame(e.Of.Frame).Withdrawn(e.Of.ID)
	return nil
}

// lost says that an effect may have happened that cannot simply be begun again: it must not happen
// twice, or it is a call, of which the ledger says nothing that is not known.
func (d *Driver) lost(e *End) bool {
	call := e.Of.ID.Kind == journal.EffectTool
	return e.Failure.Kind == Lost && (call || d.Once(e.Of)) || call && e.Failure.Begun
}

// failed sees to a step that was not begun: it is started again after a pause, or when somebody
// has resumed the run.
func (d *Driver) failed(f *Failure, now int64) error {
	switch {
	case f == nil:
	case f.Kind == Stopped && !d.M.Cancelled():
		if d.Stop == nil {
			d.Stop = f.Stop
		}
	default:
		d.pause = now + min(1000<<min(d.tries, 10), int64(maxPause))
		d.tries++
	}
	return nil
}

// reclaim finds out, under a new claim, what became of what is lost. Nothing is in flight, but the
// others have ended besides, before the claim. What was not started yet is handed out again.
func (d *Driver) reclaim(others []Event) error {
	c, stored := d.host.Open(d.losses, d.M.Facts())
	d.losses, d.reclaims, d.epoch, d.recorded, d.waits, d.alone = nil, false, c.Epoch, false, nil, nil
	if len(stored) > 0 {
		d.Stored(d.Delta())
	}
	for _, f := range stored {
		if err := d.EndStored(f); err != nil {
			return err
		}
	}
	if err := d.take(others); err != nil {
		return err
	}
	return d.Step(c, d.host.Now())
}

// rest shows that the run rests. It reports whether there is more to do after all, and whether
// the run is over.
func (d *Driver) rest() (again, over bool, err error) {
	delta := d.Delta()
	if d.recorded && (d.Stop != nil || len(delta.Facts)+len(delta.Consume) == 0) {
		return false, false, nil
	}
	d.start(Ref{}, delta)
	e := d.await(Ref{})
	if err := d.take([]Event{{End: e}}); err != nil {
		return false, false, err
	}
	d.recorded = true
	if e.Failure != nil {
		d.recorded = d.Stop != nil
		return d.Stop == nil, false, nil
	}
	now := d.host.Now()
	for _, m := range e.Inbox {
		stepped, err := d.Take(m, now)
		again = again || stepped || err != nil && len(d.Delta().Consume) > 0
	}
	d.cancelClosed()
	if !again && d.M.Finished() != nil {
		d.host.Close(d.epoch)
		return false, true, nil
	}
	return again, false, nil
}

// cancelClosed cancels what is in flight in frames that start nothing new.
func (d *Driver) cancelClosed() {
	for i := range d.flight {
		f := &d.flight[i]
		if f.of != (Ref{}) && !f.cancelled && d.M.Frame(f.of.Frame).Closed() {
			f.cancelled = true
			d.host.Cancel(f.of)
		}
	}
}
