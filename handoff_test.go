package pawl_test

import (
	"context"
	"encoding/json"
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

// ho is the call of a handoff without arguments.
func ho(callID, to string) pawl.Item { return fc(callID, "transfer_to_"+to, `{}`) }

// desk is a triage agent and the billing agent that it can hand over to. Each asks a model of
// its own.
type desk struct {
	triage, billing *pawl.Agent
	asked, answered *script // the models of triage and billing
	e               effects
}

func newDesk(triage, billing []step, tools ...pawl.Tool) *desk {
	d := &desk{asked: newScript(triage...), answered: newScript(billing...)}
	d.billing = &pawl.Agent{Name: "Billing", Model: d.answered, Instructions: pawl.Text("Bill."), HandoffDescription: "Knows prices."}
	d.triage = &pawl.Agent{Name: "Triage", Model: d.asked, Instructions: pawl.Text("Route."), Tools: tools}
	d.triage.Handoffs = []pawl.Handoff{pawl.HandoffTo(d.billing)}
	return d
}

// noting is a handoff to billing that notes when it takes place.
func (d *desk) noting(change func(*pawl.HandoffFunc[struct{}])) {
	f := pawl.HandoffFunc[struct{}]{Agent: d.billing, OnHandoff: func(_ context.Context, h *pawl.HandoffCall, _ struct{}) error {
		d.e.add("%s to %s by %s", h.Agent.Name, h.To.Name, h.ID)
		return nil
	}}
	if change != nil {
		change(&f)
	}
	d.triage.Handoffs = []pawl.Handoff{pawl.NewHandoff(f)}
}

// The target answers the turns that follow, with its own model, instructions and tools. It
// reads the whole conversation, and so does the session [M18.5] [M18.6].
func TestHandoff(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		d := newDesk([]step{items(item.ReasoningItem("", "hm"), ho("h1", "billing"), fc("c1", "pay", `{"cents":5}`))},
			[]step{calling(fc("c2", "bill", `{"cents":7}`)), says("billed")})
		d.triage.Tools = []pawl.Tool{charging("pay", &d.e, nil)}
		d.billing.Tools = []pawl.Tool{charging("bill", &d.e, nil)}
		d.noting(nil)
		sess := session.NewMemory("s")
		res := must(t)(m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{Session: sess}))
		if res.FinalOutput != "billed" || res.Turns != 3 || res.LastAgent != d.billing {
			t.Errorf("%q after %d turns, last agent %s", res.FinalOutput, res.Turns, res.LastAgent.Name)
		}
		d.e.want(t, "pay 5", "Triage to Billing by h1", "bill 7")
		if diff := cmp.Diff([]string{`h1: {"assistant":"Billing"}`, "c1: receipt 5", "c2: receipt 7"}, outputs(res.NewItems())); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
		sameViews(t, res, d.asked, sess)
		sameViews(t, res, d.answered, sess)
		for _, tt := range []struct {
			got          asked
			instructions string
			tools        []string
			items        int
		}{
			{d.asked.calls()[0], "Route.", []string{"pay", "transfer_to_billing"}, 1},
			{d.answered.calls()[0], "Bill.", []string{"bill"}, 6},
			{d.answered.calls()[1], "Bill.", []string{"bill"}, 8},
		} {
			if tt.got.Instructions != tt.instructions || cmp.Diff(tt.tools, tt.got.Tools) != "" || len(tt.got.Input) != tt.items {
				t.Errorf("asked %q, tools %v, %d items; want %+v", tt.got.Instructions, tt.got.Tools, len(tt.got.Input), tt)
			}
		}
		var agents []string
		for _, q := range res.Requests() {
			agents = append(agents, q.Agent)
		}
		if diff := cmp.Diff([]string{"Triage", "Billing", "Billing"}, agents); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// What a stream shows of a handoff, and a watch of the same facts.
func TestHandoffEvents(t *testing.T) {
	d := newDesk([]step{items(ho("h1", "billing"), ho("h2", "billing"), fc("c1", "pay", `{"cents":5}`))}, []step{says("billed")})
	d.triage.Tools = []pawl.Tool{charging("pay", &d.e, nil)}
	store := journal.NewMemory()
	got, err := trail((&pawl.Runner{Store: store}).Stream(t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"}))
	want := []string{"started resumed=false", "agent Triage",
		"handoff_requested h1", "handoff_requested h2", "tool_called c1", "tool_output h2", "tool started pay c1 1", "tool_output c1",
		"handoff_occurred h1", "agent Billing", `delta text 2.1 "billed"`, "message_output_created", "done billed"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	watched, _, err := seen((&pawl.Runner{Store: store, Agents: []*pawl.Agent{d.triage}}).Watch(t.Context(), "r", pawl.Cursor{}), nil)
	if diff := cmp.Diff(durable(want), watched); diff != "" || err != nil {
		t.Errorf("watched: %v (-want +got):\n%s", err, diff)
	}
	watched, _, err = seen((&pawl.Runner{Store: store}).Watch(t.Context(), "r", pawl.Cursor{}), func(ev pawl.Event) bool {
		up, ok := ev.(*pawl.AgentUpdated)
		return ok && up.Agent.Key == "Billing"
	})
	if len(watched) != 10 || err != nil {
		t.Errorf("without an agent: %v %v", watched, err)
	}
}

// The first handoff that can take place does; the others are answered [M18.2] [S15.3].
func TestFirstHandoffWins(t *testing.T) {
	type reason struct {
		Why string `json:"why"`
	}
	const ignored = "Ignored: another call of the same response hands the conversation over."
	for name, tt := range map[string]struct {
		calls   []pawl.Item
		options pawl.RunOptions
		notes   []string
		outputs []string
		err     string
	}{
		"two":          {calls: []pawl.Item{ho("h1", "billing"), ho("h2", "law")}, notes: []string{"billing"}, outputs: []string{`h1: {"assistant":"Billing"}`, "h2: " + ignored}},
		"the other":    {calls: []pawl.Item{ho("h1", "law"), ho("h2", "billing")}, notes: []string{"law"}, outputs: []string{`h1: {"assistant":"Law"}`, "h2: " + ignored}},
		"one twice":    {calls: []pawl.Item{ho("h1", "billing"), ho("h1", "billing")}, notes: []string{"billing"}, outputs: []string{`h1: {"assistant":"Billing"}`}},
		"same target":  {calls: []pawl.Item{ho("h1", "billing"), ho("h2", "billing")}, notes: []string{"billing"}, outputs: []string{`h1: {"assistant":"Billing"}`, "h2: " + ignored}},
		"any argument": {calls: []pawl.Item{fc("h1", "transfer_to_billing", `{"x":1}`)}, notes: []string{"billing"}, outputs: []string{`h1: {"assistant":"Billing"}`}},
		"no argument":  {calls: []pawl.Item{fc("h1", "transfer_to_billing", `oops`)}, notes: []string{"billing"}, outputs: []string{`h1: {"assistant":"Billing"}`}},
		"arguments":    {calls: []pawl.Item{fc("h1", "escalate", `{"why":"angry"}`)}, notes: []string{"boss: angry"}, outputs: []string{`h1: {"assistant":"Boss"}`}},
		"the first does not fit": {calls: []pawl.Item{fc("h1", "escalate", `{"reason":"angry"}`), ho("h2", "law")}, notes: []string{"law"},
			outputs: []string{`h1: The arguments cannot be used: unknown field "reason"; the fields are: why`, `h2: {"assistant":"Law"}`}},
		"disabled": {calls: []pawl.Item{ho("h1", "night"), ho("h2", "law")}, options: pawl.RunOptions{ToolNotFound: pawl.TellModel}, notes: []string{"law"},
			outputs: []string{`h1: Tool "transfer_to_night" is configured, but disabled. Available tools: transfer_to_billing, transfer_to_law, escalate.`, `h2: {"assistant":"Law"}`}},
		"disabled, and fails": {calls: []pawl.Item{ho("h1", "night"), ho("h2", "law")}, err: `the model called the tool "transfer_to_night" (call h1), which is configured, but disabled`},
		"other words": {calls: []pawl.Item{ho("h1", "billing"), ho("h2", "law")}, notes: []string{"billing"}, outputs: []string{`h1: {"assistant":"Billing"}`, "h2: handoff_ignored transfer_to_law"},
			options: pawl.RunOptions{ToolErrors: func(e pawl.ToolError) string { return fmt.Sprintf("%s %s", e.Kind, e.Tool) }}},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				to := func(name string, enabled func(context.Context, *pawl.RunContext) (bool, error)) pawl.Handoff {
					return pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: &pawl.Agent{Name: name, Model: newScript(says("done"))}, Enabled: enabled,
						OnHandoff: func(context.Context, *pawl.HandoffCall, struct{}) error {
							e.add("%s", strings.ToLower(name))
							return nil
						}})
				}
				s := newScript(calling(tt.calls...))
				agent := agentWith(s)
				agent.Handoffs = []pawl.Handoff{to("Billing", nil), to("Law", nil),
					to("Night", func(context.Context, *pawl.RunContext) (bool, error) { return false, nil }),
					pawl.NewHandoff(pawl.HandoffFunc[reason]{Agent: &pawl.Agent{Name: "Boss", Model: newScript(says("done"))}, Name: "escalate",
						OnHandoff: func(_ context.Context, _ *pawl.HandoffCall, in reason) error { e.add("boss: %s", in.Why); return nil }})}
				res, err := m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("hi"), &tt.options)
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("error %v, want %s", err, tt.err)
					}
					return
				}
				must(t)(res, err)
				e.want(t, tt.notes...)
				if diff := cmp.Diff(tt.outputs, outputs(res.NewItems())); diff != "" {
					t.Errorf("outputs (-want +got):\n%s", diff)
				}
				sameViews(t, res, s, nil)
			})
		})
	}
}

