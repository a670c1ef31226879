package sweep

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

func guardrails() []pawltest.Scenario {
	done := turn(says("done"))
	sent := []string{`send {"amount":5}`}
	// guarded is an agent of some tools, changed.
	guarded := func(change func(*pawltest.World, *pawl.Agent), tools ...tool) func(*pawltest.World) *pawl.Agent {
		return func(w *pawltest.World) *pawl.Agent {
			a := agent(tools...)(w)
			change(w, a)
			return a
		}
	}
	onto := func(blocking, trips bool) func(*pawltest.World, *pawl.Agent) {
		return func(w *pawltest.World, a *pawl.Agent) { a.InputGuardrails = onInput(w, "topic", blocking, trips) }
	}
	secrets := func(trips bool) func(*pawltest.World, *pawl.Agent) {
		return func(w *pawltest.World, a *pawl.Agent) { a.OutputGuardrails = onOutput(w, "secrets", trips) }
	}
	blurts := turn(item.ReasoningItem("rs_2", "a secret"), says("a secret"))
	return []pawltest.Scenario{
		{Name: "input guardrail first, passes", Agent: guarded(onto(true, false), send), Script: payAndSay("send"), Session: pawltest.PlainSession, WantEffects: sent},
		{Name: "input guardrail first, trips", Agent: guarded(onto(true, true), send), Script: payAndSay("send"), Session: pawltest.BatchSession,
			WantStatus: pawl.StatusCancelled, WantEffects: []string{}},
		{Name: "input guardrail beside, passes", Agent: guarded(onto(false, false), send, lookUp), Session: pawltest.BatchSession,
			Script:      steps{turn(call("c1", "look_up")), turn(call("c2", "send")), done},
			WantEffects: []string{`look_up {"amount":5}`, `send {"amount":5}`}},
		{Name: "input guardrail beside, trips", Agent: guarded(onto(false, true), send, lookUp), Session: pawltest.PlainSession, Races: true,
			Script:     steps{turn(item.ReasoningItem("rs_1", "a secret"), call("c1", "look_up")), turn(item.ReasoningItem("rs_2", "a secret"), says("a secret"), call("c2", "send")), done},
			WantStatus: pawl.StatusCancelled, Withheld: []string{"a secret"}},
		{Name: "input guardrails, all of them", Session: pawltest.BatchSession, Script: payAndSay("pay"), WantEffects: []string{`pay {"amount":5}`},
			Agent: guarded(func(w *pawltest.World, a *pawl.Agent) {
				a.InputGuardrails = append(onInput(w, "first", true, false), onInput(w, "beside", false, false)...)
			}, pay),
			Driving: func(w *pawltest.World, o *pawl.RunOptions) {
				o.InputGuardrails = onInput(w, "of the run", false, false)
			}},
		{Name: "output guardrail, passes", Agent: guarded(secrets(false), send), Script: payAndSay("send"), Session: pawltest.BatchSession, WantEffects: sent},
		{Name: "output guardrail, trips", Agent: guarded(secrets(true), send), Script: steps{turn(call("c1", "send")), blurts}, Session: pawltest.PlainSession,
			WantStatus: pawl.StatusCancelled, WantEffects: sent, Withheld: []string{"a secret"}},
		{Name: "output guardrail of a tool's answer, trips", Session: pawltest.BatchSession, Script: payAndSay("put"),
			Agent: guarded(func(w *pawltest.World, a *pawl.Agent) {
				a.ToolUse, a.OutputGuardrails = pawl.StopOnFirstTool(), onOutput(w, "secrets", true)
			}, put),
			WantStatus: pawl.StatusCancelled, WantEffects: []string{`put {"amount":5}`}, Withheld: []string{"put done"}},
		{Name: "tool input guardrail, rejects", Session: pawltest.PlainSession, WantEffects: sent,
			Agent: agent(tool{name: "pay", in: func(w *pawltest.World) []pawl.ToolInputGuardrail {
				return onCall(w, "limit", pawl.RejectContent("too much", nil))
			}}, send),
			Script: steps{turn(call("c1", "pay"), call("c2", "send")), done}},
		{Name: "tool input guardrail, trips", Session: pawltest.BatchSession, WantEffects: []string{}, WantStatus: pawl.StatusCancelled,
			Agent:  agent(tool{name: "pay", in: func(w *pawltest.World) []pawl.ToolInputGuardrail { return onCall(w, "limit", pawl.TripTool(nil)) }}),
			Script: payAndSay("pay")},
		{Name: "tool input guardrail, before an approval", Session: pawltest.BatchSession, WantEffects: []string{`pay {"amount":5}`}, WantAsked: []string{"pay c1"},
			Agent: agent(tool{name: "pay", gated: true, in: func(w *pawltest.World) []pawl.ToolInputGuardrail { return onCall(w, "before", pawl.PassTool("fine")) }},
				tool{name: "ship", gated: true, in: func(w *pawltest.World) []pawl.ToolInputGuardrail {
					return onCall(w, "also before", pawl.RejectContent("not there", nil))
				}}),
			Options: func(o *pawl.RunOptions) { o.GuardBeforeApproval = true },
			Script:  steps{turn(call("c1", "pay"), call("c2", "ship")), done}},
		{Name: "tool output guardrail, rejects", Session: pawltest.BatchSession, Unrecorded: []string{"put done", "send done"}, NoDoubt: true,
			Agent: agent(tool{name: "put", effect: pawl.Idempotent, out: func(w *pawltest.World) []pawl.ToolOutputGuardrail {
				return onResult(w, "no numbers", pawl.RejectContent("it is done", nil))
			}}, tool{name: "send", recovers: true, out: func(w *pawltest.World) []pawl.ToolOutputGuardrail {
				return onResult(w, "no names", pawl.RejectContent("it is done", nil))
			}}),
			Script: steps{turn(call("c1", "put"), call("c2", "send")), done}, WantEffects: []string{`put {"amount":5}`, `send {"amount":5}`}},
		{Name: "tool output guardrail, passes", Session: pawltest.PlainSession, WantEffects: sent, Script: payAndSay("send"),
			Agent: agent(tool{name: "send", gated: true, out: func(w *pawltest.World) []pawl.ToolOutputGuardrail { return onResult(w, "numbers", pawl.PassTool(nil)) }})},
		{Name: "nested, guarded", Session: pawltest.BatchSession, Script: steps{turn(delegates("c1", "clerk")), done},
			Scripts: map[string]steps{"clerk": told(turn(call("n1", "pay")))}, WantEffects: []string{`pay {"amount":5}`},
			Agent: func(w *pawltest.World) *pawl.Agent {
				clerk := member(w, "clerk", pay)
				clerk.InputGuardrails = []pawl.InputGuardrail{{Name: "topic", Check: func(_ context.Context, in *pawl.InputCheck) (pawl.GuardrailVerdict, error) {
					return pawl.GuardrailVerdict{}, w.Ask(pawltest.Moment{Kind: pawltest.InputGuardrail, Name: "topic", In: in.RunContext,
						Fact: fact("1.0", journal.KindChecked, named("topic"))})
				}}}
				return withTools(agent()(w), asks(w, clerk, func(o *pawl.AgentToolOptions) {
					o.InputGuardrails, o.OutputGuardrails = onCall(w, "limit", pawl.PassTool(nil)), onResult(w, "numbers", pawl.PassTool(nil))
				}))
			}},
		{Name: "nested, a trip is told", Session: pawltest.BatchSession, Script: steps{turn(delegates("c1", "clerk"), call("c2", "send")), done},
			Scripts: map[string]steps{"clerk": {turn(call("n1", "send")), turn(item.ReasoningItem("rs_n2", "a secret"), says("a secret"))}},
			Agent: func(w *pawltest.World) *pawl.Agent {
				clerk := member(w, "clerk", send)
				clerk.OutputGuardrails = []pawl.OutputGuardrail{{Name: "secrets", Check: func(_ context.Context, out *pawl.OutputCheck) (pawl.GuardrailVerdict, error) {
					return pawl.GuardrailVerdict{Tripped: true}, w.Ask(pawltest.Moment{Kind: pawltest.OutputGuardrail, Name: "secrets", In: out.RunContext,
						Fact: fact("1.0", journal.KindChecked, named("secrets"))})
				}}}
				return withTools(agent(send)(w), asks(w, clerk, func(o *pawl.AgentToolOptions) { o.FailRun = false }))
			},
			WantEffects: []string{`send {"amount":5}`, `send {"amount":5}`}, Withheld: []string{"a secret"}},
	}
}

