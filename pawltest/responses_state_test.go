package pawltest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// historian answers "ok" and remembers the history of every request.
func historian() (*pawltest.ResponsesOptions, *[]string) {
	var seen []string
	return &pawltest.ResponsesOptions{Respond: func(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
		seen = seen[:0]
		for _, it := range r.History() {
			seen = append(seen, it.Raw())
		}
		return pawltest.ReplyText("ok")
	}}, &seen
}

func TestChain(t *testing.T) {
	opts, seen := historian()
	a := newAPI(t, opts)
	odd := `{"role":"user","content":"a","x-note":1.0}`
	a.create(`"input":[` + odd + `]`)
	a.create(`"input":[{"role":"user","content":"b"}],"previous_response_id":"resp_1"`)
	a.create(`"input":[{"role":"user","content":"c"}],"previous_response_id":"resp_1"`)
	a.create(`"input":[{"role":"user","content":"d"}],"previous_response_id":"resp_3"`)
	want := []string{
		odd, ok(a, 1), `{"role":"user","content":"c"}`, ok(a, 3), `{"role":"user","content":"d"}`,
	}
	if diff := cmp.Diff(want, *seen); diff != "" {
		t.Errorf("history of the branch (-want +got):\n%s", diff)
	}
	reqs := a.s.Requests()
	if got := len(reqs[3].History()); got != 5 {
		t.Errorf("recorded history has %d items, want 5", got)
	}
	if diff := cmp.Diff([]item.Item{item.FromTrusted(`{"role":"user","content":"d"}`)}, reqs[3].Input); diff != "" {
		t.Errorf("own input (-want +got):\n%s", diff)
	}
}

// ok is the message of the n-th response as the server made it.
func ok(a api, n int) string {
	a.t.Helper()
	body := a.want(200, http.MethodGet, fmt.Sprintf("/responses/resp_%d", n), "")
	_, rest, _ := strings.Cut(body, `"output":[`)
	output, _, _ := strings.Cut(rest, `],"usage"`)
	return output
}

func TestStoredResponses(t *testing.T) {
	opts, _ := historian()
	a := newAPI(t, opts)
	created := a.create(`"input":"a"`)
	if got := a.want(200, http.MethodGet, "/responses/resp_1", ""); got != created {
		t.Errorf("read back %s, want %s", got, created)
	}
	a.create(`"input":"b","previous_response_id":"resp_1"`)
	want := `{"object":"list","data":[{"id":"msg_3","type":"message","status":"completed","role":"user",` +
		`"content":[{"type":"input_text","text":"b"}]}],"first_id":"msg_3","last_id":"msg_3","has_more":false}`
	for range 2 { // the ids stay
		if got := a.want(200, http.MethodGet, "/responses/resp_2/input_items", ""); got != want {
			t.Errorf("input items = %s, want %s", got, want)
		}
	}
	if got := a.want(200, http.MethodDelete, "/responses/resp_1", ""); got != `{"id":"resp_1","object":"response","deleted":true}` {
		t.Errorf("delete answered %s", got)
	}
	want = refusalBody("Response with id 'resp_1' not found.", "", "")
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if got := a.want(404, method, "/responses/resp_1", ""); got != want {
			t.Errorf("%s answered %s", method, got)
		}
	}
	a.want(400, http.MethodPost, "/responses", `{"model":"m","input":"c","previous_response_id":"resp_1"}`)
	a.create(`"input":"c","previous_response_id":"resp_2"`)
	if got := len(a.s.Requests()[3].History()); got != 5 {
		t.Errorf("the chain over the deleted response has %d items, want 5", got)
	}
}

