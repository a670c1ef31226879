package pawltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// World is the world as one process of a [Scenario] sees it: a model, and the far side of its tools. When the process has
// crashed nothing it does reaches the world any more. It is safe for concurrent use.
type World struct {
	stage  *stage
	number int // of the process, from 1
	agent  *pawl.Agent
	runner *pawl.Runner
	store  journal.Driver // nil without one

	mu      sync.Mutex
	dead    bool
	stopped chan struct{} // closed when a process that was stopped goes on; nil if it was not
	failing bool          // the store takes nothing until the call of the API has ended
	late    bool          // it was stopped once
	adds    bool          // it gives the run more input
	inTx    bool          // it is inside a transaction of the store, which its death rolls back
	calls   []call        // under way, the latest last
}

// call is a call of the API that a process has begun.
type call struct {
	fate chan fate
	done chan struct{} // closed when it has returned
}

// fate is what becomes of a call: it returns, or the process dies or is stopped.
type fate struct {
	what fateKind
	res  *pawl.Result
	err  error
}

type fateKind int

const (
	returned fateKind = iota
	died
	stoppedThere
)

// errOver is what a crashed process gets of the world when the point is over, so that its goroutines end.
var errOver = errors.New("pawltest: this process has crashed")

// Model returns the model that answers by Scenario.Script.
func (w *World) Model() model.Model { return sweptModel{world: w} }

// ModelOf returns the model of another agent, one that is handed over to or that a tool runs: it answers by the script of that name
// in Scenario.Scripts. Agents that work side by side have scripts of their own.
func (w *World) ModelOf(script string) model.Model { return sweptModel{w, script} }

// Session returns a session for nested runs, which remembers the batches it took. Its id is not that of the run's own.
func (w *World) Session(id string) session.Session {
	far := w.stage.far
	far.mu.Lock()
	defer far.mu.Unlock()
	if far.sessions[id] == nil {
		far.sessions[id] = session.NewMemory(id)
	}
	return batchSession{plainSession{far.sessions[id], w}}
}

// Do does at the far side what a tool's call asks for, and returns the answer. The far side is outside of the run: it counts
// every attempt. It honours the key of a call whose tool is idempotent, so a second attempt gets the first one's answer; else a second
// attempt is a second effect. A body that knows its answer only from the far side returns what Do returns.
//
// It returns an error if the far side was not reached or its answer was lost. In the latter case it is a pawl.ErrOutcomeUnknown.
func (w *World) Do(ctx context.Context, c *pawl.Call, answer string) (string, error) {
	time.Sleep(w.stage.far.latency(c.ID))
	err := w.at(ToolEffect, c.Tool+" "+c.ID, func() error {
		if err := ctx.Err(); err != nil {
			return err // a request that is not sent any more
		}
		answer = w.stage.far.effect(c, answer, w.number)
		return nil
	})
	if errors.Is(err, errAckLost) {
		err = fmt.Errorf("%w: %w", pawl.ErrOutcomeUnknown, err)
	}
	if err != nil {
		return "", err
	}
	return answer, nil
}

// Answer returns what the far side answered to the call with that key, and whether there was such a call. Asking is not an
// attempt.
func (w *World) Answer(key string) (answer string, ok bool) {
	far := w.stage.far
	far.mu.Lock()
	defer far.mu.Unlock()
	answer, ok = far.answers[key]
	return answer, ok
}

// errAckLost is ErrSwept after something happened.
var errAckLost = fmt.Errorf("%w: after it was done", ErrSwept)

// at passes a boundary: do is what the far side does. If the point's fault is due here, it strikes.
func (w *World) at(kind BoundaryKind, name string, do func() error) error {
	if err := w.alive(); err != nil {
		return err
	}
	switch fault := w.stage.arrive(w, kind, name); fault {
	case CrashBefore, CrashAfter:
		if fault == CrashAfter {
			_ = do() // nobody hears of it
		}
		w.die()
		return w.alive()
	case Fails:
		w.mu.Lock()
		w.failing = kind.ofStore() && kind != ClaimRun && kind != ReleaseRun
		w.mu.Unlock()
		return ErrSwept
	case AckLost:
		if err := do(); err != nil {
			return err
		}
		return errAckLost
	case Twice:
		err := do()
		_ = do() // the second answer is not waited for
		return err
	case SecondDriver:
		w.stage.rival()
	case Slow, SlowTakeover:
		w.stop()
	}
	return do()
}

