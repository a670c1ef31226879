package pawl

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// Defaults of a Runner.
const (
	DefaultLease = 30 * time.Second
	DefaultGrace = 5 * time.Second
)

// Runner drives runs. The zero value keeps them in memory for as long as it lives, those that
// ended, too: a server without a store uses one for each conversation. It is safe for concurrent
// use and must not be copied once used.
type Runner struct {
	// Store keeps the ledgers; nil means memory.
	Store journal.Driver
	// Engine, when not nil, drives the runs elsewhere, and this Runner only begins them, decides on
	// them and waits for them. Run, Stream, Resume and ResumeStream then return when the run has
	// ended, waits or has failed, as they do without; a context that ends stops the waiting, and
	// the run goes on. Options that are functions do not travel: they are refused here, and given
	// to the workers. StopAfterTurn does nothing, and what drives the runs of a store needs a Runner
	// without an engine.
	Engine Engine
	// Agents are found by key when a run is resumed without one.
	Agents []*Agent
	// Sessions finds the session of a stored run when a resume names none. It
	// returns nil for an unknown id.
	Sessions func(id string) session.Session
	// Lease is how long a claim lives without being renewed; a driver renews it
	// at a third. 0 means DefaultLease.
	Lease time.Duration
	// Grace is how long tools may take to end once the driver stops, and guardrails once
	// their context has ended. 0 means DefaultGrace.
	Grace time.Duration
	// OnHookError is told of panics of hooks, as a *RunError with a *PanicError. Nil means
	// slog.Default. It is called on the goroutine of the driver.
	OnHookError func(err error)

	once   sync.Once
	memory *journal.Memory
	active sync.Map // run id -> *drive
	stops  sync.Map // run id -> true: to stop before the next turn
	bells  bells
}

func (r *Runner) store() journal.Driver {
	if r.Store != nil {
		return r.Store
	}
	r.once.Do(func() { r.memory = journal.NewMemory() })
	return r.memory
}

func (r *Runner) grace() time.Duration { return cmp.Or(r.Grace, DefaultGrace) }

// checkStore finds the store that was never opened, because an error was passed over: the methods of
// a nil pointer panic.
func (r *Runner) checkStore() error {
	if isNil(r.Store) {
		return &ConfigError{Field: "Runner.Store", Problem: fmt.Sprintf("is a nil %T", r.Store)}
	}
	return nil
}

// isNil reports whether an interface has a nil pointer in it.
func isNil(v any) bool {
	p := reflect.ValueOf(v)
	return p.Kind() == reflect.Pointer && p.IsNil()
}

// check reports settings that make no sense.
func (r *Runner) check() error {
	if err := r.checkStore(); err != nil {
		return err
	}
	switch {
	case r.Lease < 0:
		return &ConfigError{Field: "Runner.Lease", Problem: "is negative"}
	case r.Grace < 0:
		return &ConfigError{Field: "Runner.Grace", Problem: "is negative"}
	}
	for i, a := range r.Agents {
		for _, b := range r.Agents[:i] {
			if a != nil && b != nil && a != b && a.key() == b.key() {
				return &ConfigError{Field: "Runner.Agents", Problem: fmt.Sprintf("%q and %q are not the same agent, and both have the key %q", b.Name, a.Name, a.key())}
			}
		}
	}
	return nil
}

// Run starts a run and drives it until it has a final output, waits for decisions, or
// fails. Errors are *RunError, which carries the state to resume from, or
// *ConfigError for a mistake found before anything happened. Cancelling ctx stops the
// driving, not the run: it stays resumable. A cancelled run has both a result and an
// error, ErrCancelled; so has one that a guardrail ended, a *TripwireError.
func (r *Runner) Run(ctx context.Context, agent *Agent, input Input, opts *RunOptions) (*Result, error) {
	return r.drive(ctx, nil, func(d *drive) error { return d.begin(ctx, agent, input, opts.orDefault()) })
}

// Stream is Run, shown as it happens. Everything runs on the caller's goroutine
// except tools; leaving the loop stops the driving and leaves the run resumable. An
// error is the last thing the stream yields. Ranging over it again goes on with the same
// run.
func (r *Runner) Stream(ctx context.Context, agent *Agent, input Input, opts *RunOptions) iter.Seq2[Event, error] {
	o, input := *opts.orDefault(), slices.Clone(input)
	if o.ID == "" {
		o.ID = newRunID()
	}
	return r.stream(ctx, func(d *drive) error { return d.begin(ctx, agent, input, &o) })
}

// Resumable is what a run can be resumed from: a *RunState, or a RunID.
type Resumable interface{ resumable() }

// RunID resumes the stored run of that id.
type RunID string

func (RunID) resumable()     {}
func (*RunState) resumable() {}

// Resume drives a run on from where it is. Decisions staged on a state are submitted
// first, also if somebody else drives the run. With a nil agent it is found among
// Runner.Agents. Resuming a run that ended returns its result.
func (r *Runner) Resume(ctx context.Context, agent *Agent, from Resumable, opts *RunOptions) (*Result, error) {
	return r.drive(ctx, nil, func(d *drive) error { return d.resume(ctx, agent, from, opts.orDefault()) })
}

