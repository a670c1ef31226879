package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// script is a model that answers from a list of steps and remembers what it was asked.
type script struct {
	info model.Info

	mu    sync.Mutex
	steps []step
	asked []asked
}

// step answers one call.
type step func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error)

// asked is what one call asked.
type asked struct {
	Instructions, Prompt   string
	Input                  []pawl.Item
	Previous, Conversation string
	Tools                  []string
	Settings               *model.Settings
}

func newScript(steps ...step) *script { return &script{steps: steps} }

func (s *script) Info() model.Info { return s.info }

func (s *script) Call(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	a := asked{Instructions: req.Static.Instructions, Prompt: req.Static.Prompt, Input: slices.Clone(req.Input.Items()), Previous: req.PreviousResponseID,
		Conversation: req.ConversationID, Settings: req.Static.Settings}
	for _, t := range req.Static.Tools {
		a.Tools = append(a.Tools, t.Name)
	}
	s.mu.Lock()
	s.asked = append(s.asked, a)
	n := len(s.asked)
	s.mu.Unlock()
	if n > len(s.steps) {
		return nil, fmt.Errorf("script: call %d of %d", n, len(s.steps))
	}
	return s.steps[n-1](ctx, req, emit)
}

// calls returns what was asked so far.
func (s *script) calls() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// items is a step that answers with items; a stream shows the text of messages.
func items(list ...pawl.Item) step {
	return func(_ context.Context, _ *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
		for i, it := range list {
			if m, err := it.Message(); err == nil && emit != nil {
				if !emit(&model.Event{Kind: model.EventTextDelta, Type: "text", Delta: m.Text(), OutputIndex: i}) {
					return nil, model.ErrAbandoned
				}
			}
		}
		return &model.Response{Items: list, Usage: &model.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5}}, nil
	}
}

// response is a step that answers with items under an id.
func response(id string, list ...pawl.Item) step {
	return func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
		res, err := items(list...)(ctx, req, emit)
		if err == nil {
			res.ID = id
		}
		return res, err
	}
}

// says is a step that answers with a message.
func says(text string) step { return items(item.MessageItem("", text)) }

// calling is a step that calls tools; see fc.
func calling(list ...pawl.Item) step { return items(list...) }

// failing is a step that fails.
func failing(err error) step {
	return func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) {
		return nil, err
	}
}

// hanging is a step that answers when its context ends, and says that it was entered.
func hanging(entered chan<- struct{}) step {
	return func(ctx context.Context, _ *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// fc is a function call as a model writes it.
func fc(callID, tool, args string) pawl.Item { return item.FunctionCallItem("", callID, tool, args) }

// effects counts what tools did.
type effects struct {
	mu   sync.Mutex
	list []string
}

func (e *effects) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, fmt.Sprintf(format, args...))
}

