package pawltest_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

var hello = request(item.UserText("hello"))

func request(input ...item.Item) *model.Request {
	return &model.Request{Static: &model.Static{Instructions: "Be brief."}, Input: model.NewInput(input...)}
}

// shownEvents calls a model and returns what it streamed.
func shownEvents(t *testing.T, m model.Model, req *model.Request) (shown []model.Event, res *model.Response, err error) {
	t.Helper()
	res, err = m.Call(t.Context(), req, func(ev *model.Event) bool {
		shown = append(shown, *ev)
		return true
	})
	return shown, res, err
}

func types(events []model.Event) []string {
	var list []string
	for _, ev := range events {
		list = append(list, ev.Type)
	}
	return list
}

func TestScriptedStepsInOrder(t *testing.T) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("one"))
	m.Enqueue(pawltest.ScriptedStep{
		Output: []item.Item{item.ReasoningItem("rs_1", "hm"), item.FunctionCallItem("fc_1", "c1", "add", `{}`)}, ResponseID: "mine",
		RequestID: "req", Usage: &model.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5, Raw: `{"x":1}`},
	}, pawltest.ScriptedStep{NoResponseID: true})
	m.Usage = &model.Usage{InputTokens: 1}

	want := []model.Response{
		{ID: "resp_1", Items: []item.Item{item.MessageItem("", "one")}, Usage: &model.Usage{InputTokens: 1}},
		{ID: "mine", RequestID: "req", Items: []item.Item{item.ReasoningItem("rs_1", "hm"), item.FunctionCallItem("fc_1", "c1", "add", `{}`)},
			Usage: &model.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5, Raw: `{"x":1}`}},
		{Usage: &model.Usage{InputTokens: 1}},
	}
	for i := range want {
		if got := m.Remaining(); got != 3-i {
			t.Errorf("before call %d: %d steps remain, want %d", i+1, got, 3-i)
		}
		res, err := m.Call(t.Context(), hello, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want[i], res); diff != "" {
			t.Errorf("response %d (-want +got):\n%s", i+1, diff)
		}
	}
	m.AssertComplete(t)
}

func TestScriptedInfo(t *testing.T) {
	for _, test := range []struct {
		m    *pawltest.ScriptedModel
		want model.Info
	}{
		{&pawltest.ScriptedModel{}, model.Info{Provider: "pawltest", Name: "scripted"}},
		{&pawltest.ScriptedModel{Name: "n", UniqueCallIDs: true, ServerState: true},
			model.Info{Provider: "pawltest", Name: "n", UniqueCallIDs: true, ServerState: true}},
	} {
		if got := test.m.Info(); got != test.want {
			t.Errorf("Info() = %+v, want %+v", got, test.want)
		}
	}
}

