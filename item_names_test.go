package pawl_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// The name of an item's event follows from its type: that of tools that the model's server runs
// too. What is called like a handoff there is none.
func TestItemNames(t *testing.T) {
	typed := func(name string) pawl.Item {
		return item.FromTrusted(`{"type":"` + name + `","id":"x","name":"transfer_to_billing"}`)
	}
	want := []string{"reasoning_item_created reasoning",
		"tool_search_called tool_search_call", "tool_search_output_created tool_search_output", "mcp_list_tools mcp_list_tools",
		"mcp_approval_requested mcp_approval_request", "mcp_approval_response mcp_approval_response",
		"tool_called mcp_call", "tool_called file_search_call", "tool_called web_search_call", "tool_called code_interpreter_call", "tool_called image_generation_call",
		"tool_called program", "tool_output program_output", "item_created compaction", "item_created hologram",
		"handoff_requested function_call", "tool_called function_call", "mcp_approval_response mcp_approval_response", "tool_output function_call_output", "handoff_occurred function_call_output",
		"message_output_created message"}
	var list []pawl.Item
	for _, name := range []string{"reasoning", "tool_search_call", "tool_search_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call",
		"file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "program", "program_output", "compaction", "hologram"} {
		list = append(list, typed(name))
	}
	list = append(list, ho("h1", "billing"), fc("c1", "pay", `{"cents":5}`))
	d := newDesk([]step{items(list...)}, []step{says("ok")})
	d.triage.Tools = []pawl.Tool{charging("pay", &d.e, nil)}
	var got []string
	opts := &pawl.RunOptions{OnApprovalRequest: func(context.Context, pawl.ApprovalRequest) (pawl.Gate, string, error) { return pawl.Deny, "", nil }}
	for ev, err := range new(pawl.Runner).Stream(t.Context(), d.triage, pawl.UserText("hi"), opts) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := ev.(*pawl.ItemCreated); ok {
			got = append(got, string(c.Name)+" "+string(c.Item.Type()))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
