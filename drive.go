package pawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// drive is one process's hold on a run: it asks the machine what comes next, records
// it and does it. All of it but the tools' bodies runs on one goroutine at a time.
type drive struct {
	r       *Runner
	engine  Engine // that the run is handed over to; nil if it is driven here
	store   journal.Driver
	root    *frame
	frames  map[string]*frame // of the nested runs that were driven here, by name
	resumed bool
	context string           // the context value of the options, to be recorded
	staged  []Decision       // submitted, for the state of an error
	input   []journal.Record // so is this
	granted *granted         // the claim, made before the run was opened; nil once it is used
	stays   func() bool      // says of the claimed run that it is not to be driven; may be nil
	shared  bool             // others go on with it when its time has come
	park    bool             // if it fails nobody looks at it again

	m          *machine.Machine
	claimed    *journal.Claimed
	claimedRun string
	epoch      uint64
	records    ledger
	pending    []journal.Fact // handed out by the machine, not recorded
	salts      []byte         // drawn, and not used yet
	consume    []string

	caller context.Context
	ctx    context.Context // ends when the drive stops
	cancel context.CancelCauseFunc
	bg     context.Context // for the store: what happened is recorded also after ctx
	emit   func(Event) bool
	inEmit bool                      // the reader's code runs
	gone   bool                      // the reader left
	causes map[*journal.Failed]error // behind the failures of this drive; nil without any
	ended  chan struct{}

	outcomes chan outcome
	next     chan *body // to a goroutine that has run one
	queue    []outcome
	bodies   map[effectRef]*body
	only     *body // the one that has not begun, if the driver is to run it
	helm     atomic.Pointer[helm]
	waits    map[effectRef]time.Time          // the ends of those that are in flight; nil before the first
	parked   time.Time                        // when somebody is to go on, if the drive leaves that to others
	beside   int                              // waits, questions about calls, and requests
	requests map[effectRef]context.CancelFunc // to guardrails, and to models of nested runs or beside guardrails
	relayed  chan relayed
	moved    bool // a transaction moved the run on
	alarm    chan struct{}
	timer    *time.Timer // sends the alarm
	alarmAt  time.Time   // zero if it is not set
	drained  time.Time
	leaseEnd atomic.Int64
	keeper   keeper // of the lease
	again    bool   // the effect of the step was perhaps begun before
	wake     chan struct{}
	nudged   atomic.Bool // somebody put something in the inbox that can wait for the effect in flight
	wakeable *wakeable
	calling  atomic.Pointer[wakeable] // of what keeps the driver busy
	lent     atomic.Pointer[wakeable] // of a transactional body
	posting  sync.RWMutex             // held while this process posts a cancellation
	unsaved  []journal.Record

	hooked            bool             // somebody in the run has hooks
	told              uint64           // the last fact of which a hook was told
	untold, untoldEnd int              // the records of which an earlier drive perhaps told none
	handed            []machine.Effect // not started yet
	left              bool             // a body was left running
	unread            int              // entries of the inbox that were seen last and left there

	stepper *Stepper // that has the drive for its steps; nil otherwise
	renewed bool     // the context value was replaced
}

// outcome is how an effect ended.
type outcome struct {
	of   effectRef
	body journal.Body // the fact; nil if the effect ended without one
	err  error        // the error behind a failed fact
	raw  bool         // what the error means is still to be seen
}

