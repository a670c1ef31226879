package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

func approvalCases() []symmetric {
	two := func(decisions ...[]decision) func(*kit) {
		return func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("g", gated), k.tool("t")}
			k.start("go")
			for _, d := range decisions {
				k.resume(d...)
			}
		}
	}
	calls := []item.Item{call("c1", "g"), call("c2", "t"), callWith("c3", "g", `{"amount":7}`)}
	rule := func(gate pawl.Gate, err error, decisions ...decision) func(*kit) {
		return func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t", func(f *pawl.Func[arguments, string]) {
				f.Approve = func(context.Context, *pawl.Call, arguments) (pawl.Gate, error) { return gate, err }
			})}
			if k.start("go"); len(decisions) > 0 {
				k.resume(decisions...)
			}
		}
	}
	expiring := func(e pawl.OnExpiry) func(*kit) {
		return func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t", gated, func(f *pawl.Func[arguments, string]) { f.Expires, f.OnExpiry = time.Hour, e })}
			k.start("go")
			time.Sleep(time.Hour)
			k.resume()
		}
	}
	return []symmetric{
		{"waits", script(answers(calls...)), two(), "waiting approval c1, approval c3"},
		{"nothing decided", script(answers(calls...)), two(nil), "waiting approval c1, approval c3"},
		{"approved", once(calls...), two([]decision{approve("c1"), approve("c3")}), "finished done"},
		{"one by one", once(calls...), two([]decision{approve("c3")}, []decision{approve("c1")}), "finished done"},
		{"rejected", once(calls...), two([]decision{reject("c1", ""), reject("c3", "not that")}), "finished done"},
		{"all approved", once(calls...), two([]decision{always(approve("c1"))}), "finished done"},
		{"all rejected, but one", once(calls...), two([]decision{always(reject("c1", "never")), approve("c3")}), "finished done"},
		{"edited", once(call("c1", "g")), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("g", gated)}
			k.start("go")
			if err := k.last.state.Decide(pawl.Edit(k.last.Interruptions[0].ID, reviewer, `{"amount":4}`)); err != nil {
				k.Fatal(err)
			}
			k.resume()
		}, "finished done"},
		{"rule allows", once(call("c1", "t")), rule(pawl.Allow, nil), "finished done"},
		{"rule denies", once(call("c1", "t")), rule(pawl.Deny, nil), "finished done"},
		{"rule fails", once(call("c1", "t")), rule(pawl.Allow, errors.New("no rule"), approve("c1")), "finished done"},
		{"unreadable arguments approved", once(callWith("c1", "t", `{"amount":"x"}`)), rule(pawl.Allow, nil, approve("c1")), "finished done"},
		{"approval expires", once(call("c1", "t")), expiring(pawl.ExpiryRejects), "finished done"},
		{"approval expires, fails", script(answers(call("c1", "t"))), expiring(pawl.ExpiryFails), "failed approval c1"},
		{"cancelled while it waits", script(answers(calls...)), func(k *kit) {
			two()(k)
			if err := k.runner.Cancel(k.Context(), "run", reviewer, "enough"); err != nil {
				k.Fatal(err)
			}
			k.resume()
		}, "cancelled"},
		{"forked", script(answers(call("c1", "g")), answers(says("one")), answers(says("two"))), func(k *kit) {
			k.opts.Session = nil
			k.agent.Tools = []pawl.Tool{k.tool("g", gated)}
			waiting := k.start("go").last
			k.resume(approve("c1"))
			fork, err := waiting.state.Fork("fork")
			if err != nil {
				k.Fatal(err)
			}
			k.resumeFrom(fork)
		}, "finished two"},
	}
}

