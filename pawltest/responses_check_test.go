package pawltest_test

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

const (
	callA      = `{"type":"function_call","call_id":"call_A","name":"work","arguments":"{}"}`
	outputA    = `{"type":"function_call_output","call_id":"call_A","output":"done"}`
	customB    = `{"type":"custom_tool_call","call_id":"call_B","name":"shell","input":"ls"}`
	customOutB = `{"type":"custom_tool_call_output","call_id":"call_B","output":"a.txt"}`
	askM       = `{"type":"mcp_approval_request","id":"mcpr_M","server_label":"crm","name":"drop","arguments":"{}"}`
	yesM       = `{"type":"mcp_approval_response","approval_request_id":"mcpr_M","approve":true}`
	user       = `{"role":"user","content":"go on"}`
)

// refusalBody is the service's error object; null is written for an empty param or code.
func refusalBody(message, param, code string) string {
	orNull := func(s string) string {
		if s == "" {
			return "null"
		}
		return `"` + s + `"`
	}
	return fmt.Sprintf(`{"error":{"message":"%s","type":"invalid_request_error","param":%s,"code":%s}}`,
		message, orNull(param), orNull(code))
}

// refusalRow is a request that must be refused.
type refusalRow struct {
	name   string
	before []string // members of requests that are accepted first
	body   string
	status int // 400 if 0
	want   string
}

func inputBody(items ...string) string {
	return `{"model":"gpt-test","input":[` + strings.Join(items, ",") + `]}`
}

func chainBody(previous string, items ...string) string {
	return `{"model":"gpt-test","previous_response_id":"` + previous + `","input":[` + strings.Join(items, ",") + `]}`
}

func duplicate(id string) string {
	return "Duplicate item found with id " + id + ". Remove duplicate items from your input and try again."
}

func notStored(id string) string {
	return "Item with id '" + id + "' not found. Items are not persisted when `store` is set to false. " +
		"Try again with `store` set to true, or remove this item from your input."
}

func noFollower(id string) string {
	return "Item '" + id + "' of type 'reasoning' was provided without its required following item."
}

// requestRefusals are about the request as a whole.
var requestRefusals = []refusalRow{
	{name: "body is no JSON", body: `{"model":`, want: refusalBody(
		"We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "+
			"correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)", "", "")},
	{name: "unknown parameter", body: `{"model":"m","input":"x","conversation_id":"conv_1"}`,
		want: refusalBody("Unknown parameter: 'conversation_id'.", "conversation_id", "unknown_parameter")},
	{name: "no model", body: `{"input":"x"}`,
		want: refusalBody("Missing required parameter: 'model'.", "model", "missing_required_parameter")},
	{name: "nothing to go on", body: `{"model":"m"}`, want: refusalBody(
		"One of 'input', 'previous_response_id', 'prompt' or 'conversation' must be provided.", "input",
		"missing_required_parameter")},
	{name: "input of another type", body: `{"model":"m","input":7}`,
		want: refusalBody("Invalid type for 'input': expected a string or an array of items.", "input", "invalid_type")},
	{name: "item of another type", body: inputBody(user, `"hello"`),
		want: refusalBody("Invalid type for 'input[1]': expected an object.", "input[1]", "invalid_type")},
	{name: "stream of another type", body: `{"model":"m","input":"x","stream":"yes"}`,
		want: refusalBody("Invalid type for 'stream': expected a boolean.", "stream", "invalid_type")},
	{name: "two pointers", body: `{"model":"m","input":"x","previous_response_id":"resp_1","conversation":"conv_1"}`,
		want: refusalBody("Mutually exclusive parameters: provide only one of 'previous_response_id' or 'conversation'.",
			"previous_response_id", "mutually_exclusive_parameters")},
	{name: "previous response with another prefix", body: chainBody("msg_1", user),
		want: refusalBody("Invalid 'previous_response_id': 'msg_1'. Expected an ID that begins with 'resp'.",
			"previous_response_id", "invalid_value")},
	{name: "previous response with odd characters", body: chainBody("resp.1", user),
		want: refusalBody("Invalid 'previous_response_id': 'resp.1'. Expected an ID that contains letters, numbers, "+
			"underscores, or dashes, but this value contained additional characters.",
			"previous_response_id", "invalid_value")},
	{name: "unknown previous response", body: chainBody("resp_404", user),
		want: refusalBody("Previous response with id 'resp_404' not found.", "previous_response_id",
			"previous_response_not_found")},
	{name: "previous response not stored", before: []string{`"input":"x","store":false`}, body: chainBody("resp_1", user),
		want: refusalBody("Previous response with id 'resp_1' not found.", "previous_response_id",
			"previous_response_not_found")},
	{name: "conversation with another prefix", body: `{"model":"m","input":"x","conversation":"resp_1"}`,
		want: refusalBody("Invalid 'conversation': 'resp_1'. Expected an ID that begins with 'conv'.",
			"conversation", "invalid_value")},
	{name: "unknown conversation", body: `{"model":"m","input":"x","conversation":{"id":"conv_404"}}`, status: 404,
		want: refusalBody("Conversation with id 'conv_404' not found.", "conversation", "")},
}

