package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// setup is what the calls of a cell have in common, as data.
type setup struct {
	Carrier carrier
	Run     string
	Tools   []tool // of an agent that is alone
	Team    []member
	// LooseIDs says that the model does not vouch for the ids of its calls.
	LooseIDs bool
	Session  sessionKind
	URL      string // of the model server
	Host     string // its name
	Address  string // on the host, of the store, or of the session alone
	Log      string // of effects
	Grace    time.Duration
	Lease    time.Duration
}

// sessionKind says what session a run has.
type sessionKind string

const (
	noSession sessionKind = ""
	// inStore is a session of the host. With the store carrier of a store it is in the run's own database.
	inStore sessionKind = "in the store"
	// plain is a session that knows nothing of batches, as a user might write one.
	plain sessionKind = "plain"
)

// tool describes a tool whose body records its effect and returns a fixed text.
type tool struct {
	Name, Output string
	// Does names the effect if the name does not.
	Does string
	// Gated tools ask for approval.
	Gated bool
	// GatedFrom is the amount from which a tool asks, 0 for none.
	GatedFrom int
	// ShowContext adds RunOptions.Context to the output.
	ShowContext bool
	// Class is the tool's effect class. The far side of an idempotent tool honours the key.
	Class pawl.Effect
	// Lookup says that the far side can be asked what became of a call.
	Lookup bool
	// AnswerLost says that the first attempt takes effect and its answer gets lost.
	AnswerLost bool
	// Timeout bounds the tool.
	Timeout time.Duration
	// Description and Schema replace those of the other tools.
	Description, Schema string
	// Source is the label of the source that lists the tool, empty for one of the agent's own.
	Source string
}

// from returns the tool as a source lists it.
func (t tool) from(source string) tool {
	t.Source = source
	return t
}

// source is a source of tools.
type source struct {
	label string
	tools []pawl.Tool
}

func (s *source) Label() string { return s.label }

func (s *source) Tools(context.Context, *pawl.RunContext) ([]pawl.Tool, error) { return s.tools, nil }

// asks reports whether a call with these arguments needs a decision.
func (t tool) asks(args string) bool {
	var a arguments
	// What is no amount is none.
	_ = json.Unmarshal([]byte(args), &a)
	return t.Gated || t.GatedFrom > 0 && a.Amount >= t.GatedFrom
}

type arguments struct {
	Amount int `json:"amount"`
}

// happened reports whether a call took effect already.
func happened(log *pawltest.EffectLog, key string) (bool, error) {
	effects, err := log.Effects()
	return slices.ContainsFunc(effects, func(e pawltest.Effect) bool { return e.Key == key }), err
}

// take takes effect, which the far side of an idempotent tool does once for a key.
func (t tool) take(log *pawltest.EffectLog, c *pawl.Call) error {
	if t.Class == pawl.Idempotent {
		if before, err := happened(log, c.Key); before || err != nil {
			return err
		}
	}
	return log.Record(pawltest.Effect{Tool: t.does(), Key: c.Key, CallID: c.ID, Attempt: c.Attempt, Arguments: c.Arguments})
}

// lookUp asks the far side what became of a call.
func (t tool) lookUp(log *pawltest.EffectLog, c *pawl.Call) (pawl.Recovered[string], error) {
	switch before, err := happened(log, c.Key); {
	case err != nil:
		return pawl.Recovered[string]{}, err
	case before:
		return pawl.Recovered[string]{Answer: pawl.Happened, Output: t.Output}, nil
	}
	return pawl.Recovered[string]{Answer: pawl.DidNotHappen}, nil
}

