package scenarios

import (
	"context"
	"errors"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// onInput and onOutput make guardrails that note what they were asked.

func (k *kit) onInput(name string, v pawl.GuardrailVerdict, err error) pawl.InputGuardrail {
	return pawl.InputGuardrail{Name: name, Check: func(_ context.Context, in *pawl.InputCheck) (pawl.GuardrailVerdict, error) {
		k.does("%s of %d items behind %d", name, len(in.Input), len(in.History))
		return v, err
	}}
}

func (k *kit) onOutput(name string, v pawl.GuardrailVerdict, err error) pawl.OutputGuardrail {
	return pawl.OutputGuardrail{Name: name, Check: func(_ context.Context, out *pawl.OutputCheck) (pawl.GuardrailVerdict, error) {
		k.does("%s of %s", name, out.Output)
		return v, err
	}}
}

func guardCases() []symmetric {
	tripped := pawl.GuardrailVerdict{Tripped: true, Info: "because"}
	input := func(blocking bool, v pawl.GuardrailVerdict) func(*kit) {
		return func(k *kit) {
			g := k.onInput("in", v, nil)
			g.Blocking = blocking
			k.agent.InputGuardrails, k.agent.Tools = []pawl.InputGuardrail{g}, []pawl.Tool{k.tool("t")}
			k.start("go")
		}
	}
	output := func(v pawl.GuardrailVerdict, more ...func(*kit)) func(*kit) {
		return func(k *kit) {
			k.opts.OutputGuardrails = []pawl.OutputGuardrail{k.onOutput("out", v, nil)}
			k.agent.Tools = []pawl.Tool{k.tool("t"), k.tool("g", gated)}
			for _, m := range more {
				m(k)
			}
			k.start("go")
		}
	}
	first := func(k *kit) { k.agent.ToolUse = pawl.StopOnFirstTool() }
	return append(guardToolCases(), []symmetric{
		{"input passes", once(call("c1", "t")), input(false, pawl.GuardrailVerdict{Info: "fine"}), "finished done"},
		{"input passes before the model", once(call("c1", "t")), input(true, pawl.GuardrailVerdict{}), "finished done"},
		{"input trips before the model", nil, input(true, tripped), "cancelled tripped"},
		{"input without a verdict", script(answers(says("done"))), func(k *kit) {
			g := k.onInput("in", pawl.GuardrailVerdict{}, errors.New("no line"))
			g.Blocking = true
			k.opts.InputGuardrails = []pawl.InputGuardrail{g}
			k.start("go")
			k.opts.InputGuardrails[0].Check = k.onInput("in", pawl.GuardrailVerdict{}, nil).Check
			k.resume()
		}, "finished done"},
		{"output passes", once(call("c1", "t")), output(pawl.GuardrailVerdict{}), "finished done"},
		{"output trips", once(call("c1", "t")), output(tripped), "cancelled tripped"},
		{"output of a tool passes", script(answers(call("c1", "t"))), output(pawl.GuardrailVerdict{}, first), "finished t"},
		{"output of a tool trips", script(answers(call("c1", "t"))), output(tripped, first), "cancelled tripped"},
		{"output of an approved tool trips", script(answers(call("c1", "g"))), func(k *kit) {
			output(tripped, first)(k)
			k.resume(approve("c1")).resume()
		}, "cancelled tripped"},
		{"output of the agent that took over", script(answers(call("h1", "transfer_to_b")), answers(says("done"))), func(k *kit) {
			b := k.named("B")
			b.OutputGuardrails = []pawl.OutputGuardrail{k.onOutput("of b", pawl.GuardrailVerdict{}, nil)}
			k.agent.OutputGuardrails = []pawl.OutputGuardrail{k.onOutput("of desk", tripped, nil)}
			k.agent.Handoffs = []pawl.Handoff{pawl.HandoffTo(b)}
			k.start("go")
		}, "finished done"},
		{"nested, trips", script(answers(asks("m1", "clerk", "it")), answers(says("a secret")), answers(says("done"))), func(k *kit) {
			clerk := k.named("Clerk")
			clerk.OutputGuardrails = []pawl.OutputGuardrail{k.onOutput("of clerk", tripped, nil)}
			k.agent.Tools = []pawl.Tool{pawl.AgentTool(clerk, nil)}
			k.start("go")
		}, "finished done"},
	}...)
}

func guardToolCases() []symmetric {
	in := func(k *kit, v pawl.ToolVerdict, err error) func(*pawl.Func[arguments, string]) {
		return func(f *pawl.Func[arguments, string]) {
			f.InputGuardrails = []pawl.ToolInputGuardrail{{Name: "call", Check: func(_ context.Context, c *pawl.ToolInputCheck) (pawl.ToolVerdict, error) {
				k.does("call of %s with %s", c.ID, c.Arguments)
				return v, err
			}}}
		}
	}
	out := func(k *kit, v pawl.ToolVerdict) func(*pawl.Func[arguments, string]) {
		return func(f *pawl.Func[arguments, string]) {
			f.OutputGuardrails = []pawl.ToolOutputGuardrail{{Name: "output", Check: func(_ context.Context, c *pawl.ToolOutputCheck) (pawl.ToolVerdict, error) {
				k.does("output %s of %s", c.Output, c.ID)
				return v, nil
			}}}
		}
	}
	with := func(change func(*kit) func(*pawl.Func[arguments, string])) func(*kit) {
		return func(k *kit) { k.agent.Tools = []pawl.Tool{k.tool("t", change(k)), k.tool("u")}; k.start("go") }
	}
	two := []item.Item{call("c1", "t"), call("c2", "u")}
	return []symmetric{
		{"call passes", once(two...), with(func(k *kit) func(*pawl.Func[arguments, string]) { return in(k, pawl.PassTool("fine"), nil) }), "finished done"},
		{"call rejected", once(two...), with(func(k *kit) func(*pawl.Func[arguments, string]) {
			return in(k, pawl.RejectContent("not that", nil), nil)
		}), "finished done"},
		{"call trips", script(answers(call("c1", "t"))), with(func(k *kit) func(*pawl.Func[arguments, string]) { return in(k, pawl.TripTool("no"), nil) }), "cancelled tripped"},
		{"call without a verdict", script(answers(call("c1", "t"))), with(func(k *kit) func(*pawl.Func[arguments, string]) {
			return in(k, pawl.ToolVerdict{}, errors.New("no line"))
		}), "failed guardrail"},
		{"tool's output passes", once(two...), with(func(k *kit) func(*pawl.Func[arguments, string]) { return out(k, pawl.PassTool(nil)) }), "finished done"},
		{"tool's output rejected", once(two...), with(func(k *kit) func(*pawl.Func[arguments, string]) { return out(k, pawl.RejectContent("withheld", nil)) }), "finished done"},
		{"tool's output trips", script(answers(call("c1", "t"))), with(func(k *kit) func(*pawl.Func[arguments, string]) { return out(k, pawl.TripTool(nil)) }), "cancelled tripped"},
		{"call rejected before it is approved", once(call("c1", "t")), func(k *kit) {
			k.opts.GuardBeforeApproval = true
			k.agent.Tools = []pawl.Tool{k.tool("t", gated, in(k, pawl.RejectContent("not that", nil), nil))}
			k.start("go")
		}, "finished done"},
		{"call rejected after it is approved", once(call("c1", "t")), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t", gated, in(k, pawl.RejectContent("not that", nil), nil))}
			k.start("go").resume(approve("c1"))
		}, "finished done"},
	}
}