func TestResponsesThatCannotBeContinued(t *testing.T) {
	for name, reply := range map[string]pawltest.ResponsesReply{
		"failed": {Status: "failed"},
		"no id":  {NoID: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, script(reply))
			a.create(`"input":"a"`)
			got := a.want(400, http.MethodPost, "/responses", `{"model":"m","input":"b","previous_response_id":"resp_1"}`)
			want := refusalBody("Previous response with id 'resp_1' not found.", "previous_response_id",
				"previous_response_not_found")
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestConversation(t *testing.T) {
	opts, seen := historian()
	a := newAPI(t, opts)
	created := a.want(200, http.MethodPost, "/conversations",
		`{"metadata":{"topic":"x"},"items":[{"role":"system","content":"be brief"}]}`)
	if !strings.HasPrefix(created, `{"id":"conv_1","object":"conversation","created_at":`) ||
		!strings.HasSuffix(created, `,"metadata":{"topic":"x"}}`) {
		t.Fatalf("created %s", created)
	}
	a.create(`"input":"a","conversation":"conv_1"`)
	a.create(`"input":"b","conversation":{"id":"conv_1"}`)
	system := `{"id":"msg_1","type":"message","status":"completed","role":"system","content":[{"type":"input_text","text":"be brief"}]}`
	first := `{"id":"msg_2","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"a"}]}`
	answer := `{"id":"msg_3","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[]}]}`
	if diff := cmp.Diff([]string{system, first, answer, `{"role":"user","content":"b"}`}, *seen); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}

	if got := a.want(200, http.MethodGet, "/conversations/conv_1/items/msg_2", ""); got != first {
		t.Errorf("item = %s", got)
	}
	a.want(200, http.MethodDelete, "/conversations/conv_1/items/msg_2", "")
	a.want(404, http.MethodGet, "/conversations/conv_1/items/msg_2", "")
	a.want(404, http.MethodDelete, "/conversations/conv_1/items/msg_2", "")
	updated := a.want(200, http.MethodPost, "/conversations/conv_1", `{"metadata":{}}`)
	if got := a.want(200, http.MethodGet, "/conversations/conv_1", ""); got != updated || !strings.HasSuffix(got, `"metadata":{}}`) {
		t.Errorf("conversation = %s, want %s", got, updated)
	}
	gone := a.want(200, http.MethodDelete, "/conversations/conv_1", "")
	if gone != `{"id":"conv_1","object":"conversation.deleted","deleted":true}` {
		t.Errorf("delete answered %s", gone)
	}
	want := refusalBody("Conversation with id 'conv_1' not found.", "conversation", "")
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if got := a.want(404, method, "/conversations/conv_1", ""); got != want {
			t.Errorf("%s answered %s", method, got)
		}
	}
}

func TestConversationItemPages(t *testing.T) {
	a := newAPI(t, nil)
	a.want(200, http.MethodPost, "/conversations", "")
	for range 3 { // 45 items, msg_1 to msg_45
		items := strings.Repeat(user+",", 14) + user
		a.want(200, http.MethodPost, "/conversations/conv_1/items", `{"items":[`+items+`]}`)
	}
	rows := []struct {
		query, first, last string
		count              int
		more               bool
	}{
		{query: "", first: "msg_45", last: "msg_26", count: 20, more: true},
		{query: "?order=asc", first: "msg_1", last: "msg_20", count: 20, more: true},
		{query: "?order=asc&after=msg_40", first: "msg_41", last: "msg_45", count: 5},
		{query: "?after=msg_26&limit=25", first: "msg_25", last: "msg_1", count: 25},
		{query: "?limit=100", first: "msg_45", last: "msg_1", count: 45},
		{query: "?limit=1", first: "msg_45", last: "msg_45", count: 1, more: true},
	}
	for _, r := range rows {
		body := a.want(200, http.MethodGet, "/conversations/conv_1/items"+r.query, "")
		want := fmt.Sprintf(`,"first_id":"%s","last_id":"%s","has_more":%v}`, r.first, r.last, r.more)
		if !strings.HasSuffix(body, want) || strings.Count(body, `"role"`) != r.count {
			t.Errorf("%q: %d items, ends %s; want %d, %s", r.query, strings.Count(body, `"role"`), body[len(body)-len(want):],
				r.count, want)
		}
	}
	empty := a.want(200, http.MethodGet, "/conversations/conv_1/items?after=msg_1", "")
	if empty != `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}` {
		t.Errorf("behind the last item: %s", empty)
	}
	a.want(404, http.MethodGet, "/conversations/conv_1/items?after=msg_99", "")
	a.want(400, http.MethodGet, "/conversations/conv_1/items?limit=101", "")
	a.want(400, http.MethodGet, "/conversations/conv_1/items?order=up", "")
}

