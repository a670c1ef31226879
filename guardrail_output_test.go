package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// The final output is checked, once: by the guardrails of the agent that made it, then by the run's (S17.7).
func TestOutputGuardrails(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		d := newDesk([]step{calling(ho("h1", "billing"))}, []step{calling(fc("c1", "charge", `{"cents":5}`)), says("billed")})
		d.billing.Tools = []pawl.Tool{charging("charge", &e, nil)}
		d.triage.OutputGuardrails = []pawl.OutputGuardrail{onOutput("triage", &e, "")}
		d.billing.OutputGuardrails = []pawl.OutputGuardrail{{Name: "billing", Check: func(context.Context, *pawl.OutputCheck) (verdict, error) { return verdict{Info: 7}, nil }}}
		sess := session.NewMemory("s")
		res := must(t)(mode.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("pay"), &pawl.RunOptions{Session: sess, OutputGuardrails: []pawl.OutputGuardrail{onOutput("all", &e, "")}}))
		e.want(t, "charge 5", "all of Billing: billed")
		wantSaid(t, res.Guardrails(), "output billing of Billing: 7", "output all of Billing")
		if res.FinalOutput != "billed" || !cmp.Equal(stored(t, sess), []pawl.Item(res.ToInputList())) {
			t.Errorf("%q, session:\n%s", res.FinalOutput, texts(stored(t, sess)))
		}
	})
}

// What is withheld is in no session and no replay: calls of turns before stay with their outputs, and so does the call whose
// output would have been the final output, without it (S17.7).
func TestOutputGuardrailTrips(t *testing.T) {
	for name, tt := range map[string]struct {
		steps  []step
		change func(*pawl.Agent)
		want   string
	}{
		"a message": {[]step{calling(fc("c1", "charge", `{"cents":5}`)), says("secret")}, func(*pawl.Agent) {}, "user: pay\ncall c1\nc1: receipt 5"},
		"the output of a tool": {[]step{calling(fc("c1", "charge", `{"cents":5}`))}, func(a *pawl.Agent) { a.ToolUse = pawl.StopOnFirstTool() },
			"user: pay\ncall c1\nc1: The output of this tool call was withheld by a guardrail."},
		"what a function makes of it": {[]step{calling(fc("c1", "charge", `{"cents":5}`))}, func(a *pawl.Agent) {
			a.ToolUse = pawl.DecideToolUse(func(context.Context, *pawl.RunContext, []pawl.ToolResult) (pawl.ToolUseDecision, error) {
				return pawl.ToolUseDecision{Final: true, Output: "secret"}, nil
			})
		}, "user: pay\ncall c1\nc1: receipt 5"},
	} {
		for _, asks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, approved %v", name, asks), func(t *testing.T) {
				eachMode(t, func(t *testing.T, mode mode) {
					var paid effects
					sess, r := session.NewMemory("s"), &pawl.Runner{}
					r.Sessions = func(string) session.Session { return sess }
					agent := agentWith(newScript(tt.steps...), charging("charge", &paid, func(f *pawl.Func[charge, string]) {
						if asks {
							asking(f)
						}
					}))
					tt.change(agent)
					agent.OutputGuardrails = []pawl.OutputGuardrail{{Name: "pii", Check: func(_ context.Context, out *pawl.OutputCheck) (verdict, error) {
						return verdict{Tripped: true, Info: len(out.Output)}, nil
					}}}
					res, err := mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess})
					if asks {
						s := viaJSON(t, must(t)(res, err).State())
						if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
							t.Fatal(err)
						}
						res, err = mode.resume(r, t.Context(), agent, s, &pawl.RunOptions{Session: sess})
					}
					size := "6"
					if name == "the output of a tool" {
						size = "9"
					}
					s := tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageOutput, Guardrail: "pii", Agent: "support", Info: size})
					paid.want(t, "charge 5")
					if got := texts(stored(t, sess)); got != tt.want || texts(s.Result().ToInputList()) != tt.want {
						t.Errorf("session:\n%s\nreplay:\n%s", got, texts(s.Result().ToInputList()))
					}
					wantSaid(t, s.Guardrails(), "output pii of support, tripped: "+size)
				})
			})
		}
	}
}

