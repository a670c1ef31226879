package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// hurried is what the conversation of asking5 is with input that came while it waited.
const hurried = `user: pay
call c1
c1: receipt 5
user: and hurry
user: please
assistant: done`

// Input that comes while a run waits stands behind the outputs of the calls that were open then, once, in every view and in the
// session [S20.4] [S20.5].
func TestAddInput(t *testing.T) {
	for name, add := range map[string]func(t *testing.T, r *pawl.Runner, s *pawl.RunState) *pawl.RunState{
		"runner": func(t *testing.T, r *pawl.Runner, s *pawl.RunState) *pawl.RunState {
			for _, text := range []string{"and hurry", "please"} {
				if err := r.AddInput(t.Context(), "r", pawl.UserText(text)); err != nil {
					t.Fatal(err)
				}
			}
			return replays(t, r, "r")
		},
		"state": func(t *testing.T, r *pawl.Runner, s *pawl.RunState) *pawl.RunState {
			for _, text := range []string{"and hurry", "please"} {
				if err := s.AddInput(pawl.UserText(text)); err != nil {
					t.Fatal(err)
				}
			}
			return s
		},
		"one of each": func(t *testing.T, r *pawl.Runner, s *pawl.RunState) *pawl.RunState {
			if err := errors.Join(r.AddInput(t.Context(), "r", pawl.UserText("and hurry")), s.AddInput(pawl.UserText("please"))); err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		for via, open := range stores {
			t.Run(name+"/"+via, func(t *testing.T) {
				eachMode(t, func(t *testing.T, m mode) {
					var e effects
					s := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
					agent := agentWith(s, charging("charge", &e, asking))
					sess := session.NewMemory("s")
					r := &pawl.Runner{Store: open(t)}
					res := must(t)(m.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
					state := viaJSON(t, add(t, r, res.State()))
					if got, want := len(state.PendingInput()), map[string]int{"runner": 2, "state": 2, "one of each": 1}[name]; got != want {
						t.Errorf("%d pending, want %d", got, want)
					}
					if err := state.Approve(res.Interruptions[0], "ann"); err != nil {
						t.Fatal(err)
					}
					opts := &pawl.RunOptions{Session: sess}
					res = must(t)(m.resume(r, t.Context(), agent, state, opts))
					if got := texts(res.ToInputList()); got != hurried {
						t.Errorf("the conversation is\n%s", got)
					}
					sameViews(t, res, s, sess)
					// The same state once more gives the same result, and adds nothing.
					res = must(t)(m.resume(r, t.Context(), agent, state, opts))
					if got := texts(res.ToInputList()); got != hurried || len(res.State().PendingInput()) != 0 {
						t.Errorf("once more it is\n%s", got)
					}
					e.want(t, "charge 5")
				})
			})
		}
	}
}

// A document carries it to a runner that does not have the run.
func TestAddInputInADocument(t *testing.T) {
	agent := asking5(new(effects))
	state := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
	if err := errors.Join(state.AddInput(pawl.UserText("no")), state.AddInput(pawl.UserText("never"))); err != nil {
		t.Fatal(err)
	}
	other := *state
	state.ClearPendingInput()
	if err := errors.Join(state.AddInput(pawl.UserText("and hurry")), state.AddInput(pawl.UserText("please"))); err != nil {
		t.Fatal(err)
	}
	if got := texts(other.PendingInput()); got != "user: no\nuser: never" {
		t.Errorf("the copy has %s", got)
	}
	fork, err := state.Fork("f")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*pawl.RunState{state, fork} {
		s = viaJSON(t, s)
		if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		agent.Model = newScript(says("done"))
		res := must(t)(new(pawl.Runner).Resume(t.Context(), agent, s, nil))
		if got := texts(res.ToInputList()); got != hurried {
			t.Errorf("%s: the conversation is\n%s", s.Run(), got)
		}
	}
}

// Whoever edits a document cannot put there what AddInput would refuse.
func TestAddedInputOfADocumentIsChecked(t *testing.T) {
	_, _, state := waiting5(t)
	if err := state.AddInput(pawl.UserText("more")); err != nil {
		t.Fatal(err)
	}
	doc := marshal(t, state)
	end := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	var d map[string]json.RawMessage
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"another kind": string(d["facts"]),
		"no record":    `[7]`,
		"edited":       strings.Replace(string(d["input"]), "more", "less", 1),
	} {
		edited := strings.Replace(string(doc), string(d["input"]), bad, 1)
		if _, err := pawl.ParseRunState([]byte(edited)); edited == string(doc) || !errors.Is(err, pawl.ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended := strings.TrimSuffix(string(marshal(t, end.State())), "}") + `,"input":` + string(d["input"]) + "}"
	if _, err := pawl.ParseRunState([]byte(ended)); !errors.Is(err, pawl.ErrState) {
		t.Errorf("of a run that has ended: %v", err)
	}
}

// What may be added is what a run may begin with [M21.1].
func TestInputIsThatOfARun(t *testing.T) {
	raw := func(texts ...string) (list pawl.Input) {
		for _, text := range texts {
			list = append(list, item.FromTrusted(text))
		}
		return list
	}
	const (
		made = `{"type":"function_call","call_id":"c9","name":"pay","arguments":"{}"}`
		paid = `{"type":"function_call_output","call_id":"c9","output":"paid"}`
	)
	for name, tt := range map[string]struct {
		input pawl.Input
		takes bool
	}{
		"a search of the server's":   {raw(`{"type":"tool_search_call","id":"ts_1","status":"completed"}`), true},
		"with what it found":         {raw(`{"type":"tool_search_call","id":"ts_1"}`, `{"type":"tool_search_output","id":"tso_1","tools":[]}`), true},
		"what it found alone":        {raw(`{"type":"tool_search_output","id":"tso_1","tools":[]}`), true},
		"a shell of the server's":    {raw(`{"type":"shell_call","call_id":"s1","action":{},"environment":{"type":"container_reference"}}`), true},
		"a shell of this side":       {raw(`{"type":"shell_call","call_id":"s1","action":{}}`), false},
		"a call":                     {raw(made), false},
		"an output":                  {raw(paid), false},
		"a call and its output":      {raw(made, paid), true},
		"a call and two outputs":     {raw(made, paid, paid), false},
		"two calls and their output": {raw(made, made, paid), false},
		"two calls of one id":        {raw(made, made, paid, paid), true},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, state := waiting5(t)
			added := state.AddInput(tt.input)
			_, began := new(pawl.Runner).Run(t.Context(), agentWith(newScript(says("done"))), tt.input, nil)
			for _, err := range []error{added, began} {
				if tt.takes != (err == nil) || err != nil && !as[*pawl.ConfigError](err) {
					t.Errorf("added: %v; begun with: %v", added, began)
				}
			}
		})
	}
}

// What is refused changes nothing [S20.6].
func TestInputIsRefused(t *testing.T) {
	ends := func(m *pawl.RunOptions, steps ...step) func(t *testing.T) (*pawl.Runner, *pawl.RunState) {
		return func(t *testing.T) (*pawl.Runner, *pawl.RunState) {
			var r pawl.Runner
			opts := *m
			opts.ID = "r"
			res, err := r.Run(t.Context(), agentWith(newScript(steps...), charging("charge", new(effects), nil), charging("ask", new(effects), asking)), pawl.UserText("pay"), &opts)
			if err != nil {
				return &r, stateOf(t, err)
			}
			return &r, res.State()
		}
	}
	ask := calling(fc("c1", "ask", `{"cents":5}`))
	for name, tt := range map[string]struct {
		run   func(t *testing.T) (*pawl.Runner, *pawl.RunState)
		input pawl.Input
		is    func(error) bool
	}{
		"it has ended":      {ends(&pawl.RunOptions{}, says("done")), pawl.UserText("more"), is(pawl.ErrInputRefused)},
		"no turn is left":   {ends(&pawl.RunOptions{MaxTurns: 1}, ask), pawl.UserText("more"), is(pawl.ErrInputRefused)},
		"it is out of them": {ends(&pawl.RunOptions{MaxTurns: 1}, calling(fc("c1", "charge", `{"cents":5}`))), pawl.UserText("more"), is(pawl.ErrInputRefused)},
		"an error waits": {ends(&pawl.RunOptions{ErrorHandlers: one(func(context.Context, *pawl.HandledError) (*pawl.Handled, error) { return nil, nil })}, refusing("no")),
			pawl.UserText("more"), is(pawl.ErrInputRefused)},
		"nothing":         {ends(&pawl.RunOptions{}, ask), nil, as[*pawl.ConfigError]},
		"an empty item":   {ends(&pawl.RunOptions{}, ask), pawl.Input{{}}, as[*pawl.ConfigError]},
		"a call":          {ends(&pawl.RunOptions{}, ask), pawl.Input{fc("c9", "charge", `{}`)}, as[*pawl.ConfigError]},
		"an output alone": {ends(&pawl.RunOptions{}, ask), pawl.Input{item.FunctionOutput("c1", "approved")}, as[*pawl.ConfigError]},
	} {
		t.Run(name, func(t *testing.T) {
			r, state := tt.run(t)
			before := marshal(t, state)
			stored := replays(t, r, "r").Facts()
			if err := state.AddInput(tt.input); !tt.is(err) {
				t.Errorf("state: %v", err)
			}
			if err := r.AddInput(t.Context(), "r", tt.input); !tt.is(err) {
				t.Errorf("runner: %v", err)
			}
			if after := marshal(t, state); string(after) != string(before) || replays(t, r, "r").Facts() != stored {
				t.Errorf("it changed:\n%s\n%s", before, after)
			}
		})
	}
	r, agent, state := waiting5(t)
	if err := r.AddInput(t.Context(), "other", pawl.UserText("more")); !errors.Is(err, pawl.ErrUnknownRun) {
		t.Error(err)
	}
	// Staged, and then the run went on without it.
	if err := state.AddInput(pawl.UserText("more")); err != nil {
		t.Fatal(err)
	}
	if err := r.Decide(t.Context(), "r", pawl.Reject("1.0#0", "ann", "")); err != nil {
		t.Fatal(err)
	}
	must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	if _, err := r.Resume(t.Context(), agent, state, nil); !errors.Is(err, pawl.ErrInputRefused) {
		t.Error(err)
	}
	r, _, state = waiting5(t)
	if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
		t.Fatal(err)
	}
	if err := r.AddInput(t.Context(), "r", pawl.UserText("more")); !errors.Is(err, pawl.ErrInputRefused) {
		t.Error(err)
	}
	if err := state.AddInput(pawl.UserText("more")); err != nil { // the copy does not know
		t.Error(err)
	}
}

