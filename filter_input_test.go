package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// What the filter makes of a request is what this request says, in every attempt of it. The
// conversation is what it was [M18.9] [S15.7].
func TestFilterInput(t *testing.T) {
	note := item.UserText("be quick")
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		s := newScript(items(item.MessageItem("m", "let me see"), fc("c1", "pay", `{"cents":5}`)), failing(&model.Error{Err: model.ErrStreamCut}), says("done"))
		agent := agentWith(s, charging("pay", &e, nil))
		agent.Instructions = pawl.Text("Help.")
		var asked []string
		opts := &pawl.RunOptions{Context: "ann", Session: session.NewMemory("s"), FilterInput: func(_ context.Context, in *pawl.ModelInput) error {
			asked = append(asked, fmt.Sprintf("turn %d of %s for %s: %s %d", in.Turn, in.Agent.Name, in.Value, in.Instructions, len(in.Items)))
			in.Instructions += " Fast."
			in.Items = append(slices.DeleteFunc(in.Items, func(it pawl.Item) bool { return it.Head().ID == "m" }), note)
			return nil
		}}
		_, err := m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("hi"), opts)
		res := must(t)(m.resume(new(pawl.Runner), t.Context(), agent, viaJSON(t, stateOf(t, err)), opts))
		if diff := cmp.Diff([]string{"turn 1 of support for ann: Help. 1", "turn 2 of support for ann: Help. 4"}, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		whole := []pawl.Item(res.ToInputList())
		if len(whole) != 5 {
			t.Fatalf("%d items", len(whole))
		}
		second := []pawl.Item{whole[0], whole[2], whole[3], note}
		for i, want := range [][]pawl.Item{{whole[0], note}, second, second} {
			got := s.calls()[i]
			if diff := cmp.Diff(want, got.Input); diff != "" || got.Instructions != "Help. Fast." {
				t.Errorf("request %d: %q (-want +got):\n%s", i+1, got.Instructions, diff)
			}
		}
		held, err := opts.Session.Items(t.Context(), -1)
		if diff := cmp.Diff(whole, held); diff != "" || err != nil {
			t.Errorf("session: %v (-want +got):\n%s", err, diff)
		}
	})
}

// Where the server keeps the conversation, what the filter leaves out of a request is sent with
// the next one.
func TestFilterInputOfAServersConversation(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		s := newScript(response("resp_1", fc("c1", "pay", `{"cents":5}`)), response("resp_2", item.MessageItem("", "done")))
		s.info = serverState
		note := item.UserText("hello")
		opts := &pawl.RunOptions{AutoPreviousResponseID: true, FilterInput: func(_ context.Context, in *pawl.ModelInput) error {
			if in.Turn == 1 {
				in.Items = []pawl.Item{in.Items[1], note}
			}
			return nil
		}}
		input := pawl.Input{item.UserText("later"), item.UserText("now")}
		must(t)(m.run(new(pawl.Runner), t.Context(), agentWith(s, charging("pay", &e, nil)), input, opts))
		for i, want := range [][]pawl.Item{{input[1], note}, {input[0], item.FunctionOutput("c1", "receipt 5")}} {
			if diff := cmp.Diff(want, s.calls()[i].Input); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", i+1, diff)
			}
		}
	})
}

// Of items of one type and id the newest is sent: a call where the first stood, a message where
// the last one does.
func TestFilterInputSendsTheNewest(t *testing.T) {
	s := newScript(items(item.ReasoningItem("rs", "old"), item.FunctionCallItem("fc", "c1", "pay", `{"cents":5}`)), says("done"))
	m1, m2 := item.MessageItem("m", "one"), item.MessageItem("m", "two")
	opts := &pawl.RunOptions{FilterInput: func(_ context.Context, in *pawl.ModelInput) error {
		if in.Turn == 2 {
			in.Items = append([]pawl.Item{m1}, append(in.Items, m2, item.ReasoningItem("rs", "new"))...)
		}
		return nil
	}}
	must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, charging("pay", new(effects), nil)), pawl.UserText("hi"), opts))
	want := []pawl.Item{item.UserText("hi"), item.ReasoningItem("rs", "new"), item.FunctionCallItem("fc", "c1", "pay", `{"cents":5}`), item.FunctionOutput("c1", "receipt 5"), m2}
	if diff := cmp.Diff(want, s.calls()[1].Input); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// A filter that cannot be used is found before the request; the run goes on when it is mended.
func TestFilterInputFails(t *testing.T) {
	bang := errors.New("no answer")
	for name, tt := range map[string]struct {
		filter func(context.Context, *pawl.ModelInput) error
		want   string
	}{
		"error":   {func(context.Context, *pawl.ModelInput) error { return bang }, "RunOptions.FilterInput: no answer"},
		"panic":   {func(context.Context, *pawl.ModelInput) error { panic("boom") }, "RunOptions.FilterInput panicked: boom"},
		"nothing": {func(_ context.Context, in *pawl.ModelInput) error { in.Items = nil; return nil }, "RunOptions.FilterInput: it returned no items"},
		"no item": {func(_ context.Context, in *pawl.ModelInput) error { in.Items[0] = pawl.Item{}; return nil }, "RunOptions.FilterInput: item 0 is empty"},
		"an output alone": {func(_ context.Context, in *pawl.ModelInput) error { in.Items = in.Items[2:]; return nil },
			"RunOptions.FilterInput: a model cannot be sent what it returned: the view has the output at 2 without its call"},
		"an invented call": {func(_ context.Context, in *pawl.ModelInput) error {
			in.Items = append(in.Items, fc("c9", "pay", `{}`), item.FunctionOutput("c9", "paid"))
			return nil
		}, `RunOptions.FilterInput: a model cannot be sent what it returned: the view has a call "c9" that nobody made`},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				s := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
				agent := agentWith(s, charging("pay", &e, nil))
				opts := &pawl.RunOptions{ID: "r", FilterInput: func(ctx context.Context, in *pawl.ModelInput) error {
					if in.Turn == 1 {
						return nil
					}
					return tt.filter(ctx, in)
				}}
				_, err := m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("hi"), opts)
				if err == nil || err.Error() != "pawl: run r, preparing turn 2: "+tt.want || len(s.calls()) != 1 {
					t.Fatalf("error %v after %d requests", err, len(s.calls()))
				}
				res := must(t)(m.resume(new(pawl.Runner), t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
				e.want(t, "pay 5")
				sameViews(t, res, s, nil)
			})
		})
	}
}

// What is in every request, and no part of the conversation, is added by a filter.
func ExampleRunOptions_filterInput() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("Good evening."))
	agent := &pawl.Agent{Name: "Host", Model: m}
	res, err := new(pawl.Runner).Run(context.Background(), agent, pawl.UserText("Hello!"), &pawl.RunOptions{
		FilterInput: func(_ context.Context, in *pawl.ModelInput) error {
			in.Items = append(in.Items, item.DeveloperText("It is 8 pm."))
			return nil
		}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var read []string
	for _, it := range m.Calls()[0].Input {
		read = append(read, it.Head().Role)
	}
	fmt.Println("the model read:", strings.Join(read, ", "))
	fmt.Println("the conversation has:", len(res.ToInputList()))
	// Output:
	// the model read: user, developer
	// the conversation has: 2
}