func handlerCases() []symmetric {
	saying := func(output any, omit bool) pawl.ErrorHandler {
		return func(context.Context, *pawl.HandledError) (*pawl.Handled, error) {
			return &pawl.Handled{Output: output, OmitFromHistory: omit}, nil
		}
	}
	with := func(h pawl.ErrorHandlers, turns int) func(*kit) {
		return func(k *kit) {
			k.opts.ErrorHandlers, k.opts.MaxTurns, k.agent.Tools = h, turns, []pawl.Tool{k.tool("t")}
			k.start("go")
		}
	}
	refusal := item.FromTrusted(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I will not."}]}`)
	structured := func(play func(*kit)) func(*kit) {
		return func(k *kit) { k.agent.Output = pawl.OutputOf[verdictOf](); play(k) }
	}
	declines := func(context.Context, *pawl.HandledError) (*pawl.Handled, error) { return nil, nil }
	turn := script(answers(call("c1", "t")))
	return []symmetric{
		{"turns used up, handled", turn, with(pawl.ErrorHandlers{MaxTurns: saying("so far", false)}, 1), "finished so far"},
		{"turns used up, handled beside the history", turn, with(pawl.ErrorHandlers{MaxTurns: saying("so far", true)}, 1), "finished so far"},
		{"turns used up, declined", turn, with(pawl.ErrorHandlers{MaxTurns: declines}, 1), "failed max turns"},
		{"refusal handled", script(answers(refusal)), with(pawl.ErrorHandlers{Refusal: saying("It cannot.", false)}, 0), "finished It cannot."},
		{"invalid output handled", script(answers(says("no json"))), structured(with(pawl.ErrorHandlers{InvalidOutput: saying(verdictOf{Words: "none"}, false)}, 0)), `finished {"fine":false,"words":"none"}`},
		{"invalid output handled badly", script(answers(says("no json"))), structured(with(pawl.ErrorHandlers{InvalidOutput: saying("none", false)}, 0)), "failed output"},
		{"handled, and checked", turn, func(k *kit) {
			k.agent.OutputGuardrails = []pawl.OutputGuardrail{k.onOutput("out", pawl.GuardrailVerdict{Tripped: true}, nil)}
			with(pawl.ErrorHandlers{MaxTurns: saying("so far", false)}, 1)(k)
		}, "cancelled tripped"},
	}
}

func addedCases() []symmetric {
	add := func(k *kit, text string) {
		if err := k.runner.AddInput(k.Context(), "run", pawl.UserText(text)); err != nil {
			k.Fatal(err)
		}
	}
	waits := func(k *kit) {
		k.agent.Tools = []pawl.Tool{k.tool("t", gated)}
		k.start("go")
	}
	return []symmetric{
		{"input added while it waits", once(call("c1", "t")), func(k *kit) {
			waits(k)
			add(k, "and hurry")
			k.resume(approve("c1"))
		}, "finished done"},
		{"input added twice", once(call("c1", "t")), func(k *kit) {
			waits(k)
			add(k, "one")
			add(k, "two")
			k.resume(reject("c1", "no"))
		}, "finished done"},
		{"input added after a failure", script(refusing(400), answers(says("heard")), answers(says("done"))), func(k *kit) {
			k.start("go")
			add(k, "please")
			k.resume()
		}, "finished done"},
	}
}
