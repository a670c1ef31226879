package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// Engine drives the runs of a Runner elsewhere: in workers, each of which has a Stepper, and by a
// durable loop that the engine keeps. What a run is, a Runner with an engine reads from its Store,
// where the workers keep a copy of the ledger. engine/temporal has one. It is called from any
// goroutine. The interface grows with Pawl. If it has a method Check() error, that is called before a run is
// begun or resumed, and an error is returned before anything happened.
type Engine interface {
	// Name names the engine in claims; equal in every process that uses the same one.
	Name() string
	// Start makes sure that the engine drives a run, which stands in the store and is claimed in
	// the engine's name. Starting a run again changes nothing.
	Start(ctx context.Context, run string) error
	// Tell brings messages that stand in the inbox of a run to its loop, also while no worker is
	// up. A message that the loop had before changes nothing. ErrUnknownRun if the engine does not
	// drive the run.
	Tell(ctx context.Context, run string, messages []journal.Entry) error
	// Resume asks a run to go on that has failed or that the engine has stopped driving. The
	// fact is a journal.Resumed; token names the request.
	Resume(ctx context.Context, run string, fact journal.Record, token string) error
	// Stopped returns why the engine waits for a Resume to go on with a run, an *EngineError, and nil if it does
	// not, if the loop did not hear yet of the Resume with the token, or if nobody can say.
	Stopped(ctx context.Context, run, token string) *EngineError
	// Listen calls show with events of a run that no fact tells of, as Delta and Reset, as far as
	// they reach this process, until ctx ends. Nobody else is shown them.
	Listen(ctx context.Context, run string, show func(Event))
}

// EngineError says why an engine does not go on with a run, which can be resumed. Unwrap returns
// the error of this package that the code stands for, as ErrToolChanged or a *ConfigError, nil if there is none.
type EngineError struct{ Code, Text string }

// Error returns what the worker said.
func (e *EngineError) Error() string { return e.Text }

// Unwrap returns what the code stands for.
func (e *EngineError) Unwrap() error {
	switch e.Code {
	case stopConfig:
		field, problem, _ := strings.Cut(strings.TrimPrefix(e.Text, "pawl: "), ": ")
		return &ConfigError{field, problem}
	case stopContext:
		return &ContextError{Err: errors.New(strings.TrimPrefix(e.Text, (&ContextError{errors.New("")}).Error()))}
	}
	for _, s := range engineStops {
		if s.code == e.Code {
			return s.is
		}
	}
	return nil
}

// The codes of stops that hold more than a sentinel.
const (
	stopConfig  = "config"
	stopContext = "context"
)

// engineStops are the errors that a repeat does not mend: somebody has to do something first.
var engineStops = []struct {
	code string
	is   error
}{
	{"tool_changed", ErrToolChanged}, {"unknown_agent", ErrUnknownAgent}, {"session_missing", ErrSessionMissing},
	{"session_mismatch", ErrSessionMismatch}, {"fenced", ErrFenced}, {"newer_journal", journal.ErrNewerJournal},
	{"corrupt", journal.ErrCorrupt}, {"unknown_run", ErrUnknownRun}, {"conflict", ErrConflict},
}

// EngineStop returns what an engine is to make of an error of a Stepper: the run is not driven on before
// somebody resumes it, or, if it is nil, the step is tried again.
func EngineStop(err error) *EngineError {
	if stop, ok := errors.AsType[*EngineError](err); ok {
		return stop
	}
	if re, ok := errors.AsType[*RunError](err); ok {
		err = re.Err // whoever reads it knows the run
	}
	for _, s := range engineStops {
		if errors.Is(err, s.is) {
			return &EngineError{s.code, errorText(err)}
		}
	}
	if config, ok := errors.AsType[*ConfigError](err); ok {
		return &EngineError{stopConfig, errorText(config)}
	}
	if context, ok := errors.AsType[*ContextError](err); ok {
		return &EngineError{stopContext, errorText(context)}
	}
	return nil
}

// engineLease is how long the claim of an engine lives once the run stands in the store: the engine
// itself sees to it that a run has one loop. Until then whoever begins the run keeps the claim, as
// one of its own: nobody would end that of a process that died [S23.3].
const engineLease = 20 * 365 * 24 * time.Hour

// engineOwner is the owner of claims in an engine's name. It is no host, so nobody takes it for
// gone.
func engineOwner(name string) journal.Owner { return journal.Owner{Host: "engine:" + name} }

// heldByEngine returns the run whose claim an error says is the engine's.
func (r *Runner) heldByEngine(err error) (run string, ok bool) {
	held, ok := errors.AsType[*journal.ClaimedError](err)
	if r.Engine == nil || !ok || held.Holder.Owner != engineOwner(r.Engine.Name()) {
		return "", false
	}
	return held.Run, true
}