func TestScriptedCallsAreRecordedAsSnapshots(t *testing.T) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("one"), pawltest.ScriptedText("two"))
	temperature := 0.5
	req := &model.Request{
		Static: &model.Static{
			Model: "other", Instructions: "Be brief.", Tools: []model.Tool{{Name: "add", Parameters: `{}`}},
			Output: &model.OutputFormat{Name: "answer"},
			Settings: &model.Settings{Temperature: &temperature, Metadata: map[string]string{"k": "v"},
				ResponseInclude: []string{"a"}, Reasoning: &model.Reasoning{Effort: "low"}},
		},
		Input:              model.NewInput(item.UserText("hello")),
		PreviousResponseID: "resp_0", ConversationID: "conv_0",
	}
	if _, err := m.Call(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := shownEvents(t, m, hello); err != nil {
		t.Fatal(err)
	}

	temperature = 1
	req.Static.Settings.Metadata["k"], req.Static.Settings.ResponseInclude[0] = "changed", "changed"
	req.Static.Settings.Reasoning.Effort, req.Static.Tools[0].Name, req.Static.Output.Name = "changed", "changed", "changed"
	calls := m.Calls()
	calls[0].Input[0], calls[0].Settings.Metadata["k"] = item.UserText("changed"), "changed"

	half := 0.5
	want := []pawltest.ScriptedCall{
		{Number: 1, Model: "other", Instructions: "Be brief.", Input: []item.Item{item.UserText("hello")},
			Tools: []model.Tool{{Name: "add", Parameters: `{}`}}, Output: &model.OutputFormat{Name: "answer"},
			Settings: &model.Settings{Temperature: &half, Metadata: map[string]string{"k": "v"},
				ResponseInclude: []string{"a"}, Reasoning: &model.Reasoning{Effort: "low"}},
			PreviousResponseID: "resp_0", ConversationID: "conv_0", Accepted: true, ResponseID: "resp_1"},
		{Number: 2, Streamed: true, Instructions: "Be brief.", Input: []item.Item{item.UserText("hello")}, Accepted: true, ResponseID: "resp_2"},
	}
	if diff := cmp.Diff(want, m.Calls(), cmpopts.IgnoreUnexported(pawltest.ScriptedCall{})); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestScriptedStepsAreSnapshots(t *testing.T) {
	output := []item.Item{item.MessageItem("", "one")}
	usage := &model.Usage{InputTokens: 1}
	m := pawltest.NewScriptedModel(pawltest.ScriptedStep{Output: output, Usage: usage})
	output[0], usage.InputTokens = item.MessageItem("", "changed"), 9
	res, err := m.Call(t.Context(), hello, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Items[0] != item.MessageItem("", "one") || res.Usage.InputTokens != 1 {
		t.Errorf("the response changed with the caller's values: %+v", res)
	}
}

func TestScriptedMismatches(t *testing.T) {
	var invalid *pawltest.InvalidStepError
	var unexpected *pawltest.UnexpectedCallError
	boom := errors.New("boom")
	text := func(pawltest.ScriptedCall) pawltest.ScriptedStep { return pawltest.ScriptedText("x") }
	var forever func(pawltest.ScriptedCall) pawltest.ScriptedStep
	forever = func(pawltest.ScriptedCall) pawltest.ScriptedStep { return pawltest.ScriptedStep{Derive: forever} }
	for _, test := range []struct {
		name  string
		steps []pawltest.ScriptedStep
		as    any    // the error's type, nil for any
		says  string // part of its text
	}{
		{"no step", nil, &unexpected, "call 1 is beyond the script of 0 steps"},
		{"other input", []pawltest.ScriptedStep{{Want: []item.Item{}}}, nil, "unexpected input"},
		{"check", []pawltest.ScriptedStep{{Check: func(pawltest.ScriptedCall) error { return boom }}}, nil, "boom"},
		{"error and derived", []pawltest.ScriptedStep{{Err: boom, Derive: text}}, &invalid, "step 0"},
		{"error and output", []pawltest.ScriptedStep{{Err: boom, Output: []item.Item{}}}, &invalid, "both an output and an error"},
		{"output and derived", []pawltest.ScriptedStep{{Derive: text, Events: []model.Event{}}}, &invalid, "both an output and a function"},
		{"two minds about the id", []pawltest.ScriptedStep{{ResponseID: "r", NoResponseID: true}}, &invalid, "a response id and none"},
		{"empty item", []pawltest.ScriptedStep{{Output: []item.Item{{}}}}, &invalid, "empty item"},
		{"derived for ever", []pawltest.ScriptedStep{{Derive: forever}}, &invalid, "derives a derived step"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := pawltest.NewScriptedModel(test.steps...)
			_, err := m.Call(t.Context(), hello, nil)
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Retryable || failed.Delivery != model.DeliveryRefused {
				t.Fatalf("error %#v, want a *model.Error that is refused and not worth repeating", err)
			}
			if !strings.Contains(err.Error(), test.says) || test.as != nil && !errors.As(err, test.as) {
				t.Errorf("error %q, want %T saying %q", err, test.as, test.says)
			}
			rec := &recorder{TB: t}
			m.AssertComplete(rec)
			if len(rec.errors) != 1 || !strings.Contains(rec.errors[0], test.says) {
				t.Errorf("AssertComplete says %q", rec.errors)
			}
			if calls := m.Calls(); len(calls) != 1 || calls[0].Err != err || calls[0].Accepted {
				t.Errorf("recorded: %+v", calls)
			}
		})
	}
}

func TestScriptedStepsLeft(t *testing.T) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("one"), pawltest.ScriptedText("two"))
	if _, err := m.Call(t.Context(), hello, nil); err != nil {
		t.Fatal(err)
	}
	rec := &recorder{TB: t}
	m.AssertComplete(rec)
	if want := []string{"pawltest: scripted model: 1 of 2 steps were not asked for"}; !slices.Equal(rec.errors, want) {
		t.Errorf("AssertComplete says %q, want %q", rec.errors, want)
	}
}