// Without a verdict the run fails and the output is kept back; asked again, it is the output, and the model is not asked (S17.3).
func TestOutputGuardrailGivesNoVerdict(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		sess := session.NewMemory("s")
		m := newScript(says("done"))
		agent := agentWith(m)
		n := 0
		agent.OutputGuardrails = []pawl.OutputGuardrail{{Name: "pii", Check: func(context.Context, *pawl.OutputCheck) (verdict, error) {
			if n++; n < 3 {
				return verdict{}, errors.New("down")
			}
			return verdict{Info: n}, nil
		}}}
		r := &pawl.Runner{Store: journal.NewMemory()}
		_, err := mode.run(r, t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r", Session: sess})
		for range 2 {
			if want := `pawl: run r, guardrails on the output of response 1: guardrail "pii" gave no verdict: down`; err == nil || err.Error() != want {
				t.Fatal(err)
			}
			if got := texts(stored(t, sess)); got != "user: hi" {
				t.Errorf("session:\n%s", got)
			}
			if _, err = mode.resume(r, t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess}); n == 3 {
				break
			}
		}
		res := must(t)(mode.resume(r, t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{Session: sess}))
		wantSaid(t, res.Guardrails(), "output pii of support: 3")
		sameViews(t, res, m, sess)
		if err != nil || n != 3 || res.FinalOutput != "done" || len(m.calls()) != 1 {
			t.Errorf("%v, %d, %q, %d requests", err, n, res.FinalOutput, len(m.calls()))
		}
	})
}

// The output of a tool stays the final output when the append behind it fails: neither model nor guardrail is asked again.
func TestGuardedOutputAndAFailedAppend(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		for _, json := range []bool{false, true} {
			var e, paid effects
			sess := &plainSession{Session: session.NewMemory("s"), fault: faultAt(2, 0)}
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)))
			agent := agentWith(m, charging("charge", &paid, asking))
			agent.ToolUse = pawl.StopOnFirstTool()
			agent.OutputGuardrails = []pawl.OutputGuardrail{onOutput("pii", &e, "")}
			r := &pawl.Runner{}
			res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
			s := res.State()
			if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
				t.Fatal(err)
			}
			_, err := mode.resume(r, t.Context(), agent, s, &pawl.RunOptions{Session: sess})
			if s = stateOf(t, err); s.Status() != pawl.StatusFailed {
				t.Fatal(err)
			}
			if json {
				s = viaJSON(t, s)
			}
			res = must(t)(mode.resume(r, t.Context(), agent, s, &pawl.RunOptions{Session: sess}))
			paid.want(t, "charge 5")
			e.want(t, "pii of support: receipt 5")
			wantSaid(t, res.Guardrails(), "output pii of support")
			if got := texts(stored(t, sess)); res.FinalOutput != "receipt 5" || len(m.calls()) != 1 || got != "user: pay\ncall c1\nc1: receipt 5" {
				t.Errorf("%q after %d requests, session:\n%s", res.FinalOutput, len(m.calls()), got)
			}
		}
	})
}

// With guardrails on the output and a tool-use behaviour that might have ended the run, the call that waited for an approval is
// in the session before its output, and the next run reads both.
func TestGuardedRunKeepsItsPairs(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		sess := session.NewMemory("s")
		m := newScript(calling(fc("c1", "notify", `{"cents":5}`)), says("ok"), says("hello"))
		agent := agentWith(m, charging("notify", &e, asking), charging("other", &e, nil))
		agent.ToolUse = pawl.StopAtTools("other")
		agent.OutputGuardrails = []pawl.OutputGuardrail{onOutput("pii", &e, "")}
		res := must(t)(mode.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Session: sess}))
		s := viaJSON(t, res.State())
		if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		res = must(t)(mode.resume(new(pawl.Runner), t.Context(), agent, s, &pawl.RunOptions{Session: sess}))
		sameViews(t, res, m, sess)
		must(t)(mode.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("next"), &pawl.RunOptions{Session: sess}))
		paired(t, "the next request", m.calls()[2].Input)
		if got := texts(stored(t, sess)); got != "user: go\ncall c1\nc1: receipt 5\nassistant: ok\nuser: next\nassistant: hello" {
			t.Error(got)
		}
		e.want(t, "notify 5", "pii of support: ok", "pii of support: hello")
	})
}

