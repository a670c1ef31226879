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

// trip is the structured input of an agent.
type trip struct {
	City   string `json:"city" jsonschema:"Where to."`
	Nights int    `json:"nights"`
}

// S16.1, S16.2
func TestAgentFunc(t *testing.T) {
	const arguments = `{"city":"Rome","nights":2}`
	for name, tt := range map[string]struct {
		f    pawl.AgentFunc[trip]
		asks string
		out  string
	}{
		"defaults": {asks: "You were called as a tool, with these arguments as JSON:\n" + arguments + "\n\nWhat they mean:\n- city: Where to.", out: "booked"},
		"schema": {f: pawl.AgentFunc[trip]{IncludeSchema: true}, out: "booked", asks: "You were called as a tool, with these arguments as JSON:\n" + arguments +
			"\n\nTheir JSON Schema:\n" + `{"type":"object","properties":{"city":{"type":"string","description":"Where to."},"nights":{"type":"integer"}},"required":["city","nights"],"additionalProperties":false}`},
		"own": {asks: "Rome for manager", out: "travel_agent a 1: booked", f: pawl.AgentFunc[trip]{
			Input: func(_ context.Context, c *pawl.Call, in trip) (pawl.Input, error) {
				return pawl.UserText(in.City + " for " + c.Agent.Name), nil
			},
			Output: func(_ context.Context, c *pawl.Call, r *pawl.Result) (string, error) {
				if r.Invocation == nil || r.Invocation.Arguments != arguments || r.Invocation.Key != c.Key || c.Key == "" {
					return "", fmt.Errorf("the invocation is %+v", r.Invocation)
				}
				return fmt.Sprintf("%s %s %d: %s", r.Invocation.Tool, r.Invocation.CallID, r.Turns, r.FinalOutput), nil
			}}},
		"panics": {asks: "", out: `The agent failed: starting the agent of call 1.0 panicked: oh`, f: pawl.AgentFunc[trip]{
			Input: func(context.Context, *pawl.Call, trip) (pawl.Input, error) { panic("oh") }}},
		"invents a call": {asks: "", out: `The agent failed: input: call "z" has no output; a run does not execute calls it did not make`, f: pawl.AgentFunc[trip]{
			Input: func(context.Context, *pawl.Call, trip) (pawl.Input, error) {
				return pawl.Input{fc("z", "pay", "{}")}, nil
			}}},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newScript(says("booked"))
			tt.f.Agent = &pawl.Agent{Name: "Travel agent", Model: inner}
			manager := newScript(calling(fc("a", "travel_agent", arguments)), says("done"))
			agent := &pawl.Agent{Name: "manager", Model: manager, Tools: []pawl.Tool{pawl.NewAgentTool(tt.f)}}
			res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
			if diff := cmp.Diff([]string{"a: " + tt.out}, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
			asks := ""
			if calls := inner.calls(); len(calls) > 0 {
				asks = strings.TrimPrefix(texts(calls[0].Input), "user: ")
			}
			if diff := cmp.Diff(tt.asks, asks); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An agent that ends without a text is answered by the newest text there is.
func TestAgentToolLastText(t *testing.T) {
	var e effects
	manager := newScript(calling(ask("a", "go")), says("done"))
	agent := withBilling(manager, newScript(calling(fc("x", "charge", `{"cents":5}`)), items()), nil, charging("charge", &e, nil))
	res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
	if diff := cmp.Diff([]string{"a: receipt 5"}, outputs(res.NewItems())); diff != "" {
		t.Error(diff)
	}
}

// The nested run has the caller's options but for what is the caller's own, unless it has others.
func TestAgentToolOptions(t *testing.T) {
	var seen []string
	sees := func(f *pawl.Func[charge, string]) {
		f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
			seen = append(seen, fmt.Sprintf("%s %v %s", c.RunContext.Agent.Name, c.Value, c.Invocation.Tool))
			return "seen", nil
		}
	}
	notes := session.NewMemory("notes")
	for _, o := range []*pawl.RunOptions{nil, {Session: notes}, {Session: notes, Context: "its own"}} {
		manager := newScript(calling(ask("a", "go")), says("done"))
		manager.info.ServerState = true
		billing := newScript(calling(fc("x", "charge", `{"cents":5}`)), says("billed"))
		agent := withBilling(manager, billing, &pawl.AgentToolOptions{Options: o}, charging("charge", new(effects), sees))
		r := &pawl.Runner{Store: journal.NewMemory()}
		must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ConversationID: "conv", Context: "shared"}))
		if c := billing.calls()[0]; c.Conversation != "" || manager.calls()[0].Conversation != "conv" {
			t.Errorf("the nested run is on conversation %q", c.Conversation)
		}
	}
	if diff := cmp.Diff([]string{"Billing desk shared billing_desk", "Billing desk shared billing_desk", "Billing desk its own billing_desk"}, seen); diff != "" {
		t.Error(diff)
	}
	held, _ := notes.Items(t.Context(), -1)
	once := "user: go\ncall x\nx: seen\nassistant: billed"
	if got := texts(held); got != once+"\n"+once {
		t.Errorf("the session:\n%s", got)
	}
}

