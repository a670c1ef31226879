package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// enabledIf makes a tool that is enabled when the function says so.
func enabledIf(f func(rc *pawl.RunContext) (bool, error)) func(*pawl.Func[charge, string]) {
	return func(t *pawl.Func[charge, string]) {
		t.Effect = pawl.Idempotent
		t.Enabled = func(_ context.Context, rc *pawl.RunContext) (bool, error) { return f(rc) }
	}
}

func onTurns(turns ...int) func(*pawl.Func[charge, string]) {
	return enabledIf(func(rc *pawl.RunContext) (bool, error) {
		for _, n := range turns {
			if n == rc.Turn {
				return true, nil
			}
		}
		return false, nil
	})
}

// manifests counts the manifests that a run recorded.
func manifests(t *testing.T, store journal.Driver, run string) (n int) {
	t.Helper()
	for _, f := range facts(t, store, run) {
		if p, ok := f.Body.(*journal.Prepared); ok && p.Manifest != nil {
			n++
		}
	}
	return n
}

// facts returns the facts of a stored run.
func facts(t *testing.T, store journal.Driver, run string) (list []journal.Fact) {
	t.Helper()
	recs, err := store.Read(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		f, err := journal.Decode(rec)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// Every turn offers the tools that are enabled then, and each set of them is recorded once.
func TestEnabledTools(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		again := calling(fc("c1", "always", `{"cents":1}`))
		s := newScript(again, again, again, again, says("done"))
		store := journal.NewMemory()
		r := &pawl.Runner{Store: store}
		agent := agentWith(s, charging("odd", &e, onTurns(1, 3, 5)), charging("always", &e, nil), charging("late", &e, onTurns(4, 5)))
		res := must(t)(m.run(r, t.Context(), agent, pawl.UserText("go"), nil))
		var offered [][]string
		for _, a := range s.calls() {
			offered = append(offered, a.Tools)
		}
		want := [][]string{{"odd", "always"}, {"always"}, {"odd", "always"}, {"always", "late"}, {"odd", "always", "late"}}
		if diff := cmp.Diff(want, offered); diff != "" {
			t.Errorf("offered (-want +got):\n%s", diff)
		}
		if n := manifests(t, store, res.Run); n != 4 {
			t.Errorf("%d manifests were recorded, want 4", n)
		}
		sameViews(t, res, s, nil)
	})
}

// A tool that is enabled when it is called runs; one that is not is none of the agent's
// [S14.1].
func TestCallOfADisabledTool(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*pawl.Func[charge, string])
		want   string
	}{
		"never enabled":  {onTurns(), `c1: Tool "pay" is configured, but disabled. Available tools: walk.`},
		"enabled":        {onTurns(1), "c1: receipt 5"},
		"disabled since": {flips(true, false), `c1: Tool "pay" is configured, but disabled. Available tools: walk.`},
		"enabled since":  {flips(false, true), "c1: receipt 5"},
		"no predicate":   {nil, "c1: receipt 5"},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				s := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
				agent := agentWith(s, charging("pay", &e, tt.change), charging("walk", &e, nil))
				res := must(t)(m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
				if diff := cmp.Diff([]string{tt.want}, outputs(res.NewItems())); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				sameViews(t, res, s, nil)
			})
		})
	}
}

// flips makes a tool that answers so, in turn, each time it is asked in a run.
func flips(answers ...bool) func(*pawl.Func[charge, string]) {
	asked := map[string]int{}
	return enabledIf(func(rc *pawl.RunContext) (bool, error) {
		asked[rc.Run]++
		return answers[(asked[rc.Run]-1)%len(answers)], nil
	})
}

// Nothing of the response starts, no rule is asked, and the run goes on when the tool is
// enabled.
func TestDisabledToolFailsTheRun(t *testing.T) {
	var e effects
	on := false
	s := newScript(calling(fc("c1", "walk", `{"cents":1}`), fc("c2", "pay", `{"cents":5}`), fc("c3", "pay", `{"cents":6}`)), says("done"))
	asked := 0
	pay := charging("pay", &e, func(f *pawl.Func[charge, string]) {
		f.Enabled = func(context.Context, *pawl.RunContext) (bool, error) { asked++; return on, nil }
	})
	walk := charging("walk", &e, func(f *pawl.Func[charge, string]) {
		f.Approve = func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { e.add("rule"); return pawl.Allow, nil }
	})
	agent := agentWith(s, walk, pay)
	var r pawl.Runner
	_, err := r.Run(t.Context(), agent, pawl.UserText("go"), nil)
	var missing *pawl.ToolNotFoundError
	if !errors.As(err, &missing) {
		t.Fatalf("error %v", err)
	}
	want := &pawl.ToolNotFoundError{Tool: "pay", CallID: "c2", Disabled: true, Tools: []string{"walk"}}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := missing.Error(); got != `pawl: the model called the tool "pay" (call c2), which is configured, but disabled; it has walk` {
		t.Errorf("error %s", got)
	}
	e.want(t)
	on, asked = true, 0
	state := stateOf(t, err)
	res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, state), nil))
	if diff := cmp.Diff([]string{"c1: receipt 1", "c2: receipt 5", "c3: receipt 6"}, outputs(res.NewItems())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if asked != 2 { // once for the plan, once for the next turn
		t.Errorf("asked %d times, want 2", asked)
	}
}