func TestScriptedDerivedSteps(t *testing.T) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedStep{Derive: func(c pawltest.ScriptedCall) pawltest.ScriptedStep {
		c.Input[0] = item.UserText("changed")
		return pawltest.ScriptedStep{Derive: func(c pawltest.ScriptedCall) pawltest.ScriptedStep {
			return pawltest.ScriptedText("answer to " + c.Input[0].Raw())
		}}
	}})
	res, err := m.Call(t.Context(), hello, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := item.MessageItem("", "answer to "+item.UserText("hello").Raw()); res.Items[0] != want {
		t.Errorf("got %s, want %s", res.Items[0], want)
	}
}

func TestScriptedStream(t *testing.T) {
	refusal, err := item.ParseString(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(item.ReasoningItem("rs_1", "think"),
		item.FunctionCallItem("fc_1", "c1", "add", `{"a":1}`), item.MessageItem("msg_1", "one two"), refusal))
	m.DeltaSize = 4
	shown, res, err := shownEvents(t, m, hello)
	if err != nil {
		t.Fatal(err)
	}
	type delta struct {
		Kind   model.EventKind
		Delta  string
		ItemID string
		Index  int
	}
	var deltas []delta
	for _, ev := range shown {
		if ev.Kind != model.EventRaw {
			deltas = append(deltas, delta{ev.Kind, ev.Delta, ev.ItemID, ev.OutputIndex})
		}
	}
	wantDeltas := []delta{
		{model.EventReasoningDelta, "thin", "rs_1", 0}, {model.EventReasoningDelta, "k", "rs_1", 0},
		{model.EventArgumentsDelta, `{"a"`, "fc_1", 1}, {model.EventArgumentsDelta, ":1}", "fc_1", 1},
		{model.EventTextDelta, "one ", "msg_1", 2}, {model.EventTextDelta, "two", "msg_1", 2},
		{model.EventRefusalDelta, "no", "", 3},
	}
	if diff := cmp.Diff(wantDeltas, deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	wantTypes := []string{
		"response.created", "response.in_progress",
		"response.output_item.added", "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta",
		"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.reasoning_summary_part.done", "response.output_item.done",
		"response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.delta",
		"response.function_call_arguments.done", "response.output_item.done",
		"response.output_item.added", "response.content_part.added", "response.output_text.delta", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done",
		"response.output_item.added", "response.content_part.added", "response.refusal.delta", "response.refusal.done",
		"response.content_part.done", "response.output_item.done",
		"response.completed",
	}
	if diff := cmp.Diff(wantTypes, types(shown)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if last := string(shown[len(shown)-1].Raw); !strings.Contains(last, `"output":[`+res.Items[0].Raw()) {
		t.Errorf("the last event does not carry the output: %s", last)
	}
}

func TestScriptedStreamOfItsOwnEvents(t *testing.T) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedStep{Output: []item.Item{item.MessageItem("", "x")},
		Events: []model.Event{{Type: "custom", Raw: []byte("1")}, {Kind: model.EventTextDelta, Type: "d", Delta: "x"}}})
	shown, res, err := shownEvents(t, m, hello)
	if err != nil || len(res.Items) != 1 {
		t.Fatalf("response %+v, error %v", res, err)
	}
	want := []model.Event{{Type: "custom", Raw: []byte("1")}, {Kind: model.EventTextDelta, Type: "d", Delta: "x"}}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestScriptedStreamAbandoned(t *testing.T) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("one"))
	n := 0
	_, err := m.Call(t.Context(), hello, func(*model.Event) bool { n++; return n < 3 })
	if !errors.Is(err, model.ErrAbandoned) || n != 3 {
		t.Errorf("error %v after %d events, want ErrAbandoned after 3", err, n)
	}
	if m.Calls()[0].Accepted {
		t.Error("a call that was abandoned counts as processed")
	}
}

