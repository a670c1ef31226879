package pawl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

var update = flag.Bool("update", false, "write the files of the corpus that are missing")

// corpusDir has documents as the first version of their schema wrote them. They are read by every later version, so
// -update writes what is missing and never what is there.
const corpusDir = "testdata/runstate/1"

type deskOrder struct {
	Order int    `json:"order"`
	Note  string `json:"note,omitempty"`
}

// deskAgent is the agent of the corpus. Its tools say what they did in effects.
func deskAgent(effects *[]string, steps ...pawltest.ScriptedStep) *pawl.Agent {
	did := func(c *pawl.Call) {
		*effects = append(*effects, fmt.Sprintf("%s %s attempt %d by %q", c.Tool, c.Arguments, c.Attempt, c.ApprovedBy))
	}
	m := pawltest.NewScriptedModel(steps...)
	m.ServerState = true
	m.Usage = &model.Usage{InputTokens: 120, CachedInputTokens: 100, OutputTokens: 30, ReasoningTokens: 20, TotalTokens: 150}
	return &pawl.Agent{Name: "Support desk", Key: "desk", Instructions: pawl.Text("Settle what the customer asks."), Model: m, Tools: []pawl.Tool{
		pawl.NewTool(pawl.Func[deskOrder, string]{Name: "look", Description: "Looks an order up.", Effect: pawl.ReadOnly,
			Run: func(_ context.Context, c *pawl.Call, in deskOrder) (string, error) {
				did(c)
				return "Köln <b>& more</b> \u2028", nil
			}}),
		pawl.NewTool(pawl.Func[deskOrder, string]{Name: "refund", Description: "Pays back.", Effect: pawl.Idempotent, Approve: pawl.AlwaysAsk[deskOrder],
			Run: func(_ context.Context, c *pawl.Call, in deskOrder) (string, error) {
				did(c)
				return "refunded", nil
			}}),
		pawl.NewTool(pawl.Func[deskOrder, string]{Name: "mail", Description: "Writes to the customer.", OnUnknown: pawl.UnknownWait,
			Run: func(_ context.Context, c *pawl.Call, in deskOrder) (string, error) {
				did(c)
				if in.Note != "" {
					return "sent", nil
				}
				return "", pawl.ErrOutcomeUnknown
			}}),
	}}
}

var (
	lookAndRefund = pawltest.ScriptedItems(item.ReasoningItem("rs_1", "I should look first."),
		item.FunctionCallItem("fc_1", "call_1", "look", `{ "order": 9 }`), item.FunctionCallItem("fc_2", "call_2", "refund", `{"order":9}`))
	mailOnly = pawltest.ScriptedItems(item.FunctionCallItem("fc_1", "call_1", "mail", `{"order":9}`))
	allDone  = pawltest.ScriptedText("All done.")
)

