package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

// withBilling is a manager that has a billing agent as a tool, which has a tool to charge.
func withBilling(manager, billing model.Model, o *pawl.AgentToolOptions, tools ...pawl.Tool) *pawl.Agent {
	b := &pawl.Agent{Name: "Billing desk", Instructions: pawl.Text("You charge."), Model: billing, Tools: tools}
	return &pawl.Agent{Name: "manager", Model: manager, Tools: []pawl.Tool{pawl.AgentTool(b, o)}}
}

// ask is a call of the billing agent.
func ask(callID, text string) pawl.Item {
	return fc(callID, "billing_desk", fmt.Sprintf(`{"input":%q}`, text))
}

// texts returns what a list says, an item a line.
func texts(list []pawl.Item) string {
	var out []string
	for _, it := range list {
		switch m, err := it.Message(); {
		case err == nil:
			out = append(out, string(it.Head().Role)+": "+m.Text())
		case it.NeedsOutput():
			out = append(out, "call "+it.Head().CallID)
		default:
			out = append(out, outputs([]pawl.Item{it})...)
		}
	}
	return strings.Join(out, "\n")
}

func TestAgentTool(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		manager := newScript(calling(ask("a", "charge 5")), says("all done"))
		billing := newScript(calling(fc("a", "charge", `{"cents":5}`)), says("charged"))
		agent := withBilling(manager, billing, nil, charging("charge", &e, nil))
		r := &pawl.Runner{Store: journal.NewMemory()}
		s := session.NewMemory("s")
		res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("hello"), &pawl.RunOptions{ID: "r", Session: s}))

		if res.FinalOutput != "all done" || res.Turns != 2 || res.Usage.Requests != 4 || res.Usage.Total != 20 || res.Invocation != nil {
			t.Errorf("%q after %d turns, %+v, %v", res.FinalOutput, res.Turns, res.Usage, res.Invocation)
		}
		e.want(t, "charge 5")
		if got := texts(res.ToInputList()); got != "user: hello\ncall a\na: charged\nassistant: all done" {
			t.Errorf("the manager's history:\n%s", got)
		}
		if got := texts(billing.calls()[1].Input); got != "user: charge 5\ncall a\na: receipt 5" || billing.calls()[0].Instructions != "You charge." {
			t.Errorf("the billing agent was asked:\n%s", got)
		}
		sameViews(t, res, manager, s)
		var agents []string
		for _, u := range res.Requests() {
			agents = append(agents, fmt.Sprintf("%s %d", u.Agent, u.Turn))
		}
		if diff := cmp.Diff([]string{"manager 1", "Billing desk 1", "Billing desk 2", "manager 2"}, agents); diff != "" {
			t.Error(diff)
		}
		again := must(t)(r.Resume(t.Context(), agent, replays(t, r, "r"), nil))
		if again.FinalOutput != "all done" || len(billing.calls()) != 2 {
			t.Errorf("%q, %d calls", again.FinalOutput, len(billing.calls()))
		}
	})
}

// TestNestedApprovals has two calls wait in one nested run and one in a run nested in it; they
// are decided one after the other, each by another driver.
func TestNestedApprovals(t *testing.T) {
	for name, open := range stores {
		eachMode(t, func(t *testing.T, mode mode) {
			t.Run(name, func(t *testing.T) {
				store := open(t)
				var e effects
				manager := newScript(calling(ask("m", "all"), fc("n", "note", `{"cents":1}`)), says("done"))
				billing := newScript(calling(fc("x", "charge", `{"cents":5}`), fc("y", "bank", `{"input":"pay"}`)), says("billed"))
				bank := newScript(calling(fc("x", "charge", `{"cents":7}`)), says("paid"))
				banker := &pawl.Agent{Name: "bank", Model: bank, Tools: []pawl.Tool{charging("charge", &e, asking)}}
				agent := withBilling(manager, billing, nil, charging("charge", &e, asking), pawl.AgentTool(banker, nil))
				agent.Tools = append(agent.Tools, charging("note", &e, nil))
				runner := func() *pawl.Runner { return &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}} }

				res := must(t)(mode.run(runner(), t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
				e.want(t, "note 1")
				type asks struct {
					ID, Agent, Tool, Arguments string
					Path                       []string
				}
				var got []asks
				for _, in := range viaJSON(t, res.State()).Interruptions() {
					got = append(got, asks{in.ID, in.Agent, in.Tool, in.Arguments, in.AgentPath})
				}
				want := []asks{
					{"1.0/1.0#0", "Billing desk", "charge", `{"cents":5}`, []string{"manager", "Billing desk"}},
					{"1.0/1.1/1.0#0", "bank", "charge", `{"cents":7}`, []string{"manager", "Billing desk", "bank"}},
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatal(diff)
				}
				if !res.Waiting() {
					t.Fatalf("it is %s", res.Status)
				}

				state := viaJSON(t, res.State())
				always := pawl.Approve("1.0/1.0#0", "ann")
				always.Always = true
				if err := state.Decide(always); err != nil {
					t.Fatal(err)
				}
				res = must(t)(mode.resume(runner(), t.Context(), agent, viaJSON(t, state), nil))
				e.want(t, "note 1", "charge 5") // the approval of one frame is none of another's
				if len(res.Interruptions) != 1 || res.Interruptions[0].ID != "1.0/1.1/1.0#0" {
					t.Fatalf("%+v", res.Interruptions)
				}
				if err := runner().Decide(t.Context(), "r", pawl.Edit("1.0/1.1/1.0#0", "bob", `{"cents":"x"}`)); !errors.Is(err, pawl.ErrDecision) {
					t.Errorf("edited arguments that do not fit: %v", err)
				}
				if err := runner().Decide(t.Context(), "r", pawl.Reject("1.0/1.1/1.0#0", "bob", "too much")); err != nil {
					t.Fatal(err)
				}
				res = must(t)(mode.resume(runner(), t.Context(), nil, pawl.RunID("r"), nil))
				e.want(t, "note 1", "charge 5")
				if res.FinalOutput != "done" || texts(bank.calls()[1].Input) != "user: pay\ncall x\nx: too much" {
					t.Errorf("%q, the bank read:\n%s", res.FinalOutput, texts(bank.calls()[1].Input))
				}
				if got := texts(billing.calls()[1].Input); got != "user: all\ncall x\ncall y\nx: receipt 5\ny: paid" {
					t.Errorf("the billing agent read:\n%s", got)
				}
				if len(manager.calls()) != 2 || len(billing.calls()) != 2 || len(bank.calls()) != 2 {
					t.Errorf("asked %d, %d, %d times", len(manager.calls()), len(billing.calls()), len(bank.calls()))
				}
			})
		})
	}
}

