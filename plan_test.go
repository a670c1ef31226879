package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// rule makes a tool's approval rule.
func rule(f func(context.Context, *pawl.Call, charge) (pawl.Gate, error)) func(*pawl.Func[charge, string]) {
	return func(t *pawl.Func[charge, string]) { t.Approve = f }
}

// What an approval rule answers, or fails to answer, decides who decides.
func TestApprovalRules(t *testing.T) {
	type ruleFunc = func(context.Context, *pawl.Call, charge) (pawl.Gate, error)
	for name, tt := range map[string]struct {
		rule ruleFunc
		asks bool
		out  string
	}{
		"allow":           {func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Allow, nil }, false, "receipt 5"},
		"deny":            {func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Deny, nil }, false, "Tool execution was not approved."},
		"ask":             {func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Ask, nil }, true, ""},
		"an unknown word": {func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return "yes", nil }, true, ""},
		"allow and error": {func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Allow, errors.New("down") }, true, ""},
		"deny and error":  {func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Deny, errors.New("down") }, true, ""},
		"panic":           {func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { panic("bug") }, true, ""},
		"too slow": {func(ctx context.Context, _ *pawl.Call, _ charge) (pawl.Gate, error) {
			time.Sleep(31 * time.Second)
			return pawl.Allow, ctx.Err()
		}, true, ""},
		"too slow, and heeds its context": {func(ctx context.Context, _ *pawl.Call, _ charge) (pawl.Gate, error) {
			<-ctx.Done()
			return pawl.Allow, nil
		}, true, ""},
		"just in time": {func(context.Context, *pawl.Call, charge) (pawl.Gate, error) {
			time.Sleep(29 * time.Second)
			return pawl.Allow, nil
		}, false, "receipt 5"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
				var r pawl.Runner
				res := must(t)(r.Run(t.Context(), agentWith(m, charging("charge", &e, rule(tt.rule))), pawl.UserText("pay"), nil))
				if res.Waiting() != tt.asks {
					t.Fatalf("status %s", res.Status)
				}
				if !tt.asks {
					if diff := cmp.Diff([]string{"c1: " + tt.out}, outputs(res.NewItems())); diff != "" {
						t.Error(diff)
					}
				}
				time.Sleep(time.Minute) // for the rule that is too slow
			})
		})
	}
}

// A rule sees what the tool sees, without a key or an attempt.
func TestApprovalRuleSees(t *testing.T) {
	var seen, ran pawl.Call
	var e effects
	tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
		f.Approve = func(_ context.Context, c *pawl.Call, in charge) (pawl.Gate, error) { seen = *c; return pawl.Allow, nil }
		f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) { ran = *c; return "", nil }
	})
	m := newScript(calling(fc("c1", "charge", `{ "cents": 5 }`)), says("done"))
	agent := agentWith(m, tool)
	var r pawl.Runner
	must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Context: 7}))
	rc := pawl.RunContext{Run: "r", Agent: agent, Turn: 1, Value: 7}
	want := pawl.Call{RunContext: rc, Tool: "charge", ID: "c1", Arguments: `{ "cents": 5 }`}
	opt := cmp.Comparer(func(a, b *pawl.Agent) bool { return a == b })
	if diff := cmp.Diff(want, seen, opt); diff != "" {
		t.Errorf("the rule saw (-want +got):\n%s", diff)
	}
	want.Key, want.Attempt = ran.Key, 1
	if diff := cmp.Diff(want, ran, opt); diff != "" || !strings.HasPrefix(ran.Key, "pawl_") {
		t.Errorf("the body saw (-want +got):\n%s", diff)
	}
}