// checkEngine refuses options that cannot reach the engine's workers.
func (o *RunOptions) checkEngine() error {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"MergeInput", o.MergeInput != nil}, {"FilterInput", o.FilterInput != nil}, {"HandoffFilter", o.HandoffFilter != nil},
		{"Hooks", o.Hooks != nil}, {"ErrorHandlers", o.ErrorHandlers.kinds() != nil}, {"NestHandoffs", o.NestHandoffs != nil},
		{"InputGuardrails", o.InputGuardrails != nil}, {"OutputGuardrails", o.OutputGuardrails != nil}, {"GuardBeforeApproval", o.GuardBeforeApproval},
		{"OnApprovalRequest", o.OnApprovalRequest != nil}, {"Model", o.Model != nil}, {"Settings", o.Settings != nil},
		{"ToolNotFound", o.ToolNotFound != FailRun}, {"ToolErrors", o.ToolErrors != nil}, {"Context", o.Context != nil && o.ContextCodec == nil},
	} {
		if f.given {
			return &ConfigError{Field: "RunOptions." + f.name, Problem: "does not reach the workers of the runner's engine; give it to them, in StepperOptions.Options"}
		}
	}
	return nil
}

// checkEngine refuses what cannot be handed over to an engine.
func checkEngine(e Engine, opts *RunOptions) error {
	if e == nil {
		return nil
	}
	if c, ok := e.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return err
		}
	}
	return opts.checkEngine()
}

// onEngine is run for a drive that opened, or could not because the engine has the run.
func (d *drive) onEngine(err error) (*Result, error) {
	run, held := d.r.heldByEngine(err)
	switch {
	case held:
		return d.joinEngine(run, err)
	case err != nil:
		return nil, err
	}
	if err := d.root.turnTo(d.m.Agent()); err != nil {
		d.release()
		return nil, d.fail("", err)
	}
	d.hello()
	if d.m.Finished() != nil {
		return d.result()
	}
	run = d.m.Run()
	d.pending = append(d.pending, d.m.Flush().Facts...)
	if err := d.commit(nil); err != nil {
		d.release()
		return nil, d.fail("", err)
	}
	err = d.yield()
	if err == nil {
		err = d.r.Engine.Start(d.bg, run)
	}
	if err != nil {
		return nil, d.fail("", err)
	}
	return d.follow(run, uint64(d.records.size), 0, "")
}

// yield leaves the claim on a run that stands in the store to the engine.
func (d *drive) yield() error {
	d.keeper.stop()
	return d.store.Renew(d.bg, d.claimedRun, d.epoch, engineLease)
}

// joinEngine asks the engine to go on with a run that it has, as claimed says.
func (d *drive) joinEngine(run string, claimed error) (*Result, error) {
	s, err := d.r.State(d.caller, run)
	if errors.Is(err, ErrUnknownRun) { // somebody is about to begin it, or died of it
		return nil, claimed
	}
	if err != nil {
		return nil, err
	}
	resumed := &journal.Resumed{MaxTurns: d.root.opts.MaxTurns}
	if d.context != s.fold().Context() {
		resumed.Context = d.context
	}
	rec, token := journal.Encode(journal.Fact{Time: time.Now().UnixMilli(), Body: resumed}, newSalt()), newRunID()
	e := d.r.Engine
	if err := e.Start(d.bg, run); err != nil {
		return nil, s.refused(err)
	}
	if err := d.r.tellEngine(d.bg, run); err != nil {
		return nil, s.refused(err)
	}
	if err := e.Resume(d.bg, run, rec, token); err != nil && !errors.Is(err, ErrUnknownRun) { // it has just ended
		return nil, s.refused(err)
	}
	failed := uint64(0)
	if s.fold().Failure() != nil {
		failed = uint64(s.Facts())
	}
	d.send(&RunStarted{Run: run, Resumed: true})
	d.send(&AgentUpdated{Agent: d.agentNamed(s.fold().Started().Agent, s.fold().Agent())})
	return d.follow(run, uint64(s.Facts()), failed, token)
}

// tellEngine brings what stands in the inbox of a run to its engine.
func (r *Runner) tellEngine(ctx context.Context, run string) error {
	if r.Engine == nil {
		return nil
	}
	entries, err := r.store().Inbox(ctx, run)
	if err != nil || len(entries) == 0 {
		return err
	}
	err = r.Engine.Tell(ctx, run, entries)
	if errors.Is(err, ErrUnknownRun) { // whoever drives it finds them
		return nil
	}
	return err
}

// agentNamed returns an agent of the run: among those that the caller gave, or as Watch finds it.
func (d *drive) agentNamed(root, key string) *Agent {
	if d.root.team.root != nil && !d.root.team.bare {
		if a := d.root.team.find(key); a != nil {
			return a
		}
	}
	return d.r.lookUp(root, key)
}

// stopPause is how often an engine is asked whether it has stopped driving a run.
const stopPause = time.Second

// restPause is how long whoever waits for a run lets facts gather.
const restPause = 10 * time.Millisecond