// make makes the tool as it is in a call of the API.
func (t tool) make(log *pawltest.EffectLog, r request) pawl.Tool {
	at := r.Dies
	about := cmp.Or(t.Description, "For tests.")
	body := func(ctx context.Context, c *pawl.Call) (string, error) {
		if before := r.Before[c.ID]; before != nil {
			if err := before(ctx); err != nil {
				return "", err
			}
		}
		if r.Gate != "" {
			if err := waitAt(r.Gate); err != nil {
				return "", err
			}
		}
		at.here(beforeEffect)
		if err := t.take(log, c); err != nil {
			return "", err
		}
		at.here(afterEffect)
		if r.StopAt == c.ID && r.Mode == run {
			r.stop()
		}
		switch {
		case t.AnswerLost && c.Attempt == 1:
			return "", fmt.Errorf("%w: the connection broke", pawl.ErrOutcomeUnknown)
		case t.ShowContext:
			return fmt.Sprint(t.Output, " ", c.Value), nil
		}
		return t.Output, nil
	}
	if t.Schema != "" {
		f := pawl.RawFunc{Name: t.Name, Description: about, Schema: t.Schema, Run: body}
		if t.Gated {
			f.Approve = func(context.Context, *pawl.Call) (pawl.Gate, error) { return pawl.Ask, nil }
		}
		return pawl.NewRawTool(f)
	}
	f := pawl.Func[arguments, string]{Name: t.Name, Description: about, Effect: t.Class, Timeout: t.Timeout,
		Run: func(ctx context.Context, c *pawl.Call, _ arguments) (string, error) { return body(ctx, c) }}
	if t.Lookup {
		f.Recover = func(_ context.Context, c *pawl.Call, _ arguments) (pawl.Recovered[string], error) {
			return t.lookUp(log, c)
		}
	}
	switch {
	case at == inRule:
		f.Approve = func(context.Context, *pawl.Call, arguments) (pawl.Gate, error) {
			at.here(inRule)
			return pawl.Deny, nil
		}
	case t.Gated:
		f.Approve = pawl.AlwaysAsk[arguments]
	case t.GatedFrom > 0:
		f.Approve = func(_ context.Context, _ *pawl.Call, in arguments) (pawl.Gate, error) {
			if in.Amount >= t.GatedFrom {
				return pawl.Ask, nil
			}
			return pawl.Allow, nil
		}
	}
	return pawl.NewTool(f)
}

// contexts are the values that a request can name. "same" is equal to that of the start, in whatever process.
type customer struct{ ID int }

func contextValue(name string) any {
	switch name {
	case "same", "start":
		return "alice"
	case "new":
		return "bob"
	case "struct":
		return customer{7}
	}
	return nil
}

// place is where calls are made: a process's hold on its agent, its runner and its files.
type place struct {
	setup
	backend Backend
	client  *http.Client
	runner  pawl.Runner // of a process without a store

	workerMu   sync.Mutex
	stopWorker func() error // nil without one
}

func open(s setup) (*place, error) {
	h, err := hostNamed(s.Host)
	if err != nil {
		return nil, err
	}
	b, err := h.Open(s.Address)
	if err != nil {
		return nil, err
	}
	return &place{setup: s, backend: b, client: &http.Client{Transport: &http.Transport{}}}, nil
}

func (p *place) close() error {
	err := p.leave()
	p.client.CloseIdleConnections()
	return errors.Join(err, p.backend.Close())
}

// broken is a store whose appends go wrong by plan, and which takes no late result either:
// what its appends lose is lost with the process.
type broken struct{ *journaltest.FaultyDriver }

func (b broken) Post(ctx context.Context, run string, e journal.Entry) error {
	if strings.HasPrefix(e.Key, "late/") {
		return journaltest.ErrLost
	}
	return b.FaultyDriver.Post(ctx, run, e)
}

