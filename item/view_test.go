package item_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
)

func TestMessage(t *testing.T) {
	refusal, err := item.ParsePart([]byte(`{"type":"refusal","refusal":"I cannot "}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		raw           string
		want          item.Message
		text, refusal string
	}{
		{`{"role":"user","content":"hi"}`, item.Message{Role: "user", Content: []item.Part{item.InputText("hi")}}, "hi", ""},
		{`{"content":"hi","role":"assistant"}`, item.Message{Role: "assistant", Content: []item.Part{item.OutputText("hi")}}, "hi", ""},
		{`{"role":"user"}`, item.Message{Role: "user"}, "", ""},
		{`{"role":"user","content":null}`, item.Message{Role: "user"}, "", ""},
		{`{"role":"user","content":[]}`, item.Message{Role: "user"}, "", ""},
		{
			`{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"final_answer",` +
				`"content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"I cannot "},{"type":"output_text","text":"b\n"}]}`,
			item.Message{
				ID: "msg_1", Role: "assistant", Status: "completed", Phase: "final_answer",
				Content: []item.Part{item.OutputText("a"), refusal, mustPart(t, `{"type":"output_text","text":"b\n"}`)},
			},
			"ab\n", "I cannot ",
		},
		{`{"role":"user","content":["x"],"content":"last counts"}`,
			item.Message{Role: "user", Content: []item.Part{item.InputText("last counts")}}, "last counts", ""},
	}
	for _, tt := range tests {
		got, err := mustParse(t, tt.raw).Message()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: Message() error %v (-want +got):\n%s", tt.raw, err, diff)
		}
		if got.Text() != tt.text || got.Refusal() != tt.refusal {
			t.Errorf("%s: Text() = %q, Refusal() = %q, want %q, %q", tt.raw, got.Text(), got.Refusal(), tt.text, tt.refusal)
		}
	}
}

func mustPart(t *testing.T, raw string) item.Part {
	t.Helper()
	p, err := item.ParsePart([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReasoning(t *testing.T) {
	tests := []struct {
		raw  string
		want item.Reasoning
	}{
		{`{"type":"reasoning","id":"rs_1","summary":[]}`, item.Reasoning{ID: "rs_1"}},
		{
			`{"type":"reasoning","id":"rs_1","status":"completed","summary":[{"type":"summary_text","text":"s1"},{"type":"summary_text","text":"s2"}],` +
				`"content":[{"type":"reasoning_text","text":"c"}],"encrypted_content":"gAAA"}`,
			item.Reasoning{ID: "rs_1", Status: "completed", Summary: []string{"s1", "s2"}, Content: []string{"c"}, EncryptedContent: "gAAA"},
		},
		{`{"type":"reasoning","content":null,"encrypted_content":null}`, item.Reasoning{}},
	}
	for _, tt := range tests {
		got, err := mustParse(t, tt.raw).Reasoning()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: Reasoning() error %v (-want +got):\n%s", tt.raw, err, diff)
		}
	}
}

func TestFunctionCall(t *testing.T) {
	tests := []struct {
		raw  string
		want item.FunctionCall
	}{
		{
			`{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"city\":\"Zürich\"}","call_id":"c1","name":"weather","new":[1]}`,
			item.FunctionCall{ID: "fc_1", CallID: "c1", Name: "weather", Arguments: `{"city":"Zürich"}`, Status: "completed"},
		},
		{
			`{"type":"function_call","call_id":"c1","name":"n","namespace":"crm","arguments":"","caller":{"type":"program", "caller_id":"p1"}}`,
			item.FunctionCall{CallID: "c1", Name: "n", Namespace: "crm", Caller: `{"type":"program", "caller_id":"p1"}`},
		},
		{`{"type":"function_call","id":null,"namespace":null,"caller":null}`, item.FunctionCall{}},
	}
	for _, tt := range tests {
		got, err := mustParse(t, tt.raw).FunctionCall()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: FunctionCall() error %v (-want +got):\n%s", tt.raw, err, diff)
		}
	}
}

func TestCustomToolCall(t *testing.T) {
	raw := `{"type":"custom_tool_call","id":"ctc_1","call_id":"c1","namespace":"ns","name":"sql","input":"SELECT 1;\n","status":"completed","caller":{"type":"direct"}}`
	want := item.CustomToolCall{
		ID: "ctc_1", CallID: "c1", Name: "sql", Namespace: "ns", Input: "SELECT 1;\n", Status: "completed", Caller: `{"type":"direct"}`,
	}
	got, err := mustParse(t, raw).CustomToolCall()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("CustomToolCall() error %v (-want +got):\n%s", err, diff)
	}
}