// A tool whose output would be the final one does not end the run while input is pending.
func TestAddInputToAFinalTool(t *testing.T) {
	s := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(s, charging("charge", new(effects), asking))
	agent.ToolUse = pawl.StopOnFirstTool()
	state := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), nil)).State()
	if err := errors.Join(state.AddInput(pawl.UserText("and hurry")), state.AddInput(pawl.UserText("please")), state.Approve(state.Interruptions()[0], "ann")); err != nil {
		t.Fatal(err)
	}
	agent.ToolUse = pawl.StopOnFirstTool()
	s.steps = []step{s.steps[0], calling(fc("c2", "fly", `{}`))}
	_, err := new(pawl.Runner).Resume(t.Context(), agent, state, nil)
	if !as[*pawl.ToolNotFoundError](err) || texts(s.calls()[1].Input) != strings.TrimSuffix(hurried, "\nassistant: done") {
		t.Errorf("%v; the model read\n%s", err, texts(s.calls()[1].Input))
	}
}

// While somebody drives the run, the driver takes the input: in the same process or in another one, while a tool runs or the model
// answers; a response that would end the run does not then.
func TestAddInputToADrivenRun(t *testing.T) {
	for where, same := range map[string]bool{"this runner": true, "another": false} {
		for at, steps := range map[string]func(add func()) ([]step, func()){
			"tool": func(add func()) ([]step, func()) {
				return []step{calling(fc("c1", "wait", `{"cents":5}`)), says("done")}, add
			},
			"model": func(add func()) ([]step, func()) {
				answered := says("soon")
				return []step{calling(fc("c1", "wait", `{"cents":5}`)), func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
					add()
					time.Sleep(time.Second)
					return answered(ctx, req, emit)
				}, says("done")}, func() {}
			},
		} {
			t.Run(where+"/"+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := journal.NewMemory()
					r := &pawl.Runner{Store: store}
					by := r
					if !same {
						by = &pawl.Runner{Store: store}
					}
					added := make(chan error, 1)
					list, inTool := steps(func() { go func() { added <- by.AddInput(t.Context(), "r", pawl.UserText("and hurry")) }() })
					s := newScript(list...)
					agent := agentWith(s, charging("wait", nil, func(f *pawl.Func[charge, string]) {
						f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
							inTool()
							time.Sleep(2 * time.Second)
							return "waited", nil
						}
					}))
					res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
					want := map[string]string{"tool": "user: pay\ncall c1\nc1: waited\nuser: and hurry\nassistant: done",
						"model": "user: pay\ncall c1\nc1: waited\nassistant: soon\nuser: and hurry\nassistant: done"}[at]
					if err := <-added; err != nil || texts(res.ToInputList()) != want {
						t.Errorf("%v; the conversation is\n%s", err, texts(res.ToInputList()))
					}
					sameViews(t, res, s, nil)
				})
			})
		}
	}
}