// failingOnce is a session whose n-th append fails, and stores nothing.
type failingOnce struct {
	session.Session
	n int
}

func (f *failingOnce) Append(ctx context.Context, list []pawl.Item) error {
	if f.n--; f.n == 0 {
		return errors.New("disk full")
	}
	return f.Session.Append(ctx, list)
}

// An approval beside a handoff comes first. The handoff takes place once, whatever happens to
// the session, over documents and a store [M18.3].
func TestApprovalThenHandoff(t *testing.T) {
	for _, kind := range []string{"document", "store"} {
		t.Run(kind, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				d := newDesk([]step{calling(fc("c1", "charge", `{"cents":5}`), ho("h1", "billing"))}, []step{says("ok")})
				d.triage.Tools = []pawl.Tool{charging("charge", &d.e, asking)}
				d.noting(nil)
				sess := &failingOnce{session.NewMemory("s"), 2}
				var store journal.Driver
				if kind == "store" {
					store = openSQLite(t, t.TempDir()+"/runs.db")
				}
				again := func(s *pawl.RunState) pawl.Resumable {
					if store != nil {
						return pawl.RunID(s.Run())
					}
					return viaJSON(t, s)
				}
				opts := &pawl.RunOptions{Session: sess}
				res := must(t)(m.run(&pawl.Runner{Store: store}, t.Context(), d.triage, pawl.UserText("hi"), opts))
				if len(res.Interruptions) != 1 || res.Interruptions[0].Tool != "charge" || res.Interruptions[0].Agent != "Triage" || res.LastAgent != d.triage {
					t.Fatalf("%+v", res.Interruptions)
				}
				d.e.want(t)
				state := viaJSON(t, res.State())
				if err := state.Approve(res.Interruptions[0], "ann"); err != nil {
					t.Fatal(err)
				}
				_, err := m.resume(&pawl.Runner{Store: store}, t.Context(), d.triage, state, opts)
				if err == nil || !strings.Contains(err.Error(), "disk full") {
					t.Fatalf("error %v", err)
				}
				res = must(t)(m.resume(&pawl.Runner{Store: store}, t.Context(), d.triage, again(stateOf(t, err)), opts))
				d.e.want(t, "charge 5", "Triage to Billing by h1")
				if res.LastAgent != d.billing || len(d.asked.calls())+len(d.answered.calls()) != 2 {
					t.Errorf("last agent %s, %d and %d requests", res.LastAgent.Name, len(d.asked.calls()), len(d.answered.calls()))
				}
				if diff := cmp.Diff([]string{"c1: receipt 5", `h1: {"assistant":"Billing"}`}, outputs(res.NewItems())); diff != "" {
					t.Errorf("outputs (-want +got):\n%s", diff)
				}
				sameViews(t, res, d.answered, sess)
			})
		})
	}
}