func TestScriptedFaults(t *testing.T) {
	boom := errors.New("boom")
	message := []item.Item{item.MessageItem("msg_1", "x")}
	conversation := func() *model.Request {
		req := request(item.UserText("hello"))
		req.ConversationID = "conv"
		return req
	}
	for _, test := range []struct {
		name     string
		fault    pawltest.ScriptedFault
		blocking bool
		is       error
		events   int // shown
		kept     int // items in the conversation
	}{
		{"before", pawltest.ScriptedFault{Point: pawltest.FaultBefore, Err: boom}, false, boom, 0, 0},
		{"cut before", pawltest.ScriptedFault{Point: pawltest.FaultBefore, Cut: true}, false, io.ErrUnexpectedEOF, 0, 0},
		{"after", pawltest.ScriptedFault{Point: pawltest.FaultAfter, Err: boom}, true, boom, 0, 2},
		{"cut after", pawltest.ScriptedFault{Point: pawltest.FaultAfter, Cut: true}, true, io.ErrUnexpectedEOF, 0, 2},
		{"cut stream", pawltest.ScriptedFault{Point: pawltest.FaultMidStream, Events: 4, Cut: true}, false, model.ErrStreamCut, 4, 0},
		{"cut stream, stored", pawltest.ScriptedFault{Point: pawltest.FaultMidStream, Events: 4, Cut: true, Stored: true}, false, model.ErrStreamCut, 4, 2},
		{"cut body", pawltest.ScriptedFault{Point: pawltest.FaultMidStream, Events: 4, Cut: true}, true, model.ErrStreamCut, 0, 0},
		{"error in stream", pawltest.ScriptedFault{Point: pawltest.FaultMidStream, Events: 1, Err: boom}, false, boom, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := pawltest.NewScriptedModel(pawltest.ScriptedStep{Output: message, Fault: &test.fault})
			m.ServerState = true
			events := 0
			emit := func(*model.Event) bool { events++; return true }
			if test.blocking {
				emit = nil
			}
			_, err := m.Call(t.Context(), conversation(), emit)
			if !errors.Is(err, test.is) {
				t.Errorf("error %v, want %v", err, test.is)
			}
			var failed *model.Error
			if test.fault.Cut && (!errors.As(err, &failed) || !failed.Retryable || failed.Delivery != model.DeliveryUnknown) {
				t.Errorf("error %#v, want one that may be repeated and knows nothing", err)
			}
			if events != test.events {
				t.Errorf("%d events were shown, want %d", events, test.events)
			}
			tail, err := m.ConversationTail(t.Context(), "conv", 10)
			if err != nil || len(tail) != test.kept {
				t.Errorf("the conversation keeps %d items, want %d (%v)", len(tail), test.kept, err)
			}
			if got := m.Calls()[0].Accepted; got != (test.kept > 0) {
				t.Errorf("Accepted is %v", got)
			}
			m.AssertComplete(t)
		})
	}
}

func TestScriptedFaultThatCannotStrike(t *testing.T) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedStep{Fault: &pawltest.ScriptedFault{Point: pawltest.FaultMidStream, Events: 99, Cut: true}})
	if _, _, err := shownEvents(t, m, hello); err == nil || !strings.Contains(err.Error(), "did not strike") {
		t.Errorf("error %v, want that the fault did not strike", err)
	}
}

func TestScriptedDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pawltest.NewScriptedModel(
			pawltest.ScriptedStep{Fault: &pawltest.ScriptedFault{Delay: time.Hour}},
			pawltest.ScriptedStep{Fault: &pawltest.ScriptedFault{Point: pawltest.FaultAfter, Hold: make(chan struct{})}})
		start := time.Now()
		if _, err := m.Call(t.Context(), hello, nil); err != nil || time.Since(start) != time.Hour {
			t.Errorf("error %v after %s, want none after an hour", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start = time.Now()
		_, err := m.Call(ctx, hello, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("error %v after %s, want the context's after a minute", err, time.Since(start))
		}
		if _, err := m.Call(ctx, hello, nil); !errors.Is(err, context.DeadlineExceeded) || len(m.Calls()) != 2 {
			t.Errorf("error %v, %d calls; a context that is done makes no call", err, len(m.Calls()))
		}
	})
}

func TestScriptedConversation(t *testing.T) {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("one"), pawltest.ScriptedText("two"), pawltest.ScriptedText("three"))
	m.ServerState = true
	for _, id := range []string{"a", "b", "a"} {
		req := request(item.UserText("to " + id))
		req.ConversationID = id
		if _, err := m.Call(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		id    string
		limit int
		want  []item.Item
	}{
		{"a", 10, []item.Item{item.UserText("to a"), item.MessageItem("", "one"), item.UserText("to a"), item.MessageItem("", "three")}},
		{"a", 1, []item.Item{item.MessageItem("", "three")}},
		{"a", 0, nil},
		{"c", 10, nil},
	} {
		got, err := m.ConversationTail(t.Context(), test.id, test.limit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the newest %d of %q (-want +got):\n%s", test.limit, test.id, diff)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.ConversationTail(ctx, "a", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}
