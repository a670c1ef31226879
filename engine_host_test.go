package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/steps"
	"github.com/pawl-agents/pawl/journal"
)

// loopEngine is an engine that keeps its loops in this process. A worker of it can be lost: then
// what it was doing has no end.
type loopEngine struct {
	t testing.TB
	// lose says that the worker of a step is lost once it is done, lost which one it was.
	lose func(steps.Request) bool
	lost journal.Owner

	mu    sync.Mutex
	hosts map[string]*loopHost
	over  map[string]bool // their loops have come to an end
	wait  sync.WaitGroup
	full  func(h *loopHost) bool
	able  *pawl.Stepper
}

func newLoopEngine(t testing.TB, r *pawl.Runner, opts pawl.StepperOptions) *loopEngine {
	e := &loopEngine{t: t, hosts: make(map[string]*loopHost), over: make(map[string]bool)}
	r.Engine = e
	worker := &pawl.Runner{Store: r.Store, Agents: r.Agents, Sessions: r.Sessions, Grace: r.Grace}
	opts.Engine = e.Name()
	if opts.Late == nil {
		opts.Late = func(run string) { e.late(worker, run) }
	}
	s, err := pawl.NewStepper(worker, opts)
	if err != nil {
		t.Fatal(err)
	}
	e.use(s)
	t.Cleanup(e.stop)
	return e
}

// use makes steps be carried out by that worker from now on.
func (e *loopEngine) use(s *pawl.Stepper) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.able = s
}

func (e *loopEngine) workers() *pawl.Stepper {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.able
}

func (e *loopEngine) stop() {
	e.mu.Lock()
	for _, h := range e.hosts {
		h.cancel()
	}
	e.mu.Unlock()
	e.wait.Wait()
	e.workers().Stop()
}

func (e *loopEngine) late(r *pawl.Runner, run string) {
	entries, err := r.Store.Inbox(context.Background(), run)
	if err == nil {
		e.Tell(context.Background(), run, entries)
	}
}

func (e *loopEngine) Name() string { return "loop" }

func (e *loopEngine) Start(_ context.Context, run string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hosts[run] != nil || e.over[run] {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	h := &loopHost{e: e, run: run, ctx: ctx, cancel: cancel, events: make(chan steps.Event, 100), running: make(map[steps.Ref]context.CancelFunc)}
	e.hosts[run] = h
	e.wait.Go(func() {
		defer func() {
			e.mu.Lock()
			delete(e.hosts, run)
			v := recover()
			e.over[run] = v == nil
			e.mu.Unlock()
			if v != nil && v != errLoopEnds {
				panic(v)
			}
		}()
		h.drive()
	})
	return nil
}

func (e *loopEngine) host(run string) *loopHost {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hosts[run]
}

func (e *loopEngine) Tell(_ context.Context, run string, messages []journal.Entry) error {
	h := e.host(run)
	if h == nil {
		return pawl.ErrUnknownRun
	}
	for _, m := range messages {
		h.events <- steps.Event{Message: &m}
	}
	return nil
}

func (e *loopEngine) Resume(_ context.Context, run string, fact journal.Record, token string) error {
	h := e.host(run)
	if h == nil {
		return pawl.ErrUnknownRun
	}
	f, err := journal.Decode(fact)
	if err != nil {
		return err
	}
	h.events <- steps.Event{Resume: &steps.Resume{Token: token, Fact: *f.Body.(*journal.Resumed)}}
	return nil
}

func (e *loopEngine) Stopped(_ context.Context, run, token string) *pawl.EngineError {
	h := e.host(run)
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop == nil || token != "" && h.token != token {
		return nil
	}
	return &pawl.EngineError{Code: h.stop.Code, Text: h.stop.Text}
}

func (e *loopEngine) Listen(ctx context.Context, run string, show func(pawl.Event)) {
	h := e.host(run)
	if h == nil {
		return
	}
	h.mu.Lock()
	h.show = show
	h.mu.Unlock()
}

var errLoopEnds = errors.New("the loop ends")

// loopHost is the loop of one run.
type loopHost struct {
	e       *loopEngine
	run     string
	ctx     context.Context
	cancel  context.CancelFunc
	events  chan steps.Event
	driver  *steps.Driver
	started int // steps

	mu      sync.Mutex
	running map[steps.Ref]context.CancelFunc
	stop    *steps.Stop
	token   string
	show    func(pawl.Event)
}

func (h *loopHost) drive() {
	opened, err := h.e.workers().Open(h.ctx, h.run, nil)
	if err != nil {
		if h.ctx.Err() == nil { // else the test has ended
			h.e.t.Errorf("open: %v", err)
		}
		return
	}
	l, err := steps.Open(opened.Facts)
	if err != nil {
		h.e.t.Errorf("loop: %v", err)
		return
	}
	l.Step(opened.Claimed, h.Now())
	h.driver = steps.NewDriver(l, h, opened.Claimed.Epoch)
	for {
		over, err := h.driver.Run()
		if err != nil {
			h.e.t.Errorf("run %s: %v", h.run, err)
		}
		if over || err != nil {
			return
		}
		facts, err := h.e.workers().Facts(h.ctx, h.run)
		if err == nil {
			l, err = steps.Restore(facts, h.driver.Save())
		}
		if err != nil {
			h.e.t.Errorf("continue: %v", err)
			return
		}
		h.driver, h.started = steps.NewDriver(l, h, h.driver.Epoch()), 0
	}
}

func (h *loopHost) Now() int64 { return time.Now().UnixMilli() }

func (h *loopHost) Full() bool { return h.e.full != nil && h.e.full(h) }

func (h *loopHost) Open(lost []string, after uint64) (*journal.Claimed, []journal.Fact) {
	owners := make([]journal.Owner, len(lost))
	for i := range lost {
		owners[i] = h.e.lost
	}
	o, err := h.e.workers().Open(h.ctx, h.run, owners)
	if err != nil {
		h.e.t.Errorf("open: %v", err)
		panic(errLoopEnds)
	}
	return o.Claimed, o.Facts[min(after, uint64(len(o.Facts))):]
}

func (h *loopHost) Close(epoch uint64) {
	if err := h.e.workers().Close(context.WithoutCancel(h.ctx), h.run, epoch); err != nil {
		h.e.t.Errorf("close: %v", err)
	}
}

func (h *loopHost) Cancel(of steps.Ref) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cancel := h.running[of]; cancel != nil {
		cancel()
	}
}