// What guardrails said when a run was cut off anywhere: it goes on to the same end, whatever process goes on (S17.3).
func TestGuardedRunGoesOnFromAnyFact(t *testing.T) {
	for _, trips := range []string{"", "input", "call", "output of a tool", "output"} {
		t.Run(trips, func(t *testing.T) {
			agent := func() (*pawl.Agent, *effects) {
				var e effects
				at := func(stage string) verdict { return verdict{Tripped: trips == stage, Info: stage} }
				tool := func(stage string) toolVerdict {
					if trips == stage {
						return pawl.TripTool(stage)
					}
					return pawl.PassTool(stage)
				}
				a := agentWith(newScript(slices.Repeat([]step{byHistory}, 20)...), charging("charge", &e, func(f *pawl.Func[charge, string]) {
					f.Effect = pawl.Idempotent
					f.InputGuardrails = []pawl.ToolInputGuardrail{{Name: "call", Check: func(context.Context, *pawl.ToolInputCheck) (toolVerdict, error) { return tool("call"), nil }}}
					f.OutputGuardrails = []pawl.ToolOutputGuardrail{{Name: "result", Check: func(context.Context, *pawl.ToolOutputCheck) (toolVerdict, error) {
						return tool("output of a tool"), nil
					}}}
				}))
				a.InputGuardrails = []pawl.InputGuardrail{blocking(onInput("blocking", new(effects), verdict{})), onInput("beside", new(effects), at("input"))}
				a.OutputGuardrails = []pawl.OutputGuardrail{{Name: "final", Check: func(context.Context, *pawl.OutputCheck) (verdict, error) { return at("output"), nil }}}
				return a, &e
			}
			r := &pawl.Runner{}
			first, _ := agent()
			whole, wholeErr := r.Run(t.Context(), first, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			recs, err := storeOf(t, r, "r").Read(t.Context(), "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Sorted(slices.Values(said(whole.Guardrails())))
			for n := 2; n < len(recs); n++ {
				m := journal.NewMemory()
				if err := m.Import("r", recs[:n]); err != nil {
					t.Fatal(err)
				}
				a, e := agent()
				res, err := (&pawl.Runner{Store: m}).Resume(t.Context(), a, pawl.RunID("r"), nil)
				if fmt.Sprint(err) != fmt.Sprint(wholeErr) || res == nil || res.FinalOutput != whole.FinalOutput {
					t.Fatalf("from %d facts of %d: %v, %v", n, len(recs), res, err)
				}
				all := trips != "input" && trips != "call" // those on the input and on the call are asked at a time
				if got := slices.Sorted(slices.Values(said(res.Guardrails()))); all && !cmp.Equal(got, want) {
					t.Errorf("from %d facts: %s", n, cmp.Diff(want, got))
				}
				if len(e.list) > 1 || trips == "call" && len(e.list) > 0 {
					t.Errorf("from %d facts: %q", n, e.list)
				}
				paired(t, "replay", res.ToInputList())
				replays(t, &pawl.Runner{Store: m}, "r")
			}
		})
	}
}

// byHistory is a step that charges once and then answers.
func byHistory(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	if len(outputs(req.Input.Items())) > 0 {
		return says("done")(ctx, req, emit)
	}
	return calling(fc("c1", "charge", `{"cents":5}`))(ctx, req, emit)
}

// Where the server has the conversation guardrails on the output are refused before anything happens, also those of an agent that
// the conversation could be handed over to, and when a run is resumed (S17.8).
func TestOutputGuardrailsNeedTheConversation(t *testing.T) {
	guards := []pawl.OutputGuardrail{onOutput("pii", new(effects), "")}
	const why = "the server keeps the conversation, also an output that a guardrail withholds"
	for want, change := range map[string]func(d *desk, o *pawl.RunOptions){
		`Agent.OutputGuardrails: of agent "Triage": ` + why:  func(d *desk, _ *pawl.RunOptions) { d.triage.OutputGuardrails = guards },
		`Agent.OutputGuardrails: of agent "Billing": ` + why: func(d *desk, _ *pawl.RunOptions) { d.billing.OutputGuardrails = guards },
		`RunOptions.OutputGuardrails: ` + why:                func(_ *desk, o *pawl.RunOptions) { o.OutputGuardrails = guards },
	} {
		for _, server := range []pawl.RunOptions{{ConversationID: "conv"}, {PreviousResponseID: "resp"}, {AutoPreviousResponseID: true}} {
			d := newDesk([]step{response("r1", fc("c1", "charge", `{"cents":5}`))}, nil, charging("charge", new(effects), asking))
			d.asked.info.ServerState, d.answered.info.ServerState = true, true
			store := &counting{Driver: journal.NewMemory()}
			r := &pawl.Runner{Store: store}
			server.ID = "r"
			res := must(t)(r.Run(t.Context(), d.triage, pawl.UserText("hi"), &server))
			writes := store.writes
			var resumed pawl.RunOptions
			change(d, &server)
			change(d, &resumed)
			if _, err := r.Resume(t.Context(), d.triage, res.State(), &resumed); !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("resumed: %v", err)
			}
			server.ID = "other"
			_, err := r.Run(t.Context(), d.triage, pawl.UserText("hi"), &server)
			if _, ok := errors.AsType[*pawl.ConfigError](err); !ok || err.Error() != "pawl: "+want {
				t.Errorf("started: %v", err)
			}
			if store.writes != writes {
				t.Error("something was written")
			}
		}
	}
}

// What is wrong with guardrails is found before anything happens.
func TestMistakesInGuardrails(t *testing.T) {
	in := onInput("a", new(effects), verdict{})
	out := onOutput("a", new(effects), "")
	call, result := onCall("a", new(effects), toolVerdict{}), onResult("a", new(effects), toolVerdict{})
	for want, change := range map[string]func(a *pawl.Agent, o *pawl.RunOptions){
		`pawl: Agent.InputGuardrails: of agent "support": two guardrails are named "a"`: func(a *pawl.Agent, _ *pawl.RunOptions) { a.InputGuardrails = []pawl.InputGuardrail{in, in} },
		`pawl: Agent.OutputGuardrails: of agent "support": a guardrail has no name`: func(a *pawl.Agent, _ *pawl.RunOptions) {
			a.OutputGuardrails = []pawl.OutputGuardrail{{Check: out.Check}}
		},
		`pawl: RunOptions.InputGuardrails: guardrail "b" has no Check function`: func(_ *pawl.Agent, o *pawl.RunOptions) {
			o.InputGuardrails = []pawl.InputGuardrail{in, {Name: "b"}}
		},
		`pawl: RunOptions.OutputGuardrails: the name of a guardrail is not valid UTF-8`: func(_ *pawl.Agent, o *pawl.RunOptions) {
			o.OutputGuardrails = []pawl.OutputGuardrail{{Name: "\xff", Check: out.Check}}
		},
		`pawl: Agent.Tools: tool "charge": two guardrails are named "a"`: func(a *pawl.Agent, _ *pawl.RunOptions) {
			a.Tools = []pawl.Tool{charging("charge", nil, guarding([]pawl.ToolInputGuardrail{call, call}, nil))}
		},
		`pawl: Agent.Tools: tool "raw": guardrail "b" has no Check function`: func(a *pawl.Agent, _ *pawl.RunOptions) {
			a.Tools = []pawl.Tool{pawl.NewRawTool(pawl.RawFunc{Name: "raw", Schema: `{"type":"object","properties":{},"additionalProperties":false}`,
				Run: func(context.Context, *pawl.Call) (string, error) { return "", nil }, OutputGuardrails: []pawl.ToolOutputGuardrail{result, {Name: "b"}}})}
		},
		`pawl: Agent.Tools: tool "helper": a guardrail has no name`: func(a *pawl.Agent, _ *pawl.RunOptions) {
			a.Tools = []pawl.Tool{pawl.AgentTool(agentWith(newScript()), &pawl.AgentToolOptions{Name: "helper", InputGuardrails: []pawl.ToolInputGuardrail{{Check: call.Check}}})}
		},
	} {
		store := &counting{Driver: journal.NewMemory()}
		agent, opts := agentWith(newScript()), &pawl.RunOptions{}
		change(agent, opts)
		_, err := (&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("hi"), opts)
		if _, ok := errors.AsType[*pawl.ConfigError](err); !ok || err.Error() != want || store.writes != 0 {
			t.Errorf("\n got %v\nwant %s\n%d writes", err, want, store.writes)
		}
	}
}

// An agent that another one runs as a tool has guardrails of its own, and those of the run (S17.9).
func TestNestedGuardrails(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		manager := newScript(calling(ask("a", "charge 5")), says("all done"))
		billing := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("charged"))
		desk := &pawl.Agent{Name: "Billing desk", Model: billing, Tools: []pawl.Tool{charging("charge", &e, nil)},
			InputGuardrails: []pawl.InputGuardrail{onInput("input", &e, verdict{})}, OutputGuardrails: []pawl.OutputGuardrail{onOutput("output", &e, "")}}
		agent := &pawl.Agent{Name: "manager", Model: manager, Tools: []pawl.Tool{pawl.AgentTool(desk, &pawl.AgentToolOptions{
			InputGuardrails:  []pawl.ToolInputGuardrail{onCall("call", &e, toolVerdict{})},
			OutputGuardrails: []pawl.ToolOutputGuardrail{onResult("result", &e, pawl.RejectContent("It is done.", nil))},
		})}}
		opts := &pawl.RunOptions{InputGuardrails: []pawl.InputGuardrail{blocking(onInput("run", &e, verdict{}))}}
		res := must(t)(mode.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("go"), opts))
		e.want(t, "run of manager: user: go", `call: billing_desk {"input":"charge 5"}`, "run of Billing desk: user: charge 5", "input of Billing desk: user: charge 5",
			"charge 5", "output of Billing desk: charged", `result: {"input":"charge 5"}, charged`)
		wantSaid(t, res.Guardrails(), "input run of manager", "tool_input call of manager, billing_desk a", "input run of Billing desk", "input input of Billing desk",
			"output output of Billing desk", "tool_output result of manager, billing_desk a, rejected")
		if got := outputs(res.ToInputList()); len(got) != 1 || got[0] != "a: It is done." {
			t.Errorf("%q", got)
		}
	})
}