func failureCases() []symmetric {
	begin := func(k *kit) { k.start("go") }
	retrying := func(k *kit) {
		k.agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 2, InitialDelay: time.Second}}
		k.start("go")
	}
	cut := answers(says("a long answer"))
	cut.Fault = &pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 3, Error: pawltest.ServerError()}
	turns := func(n int, more ...int) func(*kit) {
		return func(k *kit) {
			k.agent.Tools, k.opts.MaxTurns = []pawl.Tool{k.tool("t")}, n
			k.start("go")
			for _, m := range more {
				k.opts.MaxTurns = m
				k.resume()
			}
		}
	}
	return []symmetric{
		{"bad request", script(refusing(400)), begin, "failed model 400"},
		{"bad request, then not", script(refusing(400), answers(says("done"))), func(k *kit) { k.start("go").resume() }, "finished done"},
		{"retried", script(refusing(500), refusing(503), answers(says("done"))), retrying, "finished done"},
		{"retried too often", script(refusing(500), refusing(500), refusing(500)), retrying, "failed"},
		{"rate limited", script(pawltest.ResponsesStep{Reply: pawltest.ResponsesReply{Refuse: pawltest.RateLimited(time.Minute)}}, answers(says("done"))), retrying, "finished done"},
		{"not retried", script(refusing(400)), retrying, "failed model 400"},
		{"answer fails", script(pawltest.ResponsesStep{Reply: pawltest.ResponsesReply{Status: "failed", Failure: &pawltest.ResponsesError{Code: "server_error", Message: "no"}}}), begin, "failed"},
		{"turns used up", script(answers(call("c1", "t")), answers(call("c2", "t"))), turns(2), "failed max turns"},
		{"more turns", script(answers(call("c1", "t")), answers(call("c2", "t")), answers(says("done"))), turns(2, 0, 3), "finished done"},
		{"stopped before it begins", script(answers(says("done"))), func(k *kit) {
			k.runner.StopAfterTurn("run")
			k.start("go").resume()
		}, "finished done"},
		{"a mistake", nil, func(k *kit) { k.agent.Name = ""; k.start("go") }, "config"},
	}
}

type verdictOf struct {
	Fine  bool   `json:"fine"`
	Words string `json:"words"`
}

func outputCases() []symmetric {
	structured := func(k *kit) { k.agent.Output = pawl.OutputOf[verdictOf](); k.start("go") }
	using := func(use pawl.ToolUse) func(*kit) {
		return func(k *kit) {
			k.agent.Tools, k.agent.ToolUse = []pawl.Tool{k.tool("t"), k.tool("u"), k.tool("g", gated)}, use
			k.start("go")
		}
	}
	calls := []item.Item{call("c1", "t"), call("c2", "u")}
	decide := func(final bool) pawl.ToolUse {
		return pawl.DecideToolUse(func(_ context.Context, _ *pawl.RunContext, rs []pawl.ToolResult) (pawl.ToolUseDecision, error) {
			return pawl.ToolUseDecision{Final: final, Output: fmt.Sprint(len(rs), " results")}, nil
		})
	}
	return []symmetric{
		{"structured", script(answers(says(`{"fine":true,"words":"a<b"}`))), structured, `finished {"fine":true,"words":"a<b"}`},
		{"structured, not valid", script(answers(says(`{"fine":1}`))), structured, "failed output"},
		{"structured, after a tool", script(answers(call("c1", "t")), answers(says(`{"fine":false,"words":""}`))), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t")}
			structured(k)
		}, `finished {"fine":false,"words":""}`},
		{"stops on the first tool", script(answers(calls...)), using(pawl.StopOnFirstTool()), "finished t"},
		{"stops at a tool", script(answers(calls...)), using(pawl.StopAtTools("u")), "finished u"},
		{"does not stop at another", once(calls[0]), using(pawl.StopAtTools("u")), "finished done"},
		{"stops on an approved tool", script(answers(call("c1", "g"))), func(k *kit) {
			using(pawl.StopOnFirstTool())(k)
			k.resume(approve("c1"))
		}, "finished g"},
		{"decides to stop", script(answers(calls...)), using(decide(true)), "finished 2 results"},
		{"decides to go on", once(calls...), using(decide(false)), "finished done"},
		{"a forced tool", once(call("c1", "t")), func(k *kit) {
			k.agent.Settings = &pawl.ModelSettings{ToolChoice: "required"}
			using(pawl.ToolUse{})(k)
		}, "finished done"},
	}
}

type why struct {
	Why string `json:"why"`
}