// A predicate that errs or panics fails the run, resumably, with its name.
func TestEnabledFails(t *testing.T) {
	bang := errors.New("no answer")
	for _, at := range []int{1, 2} { // of the two times that it is asked before the body: for the turn, for the call
		for name, fails := range map[string]func() (bool, error){
			"error": func() (bool, error) { return true, bang },
			"panic": func() (bool, error) { panic(bang) },
		} {
			t.Run(fmt.Sprint(name, " ", at), func(t *testing.T) {
				var e effects
				asked := 0
				s := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
				agent := agentWith(s, charging("pay", &e, enabledIf(func(*pawl.RunContext) (bool, error) {
					if asked++; asked == at {
						return fails()
					}
					return true, nil
				})))
				var r pawl.Runner
				_, err := r.Run(t.Context(), agent, pawl.UserText("go"), nil)
				if !errors.Is(err, bang) {
					t.Fatalf("error %v", err)
				}
				var p *pawl.PanicError
				if got := errors.As(err, &p); got != (name == "panic") || got && p.In != `Enabled of tool "pay"` {
					t.Errorf("error %v", err)
				}
				e.want(t)
				must(t)(r.Resume(t.Context(), agent, stateOf(t, err), nil))
				e.want(t, "pay 5")
			})
		}
	}
}

// A request that is repeated in another process offers what its turn recorded, whatever is
// enabled by then [S14.2].
func TestEnabledIsNotAskedForARepeatedRequest(t *testing.T) {
	var e effects
	lost := &model.Error{Err: model.ErrStreamCut}
	s := newScript(failing(lost), says("done"))
	asked := 0
	odd := charging("odd", &e, enabledIf(func(*pawl.RunContext) (bool, error) { asked++; return asked == 1, nil }))
	even := charging("even", &e, enabledIf(func(*pawl.RunContext) (bool, error) { return asked != 1, nil }))
	_, err := new(pawl.Runner).Run(t.Context(), agentWith(s, odd, even), pawl.UserText("go"), nil)
	if !errors.Is(err, model.ErrStreamCut) {
		t.Fatal(err)
	}
	must(t)(new(pawl.Runner).Resume(t.Context(), agentWith(s, odd, even), viaJSON(t, stateOf(t, err)), nil))
	for i, a := range s.calls() {
		if diff := cmp.Diff([]string{"odd"}, a.Tools); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i+1, diff)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// A call that is approved when its tool is disabled by then still runs: the plan is
// recorded, and people decided on it.
func TestEnabledIsNotAskedAfterThePlan(t *testing.T) {
	var e effects
	s := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
	asked := 0
	agent := agentWith(s, charging("pay", &e, func(f *pawl.Func[charge, string]) {
		asking(f)
		f.Enabled = func(context.Context, *pawl.RunContext) (bool, error) { asked++; return asked < 3, nil }
	}))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), nil))
	state := res.State()
	if err := state.Approve(res.Interruptions[0], "ann"); err != nil {
		t.Fatal(err)
	}
	must(t)(r.Resume(t.Context(), agent, state, nil))
	e.want(t, "pay 5")
	if got := s.calls()[1].Tools; got != nil {
		t.Errorf("the second turn offers %v", got)
	}
}

// What a function changes in the context it is handed concerns nobody else.
func TestEnabledCannotChangeTheRun(t *testing.T) {
	var e effects
	s := newScript(says("done"))
	var seen []int
	meddles := enabledIf(func(rc *pawl.RunContext) (bool, error) {
		seen = append(seen, rc.Turn)
		rc.Turn, rc.Agent, rc.Run = 99, nil, ""
		return true, nil
	})
	agent := agentWith(s, charging("a", &e, meddles), charging("b", &e, meddles))
	must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
	if diff := cmp.Diff([]int{1, 1}, seen); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAgentHelpers(t *testing.T) {
	var e effects
	agent := agentWith(nil, charging("a", &e, onTurns(1)), charging("b", &e, nil), charging("c", &e, onTurns(2)))
	agent.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
		return fmt.Sprintf("turn %d\xff", rc.Turn), nil
	}
	rc := &pawl.RunContext{Agent: agent, Turn: 2}
	tools, err := agent.AllTools(t.Context(), rc)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name())
	}
	if diff := cmp.Diff([]string{"b", "c"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text, err := agent.SystemPrompt(t.Context(), rc); err != nil || text != "turn 2\uFFFD" {
		t.Errorf("system prompt %q, %v", text, err)
	}
	wild := &pawl.Agent{Name: "support", Instructions: func(context.Context, *pawl.RunContext) (string, error) { panic("oops") }}
	if _, err := wild.SystemPrompt(t.Context(), rc); !errors.As(err, new(*pawl.PanicError)) || err.Error() != `pawl: Instructions of agent "support" panicked: oops` {
		t.Errorf("SystemPrompt of instructions that panic: %v", err)
	}
	if text, err := (&pawl.Agent{}).SystemPrompt(t.Context(), rc); err != nil || text != "" {
		t.Errorf("without instructions %q, %v", text, err)
	}
	bang := errors.New("no answer")
	broken := agentWith(nil, charging("a", &e, enabledIf(func(*pawl.RunContext) (bool, error) { return false, bang })))
	broken.Instructions = func(context.Context, *pawl.RunContext) (string, error) { return "", bang }
	if _, err := broken.AllTools(t.Context(), rc); !errors.Is(err, bang) {
		t.Errorf("AllTools: %v", err)
	}
	if _, err := broken.SystemPrompt(t.Context(), rc); err != bang {
		t.Errorf("SystemPrompt: %v", err)
	}
}
