package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// asTheyRead are errors by their text.
var asTheyRead = map[string]func(t *testing.T) error{
	"pawl: run r: the run id is in use with another input, agent or conversation; resume that run, or choose another id": func(t *testing.T) error {
		r, agent, _ := waiting5(t)
		_, err := r.Run(t.Context(), agent, pawl.UserText("else"), &pawl.RunOptions{ID: "r"})
		return err
	},
	`pawl: run r: the run's session is missing: it is "s" in memory; give it in RunOptions.Session`: func(t *testing.T) error {
		r := &pawl.Runner{Store: journal.NewMemory()}
		agent := agentWith(newScript(says("done")))
		r.Agents = []*pawl.Agent{agent}
		newLoopEngine(t, r, pawl.StepperOptions{})
		_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: session.NewMemory("s")})
		return err
	},
	`pawl: run r, preparing turn 1: the tools of source "desk": the server is away`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) {
			a.ToolSources = []pawl.ToolSource{&shelf{label: "desk", err: errors.New("the server is away")}}
		})
	},
	"pawl: run x: the store has no such run": func(t *testing.T) error {
		_, err := new(pawl.Runner).State(t.Context(), "x")
		return err
	},
	`pawl: run r: the run's agent is not known here: "support"; give it, or add it to Runner.Agents`: func(t *testing.T) error {
		_, _, s := waiting5(t)
		_, err := new(pawl.Runner).Resume(t.Context(), nil, s, nil)
		return err
	},
	`pawl: run r, handoff 1.0: the filter of handoff "transfer_to_billing": a model cannot be sent what it returned: the view has a call "c9" that nobody made`: func(t *testing.T) error {
		d := newDesk([]step{calling(ho("h1", "billing"))}, nil)
		_, err := new(pawl.Runner).Run(t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r", HandoffFilter: func(context.Context, *pawl.HandoffData) ([]pawl.Item, error) {
			return []pawl.Item{fc("c9", "pay", `{}`)}, nil
		}})
		return err
	},
	"pawl: run r: the run takes no more input: the run has ended": func(t *testing.T) error {
		var r pawl.Runner
		must(t)(r.Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		return r.AddInput(t.Context(), "r", pawl.UserText("more"))
	},
	"pawl: run r: the run takes no more input: it is cancelled": func(t *testing.T) error {
		r, _, _ := waiting5(t)
		if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
			return err
		}
		return r.AddInput(t.Context(), "r", pawl.UserText("more"))
	},
	"pawl: RunOptions.ContextCodec: RunOptions.Context is of type int, and the codec is for string": func(t *testing.T) error {
		return runs(t, func(_ *pawl.Agent, o *pawl.RunOptions) { o.Context, o.ContextCodec = 7, pawl.JSONContext[string]() })
	},
	`pawl: run r: RunOptions.ContextCodec: json: unknown field "user"`: func(t *testing.T) error {
		agent, opts := asking5(new(effects)), &pawl.RunOptions{ID: "r", Context: map[string]string{"user": "ann"}, ContextCodec: pawl.JSONContext[map[string]string]()}
		s := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), opts)).State()
		_, err := new(pawl.Runner).Resume(t.Context(), agent, s, &pawl.RunOptions{ContextCodec: pawl.JSONContext[struct{ Name string }]()})
		return err
	},
	"pawl: run r: RunOptions.ContextCodec: is missing, and so is a Context: the context value of the run was recorded": func(t *testing.T) error {
		agent, opts := asking5(new(effects)), &pawl.RunOptions{ID: "r", Context: "ann", ContextCodec: pawl.JSONContext[string]()}
		s := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), opts)).State()
		_, err := new(pawl.Runner).Resume(t.Context(), agent, s, nil)
		return err
	},
	`pawl: run r: the run belongs to another agent: it is "support", not "sales"`: func(t *testing.T) error {
		r, agent, s := waiting5(t)
		_, err := r.Resume(t.Context(), &pawl.Agent{Name: "sales", Model: agent.Model}, s, nil)
		return err
	},
	"pawl: run r: the run is being driven elsewhere: run r is driven by process 7 on far until 2000-01-01T00:01:00Z": func(t *testing.T) error {
		store := journal.NewMemory()
		r := pawl.Runner{Store: store}
		must(t)(r.Run(t.Context(), asking5(new(effects)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		_, err := store.Claim(t.Context(), "r", journal.ClaimRequest{Owner: journal.Owner{Host: "far", PID: 7}, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Resume(t.Context(), asking5(new(effects)), pawl.RunID("r"), nil)
		return err
	},
	"pawl: run r: the run store failed with 3 facts to record: the run was claimed by another driver": func(t *testing.T) error {
		r := pawl.Runner{Store: &fenced{journal.NewMemory(), 2}}
		_, err := r.Run(t.Context(), asking5(new(effects)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		return err
	},
	"pawl: run r: the run store failed with 3 facts to record: the answer of the store was lost": func(t *testing.T) error {
		plan := journaltest.Plan{}
		for n := 2; n < 20; n++ {
			plan[n] = journaltest.Absent
		}
		r := pawl.Runner{Store: journaltest.Faulty(journal.NewMemory(), plan)}
		_, err := r.Run(t.Context(), asking5(new(effects)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		return err
	},
	"pawl: run r: the state and the stored run have gone different ways; resume the run by its id, or fork the state": func(t *testing.T) error {
		r, agent, _ := waiting5(t)
		_, _, other := waiting5(t)
		_, err := r.Resume(t.Context(), agent, other, nil)
		return err
	},
	`pawl: run r: the interruption was decided otherwise before: 1.0#0 is decided here: approve by "ann"`: func(t *testing.T) error {
		_, _, s := waiting5(t)
		return errors.Join(s.Decide(pawl.Approve("1.0#0", "ann")), s.Decide(pawl.Reject("1.0#0", "bob", "")))
	},
	`pawl: run r: the interruption was decided otherwise before: 1.0#0 is decided: approve by "ann"`: func(t *testing.T) error {
		r, _, _ := waiting5(t)
		return errors.Join(r.Decide(t.Context(), "r", pawl.Approve("1.0#0", "ann")), r.Decide(t.Context(), "r", pawl.Reject("1.0#0", "bob", "")))
	},
	`pawl: run r: the interruption was decided otherwise before: approve by "ann"`: func(t *testing.T) error {
		r, agent, s := waiting5(t)
		if err := s.Decide(pawl.Approve("1.0#0", "ann")); err != nil {
			return err
		}
		must(t)(r.Resume(t.Context(), agent, s, nil))
		return r.Decide(t.Context(), "r", pawl.Reject("1.0#0", "bob", ""))
	},
	"pawl: run r: the interruption is not open: the run of 1.0#1 has ended": func(t *testing.T) error {
		r, agent, s := waiting5(t)
		if err := s.Decide(pawl.Approve("1.0#0", "ann")); err != nil {
			return err
		}
		must(t)(r.Resume(t.Context(), agent, s, nil))
		return r.Decide(t.Context(), "r", pawl.Approve("1.0#1", "ann"))
	},
	"pawl: run r: the interruption is not open: there is no 9.9#0": func(t *testing.T) error {
		r, _, _ := waiting5(t)
		return r.Decide(t.Context(), "r", pawl.Approve("9.9#0", "ann"))
	},
	`pawl: run r: the decision does not fit the interruption: "nonsense" is not an interruption id`: func(t *testing.T) error {
		r, _, _ := waiting5(t)
		return r.Decide(t.Context(), "r", pawl.Approve("nonsense", "ann"))
	},
	"pawl: run r: the decision does not fit the interruption: 1.0#0 is of kind approval, which takes approve or reject, not retry": func(t *testing.T) error {
		r, _, _ := waiting5(t)
		return r.Decide(t.Context(), "r", pawl.Retry("1.0#0", "ann"))
	},
	`pawl: run r: the decision does not fit the interruption: the arguments for 1.0#0: cents: expected an integer of 64 bits, got "5"`: func(t *testing.T) error {
		r, _, _ := waiting5(t)
		return r.Decide(t.Context(), "r", pawl.Edit("1.0#0", "ann", `{"cents":"5"}`))
	},
	"pawl: run r: the decision does not fit the interruption: unreadable arguments: want a JSON object": func(t *testing.T) error {
		_, _, s := waiting5(t)
		return s.Decide(pawl.Edit("1.0#0", "ann", `[]`))
	},
	"pawl: run r: the driving was stopped before the next turn": func(t *testing.T) error {
		var r pawl.Runner
		var err error
		for ev, e := range r.Stream(t.Context(), asking5(new(effects)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}) {
			if _, ok := ev.(*pawl.RunStarted); ok {
				r.StopAfterTurn("r")
			}
			err = e
		}
		return err
	},
	"pawl: run r: facts 6 to 99 of the run cannot be read: the state and the stored run have gone different ways": func(t *testing.T) error {
		r, _, _ := waiting5(t)
		for _, err := range r.Watch(t.Context(), "r", pawl.Cursor{Fact: 99}) {
			return err
		}
		return nil
	},
	"pawl: run r: the decision does not fit the interruption: a message goes with a rejection": func(t *testing.T) error {
		_, _, s := waiting5(t)
		return s.Decide(pawl.Decision{Interruption: "1.0#0", Verdict: journal.Approve, Message: "no"})
	},
	"pawl: run r: the call may still be running: decide it after 2000-01-01T00:10:02Z": func(t *testing.T) error {
		doc := snapshot(t, func(body func()) *pawl.Agent { return inBody(new(effects), body, nil) }, &pawl.RunOptions{})
		agent := inBody(new(effects), func() {}, nil)
		r := &pawl.Runner{Store: abandoned(t, doc, elsewhere)}
		res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		return r.Decide(t.Context(), "r", pawl.GiveUp(res.Interruptions[0].ID, "ann"))
	},
	`pawl: run r: the call's tool has changed: "charge" is gone (call c1); resume the run with the tool as it was`: func(t *testing.T) error {
		r, agent, s := waiting5(t)
		changed := *agent
		changed.Tools = nil
		if err := s.Decide(pawl.Approve("1.0#0", "ann")); err != nil {
			return err
		}
		_, err := r.Resume(t.Context(), &changed, s, nil)
		return err
	},
	`pawl: run r: the run's session is missing: it is "s" in *pawl_test.points; give it in RunOptions.Session`: func(t *testing.T) error {
		agent := asking5(new(effects))
		var r pawl.Runner
		s := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: &points{session.NewMemory("s"), func(string) {}}})).State()
		_, err := r.Resume(t.Context(), agent, s, nil)
		return err
	},
	`pawl: run r: the session is not the run's session: the run has none, and "s" was given`: func(t *testing.T) error {
		r, agent, s := waiting5(t)
		_, err := r.Resume(t.Context(), agent, s, &pawl.RunOptions{Session: session.NewMemory("s")})
		return err
	},
	`pawl: run r, reading the session: session "s": item 0 is empty`: func(t *testing.T) error {
		return runs(t, func(_ *pawl.Agent, o *pawl.RunOptions) { o.Session = badSession{session.NewMemory("s")} })
	},
	"pawl: the run state cannot be read: invalid JSON at offset 0: unexpected end":                                          func(t *testing.T) error { return parse("") },
	`pawl: the run state cannot be read: its schema is ""`:                                                                  func(t *testing.T) error { return parse("{}") },
	`pawl: the run state cannot be read: the document has 0 facts and says -1`:                                              func(t *testing.T) error { return parse(`{"schema":"pawl.run/1","run":"r","facts":[]}`) },
	`pawl: the run state was written by a newer version of Pawl: member "x"`:                                                func(t *testing.T) error { return parse(`{"schema":"pawl.run/1","x":1}`) },
	`pawl: the run state was written by a newer version of Pawl: its schema is "pawl.run/2", this version reads pawl.run/1`: func(t *testing.T) error { return parse(`{"schema":"pawl.run/2"}`) },
	"pawl: run r: the run cannot be forked now: a fork needs an id of its own": func(t *testing.T) error {
		_, _, s := waiting5(t)
		_, err := s.Fork("r")
		return err
	},
	"pawl: run r: the run was cancelled": func(t *testing.T) error {
		r, agent, _ := waiting5(t)
		if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
			return err
		}
		_, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
		return err
	},
	"pawl: run r, starting the agent of call 1.0 of nested run 1.0/1.0/1.0/1.0/1.0/1.0/1.0/1.0: agents are nested too deep: 8 is the most": func(t *testing.T) error {
		agent := &pawl.Agent{Name: "me", Model: byLength(newScript(calling(fc("a", "me", `{"input":"again"}`))))}
		agent.Tools = []pawl.Tool{pawl.AgentTool(agent, &pawl.AgentToolOptions{FailRun: true})}
		_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
		return err
	},
	"pawl: run r, preparing turn 2: no final output after 1 turns; resume the run with a larger MaxTurns": func(t *testing.T) error {
		return runs(t, func(_ *pawl.Agent, o *pawl.RunOptions) { o.MaxTurns = 1 }, calling(fc("c1", "charge", `{"cents":5}`)))
	},
	`pawl: run r, reading response 1: the model called the tool "pay" (call c1), which the agent does not have; it has charge`: func(t *testing.T) error {
		return runs(t, nil, calling(fc("c1", "pay", `{}`)))
	},
	`pawl: run r, reading response 1: the model used the call id "c1" for two different calls`: func(t *testing.T) error {
		return runs(t, nil, calling(fc("c1", "charge", `{"cents":5}`), fc("c1", "charge", `{"cents":6}`)))
	},
	`pawl: run r, reading response 1: the model called the tool "pay" (call c1), which the agent does not have; it has none`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) { a.Tools = nil }, calling(fc("c1", "pay", `{"cents":5}`)))
	},
	"pawl: RunOptions: the model's server keeps no conversation, as ConversationID, PreviousResponseID and AutoPreviousResponseID ask for": func(t *testing.T) error {
		return runs(t, func(_ *pawl.Agent, o *pawl.RunOptions) { o.AutoPreviousResponseID = true }, says("no"))
	},
	`pawl: run r, preparing turn 1: Prompt of agent "support" panicked: oops`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, o *pawl.RunOptions) {
			a.Prompt = func(context.Context, *pawl.RunContext) (*pawl.PromptRef, error) { panic("oops") }
			o.Model = &pawltest.ScriptedModel{ServerPrompts: true}
		})
	},
	"pawl: run r, reading response 1: the model refused: never": func(t *testing.T) error {
		refusal := item.FromTrusted(`{"type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"never"}]}`)
		return runs(t, nil, items(refusal))
	},
	"pawl: run r, reading response 1: the final output does not fit its type: expected an object, got 7": func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) { a.Output = pawl.OutputOf[charge]() }, says("7"))
	},
	`pawl: run r, preparing turn 1: Instructions of agent "support" panicked: oops`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) {
			a.Instructions = func(context.Context, *pawl.RunContext) (string, error) { panic("oops") }
		})
	},
	"pawl: run r, model call of turn 1, attempt 1: the model did not answer in time: context deadline exceeded": func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) { a.Settings = &pawl.ModelSettings{Timeout: time.Second} }, hanging(make(chan struct{})))
	},
	"pawl: run r, model call of turn 1, attempt 1: the line is dead": func(t *testing.T) error {
		return runs(t, nil, failing(errors.New("pawl: the line is dead")))
	},
	`pawl: Agent.Tools: tool "a b": the name must be 1 to 64 letters, digits, _ or -`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) { a.Tools = []pawl.Tool{charging("a b", new(effects), nil)} })
	},
	"pawl: input: item 0 is empty": func(t *testing.T) error {
		_, err := new(pawl.Runner).Run(t.Context(), asking5(new(effects)), pawl.Input{{}}, nil)
		return err
	},
	"pawl: the seal of the run state does not hold: it was sealed with another key": func(t *testing.T) error {
		_, doc := sealed(t)
		_, err := pawl.OpenRunState(doc, sealKey(2))
		return err
	},
	"pawl: the seal of the run state does not hold: it was edited or cut short": func(t *testing.T) error {
		_, doc := sealed(t)
		doc[len(doc)/2] ^= 1
		_, err := pawl.OpenRunState(doc, sealKey(1))
		return err
	},
	"pawl: the seal of the run state does not hold: it is not a sealed state of this version": func(t *testing.T) error {
		s, _ := sealed(t)
		doc, err := s.MarshalJSON()
		if err != nil {
			return err
		}
		_, err = pawl.OpenRunState(doc, sealKey(1))
		return err
	},
	"pawl: OpenRunState: there is no key": func(t *testing.T) error {
		_, err := pawl.OpenRunState(nil)
		return err
	},
	"pawl: Seal: the key has 6 bytes, 32 random ones are the least": func(t *testing.T) error {
		_, _, s := waiting5(t)
		_, err := s.Seal([]byte("secret"))
		return err
	},
	`pawl: run second: another run has the session and is being driven: session "chat", run r; wait until it ends or waits, or cancel it`: func(t *testing.T) error {
		var err error
		r, opts := pawl.Runner{Store: journal.NewMemory()}, func(run string) *pawl.RunOptions {
			return &pawl.RunOptions{ID: run, Session: session.NewMemory("chat")}
		}
		must(t)(r.Run(t.Context(), inBody(new(effects), func() {
			_, err = r.Run(t.Context(), bystander(t), pawl.UserText("hurry"), opts("second"))
		}, nil), pawl.UserText("pay"), opts("r")))
		return err
	},
	`pawl: run second: another run has the session and waits for decisions: session "chat", run r (1.0#0 charge); decide and resume it, cancel it, or supersede it`: func(t *testing.T) error {
		_, err := second(t, false)
		return err
	},
	"pawl: run r: the run was closed to make room for another: run second has the session of run r now": func(t *testing.T) error {
		r, err := second(t, true)
		if err != nil {
			return err
		}
		_, err = r.Resume(t.Context(), asking5(new(effects)), pawl.RunID("r"), nil)
		return err
	},
	`pawl: run r, reading back session batch 2: the session's tail does not say whether the batch was stored: session "chat", a batch of 2; make the session end with the batch or without it, and resume the run`: func(t *testing.T) error {
		sess := &plainSession{Session: session.NewMemory("chat"), fault: faultAt(2, 1)}
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`))), charging("charge", new(effects), nil))
		opts := &pawl.RunOptions{ID: "r", Session: sess}
		_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), opts)
		_, err = new(pawl.Runner).Resume(t.Context(), agent, stateOf(t, err), &pawl.RunOptions{Session: sess})
		return err
	},
	`pawl: run r, reading back turn 1: nobody can tell whether the request was processed: conversation "conv" does not have the last known item; nothing was sent, and the run can be resumed or cancelled`: func(t *testing.T) error {
		m := &conversation{script: newScript(failing(&model.Error{Err: errors.New("connection reset")})), tail: []pawl.Item{item.UserText("hi")}}
		m.info.ServerState = true
		_, err := new(pawl.Runner).Run(t.Context(), agentWith(m), pawl.UserText("hi"), &pawl.RunOptions{ID: "r", ConversationID: "conv"})
		_, err = new(pawl.Runner).Resume(t.Context(), agentWith(m), stateOf(t, err), nil)
		return err
	},
	"pawl: run r, call 1.0: an approval has expired: nobody decided on charge in time; resume the run to be asked again": func(t *testing.T) error {
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`))), charging("charge", new(effects), func(f *pawl.Func[charge, string]) {
			f.Approve, f.Expires, f.OnExpiry = pawl.AlwaysAsk[charge], time.Hour, pawl.ExpiryFails
		}))
		r := pawl.Runner{Store: journal.NewMemory()}
		must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		time.Sleep(time.Hour)
		_, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
		return err
	},
	`pawl: run r, guardrails on the input: guardrail "polite" gave no verdict: no answer`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) {
			a.InputGuardrails = []pawl.InputGuardrail{{Name: "polite", Blocking: true, Check: func(context.Context, *pawl.InputCheck) (verdict, error) {
				return verdict{}, errors.New("no answer")
			}}}
		})
	},
	`pawl: run r, guardrails on the input: guardrail "polite" tripped on the input of agent "support"`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) {
			a.InputGuardrails = []pawl.InputGuardrail{blocking(onInput("polite", new(effects), verdict{Tripped: true}))}
		})
	},
	`pawl: run r, call 1.0: guardrail "pii" tripped on the output of tool "charge" (call c1)`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) {
			guards := []pawl.ToolOutputGuardrail{onResult("pii", new(effects), pawl.TripTool(nil))}
			a.Tools = []pawl.Tool{charging("charge", new(effects), guarding(nil, guards))}
		}, calling(fc("c1", "charge", `{"cents":5}`)))
	},
	`pawl: run r, guardrails on call 1.0: guardrail "limit" tripped on the call of tool "charge" (call c1)`: func(t *testing.T) error {
		return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) {
			guards := []pawl.ToolInputGuardrail{onCall("limit", new(effects), pawl.TripTool(nil))}
			a.Tools = []pawl.Tool{charging("charge", new(effects), guarding(guards, nil))}
		}, calling(fc("c1", "charge", `{"cents":5}`)))
	},
}

// second starts a run on the session of run "r", which waits for an approval.
func second(t *testing.T, supersede bool) (*pawl.Runner, error) {
	t.Helper()
	r, chat := &pawl.Runner{Store: journal.NewMemory()}, session.NewMemory("chat")
	must(t)(r.Run(t.Context(), asking5(new(effects)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: chat}))
	_, err := r.Run(t.Context(), agentWith(newScript(says("hello"))), pawl.UserText("hi"), &pawl.RunOptions{ID: "second", Session: chat, Supersede: supersede})
	return r, err
}