func handoffCases() []symmetric {
	hand := func(k *kit, name string, change func(*pawl.HandoffFunc[why])) pawl.Handoff {
		f := pawl.HandoffFunc[why]{Agent: k.named(name, k.tool("of_"+name)), Name: "to_" + name,
			OnHandoff: func(_ context.Context, h *pawl.HandoffCall, in why) error {
				k.does("%s to %s because %s, key %s", h.Agent.Name, h.To.Name, in.Why, h.Key)
				return nil
			}}
		if change != nil {
			change(&f)
		}
		return pawl.NewHandoff(f)
	}
	between := func(change func(*pawl.HandoffFunc[why]), decisions ...decision) func(*kit) {
		return func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t"), k.tool("g", gated)}
			k.agent.Handoffs = []pawl.Handoff{hand(k, "B", change), hand(k, "C", nil)}
			if k.start("go"); len(decisions) > 0 {
				k.resume(decisions...)
			}
		}
	}
	to := func(id, name string) item.Item { return callWith(id, "to_"+name, `{"why":"so"}`) }
	taken := func(calls ...item.Item) []pawltest.ResponsesStep {
		return script(answers(calls...), answers(call("b1", "of_B")), answers(says("done")))
	}
	return []symmetric{
		{"handed over", taken(to("h1", "B")), between(nil), "finished done"},
		{"handed over beside a tool", taken(says("wait"), call("c1", "t"), to("h1", "B")), between(nil), "finished done"},
		{"handed over twice", taken(to("h1", "B"), to("h2", "C")), between(nil), "finished done"},
		{"handed over after an approval", taken(call("c1", "g"), to("h1", "B")), between(nil, approve("c1")), "finished done"},
		{"handed over after a rejection", taken(call("c1", "g"), to("h1", "B")), between(nil, reject("c1", "no")), "finished done"},
		{"handed over filtered", taken(call("c1", "t"), to("h1", "B")), between(func(f *pawl.HandoffFunc[why]) { f.Filter = pawl.RemoveTools() }), "finished done"},
		{"filtered by the run", taken(call("c1", "t"), to("h1", "B")), func(k *kit) {
			k.opts.HandoffFilter = func(_ context.Context, h *pawl.HandoffData) ([]item.Item, error) {
				return append([]item.Item{item.UserText("In short:")}, h.History...), nil
			}
			between(nil)(k)
		}, "finished done"},
		{"filter fails", script(answers(to("h1", "B"))), between(func(f *pawl.HandoffFunc[why]) {
			f.Filter = func(context.Context, *pawl.HandoffData) ([]item.Item, error) { return nil, errors.New("no scissors") }
		}), "failed filter"},
		{"handoff without reason", script(answers(callWith("h1", "to_B", `{}`)), answers(says("done"))), between(nil), "finished done"},
		{"handed back", script(answers(call("h1", "transfer_to_b")), answers(call("h2", "transfer_to_desk")), answers(says("done"))), func(k *kit) {
			b := k.named("B")
			b.Handoffs, k.agent.Handoffs = []pawl.Handoff{pawl.HandoffTo(k.agent)}, []pawl.Handoff{pawl.HandoffTo(b)}
			k.start("go")
		}, "finished done"},
	}
}

