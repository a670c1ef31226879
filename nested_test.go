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

// nameOf names an event, without what is the same for all of a kind.
func nameOf(ev pawl.Event) string {
	switch ev := ev.(type) {
	case *pawl.Nested:
		return strings.Join(ev.Route, ">") + " " + ev.Call + " " + nameOf(ev.Event)
	case *pawl.AgentUpdated:
		return "agent " + ev.Agent.Name
	case *pawl.ItemCreated:
		return string(ev.Name)
	case *pawl.ToolStarted:
		return fmt.Sprintf("starts %s %s %d", ev.Tool, ev.CallID, ev.Attempt)
	case *pawl.Delta:
		return "delta " + ev.Text
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", ev), "*pawl.")
}

// S16.5
func TestNestedEvents(t *testing.T) {
	var e effects
	manager := newScript(calling(ask("a", "charge")), says("done"))
	billing := newScript(calling(fc("x", "charge", `{"cents":5}`)), says("billed"))
	agent := withBilling(manager, billing, nil, charging("charge", &e, nil))
	r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
	var got []string
	for ev, err := range r.Stream(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, nameOf(ev))
	}
	want := []string{
		"RunStarted", "agent manager", "tool_called",
		"starts billing_desk a 1",
		"manager>Billing desk 1.0 agent Billing desk",
		"manager>Billing desk 1.0 tool_called",
		"manager>Billing desk 1.0 starts charge x 1",
		"manager>Billing desk 1.0 tool_output",
		"manager>Billing desk 1.0 delta billed",
		"manager>Billing desk 1.0 message_output_created",
		"tool_output", "delta done", "message_output_created", "Done",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var watched []string
	for ev, err := range r.Watch(t.Context(), "r", pawl.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		watched = append(watched, strings.Replace(nameOf(ev.Event), "agent Billing desk", "agent ", 1))
	}
	var recorded []string
	for _, ev := range want {
		if !strings.Contains(ev, "delta") {
			recorded = append(recorded, strings.Replace(ev, "1.0 agent Billing desk", "1.0 agent ", 1))
		}
	}
	if diff := cmp.Diff(recorded, watched); diff != "" {
		t.Error(diff)
	}
}

// TestNestedStopped leaves a run behind each of its events and drives it on, from the store or
// from a document: nothing happens twice.
func TestNestedStopped(t *testing.T) {
	for _, document := range []bool{false, true} {
		for at := 1; ; at++ {
			var e effects
			manager := newScript(calling(ask("a", "charge")), says("done"))
			billing := newScript(calling(fc("x", "charge", `{"cents":5}`)), says("billed"))
			agent := withBilling(byLength(manager), byLength(billing), nil, charging("charge", &e, nil))
			r := &pawl.Runner{Store: journal.NewMemory()}
			n := 0
			for _, err := range r.Stream(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n == at {
					break
				}
			}
			s, err := r.State(t.Context(), "r")
			if errors.Is(err, pawl.ErrUnknownRun) {
				continue // nothing was recorded yet
			}
			if err != nil {
				t.Fatal(err)
			}
			if document {
				s, r = viaJSON(t, s), &pawl.Runner{}
			}
			res := must(t)(r.Resume(t.Context(), agent, s, nil))
			if got := texts(res.ToInputList()); got != "user: go\ncall a\na: billed\nassistant: done" {
				t.Errorf("stopped behind event %d:\n%s", at, got)
			}
			e.want(t, "charge 5")
			if n < at {
				break
			}
		}
	}
}

// longer is a model that answers by how long the conversation is, as often as it is asked.
type longer struct{ *script }

func byLength(s *script) *longer { return &longer{s} }

func (l *longer) Call(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	n := 0
	for _, it := range req.Input.Items() {
		if item.IsOutput(it.Type()) {
			n++
		}
	}
	return l.steps[n](ctx, req, emit)
}

func TestNestedInDoubt(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			lost := func(f *pawl.Func[charge, string]) {
				f.OnUnknown = pawl.UnknownWait
				f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", pawl.ErrOutcomeUnknown }
			}
			var e effects
			manager := newScript(calling(ask("a", "charge")), says("done"))
			billing := newScript(calling(fc("x", "charge", `{"cents":5}`)), says("billed"))
			agent := withBilling(manager, billing, nil, charging("charge", &e, lost))
			r := &pawl.Runner{Store: store}
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
			if len(res.Interruptions) != 1 || res.Interruptions[0].Kind != pawl.InDoubt {
				t.Fatalf("%+v", res.Interruptions)
			}
			for u, err := range r.Unsettled(t.Context(), nil) {
				if err != nil || u.Agent != "Billing desk" || u.Call != "1.0/1.0" || u.Arguments != `{"cents":5}` || u.Interruption != res.Interruptions[0].ID || u.Key != res.Interruptions[0].Key {
					t.Errorf("%+v, %v", u, err)
				}
			}
			if _, err := res.State().Fork("other"); !errors.Is(err, pawl.ErrFork) {
				t.Errorf("forked: %v", err)
			}
			if err := r.Decide(t.Context(), "r", pawl.Settle(res.Interruptions[0].ID, "ann", "it went through")); err != nil {
				t.Fatal(err)
			}
			res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
			if got := outputs(billing.calls()[1].Input); res.FinalOutput != "done" || got[0] != "x: it went through" {
				t.Errorf("%q, %q", res.FinalOutput, got)
			}
		})
	}
}

