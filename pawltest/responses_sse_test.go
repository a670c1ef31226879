package pawltest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

const streamed = `{"model":"gpt-test","input":"hello","stream":true}`

func TestStreamOrder(t *testing.T) {
	rows := []struct {
		name  string
		reply pawltest.ResponsesReply
		want  []string // between in_progress and the terminal event
		end   string
	}{
		{name: "nothing", end: "response.completed"},
		{name: "text in deltas", reply: pawltest.ReplyText("hello, you"), want: []string{
			"response.output_item.added", "response.content_part.added",
			"response.output_text.delta", "response.output_text.delta", "response.output_text.done",
			"response.content_part.done", "response.output_item.done",
		}, end: "response.completed"},
		{name: "reasoning, then two calls", reply: pawltest.ReplyItems(
			item.ReasoningItem("", "hm"), call("", `{}`), call("", `{"a":1}`)), want: []string{
			"response.output_item.added", "response.reasoning_summary_part.added",
			"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
			"response.reasoning_summary_part.done", "response.output_item.done",
			"response.output_item.added", "response.function_call_arguments.delta",
			"response.function_call_arguments.done", "response.output_item.done",
			"response.output_item.added", "response.function_call_arguments.delta",
			"response.function_call_arguments.done", "response.output_item.done",
		}, end: "response.completed"},
		{name: "refusal", reply: pawltest.ReplyItems(item.FromTrusted(
			`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`)), want: []string{
			"response.output_item.added", "response.content_part.added", "response.refusal.delta",
			"response.refusal.done", "response.content_part.done", "response.output_item.done",
		}, end: "response.completed"},
		{name: "custom call", reply: pawltest.ReplyItems(item.FromTrusted(
			`{"type":"custom_tool_call","call_id":"call_1","name":"shell","input":"ls"}`)), want: []string{
			"response.output_item.added", "response.custom_tool_call_input.delta",
			"response.custom_tool_call_input.done", "response.output_item.done",
		}, end: "response.completed"},
		{name: "hosted call", reply: pawltest.ReplyItems(item.FromTrusted(
			`{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`)), want: []string{
			"response.output_item.added", "response.web_search_call.in_progress", "response.web_search_call.searching",
			"response.web_search_call.completed", "response.output_item.done",
		}, end: "response.completed"},
		{name: "unknown item", reply: pawltest.ReplyItems(item.FromTrusted(`{"type":"hologram","size":1e2}`)), want: []string{
			"response.output_item.added", "response.output_item.done",
		}, end: "response.completed"},
		{name: "incomplete", reply: pawltest.ResponsesReply{Status: "incomplete"}, end: "response.incomplete"},
		{name: "failed", reply: pawltest.ResponsesReply{Status: "failed"}, end: "response.failed"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			opts := script(r.reply)
			opts.DeltaSize = 7
			a := newAPI(t, opts)
			got := a.send(http.MethodPost, "/responses", streamed)
			if ct := got.header.Get("Content-Type"); ct != "text/event-stream; charset=utf-8" {
				t.Errorf("content type = %q", ct)
			}
			want := append([]string{"response.created", "response.in_progress"}, r.want...)
			if diff := cmp.Diff(append(want, r.end), kinds(got.body)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStreamBytes pins a whole stream but for the response objects, which TestResponseObject pins.
func TestStreamBytes(t *testing.T) {
	opts := script(pawltest.ReplyItems(call("call_a", `{"n":1}`), item.MessageItem("", "héllo")))
	opts.DeltaSize = 2
	a := newAPI(t, opts)
	body := a.send(http.MethodPost, "/responses", streamed).body
	var got []string
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		_, data, _ := strings.Cut(event, "\ndata: ")
		if !strings.Contains(data, `"response":`) {
			got = append(got, data)
		}
	}
	want := []string{
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"work","arguments":"","status":"in_progress"}}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":3,"item_id":"fc_1","output_index":0,"delta":"{\""}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":4,"item_id":"fc_1","output_index":0,"delta":"n\""}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":5,"item_id":"fc_1","output_index":0,"delta":":1"}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":6,"item_id":"fc_1","output_index":0,"delta":"}"}`,
		`{"type":"response.function_call_arguments.done","sequence_number":7,"item_id":"fc_1","output_index":0,"arguments":"{\"n\":1}"}`,
		`{"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"work","arguments":"{\"n\":1}","status":"completed"}}`,
		`{"type":"response.output_item.added","sequence_number":9,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","sequence_number":10,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":11,"item_id":"msg_1","output_index":1,"content_index":0,"logprobs":[],"delta":"h"}`,
		`{"type":"response.output_text.delta","sequence_number":12,"item_id":"msg_1","output_index":1,"content_index":0,"logprobs":[],"delta":"é"}`,
		`{"type":"response.output_text.delta","sequence_number":13,"item_id":"msg_1","output_index":1,"content_index":0,"logprobs":[],"delta":"ll"}`,
		`{"type":"response.output_text.delta","sequence_number":14,"item_id":"msg_1","output_index":1,"content_index":0,"logprobs":[],"delta":"o"}`,
		`{"type":"response.output_text.done","sequence_number":15,"item_id":"msg_1","output_index":1,"content_index":0,"logprobs":[],"text":"héllo"}`,
		`{"type":"response.content_part.done","sequence_number":16,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"héllo","annotations":[]}}`,
		`{"type":"response.output_item.done","sequence_number":17,"output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"héllo","annotations":[]}]}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestResponseObject(t *testing.T) {
	opts := script(
		pawltest.ReplyItems(item.FromTrusted(`{"type":"hologram","id":"holo_7","size":1.50e2,"note":"<&>"}`)),
		pawltest.ResponsesReply{Status: "incomplete", IncompleteReason: "content_filter", NoUsage: true},
		pawltest.ResponsesReply{
			NoID: true, Status: "failed", Failure: &pawltest.ResponsesError{Code: "rate_limit_exceeded", Message: "slow down"},
			Usage: &pawltest.ResponsesUsage{InputTokens: 10, CachedTokens: 4, OutputTokens: 5, ReasoningTokens: 2},
		},
	)
	opts.Now = func() time.Time { return time.Unix(1700000000, 0) }
	a := newAPI(t, opts)

	const tail = `"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},` +
		`"safety_identifier":null,"service_tier":"default","store":true,"temperature":1.0,` +
		`"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,` +
		`"truncation":"disabled","user":null,`
	const head = `"max_output_tokens":null,"max_tool_calls":null,"metadata":{},"model":"gpt-test",` +
		`"parallel_tool_calls":true,`
	want := `{"id":"resp_1","object":"response","created_at":1700000000,"status":"completed","error":null,` +
		`"incomplete_details":null,"background":false,"instructions":"be brief",` + head + tail +
		`"output":[{"type":"hologram","id":"holo_7","size":1.50e2,"note":"<&>"}],` +
		`"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":15,` +
		`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":25}}`
	if diff := cmp.Diff(want, a.create(`"input":"hello","instructions":"be brief"`)); diff != "" {
		t.Errorf("completed (-want +got):\n%s", diff)
	}
	want = `{"id":"resp_2","object":"response","created_at":1700000000,"status":"incomplete","error":null,` +
		`"incomplete_details":{"reason":"content_filter"},"background":false,"instructions":null,` + head + tail +
		`"output":[],"usage":null}`
	if diff := cmp.Diff(want, a.create(`"input":"hello"`)); diff != "" {
		t.Errorf("incomplete (-want +got):\n%s", diff)
	}
	want = `{"id":null,"object":"response","created_at":1700000000,"status":"failed",` +
		`"error":{"code":"rate_limit_exceeded","message":"slow down"},` +
		`"incomplete_details":null,"background":false,"instructions":null,` + head + tail +
		`"output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,` +
		`"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}}`
	if diff := cmp.Diff(want, a.create(`"input":"hello"`)); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}