func (r *Runner) newDrive(ctx context.Context, emit func(Event) bool) *drive {
	d := &drive{r: r, store: r.store(), emit: emit, caller: ctx, bg: context.WithoutCancel(ctx), m: machine.New(),
		outcomes: make(chan outcome, 4), next: make(chan *body), bodies: make(map[effectRef]*body), wake: make(chan struct{}, 1), alarm: make(chan struct{}, 1),
		ended: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	d.root = &frame{d: d, m: d.m.Frame("")}
	return d
}

func (d *drive) state() *RunState {
	if d.records.size == 0 {
		return nil
	}
	s := newState(d.records, d.unsaved)
	s.staged, s.input = d.staged, d.input
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
		if err := d.root.turnTo(d.m.Agent()); err != nil {
			return nil, d.fail("", err)
		}
		d.hello()
		d.catchUp()
		return d.result()
	}
	defer d.postLate()
	defer close(d.ended)
	defer close(d.next)
	defer d.release()
	defer func() {
		if d.timer != nil {
			d.timer.Stop()
		}
	}()
	d.r.active.Store(d.m.Run(), d)
	defer d.r.active.CompareAndDelete(d.m.Run(), d)
	defer d.r.stops.Delete(d.m.Run())
	returned := false
	defer func() {
		if !returned {
			d.gone = true
			d.halt(context.Canceled)
		}
	}()
	if err = d.root.turnTo(d.m.Agent()); err == nil {
		d.tellUntold()
		d.hello()
		res, err = d.loop()
	} else {
		err = d.halt(err)
	}
	returned = true
	return res, err
}

// hello shows what every stream begins with.
func (d *drive) hello() {
	d.send(&RunStarted{Run: d.m.Run(), Resumed: d.resumed})
	d.send(&AgentUpdated{Agent: d.root.agent})
}