func nestedCases() []symmetric {
	with := func(o *pawl.AgentToolOptions, decisions ...[]decision) func(*kit) {
		return func(k *kit) {
			clerk := k.named("Clerk", k.tool("t"), k.tool("g", gated))
			k.agent.Tools = []pawl.Tool{k.tool("note"), pawl.AgentTool(clerk, o)}
			k.start("go")
			for _, d := range decisions {
				k.resume(d...)
			}
		}
	}
	ask := asks("m1", "clerk", "do it")
	nested := func(inner ...item.Item) []pawltest.ResponsesStep {
		return script(answers(ask), answers(inner...), answers(says("did it")), answers(says("done")))
	}
	return []symmetric{
		{"nested", nested(call("n1", "t")), with(nil), "finished done"},
		{"nested beside a tool", script(answers(call("c1", "note"), ask), answers(says("did it")), answers(says("done"))), with(nil), "finished done"},
		{"nested, waits", script(answers(ask), answers(call("n1", "g"))), with(nil), "waiting approval n1"},
		{"nested, approved", nested(call("n1", "g"), call("n2", "t")), with(nil, []decision{approve("n1")}), "finished done"},
		{"nested, rejected", nested(call("n1", "g")), with(nil, nil, []decision{reject("n1", "no")}), "finished done"},
		{"nested, approved twice", script(answers(ask), answers(call("n1", "g")), answers(call("n2", "g")), answers(says("did it")), answers(says("done"))),
			with(nil, []decision{approve("n1")}, []decision{approve("n2")}), "finished done"},
		{"nested, asked before", nested(call("n1", "t")), with(&pawl.AgentToolOptions{Approve: pawl.AlwaysAsk[pawl.AgentInput]}, []decision{approve("m1")}), "finished done"},
		{"nested, not allowed", script(answers(ask), answers(says("done"))), with(&pawl.AgentToolOptions{Approve: pawl.AlwaysAsk[pawl.AgentInput]}, []decision{reject("m1", "no")}), "finished done"},
		{"nested, out of turns", script(answers(ask), answers(call("n1", "t")), answers(says("done"))), with(&pawl.AgentToolOptions{MaxTurns: 1}), "finished done"},
		{"nested, fails", script(answers(ask), refusing(400), answers(says("done"))), with(nil), "finished done"},
		{"nested, fails the run", script(answers(ask), refusing(400), answers(says("did it")), answers(says("done"))), with(&pawl.AgentToolOptions{FailRun: true}, nil), "finished done"},
		{"nested, in other words", nested(call("n1", "t")), with(&pawl.AgentToolOptions{Output: func(_ context.Context, c *pawl.Call, r *pawl.Result) (string, error) {
			return fmt.Sprintf("%s: %s in %d turns", c.ID, r.FinalOutput, r.Turns), nil
		}}), "finished done"},
		{"two nested, one after the other", script(answers(ask), answers(says("one")), answers(asks("m2", "clerk", "more")), answers(says("two")), answers(says("done"))), with(nil), "finished done"},
	}
}

func managedCases() (list []symmetric) {
	for _, p := range []pointer{onConversation, onPrevious, onAuto} {
		managed := func(play func(*kit)) func(*kit) {
			return func(k *kit) {
				k.opts.Session = nil
				k.continues(p)
				play(k)
			}
		}
		tools := func(decisions ...decision) func(*kit) {
			return managed(func(k *kit) {
				k.agent.Tools = []pawl.Tool{k.tool("t"), k.tool("g", gated)}
				if k.start("go"); len(decisions) > 0 {
					k.resume(decisions...)
				}
			})
		}
		unnamed := answers(call("c2", "t"))
		unnamed.Reply.NoID = p != onConversation
		name := string(p) + ": "
		list = append(list,
			symmetric{name + "tools", p.script(answers(thinks("rs_1"), call("c1", "t")), answers(call("c2", "t")), answers(says("done"))), tools(), "finished done"},
			symmetric{name + "approved", p.script(once(call("c1", "g"), call("c2", "t"))...), tools(approve("c1")), "finished done"},
			symmetric{name + "a response without id", p.script(answers(call("c1", "t")), unnamed, answers(says("done"))), tools(), "finished done"},
			symmetric{name + "handed over", p.script(answers(call("c1", "t"), call("h1", "transfer_to_b")), answers(says("done"))), managed(func(k *kit) {
				k.agent.Tools, k.agent.Handoffs = []pawl.Tool{k.tool("t")}, []pawl.Handoff{pawl.HandoffTo(k.named("B"))}
				k.start("go")
			}), "finished done"},
			symmetric{name + "filtered", p.script(once(call("c1", "t"))...), func(k *kit) {
				k.opts.FilterInput = func(_ context.Context, in *pawl.ModelInput) error {
					in.Items = append(in.Items, item.UserText(fmt.Sprint("Turn ", in.Turn)))
					return nil
				}
				tools()(k)
			}, "finished done"},
			symmetric{name + "refused, then not", p.script(refusing(400), answers(says("done"))), managed(func(k *kit) { k.start("go").resume() }), "finished done"})
	}
	return list
}