// OnHandoff that fails, or panics, leaves the run with its agent; the handoff is tried again
// when the run is resumed.
func TestOnHandoffFails(t *testing.T) {
	for name, tt := range map[string]struct {
		fail func() error
		want string
	}{
		"error": {func() error { return errors.New("no line") }, `handoff 1.0: handoff "transfer_to_billing": OnHandoff: no line`},
		"panic": {func() error { panic("boom") }, `handoff 1.0: OnHandoff of handoff "transfer_to_billing" panicked: boom`},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				d := newDesk([]step{calling(ho("h1", "billing"))}, []step{says("ok")})
				var keys []string
				d.noting(func(f *pawl.HandoffFunc[struct{}]) {
					f.OnHandoff = func(_ context.Context, h *pawl.HandoffCall, _ struct{}) error {
						if keys = append(keys, h.Key); len(keys) == 1 {
							return tt.fail()
						}
						return nil
					}
				})
				_, err := m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
				if err == nil || err.Error() != "pawl: run r, "+tt.want {
					t.Fatalf("error %v", err)
				}
				s := viaJSON(t, stateOf(t, err))
				if s.Status() != pawl.StatusFailed || s.Result().LastAgent.Key != "Triage" {
					t.Errorf("status %s, agent %q", s.Status(), s.Result().LastAgent.Key)
				}
				res := must(t)(m.resume(new(pawl.Runner), t.Context(), d.triage, s, nil))
				if res.FinalOutput != "ok" || res.LastAgent != d.billing {
					t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
				}
				if len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
					t.Errorf("keys %q", keys)
				}
			})
		})
	}
}