// turns drives on, as loop does, until another goroutine does.
func (d *drive) turns(now time.Time) (*Result, error) {
	for {
		if _, err := d.drain(now, d.drained.IsZero()); err != nil {
			return nil, d.halt(err)
		}
		if err := d.unchanged(); err != nil {
			return nil, d.halt(err)
		}
		if d.gone || d.ctx.Err() != nil { // no intent is recorded for what will not start
			return nil, d.halt(d.cause())
		}
		d.recordTold()
		rd := d.m.Ready(now.UnixMilli())
		d.pending = append(d.pending, rd.Facts...)
		d.handed = rd.Effects
		d.cancelClosed()
		if rd.MustSync {
			if err := d.commit(rd.Batches); err != nil {
				return nil, d.halt(err)
			}
			now = time.Now()
		}
		if rd.Status != machine.Running {
			again, err := d.more(rd.Status)
			if err != nil {
				return nil, d.halt(err)
			}
			if !again {
				return d.end(rd.Status)
			}
			now = time.Now()
			continue
		}
		if d.gone || d.ctx.Err() != nil {
			return nil, d.halt(d.cause())
		}
		if err := d.takeInput(now); err != nil {
			return nil, d.halt(err)
		}
		if err := d.hold(now); err != nil {
			return nil, d.halt(err)
		}
		if len(rd.Facts)+len(rd.Effects)+len(d.bodies)+d.beside == 0 {
			return nil, d.halt(errNothing)
		}
		for len(d.handed) > 0 {
			e := d.handed[0]
			d.handed = d.handed[1:]
			if err := d.start(e); err != nil {
				return nil, d.halt(err)
			}
		}
		if d.parks() {
			return nil, d.halt(errParked)
		}
		if b := d.only; b != nil {
			if d.only = nil; !d.runOnly(b) {
				return nil, nil
			}
		}
		var err error
		if now, err = d.collect(); err != nil {
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
	d.flushTold()
	if status == machine.Failed {
		return nil, d.failure()
	}
	return d.result()
}

// unchanged refuses to go on while a call that may start has a tool that is gone or
// another one than when the call was planned, or a nested run an agent that is gone.
func (d *drive) unchanged() error {
	for m := range d.m.Frames() {
		f, err := d.frame(m.Name())
		if err != nil {
			return err
		}
		for id := range m.Startable() {
			if err := f.changed(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// result is what the drive has come to. A stored result of an earlier drive is
// the same.
func (d *drive) result() (*Result, error) {
	s := newState(d.records, nil)
	s.machine = d.m
	res := newResult(d.m, s, d.root.agent)
	res.Warnings = d.warnings()
	return res, endError(d.m, s)
}

// failure is the first error of the drive, or what the ledger says of it.
func (d *drive) failure() error {
	f, frame := d.m.Failure(), d.m.FailedIn()
	return d.fail(effectRef{frame, f.ID}.String(), d.failed(f, d.m.Frame(frame)))
}

// failed is the error of a failure: the one behind it, if this drive saw it happen, or what
// the ledger says. in is the frame in which the run has failed, nil if its caller is told.
func (d *drive) failed(f *journal.Failed, in *machine.Frame) error {
	switch err := d.causes[f]; {
	case err != nil:
		return err
	case f.Code == machine.CodeMaxTurns && in == nil:
		return &MaxTurnsError{MaxTurns: f.ID.N - 1}
	case f.Code == machine.CodeMaxTurns:
		return &MaxTurnsError{MaxTurns: in.MaxTurns()}
	case f.Code == machine.CodeExpired && in == nil:
		return ErrApprovalExpired
	case f.Code == machine.CodeExpired:
		call, _ := in.Call(f.ID)
		return fmt.Errorf("%w: nobody decided on %s in time; resume the run to be asked again", ErrApprovalExpired, call.Spec.Name)
	case f.Code == machine.CodeMaxDepth:
		return fmt.Errorf("%w: %d is the most", ErrTooDeep, machine.MaxDepth)
	}
	return &FailedError{Code: f.Code, Text: f.Error}
}

// effectName names an effect for people.
func effectName(id journal.EffectID) string {
	switch id.Kind {
	case journal.EffectLoad:
		return "reading the session"
	case journal.EffectPrepare:
		return fmt.Sprintf("preparing turn %d", id.N)
	case journal.EffectModel:
		return fmt.Sprintf("model call of turn %d, attempt %d", id.N, id.A)
	case journal.EffectPlan:
		return fmt.Sprintf("reading response %d", id.N)
	case journal.EffectTool:
		return fmt.Sprintf("call %d.%d", id.N, id.P)
	case journal.EffectEnter:
		return fmt.Sprintf("starting the agent of call %d.%d", id.N, id.P)
	case journal.EffectLeave:
		return fmt.Sprintf("the output of the agent of call %d.%d", id.N, id.P)
	case journal.EffectJudge:
		return fmt.Sprintf("tool-use decision on response %d", id.N)
	case journal.EffectTransfer:
		return fmt.Sprintf("handoff %d.%d", id.N, id.P)
	case journal.EffectHandle:
		return fmt.Sprintf("error handler at turn %d", id.N)
	case journal.EffectGuard:
		return "guardrails on the input"
	case journal.EffectOutput:
		return fmt.Sprintf("guardrails on the output of response %d", id.N)
	case journal.EffectCheck:
		return fmt.Sprintf("guardrails on call %d.%d", id.N, id.P)
	case journal.EffectSession:
		return fmt.Sprintf("session batch %d, attempt %d", id.N, id.A)
	case journal.EffectWait:
		return fmt.Sprintf("wait %d", id.N)
	case journal.EffectReconcile:
		switch id.P {
		case machine.ReconcileModel:
			return fmt.Sprintf("reading back turn %d", id.N)
		case machine.ReconcileSession:
			return fmt.Sprintf("reading back session batch %d", id.N)
		}
		return fmt.Sprintf("asking what became of call %d.%d", id.N, id.P-machine.ReconcileCall)
	}
	return string(id.Kind)
}

// send shows an event unless the reader left.
func (d *drive) send(ev Event) (stays bool) {
	if d.emit == nil || d.gone {
		return !d.gone
	}
	d.inEmit = true
	stay := d.emit(ev)
	d.inEmit = false
	if !stay {
		d.gone = true
		d.stop(context.Canceled)
	}
	return stay
}

// wakeUp makes the driver look into the inbox now. It is called from any goroutine.
func (d *drive) wakeUp() {
	if c := d.calling.Load(); c != nil {
		c.cancel()
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
	d.relieve()
}

// rollBack ends the transactional body that is at work, and lets none be entered until
// done is called: it has the store's only writer, which a cancellation needs as well. The
// call did not happen then. It is called from any goroutine.
func (d *drive) rollBack() (done func()) {
	d.posting.RLock()
	if c := d.lent.Load(); c != nil {
		c.cancel()
	}
	return d.posting.RUnlock
}
