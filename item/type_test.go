package item_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
)

func TestType(t *testing.T) {
	tests := []struct {
		raw  string
		want item.Type
	}{
		{`{"type":"function_call","role":"user"}`, item.TypeFunctionCall},
		{`{"content":{"type":"x"},"type":"mcp_list_tools"}`, item.TypeMCPListTools},
		{`{"role":"user","content":"x"}`, item.TypeMessage},
		{`{"role":"user","type":null}`, item.TypeMessage},
		{`{"type":"message"}`, item.TypeMessage},
		{`{"type":"not_invented_yet"}`, "not_invented_yet"},
		{`{"type":"function\u005fcall"}`, item.TypeFunctionCall},
		{`{"\u0074ype":"reasoning"}`, item.TypeReasoning},
		{`{"type":"a","type":"b"}`, "b"},
		{`{"Type":"message"}`, ""},
		{`{"type":7,"role":"user"}`, ""},
		{`{"type":"","role":"user"}`, ""},
		{`{"id":"msg_1"}`, ""},
		{`{}`, ""},
	}
	for _, tt := range tests {
		it := mustParse(t, tt.raw)
		if got := it.Type(); got != tt.want {
			t.Errorf("%s: Type() = %q, want %q", tt.raw, got, tt.want)
		}
		if got := it.Head().Type; got != tt.want {
			t.Errorf("%s: Head().Type = %q, want %q", tt.raw, got, tt.want)
		}
	}
}

func TestHead(t *testing.T) {
	tests := []struct {
		raw  string
		want item.Head
	}{
		{`{}`, item.Head{}},
		{`{"role":"user","content":"x"}`, item.Head{Type: "message", Role: "user"}},
		{
			`{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"id\":\"no\"}","call_id":"c1","name":"n","namespace":"crm"}`,
			item.Head{Type: "function_call", ID: "fc_1", CallID: "c1", Name: "n", Namespace: "crm", Status: "completed"},
		},
		{`{"type":"x","id":null,"call_id":1,"name":["n"],"status":{"a":1}}`, item.Head{Type: "x"}},
		{`{"type":"x","name":"caf\u00e9","id":"a","id":"b"}`, item.Head{Type: "x", Name: "café", ID: "b"}},
		{`{"type":"x","ID":"a","CALL_ID":"b"}`, item.Head{Type: "x"}},
		{`{"type":"local_shell_call_output","id":"call_9"}`,
			item.Head{Type: "local_shell_call_output", ID: "call_9", CallID: "call_9"}},
		{`{"type":"local_shell_call_output","id":"lsho_1","call_id":"call_9"}`,
			item.Head{Type: "local_shell_call_output", ID: "lsho_1", CallID: "call_9"}},
		{`{"type":"mcp_approval_request","id":"mcpr_1","call_id":"c","name":"drop"}`,
			item.Head{Type: "mcp_approval_request", ID: "mcpr_1", CallID: "mcpr_1", Name: "drop"}},
		{`{"type":"mcp_approval_response","id":"a_1","call_id":"c","approval_request_id":"mcpr_1","approve":true}`,
			item.Head{Type: "mcp_approval_response", ID: "a_1", CallID: "mcpr_1"}},
		{`{"type":"mcp_approval_response","call_id":"c"}`, item.Head{Type: "mcp_approval_response"}},
		{`{"type":"function_call_output","call_id":"c","approval_request_id":"mcpr_1"}`, item.Head{Type: "function_call_output", CallID: "c"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, mustParse(t, tt.raw).Head()); diff != "" {
			t.Errorf("%s: Head() (-want +got):\n%s", tt.raw, diff)
		}
	}
}

func TestOutputType(t *testing.T) {
	want := map[item.Type]item.Type{
		"function_call":        "function_call_output",
		"custom_tool_call":     "custom_tool_call_output",
		"computer_call":        "computer_call_output",
		"local_shell_call":     "local_shell_call_output",
		"shell_call":           "shell_call_output",
		"apply_patch_call":     "apply_patch_call_output",
		"tool_search_call":     "tool_search_output",
		"mcp_approval_request": "mcp_approval_response",
	}
	others := []item.Type{
		"message", "item_reference", "reasoning", "compaction", "compaction_trigger", "additional_tools", "configuration_update",
		"function_call_output", "custom_tool_call_output", "computer_call_output", "local_shell_call_output", "shell_call_output",
		"apply_patch_call_output", "tool_search_output", "file_search_call", "web_search_call", "code_interpreter_call",
		"image_generation_call", "mcp_list_tools", "mcp_approval_response", "mcp_call", "program",
		"program_output", "not_invented_yet", "",
	}
	for call, output := range want {
		if got := item.OutputType(call); got != output || !item.IsCall(call) {
			t.Errorf("OutputType(%s) = %q, IsCall = %v, want %q, true", call, got, item.IsCall(call), output)
		}
	}
	for _, other := range others {
		if got := item.OutputType(other); got != "" || item.IsCall(other) {
			t.Errorf("OutputType(%s) = %q, IsCall = %v, want none, false", other, got, item.IsCall(other))
		}
	}
}

func TestNeedsOutput(t *testing.T) {
	tests := []struct {
		raw  string
		want bool
	}{
		{`{"type":"function_call","call_id":"c"}`, true},
		{`{"type":"custom_tool_call"}`, true},
		{`{"type":"computer_call"}`, true},
		{`{"type":"local_shell_call"}`, true},
		{`{"type":"apply_patch_call"}`, true},
		{`{"type":"shell_call"}`, true},
		{`{"type":"shell_call","environment":null}`, true},
		{`{"type":"shell_call","environment":{"type":"local"}}`, true},
		{`{"type":"shell_call","environment":{"type":"container_reference","container_id":"cntr_1"}}`, false},
		{`{"type":"tool_search_call","execution":"client"}`, true},
		{`{"type":"tool_search_call","execution":"server"}`, false},
		{`{"type":"tool_search_call"}`, false},
		{`{"type":"function_call_output"}`, false},
		{`{"type":"mcp_approval_request"}`, true},
		{`{"type":"mcp_approval_response"}`, false},
		{`{"type":"web_search_call"}`, false},
		{`{"role":"user"}`, false},
		{`{}`, false},
	}
	for _, tt := range tests {
		if got := mustParse(t, tt.raw).NeedsOutput(); got != tt.want {
			t.Errorf("%s: NeedsOutput() = %v, want %v", tt.raw, got, tt.want)
		}
	}
}