// ResumeStream is Resume, shown as it happens, as Stream shows Run.
func (r *Runner) ResumeStream(ctx context.Context, agent *Agent, from Resumable, opts *RunOptions) iter.Seq2[Event, error] {
	return r.stream(ctx, func(d *drive) error { return d.resume(ctx, agent, from, opts.orDefault()) })
}

func (r *Runner) stream(ctx context.Context, open func(*drive) error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		gone := false
		emit := func(ev Event) bool {
			gone = gone || !yield(ev, nil)
			return !gone
		}
		res, err := r.drive(ctx, emit, open)
		switch {
		case gone:
		case err != nil:
			yield(nil, err)
		case res.Waiting():
			yield(&Paused{State: res.State(), Interruptions: res.Interruptions, Result: res}, nil)
		default:
			yield(&Done{Result: res}, nil)
		}
	}
}

// drive is the one path of run, stream and resume.
func (r *Runner) drive(ctx context.Context, emit func(Event) bool, open func(*drive) error) (*Result, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	d := r.newDrive(ctx, emit)
	defer d.cancel(nil)
	d.engine = r.Engine
	err := d.opened(open)
	switch {
	case d.engine != nil:
		return d.onEngine(err)
	case err != nil:
		return nil, err
	}
	return d.run()
}

// opened opens the drive. A panic of what an application gave, a session that cannot say its
// id or a model its Info, is an error, and leaves no claim behind.
func (d *drive) opened(open func(*drive) error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		d.release()
		if d.granted != nil {
			d.letGo(nil)
		}
		if v := recover(); v != nil {
			err = &PanicError{In: "the beginning of the run", Value: v, Stack: string(debug.Stack())}
		}
	}()
	err = open(d)
	returned = true
	return err
}

// begin opens a new run, or attaches to the one that has the id.
func (d *drive) begin(ctx context.Context, agent *Agent, input Input, opts *RunOptions) error {
	if err := checkEngine(d.engine, opts); err != nil {
		return err
	}
	started, err := d.prepare(agent, input, opts)
	if err != nil {
		return err
	}
	if err := d.claim(ctx, started.Run, 0); err != nil {
		re := &RunError{Run: started.Run, Err: err}
		if re.State, _ = d.r.State(d.bg, started.Run); re.State != nil && !sameStart(re.State.fold().Started(), started) {
			re.Err = ErrRunExists
		}
		return re
	}
	if d.records.size == 0 {
		return d.first(ctx, started)
	}
	d.resumed = true
	if !sameStart(d.m.Started(), started) {
		d.release()
		return &RunError{Run: started.Run, State: d.state(), Err: ErrRunExists}
	}
	return d.attach(opts)
}

// prepare returns the first fact of a run. What is wrong with it is an error here, before
// anything happened.
func (d *drive) prepare(agent *Agent, input Input, opts *RunOptions) (started *journal.Started, err error) {
	if d.root.team, err = d.r.teamToStart(agent, opts); err != nil {
		return nil, err
	}
	if started, err = d.r.started(&d.root.team, input, opts); err != nil {
		return nil, err
	}
	if started.Context, err = opts.recordedContext(); err != nil {
		return nil, err
	}
	d.root.opts, d.root.session, d.context = opts, opts.Session, started.Context
	return started, nil
}

// first begins a run that the store does not have. A run on a session or a conversation is
// recorded before anything else happens; the others with their first turn.
func (d *drive) first(ctx context.Context, started *journal.Started) error {
	d.step(started)
	d.step(d.claimed)
	d.enlist()
	if conversation(d.m) == "" {
		return nil
	}
	if err := d.admit(ctx, d.encode(d.m.Flush().Facts)); err != nil {
		d.release()
		return &RunError{Run: started.Run, Err: err}
	}
	d.drained = time.Now()
	return nil
}

// sameStart says that two beginnings are those of one run. Its session is compared when
// it is bound.
func sameStart(a, b *journal.Started) bool {
	return a.Digest == b.Digest && a.Agent == b.Agent && a.Conversation == b.Conversation && a.Previous == b.Previous && a.Auto == b.Auto
}

// teamToStart returns the agents that a run may come to. What is wrong with one of them or
// with the options is an error here, before anything happened.
func (r *Runner) teamToStart(agent *Agent, opts *RunOptions) (t team, err error) {
	if agent == nil {
		return t, agent.check(nil, nil)
	}
	if t, err = teamOf(agent); err != nil {
		return t, err
	}
	if err := t.check(opts, r.store(), opts.server(), nil); err != nil {
		return t, err
	}
	return t, opts.check(agent.model(opts), false)
}