func TestAgentToolApproved(t *testing.T) {
	manager := newScript(calling(ask("a", "1"), ask("b", "2")), says("done"))
	billing := newScript(says("billed"))
	agent := withBilling(manager, billing, &pawl.AgentToolOptions{Approve: pawl.AlwaysAsk[pawl.AgentInput]})
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), nil))
	if len(res.Interruptions) != 2 || res.Interruptions[0].AgentPath != nil || res.Interruptions[0].Tool != "billing_desk" || len(billing.calls()) != 0 {
		t.Fatalf("%+v", res.Interruptions)
	}
	s := viaJSON(t, res.State())
	if err := errors.Join(s.Decide(pawl.Edit("1.0#0", "ann", `{"input":"3"}`)), s.Reject(res.Interruptions[1], "ann", "not now")); err != nil {
		t.Fatal(err)
	}
	res = must(t)(r.Resume(t.Context(), agent, s, nil))
	want := []string{"a: The reviewer changed the arguments to {\"input\":\"3\"}.\nbilled", "b: not now"}
	if diff := cmp.Diff(want, outputs(res.NewItems())); diff != "" {
		t.Error(diff)
	}
	if got := texts(billing.calls()[0].Input); got != "user: 3" {
		t.Errorf("the agent was asked %q", got)
	}
}

func TestAgentToolFails(t *testing.T) {
	broken := errors.New("pawl: the wire is cut")
	again := calling(fc("x", "charge", `{"cents":1}`))
	for name, tt := range map[string]struct {
		o       pawl.AgentToolOptions
		billing []step
		want    string
		fails   error
	}{
		"model": {billing: []step{failing(broken)}, want: "The agent failed: the wire is cut"},
		"turns": {o: pawl.AgentToolOptions{MaxTurns: 2}, billing: []step{again, again}, want: "The agent failed: it had no final output after 2 turns."},
		"text": {o: pawl.AgentToolOptions{OnError: func(_ context.Context, c *pawl.Call, err error) string {
			return c.Tool + ": " + fmt.Sprint(errors.Is(err, broken))
		}}, billing: []step{failing(broken)}, want: "billing_desk: true"},
		"output":   {o: pawl.AgentToolOptions{Output: func(context.Context, *pawl.Call, *pawl.Result) (string, error) { return "", broken }}, billing: []step{says("hm")}, want: "The agent failed: the wire is cut"},
		"fail run": {o: pawl.AgentToolOptions{FailRun: true}, billing: []step{failing(broken), says("better")}, want: "better", fails: broken},
	} {
		eachMode(t, func(t *testing.T, mode mode) {
			t.Run(name, func(t *testing.T) {
				var e effects
				manager := newScript(calling(ask("a", "go"), fc("n", "note", `{"cents":1}`)), says("done"))
				agent := withBilling(manager, newScript(tt.billing...), &tt.o, charging("charge", &e, nil))
				agent.Tools = append(agent.Tools, charging("note", &e, nil))
				r := &pawl.Runner{Store: journal.NewMemory()}
				res, err := mode.run(r, t.Context(), agent, pawl.UserText("go"), nil)
				if tt.fails != nil {
					if re := stateOf(t, err); !errors.Is(err, tt.fails) || re.Status() != pawl.StatusFailed {
						t.Fatalf("%v, %s", err, re.Status())
					}
					res, err = mode.resume(r, t.Context(), agent, viaJSON(t, stateOf(t, err)), nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"a: " + tt.want, "n: receipt 1"}, outputs(res.NewItems())); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
