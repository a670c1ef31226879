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
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// orderFeatures are rows about what happens in a turn, and in which order.
var orderFeatures = []feature{
	{"L3.01", TestPreparationOfARun},
	{"L3.02", TestLoopHead},
	{"L3.10", TestOrderOfATurn},
	{"L3.31", TestResumeOfWhatDoesNotFit},
	{"L3.40", TestOrderOfACall},
	{"L3.50", TestCallsOfOtherKinds},
}

// noted is a session that notes what is done with it.
type noted struct {
	session.Session
	e *effects
}

func (s noted) Items(ctx context.Context, limit int) ([]pawl.Item, error) {
	s.e.add("session is read")
	return s.Session.Items(ctx, limit)
}

func (s noted) Append(ctx context.Context, list []pawl.Item) error {
	for _, it := range list {
		s.e.add("session gets %s", it.Type())
	}
	return s.Session.Append(ctx, list)
}

// The session is read and merged with the input once, and has the input before the model does;
// options that exclude each other are refused before any of that.
func TestPreparationOfARun(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		sess := noted{session.NewMemory("s"), &e}
		if err := sess.Session.Append(t.Context(), []pawl.Item{item.UserText("before")}); err != nil {
			t.Fatal(err)
		}
		s := newScript(func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			e.add("model reads %d items", req.Input.Len())
			return says("done")(ctx, req, emit)
		})
		s.info.ServerState = true
		opts := &pawl.RunOptions{Session: sess, AutoPreviousResponseID: true, MergeInput: func(_ context.Context, history, in []pawl.Item) ([]pawl.Item, error) {
			e.add("merge %d and %d", len(history), len(in))
			return append(history, in...), nil
		}}
		if _, err := m.run(new(pawl.Runner), t.Context(), agentWith(s), pawl.UserText("go"), opts); err == nil {
			t.Error("a session and a chain")
		}
		e.want(t)
		opts.AutoPreviousResponseID = false
		must(t)(m.run(new(pawl.Runner), t.Context(), agentWith(s), pawl.UserText("go"), opts))
		e.want(t, "session is read", "merge 1 and 1", "session gets message", "model reads 2 items", "session gets message")
	})
}

// Each turn asks anew what it offers and counts once; a turn that is resumed is the same turn, and
// beyond the bound nothing of a turn is asked.
func TestLoopHead(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":1}`)), calling(fc("c2", "look", `{"cents":2}`))),
			charging("pay", &e, asking), charging("look", &e, func(f *pawl.Func[charge, string]) {
				f.Enabled = func(_ context.Context, rc *pawl.RunContext) (bool, error) {
					e.add("look in turn %d?", rc.Turn)
					return true, nil
				}
			}))
		agent.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
			e.add("turn %d", rc.Turn)
			return "", nil
		}
		var r pawl.Runner
		state := must(t)(m.run(&r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{MaxTurns: 2})).State()
		if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		_, err := m.resume(&r, t.Context(), agent, state, nil)
		if most, ok := errors.AsType[*pawl.MaxTurnsError](err); !ok || most.MaxTurns != 2 {
			t.Errorf("error %v", err)
		}
		e.want(t, "turn 1", "look in turn 1?", "pay 1", "turn 2", "look in turn 2?", "look in turn 2?", "look 2")
	})
}

// notingHooks note what they are told.
func notingHooks(e *effects) *pawl.Hooks {
	return &pawl.Hooks{
		AgentStart: func(_ context.Context, ev *pawl.AgentStart) { e.add("hook: %s starts", ev.Agent.Name) },
		AgentEnd:   func(_ context.Context, ev *pawl.AgentEnd) { e.add("hook: %s ends", ev.Agent.Name) },
		ModelStart: func(_ context.Context, ev *pawl.ModelStart) { e.add("hook: request %d", ev.Turn) },
		ModelEnd:   func(_ context.Context, ev *pawl.ModelEnd) { e.add("hook: response %d", ev.Turn) },
		Handoff:    func(_ context.Context, ev *pawl.HandoffDone) { e.add("hook: handed over") },
		ToolStart:  func(_ context.Context, ev *pawl.ToolStart) { e.add("hook: %s starts", ev.Tool) },
		ToolEnd:    func(_ context.Context, ev *pawl.ToolEnd) { e.add("hook: %s ends", ev.Tool) },
	}
}