// itemRefusals are about single items.
var itemRefusals = []refusalRow{
	{name: "item without type", body: inputBody(`{"name":"x"}`),
		want: refusalBody("Missing required parameter: 'input[0].type'.", "input[0].type", "missing_required_parameter")},
	{name: "call without call id", body: inputBody(user, `{"type":"function_call","name":"work","arguments":"{}"}`),
		want: refusalBody("Missing required parameter: 'input[1].call_id'.", "input[1].call_id",
			"missing_required_parameter")},
	{name: "output without output", body: inputBody(callA, `{"type":"function_call_output","call_id":"call_A"}`),
		want: refusalBody("Missing required parameter: 'input[1].output'.", "input[1].output",
			"missing_required_parameter")},
	{name: "reasoning without summary", body: inputBody(`{"type":"reasoning","id":"rs_9","encrypted_content":"e"}`),
		want: refusalBody("Missing required parameter: 'input[0].summary'.", "input[0].summary",
			"missing_required_parameter")},
	{name: "approval without a verdict", body: inputBody(askM, `{"type":"mcp_approval_response","approval_request_id":"mcpr_M"}`),
		want: refusalBody("Missing required parameter: 'input[1].approve'.", "input[1].approve", "missing_required_parameter")},
	{name: "approval request without arguments", body: inputBody(`{"type":"mcp_approval_request","id":"mcpr_M","server_label":"crm","name":"drop"}`),
		want: refusalBody("Missing required parameter: 'input[0].arguments'.", "input[0].arguments", "missing_required_parameter")},
	{name: "message with the id of a call", body: inputBody(`{"id":"fc_9","role":"user","content":"x"}`),
		want: refusalBody("Invalid 'input[0].id': 'fc_9'. Expected an ID that begins with 'msg'.", "input[0].id",
			"invalid_value")},
	{name: "call with the id of a message",
		body: inputBody(`{"id":"msg_9","type":"function_call","call_id":"call_A","name":"work","arguments":"{}"}`, outputA),
		want: refusalBody("Invalid 'input[0].id': 'msg_9'. Expected an ID that begins with 'fc'.", "input[0].id",
			"invalid_value")},
	{name: "output with the id of a message",
		body: inputBody(callA, `{"id":"msg_9","type":"function_call_output","call_id":"call_A","output":"x"}`),
		want: refusalBody("Invalid 'input[1].id': 'msg_9'. Expected an ID that begins with 'fc'.", "input[1].id",
			"invalid_value")},
	{name: "reasoning with the id of a message", body: inputBody(`{"id":"msg_9","type":"reasoning","summary":[]}`),
		want: refusalBody("Invalid 'input[0].id': 'msg_9'. Expected an ID that begins with 'rs'.", "input[0].id",
			"invalid_value")},
}

// pairingRefusals are about calls and outputs.
var pairingRefusals = []refusalRow{
	{name: "call without output", body: inputBody(user, callA),
		want: refusalBody("No tool output found for function call call_A.", "input", "")},
	{name: "call without output on a chain", before: []string{`"input":"calls"`}, body: chainBody("resp_1", user),
		want: refusalBody("No tool output found for function call call_1.", "input", "")},
	{name: "one of two calls without output on a chain", before: []string{`"input":"two calls"`},
		body: chainBody("resp_1", `{"type":"function_call_output","call_id":"call_2","output":"x"}`),
		want: refusalBody("No tool output found for function call call_1.", "input", "")},
	{name: "custom call without output", body: inputBody(customB),
		want: refusalBody("No tool output found for custom tool call call_B.", "input", "")},
	{name: "output without call", body: inputBody(user, outputA),
		want: refusalBody("No tool call found for function call output with call_id call_A.", "input", "")},
	{name: "output before its call", body: inputBody(outputA, callA),
		want: refusalBody("No tool call found for function call output with call_id call_A.", "input", "")},
	{name: "second output", body: inputBody(callA, outputA, outputA),
		want: refusalBody("No tool call found for function call output with call_id call_A.", "input", "")},
	{name: "second output on a chain", before: []string{
		`"input":"calls"`,
		`"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"call_1","output":"x"}]`,
	}, body: chainBody("resp_2", `{"type":"function_call_output","call_id":"call_1","output":"x"}`),
		want: refusalBody("No tool call found for function call output with call_id call_1.", "input", "")},
	{name: "output of another kind", body: inputBody(callA, `{"type":"custom_tool_call_output","call_id":"call_A","output":"x"}`),
		want: refusalBody("No tool call found for custom tool call output with call_id call_A.", "input", "")},
	{name: "approval request without answer", body: inputBody(user, askM),
		want: refusalBody("No approval response found for approval request mcpr_M.", "input", "")},
	{name: "approval without request", body: inputBody(user, yesM),
		want: refusalBody("No approval request found with id 'mcpr_M'.", "input", "")},
	{name: "second approval", body: inputBody(askM, yesM, yesM),
		want: refusalBody("No approval request found with id 'mcpr_M'.", "input", "")},
	{name: "custom output without call", body: inputBody(user, customOutB),
		want: refusalBody("No tool call found for custom tool call output with call_id call_B.", "input", "")},
}

