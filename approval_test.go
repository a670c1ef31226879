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

// Whoever edits a call by its interruption's id, and sends it again because the answer was lost, changes nothing; another
// edit is refused.
func TestEditTwice(t *testing.T) {
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, asking))
	r := pawl.Runner{Agents: []*pawl.Agent{agent}}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
	id := res.Interruptions[0].ID
	if err := r.Decide(t.Context(), res.Run, pawl.Edit(id, "ann", `{"cents":6}`)); err != nil {
		t.Fatal(err)
	}
	must(t)(r.Resume(t.Context(), nil, pawl.RunID(res.Run), nil))
	if err := r.Decide(t.Context(), res.Run, pawl.Edit(id, "ann", `{"cents":6}`)); err != nil {
		t.Errorf("the same edit again: %v", err)
	}
	for _, other := range []string{`{"cents":5}`, `{"cents":7}`} {
		if err := r.Decide(t.Context(), res.Run, pawl.Edit(id, "ann", other)); !errors.Is(err, pawl.ErrDecided) {
			t.Errorf("the edit to %s: %v, want ErrDecided", other, err)
		}
	}
	e.want(t, "charge 6")
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

// A rejection that covers a call the rule allows is worded by the run's options, as others are [M9.9].
func TestRejectionOfAnAllowedCallIsWorded(t *testing.T) {
	var e effects
	asksAbove := rule(func(_ context.Context, _ *pawl.Call, in charge) (pawl.Gate, error) {
		if in.Cents > 5 {
			return pawl.Ask, nil
		}
		return pawl.Allow, nil
	})
	m := newScript(calling(fc("c1", "charge", `{"cents":9}`)), calling(fc("c2", "charge", `{"cents":1}`)), says("done"))
	agent := agentWith(m, charging("charge", &e, asksAbove))
	opts := &pawl.RunOptions{ToolErrors: func(te pawl.ToolError) string { return "no " + te.CallID }}
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), opts))
	state := res.State()
	d := pawl.Reject(res.Interruptions[0].ID, "ann", "")
	d.Always = true
	if err := state.Decide(d); err != nil {
		t.Fatal(err)
	}
	res = must(t)(r.Resume(t.Context(), agent, state, opts))
	if diff := cmp.Diff([]string{"c1: no c1", "c2: no c2"}, outputs(res.NewItems())); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	e.want(t)
}
