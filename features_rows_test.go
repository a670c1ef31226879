package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// rowFeatures are rows about options, errors, documents and what asks for an approval.
var rowFeatures = []feature{
	{"A1.06", TestOfferedTools},
	{"R2.06", TestOptionsThatExclude},
	{"R2.12", TestEveryOptionHasItsPlace},
	{"R2.21", TestErrorsCarryTheRun},
	{"H4.01", TestWhatCanAsk},
	{"H4.04", TestHostedMCP},
	{"5.03", TestDocumentHasTheLedger},
	{"5.05", TestDocumentFindsItsAgent},
}

// The tools come first, in their order, then the handoffs; what is disabled in a turn is not
// among them.
func TestOfferedTools(t *testing.T) {
	d := newDesk([]step{calling(call("c1", "look")), says("done")}, nil, namedTools("look", "listen")...)
	d.triage.Tools = append(d.triage.Tools, charging("pay", &d.e, func(f *pawl.Func[charge, string]) {
		f.Enabled = func(_ context.Context, rc *pawl.RunContext) (bool, error) { return rc.Turn > 1, nil }
	}))
	must(t)(new(pawl.Runner).Run(t.Context(), d.triage, pawl.UserText("go"), nil))
	for i, want := range [][]string{{"look", "listen", "transfer_to_billing"}, {"look", "listen", "pay", "transfer_to_billing"}} {
		if diff := cmp.Diff(want, d.asked.calls()[i].Tools); diff != "" {
			t.Errorf("turn %d (-want +got):\n%s", i+1, diff)
		}
	}
}

// Options that exclude each other are refused before anything happens, also those that a resumed
// run already has.
func TestOptionsThatExclude(t *testing.T) {
	sess := session.NewMemory("s")
	guard := pawl.OutputGuardrail{Name: "g", Check: func(context.Context, *pawl.OutputCheck) (pawl.GuardrailVerdict, error) {
		return pawl.GuardrailVerdict{}, nil
	}}
	for name, tt := range map[string]struct {
		opts   pawl.RunOptions
		filter pawl.HandoffFilter
		want   string
	}{
		"session and conversation": {opts: pawl.RunOptions{Session: sess, ConversationID: "conv"}, want: "pawl: RunOptions: a session, a conversation id and a previous response id exclude each other"},
		"session and response":     {opts: pawl.RunOptions{Session: sess, PreviousResponseID: "resp"}, want: "pawl: RunOptions: a session, a conversation id and a previous response id exclude each other"},
		"session and chain":        {opts: pawl.RunOptions{Session: sess, AutoPreviousResponseID: true}, want: "pawl: RunOptions: a session, a conversation id and a previous response id exclude each other"},
		"conversation and chain":   {opts: pawl.RunOptions{ConversationID: "conv", AutoPreviousResponseID: true}, want: "pawl: RunOptions: a session, a conversation id and a previous response id exclude each other"},
		"a filter for all":         {opts: pawl.RunOptions{ConversationID: "conv", HandoffFilter: pawl.RemoveTools()}, want: "pawl: RunOptions.HandoffFilter: the server keeps the conversation, so that a handoff cannot change what the next agent reads"},
		"a handoff's filter":       {opts: pawl.RunOptions{ConversationID: "conv"}, filter: pawl.RemoveTools(), want: `pawl: HandoffFunc.Filter: handoff "transfer_to_billing": the server keeps the conversation, so that a handoff cannot change what the next agent reads`},
		"a guardrail on the output": {opts: pawl.RunOptions{ConversationID: "conv", OutputGuardrails: []pawl.OutputGuardrail{onOutput("pii", new(effects), "")}},
			want: "pawl: RunOptions.OutputGuardrails: the server keeps the conversation, also an output that a guardrail withholds"},
		"a guard of outputs": {opts: pawl.RunOptions{ConversationID: "conv", OutputGuardrails: []pawl.OutputGuardrail{guard}}, want: "pawl: RunOptions.OutputGuardrails: the server keeps the conversation, also an output that a guardrail withholds"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(nil, nil)
			d.asked.info, d.answered.info = serverState, serverState
			d.noting(func(f *pawl.HandoffFunc[struct{}]) { f.Filter = tt.filter })
			_, err := new(pawl.Runner).Run(t.Context(), d.triage, pawl.UserText("hi"), &tt.opts)
			if _, ok := errors.AsType[*pawl.ConfigError](err); !ok || err.Error() != tt.want {
				t.Errorf("error %v", err)
			}
		})
	}
	down := &model.Error{Status: 503}
	d := newDesk([]step{failing(down)}, nil)
	d.asked.info, d.answered.info = serverState, serverState
	_, err := new(pawl.Runner).Run(t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ConversationID: "conv"})
	state := viaJSON(t, stateOf(t, err))
	if _, err := new(pawl.Runner).Resume(t.Context(), d.triage, state, &pawl.RunOptions{Session: sess}); !errors.Is(err, pawl.ErrSessionMismatch) {
		t.Errorf("a session for a run on a conversation: %v", err)
	}
	_, err = new(pawl.Runner).Resume(t.Context(), d.triage, state, &pawl.RunOptions{HandoffFilter: pawl.RemoveTools()})
	if c, ok := errors.AsType[*pawl.ConfigError](err); !ok || c.Field != "RunOptions.HandoffFilter" {
		t.Errorf("a filter for a run on a conversation: %v", err)
	}
	if len(d.asked.calls()) != 1 {
		t.Errorf("%d requests", len(d.asked.calls()))
	}
}

