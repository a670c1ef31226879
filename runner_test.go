package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
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
	Instructions           string
	Input                  []pawl.Item
	Previous, Conversation string
	Tools                  []string
	Settings               *model.Settings
}

func newScript(steps ...step) *script { return &script{steps: steps} }

func (s *script) Info() model.Info { return s.info }

func (s *script) Call(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	a := asked{Instructions: req.Static.Instructions, Input: slices.Clone(req.Input.Items()), Previous: req.PreviousResponseID,
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
		case strings.HasSuffix(string(h.Type), "_output"):
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

func TestRun(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":7}`)), says("done"))
		sess := session.NewMemory("s")
		sess.Append(t.Context(), []pawl.Item{item.UserText("before")})
		var r pawl.Runner
		res := must(t)(mode.run(&r, t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
		if res.FinalOutput != "done" || res.Status != pawl.StatusFinished || res.Run != "r" || res.Turns != 2 {
			t.Errorf("result %+v", res)
		}
		if want := (pawl.Usage{Requests: 2, Input: 6, Output: 4, Total: 10}); res.Usage != want {
			t.Errorf("usage %+v, want %+v", res.Usage, want)
		}
		if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 7"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
		if n := len(res.ToInputList()); n != 7 {
			t.Errorf("the conversation has %d items, want 7", n)
		}
		sameViews(t, res, m, sess)
		if s := replays(t, &r, "r"); s.Status() != pawl.StatusFinished || s.Result().FinalOutput != "done" {
			t.Errorf("stored: %s %q", s.Status(), s.Result().FinalOutput)
		}
	})
}

// A response that waits for a decision is in no view before it is settled.
func TestRunWaits(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		for _, how := range []string{"live", "json", "store"} {
			t.Run(how, func(t *testing.T) {
				var e effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":1}`)), says("done"))
				agent := agentWith(m, charging("charge", &e, asking), charging("look", &e, nil))
				sess := session.NewMemory("s")
				r := &pawl.Runner{}
				res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Session: sess}))
				if !res.Waiting() || len(res.Interruptions) != 1 {
					t.Fatalf("result %+v", res)
				}
				in := res.Interruptions[0]
				if in.Kind != pawl.ApprovalNeeded || in.Tool != "charge" || in.CallID != "c1" || in.Arguments != `{"cents":5}` || in.Agent != "support" {
					t.Errorf("interruption %+v", in)
				}
				e.want(t, "look 1")
				sameViews(t, res, m, sess)
				if n := len(res.NewItems()); n != 0 {
					t.Errorf("%d new items while a call is open", n)
				}
				var from pawl.Resumable
				switch how {
				case "store":
					if err := r.Decide(t.Context(), res.Run, pawl.Approve(in.ID, "ann")); err != nil {
						t.Fatal(err)
					}
					from = pawl.RunID(res.Run)
				default:
					s := res.State()
					if err := s.Approve(in, "ann"); err != nil {
						t.Fatal(err)
					}
					if how == "json" {
						s, r = viaJSON(t, s), &pawl.Runner{}
					}
					from = s
				}
				res = must(t)(mode.resume(r, t.Context(), agent, from, &pawl.RunOptions{Session: sess}))
				if res.FinalOutput != "done" {
					t.Errorf("result %+v", res)
				}
				e.want(t, "look 1", "charge 5")
				if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 1"}, outputs(res.NewItems())); diff != "" {
					t.Error(diff)
				}
				sameViews(t, res, m, sess)
				replays(t, r, res.Run)
			})
		}
	})
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

// One Runner and one Agent serve many runs at once, and leave no goroutine behind.
func TestManyRuns(t *testing.T) {
	const runs = 100
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			var e effects
			tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
				f.Approve = func(_ context.Context, _ *pawl.Call, in charge) (pawl.Gate, error) {
					if in.Cents%2 == 0 {
						return pawl.Allow, nil
					}
					return pawl.Ask, nil
				}
			})
			agent := agentWith(nil, tool)
			agent.Instructions = pawl.Text("be kind")
			store := open(t)
			r := pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
			var wg sync.WaitGroup
			for i := range runs {
				wg.Go(func() {
					m := newScript(calling(fc("c1", "charge", fmt.Sprintf(`{"cents":%d}`, i)), fc("c2", "charge", `{"cents":1000}`)), says(fmt.Sprint("done ", i)))
					var sess session.Session = session.NewMemory(fmt.Sprint("s", i))
					if s, ok := store.(*sqlstore.Store); ok {
						sess = s.Session(fmt.Sprint("s", i))
					}
					id := fmt.Sprint("run-", i)
					res, err := modes[i%2].run(&r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: id, Session: sess, Model: m})
					if err == nil && res.Waiting() {
						if err = r.Decide(t.Context(), id, pawl.Approve(res.Interruptions[0].ID, "ann")); err == nil {
							res, err = modes[i%2].resume(&r, t.Context(), nil, pawl.RunID(id), &pawl.RunOptions{Session: sess, Model: m})
						}
					}
					if err != nil || res.FinalOutput != fmt.Sprint("done ", i) {
						t.Errorf("run %d: %+v, %v", i, res, err)
						return
					}
					sameViews(t, res, m, sess)
				})
			}
			wg.Wait()
			if n := len(e.list); n != 2*runs {
				t.Errorf("%d effects, want %d", n, 2*runs)
			}
			infos, err := store.List(t.Context(), journal.Query{Limit: 1000})
			if err != nil || len(infos) != runs {
				t.Fatalf("%d runs in the store, %v", len(infos), err)
			}
			for _, info := range infos {
				if !info.Ended || info.Holder != nil {
					t.Errorf("%+v", info)
				}
			}
			settles(t, before)
		})
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

