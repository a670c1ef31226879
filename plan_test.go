package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
)

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

// What a decided call meets when its tool was removed meanwhile: an error before any effect,
// or, by option, one error output. Another description is the same tool.
func TestToolRemoved(t *testing.T) {
	for name, tt := range map[string]struct {
		tools    func(e *effects) []pawl.Tool
		notFound pawl.ToolNotFound
		want     error
		out      string
		effects  []string
	}{
		"gone":                        {want: pawl.ErrToolChanged},
		"gone, and the model is told": {notFound: pawl.TellModel, out: `c1: Tool "charge" not found. Available tools: .`},
		"another, and it would be told": {notFound: pawl.TellModel, want: pawl.ErrToolChanged, tools: func(e *effects) []pawl.Tool {
			return []pawl.Tool{pawl.NewTool(pawl.Func[struct {
				Euros int `json:"euros"`
			}, string]{Name: "charge", Run: func(context.Context, *pawl.Call, struct {
				Euros int `json:"euros"`
			}) (string, error) {
				e.add("another tool")
				return "", nil
			}})}
		}},
		"described otherwise": {tools: func(e *effects) []pawl.Tool {
			return []pawl.Tool{charging("charge", e, func(f *pawl.Func[charge, string]) { f.Description = "Charges." })}
		}, out: "c1: receipt 5", effects: []string{"charge 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			agent := agentWith(m, charging("charge", &e, asking))
			var r pawl.Runner
			s := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil)).State()
			if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			old := agent.Tools
			agent.Tools = nil
			if tt.tools != nil {
				agent.Tools = tt.tools(&e)
			}
			res, err := r.Resume(t.Context(), agent, s, &pawl.RunOptions{ToolNotFound: tt.notFound})
			if !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			e.want(t, tt.effects...)
			if err != nil {
				agent.Tools, tt.out = old, "c1: receipt 5"
				res = must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil))
			}
			if diff := cmp.Diff([]string{tt.out}, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
			sameViews(t, res, m, nil)
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
