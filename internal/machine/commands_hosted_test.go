package machine

import (
	"fmt"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// asks is what the model's server asks before it calls a tool of a hosted MCP server.
func asks(id, server, tool, args string) item.Item {
	return item.FromTrusted(fmt.Sprintf(`{"type":"mcp_approval_request","id":%q,"server_label":%q,"name":%q,"arguments":%q}`, id, server, tool, args))
}

// planHosted gives the newest call of a plan its hosted tool, if it asks for the approval of one.
// A rule named for the tool in the manifest is not one for it.
func (s *script) planHosted(b *journal.Planned, it item.Item, offered int) {
	request, err := it.ApprovalRequest()
	if err != nil {
		return
	}
	pc := &b.Calls[len(b.Calls)-1]
	pc.Tool, pc.Gate = offered+len(b.Tools), journal.Ask
	if !pc.Output.IsZero() {
		pc.Gate = journal.Allow
	}
	spec := journal.ToolSpec{Name: request.Name, Hosted: true}
	if request.ServerLabel != "-" {
		spec.Identity = "hosted/" + request.ServerLabel + "/" + request.Name
	}
	b.Tools = append(b.Tools, spec)
}