// optionPlaces says in which option each setting of a run of the OpenAI Agents SDK is.
var optionPlaces = map[string]string{
	"model": "Model", "model_provider": "Model", "model_settings": "Settings",
	"handoff_input_filter": "HandoffFilter", "nest_handoff_history": "NestHandoffs", "handoff_history_mapper": "NestHandoffs",
	"session_input_callback": "MergeInput", "session_settings": "Session", "call_model_input_filter": "FilterInput",
	"tool_error_formatter": "ToolErrors", "reasoning_item_id_policy": "OmitReasoningIDs",
	"tool_execution": "MaxParallelTools", "tool_not_found_behavior": "ToolNotFound",
	"input_guardrails": "InputGuardrails", "output_guardrails": "OutputGuardrails", "pre_approval_tool_input_guardrails": "GuardBeforeApproval",
	"hooks": "Hooks", "error_handlers": "ErrorHandlers", "context_serializer": "ContextCodec",
	"context": "Context", "max_turns": "MaxTurns", "session": "Session", "conversation_id": "ConversationID",
	"previous_response_id": "PreviousResponseID", "auto_previous_response_id": "AutoPreviousResponseID",
}

// Each setting has an option, and none is needed: nil means a run with defaults.
func TestEveryOptionHasItsPlace(t *testing.T) {
	for setting, name := range optionPlaces {
		if _, ok := reflect.TypeFor[pawl.RunOptions]().FieldByName(name); !ok {
			t.Errorf("%s: there is no RunOptions.%s", setting, name)
		}
	}
	eachMode(t, func(t *testing.T, m mode) {
		res := must(t)(m.run(new(pawl.Runner), t.Context(), agentWith(newScript(says("done"))), pawl.UserText("go"), nil))
		if res.FinalOutput != "done" || res.Run == "" {
			t.Errorf("%+v", res)
		}
	})
}