// documents are states of every kind, and how a run goes on from them: with alice approving or settling what is open, and
// a model that says "All done.".
var documents = []struct {
	name string
	// make makes the state. Most make it by running deskAgent.
	make    func(t *testing.T) *pawl.RunState
	status  pawl.Status
	open    []string // tools and kinds of the interruptions
	effects []string // of going on
	ends    pawl.Status
	items   []string // of the replay in the end
}{
	{
		name:    "waiting",
		make:    runTo(nil, lookAndRefund),
		status:  pawl.StatusWaiting,
		open:    []string{"refund approval"},
		effects: []string{`refund {"order":9} attempt 1 by "alice"`},
		ends:    pawl.StatusFinished,
		items:   []string{"message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output", "message"},
	},
	{
		name: "staged",
		make: func(t *testing.T) *pawl.RunState {
			s := runTo(nil, lookAndRefund)(t)
			d := pawl.Edit(s.Interruptions()[0].ID, "bob", `{"order":8,"note":"the other one"}`)
			d.Always, d.Why = true, "he meant order 8"
			noError(t, s.Decide(d))
			return s
		},
		status:  pawl.StatusWaiting,
		effects: []string{`refund {"note":"the other one","order":8} attempt 1 by "bob"`},
		ends:    pawl.StatusFinished,
		items:   []string{"message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output", "message"},
	},
	{
		name: "staged-rejection",
		make: func(t *testing.T) *pawl.RunState {
			s := runTo(nil, lookAndRefund)(t)
			noError(t, s.Reject(s.Interruptions()[0], "bob", "Not this one."))
			return s
		},
		status: pawl.StatusWaiting,
		ends:   pawl.StatusFinished,
		items:  []string{"message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output", "message"},
	},
	{
		name: "added-input",
		make: func(t *testing.T) *pawl.RunState {
			s := runTo(nil, lookAndRefund)(t)
			noError(t, s.AddInput(pawl.UserText("Hurry, please.")))
			noError(t, s.Reject(s.Interruptions()[0], "bob", ""))
			return s
		},
		status: pawl.StatusWaiting,
		ends:   pawl.StatusFinished,
		items:  []string{"message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output", "message", "message"},
	},
	{
		name:   "in-doubt",
		make:   runTo(nil, mailOnly),
		status: pawl.StatusWaiting,
		open:   []string{"mail in-doubt"},
		ends:   pawl.StatusFinished,
		items:  []string{"message", "function_call", "function_call_output", "message"},
	},
	{
		name:    "chained",
		make:    runTo(&pawl.RunOptions{AutoPreviousResponseID: true}, lookAndRefund),
		status:  pawl.StatusWaiting,
		open:    []string{"refund approval"},
		effects: []string{`refund {"order":9} attempt 1 by "alice"`},
		ends:    pawl.StatusFinished,
		items:   []string{"message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output", "message"},
	},
	{
		name: "failed",
		make: runTo(nil, pawltest.ScriptedItems(item.FunctionCallItem("fc_1", "call_1", "look", `{"order":9}`)),
			pawltest.ScriptedStep{Err: &model.Error{Status: 503, Message: "overloaded"}}),
		status: pawl.StatusFailed,
		ends:   pawl.StatusFinished,
		items:  []string{"message", "function_call", "function_call_output", "message"},
	},
	{
		name: "unsaved",
		make: func(t *testing.T) *pawl.RunState {
			var effects []string
			store := journaltest.Faulty(journal.NewMemory(), journaltest.Plan{3: journaltest.Absent, 4: journaltest.Absent, 5: journaltest.Absent})
			r := pawl.Runner{Store: store}
			mail := pawltest.ScriptedItems(item.FunctionCallItem("fc_1", "call_1", "mail", `{"order":9,"note":"hello"}`))
			_, err := r.Run(t.Context(), deskAgent(&effects, mail), pawl.UserText("Write to me about order 9."), &pawl.RunOptions{ID: "ticket-unsaved"})
			var lost *pawl.JournalError
			var failed *pawl.RunError
			if !errors.As(err, &lost) || !errors.As(err, &failed) {
				t.Fatalf("err = %v, want a *JournalError", err)
			}
			return failed.State
		},
		status: pawl.StatusRunning,
		ends:   pawl.StatusFinished,
		items:  []string{"message", "function_call", "function_call_output", "message"},
	},
	{
		name:   "finished",
		make:   runTo(nil, pawltest.ScriptedItems(item.MessageItem("msg_1", "“Done”, with 1.0e2 <thanks> 👍"))),
		status: pawl.StatusFinished,
		ends:   pawl.StatusFinished,
		items:  []string{"message", "message"},
	},
	{
		name: "cancelled",
		make: func(t *testing.T) *pawl.RunState {
			var effects []string
			var r pawl.Runner
			agent := deskAgent(&effects, lookAndRefund)
			if _, err := r.Run(t.Context(), agent, pawl.UserText("Refund order 9."), &pawl.RunOptions{ID: "ticket-cancelled"}); err != nil {
				t.Fatal(err)
			}
			noError(t, r.Cancel(t.Context(), "ticket-cancelled", "bob", "sorry"))
			res, err := r.Resume(t.Context(), agent, pawl.RunID("ticket-cancelled"), nil)
			if !errors.Is(err, pawl.ErrCancelled) {
				t.Fatal(err)
			}
			return res.State()
		},
		status: pawl.StatusCancelled,
		ends:   pawl.StatusCancelled,
		items:  []string{"message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output"},
	},
	{
		name: "fork",
		make: func(t *testing.T) *pawl.RunState {
			s, err := runTo(nil, lookAndRefund)(t).Fork("ticket-fork-of-waiting")
			noError(t, err)
			return s
		},
		status:  pawl.StatusWaiting,
		open:    []string{"refund approval"},
		effects: []string{`refund {"order":9} attempt 1 by "alice"`},
		ends:    pawl.StatusFinished,
		items:   []string{"message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output", "message"},
	},
	{
		name: "left",
		make: func(t *testing.T) *pawl.RunState {
			var effects []string
			var r pawl.Runner
			for ev, err := range r.Stream(t.Context(), deskAgent(&effects, lookAndRefund), pawl.UserText("Refund order 9."),
				&pawl.RunOptions{ID: "ticket-left", MaxParallelTools: 1}) {
				noError(t, err)
				if ev, ok := ev.(*pawl.ItemCreated); ok && ev.Name == pawl.ReasoningCreated {
					break
				}
			}
			s, err := r.State(t.Context(), "ticket-left")
			noError(t, err)
			return s
		},
		status:  pawl.StatusRunning,
		open:    []string{"refund approval"},
		effects: []string{`look { "order": 9 } attempt 2 by ""`, `refund {"order":9} attempt 1 by "alice"`},
		ends:    pawl.StatusFinished,
		items:   []string{"message", "reasoning", "function_call", "function_call", "function_call_output", "function_call_output", "message"},
	},
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runTo runs deskAgent until the script ends, and returns the state of what it came to.
func runTo(opts *pawl.RunOptions, steps ...pawltest.ScriptedStep) func(*testing.T) *pawl.RunState {
	return func(t *testing.T) *pawl.RunState {
		t.Helper()
		var o pawl.RunOptions
		if opts != nil {
			o = *opts
		}
		o.ID = "ticket-" + strings.ToLower(filepath.Base(t.Name()))
		var effects []string
		var r pawl.Runner
		res, err := r.Run(t.Context(), deskAgent(&effects, steps...), pawl.UserText("Refund order 9."), &o)
		var failed *pawl.RunError
		if errors.As(err, &failed) {
			return failed.State
		}
		noError(t, err)
		return res.State()
	}
}

// stateSchema is the published schema, resolved.
func stateSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	noError(t, json.Unmarshal([]byte(pawl.StateJSONSchema), &s))
	r, err := s.Resolve(&jsonschema.ResolveOptions{})
	noError(t, err)
	return r
}