func TestToolOutputs(t *testing.T) {
	tests := []struct {
		raw  string
		want item.ToolOutput
	}{
		{`{"type":"function_call_output","call_id":"c1","output":"sunny"}`, item.ToolOutput{CallID: "c1", Text: "sunny"}},
		{`{"type":"function_call_output","call_id":"c1","output":""}`, item.ToolOutput{CallID: "c1"}},
		{`{"type":"function_call_output","call_id":"c1","output":[]}`, item.ToolOutput{CallID: "c1"}},
		{
			`{"type":"function_call_output","id":"fco_1","status":"completed","call_id":"c1",` +
				`"output":[{"type":"input_text","text":"a"},{"type":"input_image","file_id":"f"},{"type":"input_text","text":"b"}]}`,
			item.ToolOutput{ID: "fco_1", CallID: "c1", Status: "completed", Text: "ab", Parts: []item.Part{
				item.InputText("a"), item.InputImage(item.Image{FileID: "f"}), item.InputText("b"),
			}},
		},
	}
	for _, tt := range tests {
		got, err := mustParse(t, tt.raw).FunctionCallOutput()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: FunctionCallOutput() error %v (-want +got):\n%s", tt.raw, err, diff)
		}
	}
	got, err := mustParse(t, `{"type":"custom_tool_call_output","call_id":"c2","output":"1"}`).CustomToolCallOutput()
	if diff := cmp.Diff(item.ToolOutput{CallID: "c2", Text: "1"}, got); err != nil || diff != "" {
		t.Errorf("CustomToolCallOutput() error %v (-want +got):\n%s", err, diff)
	}
}

func TestHostedCall(t *testing.T) {
	tests := []struct {
		raw  string
		want item.HostedCall
	}{
		{`{"type":"web_search_call","id":"ws_1","status":"completed"}`, item.HostedCall{Type: "web_search_call", ID: "ws_1", Status: "completed"}},
		{`{"type":"file_search_call","id":"fs_1"}`, item.HostedCall{Type: "file_search_call", ID: "fs_1"}},
		{`{"type":"code_interpreter_call","id":"ci_1"}`, item.HostedCall{Type: "code_interpreter_call", ID: "ci_1"}},
		{`{"type":"image_generation_call","id":"ig_1"}`, item.HostedCall{Type: "image_generation_call", ID: "ig_1"}},
		{`{"type":"mcp_call","id":"mcp_1","status":"failed"}`, item.HostedCall{Type: "mcp_call", ID: "mcp_1", Status: "failed"}},
		{`{"type":"program","id":"prog_1","call_id":"c"}`, item.HostedCall{Type: "program", ID: "prog_1"}},
		{`{"type":"tool_search_call","id":"ts_1","execution":"server"}`, item.HostedCall{Type: "tool_search_call", ID: "ts_1"}},
		{`{"type":"shell_call","id":"sh_1","environment":{"type":"container_reference"}}`, item.HostedCall{Type: "shell_call", ID: "sh_1"}},
	}
	for _, tt := range tests {
		got, err := mustParse(t, tt.raw).HostedCall()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: HostedCall() error %v (-want +got):\n%s", tt.raw, err, diff)
		}
	}
}

func TestApprovals(t *testing.T) {
	request, err := mustParse(t, `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"crm","name":"drop","arguments":"{\"a\":1}"}`).ApprovalRequest()
	wantRequest := item.ApprovalRequest{ID: "mcpr_1", ServerLabel: "crm", Name: "drop", Arguments: `{"a":1}`}
	if diff := cmp.Diff(wantRequest, request); err != nil || diff != "" {
		t.Errorf("ApprovalRequest() error %v (-want +got):\n%s", err, diff)
	}
	tests := []struct {
		raw  string
		want item.ApprovalResponse
	}{
		{`{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`,
			item.ApprovalResponse{RequestID: "mcpr_1", Approve: true}},
		{`{"type":"mcp_approval_response","id":"a_1","approval_request_id":"mcpr_1","approve":false,"reason":"no"}`,
			item.ApprovalResponse{ID: "a_1", RequestID: "mcpr_1", Reason: "no"}},
	}
	for _, tt := range tests {
		got, err := mustParse(t, tt.raw).ApprovalResponse()
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: ApprovalResponse() error %v (-want +got):\n%s", tt.raw, err, diff)
		}
	}
}