// A process that dies before the handoff is recorded has called OnHandoff; the next one calls
// it again, with the same key. One that dies behind the record does not, nor one that has the
// state of the run in hand [S15.4].
func TestHandoffOverACrash(t *testing.T) {
	for name, tt := range map[string]struct {
		before, state bool
		calls         int
	}{
		"before the record":                 {before: true, calls: 2},
		"before the record, with the state": {before: true, state: true, calls: 1},
		"behind the record":                 {calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.NewMemory()
			dead := &deadEnd{Driver: store}
			dies := func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
				dead.dead.Store(!tt.before && !dead.dead.Load())
				return says("ok")(ctx, req, emit)
			}
			d := newDesk([]step{calling(ho("h1", "billing"))}, []step{dies, says("ok")})
			var keys []string
			d.noting(func(f *pawl.HandoffFunc[struct{}]) {
				f.OnHandoff = func(_ context.Context, h *pawl.HandoffCall, _ struct{}) error {
					keys = append(keys, h.Key)
					dead.dead.Store(tt.before && len(keys) == 1)
					return nil
				}
			})
			_, err := (&pawl.Runner{Store: dead}).Run(t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
			if err == nil {
				t.Fatal("no error")
			}
			var from pawl.Resumable = pawl.RunID("r")
			if tt.state {
				from = viaJSON(t, stateOf(t, err))
			}
			res := must(t)((&pawl.Runner{Store: store, Agents: []*pawl.Agent{d.triage}}).Resume(t.Context(), nil, from, nil))
			if res.FinalOutput != "ok" || res.LastAgent != d.billing || len(d.asked.calls()) != 1 {
				t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
			}
			if len(keys) != tt.calls || keys[0] != keys[len(keys)-1] {
				t.Errorf("OnHandoff was called with the keys %q, want %d", keys, tt.calls)
			}
			transfers := 0
			for _, f := range facts(t, store, "r") {
				if _, ok := f.Body.(*journal.Transferred); ok {
					transfers++
				}
			}
			if transfers != 1 {
				t.Errorf("%d transfers", transfers)
			}
		})
	}
}