// Two drivers that want one run at the same moment: one has it, nothing happens twice.
func TestRaceForARun(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			agent := agentWith(m, charging("charge", &e, asking))
			store := open(t)
			first := pawl.Runner{Store: store}
			s := must(t)(first.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
			if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			doc := marshal(t, s)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					s, err := pawl.ParseRunState(doc)
					if err != nil {
						t.Error(err)
						return
					}
					r := pawl.Runner{Store: store}
					res, err := r.Resume(t.Context(), agent, s, nil)
					switch {
					case errors.Is(err, pawl.ErrClaimed):
					case err != nil:
						t.Error(err)
					case res.FinalOutput != "done":
						t.Errorf("%+v", res)
					}
				})
			}
			wg.Wait()
			e.want(t, "charge 5")
			if n := len(m.calls()); n != 2 {
				t.Errorf("%d model calls", n)
			}
			if s := replays(t, &first, "r"); s.Status() != pawl.StatusFinished {
				t.Errorf("status %s", s.Status())
			}
		})
	}
	t.Run("documents", func(t *testing.T) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
		agent := agentWith(m, charging("charge", &e, asking))
		s := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), nil)).State()
		if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		doc := marshal(t, s)
		var r pawl.Runner
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				s, err := pawl.ParseRunState(doc)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := r.Resume(t.Context(), agent, s, nil); err != nil && !errors.Is(err, pawl.ErrClaimed) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		e.want(t, "charge 5")
	})
}

// A server-managed run sends what its chain lacks, and nothing twice.
func TestServerManaged(t *testing.T) {
	for name, tt := range map[string]struct {
		opts pawl.RunOptions
		// want is what each request continues.
		want []string
	}{
		"conversation": {pawl.RunOptions{ConversationID: "conv"}, []string{"conv", "conv", "conv"}},
		"previous":     {pawl.RunOptions{PreviousResponseID: "resp_0"}, []string{"resp_0", "resp_1", "resp_2"}},
		"auto":         {pawl.RunOptions{AutoPreviousResponseID: true}, []string{"", "resp_1", "resp_2"}},
	} {
		eachMode(t, func(t *testing.T, mode mode) {
			for _, how := range []string{"live", "json"} {
				t.Run(name+"/"+how, func(t *testing.T) {
					var e effects
					m := newScript(
						response("resp_1", item.FunctionCallItem("fc_1", "c1", "charge", `{"cents":5}`), item.FunctionCallItem("fc_2", "c2", "look", `{"cents":1}`), item.FunctionCallItem("fc_3", "c3", "none", `{}`)),
						response("resp_2", item.FunctionCallItem("fc_4", "c4", "charge", `{"cents":6}`)),
						response("resp_3", item.MessageItem("msg_1", "done")))
					m.info = model.Info{ServerState: true, UniqueCallIDs: true}
					agent := agentWith(m, charging("charge", &e, asking), charging("look", &e, nil))
					r := &pawl.Runner{}
					opts := tt.opts
					opts.ToolNotFound = pawl.TellModel
					res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), &opts))
					for res.Waiting() {
						s := res.State()
						if how == "json" {
							s, r = viaJSON(t, s), &pawl.Runner{}
						}
						if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
							t.Fatal(err)
						}
						res = must(t)(mode.resume(r, t.Context(), agent, s, &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
					}
					if res.FinalOutput != "done" || res.LastResponseID != "resp_3" {
						t.Errorf("%+v", res)
					}
					e.want(t, "look 1", "charge 5", "charge 6")
					var continues []string
					var sent [][]string
					for _, a := range m.calls() {
						continues = append(continues, a.Previous+a.Conversation)
						sent = append(sent, outputs(a.Input))
						if len(a.Input) != max(1, len(outputs(a.Input))) {
							t.Errorf("a request sends %v", a.Input)
						}
					}
					if diff := cmp.Diff(tt.want, continues); diff != "" {
						t.Errorf("requests continue (-want +got):\n%s", diff)
					}
					want := [][]string{nil, {"c1: receipt 5", "c2: receipt 1", `c3: Tool "none" not found. Available tools: charge, look.`}, {"c4: receipt 6"}}
					if diff := cmp.Diff(want, sent); diff != "" {
						t.Errorf("outputs sent (-want +got):\n%s", diff)
					}
					paired(t, "replay", res.ToInputList())
				})
			}
		})
	}
}

func TestStateOfUnknownRun(t *testing.T) {
	var r pawl.Runner
	for _, id := range []string{"", "none"} {
		if s, err := r.State(t.Context(), id); !errors.Is(err, pawl.ErrUnknownRun) || s != nil {
			t.Errorf("run %q: %v, %v", id, s, err)
		}
		if err := r.Decide(t.Context(), id, pawl.Approve("1.0#0", "ann")); !errors.Is(err, pawl.ErrUnknownRun) {
			t.Errorf("deciding run %q: %v", id, err)
		}
	}
}

// Run ids that are made are UUIDs of version 7, in order of time.
func TestRunIDs(t *testing.T) {
	var r pawl.Runner
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 50 {
		res := must(t)(r.Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("hi"), nil))
		if !uuid.MatchString(res.Run) || seen[res.Run] {
			t.Errorf("run id %q", res.Run)
		}
		seen[res.Run] = true
	}
}
