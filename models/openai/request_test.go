package openai_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

const refundParameters = `{"type":"object","properties":{"order":{"type":"string"}},"required":["order"],"additionalProperties":false}`

func TestRequestBody(t *testing.T) {
	refund := model.Tool{Name: "refund", Description: "Refund an order.", Parameters: refundParameters, Strict: true}
	tests := []struct {
		name   string
		req    model.Request
		stream bool
		want   string
	}{{
		name: "nothing set",
		want: `{"model":"gpt-5.2","input":[]}`,
	}, {
		name:   "streamed",
		stream: true,
		want:   `{"model":"gpt-5.2","input":[],"stream":true}`,
	}, {
		name: "instructions and items, byte for byte",
		req: model.Request{
			Static: &model.Static{Instructions: "Settle \"refunds\" <now>.\n"},
			Input: model.NewInput(
				item.UserText("Refund order A-1"),
				item.FromTrusted(`{ "type":"function_call", "call_id":"c1","name":"refund","arguments":"{\"cents\":1.0}","new_field":1e2 }`),
				item.FunctionOutput("c1", "done"),
			),
		},
		want: `{"model":"gpt-5.2","instructions":"Settle \"refunds\" <now>.\n","input":[` +
			`{"role":"user","content":"Refund order A-1"},` +
			`{ "type":"function_call", "call_id":"c1","name":"refund","arguments":"{\"cents\":1.0}","new_field":1e2 },` +
			`{"type":"function_call_output","call_id":"c1","output":"done"}]}`,
	}, {
		name: "tools",
		req: model.Request{Static: &model.Static{Tools: []model.Tool{
			refund,
			{Name: "ping"},
			{Raw: `{"type": "web_search", "search_context_size": "low"}`},
		}}},
		want: `{"model":"gpt-5.2","tools":[` +
			`{"type":"function","name":"refund","description":"Refund an order.","parameters":` + refundParameters + `,"strict":true},` +
			`{"type":"function","name":"ping","parameters":null,"strict":false},` +
			`{"type": "web_search", "search_context_size": "low"}],"input":[]}`,
	}, {
		name: "structured output with verbosity",
		req: model.Request{Static: &model.Static{
			Output:   &model.OutputFormat{Name: "receipt", Schema: `{"type":"object"}`, Strict: true},
			Settings: &model.Settings{Verbosity: "low"},
		}},
		want: `{"model":"gpt-5.2","text":{"format":{"type":"json_schema","name":"receipt","schema":{"type":"object"},"strict":true},"verbosity":"low"},"input":[]}`,
	}, {
		name: "verbosity alone",
		req:  model.Request{Static: &model.Static{Settings: &model.Settings{Verbosity: "high"}}},
		want: `{"model":"gpt-5.2","text":{"verbosity":"high"},"input":[]}`,
	}, {
		name:   "previous response",
		req:    model.Request{Static: &model.Static{}, PreviousResponseID: "resp_0"},
		stream: true,
		want:   `{"model":"gpt-5.2","input":[],"previous_response_id":"resp_0","stream":true}`,
	}, {
		name: "conversation",
		req:  model.Request{Static: &model.Static{}, ConversationID: "conv_1"},
		want: `{"model":"gpt-5.2","input":[],"conversation":"conv_1"}`,
	}, {
		name: "another model",
		req:  model.Request{Static: &model.Static{Model: "gpt-5.2-mini"}},
		want: `{"model":"gpt-5.2-mini","input":[]}`,
	}, {
		name: "every setting",
		req: model.Request{Static: &model.Static{Tools: []model.Tool{refund}, Settings: &model.Settings{
			Temperature:          ptr(0.7),
			TopP:                 ptr(1.0),
			FrequencyPenalty:     ptr(0.5),
			PresencePenalty:      ptr(0.5),
			ToolChoice:           "required",
			ParallelToolCalls:    ptr(false),
			Truncation:           "auto",
			MaxTokens:            ptr(int64(500)),
			Reasoning:            &model.Reasoning{Effort: "low", Summary: "auto", Mode: "standard", Context: "all_turns"},
			Verbosity:            "medium",
			Metadata:             map[string]string{"tenant": "t1", "case": "a\"b"},
			Store:                ptr(false),
			PromptCacheRetention: "24h",
			PromptCacheKey:       "desk",
			PromptCacheOptions:   `{"ttl":"30m"}`,
			IncludeUsage:         ptr(true),
			ResponseInclude:      []string{"reasoning.encrypted_content", "reasoning.encrypted_content"},
			TopLogprobs:          ptr(int64(3)),
			ContextManagement:    `[{"type":"compaction","compact_threshold":1000}]`,
			ExtraBody:            map[string]string{"service_tier": `"flex"`, "max_tool_calls": "4"},
			Retry:                &model.Retry{MaxRetries: 5},
			Timeout:              1,
		}}},
		want: `{"model":"gpt-5.2","tools":[{"type":"function","name":"refund","description":"Refund an order.","parameters":` +
			refundParameters + `,"strict":true}],"tool_choice":"required","parallel_tool_calls":false,"text":{"verbosity":"medium"},` +
			`"reasoning":{"effort":"low","summary":"auto","mode":"standard","context":"all_turns"},"temperature":0.7,"top_p":1,` +
			`"max_output_tokens":500,"top_logprobs":3,"truncation":"auto","store":false,"metadata":{"case":"a\"b","tenant":"t1"},` +
			`"prompt_cache_key":"desk","prompt_cache_retention":"24h","prompt_cache_options":{"ttl":"30m"},` +
			`"context_management":[{"type":"compaction","compact_threshold":1000}],` +
			`"include":["reasoning.encrypted_content","message.output_text.logprobs"],"max_tool_calls":4,"service_tier":"flex","input":[]}`,
	}, {
		name: "parallel tool calls need tools",
		req:  model.Request{Static: &model.Static{Settings: &model.Settings{ParallelToolCalls: ptr(true)}}},
		want: `{"model":"gpt-5.2","input":[]}`,
	}, {
		name: "an empty reasoning object is not sent",
		req:  model.Request{Static: &model.Static{Settings: &model.Settings{Reasoning: &model.Reasoning{}}}},
		want: `{"model":"gpt-5.2","input":[]}`,
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stream := "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":" + emptyResponse + "}\n\n"
			s := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
				if tt.stream {
					answerStream(stream)(w, r)
					return
				}
				answer(200, nil, emptyResponse)(w, r)
			})
			if tt.req.Static == nil {
				tt.req.Static = &model.Static{}
			}
			m := s.model()
			for range 2 { // the second time the head comes from the cache
				if _, err := call(t.Context(), m, &tt.req, tt.stream); err != nil {
					t.Fatal(err)
				}
				r, body := s.last(t)
				if diff := cmp.Diff(tt.want, body); diff != "" {
					t.Errorf("body (-want +got):\n%s", diff)
				}
				if r.ContentLength != int64(len(tt.want)) {
					t.Errorf("Content-Length is %d, the body has %d bytes", r.ContentLength, len(tt.want))
				}
			}
		})
	}
}