// What is wrong with a handoff, or with an agent that the run could come to, is found before
// anything happens [S15.1] [S15.6].
func TestHandoffsAreChecked(t *testing.T) {
	m := newScript()
	target := &pawl.Agent{Name: "B", Model: m}
	fine := pawl.HandoffTo(target)
	filtered := pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: target, Filter: pawl.RemoveTools()})
	to := func(a *pawl.Agent) []pawl.Handoff { return []pawl.Handoff{pawl.HandoffTo(a)} }
	for name, tt := range map[string]struct {
		handoffs []pawl.Handoff
		tools    []pawl.Tool
		options  pawl.RunOptions
		want     string
	}{
		"nil agent":     {handoffs: to(nil), want: `pawl: Agent.Handoffs: handoff "": has no agent`},
		"zero":          {handoffs: []pawl.Handoff{{}}, want: "pawl: Agent.Handoffs: the handoff leads nowhere; make it with HandoffTo or NewHandoff"},
		"nameless":      {handoffs: to(&pawl.Agent{Model: m}), want: `pawl: Agent.Handoffs: handoff "transfer_to_": its agent has no name`},
		"bad name":      {handoffs: []pawl.Handoff{pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: target, Name: "to B"})}, want: `pawl: Agent.Handoffs: handoff "to B": the name must be 1 to 64 letters, digits, _ or -`},
		"no schema":     {handoffs: []pawl.Handoff{pawl.NewHandoff(pawl.HandoffFunc[chan int]{Agent: target})}, want: `pawl: Agent.Handoffs: handoff "transfer_to_b": `},
		"nobody reads":  {handoffs: []pawl.Handoff{pawl.NewHandoff(pawl.HandoffFunc[charge]{Agent: target})}, want: `pawl: Agent.Handoffs: handoff "transfer_to_b": has arguments, and no OnHandoff that reads them`},
		"two of a name": {handoffs: []pawl.Handoff{fine, pawl.HandoffTo(&pawl.Agent{Name: "b", Model: m})}, want: `pawl: Agent.Handoffs: agent "support" has two tools or handoffs that are named "transfer_to_b"`},
		"a tool's name": {handoffs: []pawl.Handoff{fine}, tools: []pawl.Tool{charging("transfer_to_b", new(effects), nil)}, want: `pawl: Agent.Handoffs: agent "support" has two tools or handoffs that are named "transfer_to_b"`},
		"no model":      {handoffs: to(&pawl.Agent{Name: "B", Model: m, Handoffs: to(&pawl.Agent{Name: "C"})}), want: `pawl: Agent.Model: agent "C" has no model`},
		"bad tool":      {handoffs: to(&pawl.Agent{Name: "B", Model: m, Tools: []pawl.Tool{{}}}), want: `pawl: Agent.Tools: tool "": has no body; make it with NewTool`},
		"bad prompt":    {handoffs: to(&pawl.Agent{Name: "B", Model: m, Prompt: pawl.StaticPrompt(pawl.PromptRef{ID: "p"})}), want: `pawl: Agent.Prompt: the server of model "" keeps no prompts`},
		"bad output":    {handoffs: to(&pawl.Agent{Name: "B", Model: m, Output: pawl.OutputOf[chan int]()}), want: "pawl: Agent.Output: "},
		"two of a key": {handoffs: []pawl.Handoff{pawl.HandoffTo(&pawl.Agent{Name: "B", Key: "k", Model: m}), pawl.HandoffTo(&pawl.Agent{Name: "C", Key: "k", Model: m})},
			want: `pawl: Agent.Key: "k" is the key of two agents, "B" (support/transfer_to_b) and "C" (support/transfer_to_c)`},
		"the run's key": {handoffs: to(&pawl.Agent{Name: "B", Key: "support", Model: m}),
			want: `pawl: Agent.Key: "support" is the key of two agents, "support" (support) and "B" (support/transfer_to_b)`},
		"the server's conversation": {handoffs: []pawl.Handoff{fine}, options: pawl.RunOptions{AutoPreviousResponseID: true},
			want: `pawl: RunOptions: the server of model "", of agent "B", keeps no conversation`},
		"a filter there": {handoffs: []pawl.Handoff{filtered}, options: pawl.RunOptions{Model: &script{info: serverState}, AutoPreviousResponseID: true},
			want: `pawl: HandoffFunc.Filter: handoff "transfer_to_b": the server keeps the conversation, so that a handoff cannot change what the next agent reads`},
		"a filter for all": {handoffs: []pawl.Handoff{fine}, options: pawl.RunOptions{Model: &script{info: serverState}, ConversationID: "conv", HandoffFilter: pawl.RemoveTools()},
			want: `pawl: RunOptions.HandoffFilter: the server keeps the conversation, so that a handoff cannot change what the next agent reads`},
	} {
		t.Run(name, func(t *testing.T) {
			agent := agentWith(&script{info: serverState}, tt.tools...)
			agent.Handoffs = tt.handoffs
			store := journal.NewMemory()
			_, err := (&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("hi"), &tt.options)
			if _, ok := errors.AsType[*pawl.ConfigError](err); !ok || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("error %v\n want %s", err, tt.want)
			}
			if runs, err := store.List(t.Context(), journal.Query{}); len(runs) != 0 || err != nil {
				t.Errorf("runs %v, %v", runs, err)
			}
		})
	}
	r := pawl.Runner{Agents: []*pawl.Agent{{Name: "A"}, {Name: "B", Key: "A"}}}
	if _, err := r.Resume(t.Context(), nil, pawl.RunID("r"), nil); err == nil || err.Error() != `pawl: Runner.Agents: "A" and "B" are not the same agent, and both have the key "A"` {
		t.Errorf("error %v", err)
	}
}

