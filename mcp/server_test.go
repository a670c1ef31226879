package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/mcp"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/sqlstore"
)

// handler answers calls of a tool.
type handler = func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error)

// shop is a server and what its tools were called with.
type shop struct {
	*sdk.Server

	mu    sync.Mutex
	calls []string
	keys  []string
}

func newShop() *shop {
	return &shop{Server: sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)}
}

const centsSchema = `{"type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"]}`

// add adds a tool that notes its calls; a nil handler answers "receipt".
func (s *shop) add(name string, h handler) {
	s.addTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(centsSchema)}, h)
}

func (s *shop) addTool(def *sdk.Tool, h handler) {
	s.AddTool(def, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.mu.Lock()
		s.calls = append(s.calls, def.Name+" "+string(req.Params.Arguments))
		s.keys = append(s.keys, fmt.Sprint(req.Params.Meta[mcp.KeyMeta]))
		s.mu.Unlock()
		if h == nil {
			return said("receipt"), nil
		}
		return h(ctx, req)
	})
}

func (s *shop) want(t *testing.T, calls ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(calls, s.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func said(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// connect returns a session with the server.
func (s *shop) connect(t *testing.T, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	here, there := sdk.NewInMemoryTransports()
	return s.over(t, here, there, o)
}

// cuttable returns a session with the server, and what cuts the connection.
func (s *shop) cuttable(t *testing.T) (session *sdk.ClientSession, cut func()) {
	t.Helper()
	here, there := net.Pipe()
	session = s.over(t, &sdk.IOTransport{Reader: here, Writer: here}, &sdk.IOTransport{Reader: there, Writer: there}, nil)
	return session, func() { here.Close() }
}

func (s *shop) over(t *testing.T, here, there sdk.Transport, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	if _, err := s.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func fc(callID, tool, args string) item.Item { return item.FunctionCallItem("", callID, tool, args) }

// calling is a model that makes the calls, one a turn, and then says done.
func calling(calls ...item.Item) *pawltest.ScriptedModel {
	m := pawltest.NewScriptedModel()
	for _, c := range calls {
		m.Enqueue(pawltest.ScriptedItems(c))
	}
	m.Enqueue(pawltest.ScriptedText("done"))
	return m
}

func agentOf(m *pawltest.ScriptedModel, servers ...*mcp.Server) *pawl.Agent {
	agent := &pawl.Agent{Name: "clerk", Model: m}
	for _, s := range servers {
		agent.ToolSources = append(agent.ToolSources, s)
	}
	return agent
}

// outputs are the outputs of calls as JSON, in order.
func outputs(res *pawl.Result) (out []string) {
	for _, it := range res.NewItems() {
		if o, err := it.FunctionCallOutput(); err == nil {
			if len(o.Parts) > 0 {
				out = append(out, fmt.Sprint(o.Parts))
			} else {
				out = append(out, o.Text)
			}
		}
	}
	return out
}

func must(t *testing.T) func(*pawl.Result, error) *pawl.Result {
	return func(res *pawl.Result, err error) *pawl.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
}

// offered are the tools that a server offers, by name.
func offered(t *testing.T, s *mcp.Server) map[string]pawl.Tool {
	t.Helper()
	tools, err := s.Tools(t.Context(), &pawl.RunContext{})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]pawl.Tool{}
	for _, tool := range tools {
		if tool.Err() != nil {
			t.Error(tool.Err())
		}
		byName[tool.Name()] = tool
	}
	return byName
}

func names(t *testing.T, s *mcp.Server) []string {
	t.Helper()
	var list []string
	for name := range offered(t, s) {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// What a server answers is what the model reads, block by block.
func TestOutputs(t *testing.T) {
	structured := map[string]any{"a": "<b>", "n": 1}
	image := &sdk.ImageContent{Data: []byte("png"), MIMEType: "image/png"}
	for name, tt := range map[string]struct {
		result     *sdk.CallToolResult
		structured bool
		want       string
	}{
		"text":             {said("hello"), false, `hello`},
		"an error":         {&sdk.CallToolResult{IsError: true, Content: said("no such file").Content}, false, `no such file`},
		"image":            {&sdk.CallToolResult{Content: []sdk.Content{image}}, false, `[{"type":"input_image","image_url":"data:image/png;base64,cG5n"}]`},
		"two":              {&sdk.CallToolResult{Content: []sdk.Content{said("look").Content[0], image}}, false, `[{"type":"input_text","text":"look"} {"type":"input_image","image_url":"data:image/png;base64,cG5n"}]`},
		"none":             {&sdk.CallToolResult{Content: []sdk.Content{}}, false, ``},
		"audio":            {&sdk.CallToolResult{Content: []sdk.Content{&sdk.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"}}}, false, `{"type":"audio","mimeType":"audio/wav","data":"d2F2"}`},
		"resource":         {&sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", Text: "b"}}}}, false, `{"type":"resource","resource":{"uri":"file:///a","text":"b"}}`},
		"structured":       {&sdk.CallToolResult{Content: said("text").Content, StructuredContent: structured}, true, `{"a":"<b>","n":1}`},
		"not wanted":       {&sdk.CallToolResult{Content: said("text").Content, StructuredContent: structured}, false, `text`},
		"nothing else":     {&sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: structured}, false, `{"a":"<b>","n":1}`},
		"structured error": {&sdk.CallToolResult{IsError: true, Content: said("text").Content, StructuredContent: structured}, true, `text`},
		"empty structure":  {&sdk.CallToolResult{Content: said("text").Content, StructuredContent: map[string]any{}}, true, `text`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop()
			s.add("pay", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return tt.result, nil })
			server := mcp.NewServer("shop", s.connect(t, nil), &mcp.Options{Structured: tt.structured})
			res := must(t)(new(pawl.Runner).Run(t.Context(), agentOf(calling(fc("c1", "pay", `{"cents":5}`)), server), pawl.UserText("go"), nil))
			if diff := cmp.Diff([]string{tt.want}, outputs(res)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			s.want(t, `pay {"cents":5}`)
		})
	}
}

// A call that the server refused has failed. One that it did not answer may have happened, and is
// not sent again.
func TestFailures(t *testing.T) {
	hang := func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for name, tt := range map[string]struct {
		handler handler
		hangUp  bool
		opts    mcp.Options
		want    string
	}{
		"refused": {func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such account"}
		}, false, mcp.Options{}, "The tool failed: MCP server shop: calling pay: "},
		"told by the program": {func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, errors.New("secret")
		}, false,
			mcp.Options{Adjust: func(_ *sdk.Tool, f *pawl.RawFunc) {
				f.OnError = func(context.Context, *pawl.Call, error) string { return "try another account" }
			}}, "try another account"},
		"connection lost": {hang, true, mcp.Options{}, "The outcome of this tool call is unknown"},
		"timeout":         {hang, false, mcp.Options{Timeout: 20 * time.Millisecond}, "The outcome of this tool call is unknown"},
		"meta": {nil, false, mcp.Options{Meta: func(context.Context, *pawl.Call) (map[string]any, error) { return nil, errors.New("no tenant") }},
			"The tool failed: MCP server shop: the _meta of a call of pay: no tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop()
			entered, left := make(chan struct{}, 1), make(chan error, 1)
			s.add("pay", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				entered <- struct{}{}
				res, err := tt.handler(ctx, req)
				left <- err
				return res, err
			})
			session, cut := s.cuttable(t)
			if tt.hangUp {
				go func() {
					<-entered
					cut()
				}()
			}
			m := calling(fc("c1", "pay", `{"cents":5}`))
			agent := agentOf(m, mcp.NewServer("shop", session, &tt.opts))
			res, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)
			if tt.hangUp { // the next turn has nobody to ask
				var re *pawl.RunError
				if !errors.As(err, &re) || !errors.Is(err, mcp.ErrNotConnected) {
					t.Fatalf("error %v", err)
				}
				agent.ToolSources = []pawl.ToolSource{mcp.NewServer("shop", s.connect(t, nil), nil)}
				res, err = new(pawl.Runner).Resume(t.Context(), agent, re.State, nil)
			}
			if got := outputs(must(t)(res, err)); len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("outputs %q", got)
			}
			if tt.handler == nil {
				s.want(t)
				return
			}
			<-left // the server heard that nobody waits any more
			s.want(t, `pay {"cents":5}`)
		})
	}
}

// Where the program says that the server honours the key, a call in doubt is sent again with it.
func TestKeys(t *testing.T) {
	s := newShop()
	var server *mcp.Server
	first, cut := s.cuttable(t)
	var calls atomic.Int32
	s.add("pay", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if calls.Add(1) > 1 {
			return said("receipt"), nil
		}
		server.Use(s.connect(t, nil))
		cut()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	server = mcp.NewServer("shop", first, &mcp.Options{
		Adjust: func(_ *sdk.Tool, f *pawl.RawFunc) { f.Effect = pawl.Idempotent },
		Meta: func(_ context.Context, c *pawl.Call) (map[string]any, error) {
			return map[string]any{"call": c.ID, mcp.KeyMeta: "mine"}, nil
		}})
	res := must(t)(new(pawl.Runner).Run(t.Context(), agentOf(calling(fc("c1", "pay", `{"cents":5}`), fc("c2", "pay", `{"cents":5}`)), server), pawl.UserText("go"), nil))
	if diff := cmp.Diff([]string{"receipt", "receipt"}, outputs(res)); diff != "" {
		t.Error(diff)
	}
	if len(s.keys) != 3 || s.keys[0] == "" || s.keys[0] != s.keys[1] || s.keys[1] == s.keys[2] || s.keys[0] == "mine" {
		t.Errorf("keys %q", s.keys)
	}
}

// Without a session nothing is sent, and the run can be resumed with one.
func TestNotConnected(t *testing.T) {
	s := newShop()
	s.add("pay", nil)
	closed := s.connect(t, nil)
	closed.Close()
	for name, session := range map[string]*sdk.ClientSession{"none": nil, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			m := calling()
			server := mcp.NewServer("shop", session, nil)
			_, err := new(pawl.Runner).Run(t.Context(), agentOf(m, server), pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
			var re *pawl.RunError
			var source *pawl.ToolSourceError
			if !errors.As(err, &re) || !errors.As(err, &source) || source.Source != "shop" || !errors.Is(err, mcp.ErrNotConnected) || len(m.Calls()) > 0 {
				t.Fatalf("error %v", err)
			}
			if want := `pawl: run r, preparing turn 1: the tools of source "shop": MCP server shop: listing its tools: `; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %v", err)
			}
			server.Use(s.connect(t, nil))
			if res := must(t)(new(pawl.Runner).Resume(t.Context(), agentOf(m, server), re.State, nil)); res.FinalOutput != "done" {
				t.Errorf("result %+v", res)
			}
		})
	}
	server := mcp.NewServer("shop", s.connect(t, nil), &mcp.Options{Cache: true})
	offered(t, server)
	server.Use(nil)
	if _, err := server.Tools(t.Context(), &pawl.RunContext{}); !errors.Is(err, mcp.ErrNotConnected) {
		t.Errorf("error %v", err)
	}
}

