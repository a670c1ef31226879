package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// costing is a step that reports tokens.
func costing(id string, u *model.Usage, list ...pawl.Item) step {
	return func(context.Context, *model.Request, func(*model.Event) bool) (*model.Response, error) {
		return &model.Response{ID: id, RequestID: "req_" + id, Items: list, Usage: u}, nil
	}
}

// summed adds up requests.
func summed(list []pawl.RequestUsage) (u pawl.Usage) {
	for _, q := range list {
		u.Requests++
		if !q.Reported {
			u.Unreported++
		}
		u.Input += q.Input
		u.Cached += q.Cached
		u.Output += q.Output
		u.Reasoning += q.Reasoning
		u.Total += q.Total
	}
	return u
}

// Each attempt is one entry, with the tokens as they were reported or unknown, over a pause and
// a round trip. Their sum is the usage [S14.5].
func TestRequests(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		s := newScript(
			failing(&model.Error{Err: model.ErrStreamCut, Retryable: true}),
			costing("a", &model.Usage{InputTokens: 10, CachedInputTokens: 4, OutputTokens: 3, ReasoningTokens: 2, TotalTokens: 13, Raw: `{"x":1}`}, fc("c1", "pay", `{"cents":1}`)),
			costing("b", nil, fc("c2", "pay", `{"cents":2}`)),
			costing("c", &model.Usage{}, item.MessageItem("", "done")))
		agent := agentWith(s, charging("pay", &e, asking))
		agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1, InitialDelay: time.Millisecond}}
		var r pawl.Runner
		res := must(t)(m.run(&r, t.Context(), agent, pawl.UserText("go"), nil))
		first := res.Requests()
		if got := summed(first); got != res.Usage || got.Requests != 2 {
			t.Errorf("usage %+v, sum %+v", res.Usage, got)
		}
		state := viaJSON(t, res.State())
		for res.Waiting() {
			if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			res = must(t)(m.resume(&r, t.Context(), agent, state, nil))
			state = viaJSON(t, res.State())
		}
		want := []pawl.RequestUsage{
			{Agent: "support", Turn: 1, Attempt: 1},
			{Agent: "support", Turn: 1, Attempt: 2, ResponseID: "a", RequestID: "req_a", Reported: true, Input: 10, Cached: 4, Output: 3, Reasoning: 2, Total: 13, Raw: `{"x":1}`},
			{Agent: "support", Turn: 2, Attempt: 1, ResponseID: "b", RequestID: "req_b"},
			{Agent: "support", Turn: 3, Attempt: 1, ResponseID: "c", RequestID: "req_c", Reported: true},
		}
		for name, got := range map[string][]pawl.RequestUsage{"result": res.Requests(), "document": state.Result().Requests()} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if summed(got) != res.Usage {
				t.Errorf("%s: usage %+v, sum %+v", name, res.Usage, summed(got))
			}
		}
	})
}

// A request that a crash left in doubt counts when the next attempt begins.
func TestRequestsInDoubt(t *testing.T) {
	store := journal.NewMemory()
	entered := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	s := newScript(hanging(entered), says("done"))
	agent := agentWith(s)
	r := &pawl.Runner{Store: store}
	if _, err := r.Run(ctx, agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if list := replays(t, r, "r").Result().Requests(); list != nil {
		t.Errorf("before anything ended: %+v", list)
	}
	res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	want := []pawl.RequestUsage{{Agent: "support", Turn: 1, Attempt: 1},
		{Agent: "support", Turn: 1, Attempt: 2, Reported: true, Input: 3, Output: 2, Total: 5}}
	if diff := cmp.Diff(want, res.Requests()); diff != "" || summed(res.Requests()) != res.Usage {
		t.Errorf("usage %+v (-want +got):\n%s", res.Usage, diff)
	}
}

// The tokens of each request, as the server reported them.
func ExampleResult_Requests() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "look")), pawltest.ScriptedText("There is a door."))
	m.Usage = &model.Usage{InputTokens: 20, OutputTokens: 5, TotalTokens: 25}
	var r pawl.Runner
	res, err := r.Run(context.Background(), &pawl.Agent{Name: "Scout", Model: m, Tools: namedTools("look")}, pawl.UserText("What is there?"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range res.Requests() {
		fmt.Println("turn", q.Turn, "tokens", q.Total)
	}
	fmt.Println("in all", res.Usage.Total)
	// Output:
	// turn 1 tokens 25
	// turn 2 tokens 25
	// in all 50
}