func validate(t *testing.T, schema *jsonschema.Resolved, doc []byte) error {
	t.Helper()
	var v any
	noError(t, json.Unmarshal(doc, &v))
	return schema.Validate(v)
}

// What is written fits the published schema, whatever state a run is in.
func TestDocumentsFitTheSchema(t *testing.T) {
	schema := stateSchema(t)
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			doc, err := json.Marshal(d.make(t))
			noError(t, err)
			if err := validate(t, schema, doc); err != nil {
				t.Errorf("%v\n%s", err, doc)
			}
		})
	}
}

// The schema refuses what a reader refuses because of its form.
func TestSchemaRefuses(t *testing.T) {
	schema := stateSchema(t)
	doc, err := json.Marshal(documents[1].make(t))
	noError(t, err)
	for name, change := range map[string][2]string{
		"another schema":     {`"schema":"pawl.run/1"`, `"schema":"pawl.run/2"`},
		"a new member":       {`"run":`, `"new":1,"run":`},
		"no run":             {`"run":`, `"ran":`},
		"a kind nobody has":  {`"k":"started"`, `"k":"began"`},
		"a raw payload":      {`"p":"{\"run\"`, `"p":{},"q":"{\"run\"`},
		"a short salt":       {`"s":"`, `"s":"","z":"`},
		"a new verdict":      {`"verdict":"approve"`, `"verdict":"perhaps"`},
		"a decision on none": {`"interruption":`, `"intermission":`},
	} {
		changed := bytes.Replace(doc, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, doc) {
			t.Fatalf("%s: nothing changed in %s", name, doc)
		}
		if err := validate(t, schema, changed); err == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
		if _, err := pawl.ParseRunState(changed); !errors.Is(err, pawl.ErrState) && !errors.Is(err, pawl.ErrNewerState) {
			t.Errorf("%s: ParseRunState: %v", name, err)
		}
	}
}

// A document written by the first version is understood, and its run goes on, as it did then.
func TestCorpus(t *testing.T) {
	schema := stateSchema(t)
	var names []string
	for _, d := range documents {
		names = append(names, d.name+".json")
		t.Run(d.name, func(t *testing.T) {
			doc := frozen(t, d.name+".json", func() []byte {
				var b bytes.Buffer
				doc, err := json.Marshal(d.make(t))
				noError(t, err)
				noError(t, json.Indent(&b, doc, "", " "))
				return append(b.Bytes(), '\n')
			})
			if err := validate(t, schema, doc); err != nil {
				t.Error(err)
			}
			s, err := pawl.ParseRunState(doc)
			noError(t, err)
			var open []string
			for _, in := range s.Interruptions() {
				open = append(open, in.Tool+" "+string(in.Kind))
			}
			if s.Status() != d.status || !slices.Equal(open, d.open) {
				t.Errorf("%s, open %q; want %s, %q", s.Status(), open, d.status, d.open)
			}

			var effects []string
			res := finish(t, s, &effects)
			if diff := cmp.Diff(d.effects, effects); diff != "" {
				t.Errorf("effects -want +got:\n%s", diff)
			}
			var items []string
			for _, it := range res.ToInputList() {
				items = append(items, string(it.Type()))
			}
			if diff := cmp.Diff(d.items, items); diff != "" {
				t.Errorf("items -want +got:\n%s", diff)
			}
			if res.Status != d.ends {
				t.Errorf("it ended %s, want %s", res.Status, d.ends)
			}
		})
	}
	entries, err := os.ReadDir(corpusDir)
	noError(t, err)
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			t.Errorf("%s: no test reads it", e.Name())
		}
	}
}

