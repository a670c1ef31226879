package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// A call that was approved runs in the agent that made it, also if the first agent has a tool of
// that name (https://github.com/microsoft/agent-framework/issues/8247), over documents and
// stores, with the first agent given or found.
func TestApprovedCallRunsInItsAgent(t *testing.T) {
	for name, tt := range map[string]struct{ document, given bool }{
		"document": {document: true, given: true}, "document, found": {document: true}, "store": {given: true}, "store, found": {},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				d := newDesk([]step{calling(ho("h1", "billing"))}, []step{calling(fc("c1", "pay", `{"cents":5}`)), says("paid")})
				d.triage.Tools = []pawl.Tool{charging("pay", &e, func(f *pawl.Func[charge, string]) {
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) { e.add("triage"); return "", nil }
				})}
				d.billing.Tools = []pawl.Tool{charging("pay", &e, func(f *pawl.Func[charge, string]) {
					f.Approve = pawl.AlwaysAsk
					f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
						e.add("%s pays %d", c.Agent.Name, in.Cents)
						return "receipt", nil
					}
				})}
				store := journal.NewMemory()
				agent := d.triage
				if !tt.given {
					agent = nil
				}
				res := must(t)(m.run(&pawl.Runner{Store: store}, t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"}))
				in := res.Interruptions[0]
				if in.Agent != "Billing" || res.LastAgent != d.billing {
					t.Errorf("interruption of %s, last agent %s", in.Agent, res.LastAgent.Name)
				}
				r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{d.triage}}
				bad := pawl.Edit(in.ID, "ann", `{"cents":"a lot"}`)
				if err := r.Decide(t.Context(), "r", bad); !errors.Is(err, pawl.ErrDecision) {
					t.Errorf("an edit that does not fit: %v", err)
				}
				var from pawl.Resumable = pawl.RunID("r")
				if tt.document {
					r.Store = nil
					s := viaJSON(t, res.State())
					if err := s.Decide(pawl.Edit(in.ID, "ann", `{"cents":6}`)); err != nil {
						t.Fatal(err)
					}
					from = s
				} else if err := r.Decide(t.Context(), "r", pawl.Edit(in.ID, "ann", `{"cents":6}`)); err != nil {
					t.Fatal(err)
				}
				res = must(t)(m.resume(r, t.Context(), agent, from, nil))
				e.want(t, "Billing pays 6")
				if res.FinalOutput != "paid" || res.LastAgent != d.billing {
					t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
				}
			})
		})
	}
}

// helpers are a chief with two helpers of one name, of which the second can hand back.
func helpers(e *effects, first, second, chief []step, change func(x, y *pawl.Agent)) *pawl.Agent {
	x := &pawl.Agent{Name: "helper", Model: newScript(first...), Tools: []pawl.Tool{charging("x", e, asking)}}
	y := &pawl.Agent{Name: "helper", Model: newScript(second...), Tools: []pawl.Tool{charging("y", e, asking)}}
	if change != nil {
		change(x, y)
	}
	a := &pawl.Agent{Name: "chief", Model: newScript(chief...)}
	a.Handoffs = []pawl.Handoff{
		pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: x, Name: "to_x"}),
		pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: y, Name: "to_y"}),
	}
	y.Handoffs = []pawl.Handoff{pawl.HandoffTo(a)}
	return a
}

// Agents of one name are told apart by their keys, or by the way that leads to them [S15.1]
// (https://github.com/openai/openai-agents-js/pull/1243).
func TestAgentsOfOneName(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(x, y *pawl.Agent)
		key    string
	}{
		"by route": {nil, "chief/to_y"},
		"by key":   {func(x, y *pawl.Agent) { x.Key, y.Key = "kx", "ky" }, "ky"},
		"one key":  {func(x, y *pawl.Agent) { x.Key = "kx" }, "helper"},
		"its name": {func(x, y *pawl.Agent) { x.Key = "helper" }, "chief/to_y"},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				res := must(t)(m.run(new(pawl.Runner), t.Context(), helpers(&e, nil, []step{calling(fc("c1", "y", `{"cents":5}`))}, []step{calling(fc("h1", "to_y", `{}`))}, tt.change), pawl.UserText("hi"), nil))
				if got := res.Interruptions[0].Agent; got != tt.key {
					t.Fatalf("agent %q", got)
				}
				s := viaJSON(t, res.State())
				if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
					t.Fatal(err)
				}
				again := helpers(&e, nil, []step{calling(fc("h2", "transfer_to_chief", `{}`))}, []step{says("back")}, tt.change)
				res = must(t)(m.resume(new(pawl.Runner), t.Context(), again, s, nil))
				e.want(t, "y 5")
				if res.FinalOutput != "back" || res.LastAgent != again {
					t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
				}
			})
		})
	}
}

// pausedAtBilling is the state of a run whose billing agent waits for an approval.
func pausedAtBilling(t *testing.T) *pawl.RunState {
	t.Helper()
	d := newDesk([]step{calling(ho("h1", "billing"))}, []step{calling(fc("c1", "pay", `{"cents":5}`))})
	d.billing.Tools = []pawl.Tool{charging("pay", &d.e, asking)}
	res := must(t)(new(pawl.Runner).Run(t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"}))
	s := viaJSON(t, res.State())
	if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	return s
}

// An agent that nothing leads to any more is found among Runner.Agents, or the run waits for
// it [S15.2].
func TestAgentThatNothingLeadsTo(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		s := pausedAtBilling(t)
		d := newDesk(nil, []step{says("paid")})
		d.billing.Tools = []pawl.Tool{charging("pay", &d.e, nil)}
		d.triage.Handoffs = nil
		r := &pawl.Runner{Agents: []*pawl.Agent{d.triage}}
		_, err := m.resume(r, t.Context(), nil, s, nil)
		if !errors.Is(err, pawl.ErrUnknownAgent) || !strings.Contains(err.Error(), `"Billing"`) {
			t.Fatalf("error %v", err)
		}
		if _, err := m.resume(r, t.Context(), d.billing, s, nil); !errors.Is(err, pawl.ErrWrongAgent) {
			t.Fatalf("error %v", err)
		}
		d.e.want(t)
		r.Agents = append(r.Agents, d.billing)
		res := must(t)(m.resume(r, t.Context(), nil, s, nil))
		d.e.want(t, "pay 5")
		if res.FinalOutput != "paid" || res.LastAgent != d.billing {
			t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
		}
	})
}

