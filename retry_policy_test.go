package pawl_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

var retryFeatures = []feature{
	{"R2.31", TestRetryPolicy},
	{"R2.33", TestLockedConversation},
	{"R2.34", TestOnlyTheRunRepeats},
}

func approveReplay(model.RetryContext) model.RetryDecision {
	return model.RetryDecision{Retry: true, ApproveReplay: true}
}

// What the settings' policy says is done, but for what may not be repeated [S14.6].
func TestRetryPolicy(t *testing.T) {
	busy := &model.Error{Status: 503, Retryable: true, Delivery: model.DeliveryRefused}
	gone := &model.Error{Status: 404, Delivery: model.DeliveryRefused}
	lost := &model.Error{Err: io.EOF, Retryable: true}
	told := &model.Error{Status: 503, Final: true, Delivery: model.DeliveryRefused}
	slow := func(model.RetryContext) model.RetryDecision {
		return model.RetryDecision{Retry: true, Delay: time.Hour}
	}
	onConversation := pawl.RunOptions{ConversationID: "conv"}
	for name, tt := range map[string]struct {
		err    error
		policy model.RetryPolicy
		opts   pawl.RunOptions
		took   time.Duration
		calls  int
	}{
		"never":                          {busy, model.RetryNever, pawl.RunOptions{}, 0, 1},
		"what the adapter would not":     {gone, model.RetryStatus(404), pawl.RunOptions{}, time.Second, 2},
		"another status":                 {busy, model.RetryStatus(404), pawl.RunOptions{}, 0, 1},
		"no answer":                      {lost, model.RetryNetwork, pawl.RunOptions{}, time.Second, 2},
		"the policy's delay":             {busy, slow, pawl.RunOptions{}, time.Hour, 2},
		"what is no model's":             {errors.New("bug"), slow, pawl.RunOptions{}, time.Hour, 2},
		"the server said no":             {told, model.RetryAny(model.RetryStatus(503), model.RetrySuggested), pawl.RunOptions{}, 0, 1},
		"unsafe":                         {lost, model.RetryNetwork, onConversation, 0, 1},
		"unsafe, and any agrees":         {lost, model.RetryAny(model.RetryNetwork, model.RetrySuggested), onConversation, 0, 1},
		"unsafe, and approved":           {lost, approveReplay, onConversation, time.Second, 2},
		"unsafe, and approved by one":    {lost, model.RetryAny(model.RetrySuggested, approveReplay), onConversation, time.Second, 2},
		"on a chain, which stays intact": {lost, model.RetryNetwork, pawl.RunOptions{AutoPreviousResponseID: true}, time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newScript(failing(tt.err), says("done"))
				m.info.ServerState = true
				agent := agentWith(m)
				agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 3, InitialDelay: time.Second, Policy: tt.policy}}
				start := time.Now()
				_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("hi"), &tt.opts)
				if took := time.Since(start); took != tt.took || len(m.calls()) != tt.calls {
					t.Errorf("%d calls in %v", len(m.calls()), took)
				}
				if (err == nil) != (tt.calls == 2) || err != nil && !errors.Is(err, tt.err) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// What a policy is told, and that it is not asked about the last attempt.
func TestRetryPolicyIsTold(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		busy := &model.Error{Status: 503, Code: "slow_down", Message: "busy", RequestID: "req_1", Delivery: model.DeliveryRefused}
		var told []model.RetryContext
		agent := agentWith(newScript(failing(busy), failing(busy), failing(busy)))
		agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 2, InitialDelay: time.Nanosecond, Policy: func(c model.RetryContext) model.RetryDecision {
			told = append(told, c)
			return model.RetryDecision{Retry: true}
		}}}
		if _, err := m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("hi"), nil); !errors.Is(err, busy) {
			t.Fatal(err)
		}
		want := model.RetryContext{Err: busy, Attempt: 1, MaxRetries: 2, Streamed: m.name == "stream", Status: 503, Code: "slow_down", Message: "busy", RequestID: "req_1"}
		second := want
		second.Attempt = 2
		if !slices.Equal([]model.RetryContext{want, second}, told) {
			t.Errorf("told %+v", told)
		}
	})
}

// Nested runs repeat their requests beside each other, by one policy.
func TestRetryPolicyInNestedRuns(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		gone := &model.Error{Status: 404, Delivery: model.DeliveryRefused}
		helper := func(name string) pawl.Tool {
			return pawl.AgentTool(&pawl.Agent{Name: name, Model: newScript(failing(gone), says(name+" found it"))}, nil)
		}
		agent := agentWith(newScript(calling(fc("c1", "one", `{"input":"go"}`), fc("c2", "two", `{"input":"go"}`)), says("done")), helper("one"), helper("two"))
		opts := &pawl.RunOptions{Settings: &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1, InitialDelay: time.Nanosecond, Policy: model.RetryStatus(404)}}}
		res := must(t)(m.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("hi"), opts))
		if diff := cmp.Diff([]string{"c1: one found it", "c2: two found it"}, outputs(res.NewItems())); diff != "" || res.Usage.Requests != 6 {
			t.Errorf("%d requests, outputs (-want +got):\n%s", res.Usage.Requests, diff)
		}
	})
}