// The order in which a turn asks user code: what the request says, the model, what the
// response means, the calls, the session, who comes next. Hooks are told of the response, and of
// the calls, when what follows from it is recorded with it.
func TestOrderOfATurn(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		yes := func(what string) func(context.Context, *pawl.RunContext) (bool, error) {
			return func(context.Context, *pawl.RunContext) (bool, error) { e.add("enabled: %s", what); return true, nil }
		}
		passTool := func(what string) pawl.ToolVerdict { e.add("%s", what); return pawl.PassTool(nil) }
		model1 := func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			e.add("model: %s, %s", req.Static.Instructions, req.Static.Prompt)
			return items(item.MessageItem("", "I pay"), ho("h1", "billing"), fc("c1", "pay", `{"cents":5}`))(ctx, req, emit)
		}
		s := newScript(model1)
		s.info.ServerPrompts = true
		agent := agentWith(s, charging("pay", &e, func(f *pawl.Func[charge, string]) {
			f.Enabled = yes("pay")
			f.InputGuardrails = []pawl.ToolInputGuardrail{{Name: "in", Check: func(context.Context, *pawl.ToolInputCheck) (pawl.ToolVerdict, error) {
				return passTool("guardrail on the call"), nil
			}}}
			f.OutputGuardrails = []pawl.ToolOutputGuardrail{{Name: "out", Check: func(context.Context, *pawl.ToolOutputCheck) (pawl.ToolVerdict, error) {
				return passTool("guardrail on its output"), nil
			}}}
			f.Approve = func(context.Context, *pawl.Call, charge) (pawl.Gate, error) {
				e.add("rule of pay")
				return pawl.Allow, nil
			}
		}))
		agent.Instructions = func(context.Context, *pawl.RunContext) (string, error) { e.add("instructions"); return "Pay.", nil }
		agent.Prompt = func(context.Context, *pawl.RunContext) (*pawl.PromptRef, error) {
			e.add("prompt")
			return &pawl.PromptRef{ID: "p"}, nil
		}
		agent.InputGuardrails = []pawl.InputGuardrail{{Name: "g", Blocking: true, Check: func(context.Context, *pawl.InputCheck) (pawl.GuardrailVerdict, error) {
			e.add("guardrail on the input")
			return pawl.GuardrailVerdict{}, nil
		}}}
		billing := &pawl.Agent{Name: "Billing", Model: newScript(says("billed")), Instructions: func(context.Context, *pawl.RunContext) (string, error) {
			e.add("the next agent's instructions")
			return "", nil
		}}
		billing.OutputGuardrails = []pawl.OutputGuardrail{{Name: "g", Check: func(context.Context, *pawl.OutputCheck) (pawl.GuardrailVerdict, error) {
			e.add("guardrail on the final output")
			return pawl.GuardrailVerdict{}, nil
		}}}
		agent.Handoffs = []pawl.Handoff{pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: billing, Enabled: yes("handoff"),
			OnHandoff: func(context.Context, *pawl.HandoffCall, struct{}) error { e.add("handoff"); return nil }})}
		opts := &pawl.RunOptions{
			Session: noted{session.NewMemory("s"), &e},
			Hooks:   notingHooks(&e),
			FilterInput: func(_ context.Context, in *pawl.ModelInput) error {
				e.add("filter of the input of %s", in.Agent.Name)
				return nil
			},
			HandoffFilter: func(_ context.Context, h *pawl.HandoffData) ([]pawl.Item, error) {
				e.add("filter of the handoff")
				return h.Items(), nil
			},
		}
		must(t)(m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("go"), opts))
		e.want(t, "session is read", "guardrail on the input", "session gets message",
			"instructions", "prompt", "enabled: pay", "enabled: handoff", "filter of the input of support", "hook: support starts", "hook: request 1",
			`model: Pay., {"id":"p"}`,
			"enabled: handoff", "enabled: pay", "rule of pay", "guardrail on the call", "hook: response 1", "hook: pay starts", "pay 5", "guardrail on its output", "hook: pay ends",
			"filter of the handoff", "handoff", "hook: handed over",
			"session gets message", "session gets function_call", "session gets function_call", "session gets function_call_output", "session gets function_call_output",
			"the next agent's instructions", "filter of the input of Billing", "hook: Billing starts", "hook: request 2",
			"guardrail on the final output", "hook: response 2", "session gets message", "hook: Billing ends")
	})
}