func (e *effects) want(t *testing.T, want ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if diff := cmp.Diff(want, e.list); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// charge is the argument of most tools here.
type charge struct {
	Cents int `json:"cents"`
}

// charging is a tool that notes what it did and returns a receipt.
func charging(name string, e *effects, change func(*pawl.Func[charge, string])) pawl.Tool {
	f := pawl.Func[charge, string]{Name: name, Run: func(_ context.Context, c *pawl.Call, in charge) (string, error) {
		e.add("%s %d", name, in.Cents)
		return fmt.Sprintf("receipt %d", in.Cents), nil
	}}
	if change != nil {
		change(&f)
	}
	return pawl.NewTool(f)
}

// asking makes a tool ask for approval of every call.
func asking(f *pawl.Func[charge, string]) { f.Approve = pawl.AlwaysAsk[charge] }

func agentWith(m model.Model, tools ...pawl.Tool) *pawl.Agent {
	return &pawl.Agent{Name: "support", Model: m, Tools: tools}
}

// outputs returns the texts of the outputs in a list, by call id, in order.
func outputs(list []pawl.Item) []string {
	var out []string
	for _, it := range list {
		h := it.Head()
		if o, err := it.FunctionCallOutput(); err == nil {
			out = append(out, h.CallID+": "+o.Text)
		} else if o, err := it.CustomToolCallOutput(); err == nil {
			out = append(out, h.CallID+": "+o.Text)
		}
	}
	return out
}

// paired fails unless every call of a list has exactly one output, behind it, and no
// output is without its call.
func paired(t *testing.T, what string, list []pawl.Item) {
	t.Helper()
	open := map[string]int{}
	for i, it := range list {
		h := it.Head()
		switch {
		case it.NeedsOutput():
			open[string(item.OutputType(h.Type))+h.CallID]++
		case item.IsOutput(h.Type):
			key := string(h.Type) + h.CallID
			if open[key]--; open[key] < 0 {
				t.Errorf("%s: item %d is an output without a call: %s", what, i, it)
			}
		}
	}
	for key, n := range open {
		if n > 0 {
			t.Errorf("%s: %d calls without an output: %s", what, n, key)
		}
	}
}

// sameViews fails unless the replay list, the session and the model's input say the
// same. s may be nil; m is the model of a run that keeps its own history.
func sameViews(t *testing.T, res *pawl.Result, m *script, s session.Session) {
	t.Helper()
	replay := []pawl.Item(res.ToInputList())
	paired(t, "replay", replay)
	if s != nil {
		held, err := s.Items(context.Background(), -1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(replay, held); diff != "" {
			t.Errorf("session (-replay +session):\n%s", diff)
		}
	}
	for i, a := range m.calls() {
		paired(t, fmt.Sprintf("request %d", i+1), a.Input)
		if len(a.Input) > len(replay) || !slices.Equal(a.Input, replay[:len(a.Input)]) {
			t.Errorf("request %d is no beginning of the replay:\n%s", i+1, cmp.Diff(replay, a.Input))
		}
	}
	if added := res.NewItems(); len(added) > len(replay) || !slices.Equal(added, replay[len(replay)-len(added):]) {
		t.Errorf("new items are no end of the replay:\n%s", cmp.Diff(replay, added))
	}
}

// replays fails unless the stored ledger of a run can be read again, and is the run's.
func replays(t *testing.T, r *pawl.Runner, run string) *pawl.RunState {
	t.Helper()
	s, err := r.State(context.Background(), run)
	if err != nil {
		t.Fatalf("the ledger of run %s cannot be read: %v", run, err)
	}
	return s
}

// viaJSON takes a state through its document.
func viaJSON(t *testing.T, s *pawl.RunState) *pawl.RunState {
	t.Helper()
	doc, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	read, err := pawl.ParseRunState(doc)
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	return read
}

// stateOf returns the state an error carries.
func stateOf(t *testing.T, err error) *pawl.RunState {
	t.Helper()
	var re *pawl.RunError
	if !errors.As(err, &re) {
		t.Fatalf("%v is no *RunError", err)
	}
	if re.State == nil {
		t.Fatalf("%v carries no state", err)
	}
	return re.State
}

// must fails unless there is a result.
func must(t *testing.T) func(*pawl.Result, error) *pawl.Result {
	return func(res *pawl.Result, err error) *pawl.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
}

// mode drives a run, streaming or not.
type mode struct {
	name   string
	run    func(r *pawl.Runner, ctx context.Context, a *pawl.Agent, in pawl.Input, o *pawl.RunOptions) (*pawl.Result, error)
	resume func(r *pawl.Runner, ctx context.Context, a *pawl.Agent, from pawl.Resumable, o *pawl.RunOptions) (*pawl.Result, error)
}

var modes = []mode{
	{"run", (*pawl.Runner).Run, (*pawl.Runner).Resume},
	{"stream",
		func(r *pawl.Runner, ctx context.Context, a *pawl.Agent, in pawl.Input, o *pawl.RunOptions) (*pawl.Result, error) {
			return pawl.Collect(r.Stream(ctx, a, in, o))
		},
		func(r *pawl.Runner, ctx context.Context, a *pawl.Agent, from pawl.Resumable, o *pawl.RunOptions) (*pawl.Result, error) {
			return pawl.Collect(r.ResumeStream(ctx, a, from, o))
		}},
}

// eachMode runs a test for run and for stream.
func eachMode(t *testing.T, f func(t *testing.T, m mode)) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { f(t, m) })
	}
}

// stores makes the stores that tests go over.
var stores = map[string]func(t *testing.T) journal.Driver{
	"memory": func(*testing.T) journal.Driver { return journal.NewMemory() },
	"sqlite": func(t *testing.T) journal.Driver { return openSQLite(t, filepath.Join(t.TempDir(), "runs.db")) },
}

func openSQLite(t *testing.T, path string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.OpenSQLite(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// storeOf copies a run of a Runner that keeps it in memory into a store.
func storeOf(t *testing.T, r *pawl.Runner, run string) journal.Driver {
	t.Helper()
	m := journal.NewMemory()
	to := &pawl.Runner{Store: m}
	doc, err := json.Marshal(replays(t, r, run))
	if err != nil {
		t.Fatal(err)
	}
	importDocument(t, m, doc)
	replays(t, to, run)
	return m
}

// importDocument puts the ledger of a document into a store.
func importDocument(t *testing.T, m *journal.Memory, doc []byte) {
	t.Helper()
	var d struct {
		Run   string
		Facts []json.RawMessage
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	var recs []journal.Record
	for _, f := range d.Facts {
		rec, err := journal.ReadRecordJSON(f)
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	if err := m.Import(d.Run, recs); err != nil {
		t.Fatal(err)
	}
}

// settles waits until no more goroutines run than before.
func settles(t *testing.T, before int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before+2 { // those of a store that is open
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}