// around are hooks, error handlers and filters of input.
func around() []pawltest.Scenario {
	done := turn(says("done"))
	at := places{"c1": "1.0", "c2": "1.1", "c3": "1.2", "c4": "2.0", "n1": "1.1/1.0", "n2": "1.1/1.1"}
	everywhere := pawltest.Scenario{Name: "hooks everywhere", Session: pawltest.BatchSession,
		Script: steps{turn(call("c1", "pay"), delegates("c2", "clerk"), transfers("c3", "scout"))},
		Scripts: map[string]steps{"clerk": told(turn(call("n1", "send"), call("n2", "pay"))),
			"scout": {turn(call("c4", "send")), done}},
		Agent: func(w *pawltest.World) *pawl.Agent {
			clerk, scout, a := member(w, "clerk", send, pay), member(w, "scout", send), agent(pay)(w)
			clerk.Hooks, scout.Hooks, a.Hooks = hooks(w, "clerk", at), hooks(w, "scout", at), hooks(w, "desk", at)
			a.Handoffs = []pawl.Handoff{pawl.HandoffTo(scout)}
			return withTools(a, asks(w, clerk, nil))
		},
		Driving:     func(w *pawltest.World, o *pawl.RunOptions) { o.Hooks = hooks(w, "run", at) },
		WantEffects: []string{`pay {"amount":5}`, `pay {"amount":5}`, `send {"amount":5}`, `send {"amount":5}`}}
	return []pawltest.Scenario{
		{Name: "hooks", Agent: agent(pay, send), Session: pawltest.PlainSession, Script: steps{turn(call("c1", "pay"), call("c2", "send")), done},
			Driving:     func(w *pawltest.World, o *pawl.RunOptions) { o.Hooks = hooks(w, "run", at) },
			WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`}},
		everywhere,
		{Name: "hooks, cancelled", Agent: agent(pay, send), Session: pawltest.BatchSession, Script: steps{turn(call("c1", "pay"), call("c2", "send")), done},
			Driving: func(w *pawltest.World, o *pawl.RunOptions) { o.Hooks = hooks(w, "run", at) }, Cancel: true, WantStatus: pawl.StatusCancelled,
			WantEffects: []string{`send {"amount":5}`}},
		{Name: "hook of ends only", Agent: agent(), Session: pawltest.BatchSession, Script: steps{done},
			Driving: func(w *pawltest.World, o *pawl.RunOptions) {
				o.Hooks = &pawl.Hooks{AgentEnd: hooks(w, "run", at).AgentEnd}
			}},
		{Name: "error handler", Agent: agent(send), Session: pawltest.BatchSession, Options: func(o *pawl.RunOptions) { o.MaxTurns = 1 },
			Script: payAndSay("send"), WantEffects: []string{`send {"amount":5}`}, Want: "too long",
			Driving: func(w *pawltest.World, o *pawl.RunOptions) {
				o.ErrorHandlers.MaxTurns = func(_ context.Context, e *pawl.HandledError) (*pawl.Handled, error) {
					return &pawl.Handled{Output: "too long"}, question(w, e.RunContext, "the error handler", fact("", journal.KindHandled))
				}
			}},
		{Name: "input filtered", Agent: with(agent(send, pay), func(a *pawl.Agent) { a.Settings = &pawl.ModelSettings{Retry: retryTwice()} }),
			Session: pawltest.BatchSession, Script: steps{turn(call("c1", "send")), turn(call("c2", "pay")), done}, Filtered: true,
			WantEffects: []string{`pay {"amount":5}`, `send {"amount":5}`}, Driving: filtering},
		{Name: "input filtered on a chain", Agent: with(agent(send), func(a *pawl.Agent) { a.Settings = &pawl.ModelSettings{Retry: retryTwice()} }),
			Options: func(o *pawl.RunOptions) { o.AutoPreviousResponseID = true }, Script: payAndSay("send"), Filtered: true,
			WantEffects: []string{`send {"amount":5}`}, Driving: filtering},
		{Name: "input merged", Agent: agent(send), Session: pawltest.PlainSession, Script: payAndSay("send"), Filtered: true,
			WantEffects: []string{`send {"amount":5}`},
			Driving: func(w *pawltest.World, o *pawl.RunOptions) {
				o.MergeInput = func(_ context.Context, history, input []pawl.Item) ([]pawl.Item, error) {
					merged := append(append(pawl.UserText("a note"), history...), input...)
					return merged, question(w, pawl.RunContext{}, "the merging", fact("", journal.KindLoaded))
				}
			}},
	}
}

// filtering puts a note in front of each request.
func filtering(w *pawltest.World, o *pawl.RunOptions) {
	o.FilterInput = func(_ context.Context, in *pawl.ModelInput) error {
		in.Items = append(pawl.UserText(fmt.Sprintf("this is turn %d", in.Turn)), in.Items...)
		return question(w, in.RunContext, fmt.Sprintf("the filter of turn %d", in.Turn), fact("", journal.KindPrepared, number(in.Turn)))
	}
}