// Input that comes too late for its driver is refused, and the caller hears it; one that gives up waiting hears that, too.
func TestAddInputComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		late := &lateInbox{Driver: store}
		added := make(chan error, 2)
		agent := agentWith(newScript(func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			go func() { added <- (&pawl.Runner{Store: store}).AddInput(t.Context(), "r", pawl.UserText("and hurry")) }()
			time.Sleep(time.Second)
			ctx2, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			added <- (&pawl.Runner{Store: store}).AddInput(ctx2, "r", pawl.UserText("now"))
			return says("done")(ctx, req, emit)
		}))
		res := must(t)((&pawl.Runner{Store: late}).Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if err := <-added; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may be taken yet") {
			t.Errorf("gave up waiting: %v", err)
		}
		if err := <-added; !errors.Is(err, pawl.ErrInputRefused) || texts(res.ToInputList()) != "user: pay\nassistant: done" {
			t.Errorf("%v; the conversation is\n%s", err, texts(res.ToInputList()))
		}
	})
}

// lateInbox is a store whose inbox shows its driver nothing.
type lateInbox struct{ journal.Driver }

func (lateInbox) Inbox(context.Context, string) ([]journal.Entry, error) { return nil, nil }

// A hook may add input to its own run.
func TestAddInputFromAHook(t *testing.T) {
	var r pawl.Runner
	s := newScript(calling(fc("c1", "look", `{"cents":5}`)), says("soon"))
	var err error
	hooks := &pawl.Hooks{ToolEnd: func(ctx context.Context, ev *pawl.ToolEnd) {
		err = r.AddInput(ctx, ev.Run, pawl.UserText("think of "+ev.ID))
	}}
	res := must(t)(r.Run(t.Context(), agentWith(s, charging("look", new(effects), nil)), pawl.UserText("go"), &pawl.RunOptions{Hooks: hooks}))
	if got := texts(res.ToInputList()); err != nil || got != "user: go\ncall c1\nc1: receipt 5\nuser: think of c1\nassistant: soon" {
		t.Errorf("%v; the conversation is\n%s", err, got)
	}
}