// What the model reads of a handoff.
func TestHandoffDescriptions(t *testing.T) {
	m := newScript(says("hi"))
	var offered []string
	agent := agentWith(m)
	agent.Model = &telling{m, func(req *model.Request) {
		for _, tool := range req.Static.Tools {
			offered = append(offered, fmt.Sprintf("%s: %s %s strict=%v", tool.Name, tool.Description, tool.Parameters, tool.Strict))
		}
	}}
	agent.Handoffs = []pawl.Handoff{
		pawl.HandoffTo(&pawl.Agent{Name: "Billing & Co.", Model: m, HandoffDescription: "Knows prices."}),
		pawl.HandoffTo(&pawl.Agent{Name: "Law", Model: m}),
		pawl.NewHandoff(pawl.HandoffFunc[charge]{Agent: agent, Name: "again", Description: "Start over.",
			OnHandoff: func(context.Context, *pawl.HandoffCall, charge) error { return nil }}),
	}
	must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("hi"), nil))
	if diff := cmp.Diff([]string{
		`transfer_to_billing___co_: Hand the conversation over to the agent Billing & Co., who handles the request. Knows prices. {"type":"object","properties":{},"required":[],"additionalProperties":false} strict=true`,
		`transfer_to_law: Hand the conversation over to the agent Law, who handles the request. {"type":"object","properties":{},"required":[],"additionalProperties":false} strict=true`,
		`again: Start over. {"type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"],"additionalProperties":false} strict=true`,
	}, offered); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
	if h := agent.Handoffs[1]; h.Name() != "transfer_to_law" || h.Agent().Name != "Law" || h.Err() != nil {
		t.Errorf("%s %v", h.Name(), h.Err())
	}
	if h := (pawl.Handoff{}); h.Agent() != nil || h.Err() == nil {
		t.Error("a zero handoff leads somewhere")
	}
}

var serverState = model.Info{ServerState: true}

// telling is a model that shows its requests.
type telling struct {
	model.Model
	tell func(*model.Request)
}

