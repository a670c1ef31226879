package pawl

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// start starts an effect, unless something keeps the drive from it. An error stops the driving.
func (d *drive) start(e machine.Effect) error {
	f, err := d.frame(e.Frame)
	if err != nil {
		return err
	}
	if d.hooked && e.ID.Kind == journal.EffectModel && f.tellsStart(e.ID.N) {
		if err := d.commit(nil); err != nil {
			return err
		}
	}
	switch {
	case d.stopsBefore(e):
		return ErrStopped
	case e.ID.Kind == journal.EffectPrepare && e.Frame == "" && len(d.m.Pending()) > 0: // a hook added it
		f.m.Withdrawn(e.ID)
		return nil
	}
	return d.carry(f, e)
}

// carry carries out an effect. Tools, questions about calls and waits go on beside the driver;
// everything else has ended when start returns. An error stops the driving.
func (d *drive) carry(f *frame, e machine.Effect) error {
	of := effectRef{e.Frame, e.ID}
	if needsTools(e) {
		if err := f.relist(); err != nil {
			return err
		}
	}
	switch {
	case e.ID.Kind == journal.EffectTool:
		return f.startTool(e)
	case e.ID.Kind == journal.EffectWait:
		d.beside++
		if d.waits == nil {
			d.waits = make(map[effectRef]time.Time)
		}
		d.waits[of] = time.UnixMilli(e.Until)
		time.AfterFunc(time.Until(d.waits[of]), func() { d.deliver(outcome{of: of, body: &journal.Fired{ID: of.id}}) })
		return nil
	case isReconcileOfCall(e.ID):
		return f.startRecover(e)
	case e.ID.Kind == journal.EffectModel && (e.Frame != "" || len(d.requests) > 0):
		f.startModel(e)
		return nil
	case isGuard(e.ID):
		f.startGuards(e)
		return nil
	case e.ID.Kind == journal.EffectTransfer:
		if err := f.beforeTransfer(e.ID); err != nil {
			return err
		}
	}
	body, err := f.inline(e)
	d.queue = append(d.queue, d.ending(of, body, err))
	return nil
}

// ending is the outcome of an effect that cannot be left open.
func (d *drive) ending(of effectRef, body journal.Body, err error) outcome {
	o := outcome{of: of, body: body, err: err}
	switch {
	case err == nil:
	case d.ctx.Err() != nil || d.gone || errors.Is(err, errWoken):
		// The driver stops, or the run is cancelled: that is no failure of the
		// effect's. What became of it is found out when the run goes on.
		o.body, o.err = nil, nil
	case body == nil:
		// A request whose call panicked may have been processed.
		o.body = &journal.Failed{ID: of.id, Code: code(err), Error: errorText(err), Unknown: of.id.Kind == journal.EffectModel}
	}
	return o
}

// caused keeps the error behind a failure.
func (d *drive) caused(failed *journal.Failed, err error) {
	if d.causes == nil {
		d.causes = make(map[*journal.Failed]error)
	}
	d.causes[failed] = err
}

// isBeside says that an effect goes on beside the driver and is no body.
func (d *drive) isBeside(of effectRef) bool {
	_, asked := d.requests[of]
	return asked || of.id.Kind == journal.EffectWait || isReconcileOfCall(of.id)
}

func isGuard(id journal.EffectID) bool {
	return id.Kind == journal.EffectGuard || id.Kind == journal.EffectOutput || id.Kind == journal.EffectCheck
}

func isReconcileOfCall(id journal.EffectID) bool {
	return id.Kind == journal.EffectReconcile && id.P > 1
}

// errorText is an error as a ledger holds it: valid UTF-8.
func errorText(err error) string { return strings.ToValidUTF8(err.Error(), "\uFFFD") }

var errWoken = errors.New("pawl: the driver was woken to cancel the run")

// rescue makes a panic of an effect's code its error. It is deferred.
func (f *frame) rescue(of effectRef, err *error) {
	if f.d.inEmit {
		return // the panic is the reader's own
	}
	if v := recover(); v != nil {
		*err = &PanicError{In: of.String(), Value: v, Stack: string(debug.Stack())}
	}
}