// started is the first fact of a run. What is wrong with the input is an error here.
func (r *Runner) started(t *team, input Input, opts *RunOptions) (*journal.Started, error) {
	agent := t.root
	if err := checkInput(input, opts.server()); err != nil {
		return nil, err
	}
	s := &journal.Started{Run: opts.ID, Agent: agent.key(), Digest: inputDigest(agent.key(), input), Input: slices.Clone(input),
		Session: r.sessionRef(opts.Session), Conversation: opts.ConversationID, Previous: opts.PreviousResponseID,
		Auto: opts.AutoPreviousResponseID, MaxTurns: opts.MaxTurns, Parallel: opts.MaxParallelTools,
		UniqueCallIDs: t.uniqueCallIDs(opts), OmitReasoningIDs: opts.OmitReasoningIDs, Guards: guardsOf(agent, opts),
		Queue: opts.Queue, Priority: opts.Priority, Machine: machine.Version}
	if s.Run == "" {
		s.Run = newRunID()
	}
	if s.MaxTurns == 0 {
		s.MaxTurns = DefaultMaxTurns
	}
	s.MaxTurns = max(s.MaxTurns, 0)
	return s, nil
}

// checkInput refuses what no model server would take: an item that is none, a call
// without its output, an output without its call unless the server has that. An
// approval cannot be inferred from a place in a list.
func checkInput(input Input, server bool) error {
	if err := checkItems(input); err != nil {
		return &ConfigError{Field: "input", Problem: err.Error()}
	}
	if open := openCalls(input); len(open) > 0 {
		return &ConfigError{Field: "input", Problem: fmt.Sprintf("call %q has no output; a run does not execute calls it did not make", open[0].Head().CallID)}
	}
	if orphan, ok := orphanOutput(input); ok && !server {
		return &ConfigError{Field: "input", Problem: fmt.Sprintf("the output for call %q has no call before it", orphan.Head().CallID)}
	}
	return nil
}

// orphanOutput returns the first output without a call before it that has none yet.
func orphanOutput(items []Item) (Item, bool) {
	type pair struct {
		t  item.Type
		id string
	}
	open := make(map[pair]int)
	for _, it := range items {
		h := it.Head()
		switch {
		case item.IsCall(h.Type):
			open[pair{item.OutputType(h.Type), h.CallID}]++
		case !item.IsOutput(h.Type) || h.CallID == "":
		case open[pair{h.Type, h.CallID}] == 0:
			return it, true
		default:
			open[pair{h.Type, h.CallID}]--
		}
	}
	return Item{}, false
}

// checkItems refuses what a ledger could not give back.
func checkItems(items []Item) error {
	for i, it := range items {
		if it.IsZero() {
			return fmt.Errorf("pawl: item %d is empty", i)
		}
		if _, err := item.ParseString(it.Raw()); err != nil {
			return because(fmt.Errorf("pawl: item %d", i), err)
		}
	}
	return nil
}

// openCalls returns the calls without an output behind them.
func openCalls(items []Item) []Item {
	type pair struct {
		t  item.Type
		id string
	}
	open := make(map[pair][]int)
	var calls []Item
	for _, it := range items {
		h := it.Head()
		if it.NeedsOutput() {
			of := pair{item.OutputType(h.Type), h.CallID}
			open[of] = append(open[of], len(calls))
			calls = append(calls, it)
			continue
		}
		of := pair{h.Type, h.CallID}
		if n := len(open[of]); n > 0 && h.CallID != "" {
			calls[open[of][n-1]] = Item{}
			open[of] = open[of][:n-1]
		}
	}
	var list []Item
	for _, it := range calls {
		if !it.IsZero() {
			list = append(list, it)
		}
	}
	return list
}

func inputDigest(agent string, input Input) item.Digest {
	h := sha256.New()
	h.Write([]byte(agent))
	for _, it := range input {
		h.Write([]byte{0})
		h.Write([]byte(it.Raw()))
	}
	return item.Digest(h.Sum(nil))
}

// newRunID returns a UUIDv7 (RFC 9562, section 5.7).
func newRunID() string {
	var u [16]byte
	rand.Read(u[:])
	ms := uint64(time.Now().UnixMilli())
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// State returns the state of a run: of a stored one, or of one this Runner has in
// memory, also after a reader left its stream. ErrUnknownRun if there is none.
func (r *Runner) State(ctx context.Context, run string) (*RunState, error) {
	if err := r.checkStore(); err != nil {
		return nil, err
	}
	records, err := r.store().Read(ctx, run, 0)
	if err == nil && len(records) == 0 {
		err = ErrUnknownRun
	}
	if err != nil {
		return nil, &RunError{Run: run, Err: err}
	}
	m, err := replay(records)
	if err != nil {
		return nil, &RunError{Run: run, Err: err}
	}
	s := newState(ledgerOf(records), nil)
	s.machine = m
	return s, nil
}

// agentFor finds the agent of a run.
func (r *Runner) agentFor(agent *Agent, key string) (*Agent, error) {
	if agent != nil {
		if agent.key() != key {
			return nil, fmt.Errorf("%w: it is %q, not %q", ErrWrongAgent, key, agent.key())
		}
		return agent, nil
	}
	for _, a := range r.Agents {
		if a != nil && a.key() == key {
			return a, nil
		}
	}
	return nil, unknownAgent(key)
}

func unknownAgent(key string) error {
	return fmt.Errorf("%w: %q; give it, or add it to Runner.Agents", ErrUnknownAgent, key)
}