func TestNestedCancelled(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		manager := newScript(calling(ask("a", "charge")))
		billing := newScript(calling(fc("x", "charge", `{"cents":5}`)))
		agent := withBilling(manager, billing, nil, charging("charge", &e, asking))
		r := &pawl.Runner{Store: journal.NewMemory()}
		s := session.NewMemory("s")
		must(t)(mode.run(r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", Session: s}))
		if err := r.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
			t.Fatal(err)
		}
		// Nobody knows the agents here, and none is needed.
		closer := &pawl.Runner{Store: r.Store}
		if _, err := mode.resume(closer, t.Context(), nil, pawl.RunID("r"), &pawl.RunOptions{Session: s}); !errors.Is(err, pawl.ErrCancelled) {
			t.Fatal(err)
		}
		e.want(t)
		held, _ := s.Items(t.Context(), -1)
		if got := texts(held); got != "user: go\ncall a\na: The agent was stopped before it had finished. What its tools had done is not undone." {
			t.Errorf("the session:\n%s", got)
		}
	})
}

func TestNestedTooDeep(t *testing.T) {
	m := byLength(newScript(calling(fc("a", "me", `{"input":"again"}`)), says("done")))
	for _, fail := range []bool{false, true} {
		agent := &pawl.Agent{Name: "me", Model: m}
		agent.Tools = []pawl.Tool{pawl.AgentTool(agent, &pawl.AgentToolOptions{FailRun: fail})}
		var r pawl.Runner
		res, err := r.Run(t.Context(), agent, pawl.UserText("go"), nil)
		if fail {
			if !errors.Is(err, pawl.ErrTooDeep) || stateOf(t, err).Status() != pawl.StatusFailed {
				t.Errorf("%v", err)
			}
			continue
		}
		if err != nil || res.FinalOutput != "done" || res.Usage.Requests != 18 {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

// TestNestedTold fails an agent while a tool of another one that it called is at work: that is
// cancelled, and the manager goes on.
func TestNestedTold(t *testing.T) {
	entered := make(chan struct{})
	hangs := func(f *pawl.Func[charge, string]) {
		f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) {
			close(entered)
			<-ctx.Done()
			return "", ctx.Err()
		}
	}
	fails := func(ctx context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
		<-entered
		return nil, errors.New("pawl: no answer")
	}
	var e effects
	bank := &pawl.Agent{Name: "bank", Model: newScript(calling(fc("x", "charge", `{"cents":5}`))), Tools: []pawl.Tool{charging("charge", &e, hangs)}}
	clerk := &pawl.Agent{Name: "clerk", Model: newScript(step(fails))}
	billing := newScript(calling(fc("b", "bank", `{"input":"pay"}`), fc("c", "clerk", `{"input":"note"}`)))
	manager := newScript(calling(ask("a", "charge")), says("done"))
	agent := withBilling(manager, billing, nil, pawl.AgentTool(bank, nil), pawl.AgentTool(clerk, &pawl.AgentToolOptions{FailRun: true}))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
	if diff := cmp.Diff([]string{"a: The agent failed: no answer"}, outputs(res.NewItems())); diff != "" || res.FinalOutput != "done" {
		t.Errorf("%q\n%s", res.FinalOutput, diff)
	}
	for u, err := range r.Unsettled(t.Context(), nil) {
		if err != nil || u.Call != "1.0/1.0/1.0" || u.Standing != pawl.StandsTold {
			t.Errorf("%+v, %v", u, err)
		}
	}
}

// An agent that was called as a tool hands its nested run over; who called it goes on.
func TestNestedHandoff(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		expert := &pawl.Agent{Name: "Expert", Model: newScript(calling(fc("y", "charge", `{"cents":5}`)), says("charged by the expert")), Tools: []pawl.Tool{charging("charge", &e, asking)}}
		front := &pawl.Agent{Name: "Front", Model: newScript(calling(fc("x", "transfer_to_expert", "{}"))), Handoffs: []pawl.Handoff{pawl.HandoffTo(expert)}}
		agent := &pawl.Agent{Name: "manager", Model: newScript(calling(fc("a", "front", `{"input":"go"}`)), says("done")), Tools: []pawl.Tool{pawl.AgentTool(front, nil)}}
		r := &pawl.Runner{Store: journal.NewMemory()}
		res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
		if in := res.Interruptions; len(in) != 1 || in[0].Agent != "Expert" || !cmp.Equal(in[0].AgentPath, []string{"manager", "Expert"}) {
			t.Fatalf("%+v", in)
		}
		s := viaJSON(t, res.State())
		if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		res = must(t)(mode.resume(r, t.Context(), agent, s, nil))
		if diff := cmp.Diff([]string{"a: charged by the expert"}, outputs(res.NewItems())); diff != "" || res.LastAgent != agent {
			t.Errorf("%v: %s", res.LastAgent.Name, diff)
		}
		e.want(t, "charge 5")
	})
}
