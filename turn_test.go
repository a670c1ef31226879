package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

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