// A resume of what does not fit has no effect: a decision on other arguments or another stage, a
// document in which a call was changed. A call that was started and has no outcome is shown to a
// person, not run again.
func TestResumeOfWhatDoesNotFit(t *testing.T) {
	var e effects
	r, agent, state, _ := paused(t, &e)
	e.want(t, "look 2")
	in := state.Interruptions()[0]
	other := in
	other.Arguments = `{"cents":9}`
	if err := state.Approve(other, "ann"); !errors.Is(err, pawl.ErrDecision) {
		t.Errorf("other arguments: %v", err)
	}
	if err := state.Decide(pawl.Approve("1.0#1", "ann")); !errors.Is(err, pawl.ErrNotOpen) {
		t.Errorf("another stage: %v", err)
	}
	changed := strings.Replace(string(marshal(t, state)), `{\\\"cents\\\":1}`, `{\\\"cents\\\":9}`, 1)
	if _, err := pawl.ParseRunState([]byte(changed)); !errors.Is(err, pawl.ErrState) {
		t.Errorf("a changed document: %v", err)
	}
	res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, state), nil))
	if diff := cmp.Diff(state.Interruptions(), res.Interruptions); diff != "" {
		t.Errorf("interruptions (-before +after):\n%s", diff)
	}
	e.want(t, "look 2")

	var started effects
	store := journal.NewMemory()
	dead := &deadEnd{Driver: store}
	dies := agentWith(newScript(calling(fc("c1", "pay", `{"cents":1}`))), charging("pay", &started, func(f *pawl.Func[charge, string]) {
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
			started.add("pay")
			dead.dead.Store(true)
			return "paid", nil
		}
	}))
	if _, err := (&pawl.Runner{Store: dead}).Run(t.Context(), dies, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}); err == nil {
		t.Fatal("the store took everything")
	}
	res = must(t)((&pawl.Runner{Store: store}).Resume(t.Context(), dies, pawl.RunID("r"), nil))
	if len(res.Interruptions) != 1 || res.Interruptions[0].Kind != pawl.InDoubt {
		t.Errorf("interruptions %+v", res.Interruptions)
	}
	started.want(t, "pay")
}

// The rule is asked, then a person; the intent is recorded before the body runs, with the key
// that the body gets, and the outcome before the next request.
func TestOrderOfACall(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		store := journal.NewMemory()
		recorded := func() (list []string) {
			for _, f := range facts(t, store, "r") {
				switch b := f.Body.(type) {
				case *journal.Intended:
					if b.ID.Kind == journal.EffectTool {
						list = append(list, fmt.Sprintf("intended %d.%d", b.ID.N, b.ID.P))
					}
				case *journal.Settled:
					list = append(list, fmt.Sprintf("settled %d.%d", b.ID.N, b.ID.P))
				case *journal.Decided:
					list = append(list, fmt.Sprintf("%s %d.%d", b.Verdict, b.Call.N, b.Call.P))
				}
			}
			return list
		}
		last := func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			e.add("model: %q", recorded())
			return says("done")(ctx, req, emit)
		}
		agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), last), charging("pay", &e, func(f *pawl.Func[charge, string]) {
			f.Approve = func(context.Context, *pawl.Call, charge) (pawl.Gate, error) {
				e.add("rule: %q", recorded())
				return pawl.Ask, nil
			}
			f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
				e.add("body of attempt %d, approved by %s: %q", c.Attempt, c.ApprovedBy, recorded())
				return "", nil
			}
		}))
		r := &pawl.Runner{Store: store}
		res := must(t)(m.run(r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
		if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
			t.Fatal(err)
		}
		must(t)(m.resume(r, t.Context(), agent, pawl.RunID("r"), nil))
		e.want(t, `rule: []`, `body of attempt 1, approved by ann: ["approve 1.0" "intended 1.0"]`, `model: ["approve 1.0" "intended 1.0" "settled 1.0"]`)
	})
}

// A call of another kind than a function's is one of an unknown tool: nothing of the response is
// started.
func TestCallsOfOtherKinds(t *testing.T) {
	for kind, want := range map[string]string{"shell_call": "shell", "local_shell_call": "local_shell", "apply_patch_call": "apply_patch", "computer_call": "computer"} {
		t.Run(kind, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				other := item.FromTrusted(`{"type":"` + kind + `","id":"x","call_id":"c2","status":"completed"}`)
				agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`), other)), charging("pay", &e, nil))
				_, err := m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("go"), nil)
				if missing, ok := errors.AsType[*pawl.ToolNotFoundError](err); !ok || missing.Tool != want || missing.CallID != "c2" {
					t.Errorf("error %v", err)
				}
				e.want(t)
			})
		})
	}
}