// Two nested runs are not on one session at a time, and none is on that of a run around it.
func TestAgentToolSessionTaken(t *testing.T) {
	s := session.NewMemory("s")
	for name, tt := range map[string]struct {
		outer session.Session
		want  []string
	}{
		"two":    {nil, []string{"a: billed", `b: The agent failed: another run has the session and is being driven: session "s"`}},
		"around": {s, []string{`a: The agent failed: another run has the session and is being driven: session "s"`, `b: The agent failed: another run has the session and is being driven: session "s"`}},
	} {
		t.Run(name, func(t *testing.T) {
			manager := newScript(calling(ask("a", "1"), ask("b", "2")), says("done"))
			agent := withBilling(manager, newScript(says("billed"), says("billed")), &pawl.AgentToolOptions{Options: &pawl.RunOptions{Session: s}})
			res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Session: tt.outer}))
			if diff := cmp.Diff(tt.want, outputs(res.NewItems())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Agents that are called together work together: each waits for the other here. [S16.4]
func TestAgentToolsTogether(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		here, there := make(chan bool), make(chan bool)
		meets := func(mine, other chan bool, text string) step {
			return func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
				close(mine)
				<-other
				return says(text)(ctx, req, emit)
			}
		}
		a := &pawl.Agent{Name: "a", Model: newScript(meets(here, there, "one"))}
		b := &pawl.Agent{Name: "b", Model: newScript(meets(there, here, "two"))}
		manager := newScript(calling(fc("x", "a", `{"input":""}`), fc("y", "b", `{"input":""}`)), says("done"))
		agent := &pawl.Agent{Name: "manager", Model: manager, Tools: []pawl.Tool{pawl.AgentTool(a, nil), pawl.AgentTool(b, nil)}}
		res := must(t)(mode.run(&pawl.Runner{}, t.Context(), agent, pawl.UserText("go"), nil))
		if diff := cmp.Diff([]string{"x: one", "y: two"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAgentToolBadInput(t *testing.T) {
	ok := &pawl.Agent{Name: "ok", Model: newScript()}
	nested := func(a *pawl.Agent, o *pawl.AgentToolOptions) []pawl.Tool { return []pawl.Tool{pawl.AgentTool(a, o)} }
	deep := &pawl.Agent{Name: "deep", Model: newScript(), Tools: nested(&pawl.Agent{Name: "mute"}, nil)}
	for want, tools := range map[string][]pawl.Tool{
		`tool "": has no Agent`:     nested(nil, nil),
		`agent "mute" has no model`: nested(deep, nil),
		`two tools are named "ok"; give the one that runs an agent another name`: append(nested(ok, nil), nested(ok, nil)...),
		`the name must be 1 to 64 letters`:                                       nested(&pawl.Agent{Name: strings.Repeat("x", 65), Model: newScript()}, nil),
		`tool "ok": a nested run has no id of its own`:                           nested(ok, &pawl.AgentToolOptions{Options: &pawl.RunOptions{ID: "x"}}),
		`the model's server keeps no conversation`:                               nested(ok, &pawl.AgentToolOptions{Options: &pawl.RunOptions{ConversationID: "x"}}),
	} {
		_, err := new(pawl.Runner).Run(t.Context(), &pawl.Agent{Name: "manager", Model: newScript(), Tools: tools}, pawl.UserText("go"), nil)
		var ce *pawl.ConfigError
		if !errors.As(err, &ce) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A resume without the tool that runs the agent fails before anything happens, and goes on with it. [S16.3]
func TestAgentToolGone(t *testing.T) {
	var e effects
	manager, billing := newScript(calling(ask("a", "go")), says("done")), newScript(calling(fc("x", "charge", `{"cents":5}`)), says("billed"))
	agent := withBilling(manager, billing, nil, charging("charge", &e, asking))
	r := &pawl.Runner{Store: journal.NewMemory()}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
	if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	for _, tools := range [][]pawl.Tool{nil, {pawl.AgentTool(&pawl.Agent{Name: "Other", Model: billing}, &pawl.AgentToolOptions{Name: "billing_desk"})}} {
		without := *agent
		without.Tools = tools
		if _, err := r.Resume(t.Context(), &without, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrToolChanged) {
			t.Errorf("%v", err)
		}
	}
	e.want(t)
	must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	e.want(t, "charge 5")
}

// batchIDs is a session that notes the ids of what is appended.
type batchIDs struct {
	*session.Memory
	ids *[]string
}

func (b batchIDs) AppendBatch(ctx context.Context, id string, items []pawl.Item) error {
	*b.ids = append(*b.ids, id)
	return b.Memory.AppendBatch(ctx, id, items)
}

// A batch of a nested run has another id than any of the run itself. [S16.6]
func TestNestedBatchIDs(t *testing.T) {
	var ids []string
	agent := withBilling(newScript(calling(ask("a", "go")), says("done")), newScript(says("billed")),
		&pawl.AgentToolOptions{Options: &pawl.RunOptions{Session: batchIDs{session.NewMemory("inner"), &ids}}})
	must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", Session: batchIDs{session.NewMemory("outer"), &ids}}))
	if diff := cmp.Diff([]string{"r/1", "r/1@1.0", "r/2@1.0", "r/2", "r/3"}, ids); diff != "" {
		t.Error(diff)
	}
}