// A driver that stops while a rule runs has no answer of the rule's: it is asked again.
func TestApprovalRuleCancelled(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		t.Run(fmt.Sprint("heeds its context: ", heeds), func(t *testing.T) {
			var e effects
			ctx, cancel := context.WithCancel(t.Context())
			asked := 0
			release := make(chan struct{})
			defer close(release)
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			agent := agentWith(m, charging("charge", &e, rule(func(ctx context.Context, _ *pawl.Call, _ charge) (pawl.Gate, error) {
				if asked++; asked > 1 {
					return pawl.Allow, nil
				}
				cancel()
				if !heeds {
					<-release
				}
				return pawl.Ask, ctx.Err()
			})))
			var r pawl.Runner
			_, err := r.Run(ctx, agent, pawl.UserText("pay"), nil)
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if res := must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil)); res.FinalOutput != "done" {
				t.Errorf("result %+v", res)
			}
			e.want(t, "charge 5")
		})
	}
}

// Unreadable arguments never run. Without a rule the model reads an error; where a rule
// would have asked, a person sees them: a plain approval gives the error, edited
// arguments make the call run.
func TestUnreadableArguments(t *testing.T) {
	allow := rule(func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Allow, nil })
	const edited = "The reviewer changed the arguments to {\"cents\":6}.\nreceipt 6"
	for name, args := range map[string]string{"cut": `{"cents":5`, "no object": `[1]`, "twice": `{"cents":1,"cents":2}`, "text": `{"cents":"5"}`,
		"more": `{"cents":5,"to":"me"}`, "nothing": ``, "bytes": "{\"cents\":5,\"x\":\"\\ud800\"}"} {
		for gate, tt := range map[string]struct {
			change func(*pawl.Func[charge, string])
			decide func(*pawl.RunState, pawl.Interruption) error
			out    string
			runs   bool
		}{
			"never": {nil, nil, "c1: The arguments cannot be used: ", false},
			"always, approved": {asking, func(s *pawl.RunState, in pawl.Interruption) error { return s.Approve(in, "ann") },
				"c1: The arguments cannot be used: ", false},
			"rule, approved": {allow, func(s *pawl.RunState, in pawl.Interruption) error { return s.Approve(in, "ann") },
				"c1: The arguments cannot be used: ", false},
			"always, rejected": {asking, func(s *pawl.RunState, in pawl.Interruption) error { return s.Reject(in, "ann", "no") }, "c1: no", false},
			"always, edited": {asking, func(s *pawl.RunState, in pawl.Interruption) error {
				return s.Decide(pawl.Edit(in.ID, "ann", `{"cents": 6}`))
			}, "c1: " + edited, true},
			"rule, edited": {allow, func(s *pawl.RunState, in pawl.Interruption) error {
				return s.Decide(pawl.Edit(in.ID, "ann", `{"cents": 6}`))
			}, "c1: " + edited, true},
		} {
			t.Run(name+"/"+gate, func(t *testing.T) {
				var e effects
				m := newScript(calling(fc("c1", "charge", args)), says("done"))
				agent := agentWith(m, charging("charge", &e, tt.change))
				sess := session.NewMemory("s")
				var r pawl.Runner
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Session: sess}))
				if res.Waiting() != (tt.decide != nil) {
					t.Fatalf("status %s", res.Status)
				}
				if tt.decide != nil {
					in := res.Interruptions[0]
					if !in.Unreadable || in.Arguments != args {
						t.Errorf("interruption %+v", in)
					}
					s := res.State()
					if err := tt.decide(s, in); err != nil {
						t.Fatal(err)
					}
					res = must(t)(r.Resume(t.Context(), agent, s, &pawl.RunOptions{Session: sess}))
				}
				out := outputs(res.NewItems())
				if len(out) != 1 || !strings.HasPrefix(out[0], tt.out) {
					t.Errorf("outputs %q, want %q", out, tt.out)
				}
				if tt.runs {
					e.want(t, "charge 6")
				} else {
					e.want(t)
				}
				sameViews(t, res, m, sess)
				replays(t, &r, res.Run)
			})
		}
	}
}

