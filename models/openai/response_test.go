package openai_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

func TestBlockingResponse(t *testing.T) {
	const reasoning = `{"id":"rs_1", "type":"reasoning","summary":[ ],"encrypted_content":"gAAA=="}`
	const call = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"cents\":1e2}","call_id":"call_1","name":"refund","novel":{"a":1.50}}`
	const usage = `{"input_tokens":120,"input_tokens_details":{"cached_tokens":64},"output_tokens":18,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":138}`
	body := `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[` +
		reasoning + " , " + call + `],"usage":` + usage + `,"metadata":{}}`
	items := []item.Item{item.FromTrusted(reasoning), item.FromTrusted(call)}
	counts := model.Usage{InputTokens: 120, CachedInputTokens: 64, OutputTokens: 18, ReasoningTokens: 12, TotalTokens: 138}
	withRaw := counts
	withRaw.Raw = usage

	tests := []struct {
		name     string
		body     string
		preserve bool
		want     model.Response
	}{
		{"all of it", body, false, model.Response{ID: "resp_1", RequestID: "req_1", Items: items, Usage: &counts}},
		{"raw usage", body, true, model.Response{ID: "resp_1", RequestID: "req_1", Items: items, Usage: &withRaw}},
		{"no id, no usage", `{"id":null,"status":"completed","output":[],"usage":null}`, false, model.Response{RequestID: "req_1"}},
		{"names in other letters", `{"ID":"resp_2","id":"resp_1","Status":"failed","output":[{"Type":"function_call","type":"message","TYPE":1}],"Output":[],"Error":{"code":"x"}}`,
			false, model.Response{ID: "resp_1", RequestID: "req_1",
				Items: []item.Item{item.FromTrusted(`{"Type":"function_call","type":"message","TYPE":1}`)}}},
		{"the last of a name counts", `{"id":"resp_2","id":"resp_1","status":"failed","status":null,"output":[{"type":"message"}],"output":[],"error":{"code":"x"},"error":null,` +
			`"incomplete_details":{"reason":"y"},"incomplete_details":null,"usage":{"input_tokens":1},"usage":null}`,
			false, model.Response{ID: "resp_1", RequestID: "req_1"}},
		{"no status", `{"id":"resp_1","output":[]}`, false, model.Response{ID: "resp_1", RequestID: "req_1"}},
		{"usage without details", `{"status":"completed","output":[],"usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":null}}`,
			false, model.Response{RequestID: "req_1", Usage: &model.Usage{InputTokens: 1}}},
		{"usage that cannot be read", `{"status":"completed","output":[],"usage":{"input_tokens":"many"}}`, true,
			model.Response{RequestID: "req_1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t, answer(200, http.Header{"X-Request-Id": {"req_1"}}, tt.body))
			got, err := s.model().Call(t.Context(), settings(model.Settings{PreserveRawUsage: tt.preserve}), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

// A response that the server did not complete is an error, in blocking calls and in streams.
func TestUncompletedResponse(t *testing.T) {
	tests := []struct {
		name   string
		event  string
		object string
		want   model.Error
		cause  error
	}{
		{"failed", "response.failed", `{"id":"resp_1","status":"failed","output":[],"error":{"code":"server_error","message":"it broke"}}`,
			model.Error{Code: "server_error", Message: "it broke", Retryable: true}, model.ErrFailed},
		{"failed for good", "response.failed", `{"id":"resp_1","status":"failed","output":[],"error":{"code":"invalid_prompt","message":"no"}}`,
			model.Error{Code: "invalid_prompt", Message: "no"}, model.ErrFailed},
		{"incomplete", "response.incomplete",
			`{"id":"resp_1","status":"incomplete","output":[{"type":"function_call"}],"incomplete_details":{"reason":"max_output_tokens"}}`,
			model.Error{Code: "max_output_tokens"}, model.ErrIncomplete},
		{"cancelled", "response.completed", `{"id":"resp_1","status":"cancelled","output":[]}`,
			model.Error{Code: "cancelled"}, model.ErrIncomplete},
		{"queued", "response.completed", `{"id":"resp_1","status":"queued","output":[]}`,
			model.Error{Code: "queued"}, model.ErrIncomplete},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				s := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
					if stream {
						answerStream(frame(tt.event, `"response":`+tt.object))(w, r)
						return
					}
					answer(200, http.Header{"X-Request-Id": {"req_1"}}, tt.object)(w, r)
				})
				res, err := call(t.Context(), s.model(), request(), stream)
				if res != nil {
					t.Errorf("got a response: %+v", res)
				}
				wantModelError(t, err, tt.want, tt.cause)
			})
		}
	}
}

// wantModelError compares the error of a request that was answered with status 200 and request id req_1.
func wantModelError(t *testing.T, err error, want model.Error, cause error) {
	t.Helper()
	var got *model.Error
	if !errors.As(err, &got) {
		t.Fatalf("want a *model.Error, got %v", err)
	}
	want.Status, want.RequestID = 200, "req_1"
	if diff := cmp.Diff(want, *got, cmpopts.IgnoreFields(model.Error{}, "Err")); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	if !errors.Is(err, cause) {
		t.Errorf("want %v, got %v", cause, err)
	}
}

func TestMalformedResponse(t *testing.T) {
	tests := []struct{ name, body string }{
		{"empty", ""},
		{"no JSON", "<html></html>"},
		{"cut", `{"id":"resp_1","status":"completed","output":[{"type":"mess`},
		{"text after it", `{"id":"resp_1","status":"completed","output":[]}x`},
		{"another object", `{"message":"hello"}`},
		{"completed without output", `{"id":"resp_1","status":"completed"}`},
		{"item that is no object", `{"id":"resp_1","status":"completed","output":[1]}`},
		{"output that is no list", `{"id":"resp_1","status":"completed","output":{}}`},
		{"id that is no text", `{"id":7,"status":"completed","output":[]}`},
		{"deep", `{"output":[` + strings.Repeat(`{"a":`, 600) + `1` + strings.Repeat(`}`, 600) + `]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t, answer(200, http.Header{"X-Request-Id": {"req_1"}}, tt.body))
			_, err := s.model().Call(t.Context(), request(), nil)
			wantModelError(t, err, model.Error{}, model.ErrMalformed)
		})
	}
}

func TestResponseSizeIsBounded(t *testing.T) {
	tests := []struct {
		name string
		size int
		ok   bool
	}{{"largest", openai.MaxResponseSize, true}, {"too large", openai.MaxResponseSize + 1, false}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			padding := strings.Repeat(" ", tt.size-len(emptyResponse))
			s := newFakeServer(t, answer(200, http.Header{"X-Request-Id": {"req_1"}}, emptyResponse+padding))
			_, err := s.model().Call(t.Context(), request(), nil)
			if tt.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantModelError(t, err, model.Error{}, model.ErrMalformed)
		})
	}
}