// duplicateRefusals are about ids that are there already, or are not.
var duplicateRefusals = []refusalRow{
	{name: "duplicate in the input", body: inputBody(`{"id":"msg_9","role":"user","content":"a"}`,
		`{"id":"msg_9","role":"user","content":"b"}`), want: refusalBody(duplicate("msg_9"), "input", "")},
	{name: "history sent again on a chain", before: []string{`"input":"calls"`},
		body: chainBody("resp_1", `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"work","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"call_1","output":"x"}`),
		want: refusalBody(duplicate("fc_1"), "input", "")},
	{name: "reference to an item of the chain", before: []string{`"input":"x"`},
		body: chainBody("resp_1", `{"type":"item_reference","id":"msg_1"}`),
		want: refusalBody(duplicate("msg_1"), "input", "")},
	{name: "reference to nothing", body: inputBody(`{"id":"msg_404"}`), status: 404,
		want: refusalBody(notStored("msg_404"), "input", "")},
}

// reasoningRefusals are about reasoning items.
var reasoningRefusals = []refusalRow{
	{name: "reasoning at the end", before: []string{`"input":"thinks"`},
		body: inputBody(`{"id":"rs_1","type":"reasoning","summary":[]}`),
		want: refusalBody(noFollower("rs_1"), "input", "")},
	{name: "reasoning before the user", before: []string{`"input":"thinks"`},
		body: inputBody(`{"id":"rs_1","type":"reasoning","summary":[]}`, user),
		want: refusalBody(noFollower("rs_1"), "input", "")},
	{name: "reasoning before the message without its id", before: []string{`"input":"thinks"`},
		body: inputBody(`{"id":"rs_1","type":"reasoning","summary":[]}`, `{"role":"assistant","content":"hm"}`),
		want: refusalBody(noFollower("rs_1"), "input", "")},
	{name: "encrypted reasoning before an output",
		body: inputBody(callA, `{"id":"rs_9","type":"reasoning","summary":[],"encrypted_content":"e"}`, outputA),
		want: refusalBody(noFollower("rs_9"), "input", "")},
	{name: "message without its reasoning", before: []string{`"input":"thinks"`},
		body: inputBody(`{"id":"msg_1","role":"assistant","content":"hm"}`),
		want: refusalBody("Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'.",
			"input", "")},
	{name: "reasoning that is not stored", before: []string{`"input":"thinks","store":false`}, status: 404,
		body: inputBody(`{"id":"rs_1","type":"reasoning","summary":[]}`, `{"id":"msg_1","role":"assistant","content":"hm"}`),
		want: refusalBody(notStored("rs_1"), "input", "")},
}

func TestRefusals(t *testing.T) {
	for _, group := range [][]refusalRow{
		requestRefusals, itemRefusals, pairingRefusals, duplicateRefusals, reasoningRefusals,
	} {
		for _, r := range group {
			t.Run(r.name, func(t *testing.T) { r.check(t) })
		}
	}
}

func (r refusalRow) check(t *testing.T) {
	a := newAPI(t, &pawltest.ResponsesOptions{Respond: byWord})
	for _, members := range r.before {
		a.create(members)
	}
	got := a.send(http.MethodPost, "/responses", r.body)
	status := cmp.Or(r.status, http.StatusBadRequest)
	if got.status != status || got.body != r.want {
		t.Errorf("got  %d %s\nwant %d %s", got.status, got.body, status, r.want)
	}
	last := a.s.Requests()[len(r.before)]
	if last.Accepted || last.Stored || last.Status != status || last.Refusal == nil {
		t.Errorf("recorded as %+v, want it refused", last)
	}
}

// byWord answers according to the user's word.
func byWord(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
	m, err := r.Input[0].Message()
	if err != nil {
		return pawltest.ReplyText("ok")
	}
	switch m.Text() {
	case "calls":
		return pawltest.ReplyItems(call("", "{}"))
	case "two calls":
		return pawltest.ReplyItems(call("", "{}"), call("", "{}"))
	case "thinks":
		return pawltest.ReplyItems(item.ReasoningItem("", "hm"), item.MessageItem("", "hm"))
	}
	return pawltest.ReplyText("ok")
}