// A guardrail that trips in a nested run ends that, and its caller is told; with FailRun it ends the whole run (S17.9).
func TestNestedGuardrailTrips(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		for _, failRun := range []bool{false, true} {
			var e effects
			manager := newScript(calling(ask("a", "charge 5")), says("sorry"))
			desk := &pawl.Agent{Name: "Billing desk", Model: newScript(says("secret")), OutputGuardrails: []pawl.OutputGuardrail{onOutput("output", &e, "secret")}}
			tell := func(_ context.Context, _ *pawl.Call, err error) string {
				trip, ok := errors.AsType[*pawl.TripwireError](err)
				if !ok {
					t.Error(err)
					return ""
				}
				return "It tripped: " + trip.Guardrail
			}
			agent := &pawl.Agent{Name: "manager", Model: manager, Tools: []pawl.Tool{pawl.AgentTool(desk, &pawl.AgentToolOptions{FailRun: failRun, OnError: tell})}}
			r := &pawl.Runner{}
			res, err := mode.run(r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
			if failRun {
				tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageOutput, Guardrail: "output", Agent: "Billing desk"})
				if want := `pawl: run r, guardrails on the output of response 1 of nested run 1.0: guardrail "output" tripped on the output of agent "Billing desk"`; err.Error() != want {
					t.Error(err)
				}
				continue
			}
			if got := texts(must(t)(res, err).ToInputList()); got != "user: go\ncall a\na: It tripped: output\nassistant: sorry" {
				t.Error(got)
			}
			wantSaid(t, res.Guardrails(), "output output of Billing desk, tripped")
		}
	})
}

