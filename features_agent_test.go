package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// refusedBefore fails unless a run ends with that mistake before its model is asked.
func refusedBefore(t *testing.T, agent *pawl.Agent, s *script, opts *pawl.RunOptions, field string) {
	t.Helper()
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), opts)
	var config *pawl.ConfigError
	if !errors.As(err, &config) || config.Field != field || len(s.calls()) > 0 {
		t.Errorf("error %v, want one of %s; %d model calls", err, field, len(s.calls()))
	}
}

var agentFeatures = []feature{
	{"A1.01", func(t *testing.T) { // a name is required
		s := newScript(says("done"))
		refusedBefore(t, &pawl.Agent{Model: s}, s, nil, "Agent.Name")
		res := must(t)(new(pawl.Runner).Run(t.Context(), &pawl.Agent{Name: "Ann", Model: s}, pawl.UserText("go"), nil))
		if key := res.State().AgentKey(); key != "Ann" {
			t.Errorf("key %q", key)
		}
	}},
	{"A1.02", func(t *testing.T) { // mistakes are found before anything happens
		s := newScript()
		double := append(namedTools("look"), namedTools("look")...)
		refusedBefore(t, &pawl.Agent{Name: "A"}, s, nil, "Agent.Model")
		refusedBefore(t, &pawl.Agent{Name: "A", Model: s, Tools: double}, s, nil, "Agent.Tools")
		refusedBefore(t, &pawl.Agent{Name: "A", Model: s, Output: pawl.OutputOf[map[string]int]()}, s, nil, "Agent.Output")
		refusedBefore(t, &pawl.Agent{Name: "A", Model: s, ToolUse: pawl.StopAtTools("none")}, s, nil, "Agent.ToolUse")
	}},
	{"A1.03", func(t *testing.T) { // instructions are asked for in every turn
		s := newScript(calling(call("c1", "look")), says("done"))
		agent := agentWith(s, namedTools("look")...)
		agent.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
			return fmt.Sprintf("turn %d of %s for %v", rc.Turn, rc.Agent.Name, rc.Value), nil
		}
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Context: "ann"}))
		got := []string{s.calls()[0].Instructions, s.calls()[1].Instructions}
		if diff := cmp.Diff([]string{"turn 1 of support for ann", "turn 2 of support for ann"}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
	{"A1.04", func(t *testing.T) { // a prompt that the server keeps
		s := newScript(says("done"))
		agent := agentWith(s)
		agent.Prompt = pawl.StaticPrompt(pawl.PromptRef{ID: "pmpt_1", Version: "2"})
		refusedBefore(t, agent, s, nil, "Agent.Prompt")
		s.info.ServerPrompts = true
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
		if got := s.calls()[0].Prompt; got != `{"id":"pmpt_1","version":"2"}` {
			t.Errorf("prompt %s", got)
		}
	}},
	{"A1.07", func(t *testing.T) { // tools that are listed in every turn stand before the agent's own
		var e effects
		desk := &shelf{label: "desk", tools: []pawl.Tool{charging("look", &e, nil), charging("off", &e, onTurns())}}
		s := newScript(calling(fc("c1", "look", `{"cents":1}`)), says("done"))
		agent := agentWith(s, namedTools("own")...)
		agent.ToolSources = []pawl.ToolSource{&shelf{label: "empty"}, desk}
		agent.Handoffs = []pawl.Handoff{pawl.HandoffTo(&pawl.Agent{Name: "other", Model: s})}
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
		for _, c := range s.calls() {
			if diff := cmp.Diff([]string{"look", "own", "transfer_to_other"}, c.Tools); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
		e.want(t, "look 1")
		if tools, err := agent.AllTools(t.Context(), &pawl.RunContext{Agent: agent}); err != nil || len(tools) != 2 || tools[0].Name() != "look" || tools[1].Name() != "own" {
			t.Errorf("tools %v, %v", tools, err)
		}
		desk.put(errors.New("away"))
		s = newScript()
		agent.Model = s
		if _, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil); !as[*pawl.ToolSourceError](err) || len(s.calls()) > 0 {
			t.Errorf("error %v", err)
		}
	}},
	{"A1.08", func(t *testing.T) { // the model of the run wins over the agent's
		own, other := newScript(), newScript(says("hello"))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(own), pawl.UserText("go"), &pawl.RunOptions{Model: other}))
		if res.FinalOutput != "hello" || len(own.calls()) > 0 {
			t.Errorf("output %q, %d calls of the agent's model", res.FinalOutput, len(own.calls()))
		}
	}},
	{"A1.10", func(t *testing.T) { // structured output
		type answer struct {
			City string `json:"city"`
		}
		agent := agentWith(newScript(says(`{"city":"Oslo"}`), says(`{"town":"Oslo"}`)))
		agent.Output = pawl.OutputOf[answer]()
		var r pawl.Runner
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), nil))
		if got, err := pawl.OutputAs[answer](res); err != nil || got != (answer{"Oslo"}) {
			t.Errorf("output %+v, %v", got, err)
		}
		_, err := r.Run(t.Context(), agent, pawl.UserText("go"), nil)
		var invalid *pawl.OutputError
		if !errors.As(err, &invalid) || invalid.Text != `{"town":"Oslo"}` {
			t.Errorf("error %v", err)
		}
		list := agentWith(newScript(says(`{"response":["a","b"]}`))) // what is no object is wrapped
		list.Output = pawl.OutputOf[[]string]()
		got, err := pawl.OutputAs[[]string](must(t)(r.Run(t.Context(), list, pawl.UserText("go"), nil)))
		if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}},
	{"A1.11", func(t *testing.T) { // schemas are made strict, or refused
		raw := func(schema string) pawl.Tool {
			return pawl.NewRawTool(pawl.RawFunc{Name: "x", Schema: schema, Run: func(context.Context, *pawl.Call) (string, error) { return "", nil }})
		}
		got := raw(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`).Schema()
		if got != `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}` {
			t.Errorf("schema %s", got)
		}
		if raw(`{"type":"object","additionalProperties":true}`).Err() == nil || raw(`{"anyOf":[{"type":"object"}]}`).Err() == nil {
			t.Error("a schema that cannot be strict was taken")
		}
	}},
	{"A1.15", func(t *testing.T) { // what follows a turn's tools
		for want, use := range map[string]pawl.ToolUse{
			"done":        {},
			"output of b": pawl.StopOnFirstTool(),
			"output of a": pawl.StopAtTools("a"),
			"two": pawl.DecideToolUse(func(_ context.Context, _ *pawl.RunContext, results []pawl.ToolResult) (pawl.ToolUseDecision, error) {
				return pawl.ToolUseDecision{Final: len(results) == 2, Output: "two"}, nil
			}),
		} {
			agent := agentWith(newScript(calling(call("c1", "b"), call("c2", "a")), says("done")), namedTools("a", "b")...)
			agent.ToolUse = use
			if res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)); res.FinalOutput != want {
				t.Errorf("output %q, want %q", res.FinalOutput, want)
			}
		}
	}},
	{"A1.16", func(t *testing.T) { // a forced choice ends when a tool was used
		for keep, want := range map[bool][]string{false: {"look", ""}, true: {"look", "look"}} {
			s := newScript(calling(call("c1", "look")), says("done"))
			agent := agentWith(s, namedTools("look")...)
			agent.KeepToolChoice = keep
			must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Settings: &pawl.ModelSettings{ToolChoice: "look"}}))
			if diff := cmp.Diff(want, choices(s)); diff != "" {
				t.Errorf("keep=%v (-want +got):\n%s", keep, diff)
			}
		}
	}},
	{"A1.17", func(t *testing.T) { // a copy is a clone
		s := newScript(says("done"), says("done"))
		agent := agentWith(s, namedTools("look")...)
		clone := *agent
		clone.Name, clone.Instructions = "pirate", pawl.Text("Ahoy.")
		must(t)(new(pawl.Runner).Run(t.Context(), &clone, pawl.UserText("go"), nil))
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
		got := []string{s.calls()[0].Instructions, s.calls()[1].Instructions}
		if diff := cmp.Diff([]string{"Ahoy.", ""}, got); diff != "" || len(s.calls()[0].Tools) != 1 {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
	{"A1.18", func(t *testing.T) { // what a turn would say and offer
		var e effects
		agent := agentWith(nil, charging("off", &e, onTurns()), charging("on", &e, nil))
		agent.Instructions = pawl.Text("Be kind.")
		tools, err := agent.AllTools(t.Context(), &pawl.RunContext{Agent: agent})
		if err != nil || len(tools) != 1 || tools[0].Name() != "on" {
			t.Errorf("tools %v, %v", tools, err)
		}
		if text, err := agent.SystemPrompt(t.Context(), &pawl.RunContext{Agent: agent}); text != "Be kind." || err != nil {
			t.Errorf("prompt %q, %v", text, err)
		}
	}},
	{"A1.40", func(t *testing.T) { // settings of the run over those of the agent
		half, one := 0.5, 1.0
		s := newScript(says("done"))
		agent := agentWith(s)
		agent.Settings = &pawl.ModelSettings{Temperature: &half, TopP: &half, Verbosity: "low", Retry: &model.Retry{MaxRetries: 3, InitialDelay: 1, MaxDelay: 9}}
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Settings: &pawl.ModelSettings{Temperature: &one, Retry: &model.Retry{InitialDelay: 2}}}))
		want := &model.Settings{Temperature: &one, TopP: &half, Verbosity: "low", Retry: &model.Retry{MaxRetries: 3, InitialDelay: 2, MaxDelay: 9}}
		if diff := cmp.Diff(want, s.calls()[0].Settings); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
}

var turnFeatures = []feature{
	{"L3.11", func(t *testing.T) { // words beside calls are kept and end nothing; the last of several messages counts
		s := newScript(items(item.MessageItem("", "let me see"), call("c1", "look")), items(item.MessageItem("", "one"), item.MessageItem("", "two")))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), nil))
		if res.FinalOutput != "two" || len(res.NewItems()) != 5 || res.Turns != 2 {
			t.Errorf("output %q, %d items, %d turns", res.FinalOutput, len(res.NewItems()), res.Turns)
		}
	}},
	{"L3.41", func(t *testing.T) { // a bound on tools at once; outputs in call order; a disabled tool keeps the others from starting
		var e effects
		s := newScript(calling(fc("c1", "a", `{"cents":1}`), fc("c2", "b", `{"cents":2}`), fc("c3", "a", `{"cents":3}`)), says("done"))
		agent := agentWith(s, charging("a", &e, nil), charging("b", &e, nil))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{MaxParallelTools: 1}))
		e.want(t, "a 1", "b 2", "a 3")
		if diff := cmp.Diff([]string{"c1: receipt 1", "c2: receipt 2", "c3: receipt 3"}, outputs(res.NewItems())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		var none effects
		s = newScript(calling(fc("c1", "a", `{"cents":1}`), fc("c2", "b", `{"cents":2}`)))
		_, err := new(pawl.Runner).Run(t.Context(), agentWith(s, charging("a", &none, nil), charging("b", &none, onTurns())), pawl.UserText("go"), nil)
		if missing, ok := errors.AsType[*pawl.ToolNotFoundError](err); !ok || !missing.Disabled {
			t.Errorf("error %v", err)
		}
		none.want(t)
	}},
	{"L3.42", func(t *testing.T) { // a tool's error is told to the model, in words that can be chosen
		fails := func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", errors.New("no funds") }
		}
		s := newScript(calling(fc("c1", "plain", `{"cents":1}`), fc("c2", "own", `{"cents":1}`)), says("done"))
		own := func(f *pawl.Func[charge, string]) {
			fails(f)
			f.OnError = func(_ context.Context, c *pawl.Call, err error) string { return c.Tool + ": " + err.Error() }
		}
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, charging("plain", nil, fails), charging("own", nil, own)), pawl.UserText("go"), nil))
		if diff := cmp.Diff([]string{"c1: The tool failed: no funds", "c2: own: no funds"}, outputs(res.NewItems())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
	{"L3.60", func(t *testing.T) { // a run that is stopped after its turn goes on
		var r pawl.Runner
		s := newScript(calling(call("c1", "look")), says("done"))
		agent := agentWith(s, namedTools("look")...)
		agent.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
			if rc.Turn == 1 {
				r.StopAfterTurn(rc.Run)
			}
			return "", nil
		}
		_, err := r.Run(t.Context(), agent, pawl.UserText("go"), nil)
		if !errors.Is(err, pawl.ErrStopped) {
			t.Fatalf("error %v", err)
		}
		state := stateOf(t, err)
		if got := outputs(state.Result().NewItems()); len(got) != 1 || got[0] != "c1: output of look" {
			t.Errorf("outputs %q", got)
		}
		if res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, state), nil)); res.FinalOutput != "done" {
			t.Errorf("output %q", res.FinalOutput)
		}
	}},
}
