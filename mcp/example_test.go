package mcp_test

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/mcp"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// library is a server in this process, with a tool that reads and one that acts.
func library(ctx context.Context) sdk.Transport {
	type title struct {
		Title string `json:"title"`
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "library", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "find", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, _ *sdk.CallToolRequest, in title) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Title + " is on shelf 3"}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "lend"}, func(_ context.Context, _ *sdk.CallToolRequest, in title) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Title + " is yours"}}}, nil, nil
	})
	here, there := sdk.NewInMemoryTransports()
	if _, err := s.Connect(ctx, there, nil); err != nil {
		panic(err)
	}
	return here
}

// librarian is an agent with the tools of the server at the other end of a transport, and the session
// that its owner closes.
func librarian(ctx context.Context, m model.Model, t sdk.Transport) (*pawl.Agent, *sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "reading room", Version: "1"}, nil)
	session, err := client.Connect(ctx, t, nil)
	if err != nil {
		return nil, nil, err
	}
	library := mcp.NewServer("library", session, &mcp.Options{Prefix: true, Approve: mcp.Except("find")})
	return &pawl.Agent{Name: "Librarian", Model: m, ToolSources: []pawl.ToolSource{library}}, session, nil
}

// The tools of a server are offered in every turn. A person is asked before a book is lent.
func ExampleNewServer() {
	ctx := context.Background()
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "mcp_library__find", `{"title":"Emma"}`)),
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_2", "mcp_library__lend", `{"title":"Emma"}`)),
		pawltest.ScriptedText("Enjoy it."))
	agent, session, err := librarian(ctx, m, library(ctx)) // of a process: &sdk.CommandTransport{Command: exec.Command("mcp-library")}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("May I have Emma?"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("waits for:", res.Interruptions[0].Tool, res.Interruptions[0].Arguments)
	state := res.State()
	if err := state.Approve(res.Interruptions[0], "ann"); err != nil {
		fmt.Println(err)
		return
	}
	if res, err = r.Resume(ctx, agent, state, nil); err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range res.NewItems() {
		if out, err := it.FunctionCallOutput(); err == nil {
			fmt.Println(out.Text)
		}
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// waits for: mcp_library__lend {"title":"Emma"}
	// Emma is on shelf 3
	// Emma is yours
	// Enjoy it.
}

// A server is asked once, and again when it says that its tools have changed. Its word is taken for
// which of them only read. If nobody knows whether a book was lent, a person is asked.
func ExampleServer_ToolsChanged() {
	ctx := context.Background()
	server := mcp.NewServer("library", nil, &mcp.Options{Cache: true, TrustHints: true, Adjust: func(t *sdk.Tool, f *pawl.RawFunc) {
		if t.Name == "lend" {
			f.OnUnknown = pawl.UnknownWait
		}
	}})
	client := sdk.NewClient(&sdk.Implementation{Name: "example", Version: "1"}, &sdk.ClientOptions{ToolListChangedHandler: server.ToolsChanged})
	session, err := client.Connect(ctx, library(ctx), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	server.Use(session)

	agent := &pawl.Agent{Name: "Librarian", ToolSources: []pawl.ToolSource{server}}
	tools, err := agent.AllTools(ctx, &pawl.RunContext{Agent: agent})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range tools {
		fmt.Printf("%s %q\n", t.Name(), t.Effect())
	}
	// Output:
	// find "readonly"
	// lend ""
}