// A static part may be shared by models, as for a fallback; each sends its own name.
func TestSharedStaticPart(t *testing.T) {
	s := newFakeServer(t, answer(200, nil, emptyResponse))
	client := s.client()
	req := request()
	for _, name := range []string{"gpt-5.2", "gpt-5.2-mini", "gpt-5.2"} {
		if _, err := client.Responses(name).Call(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if _, body := s.last(t); body != `{"model":"`+name+`","input":[]}` {
			t.Errorf("body for %s is %s", name, body)
		}
	}
}

func TestToolChoice(t *testing.T) {
	tools := []model.Tool{
		{Name: "refund", Parameters: `{}`},
		{Name: "image_generation", Parameters: `{}`}, // a function named like a hosted tool
		{Raw: `{"type":"web_search"}`},
		{Raw: `{"type":"image_generation"}`},
		{Raw: `{"type":"function","name":"lookup","parameters":{}}`},
		{Raw: `{"type":"custom","name":"query"}`},
		{Raw: `{"type":"mcp","server_label":"shop"}`},
		{Raw: `{"type":"tool_search"}`},
		{Raw: `{"type":"function","name":"later","defer_loading":true}`},
		{Raw: `{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find","defer_loading":true}]}`},
	}
	deferred := []model.Tool{tools[8], tools[9]}
	prompt := map[string]string{"prompt": `{"id":"pmpt_1"}`}
	tests := []struct {
		name     string
		settings model.Settings
		tools    []model.Tool
		want     string // the member's value, "" if it is left out
		problem  string
	}{
		{name: "unset", tools: tools},
		{name: "auto", settings: model.Settings{ToolChoice: "auto"}, tools: tools, want: `"auto"`},
		{name: "none", settings: model.Settings{ToolChoice: "none"}, want: `"none"`},
		{name: "required", settings: model.Settings{ToolChoice: "required"}, tools: tools, want: `"required"`},
		{name: "function", settings: model.Settings{ToolChoice: "refund"}, tools: tools, want: `{"type":"function","name":"refund"}`},
		{name: "raw function", settings: model.Settings{ToolChoice: "lookup"}, tools: tools, want: `{"type":"function","name":"lookup"}`},
		{name: "custom tool", settings: model.Settings{ToolChoice: "query"}, tools: tools, want: `{"type":"custom","name":"query"}`},
		{name: "hosted tool", settings: model.Settings{ToolChoice: "web_search"}, tools: tools, want: `{"type":"web_search"}`},
		{name: "a name wins over a type", settings: model.Settings{ToolChoice: "image_generation"}, tools: tools,
			want: `{"type":"function","name":"image_generation"}`},
		{name: "raw wins", settings: model.Settings{ToolChoice: "refund", ToolChoiceRaw: `{"type":"mcp","server_label":"shop"}`}, tools: tools,
			want: `{"type":"mcp","server_label":"shop"}`},
		{name: "raw is no JSON", settings: model.Settings{ToolChoiceRaw: `{`}, tools: tools,
			problem: "tool choice: invalid JSON at offset 1"},
		{name: "unknown", settings: model.Settings{ToolChoice: "nope"}, tools: tools, problem: `"nope" is not among the tools`},
		{name: "function is no name", settings: model.Settings{ToolChoice: "function"}, tools: tools, problem: `"function" is not among the tools`},
		{name: "mcp", settings: model.Settings{ToolChoice: "mcp"}, tools: tools, problem: "use ToolChoiceRaw"},
		{name: "tool search", settings: model.Settings{ToolChoice: "tool_search"}, tools: tools, problem: "tool_search cannot be chosen"},
		{name: "deferred", settings: model.Settings{ToolChoice: "later"}, tools: tools, problem: `"later" is deferred`},
		{name: "namespace", settings: model.Settings{ToolChoice: "crm"}, tools: tools, problem: `"crm" is a namespace`},
		{name: "in a namespace", settings: model.Settings{ToolChoice: "find"}, tools: tools, problem: `"find" is in the namespace "crm"`},
		{name: "required of deferred tools", settings: model.Settings{ToolChoice: "required"}, tools: deferred, problem: "all tools are deferred"},
		{name: "required of a stored prompt", settings: model.Settings{ToolChoice: "required", ExtraBody: prompt}, want: `"required"`},
		{name: "name of a stored prompt's tool", settings: model.Settings{ToolChoice: "refund", ExtraBody: prompt}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t, answer(200, nil, emptyResponse))
			req := request()
			req.Static.Settings = &tt.settings
			req.Static.Tools = tt.tools
			_, err := s.model().Call(t.Context(), req, nil)
			if tt.problem != "" {
				wantRefusedBeforeSending(t, s, err, tt.problem)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, body := s.last(t)
			_, after, found := strings.Cut(body, `"tool_choice":`)
			if tt.want == "" && found || !strings.HasPrefix(after, tt.want) {
				t.Errorf("want tool_choice %s in %s", tt.want, body)
			}
		})
	}
}