// frozen returns a file of the corpus.
func frozen(t *testing.T, name string, make func() []byte) []byte {
	t.Helper()
	path := filepath.Join(corpusDir, name)
	doc, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && *update {
		doc = make()
		noError(t, os.MkdirAll(corpusDir, 0o777))
		err = os.WriteFile(path, doc, 0o666)
	}
	noError(t, err)
	return doc
}

// finish drives a run to its end: alice approves and settles what is open, the model says that all is done.
func finish(t *testing.T, s *pawl.RunState, effects *[]string) *pawl.Result {
	t.Helper()
	var r pawl.Runner
	for range 5 {
		for _, in := range s.Interruptions() {
			d := pawl.Approve(in.ID, "alice")
			if in.Kind == pawl.InDoubt {
				d = pawl.Settle(in.ID, "alice", "it was sent")
			}
			noError(t, s.Decide(d))
		}
		res, err := r.Resume(t.Context(), deskAgent(effects, allDone), s, nil)
		if !errors.Is(err, pawl.ErrCancelled) {
			noError(t, err)
		}
		if !res.Waiting() {
			return res
		}
		s = res.State()
	}
	t.Fatal("the run does not end")
	return nil
}

// A store file of the first version is opened, and the run in it goes on with its session.
func TestStoreCorpus(t *testing.T) {
	const frozenStore = "testdata/store/1.db"
	if _, err := os.Stat(frozenStore); errors.Is(err, os.ErrNotExist) && *update {
		makeStore(t, frozenStore)
	}
	file, err := os.ReadFile(frozenStore)
	noError(t, err)
	path := filepath.Join(t.TempDir(), "pawl.db")
	noError(t, os.WriteFile(path, file, 0o666))

	store, err := sqlstore.OpenSQLite(path, nil)
	noError(t, err)
	defer store.Close()
	r := pawl.Runner{Store: store, Sessions: func(id string) session.Session { return store.Session(id) }}
	in := waitingFor(t, &r)
	noError(t, r.Decide(t.Context(), "ticket-store", pawl.Approve(in.ID, "alice")))
	var effects []string
	res, err := r.Resume(t.Context(), deskAgent(&effects, allDone), pawl.RunID("ticket-store"), nil)
	noError(t, err)
	if diff := cmp.Diff([]string{`refund {"order":9} attempt 1 by "alice"`}, effects); diff != "" {
		t.Errorf("effects -want +got:\n%s", diff)
	}
	items, err := store.Session("alice").Items(t.Context(), -1)
	noError(t, err)
	if diff := cmp.Diff([]pawl.Item(res.ToInputList()), items); diff != "" {
		t.Errorf("session -replay +session:\n%s", diff)
	}
	if len(items) != 9 {
		t.Errorf("the session has %d items, want 9", len(items))
	}
}

func waitingFor(t *testing.T, r *pawl.Runner) pawl.Interruption {
	t.Helper()
	s, err := r.State(t.Context(), "ticket-store")
	noError(t, err)
	if n := len(s.Interruptions()); n != 1 {
		t.Fatalf("%d interruptions, want 1", n)
	}
	return s.Interruptions()[0]
}

// makeStore writes a store with a session of an earlier run, and a run that waits.
func makeStore(t *testing.T, path string) {
	t.Helper()
	noError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	store, err := sqlstore.OpenSQLite(path, nil)
	noError(t, err)
	r := pawl.Runner{Store: store}
	var effects []string
	agent := deskAgent(&effects, pawltest.ScriptedText("Hello, Alice."), lookAndRefund)
	for _, run := range []struct{ id, text string }{{"ticket-hello", "Hello."}, {"ticket-store", "Refund order 9."}} {
		_, err := r.Run(t.Context(), agent, pawl.UserText(run.text), &pawl.RunOptions{ID: run.id, Session: store.Session("alice")})
		noError(t, err)
	}
	noError(t, store.Close())
}