// An edit that the tool would not take is refused where the tool is known, and is an error
// for the model where it is not. The body never sees it.
func TestEditThatDoesNotFit(t *testing.T) {
	tools := map[string]func(*effects) pawl.Tool{
		"func": func(e *effects) pawl.Tool { return charging("charge", e, asking) },
		"raw": func(e *effects) pawl.Tool {
			return pawl.NewRawTool(pawl.RawFunc{Name: "charge", Schema: `{"type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"],"additionalProperties":false}`,
				Approve: func(context.Context, *pawl.Call) (pawl.Gate, error) { return pawl.Ask, nil },
				Run:     func(_ context.Context, c *pawl.Call) (string, error) { e.add("charge %s", c.Arguments); return "", nil }})
		},
	}
	for kind, tool := range tools {
		for _, args := range []string{`{"cents":"much"}`, `{"euros":1}`, `{}`} {
			t.Run(kind+args, func(t *testing.T) {
				var e effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
				agent := agentWith(m, tool(&e))
				var r pawl.Runner
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
				in := res.Interruptions[0]

				s := res.State()
				if err := s.Decide(pawl.Edit(in.ID, "ann", args)); err != nil {
					t.Fatal("a state does not know the tool: ", err)
				}
				if _, err := r.Resume(t.Context(), agent, s, nil); !errors.Is(err, pawl.ErrDecision) {
					t.Errorf("Resume, which has the tool: %v", err)
				}
				known := &pawl.Runner{Store: storeOf(t, &r, res.Run), Agents: []*pawl.Agent{agent}}
				if err := known.Decide(t.Context(), res.Run, pawl.Edit(in.ID, "ann", args)); !errors.Is(err, pawl.ErrDecision) {
					t.Errorf("Decide of a Runner that has the agent: %v", err)
				}
				if got := replays(t, known, res.Run).Interruptions(); len(got) != 1 {
					t.Errorf("%d interruptions are left", len(got))
				}

				stranger := &pawl.Runner{Store: known.Store}
				if err := stranger.Decide(t.Context(), res.Run, pawl.Edit(in.ID, "ann", args)); err != nil {
					t.Fatal("Decide of a Runner without the agent: ", err)
				}
				res = must(t)(known.Resume(t.Context(), agent, pawl.RunID(res.Run), nil))
				if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], "c1: The reviewer changed the arguments to "+args+".\nThe arguments cannot be used: ") {
					t.Errorf("outputs %q", out)
				}
				e.want(t)
			})
		}
	}
}

func TestToolNotFound(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		turn := calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "missing", `{"cents":1}`))
		m := newScript(turn, says("done"))
		agent := agentWith(m, charging("charge", &e, nil))
		sess := session.NewMemory("s")
		var r pawl.Runner
		_, err := mode.run(&r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess})
		var nf *pawl.ToolNotFoundError
		if !errors.As(err, &nf) || nf.Tool != "missing" || nf.CallID != "c2" || !cmp.Equal(nf.Tools, []string{"charge"}) {
			t.Fatalf("%v", err)
		}
		e.want(t)
		state := stateOf(t, err)

		t.Run("again as it was", func(t *testing.T) {
			_, err := mode.resume(&r, t.Context(), agent, state, &pawl.RunOptions{Session: sess})
			if !errors.As(err, &nf) {
				t.Error(err)
			}
		})
		t.Run("the model is told", func(t *testing.T) {
			told := viaJSON(t, state)
			sess := session.NewMemory("s")
			sess.Append(t.Context(), []pawl.Item{item.UserText("pay")})
			m := newScript(says("done"))
			agent := agentWith(m, charging("charge", &e, nil))
			var r pawl.Runner
			res := must(t)(mode.resume(&r, t.Context(), agent, told, &pawl.RunOptions{Session: sess, ToolNotFound: pawl.TellModel,
				ToolErrors: func(te pawl.ToolError) string { return string(te.Kind) + " " + te.Tool + " " + te.CallID }}))
			if diff := cmp.Diff([]string{"c1: receipt 5", "c2: tool_not_found missing c2"}, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
			sameViews(t, res, m, sess)
		})
		t.Run("the tool is added", func(t *testing.T) {
			agent := agentWith(m, charging("charge", &e, nil), charging("missing", &e, func(f *pawl.Func[charge, string]) { asking(f); f.Effect = pawl.ReadOnly }))
			res := must(t)(mode.resume(&r, t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess}))
			if !res.Waiting() || res.Interruptions[0].Tool != "missing" {
				t.Fatalf("result %+v", res)
			}
			s := viaJSON(t, res.State())
			if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			res = must(t)(mode.resume(&r, t.Context(), agent, s, &pawl.RunOptions{Session: sess}))
			if diff := cmp.Diff([]string{"c1: receipt 5", "c2: receipt 1"}, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
			sameViews(t, res, m, sess)
			replays(t, &r, "r")
		})
	})
}