// With a stored prompt the model is the prompt's unless one is named.
func TestStoredPrompt(t *testing.T) {
	s := newFakeServer(t, answer(200, nil, emptyResponse))
	req := request()
	req.Static.Settings = &model.Settings{ParallelToolCalls: ptr(true), ExtraBody: map[string]string{"prompt": `{"id":"pmpt_1"}`}}
	if _, err := s.client().Responses("").Call(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if _, body := s.last(t); body != `{"parallel_tool_calls":true,"prompt":{"id":"pmpt_1"},"input":[]}` {
		t.Errorf("body is %s", body)
	}
	tools := []model.Tool{{Name: "refund", Parameters: `{}`}}
	for _, tt := range []struct {
		name  string
		tools []model.Tool
		want  string
	}{
		{"", nil, `{"prompt":{"id":"pmpt_2"},"input":[]}`},
		{"gpt", nil, `{"model":"gpt","prompt":{"id":"pmpt_2"},"input":[]}`},
		{"", tools, `{"prompt":{"id":"pmpt_2"},"tools":[{"type":"function","name":"refund","parameters":{},"strict":false}],` +
			`"tool_choice":{"type":"function","name":"refund"},"input":[]}`},
	} {
		s := newFakeServer(t, answer(200, nil, emptyResponse))
		req := request()
		req.Static = &model.Static{Prompt: `{"id":"pmpt_2"}`, Tools: tt.tools, Settings: &model.Settings{ToolChoice: "refund"}}
		if _, err := s.client().Responses(tt.name).Call(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if _, body := s.last(t); body != tt.want {
			t.Errorf("body is %s, want %s", body, tt.want)
		}
	}
	for prompt, problem := range map[string]string{`[]`: "prompt: ", `{`: "prompt: "} {
		s := newFakeServer(t, answer(200, nil, emptyResponse))
		req := request()
		req.Static = &model.Static{Prompt: prompt}
		_, err := s.model().Call(t.Context(), req, nil)
		wantRefusedBeforeSending(t, s, err, problem)
	}
	twice := newFakeServer(t, answer(200, nil, emptyResponse))
	req = request()
	req.Static = &model.Static{Prompt: `{"id":"pmpt_1"}`, Settings: &model.Settings{ExtraBody: map[string]string{"prompt": `{"id":"pmpt_2"}`}}}
	_, err := twice.model().Call(t.Context(), req, nil)
	wantRefusedBeforeSending(t, twice, err, `the member "prompt" is not the caller's to set`)
}

func TestRefusedBeforeSending(t *testing.T) {
	tests := []struct {
		name    string
		req     *model.Request
		problem string
	}{
		{"no request", nil, "a request needs its static part"},
		{"no static part", &model.Request{}, "a request needs its static part"},
		{"two continuations", &model.Request{Static: &model.Static{}, PreviousResponseID: "resp_1", ConversationID: "conv_1"},
			"exclude each other"},
		{"tool without a name", static(&model.Static{Tools: []model.Tool{{Parameters: `{}`}}}), "tool 1 (): a function needs a name"},
		{"tool parameters", static(&model.Static{Tools: []model.Tool{{Name: "f", Parameters: `[]`}}}), "tool 1 (f): parameters: "},
		{"raw tool", static(&model.Static{Tools: []model.Tool{{Raw: `{"type":`}}}), "tool 1 (): invalid JSON at offset 8"},
		{"output without a name", static(&model.Static{Output: &model.OutputFormat{Schema: `{}`}}), "a schema needs a name"},
		{"output without a schema", static(&model.Static{Output: &model.OutputFormat{Name: "x"}}), "output format: schema: "},
		{"temperature", settings(model.Settings{Temperature: ptr(math.NaN())}), "temperature is not a finite number"},
		{"top_p", settings(model.Settings{TopP: ptr(math.Inf(1))}), "top_p is not a finite number"},
		{"usage", settings(model.Settings{IncludeUsage: ptr(false)}), "usage cannot be left out"},
		{"cache options", settings(model.Settings{PromptCacheOptions: `1`}), "prompt cache options: "},
		{"context management", settings(model.Settings{ContextManagement: `[`}), "context management: "},
		{"header name", settings(model.Settings{ExtraHeaders: map[string]string{"a b": "c"}}), `header name "a b" is invalid`},
		{"header value", settings(model.Settings{ExtraHeaders: map[string]string{"X-A": "secret\r\nX-B: c"}}), "value of header X-A is invalid"},
		{"extra body clash", settings(model.Settings{Temperature: ptr(1.0), ExtraBody: map[string]string{"temperature": "2"}}),
			`the member "temperature" is not the caller's to set`},
		{"extra body input", settings(model.Settings{ExtraBody: map[string]string{"input": "[]"}}), `"input" is not the caller's to set`},
		{"extra body stream", settings(model.Settings{ExtraBody: map[string]string{"stream": "true"}}), `"stream" is not the caller's to set`},
		{"extra body continuation", settings(model.Settings{ExtraBody: map[string]string{"conversation": `"c"`}}), `"conversation" is not`},
		{"extra body background", settings(model.Settings{ExtraBody: map[string]string{"background": "true"}}), `"background" is not`},
		{"extra body value", settings(model.Settings{ExtraBody: map[string]string{"user": "bob"}}), `member "user": invalid JSON`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t, answer(200, nil, emptyResponse))
			_, err := s.model().Call(t.Context(), tt.req, nil)
			wantRefusedBeforeSending(t, s, err, tt.problem)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows a header's value: %v", err)
			}
		})
	}
	t.Run("no model", func(t *testing.T) {
		s := newFakeServer(t, answer(200, nil, emptyResponse))
		_, err := s.client().Responses("").Call(t.Context(), request(), nil)
		wantRefusedBeforeSending(t, s, err, "no model name")
	})
}