func (f *frame) inline(e machine.Effect) (body journal.Body, err error) {
	defer f.rescue(effectRef{e.Frame, e.ID}, &err)
	switch e.ID.Kind {
	case journal.EffectLoad:
		return f.load()
	case journal.EffectPrepare:
		return f.prepare(e)
	case journal.EffectModel:
		return f.callModel(e)
	case journal.EffectPlan:
		return f.plan()
	case journal.EffectJudge:
		return f.judge(e)
	case journal.EffectTransfer:
		return f.transfer(e.ID)
	case journal.EffectEnter:
		return f.enter(e)
	case journal.EffectLeave:
		return f.leave(e)
	case journal.EffectHandle:
		return f.handle(e)
	case journal.EffectSession:
		return f.appendSession(e)
	case journal.EffectReconcile:
		if e.About.Kind == journal.EffectModel {
			return f.reconcileModel(e)
		}
		return f.reconcileSession(e)
	}
	return nil, fmt.Errorf("pawl: no effect of kind %q", e.ID.Kind)
}

// code names an error for the ledger.
func code(err error) string {
	for _, c := range failureCodes {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	var (
		notFound *ToolNotFoundError
		refused  *RefusalError
		output   *OutputError
		panicked *PanicError
		callID   *CallIDError
		guard    *GuardrailError
		filter   *FilterError
		source   *ToolSourceError
		turns    *MaxTurnsError
		failed   *model.Error
	)
	switch {
	case errors.As(err, &notFound):
		return "tool_not_found"
	case errors.As(err, &refused):
		return "refusal"
	case errors.As(err, &output):
		return "invalid_output"
	case errors.As(err, &guard):
		return "guardrail"
	case errors.As(err, &panicked):
		return "panic"
	case errors.As(err, &callID):
		return "call_id_reused"
	case errors.As(err, &filter):
		return "filter"
	case errors.As(err, &source):
		return "tool_source"
	case errors.As(err, &turns):
		return machine.CodeMaxTurns
	case errors.As(err, &failed):
		return "model"
	}
	return "error"
}

// deliver hands an outcome to the driver, unless it has ended.
func (d *drive) deliver(o outcome) {
	select {
	case d.outcomes <- o:
	case <-d.ended:
	}
}

// tick is how often a driver that waits for tools looks into the inbox.
const tick = 500 * time.Millisecond

// collect waits for something to come of what was started, and steps it. It returns the time
// at which it did.
func (d *drive) collect() (time.Time, error) {
	d.gather()
	if len(d.queue) == 0 && !d.moved && len(d.bodies)+d.beside > 0 {
		d.wait()
		d.gather()
	}
	d.moved = false
	now := time.Now()
	return now, d.settle(now)
}

// gather takes the outcomes that are there. Bodies that need no more than a turn of the
// processor share a commit, and are not waited for.
func (d *drive) gather() {
	if len(d.bodies) > len(d.queue) {
		runtime.Gosched()
	}
	for more := len(d.bodies)+len(d.requests) > 0; more; {
		select {
		case o := <-d.outcomes:
			d.queue = append(d.queue, o)
		default:
			more = false
		}
	}
}

// wait waits for an outcome, until the driver stops, the inbox is to be looked into or a
// body is overdue.
func (d *drive) wait() {
	d.alarmIn(tick)
	select {
	case o := <-d.outcomes:
		d.queue = append(d.queue, o)
	case r := <-d.relayed:
		r.stays <- d.send(r.event)
	case <-d.ctx.Done():
	case <-d.wake:
		d.drained = time.Time{}
	case <-d.alarm:
		d.alarmAt, d.drained = time.Time{}, time.Time{}
		d.giveUp(false)
	}
}

// alarmIn sees to it that the alarm goes off within a time.
func (d *drive) alarmIn(within time.Duration) {
	at := d.alarmAt
	if at.IsZero() {
		at = time.Now().Add(within)
	}
	d.setAlarm(at)
}

// setAlarm sees to it that the alarm goes off at that time, or when a body is overdue. It
// may go off sooner: one that is set stays, because a timer for every tool would each time
// wake the thread that sleeps until the next timer.
func (d *drive) setAlarm(at time.Time) {
	for _, b := range d.bodies {
		if o := b.overdue(); o.Before(at) {
			at = o
		}
	}
	switch {
	case d.timer == nil:
		d.timer = time.AfterFunc(time.Until(at), func() {
			select {
			case d.alarm <- struct{}{}:
			default:
			}
			d.relieve()
		})
	case d.alarmAt.IsZero() || at.Before(d.alarmAt):
		d.timer.Reset(time.Until(at))
	default:
		return
	}
	d.alarmAt = at
}

// giveUp goes on without the bodies that are overdue, or without any: what happened to
// them is unknown.
func (d *drive) giveUp(all bool) {
	now := time.Now()
	for of, b := range d.bodies {
		why := "the driver stopped before the tool ended"
		if !now.Before(b.overdue()) {
			why = "the tool did not end at its deadline"
		} else if !all {
			continue
		}
		unknown := b.unknown(why)
		unknown.Running = true
		d.queue = append(d.queue, outcome{of: of, body: unknown})
	}
}

// settle steps the outcomes that arrived.
func (d *drive) settle(now time.Time) error {
	queue := d.queue
	d.queue = d.queue[:0]
	for _, o := range queue {
		if d.isBeside(o.of) {
			d.beside--
			delete(d.requests, o.of)
			delete(d.waits, o.of)
		}
		if o.raw {
			o = d.ending(o.of, o.body, o.err)
		}
		if b, ok := d.bodies[o.of]; ok && o.body != nil {
			b.cancel()
			delete(d.bodies, o.of)
		}
		if failed, ok := o.body.(*journal.Failed); ok && o.err != nil && failed.RetryAt == 0 {
			d.caused(failed, o.err)
		}
		stepped, err := d.m.End(o.of.frame, o.of.id, o.body, now.UnixMilli())
		if err != nil {
			return because(fmt.Errorf("pawl: the outcome of %s does not fit the run", o.of), err)
		}
		if !stepped {
			if o.body == nil {
				d.drained = time.Time{}
			}
			continue
		}
		if h, ok := o.body.(*journal.Handled); ok && h.Declined {
			d.caused(d.m.Frame(o.of.frame).Declined(), o.err)
		}
		if t, ok := o.body.(*journal.Transferred); ok {
			if err := d.transferred(o.of.frame, t.Agent); err != nil {
				return err
			}
		}
	}
	return nil
}

// halt stops the driving: bodies are cancelled and awaited for a grace, their outcomes
// recorded. It returns the error of the run.
func (d *drive) halt(cause error) error {
	d.stop(cause)
	for _, e := range d.handed {
		if e.ID.Kind == journal.EffectTool {
			d.queue = append(d.queue, outcome{of: effectRef{e.Frame, e.ID}, body: &journal.Settled{ID: e.ID, Outcome: journal.NotExecuted}})
		}
	}
	d.settle(time.Now())
	d.await()
	d.recordTold()
	rd := d.m.Flush()
	d.pending = append(d.pending, rd.Facts...)
	if len(d.unsaved) > 0 {
		d.unsaved = append(d.unsaved, d.encode(d.pending)...)
	} else {
		// If this fails too, the state has what is not recorded; the first error
		// is the caller's, but one that was fenced off also hears how much was refused.
		if err := d.commit(rd.Batches); err != nil && errors.Is(cause, ErrFenced) {
			cause = err
		}
		d.flushTold()
	}
	return d.fail("", cause)
}

// await gives bodies the grace to end. What happened to those that do not is unknown.
func (d *drive) await() {
	end := time.Now().Add(d.r.grace())
	for len(d.bodies)+len(d.requests) > 0 {
		d.setAlarm(end)
		select {
		case o := <-d.outcomes:
			d.queue = append(d.queue, o)
		case r := <-d.relayed:
			r.stays <- false
		case <-d.alarm:
			d.alarmAt = time.Time{}
			d.left = !time.Now().Before(end)
			if d.giveUp(d.left); d.left {
				clear(d.requests)
			}
		}
		d.settle(time.Now())
	}
}

// cancelClosed cancels the bodies and the model calls whose run is cancelled, or whose nested run was stopped.
func (d *drive) cancelClosed() {
	for of, b := range d.bodies {
		if d.m.Frame(of.frame).Closed() {
			b.cancel()
		}
	}
	for of, cancel := range d.requests {
		if d.m.Frame(of.frame).Closed() {
			cancel()
		}
	}
}