// A run whose agents are gone can still be cancelled.
func TestCancelWithoutTheAgent(t *testing.T) {
	s := pausedAtBilling(t)
	d := newDesk(nil, nil)
	d.triage.Handoffs = nil
	store := storeOfState(t, s)
	r := &pawl.Runner{Store: store, Agents: []*pawl.Agent{d.triage}}
	if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
		t.Fatal(err)
	}
	res, err := r.Resume(t.Context(), nil, pawl.RunID("r"), nil)
	if !errors.Is(err, pawl.ErrCancelled) || res.Status != pawl.StatusCancelled || res.LastAgent.Key != "Billing" {
		t.Errorf("%+v, %v", res, err)
	}
}

// A handoff that was planned takes place as it was planned, or not at all.
func TestHandoffChangesMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(d *desk)
		want   string
	}{
		"gone": {func(d *desk) { d.triage.Handoffs = nil }, `pawl: the call's tool has changed: "transfer_to_billing" is gone (call h1); resume the run with the tool as it was`},
		"another target": {func(d *desk) {
			d.triage.Handoffs = []pawl.Handoff{pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: &pawl.Agent{Name: "Law", Model: d.answered}, Name: "transfer_to_billing"})}
		}, `pawl: the call's tool has changed: "transfer_to_billing" hands over to another agent now (call h1); resume the run with the tool as it was`},
		"a tool now": {func(d *desk) {
			d.triage.Handoffs, d.triage.Tools = nil, append(d.triage.Tools, charging("transfer_to_billing", &d.e, nil))
		},
			`pawl: the call's tool has changed: "transfer_to_billing" takes other arguments now (call h1); resume the run with the tool as it was`},
	} {
		t.Run(name, func(t *testing.T) {
			make := func(changed bool) *desk {
				d := newDesk([]step{calling(fc("c1", "pay", `{"cents":5}`), ho("h1", "billing"))}, []step{says("ok")})
				d.triage.Tools = []pawl.Tool{charging("pay", &d.e, asking)}
				if changed {
					tt.change(d)
				}
				return d
			}
			res := must(t)(new(pawl.Runner).Run(t.Context(), make(false).triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"}))
			s := viaJSON(t, res.State())
			if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			d := make(true)
			_, err := new(pawl.Runner).Resume(t.Context(), d.triage, s, &pawl.RunOptions{ToolNotFound: pawl.TellModel})
			if !errors.Is(err, pawl.ErrToolChanged) || err.Error() != "pawl: run r: "+strings.TrimPrefix(tt.want, "pawl: ") {
				t.Fatalf("error %v", err)
			}
			d = make(false)
			res = must(t)(new(pawl.Runner).Resume(t.Context(), d.triage, viaJSON(t, stateOf(t, err)), nil))
			if res.FinalOutput != "ok" || res.LastAgent != d.billing {
				t.Errorf("%q by %s", res.FinalOutput, res.LastAgent.Name)
			}
		})
	}
}

// Each agent has its own tool choice, output type and instructions, and the final output is of
// the last one's type.
func TestEachAgentIsItself(t *testing.T) {
	type price struct {
		Cents int `json:"cents"`
	}
	eachMode(t, func(t *testing.T, m mode) {
		d := newDesk([]step{calling(ho("h1", "billing"))}, []step{calling(fc("c1", "look", `{"cents":1}`)), says(`{"cents":7}`)})
		d.billing.Output = pawl.OutputOf[price]()
		d.billing.Tools = []pawl.Tool{charging("look", &d.e, nil)}
		d.billing.Settings = &pawl.ModelSettings{ToolChoice: "required"}
		var seen []string
		d.billing.Instructions = func(_ context.Context, rc *pawl.RunContext) (string, error) {
			seen = append(seen, rc.Agent.Name)
			return "Bill.", nil
		}
		res := must(t)(m.run(new(pawl.Runner), t.Context(), d.triage, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"}))
		if v, err := pawl.OutputAs[price](res); err != nil || v.Cents != 7 {
			t.Errorf("%v, %v", v, err)
		}
		var choices []string
		for _, a := range d.answered.calls() {
			choices = append(choices, a.Settings.ToolChoice)
		}
		if diff := cmp.Diff([]string{"required", ""}, choices); diff != "" {
			t.Errorf("choices (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"Billing", "Billing"}, seen); diff != "" {
			t.Errorf("agents (-want +got):\n%s", diff)
		}
		again := must(t)(m.resume(new(pawl.Runner), t.Context(), d.triage, viaJSON(t, res.State()), nil))
		if v, err := pawl.OutputAs[price](again); err != nil || v.Cents != 7 || again.LastAgent != d.billing {
			t.Errorf("read again: %v, %v", v, err)
		}
		if ids := item.UserText("hi"); again.ToInputList()[0] != ids {
			t.Errorf("replay begins with %s", again.ToInputList()[0])
		}
	})
}