// A policy that panics fails the run, which can be resumed.
func TestRetryPolicyPanics(t *testing.T) {
	busy := &model.Error{Status: 503, Retryable: true, Delivery: model.DeliveryRefused}
	agent := agentWith(newScript(failing(busy), says("done")))
	agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 2, Policy: func(model.RetryContext) model.RetryDecision { panic("boom") }}}
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("hi"), nil)
	if p, ok := errors.AsType[*pawl.PanicError](err); !ok || p.Value != "boom" {
		t.Fatal(err)
	}
	if res := must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil)); res.FinalOutput != "done" {
		t.Errorf("output %q", res.FinalOutput)
	}
}

// A request that an approved repeat would send a second time is looked for in the conversation
// first: what stands there is taken, and only what cannot be told is sent again.
func TestApprovedReplayIsReadBack(t *testing.T) {
	input, final := item.UserText("hi"), item.MessageItem("msg_1", "done")
	lost := &model.Error{Err: io.EOF, Retryable: true}
	for name, tt := range map[string]struct {
		tail  []pawl.Item
		calls int
	}{
		"it is there":          {[]pawl.Item{input, item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`), item.FunctionOutput("c1", "receipt 5"), final}, 2},
		"it is not":            {[]pawl.Item{input, item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`)}, 3},
		"who knows":            {[]pawl.Item{input, item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`), item.FunctionOutput("c1", "receipt 5")}, 3},
		"nothing that it knew": {nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				m := &conversation{script: newScript(response("r1", item.FunctionCallItem("fc_1", "c1", "look", `{"cents":5}`)), failing(lost), response("r2", final)), tail: tt.tail}
				m.info.ServerState = true
				agent := agentWith(m, charging("look", &e, nil))
				agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1, Policy: approveReplay}}
				res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ConversationID: "conv"}))
				if res.FinalOutput != "done" || len(m.calls()) != tt.calls || m.read != 1 {
					t.Errorf("%q after %d calls, read back %d times", res.FinalOutput, len(m.calls()), m.read)
				}
				e.want(t, "look 5")
			})
		})
	}
}

// A conversation that another request has is asked again, without any settings.
func TestLockedConversation(t *testing.T) {
	locked := &model.Error{Status: 400, Code: "conversation_locked", Retryable: true, Delivery: model.DeliveryRefused}
	later := &model.Error{Status: 400, Code: "conversation_locked", Retryable: true, Delivery: model.DeliveryRefused, RetryAfter: time.Minute}
	for name, tt := range map[string]struct {
		errs  []error
		retry *model.Retry
		took  time.Duration
		calls int
		fails bool
	}{
		"twice":               {errs: []error{locked, locked}, took: 3 * time.Second, calls: 3},
		"three times":         {errs: []error{locked, locked, locked}, took: 7 * time.Second, calls: 4},
		"too often":           {errs: []error{locked, locked, locked, locked}, took: 7 * time.Second, calls: 4, fails: true},
		"as the server asks":  {errs: []error{later}, took: time.Minute, calls: 2},
		"no retries":          {errs: []error{locked}, retry: &model.Retry{}, calls: 1, fails: true},
		"behind the settings": {errs: []error{locked, locked}, retry: &model.Retry{MaxRetries: 1, InitialDelay: time.Hour, MaxDelay: time.Hour}, took: time.Hour + 2*time.Second, calls: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var steps []step
				for _, err := range tt.errs {
					steps = append(steps, failing(err))
				}
				m := newScript(append(steps, says("done"))...)
				m.info.ServerState = true
				agent := agentWith(m)
				agent.Settings = &pawl.ModelSettings{Retry: tt.retry}
				start := time.Now()
				_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ConversationID: "conv"})
				if took := time.Since(start); took != tt.took || len(m.calls()) != tt.calls || (err != nil) != tt.fails {
					t.Errorf("%d calls in %v, %v", len(m.calls()), took, err)
				}
			})
		})
	}
}

// The client of a model never repeats a request by itself: each one that the server gets is
// an attempt that the ledger has.
func TestOnlyTheRunRepeats(t *testing.T) {
	for name, tt := range map[string]struct {
		retry *model.Retry
		want  int
	}{"no settings": {nil, 1}, "no retries": {&model.Retry{}, 1}, "two": {&model.Retry{MaxRetries: 2, InitialDelay: time.Nanosecond}, 3}} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.Header().Set("X-Should-Retry", "true")
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer server.Close()
			agent := agentWith(openai.New(openai.Options{BaseURL: server.URL, APIKey: "sk"}).Responses("gpt-5.2"))
			agent.Settings = &pawl.ModelSettings{Retry: tt.retry}
			store := journal.NewMemory()
			_, err := (&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"})
			failed := 0
			for _, f := range facts(t, store, "r") {
				if b, ok := f.Body.(*journal.Failed); ok && b.ID.Kind == journal.EffectModel {
					failed++
				}
			}
			if diff := cmp.Diff([]int{tt.want, tt.want}, []int{requests, failed}); diff != "" || err == nil {
				t.Errorf("%v; requests and attempts (-want +got):\n%s", err, diff)
			}
		})
	}
}