// options makes the runner and the options of a call.
func (p *place) options(r request) (*pawl.Runner, *pawl.RunOptions) {
	opts := &pawl.RunOptions{MaxTurns: r.MaxTurns, Context: contextValue(r.Context),
		Supersede: r.Supersede, ConversationID: r.Conversation, PreviousResponseID: r.Previous, AutoPreviousResponseID: r.Auto}
	if r.Window > 0 {
		opts.MergeInput = func(_ context.Context, history, input []item.Item) ([]item.Item, error) {
			return slices.Concat(history[max(0, len(history)-r.Window+1):], input), nil
		}
	}
	if r.Repeats {
		opts.FilterInput = repeatOutputs
	}
	if r.Filtered {
		opts.HandoffFilter = pawl.RemoveTools()
	}
	if r.TellModel {
		opts.ToolNotFound = pawl.TellModel
	}
	if r.Input != nil {
		opts.ID = p.Run
	}
	runner := &p.runner
	order := newOrder(r, p.Log)
	if p.Carrier == store {
		runner = &pawl.Runner{}
		p.backend.Bind(runner)
		if r.JournalFaults != nil {
			runner.Store = broken{journaltest.Faulty(runner.Store, r.JournalFaults)}
		}
		if r.Slow != "" && runner.Store != nil {
			runner.Store = &orderedStore{runner.Store, order}
		}
	} else if r.Slow != "" {
		runner.Store = &orderedStore{journal.NewMemory(), order}
	}
	if p.Grace > 0 {
		runner.Grace = p.Grace
	}
	if p.Lease > 0 {
		runner.Lease = p.Lease
	}
	id := sessionID
	if r.OtherSession != "" {
		id = r.OtherSession
	}
	own := p.backend.Session(id)
	if p.Carrier == store && runner.Store != nil {
		own = ownSession{own, runner.Store}
	}
	var s session.Session = own
	switch {
	case p.Session == noSession || r.Fork != "":
	case p.Session == plain:
		opts.Session = pawltest.NewFaultySession(dyingSession{s, r.Dies, order}, r.SessionFaults)
	case r.Input != nil || r.OtherSession != "" || p.Carrier != store:
		opts.Session = s
	default: // a stored run finds its session by itself
		runner.Sessions = func(string) session.Session { return s }
	}
	return runner, opts
}

const sessionID = "chat"

// ownSession is a session of the store, which may be one that fails by plan.
type ownSession struct {
	Session
	driver journal.Driver
}

func (s ownSession) Store() journal.Driver { return s.driver }

// document reads the state a call left.
func (o *outcome) document() (*pawl.RunState, error) {
	if o.Document == nil {
		return nil, errors.New("the call left no state")
	}
	return pawl.ParseRunState(o.Document)
}

// worker makes a runner that drives any run of the place, and the options of its runs, as they are in a call of the API.
func (p *place) worker(r request) (*pawl.Runner, func(string) *pawl.RunOptions) {
	r.Input = nil
	called, opts := p.options(r)
	runner := &pawl.Runner{Agents: []*pawl.Agent{p.agent(r)}, Grace: p.Grace, Lease: p.Lease}
	p.backend.Bind(runner)
	runner.Store = called.Store
	runner.Sessions = called.Sessions
	if opts.Session != nil {
		runner.Sessions = func(string) session.Session { return opts.Session }
	}
	return runner, func(string) *pawl.RunOptions {
		own := *opts
		own.Session, own.MaxTurns = nil, 0
		return &own
	}
}

// serve has a worker in this process while calls are made here, if they need one.
func (p *place) serve(r request) error {
	h, err := hostNamed(p.Host)
	if err != nil || !h.Engine || p.Carrier != store {
		return err
	}
	p.workerMu.Lock()
	defer p.workerMu.Unlock()
	if err := p.leave(); err != nil {
		return err
	}
	runner, opts := p.worker(r)
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- p.backend.Work(ctx, runner, opts, func() { close(ready) }) }()
	select {
	case <-ready:
	case err = <-ended:
		ended <- err
	}
	p.stopWorker = func() error {
		cancel()
		return <-ended
	}
	return err
}

// leave ends the worker of the place, if there is one.
func (p *place) leave() error {
	stop := p.stopWorker
	if stop == nil {
		return nil
	}
	p.stopWorker = nil
	return stop()
}

// travelling leaves of the options what a caller can hand over to an engine. The rest is the worker's.
func (p *place) travelling(opts *pawl.RunOptions) *pawl.RunOptions {
	if h, err := hostNamed(p.Host); err != nil || !h.Engine || p.Carrier != store {
		return opts
	}
	own := *opts
	own.MergeInput, own.FilterInput, own.HandoffFilter, own.ToolNotFound, own.Context = nil, nil, nil, pawl.FailRun, nil
	return &own
}

// late counts the late results in the ledger of the run.
func (p *place) late(ctx context.Context) (n int, err error) {
	runner, _ := p.options(request{})
	state, err := runner.State(ctx, p.Run)
	if err != nil {
		return 0, err
	}
	doc, err := json.Marshal(state)
	return strings.Count(string(doc), `\"late\":true`), err
}