func static(s *model.Static) *model.Request {
	return &model.Request{Static: s}
}

func settings(s model.Settings) *model.Request {
	return &model.Request{Static: &model.Static{Settings: &s}}
}

func wantRefusedBeforeSending(t *testing.T, s *fakeServer, err error, problem string) {
	t.Helper()
	if n := s.count(); n != 0 {
		t.Errorf("the server got %d requests", n)
	}
	var failed *model.Error
	if !errors.As(err, &failed) {
		t.Fatalf("want a *model.Error, got %v", err)
	}
	if failed.Delivery != model.DeliveryRefused || failed.Retryable || failed.Status != 0 {
		t.Errorf("want a final refusal without status, got %+v", failed)
	}
	if text := err.Error(); !strings.HasPrefix(text, "pawl: ") || !strings.Contains(text, problem) {
		t.Errorf("want %q in %q", problem, text)
	}
}

func TestExtraHeadersAndQuery(t *testing.T) {
	s := newFakeServer(t, answer(200, nil, emptyResponse))
	req := settings(model.Settings{
		ExtraHeaders: map[string]string{"X-Tenant": "t1", "User-Agent": "desk/1"},
		ExtraQuery:   map[string]string{"api-version": "v 1"},
	})
	if _, err := s.model().Call(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	r, _ := s.last(t)
	if got := r.RequestURI; got != "/v1/responses?api-version=v+1" {
		t.Errorf("request URI is %s", got)
	}
	if got := r.Header.Get("X-Tenant"); got != "t1" {
		t.Errorf("X-Tenant is %q", got)
	}
	if got := r.Header.Get("User-Agent"); got != "desk/1" {
		t.Errorf("User-Agent is %q", got)
	}
}