// Where the server has the conversation, input is sent with the outputs that are new; and again, if the server did not accept the
// request.
func TestAddInputWhereTheServerHasTheConversation(t *testing.T) {
	broken := errors.New("broken")
	s := newScript(response("resp_1", fc("c1", "charge", `{"cents":5}`)), failing(broken), response("resp_2", item.MessageItem("", "done")))
	s.info.ServerState = true
	agent := agentWith(s, charging("charge", new(effects), asking))
	state := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{AutoPreviousResponseID: true})).State()
	if err := errors.Join(state.AddInput(pawl.UserText("and hurry")), state.Approve(state.Interruptions()[0], "ann")); err != nil {
		t.Fatal(err)
	}
	_, err := new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, state), nil)
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	res := must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
	for _, a := range s.calls()[1:] {
		if got := texts(a.Input); got != "c1: receipt 5\nuser: and hurry" || a.Previous != "resp_1" {
			t.Errorf("sent behind %s:\n%s", a.Previous, got)
		}
	}
	if got := texts(res.ToInputList()); got != "user: pay\ncall c1\nc1: receipt 5\nuser: and hurry\nassistant: done" {
		t.Errorf("the conversation is\n%s", got)
	}
}

// Wherever the process dies, added input is in the conversation once.
func TestAddInputAfterACrash(t *testing.T) {
	agent := func() *pawl.Agent {
		return agentWith(byLength(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))), charging("charge", new(effects), func(f *pawl.Func[charge, string]) {
			asking(f)
			f.Effect = pawl.Idempotent
		}))
	}
	for name, add := range map[string]func(r *pawl.Runner, s *pawl.RunState) error{
		"runner": func(r *pawl.Runner, _ *pawl.RunState) error {
			return errors.Join(r.AddInput(t.Context(), "r", pawl.UserText("and hurry")), r.AddInput(t.Context(), "r", pawl.UserText("please")))
		},
		"state": func(_ *pawl.Runner, s *pawl.RunState) error {
			return errors.Join(s.AddInput(pawl.UserText("and hurry")), s.AddInput(pawl.UserText("please")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &cuts{Driver: journal.NewMemory()}
			r := &pawl.Runner{Store: w}
			state := must(t)(r.Run(t.Context(), agent(), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
			if err := errors.Join(add(r, state), state.Approve(state.Interruptions()[0], "ann")); err != nil {
				t.Fatal(err)
			}
			must(t)(r.Resume(t.Context(), agent(), state, nil))
			for _, n := range w.ends {
				f, err := journal.Decode(w.recs[n-1])
				if err != nil {
					t.Fatal(err)
				}
				store := journal.NewMemory()
				if err := store.Import("r", w.recs[:n]); err != nil {
					t.Fatal(err)
				}
				well := &pawl.Runner{Store: store}
				if facts := state.Facts(); n < facts {
					continue // the run did not wait yet
				}
				from := state
				if !slices.ContainsFunc(w.recs[:n], func(rec journal.Record) bool { return rec.Kind == journal.KindAdded }) && name == "runner" {
					if err := add(well, state); err != nil {
						t.Fatal(err)
					}
				} else if name == "runner" && n == state.Facts()+2 { // the first of the two
					if err := well.AddInput(t.Context(), "r", pawl.UserText("please")); err != nil {
						t.Fatal(err)
					}
				}
				res, err := well.Resume(t.Context(), agent(), from, nil)
				if err != nil {
					t.Fatalf("behind fact %d, %s: %v", n, f.Body.Kind(), err)
				}
				if got := texts(res.ToInputList()); got != hurried {
					t.Errorf("behind fact %d, %s: the conversation is\n%s", n, f.Body.Kind(), got)
				}
			}
		})
	}
}

// Two callers at once are both heard.
func TestAddInputAtOnce(t *testing.T) {
	r, agent, state := waiting5(t)
	errs := make(chan error)
	for _, text := range []string{"one", "two", "three"} {
		go func() { errs <- r.AddInput(t.Context(), "r", pawl.UserText(text)) }()
	}
	if err := errors.Join(<-errs, <-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	res := must(t)(r.Resume(t.Context(), agent, state, nil))
	got := strings.Split(texts(res.ToInputList()), "\n")
	slices.Sort(got[3:6])
	want := []string{"user: pay", "call c1", "c1: receipt 5", "user: one", "user: three", "user: two", "assistant: done"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