func TestConversationRefusals(t *testing.T) {
	rows := []struct {
		name, path, body string
		status           int
		want             string
	}{
		{name: "no JSON", path: "/conversations", body: `[`, status: 400, want: refusalBody(
			"We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "+
				"correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)", "", "")},
		{name: "unknown parameter", path: "/conversations", body: `{"name":"x"}`, status: 400,
			want: refusalBody("Unknown parameter: 'name'.", "name", "unknown_parameter")},
		{name: "items missing", path: "/conversations/conv_1/items", body: `{}`, status: 400,
			want: refusalBody("Missing required parameter: 'items'.", "items", "missing_required_parameter")},
		{name: "metadata missing", path: "/conversations/conv_1", body: `{}`, status: 400,
			want: refusalBody("Missing required parameter: 'metadata'.", "metadata", "missing_required_parameter")},
		{name: "too many items", path: "/conversations/conv_1/items",
			body: `{"items":[` + strings.Repeat(user+",", 20) + user + `]}`, status: 400,
			want: refusalBody("Invalid 'items': array too long. Expected an array with maximum length 20, but got an array "+
				"with length 21 instead.", "items", "array_above_max_length")},
		{name: "item there already", path: "/conversations/conv_1/items",
			body: `{"items":[{"id":"msg_1","role":"user","content":"x"}]}`, status: 400,
			want: refusalBody("Duplicate item found with id msg_1. Remove duplicate items from your input and try again.",
				"items", "")},
		{name: "id of another kind", path: "/conversations/conv_1/items",
			body: `{"items":[{"id":"fc_1","role":"user","content":"x"}]}`, status: 400,
			want: refusalBody("Invalid 'items[0].id': 'fc_1'. Expected an ID that begins with 'msg'.", "items[0].id",
				"invalid_value")},
		{name: "unknown conversation", path: "/conversations/conv_9/items", body: `{"items":[` + user + `]}`, status: 404,
			want: refusalBody("Conversation with id 'conv_9' not found.", "conversation", "")},
		{name: "wrong prefix", path: "/conversations/resp_9", body: `{"metadata":{}}`, status: 400,
			want: refusalBody("Invalid 'conversation_id': 'resp_9'. Expected an ID that begins with 'conv'.",
				"conversation_id", "invalid_value")},
		{name: "unknown URL", path: "/threads", body: `{}`, status: 404,
			want: refusalBody("Invalid URL (POST /v1/threads)", "", "")},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			a := newAPI(t, nil)
			a.want(200, http.MethodPost, "/conversations", `{"items":[`+user+`]}`)
			if got := a.want(r.status, http.MethodPost, r.path, r.body); got != r.want {
				t.Errorf("got  %s\nwant %s", got, r.want)
			}
			if others := a.s.OtherRequests(); len(others) != 2 || others[1].Status != r.status {
				t.Errorf("recorded %d requests, the last with status %d", len(others), others[len(others)-1].Status)
			}
		})
	}
}

// TestConversationFilledByHand: a client may keep its own history in a conversation, piece by piece; a response on it is
// refused while a call is open.
func TestConversationFilledByHand(t *testing.T) {
	a := newAPI(t, talker("ok"))
	a.want(200, http.MethodPost, "/conversations", `{"items":[`+user+`,`+callA+`]}`)
	got := a.want(400, http.MethodPost, "/responses", `{"model":"m","input":"x","conversation":"conv_1"}`)
	if want := refusalBody("No tool output found for function call call_A.", "input", ""); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a.want(200, http.MethodPost, "/conversations/conv_1/items", `{"items":[`+outputA+`]}`)
	a.create(`"input":"x","conversation":"conv_1"`)
	a.want(200, http.MethodDelete, "/conversations/conv_1/items/fco_1", "")
	got = a.want(400, http.MethodPost, "/responses", `{"model":"m","input":"x","conversation":"conv_1"}`)
	if want := refusalBody("No tool output found for function call call_A.", "input", ""); got != want {
		t.Errorf("after deleting the output: got %s, want %s", got, want)
	}
}

func TestConversationTakesCompletedResponsesOnly(t *testing.T) {
	for _, status := range []string{"incomplete", "failed"} {
		t.Run(status, func(t *testing.T) {
			a := newAPI(t, script(pawltest.ResponsesReply{Status: status, Output: pawltest.ReplyText("half").Output}))
			a.want(200, http.MethodPost, "/conversations", "")
			a.create(`"input":"x","conversation":"conv_1"`)
			items := a.want(200, http.MethodGet, "/conversations/conv_1/items", "")
			if items != `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}` {
				t.Errorf("items = %s", items)
			}
		})
	}
}

// TestChainFromConversation: a response made on a conversation is continued with all that the conversation held then.
func TestChainFromConversation(t *testing.T) {
	opts, seen := historian()
	a := newAPI(t, opts)
	a.want(200, http.MethodPost, "/conversations", `{"items":[`+user+`]}`)
	a.create(`"input":"a","conversation":"conv_1"`)
	a.create(`"input":"b","conversation":"conv_1"`)
	a.create(`"input":"c","previous_response_id":"resp_1"`)
	if got := len(*seen); got != 4 { // go on, a, ok, c
		t.Errorf("history = %d items: %v", got, *seen)
	}
}

func TestUsageCountsTheWholeHistory(t *testing.T) {
	a := newAPI(t, talker("ok"))
	a.create(`"input":[{"role":"user","content":"aaaaaaa"}]`) // 36 bytes
	body := a.create(`"input":[{"role":"user","content":"aaaaaaa"}],"previous_response_id":"resp_1","instructions":"12345678"`)
	output := len(ok(a, 1))
	want := fmt.Sprintf(`"usage":{"input_tokens":%d,`, (36+output+36+8)/4)
	if !strings.Contains(body, want) {
		t.Errorf("usage in %s, want %s", body, want)
	}
}
