package mcp

import (
	"context"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl"
)

// Rule is an approval rule for the tools of a server. An error or a panic means that somebody has to
// decide, as for pawl.Func.Approve. What t says is the server's word.
type Rule func(ctx context.Context, c *pawl.Call, t *sdk.Tool) (pawl.Gate, error)

// Always asks for every call.
func Always(context.Context, *pawl.Call, *sdk.Tool) (pawl.Gate, error) { return pawl.Ask, nil }

// For asks for calls of the tools that the server has under these names.
func For(names ...string) Rule {
	return func(_ context.Context, _ *pawl.Call, t *sdk.Tool) (pawl.Gate, error) {
		if slices.Contains(names, t.Name) {
			return pawl.Ask, nil
		}
		return pawl.Allow, nil
	}
}

// Except asks for calls of all tools but those that the server has under these names.
func Except(names ...string) Rule {
	return func(_ context.Context, _ *pawl.Call, t *sdk.Tool) (pawl.Gate, error) {
		if slices.Contains(names, t.Name) {
			return pawl.Allow, nil
		}
		return pawl.Ask, nil
	}
}
