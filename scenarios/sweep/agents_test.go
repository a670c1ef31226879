package sweep

import (
	"context"
	"slices"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// member makes an agent that answers by a script of its own.
func member(w *pawltest.World, name string, tools ...tool) *pawl.Agent {
	a := agent(tools...)(w)
	a.Name, a.Model = name, w.ModelOf(name)
	return a
}

// asks makes the tool that runs an agent: ask_ and its name. What fails in it fails the run, which is resumed.
func asks(w *pawltest.World, a *pawl.Agent, change func(*pawl.AgentToolOptions)) pawl.Tool {
	o := &pawl.AgentToolOptions{Name: "ask_" + a.Name, FailRun: true}
	if change != nil {
		change(o)
	}
	return pawl.AgentTool(a, o)
}

func delegates(id, to string) item.Item { return callWith(id, "ask_"+to, `{"input":"look"}`) }

func transfers(id, to string) item.Item { return callWith(id, "transfer_to_"+to, `{}`) }

type steps = []pawltest.ScriptedStep

// told is the script of an agent that says what it found, after some turns.
func told(before ...pawltest.ScriptedStep) steps { return append(before, turn(says("found"))) }

func handoffs() []pawltest.Scenario {
	// handing hands over to the clerk, who has tools.
	handing := func(own []tool, change func(*pawltest.World, *pawl.HandoffFunc[struct{}]), tools ...tool) func(*pawltest.World) *pawl.Agent {
		return func(w *pawltest.World) *pawl.Agent {
			f := pawl.HandoffFunc[struct{}]{Agent: member(w, "clerk", tools...)}
			if change != nil {
				change(w, &f)
			}
			a := agent(own...)(w)
			a.Handoffs = []pawl.Handoff{pawl.NewHandoff(f)}
			return a
		}
	}
	noticed := func(w *pawltest.World, f *pawl.HandoffFunc[struct{}]) {
		transferred := fact("", journal.KindTransferred)
		f.OnHandoff = func(_ context.Context, h *pawl.HandoffCall, _ struct{}) error {
			return question(w, h.RunContext, "OnHandoff "+h.ID, transferred)
		}
		remove := pawl.RemoveTools()
		f.Filter = func(ctx context.Context, h *pawl.HandoffData) ([]pawl.Item, error) {
			if err := question(w, h.RunContext, "the filter of "+h.ID, transferred); err != nil {
				return nil, err
			}
			return remove(ctx, h)
		}
	}
	done := turn(says("done"))
	over := steps{turn(transfers("c1", "clerk"))}
	return []pawltest.Scenario{
		{Name: "handoff", Agent: handing(nil, nil, send), Script: over, Scripts: map[string]steps{"clerk": {turn(call("c2", "send")), done}},
			Session: pawltest.PlainSession, WantEffects: []string{`send {"amount":5}`}},
		{Name: "handoff, noticed and filtered", Agent: handing([]tool{send}, noticed), Filtered: true, Session: pawltest.BatchSession,
			Script: steps{turn(call("c1", "send")), turn(item.ReasoningItem("rs_2", "so"), transfers("c2", "clerk"))}, Scripts: map[string]steps{"clerk": {done}},
			WantEffects: []string{`send {"amount":5}`}},
		{Name: "handoff beside a gated call", Agent: handing([]tool{pay}, nil, pay), Session: pawltest.BatchSession,
			Script:      steps{turn(call("c1", "pay"), transfers("c2", "clerk"), transfers("c3", "clerk"))},
			Scripts:     map[string]steps{"clerk": {turn(call("c4", "pay")), done}},
			WantEffects: []string{`pay {"amount":5}`, `pay {"amount":5}`}, WantAsked: []string{"pay c1", "pay c4"}},
		{Name: "handoff on a conversation", Agent: handing([]tool{send}, nil, pay), Options: func(o *pawl.RunOptions) { o.ConversationID = "conv_1" },
			Script: steps{turn(call("c1", "send"), transfers("c2", "clerk"))}, Scripts: map[string]steps{"clerk": {turn(call("c3", "pay")), done}},
			WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`}},
		{Name: "handoff in the store, nested history", Agent: handing([]tool{send}, nil, send), Session: pawltest.SessionInStore, Filtered: true,
			Options:     func(o *pawl.RunOptions) { o.NestHandoffs = &pawl.NestOptions{} },
			Script:      steps{turn(call("c1", "send")), turn(transfers("c2", "clerk"))},
			Scripts:     map[string]steps{"clerk": {turn(call("c3", "send")), done}},
			WantEffects: []string{`send {"amount":5}`, `send {"amount":5}`}},
	}
}

func nested() []pawltest.Scenario {
	done := turn(says("done"))
	delegated := steps{turn(delegates("c1", "clerk")), done}
	return slices.Concat(deeper(), []pawltest.Scenario{
		{Name: "nested, one approval", Script: delegated, Session: pawltest.PlainSession, Scripts: map[string]steps{"clerk": told(turn(call("n1", "pay")))},
			Agent: func(w *pawltest.World) *pawl.Agent {
				return withTools(agent()(w), asks(w, member(w, "clerk", pay), nil))
			},
			WantEffects: []string{`pay {"amount":5}`}, WantAsked: []string{"pay n1"}},
		{Name: "nested, sticky in the caller", Session: pawltest.BatchSession,
			Script:  steps{turn(call("c1", "pay")), turn(delegates("c2", "clerk"), call("c3", "pay")), done},
			Scripts: map[string]steps{"clerk": told(turn(call("n1", "pay")))},
			Agent: func(w *pawltest.World) *pawl.Agent {
				return withTools(agent(pay)(w), asks(w, member(w, "clerk", pay), nil))
			},
			Decide: first(func(in pawl.Interruption) pawl.Decision {
				d := approve(in)
				d.Always = in.CallID == "c1"
				return d
			}),
			WantEffects: []string{`pay {"amount":5}`, `pay {"amount":5}`, `pay {"amount":5}`}, WantAsked: []string{"pay c1", "pay n1"}},
		{Name: "nested, a session of its own", Script: delegated, Session: pawltest.BatchSession,
			Scripts: map[string]steps{"clerk": told(turn(call("n1", "send")), turn(call("n2", "pay")))},
			Agent: func(w *pawltest.World) *pawl.Agent {
				return withTools(agent()(w), asks(w, member(w, "clerk", send, pay), func(o *pawl.AgentToolOptions) {
					o.Options = &pawl.RunOptions{Session: w.Session("clerk")}
				}))
			},
			WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`}, WantAsked: []string{"pay n2"}},
		{Name: "nested, side by side", Session: pawltest.BatchSession,
			Script: steps{turn(delegates("c1", "clerk"), delegates("c2", "scout"), call("c3", "send")), done},
			Scripts: map[string]steps{"clerk": told(turn(call("n1", "pay"))),
				"scout": told(turn(call("s1", "look_up")), turn(call("s2", "put")))},
			Agent: func(w *pawltest.World) *pawl.Agent {
				return withTools(agent(send)(w), asks(w, member(w, "clerk", pay), nil), asks(w, member(w, "scout", lookUp, put), nil))
			},
			WantEffects: []string{`look_up {"amount":5}`, `pay {"amount":5}`, `put {"amount":5}`, `send {"amount":5}`}, WantAsked: []string{"pay n1"}},
		{Name: "nested, failures are told", Script: delegated, Session: pawltest.BatchSession,
			Scripts: map[string]steps{"clerk": told(turn(call("n1", "send"), call("n2", "pay")))},
			Agent: func(w *pawltest.World) *pawl.Agent {
				return withTools(agent()(w), asks(w, member(w, "clerk", send, pay), func(o *pawl.AgentToolOptions) { o.FailRun = false }))
			},
			WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`}},
	})
}

func withTools(a *pawl.Agent, tools ...pawl.Tool) *pawl.Agent {
	a.Tools = append(a.Tools, tools...)
	return a
}

// deeper are runs nested in nested runs.
func deeper() []pawltest.Scenario {
	done := turn(says("done"))
	gated := func(o *pawl.AgentToolOptions) { o.Approve = pawl.AlwaysAsk[pawl.AgentInput] }
	at := places{"c1": "1.0", "n1": "1.0/1.0"}
	entered := func(w *pawltest.World, frame, name string) func(context.Context, *pawl.Call, pawl.AgentInput) (pawl.Input, error) {
		return func(_ context.Context, c *pawl.Call, in pawl.AgentInput) (pawl.Input, error) {
			return pawl.UserText(in.Input), question(w, c.RunContext, "the input of "+name, fact(frame, journal.KindStarted))
		}
	}
	left := func(w *pawltest.World, frame, id, name string) func(context.Context, *pawl.Call, *pawl.Result) (string, error) {
		return func(_ context.Context, c *pawl.Call, r *pawl.Result) (string, error) {
			return r.FinalOutput, question(w, c.RunContext, "the output of "+name, fact(frame, journal.KindSettled, `"id":"t`+id+"."))
		}
	}
	return []pawltest.Scenario{
		{Name: "nested twice, approvals at each level", Session: pawltest.BatchSession,
			Script: steps{turn(delegates("c1", "clerk"), call("c2", "pay")), done},
			Scripts: map[string]steps{"clerk": told(turn(call("n1", "pay"), delegates("n2", "scout"))),
				"scout": told(turn(call("s1", "ship"), call("s2", "pay")))},
			Agent: func(w *pawltest.World) *pawl.Agent {
				scout := member(w, "scout", ship, pay)
				clerk := withTools(member(w, "clerk", pay), asks(w, scout, gated))
				return withTools(agent(pay)(w), asks(w, clerk, gated))
			},
			Decide:      by(map[string]func(pawl.Interruption) pawl.Decision{"pay": approve, "ship": reject, "ask_clerk": approve, "ask_scout": approve}),
			WantEffects: []string{`pay {"amount":5}`, `pay {"amount":5}`, `pay {"amount":5}`},
			WantAsked:   []string{"ask_clerk c1", "ask_scout n2", "pay c2", "pay n1", "pay s2", "ship s1"}},
		{Name: "nested twice, input and output made", Session: pawltest.PlainSession, Script: steps{turn(delegates("c1", "clerk")), done},
			Scripts: map[string]steps{"clerk": told(turn(delegates("n1", "scout"))), "scout": told(turn(call("s1", "pay")))},
			Agent: func(w *pawltest.World) *pawl.Agent {
				scout := pawl.NewAgentTool(pawl.AgentFunc[pawl.AgentInput]{Name: "ask_scout", Agent: member(w, "scout", pay), FailRun: true,
					Input: entered(w, at["n1"], "scout"), Output: left(w, at["c1"], at.position("n1"), "scout")})
				clerk := pawl.NewAgentTool(pawl.AgentFunc[pawl.AgentInput]{Name: "ask_clerk", Agent: withTools(member(w, "clerk"), scout), FailRun: true,
					Input: entered(w, at["c1"], "clerk"), Output: left(w, "", at.position("c1"), "clerk")})
				return withTools(agent()(w), clerk)
			},
			WantEffects: []string{`pay {"amount":5}`}, WantAsked: []string{"pay s1"}},
		{Name: "nested, with a handoff", Session: pawltest.BatchSession, Script: steps{turn(delegates("c1", "clerk")), done},
			Scripts: map[string]steps{"clerk": {turn(call("n1", "send"), transfers("n2", "scout"))}, "scout": told(turn(call("s1", "pay")))},
			Agent: func(w *pawltest.World) *pawl.Agent {
				clerk := member(w, "clerk", send)
				clerk.Handoffs = []pawl.Handoff{pawl.HandoffTo(member(w, "scout", pay))}
				return withTools(agent()(w), asks(w, clerk, nil))
			},
			WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`}, WantAsked: []string{"pay s1"}},
		{Name: "nested, cancelled", Session: pawltest.BatchSession, Script: steps{turn(delegates("c1", "clerk"), call("c2", "send")), done},
			Scripts: map[string]steps{"clerk": told(turn(call("n1", "send"), call("n2", "pay")))}, Cancel: true, WantStatus: pawl.StatusCancelled,
			Agent: func(w *pawltest.World) *pawl.Agent {
				return withTools(agent(send)(w), asks(w, member(w, "clerk", send, pay), nil))
			},
			WantEffects: []string{`send {"amount":5}`, `send {"amount":5}`}},
	}
}