// A guardrail beside a nested run stops its request, and no other's (S17.2).
func TestNestedGuardrailTripsBesideOthers(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		synctest.Test(t, func(t *testing.T) {
			manager := newScript(calling(ask("a", "bad"), ask("b", "good")), says("done"))
			slow := after(time.Minute, says("billed"))
			billing := newScript(slow, slow)
			desk := &pawl.Agent{Name: "Billing desk", Model: billing, InputGuardrails: []pawl.InputGuardrail{{Name: "beside", Check: func(_ context.Context, in *pawl.InputCheck) (verdict, error) {
				time.Sleep(time.Second)
				return verdict{Tripped: texts(in.Input) == "user: bad", Info: in.Invocation.CallID}, nil
			}}}}
			agent := &pawl.Agent{Name: "manager", Model: manager, Tools: []pawl.Tool{pawl.AgentTool(desk, nil)}}
			res := must(t)(mode.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("go"), nil))
			if got := outputs(res.ToInputList()); !cmp.Equal(got, []string{`a: The agent failed: guardrail "beside" tripped on the input of agent "Billing desk"`, "b: billed"}) {
				t.Errorf("%q", got)
			}
			got := said(res.Guardrails())
			slices.Sort(got)
			if !cmp.Equal(got, []string{`input beside of Billing desk, tripped: "a"`, `input beside of Billing desk: "b"`}) || len(billing.calls()) != 2 {
				t.Errorf("%q, %d requests", got, len(billing.calls()))
			}
		})
	})
}

