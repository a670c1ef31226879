// Package mcp gives agents the tools of servers that speak the Model Context Protocol
// (https://modelcontextprotocol.io).
//
// A [Server] is a [pawl.ToolSource] on a session of the official SDK,
// github.com/modelcontextprotocol/go-sdk/mcp, whose clients, transports and authorization it leaves
// to the program: whoever made the connection closes it.
//
//	client := sdk.NewClient(&sdk.Implementation{Name: "shop"}, nil)
//	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: exec.Command("mcp-files", "/data")}, nil)
//	...
//	defer session.Close()
//	agent.ToolSources = []pawl.ToolSource{mcp.NewServer("files", session, nil)}
//
// The tools are listed in every turn. What a server says of itself is not trusted: each tool is
// [pawl.AtMostOnce] unless the program says otherwise, with [Options.TrustHints] or [Options.Adjust],
// so a call whose answer was lost is never repeated by itself. Each call carries its idempotency
// key, for servers that can tell a repeat from a new call: see [KeyMeta].
package mcp