// A response is planned with the tools the agent has then: what was taken away is not
// found, and a rule that was added is asked.
func TestToolsChangeBeforeThePlan(t *testing.T) {
	// The plan fails because of the unknown call, so it is made again on resume.
	start := func(t *testing.T, e *effects, m *script) (*pawl.Runner, *pawl.RunState) {
		r := &pawl.Runner{}
		_, err := r.Run(t.Context(), agentWith(m, charging("charge", e, nil)), pawl.UserText("pay"), nil)
		var nf *pawl.ToolNotFoundError
		if !errors.As(err, &nf) {
			t.Fatal(err)
		}
		return r, stateOf(t, err)
	}
	turn := calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "missing", `{"cents":1}`))
	t.Run("taken away", func(t *testing.T) {
		var e effects
		m := newScript(turn, says("done"))
		r, s := start(t, &e, m)
		res := must(t)(r.Resume(t.Context(), agentWith(m), s, &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
		if diff := cmp.Diff([]string{`c1: Tool "charge" not found. Available tools: .`, `c2: Tool "missing" not found. Available tools: .`}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
		e.want(t)
	})
	t.Run("gated since", func(t *testing.T) {
		var e effects
		m := newScript(turn, says("done"))
		r, s := start(t, &e, m)
		agent := agentWith(m, charging("charge", &e, asking))
		res := must(t)(r.Resume(t.Context(), agent, s, &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
		if !res.Waiting() {
			t.Fatalf("result %+v", res)
		}
		e.want(t)
	})
	t.Run("other arguments since", func(t *testing.T) {
		var e effects
		m := newScript(turn, says("done"))
		r, s := start(t, &e, m)
		type charge2 struct {
			Cents int    `json:"cents"`
			Note  string `json:"note,omitempty"`
		}
		agent := agentWith(m, pawl.NewTool(pawl.Func[charge2, string]{Name: "charge", Run: func(_ context.Context, _ *pawl.Call, in charge2) (string, error) {
			e.add("new charge %d", in.Cents)
			return "new", nil
		}}))
		res := must(t)(r.Resume(t.Context(), agent, s, &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
		if res.FinalOutput != "done" {
			t.Errorf("result %+v", res)
		}
		e.want(t, "new charge 5")
		replays(t, r, res.Run)
	})
}

// A planned call keeps its tool: if that is gone or takes other arguments, nothing starts,
// and nothing that happened is lost.
func TestToolChanged(t *testing.T) {
	type other struct {
		Euros int `json:"euros"`
	}
	changed := pawl.NewTool(pawl.Func[other, string]{Name: "charge", Run: func(context.Context, *pawl.Call, other) (string, error) { return "", nil }})
	for name, tools := range map[string][]pawl.Tool{"gone": nil, "changed": {changed}} {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(fc("c0", "look", `{"cents":1}`), fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":2}`)), says("done"))
			look := charging("look", &e, asking)
			agent := agentWith(m, look, charging("charge", &e, asking))
			r := &pawl.Runner{}
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", MaxParallelTools: 1}))
			s := res.State()
			for _, in := range s.Interruptions() {
				if err := s.Approve(in, "ann"); err != nil {
					t.Fatal(err)
				}
			}
			_, err := r.Resume(t.Context(), agentWith(m, append(tools, look)...), s, nil)
			if !errors.Is(err, pawl.ErrToolChanged) {
				t.Fatal(err)
			}
			e.want(t)
			if n := len(stateOf(t, err).Interruptions()); n != 0 {
				t.Errorf("%d interruptions after all were decided", n)
			}
			res = must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil))
			e.want(t, "look 1", "charge 5", "look 2")
			if diff := cmp.Diff([]string{"c0: receipt 1", "c1: receipt 5", "c2: receipt 2"}, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
			replays(t, r, "r")
		})
	}
}

// The model may call a custom tool or one of the provider's: the agent has none.
func TestForeignCalls(t *testing.T) {
	custom, err := item.ParseString(`{"type":"custom_tool_call","call_id":"c1","name":"grep","input":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	computer, err := item.ParseString(`{"type":"computer_call","id":"cu","call_id":"c1","action":{"type":"screenshot"}}`)
	if err != nil {
		t.Fatal(err)
	}
	var e effects
	var r pawl.Runner
	var nf *pawl.ToolNotFoundError
	for _, it := range []pawl.Item{custom, computer} {
		m := newScript(items(it, fc("c2", "charge", `{"cents":5}`)))
		if _, err := r.Run(t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("x"), nil); !errors.As(err, &nf) || nf.CallID != "c1" {
			t.Errorf("%s: %v", it.Type(), err)
		}
	}
	e.want(t)
	m := newScript(items(custom, fc("c2", "charge", `{"cents":5}`)), says("done"))
	sess := session.NewMemory("s")
	res := must(t)(r.Run(t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("x"), &pawl.RunOptions{ToolNotFound: pawl.TellModel, Session: sess}))
	if diff := cmp.Diff([]string{`c1: Tool "grep" not found. Available tools: charge.`, "c2: receipt 5"}, outputs(res.NewItems())); diff != "" {
		t.Error(diff)
	}
	sameViews(t, res, m, sess)
	replays(t, &r, res.Run)
	m = newScript(items(computer), says("done"))
	if _, err := r.Run(t.Context(), agentWith(m), pawl.UserText("x"), &pawl.RunOptions{ToolNotFound: pawl.TellModel}); !errors.As(err, &nf) || nf.Tool != "computer" {
		t.Error(err)
	}
}

// One response with a call twice is one call; the same id for two calls is refused.
func TestTwins(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second pawl.Item
		refused       bool
	}{
		"same":            {fc("c1", "charge", `{"cents":5}`), fc("c1", "charge", `{ "cents": 5 }`), false},
		"other arguments": {fc("c1", "charge", `{"cents":5}`), fc("c1", "charge", `{"cents":6}`), true},
		"other tool":      {fc("c1", "charge", `{"cents":5}`), fc("c1", "look", `{"cents":5}`), true},
		"other spelling":  {fc("c1", "charge", `{"cents":5}`), fc("c1", "charge", `{"cents":5.0}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(tt.first, tt.second), says("done"))
			sess := session.NewMemory("s")
			var r pawl.Runner
			res, err := r.Run(t.Context(), agentWith(m, charging("charge", &e, nil), charging("look", &e, nil)), pawl.UserText("pay"), &pawl.RunOptions{Session: sess})
			var reused *pawl.CallIDError
			if tt.refused {
				if !errors.As(err, &reused) || reused.CallID != "c1" {
					t.Fatal(err)
				}
				e.want(t)
				return
			}
			must(t)(res, err)
			e.want(t, "charge 5")
			if diff := cmp.Diff([]string{"c1: receipt 5"}, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
			sameViews(t, res, m, sess)
		})
	}
}

// A call id that comes again in a later response is a replay if the model never reuses
// ids, and else a new call that needs a decision of its own.
func TestCallIDAgain(t *testing.T) {
	for _, unique := range []bool{false, true} {
		t.Run(fmt.Sprint("unique ids: ", unique), func(t *testing.T) {
			var e effects
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			m.info.UniqueCallIDs = unique
			agent := agentWith(m, charging("charge", &e, asking))
			var r pawl.Runner
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
			s := res.State()
			if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			res = must(t)(r.Resume(t.Context(), agent, s, nil))
			if res.Waiting() == unique {
				t.Errorf("result %+v", res)
			}
			e.want(t, "charge 5")
			if unique {
				if diff := cmp.Diff([]string{"c1: receipt 5", "c1: receipt 5"}, outputs(res.NewItems())); diff != "" {
					t.Error(diff)
				}
			}
			replays(t, &r, res.Run)
		})
	}
}

// Sticky decisions cover the tool over turns; a denial of the rule always wins.
func TestStickyDecisions(t *testing.T) {
	gate := func(_ context.Context, _ *pawl.Call, in charge) (pawl.Gate, error) {
		if in.Cents > 100 {
			return pawl.Deny, nil
		}
		return pawl.Ask, nil
	}
	turns := []step{
		calling(fc("c1", "charge", `{"cents":1}`), fc("c2", "charge", `{"cents":2}`), fc("c3", "look", `{"cents":3}`)),
		calling(fc("c4", "charge", `{"cents":4}`), fc("c5", "charge", `{"cents":500}`)),
		says("done"),
	}
	for name, tt := range map[string]struct {
		decide  func(string) pawl.Decision
		effects []string
		outputs []string
	}{
		"approve": {func(id string) pawl.Decision { d := pawl.Approve(id, "ann"); d.Always = true; return d },
			[]string{"charge 1", "charge 2", "look 3", "charge 4"},
			[]string{"c1: receipt 1", "c2: receipt 2", "c3: receipt 3", "c4: receipt 4", "c5: Tool execution was not approved."}},
		"reject": {func(id string) pawl.Decision { d := pawl.Reject(id, "ann", "never"); d.Always = true; return d },
			[]string{"look 3"},
			[]string{"c1: never", "c2: never", "c3: receipt 3", "c4: never", "c5: Tool execution was not approved."}},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(turns...)
			agent := agentWith(m, charging("charge", &e, rule(gate)), charging("look", &e, asking))
			r := &pawl.Runner{}
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{MaxParallelTools: 1}))
			s := res.State()
			in := s.Interruptions()
			if err := s.Decide(tt.decide(in[0].ID)); err != nil {
				t.Fatal(err)
			}
			if err := s.Approve(in[2], "bob"); err != nil {
				t.Fatal(err)
			}
			s, r = viaJSON(t, s), &pawl.Runner{}
			res = must(t)(r.Resume(t.Context(), agent, s, nil))
			if res.FinalOutput != "done" {
				t.Fatalf("result %+v", res)
			}
			e.want(t, tt.effects...)
			if diff := cmp.Diff(tt.outputs, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a response means that calls nothing.
func TestFinalOutputs(t *testing.T) {
	type answer struct {
		N int `json:"n"`
	}
	refusal, err := item.ParseString(`{"type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"I will not."}]}`)
	if err != nil {
		t.Fatal(err)
	}
	search, err := item.ParseString(`{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"x"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		output pawl.OutputType
		steps  []step
		final  string
		err    any
		turns  int
	}{
		"text":                       {steps: []step{says("hi")}, final: "hi", turns: 1},
		"last message":               {steps: []step{items(item.MessageItem("", "a"), item.MessageItem("", "b"))}, final: "b", turns: 1},
		"nothing":                    {steps: []step{items()}, final: "", turns: 1},
		"reasoning only":             {steps: []step{items(item.ReasoningItem("", "hm"))}, final: "", turns: 1},
		"empty text":                 {steps: []step{says("")}, final: "", turns: 1},
		"hosted call, then text":     {steps: []step{items(search), says("found")}, final: "found", turns: 2},
		"hosted call with text":      {steps: []step{items(search, item.MessageItem("", "found"))}, final: "found", turns: 1},
		"refusal":                    {steps: []step{items(refusal)}, err: new(*pawl.RefusalError)},
		"refusal of structured":      {output: pawl.OutputOf[answer](), steps: []step{items(refusal)}, err: new(*pawl.RefusalError)},
		"structured":                 {output: pawl.OutputOf[answer](), steps: []step{says(`{"n":3}`)}, final: `{"n":3}`, turns: 1},
		"structured, nothing first":  {output: pawl.OutputOf[answer](), steps: []step{items(), says(" "), says(`{"n":3}`)}, final: `{"n":3}`, turns: 3},
		"structured, no JSON":        {output: pawl.OutputOf[answer](), steps: []step{says("three")}, err: new(*pawl.OutputError)},
		"structured, another type":   {output: pawl.OutputOf[answer](), steps: []step{says(`{"n":"3"}`)}, err: new(*pawl.OutputError)},
		"structured, a member more":  {output: pawl.OutputOf[answer](), steps: []step{says(`{"n":3,"m":4}`)}, err: new(*pawl.OutputError)},
		"structured, with whitespac": {output: pawl.OutputOf[answer](), steps: []step{says(" {\"n\":3}\n")}, final: " {\"n\":3}\n", turns: 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newScript(tt.steps...)
			agent := agentWith(m)
			agent.Output = tt.output
			var r pawl.Runner
			res, err := r.Run(t.Context(), agent, pawl.UserText("hi"), nil)
			if tt.err != nil {
				if !errors.As(err, tt.err) {
					t.Fatalf("%v, want %T", err, tt.err)
				}
				if s := stateOf(t, err); s.Status() != pawl.StatusFailed {
					t.Errorf("status %s", s.Status())
				}
				return
			}
			must(t)(res, err)
			if res.FinalOutput != tt.final || res.Turns != tt.turns {
				t.Errorf("%q after %d turns", res.FinalOutput, res.Turns)
			}
			sameViews(t, res, m, nil)
			if strings.HasPrefix(name, "structured") {
				if v, err := pawl.OutputAs[answer](res); err != nil || v.N != 3 {
					t.Errorf("OutputAs: %v %v", v, err)
				}
			}
		})
	}
}

// An output that did not fit is read again by the agent as it is then.
func TestOutputTypeFixed(t *testing.T) {
	type strict struct {
		N int `json:"n"`
	}
	type loose struct {
		N string `json:"n"`
	}
	m := newScript(says(`{"n":"three"}`))
	agent := agentWith(m)
	agent.Output = pawl.OutputOf[strict]()
	var r pawl.Runner
	_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), nil)
	var oe *pawl.OutputError
	if !errors.As(err, &oe) || oe.Text != `{"n":"three"}` {
		t.Fatal(err)
	}
	fixed := agentWith(m)
	fixed.Output = pawl.OutputOf[loose]()
	res := must(t)(r.Resume(t.Context(), fixed, stateOf(t, err), nil))
	if v, err := pawl.OutputAs[loose](res); err != nil || v.N != "three" {
		t.Errorf("%v %v", v, err)
	}
	if _, err := pawl.OutputAs[strict](res); !errors.As(err, &oe) {
		t.Errorf("as another type: %v", err)
	}
}

// User code around a turn may fail or panic: the run fails, typed, and goes on where it was.
func TestUserCodeFails(t *testing.T) {
	boom := errors.New("boom")
	type hook struct {
		agent func(*pawl.Agent, func() error)
		opts  func(*pawl.RunOptions, func() error)
		calls int // model calls when it strikes
	}
	for name, h := range map[string]hook{
		"instructions": {agent: func(a *pawl.Agent, f func() error) {
			a.Instructions = func(context.Context, *pawl.RunContext) (string, error) { return "be kind", f() }
		}},
		"tool use": {calls: 1, agent: func(a *pawl.Agent, f func() error) {
			a.ToolUse = pawl.DecideToolUse(func(context.Context, *pawl.RunContext, []pawl.ToolResult) (pawl.ToolUseDecision, error) {
				return pawl.ToolUseDecision{}, f()
			})
		}},
		"tool errors": {calls: 1, opts: func(o *pawl.RunOptions, f func() error) {
			o.ToolNotFound = pawl.TellModel
			o.ToolErrors = func(pawl.ToolError) string {
				if f() != nil {
					panic(boom)
				}
				return ""
			}
		}},
	} {
		for _, how := range []string{"error", "panic"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				var e effects
				n := 0
				strike := func() error {
					if n++; n > 1 {
						return nil
					}
					if how == "panic" {
						panic(boom)
					}
					return boom
				}
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "none", `{}`)), says("done"))
				agent := agentWith(m, charging("charge", &e, nil))
				opts := &pawl.RunOptions{ToolNotFound: pawl.TellModel}
				if h.agent != nil {
					h.agent(agent, strike)
				} else {
					h.opts(opts, strike)
				}
				var r pawl.Runner
				_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), opts)
				var p *pawl.PanicError
				if panicked := errors.As(err, &p); panicked != (how == "panic" || h.opts != nil) || !panicked && !errors.Is(err, boom) {
					t.Fatal(err)
				}
				if len(m.calls()) != h.calls {
					t.Errorf("%d model calls", len(m.calls()))
				}
				s := viaJSON(t, stateOf(t, err))
				if s.Status() != pawl.StatusFailed {
					t.Errorf("status %s", s.Status())
				}
				if res := must(t)(r.Resume(t.Context(), agent, s, opts)); res.FinalOutput != "done" {
					t.Errorf("result %+v", res)
				}
				e.want(t, "charge 5")
				if len(m.calls()) != 2 {
					t.Errorf("%d model calls", len(m.calls()))
				}
			})
		}
	}
}

// A model whose call panics, or answers with nothing, fails the attempt.
func TestModelMisbehaves(t *testing.T) {
	for name, bad := range map[string]step{
		"panic": func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) { panic("bug") },
		"nothing": func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) {
			return nil, nil
		},
		"no item":  items(pawl.Item{}),
		"abandons": failing(model.ErrAbandoned),
	} {
		t.Run(name, func(t *testing.T) {
			m := newScript(bad, says("done"))
			agent := agentWith(m)
			var r pawl.Runner
			_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), nil)
			if err == nil {
				t.Fatal("no error")
			}
			if res := must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil)); res.FinalOutput != "done" {
				t.Errorf("result %+v", res)
			}
			if u := replays(t, &r, stateOf(t, err).Run()).Result().Usage; u.Requests != 2 || u.Unreported != 1 {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

func TestInstructions(t *testing.T) {
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), calling(fc("c2", "charge", `{"cents":6}`)), says("done"))
	var e effects
	agent := agentWith(m, charging("charge", &e, nil))
	agent.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
		return fmt.Sprintf("turn %d of %s for %v", rc.Turn, rc.Agent.Name, rc.Value), nil
	}
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Context: "ann"}))
	var got []string
	for _, a := range m.calls() {
		got = append(got, a.Instructions)
	}
	if diff := cmp.Diff([]string{"turn 1 of support for ann", "turn 2 of support for ann", "turn 3 of support for ann"}, got); diff != "" {
		t.Error(diff)
	}
	replays(t, &r, res.Run)
}

// Every attempt of a turn sends the same request, whatever the instructions say by then.
func TestAttemptsSendTheSame(t *testing.T) {
	m := newScript(failing(errors.New("down")), says("done"))
	n := 0
	agent := agentWith(m)
	agent.Instructions = func(context.Context, *pawl.RunContext) (string, error) { n++; return fmt.Sprint("version ", n), nil }
	var r pawl.Runner
	_, err := r.Run(t.Context(), agent, pawl.UserText("hi"), nil)
	must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
	c := m.calls()
	if diff := cmp.Diff(c[0], c[1]); diff != "" || c[1].Instructions != "version 1" {
		t.Errorf("attempts differ:\n%s", diff)
	}
}