func sessionCases() []symmetric {
	held := func(play func(*kit)) func(*kit) {
		return func(k *kit) {
			k.has(item.UserText("before"), call("c0", "t"), item.FunctionOutput("c0", "o"), says("well"))
			k.agent.Tools = []pawl.Tool{k.tool("t")}
			play(k)
		}
	}
	begin := func(k *kit) { k.start("go") }
	filtered := func(f func(context.Context, *pawl.ModelInput) error) func(*kit) {
		return held(func(k *kit) { k.opts.FilterInput = f; k.start("go") })
	}
	return []symmetric{
		{"a history", once(call("c1", "t")), held(begin), "finished done"},
		{"a merged history", once(call("c1", "t")), held(func(k *kit) {
			k.opts.MergeInput = func(_ context.Context, h, in []item.Item) ([]item.Item, error) {
				return append(in, h[3], item.UserText("a note")), nil
			}
			k.start("go")
		}), "finished done"},
		{"a merge that fails", script(answers(says("done"))), held(func(k *kit) {
			k.opts.MergeInput = func(_ context.Context, h, in []item.Item) ([]item.Item, error) { return h[2:], nil }
			k.start("go")
			k.opts.MergeInput = nil
			k.resume()
		}), "finished done"},
		{"an open call in the session", script(answers(says("done"))), func(k *kit) {
			k.has(item.UserText("before"), call("c0", "t"))
			k.start("go")
		}, "finished done"},
		{"an output too many in the session", script(answers(says("done"))), held(func(k *kit) {
			k.has(item.FunctionOutput("c0", "again"))
			k.start("go")
		}), "finished done"},
		{"two runs", script(answers(says("one")), answers(says("two"))), func(k *kit) {
			k.start("go")
			k.opts.ID = "second"
			k.start("on")
		}, "finished two"},
		{"superseded", script(answers(call("c1", "g")), answers(says("two"))), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("g", gated)}
			k.start("go")
			k.opts.ID, k.opts.Supersede, k.elsewhere = "second", true, true
			k.start("on")
		}, "finished two"},
		{"session refused to wait", script(answers(call("c1", "g"))), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("g", gated)}
			k.start("go")
			k.opts.ID = "second"
			k.start("on")
		}, "session waiting"},
		{"session fails", once(call("c1", "t")), func(k *kit) {
			k.agent.Tools = []pawl.Tool{k.tool("t")}
			k.opts.Session = pawltest.NewFaultySession(k.session, map[int]pawltest.SessionFault{2: {}, 3: {Stored: pawltest.AllItems}})
			k.start("go").resume().resume()
		}, "finished done"},
		{"input filtered", once(call("c1", "t")), filtered(func(_ context.Context, in *pawl.ModelInput) error {
			in.Instructions, in.Items = in.Instructions+" Briefly.", in.Items[3:]
			return nil
		}), "finished done"},
		{"input filter fails", script(), filtered(func(context.Context, *pawl.ModelInput) error { return errors.New("no sieve") }), "failed filter"},
		{"reasoning without ids", script(answers(thinks("rs_2"), says("done"))), held(func(k *kit) {
			k.has(thinksAloud("rs_1"), call("c1", "t"), item.FunctionOutput("c1", "o"))
			k.opts.OmitReasoningIDs = true
			k.start("go")
		}), "finished done"},
	}
}

// continues makes the run one on something that the server holds.
func (k *kit) continues(p pointer) {
	switch p {
	case onConversation:
		k.opts.ConversationID = k.post("/conversations", `{}`)
	case onPrevious:
		k.opts.PreviousResponseID = k.post("/responses", `{"model":"gpt-test","input":"earlier"}`)
	case onAuto:
		k.opts.AutoPreviousResponseID = true
	}
}

// post sends a request that is not the run's and returns the id of what it made.
func (k *kit) post(path, body string) string {
	req, err := http.NewRequestWithContext(k.Context(), http.MethodPost, k.server.URL()+path, strings.NewReader(body))
	if err != nil {
		k.Fatal(err)
	}
	resp, err := k.server.Client().Do(req)
	if err != nil {
		k.Fatal(err)
	}
	defer resp.Body.Close()
	var made struct{ ID string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.ID == "" {
		k.Fatalf("POST %s made %q: %v", path, made.ID, err)
	}
	return made.ID
}
