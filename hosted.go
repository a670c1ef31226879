package pawl

import (
	"context"
	"net/url"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// ApprovalRequest is the question of the model's server whether it may call a tool of an MCP
// server that it talks to itself.
type ApprovalRequest struct {
	RunContext
	// ID is the server's id of the request; the answer names it.
	ID string
	// Server is the label of the MCP server, Tool the name of its tool.
	Server, Tool string
	// Arguments are those that the server is going to use, as JSON.
	Arguments string
}

// hostedSpec is a tool of a hosted MCP server as the ledger has it. It has an identity, by which
// decisions extend to its later calls, only if server and tool are both named.
func hostedSpec(c *item.FunctionCall) journal.ToolSpec {
	spec := journal.ToolSpec{Name: c.Name, Hosted: true}
	if c.Namespace != "" && c.Name != "" {
		spec.Identity = "hosted/" + url.PathEscape(c.Namespace) + "/" + url.PathEscape(c.Name)
	}
	return spec
}

// planHosted asks RunOptions.OnApprovalRequest for the answer to a request of the model's server.
// A request whose arguments cannot be read is for a person.
func (f *frame) planHosted(c *plannedCall) error {
	type answer struct {
		gate   Gate
		reason string
	}
	said := answer{gate: Ask}
	if rule := f.opts.OnApprovalRequest; rule != nil && c.err == nil {
		r := ApprovalRequest{RunContext: f.runContext(), ID: c.fc.CallID, Server: c.fc.Namespace, Tool: c.fc.Name, Arguments: c.fc.Arguments}
		a, ok := asked(f.d.ctx, func(ctx context.Context) (a answer, err error) {
			a.gate, a.reason, err = rule(ctx, r)
			return a, err
		})
		switch {
		case f.d.ctx.Err() != nil:
			return f.d.cause() // the driver stops: that is no answer
		case ok && (a.gate == Allow || a.gate == Deny):
			said = a
		}
	}
	c.plan.Gate = said.gate
	switch {
	case said.gate == Deny && said.reason != "":
		c.plan.Reject = strings.ToValidUTF8(said.reason, "\uFFFD")
	case f.opts.ToolErrors != nil:
		c.plan.Reject = f.errorText(ToolErrorRejected, c, machine.RejectedText)
	}
	return nil
}