func (m *telling) Call(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	m.tell(req)
	return m.Model.Call(ctx, req, emit)
}

// Agents hand over to each other and to themselves until the turns are used up. What a tool
// returned beside a handoff does not end the run [M18.5].
func TestHandoffsInACircle(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		d := newDesk([]step{calling(ho("h1", "billing")), calling(fc("c1", "pay", `{"cents":5}`), ho("h3", "triage")), calling(ho("h4", "billing"))},
			[]step{calling(ho("h2", "triage"))})
		d.billing.Handoffs = []pawl.Handoff{pawl.HandoffTo(d.triage)}
		d.triage.Handoffs = append(d.triage.Handoffs, pawl.HandoffTo(d.triage))
		d.triage.Tools, d.triage.ToolUse = []pawl.Tool{charging("pay", &d.e, nil)}, pawl.StopOnFirstTool()
		_, err := m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{MaxTurns: 4})
		if _, ok := errors.AsType[*pawl.MaxTurnsError](err); !ok {
			t.Fatalf("error %v", err)
		}
		d.answered.steps = append(d.answered.steps, says("at last"))
		res := must(t)(m.resume(new(pawl.Runner), t.Context(), d.triage, viaJSON(t, stateOf(t, err)), &pawl.RunOptions{MaxTurns: 5}))
		if res.FinalOutput != "at last" || res.Turns != 5 || res.LastAgent != d.billing {
			t.Errorf("%q after %d turns by %s", res.FinalOutput, res.Turns, res.LastAgent.Name)
		}
		if diff := cmp.Diff([]string{`h1: {"assistant":"Billing"}`, `h2: {"assistant":"Triage"}`, "c1: receipt 5", `h3: {"assistant":"Triage"}`, `h4: {"assistant":"Billing"}`}, outputs(res.NewItems())); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
		manifests := 0
		for _, f := range facts(t, storeOfState(t, res.State()), res.Run) {
			if p, ok := f.Body.(*journal.Prepared); ok && p.Manifest != nil {
				manifests++
			}
		}
		if manifests != 3 { // one of each agent, and again in the second process
			t.Errorf("%d manifests", manifests)
		}
	})
}

// storeOfState puts the ledger of a state into a store.
func storeOfState(t *testing.T, s *pawl.RunState) journal.Driver {
	t.Helper()
	doc, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	m := journal.NewMemory()
	importDocument(t, m, doc)
	return m
}

// A run that is cancelled while something else of the response waits is not handed over [M18.10].
func TestCancelBeforeAHandoff(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		d := newDesk([]step{calling(fc("c1", "pay", `{"cents":5}`), ho("h1", "billing"))}, nil, charging("pay", new(effects), asking))
		d.noting(nil)
		var r pawl.Runner
		must(t)(m.run(&r, t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"}))
		if err := r.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
			t.Fatal(err)
		}
		_, err := m.resume(&r, t.Context(), d.triage, pawl.RunID("r"), nil)
		if !errors.Is(err, pawl.ErrCancelled) {
			t.Fatalf("error %v", err)
		}
		d.e.want(t)
		res := stateOf(t, err).Result()
		if diff := cmp.Diff([]string{"c1: The tool was not executed: the run was cancelled.", "h1: The tool was not executed: the run was cancelled."}, outputs(res.NewItems())); diff != "" || res.LastAgent.Key != "Triage" {
			t.Errorf("agent %q, outputs (-want +got):\n%s", res.LastAgent.Key, diff)
		}
	})
}

// Where the server has the conversation, every output is sent, that of the ignored handoff
// too, and the target goes on in the same conversation.
func TestHandoffOnAServersConversation(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		d := newDesk([]step{response("resp_1", ho("h1", "billing"), ho("h2", "billing"), fc("c1", "pay", `{"cents":5}`))},
			[]step{response("resp_2", item.MessageItem("", "ok"))})
		d.asked.info, d.answered.info = serverState, serverState
		d.noting(nil)
		d.triage.Tools = []pawl.Tool{charging("pay", &d.e, nil)}
		must(t)(m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{AutoPreviousResponseID: true}))
		d.e.want(t, "pay 5", "Triage to Billing by h1")
		got := d.answered.calls()[0]
		if diff := cmp.Diff([]string{`h1: {"assistant":"Billing"}`, "h2: Ignored: another call of the same response hands the conversation over.", "c1: receipt 5"}, outputs(got.Input)); diff != "" || got.Previous != "resp_1" || len(got.Input) != 3 {
			t.Errorf("behind %q (-want +got):\n%s", got.Previous, diff)
		}
	})
}