// alive returns at once while the process is alive. A stopped process waits until it goes on, a dead one until the point is
// over.
func (w *World) alive() error {
	w.mu.Lock()
	dead, stopped, inTx := w.dead, w.stopped, w.inTx
	w.mu.Unlock()
	if dead && inTx {
		return errOver
	}
	if dead {
		<-w.stage.over
		return errOver
	}
	if stopped != nil {
		<-stopped
		time.Sleep(time.Millisecond) // whoever was stopped at the boundary goes as far as it gets before its lease is looked after
	}
	return nil
}

// isFailing says that the store takes nothing.
func (w *World) isFailing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failing
}

// lent says whether the process is inside a transaction of the store.
func (w *World) lent(in bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inTx = in
}

// die lets the process crash.
func (w *World) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	w.calls[len(w.calls)-1].fate <- fate{what: died}
}

// stop stops the process until goOn.
func (w *World) stop() {
	stopped := make(chan struct{})
	w.mu.Lock()
	w.stopped, w.late = stopped, true
	w.calls[len(w.calls)-1].fate <- fate{what: stoppedThere}
	w.mu.Unlock()
	<-stopped
}

// goOn lets a process that was stopped go on, and waits until its call has returned.
func (w *World) goOn() {
	w.mu.Lock()
	close(w.stopped)
	w.stopped = nil
	done := w.calls[len(w.calls)-1].done
	w.mu.Unlock()
	<-done
}

// call makes a call of the API in the process and says what became of it.
func (w *World) call(f func() (*pawl.Result, error)) fate {
	c := call{make(chan fate, 2), make(chan struct{})} // it may be stopped and return later
	w.mu.Lock()
	w.calls, w.failing = append(w.calls, c), false
	w.mu.Unlock()
	w.stage.running.Go(func() {
		defer close(c.done)
		res, err := f()
		c.fate <- fate{res: res, err: err}
	})
	select {
	case f := <-c.fate:
		return f
	case <-time.After(callLimit):
		w.stage.far.problem("G5: a call of the API does not return")
		return fate{what: died}
	}
}

// callLimit bounds a call of the API, in fake time. Tools and leases may take their time, but not that much.
const callLimit = 24 * time.Hour

// drive starts the run, or resumes it from what the last call left.
func (w *World) drive(from pawl.Resumable) (*pawl.Result, error) {
	s, ctx := w.stage.scenario, context.Background()
	o := s.options()
	if s.Driving != nil {
		s.Driving(w, o)
	}
	o.Session = w.session()
	if from == nil {
		o.ID = w.stage.runID()
		w.stage.far.note("process %d: Run", w.number)
		if w.stage.point.stream {
			return pawl.Collect(w.runner.Stream(ctx, w.agent, s.Input, o))
		}
		return w.runner.Run(ctx, w.agent, s.Input, o)
	}
	o.ID, o.ConversationID, o.PreviousResponseID, o.AutoPreviousResponseID, o.MaxTurns = "", "", "", false, 0
	w.adds = from == w.stage.adding
	w.stage.far.note("process %d: Resume", w.number)
	if w.stage.point.stream {
		return pawl.Collect(w.runner.ResumeStream(ctx, w.agent, from, o))
	}
	return w.runner.Resume(ctx, w.agent, from, o)
}

// sessionID is the session's id.
const sessionID = "chat"

// session returns the run's session as the process sees it, nil if there is none.
func (w *World) session() session.Session {
	switch kind := w.stage.scenario.Session; {
	case kind == NoSession:
		return nil
	case kind == PlainSession:
		return plainSession{w.stage.far.session, w}
	case kind == SessionInStore && w.store != nil && w.stage.scenario.StoreSession != nil:
		return storeSession{batchSession{plainSession{w.stage.scenario.StoreSession(w.stage.store, sessionID), w}}}
	}
	return batchSession{plainSession{w.stage.far.session, w}}
}