// Input that is added later is checked by the guardrails of the agent that has the conversation, alone, before it is read (S17.1).
func TestPendingInputIsGuarded(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		for _, trips := range []bool{false, true} {
			var e effects
			store, sess := journal.NewMemory(), session.NewMemory("s")
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
			agent := agentWith(m, charging("charge", &e, asking))
			agent.InputGuardrails = []pawl.InputGuardrail{onInput("input", &e, verdict{})}
			r := &pawl.Runner{Store: store, Sessions: func(string) session.Session { return sess }}
			res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess}))
			added := journal.Encode(journal.Fact{Body: &journal.Added{Items: pawl.UserText("and quickly")}}, [16]byte{1})
			if err := store.Post(t.Context(), "r", journal.Entry{Key: "added", Body: added}); err != nil {
				t.Fatal(err)
			}
			if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
				t.Fatal(err)
			}
			agent.InputGuardrails = []pawl.InputGuardrail{onInput("input", &e, verdict{Tripped: trips}), {Name: "history", Check: func(_ context.Context, in *pawl.InputCheck) (verdict, error) {
				return verdict{Info: texts(in.History)}, nil
			}}}
			res, err := mode.resume(r, t.Context(), agent, pawl.RunID("r"), nil)
			e.want(t, "input of support: user: pay", "charge 5", "input of support: user: and quickly")
			if trips {
				tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageInput, Guardrail: "input", Agent: "support"})
				if got := texts(stored(t, sess)); got != "user: pay\ncall c1\nc1: receipt 5" {
					t.Error(got)
				}
				continue
			}
			if got := texts(must(t)(res, err).ToInputList()); got != "user: pay\ncall c1\nc1: receipt 5\nuser: and quickly\nassistant: done" {
				t.Error(got)
			}
			wantSaid(t, res.Guardrails(), "input input of support", "input input of support", `input history of support: "user: pay\ncall c1\nc1: receipt 5"`)
			sameViews(t, res, m, sess)
		}
	})
}

// What an error handler gives as the final output is checked like any other (S17.7).
func TestHandledOutputIsGuarded(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		for name, tt := range map[string]struct {
			steps []step
			turns int
			want  string // what stays after a trip
		}{
			"refusal":   {[]step{refusing("no")}, 0, "user: pay\nassistant: "}, // what the model refused with has no text
			"max turns": {[]step{calling(fc("c1", "charge", `{"cents":5}`))}, 1, "user: pay\ncall c1\nc1: receipt 5"},
		} {
			for _, trips := range []string{"", "sorry"} {
				var e effects
				sess, r := session.NewMemory("s"), &pawl.Runner{}
				r.Sessions = func(string) session.Session { return sess }
				agent := agentWith(newScript(tt.steps...), charging("charge", new(effects), nil))
				agent.OutputGuardrails = []pawl.OutputGuardrail{onOutput("pii", &e, trips)}
				res, err := mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess, MaxTurns: tt.turns, ErrorHandlers: one(answering(new(effects), "sorry"))})
				e.want(t, "pii of support: sorry")
				if trips == "" {
					if must(t)(res, err); res.FinalOutput != "sorry" || !strings.HasSuffix(texts(stored(t, sess)), "assistant: sorry") {
						t.Errorf("%s: %q, session:\n%s", name, res.FinalOutput, texts(stored(t, sess)))
					}
					continue
				}
				tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageOutput, Guardrail: "pii", Agent: "support"})
				if got := texts(stored(t, sess)); got != tt.want {
					t.Errorf("%s: session:\n%s", name, got)
				}
			}
		}
	})
}