// follow shows what is recorded of a run that an engine drives, until it rests. Facts up to seen
// were shown; a failure up to failed is being tried again.
func (d *drive) follow(run string, seen, failed uint64, token string) (*Result, error) {
	ctx, cancel := context.WithCancel(d.caller)
	defer cancel()
	f := d.r.newFollower(ctx, run, Cursor{Fact: seen, Event: 1 << 30}, func(ev WatchEvent) bool {
		if _, failed := ev.Event.(*RunFailed); failed {
			return true // the stream ends with it
		}
		return d.send(ev.Event)
	})
	f.agentOf = d.agentNamed
	events := make(chan Event)
	if d.emit != nil {
		go d.r.Engine.Listen(ctx, run, func(ev Event) {
			select {
			case events <- ev:
			case <-ctx.Done():
			}
		})
	}
	rung, leave := d.r.bells.listen(run)
	defer leave()
	w := engineWait{d: d, f: f, failed: failed, token: token, asked: time.Now()}
	pause := followPause
	for {
		some, err := f.read()
		if err == nil && d.gone {
			err = context.Canceled
		}
		if err != nil {
			return nil, w.fail(err)
		}
		if res, err, rests := w.rests(); rests {
			return res, err
		}
		if some {
			pause = followPause
		}
		timer := time.NewTimer(pause)
		select {
		case ev := <-events:
			d.send(ev)
		case <-rung:
			if d.emit == nil { // nobody is shown the steps between
				time.Sleep(restPause)
			}
		case <-timer.C:
			pause = min(2*pause, maxFollowPause)
		case <-ctx.Done():
			timer.Stop()
			return nil, w.fail(fmt.Errorf("%w; the engine goes on with the run", context.Cause(d.caller)))
		}
		timer.Stop()
	}
}

// engineWait waits for a run of an engine to rest.
type engineWait struct {
	d      *drive
	f      *follower
	failed uint64
	token  string
	asked  time.Time // when the engine was asked last whether it has stopped
}

func (w *engineWait) state() *RunState {
	if w.f.records.size == 0 {
		return nil
	}
	s := newState(w.f.records, nil)
	s.machine = w.f.m
	return s
}

func (w *engineWait) fail(err error) error {
	if re, ok := errors.AsType[*RunError](err); ok {
		return re
	}
	return &RunError{Run: w.f.run, State: w.state(), Err: err}
}

// rests reports whether the run has ended, waits for somebody, has failed, or is not driven on.
func (w *engineWait) rests() (res *Result, err error, rests bool) {
	m, d := w.f.m, w.d
	switch statusOf(m) {
	case StatusWaiting:
		if entries, err := d.store.Inbox(d.bg, w.f.run); err != nil || len(entries) > 0 { // it is about to go on
			break
		}
		if some, err := w.f.read(); err != nil || some { // what was in the inbox has just been recorded
			return nil, nil, false
		}
		return w.result(), nil, true
	case StatusFinished, StatusCancelled:
		res := w.result()
		return res, endError(m, res.state), true
	case StatusFailed:
		if uint64(w.f.records.size) > w.failed {
			d.use(m)
			d.records = w.f.records
			return nil, d.failure(), true
		}
	}
	if time.Since(w.asked) < stopPause {
		return nil, nil, false
	}
	w.asked = time.Now()
	if stop := d.r.Engine.Stopped(d.caller, w.f.run, w.token); stop != nil {
		return nil, w.fail(stop), true
	}
	return nil, nil, false
}

func (w *engineWait) result() *Result {
	m := w.f.m
	return newResult(m, w.state(), w.d.agentNamed(m.Started().Agent, m.Agent()))
}

// makeRoomOnEngine is makeRoom for a run that the engine has.
func (d *drive) makeRoomOnEngine(ctx context.Context, busy *journal.BusyError) error {
	s, err := d.r.State(ctx, busy.Open)
	if err != nil {
		return err
	}
	switch s.Status() {
	case StatusRunning:
		return &SessionBusyError{Session: conversation(d.m), Run: busy.Open, Holder: *busy.Holder}
	case StatusWaiting:
		if err := d.mayClose(ctx, s); err != nil {
			return err
		}
	}
	f := journal.Fact{Time: time.Now().UnixMilli(), Body: &journal.Cancelled{By: "pawl", Why: "run " + d.m.Run() + " was started on the session", Successor: d.m.Run()}}
	if err := post(ctx, d.store, busy.Open, journal.Entry{Key: cancelKey, Body: journal.Encode(f, newSalt())}); err != nil {
		return err
	}
	if err := d.r.tellEngine(ctx, busy.Open); err != nil {
		return err
	}
	c := d.r.newDrive(ctx, nil)
	defer c.cancel(nil)
	if _, err := c.follow(busy.Open, uint64(s.Facts()), uint64(s.Facts()), newRunID()); err != nil && !errors.Is(err, ErrCancelled) {
		return fmt.Errorf("pawl: closing run %s, which has the session %q: %w", busy.Open, conversation(d.m), err)
	}
	return nil
}