// An error of a run has its type, and carries the run as far as it came.
func TestErrorsCarryTheRun(t *testing.T) {
	is := func(sentinel error) func(error) bool { return func(err error) bool { return errors.Is(err, sentinel) } }
	refusal := item.FromTrusted(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`)
	bad := item.FromTrusted(`{"type":"function_call","call_id":"c1","name":"pay","arguments":7}`)
	for name, tt := range map[string]struct {
		step  step
		agent func(*pawl.Agent)
		opts  pawl.RunOptions
		is    func(error) bool
		items int // what the run has when it fails
	}{
		"too many turns":     {step: calling(fc("c1", "pay", `{"cents":1}`)), opts: pawl.RunOptions{MaxTurns: 1}, is: isA[*pawl.MaxTurnsError], items: 3},
		"unknown tool":       {step: calling(fc("c1", "fly", `{}`)), is: isA[*pawl.ToolNotFoundError], items: 1},
		"one id, two calls":  {step: calling(fc("c1", "pay", `{"cents":1}`), fc("c1", "pay", `{"cents":2}`)), is: isA[*pawl.CallIDError], items: 1},
		"a call of no shape": {step: calling(bad), is: is(item.ErrMalformed), items: 1},
		"a refusal":          {step: items(refusal), is: isA[*pawl.RefusalError], items: 1},
		"no valid output":    {step: says("{"), agent: func(a *pawl.Agent) { a.Output = pawl.OutputOf[charge]() }, is: isA[*pawl.OutputError], items: 1},
		"not completed":      {step: failing(&model.Error{Err: model.ErrIncomplete}), is: is(model.ErrIncomplete), items: 1},
		"too slow":           {step: hanging(make(chan struct{})), agent: func(a *pawl.Agent) { a.Settings = &pawl.ModelSettings{Timeout: time.Second} }, is: isA[*pawl.TimeoutError], items: 1},
		"user code": {step: says("done"), agent: func(a *pawl.Agent) {
			a.Instructions = func(context.Context, *pawl.RunContext) (string, error) { panic("boom") }
		}, is: isA[*pawl.PanicError], items: 1},
		"a filter": {step: says("done"), opts: pawl.RunOptions{FilterInput: func(_ context.Context, in *pawl.ModelInput) error { in.Items = nil; return nil }},
			is: isA[*pawl.FilterError], items: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				agent := agentWith(newScript(tt.step), charging("pay", &e, nil))
				if tt.agent != nil {
					tt.agent(agent)
				}
				_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &tt.opts)
				if !tt.is(err) {
					t.Fatalf("error %v", err)
				}
				re, ok := errors.AsType[*pawl.RunError](err)
				if !ok || re.Run == "" || re.State.Status() != pawl.StatusFailed {
					t.Fatalf("error %v", err)
				}
				if res := re.State.Result(); len(res.ToInputList()) != tt.items || res.LastAgent.Key != "support" {
					t.Errorf("%d items, last agent %q", len(res.ToInputList()), res.LastAgent.Key)
				}
			})
		})
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Function tools, those with a schema of their own, and agents as tools ask; a handoff does not.
func TestWhatCanAsk(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		raw := pawl.NewRawTool(pawl.RawFunc{Name: "raw", Schema: `{"type":"object","properties":{},"required":[],"additionalProperties":false}`,
			Approve: func(context.Context, *pawl.Call) (pawl.Gate, error) { return pawl.Ask, nil },
			Run:     func(context.Context, *pawl.Call) (string, error) { e.add("raw"); return "", nil }})
		helper := pawl.AgentTool(&pawl.Agent{Name: "helper", Model: newScript(says("helped"))}, &pawl.AgentToolOptions{
			Approve: func(context.Context, *pawl.Call, pawl.AgentInput) (pawl.Gate, error) { return pawl.Ask, nil }})
		d := newDesk([]step{calling(fc("c1", "pay", `{"cents":1}`), call("c2", "raw"), fc("c3", "helper", `{"input":"go"}`), ho("h1", "billing"))}, []step{says("done")},
			charging("pay", &e, asking), raw, helper)
		var r pawl.Runner
		state := must(t)(m.run(&r, t.Context(), d.triage, pawl.UserText("go"), nil)).State()
		var asked []string
		for _, in := range state.Interruptions() {
			asked = append(asked, in.Tool)
			if err := state.Approve(in, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"pay", "raw", "helper"}, asked); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		e.want(t)
		if res := must(t)(m.resume(&r, t.Context(), d.triage, state, nil)); res.FinalOutput != "done" || len(d.answered.calls()) != 1 {
			t.Errorf("output %q", res.FinalOutput)
		}
	})
}

// The document has the run as its ledger, fact by fact, and the decisions that are staged; the
// response is in it once.
func TestDocumentHasTheLedger(t *testing.T) {
	var e effects
	_, _, state, _ := paused(t, &e)
	if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Schema, Run, Status string
		Facts               []struct{ K, P string }
		Staged              []json.RawMessage
	}
	text := marshal(t, state)
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	responses := 0
	for _, f := range doc.Facts {
		kinds = append(kinds, f.K)
		responses += strings.Count(f.P, `"call_id":"c1","name":"pay"`)
	}
	want := []string{"started", "claimed", "prepared", "responded", "planned", "intended", "settled"}
	if diff := cmp.Diff(want, kinds); diff != "" || doc.Schema != "pawl.run/1" || doc.Run != state.Run() || doc.Status != "waiting" || len(doc.Staged) != 1 || responses != 1 {
		t.Errorf("%s %s %s, %d staged, %d responses; facts (-want +got):\n%s", doc.Schema, doc.Run, doc.Status, len(doc.Staged), responses, diff)
	}
}

// The agent of a document is found by its key among those that the first one leads to; two of
// one name are told apart by the way. One that is gone is an error before anything happens.
func TestDocumentFindsItsAgent(t *testing.T) {
	var e effects
	clerk := func(answer string) *pawl.Agent {
		return &pawl.Agent{Name: "clerk", Model: newScript(calling(fc("c1", "pay", `{"cents":1}`)), says(answer)), Tools: []pawl.Tool{charging("pay", &e, asking)}}
	}
	build := func() (chief, first, second *pawl.Agent) {
		first, second = clerk("the first"), clerk("the second")
		chief = agentWith(newScript(calling(call("h1", "to_second"))))
		chief.Handoffs = []pawl.Handoff{pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: first, Name: "to_first"}), pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: second, Name: "to_second"})}
		return chief, first, second
	}
	chief, _, second := build()
	state := must(t)(new(pawl.Runner).Run(t.Context(), chief, pawl.UserText("go"), nil)).State()
	if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	if got := state.Interruptions; len(got()) != 0 || state.Result().LastAgent.Key != "support/to_second" {
		t.Errorf("agent %q", state.Result().LastAgent.Key)
	}
	again, first, _ := build()
	again.Handoffs = again.Handoffs[:1]
	if _, err := new(pawl.Runner).Resume(t.Context(), again, viaJSON(t, state), nil); !errors.Is(err, pawl.ErrUnknownAgent) {
		t.Errorf("an agent that is gone: %v", err)
	}
	e.want(t)
	again.Handoffs = []pawl.Handoff{pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: second, Name: "to_second"}), pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: first, Name: "to_first"})}
	if res := must(t)(new(pawl.Runner).Resume(t.Context(), again, viaJSON(t, state), nil)); res.FinalOutput != "the second" || res.LastAgent != second {
		t.Errorf("output %q", res.FinalOutput)
	}
	e.want(t, "pay 1")
}