// Each view refuses every item that is not of its type, well formed or not.
func TestViewOfWrongType(t *testing.T) {
	items := map[string]string{ // by the view that accepts it
		"Message":              `{"type":"message","role":"user","id":"x"}`,
		"Reasoning":            `{"type":"reasoning","summary":[]}`,
		"FunctionCall":         `{"type":"function_call","name":"n"}`,
		"FunctionCallOutput":   `{"type":"function_call_output","output":"o"}`,
		"CustomToolCall":       `{"type":"custom_tool_call","name":"n"}`,
		"CustomToolCallOutput": `{"type":"custom_tool_call_output","output":"o"}`,
		"HostedCall":           `{"type":"web_search_call","id":"w"}`,
		"ApprovalRequest":      `{"type":"mcp_approval_request","name":"n"}`,
		"ApprovalResponse":     `{"type":"mcp_approval_response","approve":true}`,
		"none":                 `{"type":"not_invented_yet","id":7,"status":7,"name":7,"call_id":7,"content":7,"output":7,"approve":7,"summary":7}`,
		"nor this":             `{"type":"shell_call","environment":{"type":"local"},"id":"s"}`,
		"nor that":             `{}`,
	}
	for owner, raw := range items {
		for view, err := range viewErrors(mustParse(t, raw)) {
			switch {
			case view == owner && err != nil:
				t.Errorf("%s of %s: %v", view, raw, err)
			case view != owner && (!errors.Is(err, item.ErrWrongType) || errors.Is(err, item.ErrMalformed)):
				t.Errorf("%s of %s: %v, want ErrWrongType", view, raw, err)
			}
		}
	}
	_, err := mustParse(t, `{"role":"user"}`).FunctionCall()
	if want := `pawl: item of another type: it is "message", not function_call`; message(err) != want {
		t.Errorf("error %q, want %q", message(err), want)
	}
}

func TestMalformedMember(t *testing.T) {
	tests := []struct {
		view, raw, err string
	}{
		{"FunctionCall", `{"type":"function_call","arguments":{"a":1}}`,
			`pawl: malformed item: member "arguments": invalid JSON at offset 0: want a string`},
		{"FunctionCall", `{"call_id":1,"name":2,"type":"function_call"}`,
			`pawl: malformed item: member "call_id": invalid JSON at offset 0: want a string`},
		{"CustomToolCall", `{"type":"custom_tool_call","input":[]}`,
			`pawl: malformed item: member "input": invalid JSON at offset 0: want a string`},
		{"FunctionCallOutput", `{"type":"function_call_output","output":{"a":1}}`,
			`pawl: malformed item: member "output": invalid JSON at offset 0: want a string`},
		{"FunctionCallOutput", `{"type":"function_call_output","output":[{},"b"]}`,
			`pawl: malformed item: member "output": element 1: want an object`},
		{"CustomToolCallOutput", `{"type":"custom_tool_call_output","status":true}`,
			`pawl: malformed item: member "status": invalid JSON at offset 0: want a string`},
		{"Message", `{"role":"user","content":5}`,
			`pawl: malformed item: member "content": invalid JSON at offset 0: want an array`},
		{"Message", `{"role":["user"]}`,
			`pawl: malformed item: member "role": invalid JSON at offset 0: want a string`},
		{"Reasoning", `{"type":"reasoning","summary":"s"}`,
			`pawl: malformed item: member "summary": invalid JSON at offset 0: want an array`},
		{"HostedCall", `{"type":"web_search_call","status":0}`,
			`pawl: malformed item: member "status": invalid JSON at offset 0: want a string`},
		{"ApprovalRequest", `{"type":"mcp_approval_request","name":false}`,
			`pawl: malformed item: member "name": invalid JSON at offset 0: want a string`},
		{"ApprovalResponse", `{"type":"mcp_approval_response","approve":"yes"}`,
			`pawl: malformed item: member "approve": invalid JSON at offset 0: want true or false`},
	}
	for _, tt := range tests {
		err := viewErrors(mustParse(t, tt.raw))[tt.view]
		if message(err) != tt.err || !errors.Is(err, item.ErrMalformed) {
			t.Errorf("%s of %s: %q, want %q", tt.view, tt.raw, message(err), tt.err)
		}
	}
}