// TestAccepted shows inputs that are near a refusal and must pass.
func TestAccepted(t *testing.T) {
	rows := []struct {
		name   string
		before []string
		body   string
	}{
		{name: "string", body: `"input":"hello"`},
		{name: "every item with its partner", body: `"input":[` + strings.Join([]string{user, callA, customB, outputA, customOutB}, ",") + `]`},
		{name: "call ids used again in a later turn", body: `"input":[` + strings.Join([]string{callA, outputA, callA, outputA}, ",") + `]`},
		{name: "stored reasoning with its message", before: []string{`"input":"thinks"`},
			body: `"input":[{"id":"rs_1","type":"reasoning","summary":[]},{"id":"msg_1","role":"assistant","content":"hm"},` + user + `]`},
		{name: "message without id or reasoning", before: []string{`"input":"thinks"`},
			body: `"input":[{"role":"assistant","content":"hm"},` + user + `]`},
		{name: "message on the chain of its reasoning", before: []string{`"input":"thinks"`},
			body: `"previous_response_id":"resp_1","input":[` + user + `]`},
		{name: "encrypted reasoning from elsewhere",
			body: `"input":[{"id":"rs_9","type":"reasoning","summary":[],"encrypted_content":"e"},` + callA + `,` + outputA + `]`},
		{name: "references to a call and its output by themselves", before: []string{`"input":"calls"`},
			body: `"input":[{"id":"fc_1"},{"type":"function_call_output","call_id":"call_1","output":"x"}]`},
		{name: "unknown item type", body: `"input":[{"type":"hologram","id":"holo_1"}]`},
		{name: "null for absent", body: `"input":"x","previous_response_id":null,"conversation":null,"stream":null,"store":null`},
		{name: "prompt instead of a model and input", body: `"model":null,"prompt":{"id":"pmpt_1"}`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			opts := &pawltest.ResponsesOptions{Respond: func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
				if len(r.Input) == 0 {
					return pawltest.ReplyText("ok")
				}
				return byWord(r)
			}}
			a := newAPI(t, opts)
			for _, members := range r.before {
				a.create(members)
			}
			a.create(r.body)
		})
	}
}

func TestKey(t *testing.T) {
	opts := talker("ok")
	opts.Key = "sk-right"
	a := newAPI(t, opts)
	got := a.send(http.MethodPost, "/responses", `{"model":"m","input":"x"}`)
	want := refusalBody("Incorrect API key provided.", "", "invalid_api_key")
	if got.status != http.StatusUnauthorized || got.body != want {
		t.Errorf("without key: %d %s, want 401 %s", got.status, got.body, want)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.s.URL()+"/responses",
		strings.NewReader(`{"model":"m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-right")
	resp, err := a.s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("with the key: %d, want 200", resp.StatusCode)
	}
}

// TestRefusalsOnConversation: a conversation is held to the same rules as a chain.
func TestRefusalsOnConversation(t *testing.T) {
	output := func(callID string) string {
		return `{"type":"function_call_output","call_id":"` + callID + `","output":"x"}`
	}
	rows := []struct{ name, input, want string }{
		{"only one of two outputs", output("call_2"), "No tool output found for function call call_1."},
		{"no output", user, "No tool output found for function call call_1."},
		{"output for a call that is not there", output("call_1") + "," + output("call_2") + "," + output("call_3"),
			"No tool call found for function call output with call_id call_3."},
		{"an output twice", output("call_1") + "," + output("call_2") + "," + output("call_1"),
			"No tool call found for function call output with call_id call_1."},
		{"history sent again", `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"work","arguments":"{}"}`,
			"Duplicate item found with id fc_1. Remove duplicate items from your input and try again."},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			a := newAPI(t, &pawltest.ResponsesOptions{Respond: byWord})
			a.want(200, http.MethodPost, "/conversations", "")
			a.create(`"input":"two calls","conversation":"conv_1"`)
			on := `"conversation":"conv_1","input":[`
			got := a.want(400, http.MethodPost, "/responses", `{"model":"m",`+on+r.input+`]}`)
			if want := refusalBody(r.want, "input", ""); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			a.create(on + output("call_1") + "," + output("call_2") + "]")
			got = a.want(400, http.MethodPost, "/responses", `{"model":"m",`+on+output("call_1")+`]}`)
			want := refusalBody("No tool call found for function call output with call_id call_1.", "input", "")
			if got != want {
				t.Errorf("an output in a later turn again: got %s, want %s", got, want)
			}
		})
	}
}