// The list is asked for in every turn, or kept until something changes it.
func TestCache(t *testing.T) {
	for name, tt := range map[string]struct {
		cache  bool
		change func(s *mcp.Server)
		want   []string
	}{
		"not kept":    {false, nil, []string{"buy", "pay"}},
		"kept":        {true, nil, []string{"pay"}},
		"invalidated": {true, (*mcp.Server).Invalidate, []string{"buy", "pay"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop()
			s.add("pay", nil)
			server := mcp.NewServer("shop", s.connect(t, nil), &mcp.Options{Cache: tt.cache})
			names(t, server)
			s.add("buy", nil)
			if tt.change != nil {
				tt.change(server)
			}
			if diff := cmp.Diff(tt.want, names(t, server)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A server that says that its list has changed is asked again.
func TestToolsChanged(t *testing.T) {
	s := newShop()
	s.add("pay", nil)
	server := mcp.NewServer("shop", nil, &mcp.Options{Cache: true})
	heard := make(chan struct{}, 10)
	server.Use(s.connect(t, &sdk.ClientOptions{ToolListChangedHandler: func(ctx context.Context, req *sdk.ToolListChangedRequest) {
		server.ToolsChanged(ctx, req)
		heard <- struct{}{}
	}}))
	if diff := cmp.Diff([]string{"pay"}, names(t, server)); diff != "" {
		t.Error(diff)
	}
	s.add("buy", nil)
	<-heard
	if diff := cmp.Diff([]string{"buy", "pay"}, names(t, server)); diff != "" {
		t.Error(diff)
	}
}

// Which tools are offered.
func TestFilters(t *testing.T) {
	bang := errors.New("bang")
	long := func(_ context.Context, rc *pawl.RunContext, tool *sdk.Tool) (bool, error) {
		if rc.Turn == 7 {
			return true, bang
		}
		return len(tool.Name) > 3, nil
	}
	s := newShop()
	for _, name := range []string{"pay", "buy", "refund", "close"} {
		s.add(name, nil)
	}
	session := s.connect(t, nil)
	for name, tt := range map[string]struct {
		opts mcp.Options
		want []string
	}{
		"all":      {mcp.Options{}, []string{"buy", "close", "pay", "refund"}},
		"allowed":  {mcp.Options{Allow: []string{"pay", "close"}}, []string{"close", "pay"}},
		"none":     {mcp.Options{Allow: []string{}}, nil},
		"blocked":  {mcp.Options{Block: []string{"pay", "close"}}, []string{"buy", "refund"}},
		"both":     {mcp.Options{Allow: []string{"pay", "close"}, Block: []string{"pay"}}, []string{"close"}},
		"filtered": {mcp.Options{Filter: long, Block: []string{"close"}}, []string{"refund"}},
	} {
		if diff := cmp.Diff(tt.want, names(t, mcp.NewServer("shop", session, &tt.opts))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := mcp.NewServer("shop", session, &mcp.Options{Filter: long}).Tools(t.Context(), &pawl.RunContext{Turn: 7}); !errors.Is(err, bang) {
		t.Errorf("error %v", err)
	}
}

// A list comes in pages. One that has no end is an error.
func TestPages(t *testing.T) {
	s := &shop{Server: sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, &sdk.ServerOptions{PageSize: 2})}
	var want []string
	for n := range 5 {
		want = append(want, fmt.Sprintf("pay%d", n))
		s.add(want[n], nil)
	}
	if diff := cmp.Diff(want, names(t, mcp.NewServer("shop", s.connect(t, nil), nil))); diff != "" {
		t.Error(diff)
	}
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if method == "tools/list" {
				return &sdk.ListToolsResult{Tools: []*sdk.Tool{}, NextCursor: "again"}, nil
			}
			return next(ctx, method, req)
		}
	})
	_, err := mcp.NewServer("shop", s.connect(t, nil), nil).Tools(t.Context(), &pawl.RunContext{})
	if err == nil || !strings.Contains(err.Error(), `it sends the page "again" again and again`) {
		t.Errorf("error %v", err)
	}
}

// Who has to approve what.
func TestApprove(t *testing.T) {
	for name, tt := range map[string]struct {
		rule mcp.Rule
		want []string
	}{
		"nobody": {nil, nil},
		"always": {mcp.Always, []string{"pay", "buy"}},
		"for":    {mcp.For("pay"), []string{"pay"}},
		"except": {mcp.Except("pay"), []string{"buy"}},
		"broken": {func(context.Context, *pawl.Call, *sdk.Tool) (pawl.Gate, error) { return pawl.Allow, errors.New("bang") }, []string{"pay", "buy"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop()
			s.add("pay", nil)
			s.add("buy", nil)
			server := mcp.NewServer("shop", s.connect(t, nil), &mcp.Options{Approve: tt.rule, Prefix: true})
			m := pawltest.NewScriptedModel(pawltest.ScriptedItems(fc("c1", "mcp_shop__pay", `{"cents":5}`), fc("c2", "mcp_shop__buy", `{"cents":5}`)), pawltest.ScriptedText("done"))
			res := must(t)(new(pawl.Runner).Run(t.Context(), agentOf(m, server), pawl.UserText("go"), nil))
			var got []string
			for _, in := range res.Interruptions {
				got = append(got, strings.TrimPrefix(in.Tool, "mcp_shop__"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The class of a tool is the program's to say. The server's hints count where they are trusted.
func TestEffects(t *testing.T) {
	s := newShop()
	for name, hints := range map[string]*sdk.ToolAnnotations{"none": nil, "reads": {ReadOnlyHint: true}, "repeats": {IdempotentHint: true}, "acts": {}} {
		s.addTool(&sdk.Tool{Name: name, Annotations: hints, InputSchema: json.RawMessage(centsSchema)}, nil)
	}
	session := s.connect(t, nil)
	for _, tt := range []struct {
		opts mcp.Options
		want map[string]pawl.Effect
	}{
		{mcp.Options{}, map[string]pawl.Effect{"none": pawl.AtMostOnce, "reads": pawl.AtMostOnce, "repeats": pawl.AtMostOnce, "acts": pawl.AtMostOnce}},
		{mcp.Options{TrustHints: true}, map[string]pawl.Effect{"none": pawl.AtMostOnce, "reads": pawl.ReadOnly, "repeats": pawl.Idempotent, "acts": pawl.AtMostOnce}},
		{mcp.Options{Adjust: func(tool *sdk.Tool, f *pawl.RawFunc) {
			if tool.Name == "none" {
				f.Effect = pawl.ReadOnly
			}
		}}, map[string]pawl.Effect{"none": pawl.ReadOnly, "reads": pawl.AtMostOnce, "repeats": pawl.AtMostOnce, "acts": pawl.AtMostOnce}},
	} {
		got := map[string]pawl.Effect{}
		for name, tool := range offered(t, mcp.NewServer("shop", session, &tt.opts)) {
			got[name] = tool.Effect()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// A call that waits is run by the same server's tool, in another process, over another connection.
func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	open := func() *sqlstore.Store {
		store, err := sqlstore.OpenSQLite(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	s := newShop()
	s.add("pay", nil)
	m := calling(fc("c1", "pay", `{"cents":5}`))
	runner := func(store journal.Driver) *pawl.Runner {
		return &pawl.Runner{Store: store, Agents: []*pawl.Agent{agentOf(m, mcp.NewServer("shop", s.connect(t, nil), &mcp.Options{Approve: mcp.Always}))}}
	}
	r := runner(open())
	res := must(t)(r.Run(t.Context(), r.Agents[0], pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
	s.want(t)
	r = runner(open())
	if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	s.addTool(&sdk.Tool{Name: "pay", InputSchema: json.RawMessage(`{"type":"object","properties":{"euros":{"type":"integer"}}}`)}, nil)
	if _, err := r.Resume(t.Context(), nil, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrToolChanged) {
		t.Errorf("error %v", err)
	}
	s.add("pay", nil)
	s.want(t)
	res = must(t)(r.Resume(t.Context(), nil, pawl.RunID("r"), nil))
	if res.FinalOutput != "done" {
		t.Errorf("result %+v", res)
	}
	s.want(t, `pay {"cents":5}`)
}

// Any number of runs may use a server at a time.
func TestManyRuns(t *testing.T) {
	s := newShop()
	s.add("pay", nil)
	server := mcp.NewServer("shop", s.connect(t, nil), &mcp.Options{Cache: true})
	var wg sync.WaitGroup
	for n := range 32 {
		wg.Go(func() {
			if n%4 == 0 {
				server.Invalidate()
			}
			m := calling(fc("c1", "pay", fmt.Sprintf(`{"cents":%d}`, n)))
			res, err := new(pawl.Runner).Run(t.Context(), agentOf(m, server), pawl.UserText("go"), nil)
			if err != nil || res.FinalOutput != "done" {
				t.Errorf("run %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if len(s.calls) != 32 {
		t.Errorf("%d calls", len(s.calls))
	}
}