// An agent that is run as a tool hands over within its own run: its caller keeps the
// conversation. Over a document the approval that the target asks for finds it.
func TestHandoffInANestedRun(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		desks := func(manager []step, d *desk) *pawl.Agent {
			d.billing.Tools = []pawl.Tool{charging("pay", &e, asking)}
			return agentWith(newScript(manager...), pawl.AgentTool(d.triage, nil))
		}
		first := newDesk([]step{calling(ho("h1", "billing"))}, []step{calling(fc("c2", "pay", `{"cents":5}`))})
		res := must(t)(m.run(new(pawl.Runner), t.Context(), desks([]step{calling(fc("c1", "triage", `{"input":"pay it"}`))}, first), pawl.UserText("hi"), nil))
		if len(res.Interruptions) != 1 || cmp.Diff([]string{"support", "Billing"}, res.Interruptions[0].AgentPath) != "" || res.LastAgent.Name != "support" {
			t.Fatalf("%+v", res.Interruptions)
		}
		s := viaJSON(t, res.State())
		if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		second := newDesk(nil, []step{says("paid")})
		manager := desks([]step{says("all done")}, second)
		res = must(t)(m.resume(new(pawl.Runner), t.Context(), manager, s, nil))
		e.want(t, "pay 5")
		if res.FinalOutput != "all done" || res.LastAgent != manager {
			t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
		}
		if diff := cmp.Diff([]string{"c1: paid"}, outputs(res.NewItems())); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{`h1: {"assistant":"Billing"}`, "c2: receipt 5"}, outputs(second.answered.calls()[0].Input)); diff != "" {
			t.Errorf("read by billing (-want +got):\n%s", diff)
		}
	})
}

// A message beside a handoff is no final output: the handoff wins, behind the other calls.
func TestHandoffBesideAMessage(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		d := newDesk([]step{items(item.MessageItem("", "one moment"), ho("h1", "billing"), fc("c1", "pay", `{"cents":5}`))}, []step{says("ok")})
		d.noting(nil)
		d.triage.Tools = []pawl.Tool{charging("pay", &d.e, nil)}
		d.triage.Instructions = pawl.Text(pawl.HandoffPrefix + "Route.")
		res := must(t)(m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), nil))
		d.e.want(t, "pay 5", "Triage to Billing by h1")
		if res.FinalOutput != "ok" || res.LastAgent != d.billing {
			t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
		}
		if got := d.asked.calls()[0].Instructions; !strings.HasPrefix(got, "You are one of several agents") || !strings.HasSuffix(got, "\n\nRoute.") {
			t.Errorf("instructions %q", got)
		}
	})
}

// A call of a handoff that the agent does not have is one of an unknown tool.
func TestUnknownHandoff(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		d := newDesk([]step{calling(ho("h1", "law")), says("I cannot.")}, nil)
		_, err := m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
		want := `pawl: run r, reading response 1: the model called the tool "transfer_to_law" (call h1), which the agent does not have; it has transfer_to_billing`
		if err == nil || err.Error() != want {
			t.Fatalf("error %v", err)
		}
		res := must(t)(m.resume(new(pawl.Runner), t.Context(), d.triage, viaJSON(t, stateOf(t, err)), &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
		if res.FinalOutput != "I cannot." || res.LastAgent != d.triage {
			t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
		}
		if diff := cmp.Diff([]string{`h1: Tool "transfer_to_law" not found. Available tools: transfer_to_billing.`}, outputs(res.NewItems())); diff != "" {
			t.Errorf("outputs (-want +got):\n%s", diff)
		}
	})
}
