package sweep

import (
	"context"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// source is a source of tools that has other ones in some turns than in turn 0.
type source struct {
	w  *pawltest.World
	in map[int][]tool
}

func (source) Label() string { return "shelf" }

func (s source) Tools(_ context.Context, rc *pawl.RunContext) ([]pawl.Tool, error) {
	has, ok := s.in[rc.Turn]
	if !ok {
		has = s.in[0]
	}
	var list []pawl.Tool
	for _, t := range has {
		list = append(list, t.make(s.w))
	}
	return list, nil
}

// sourced gives an agent a source.
func sourced(w *pawltest.World, a *pawl.Agent, in map[int][]tool) *pawl.Agent {
	a.ToolSources = []pawl.ToolSource{source{w, in}}
	return a
}

// listed are runs of agents whose tools are listed in every turn.
func listed() []pawltest.Scenario {
	charge := tool{name: "charge", recovers: true, gated: true, in: func(w *pawltest.World) []pawl.ToolInputGuardrail {
		return onCall(w, "limit", pawl.PassTool(nil))
	}}
	return []pawltest.Scenario{
		{Name: "tools of a source", Agent: func(w *pawltest.World) *pawl.Agent {
			return sourced(w, agent(send)(w), map[int][]tool{0: {pay, lookUp}})
		},
			Script:      steps{turn(call("c1", "pay"), call("c2", "look_up")), turn(call("c3", "send")), turn(says("done"))},
			WantEffects: []string{`pay {"amount":5}`, `look_up {"amount":5}`, `send {"amount":5}`}, WantAsked: []string{"pay c1"}},
		{Name: "a source with other tools in every turn", Session: pawltest.BatchSession, Agent: func(w *pawltest.World) *pawl.Agent {
			return sourced(w, agent()(w), map[int][]tool{1: {pay}, 2: {put, send}})
		},
			Script:      steps{turn(call("c1", "pay")), turn(call("c2", "put"), call("c3", "send")), turn(says("done"))},
			WantEffects: []string{`pay {"amount":5}`, `put {"amount":5}`, `send {"amount":5}`}, WantAsked: []string{"pay c1"}},
		{Name: "a source with a tool that is checked, and can be asked", NoDoubt: true, Agent: func(w *pawltest.World) *pawl.Agent {
			return sourced(w, agent()(w), map[int][]tool{0: {charge}})
		},
			Script: payAndSay("charge"), WantEffects: []string{`charge {"amount":5}`}, WantAsked: []string{"charge c1"}},
		{Name: "a source of an agent that is called", Agent: func(w *pawltest.World) *pawl.Agent {
			clerk := sourced(w, member(w, "clerk"), map[int][]tool{0: {pay}})
			return withTools(sourced(w, agent()(w), map[int][]tool{0: {send}}), asks(w, clerk, nil))
		},
			Script:      steps{turn(delegates("c1", "clerk"), call("c2", "send")), turn(says("done"))},
			Scripts:     map[string]steps{"clerk": told(turn(call("c1", "pay")))},
			WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`}, WantAsked: []string{"pay c1"}},
	}
}