func (h *loopHost) Start(r steps.Request) {
	h.started++
	ctx, cancel := context.WithCancel(h.ctx)
	h.mu.Lock()
	h.running[r.Of] = cancel
	h.stop, h.token = h.driver.Stop, ""
	if n := len(h.driver.Tokens); n > 0 {
		h.token = h.driver.Tokens[n-1]
	}
	show := h.show
	h.mu.Unlock()
	lost := h.e.lose != nil && h.e.lose(r)
	h.e.wait.Go(func() {
		defer cancel()
		s := h.e.workers()
		step := &pawl.Step{Run: h.run, Epoch: r.Epoch, After: r.Delta.After, Facts: r.Delta.Facts,
			Consume: r.Delta.Consume, Frame: r.Of.Frame, Effect: r.Of.ID, Show: show}
		out, err := s.Perform(ctx, step)
		if lost && !r.Once {
			step.Again = true
			out, err = s.Perform(ctx, step)
		}
		end := &steps.End{Of: r.Of}
		switch stop := pawl.EngineStop(err); {
		case lost && r.Once:
			end.Failure = &steps.Failure{Kind: steps.Lost, Lost: "worker"}
		case err == nil:
			end.Outcome, end.Stored, end.Inbox = out.Outcome, out.Stored, out.Inbox
		case ctx.Err() != nil:
			end.Failure = &steps.Failure{Kind: steps.Ended}
		case stop != nil:
			end.Failure = &steps.Failure{Kind: steps.Stopped, Stop: &steps.Stop{Code: stop.Code, Text: stop.Text}}
		default:
			end.Failure = &steps.Failure{Kind: steps.NotBegun}
		}
		select {
		case h.events <- steps.Event{End: end}:
		case <-h.ctx.Done():
		}
	})
}

func (h *loopHost) Wait(until int64) (list []steps.Event) {
	h.mu.Lock()
	h.stop, h.token = h.driver.Stop, ""
	if n := len(h.driver.Tokens); n > 0 {
		h.token = h.driver.Tokens[n-1]
	}
	h.mu.Unlock()
	var timer <-chan time.Time
	if until > 0 {
		timer = time.After(time.Until(time.UnixMilli(until)))
	}
	select {
	case ev := <-h.events:
		list = append(list, ev)
	case <-timer:
		return nil
	case <-h.ctx.Done():
		panic(errLoopEnds)
	}
	for {
		select {
		case ev := <-h.events:
			list = append(list, ev)
		default:
			return list
		}
	}
}
