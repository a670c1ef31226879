package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/mcp"
)

// serveVariable makes the test binary a server on its standard input and output.
const serveVariable = "MCP_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		serveStdio()
		return
	}
	os.Exit(m.Run())
}

// serveStdio serves a tool that tells its process, and one that ends it.
func serveStdio() {
	s := newShop()
	s.add("pid", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return said(fmt.Sprint(os.Getpid())), nil
	})
	s.add("die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// start starts a server process.
func start(t *testing.T) (*exec.Cmd, *sdk.ClientSession) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"=1")
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return cmd, session
}

// A server is a process of its own. What it did before it died nobody knows.
func TestStdio(t *testing.T) {
	cmd, session := start(t)
	server := mcp.NewServer("shop", session, nil)
	m := calling(fc("c1", "pid", `{"cents":1}`), fc("c2", "die", `{"cents":2}`), fc("c3", "pid", `{"cents":3}`))
	_, err := new(pawl.Runner).Run(t.Context(), agentOf(m, server), pawl.UserText("go"), nil)
	var re *pawl.RunError
	if !errors.As(err, &re) || !errors.Is(err, mcp.ErrNotConnected) {
		t.Fatalf("error %v", err)
	}
	next, session := start(t)
	server.Use(session)
	got := outputs(must(t)(new(pawl.Runner).Resume(t.Context(), agentOf(m, server), re.State, nil)))
	if len(got) == 3 && strings.HasPrefix(got[1], "The outcome of this tool call is unknown") {
		got[1] = "unknown"
	}
	if diff := cmp.Diff([]string{fmt.Sprint(cmd.Process.Pid), "unknown", fmt.Sprint(next.Process.Pid)}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Over HTTP. A server that cannot be reached was not called, and what stands in the query of its URL
// is told to nobody.
func TestHTTP(t *testing.T) {
	s := newShop()
	s.add("pay", nil)
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.Server }, nil))
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: web.URL + "/mcp?token=s3cret"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	server := mcp.NewServer("shop", session, &mcp.Options{Cache: true})
	agent := agentOf(calling(fc("c1", "pay", `{"cents":5}`)), server)
	if got := outputs(must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))); len(got) != 1 || got[0] != "receipt" {
		t.Errorf("outputs %q", got)
	}
	web.CloseClientConnections()
	web.Close()
	agent.Model = calling(fc("c1", "pay", `{"cents":6}`))
	got := outputs(must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)))
	if len(got) != 1 || !strings.HasPrefix(got[0], "The tool failed: MCP server shop: calling pay: ") || strings.Contains(got[0], "s3cret") || !strings.Contains(got[0], web.URL+"/mcp") {
		t.Errorf("outputs %q", got)
	}
	s.want(t, `pay {"cents":5}`)
}

// A list is asked for again when a server is overloaded. A call is not: it may have got through.
func TestOverload(t *testing.T) {
	s := newShop()
	s.add("pay", nil)
	serve := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.Server }, nil)
	var mu sync.Mutex
	refuse, asked := map[string]int{"tools/list": 2, "tools/call": 1}, map[string]int{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		for method := range refuse {
			if bytes.Contains(body, []byte(`"`+method+`"`)) {
				asked[method]++
				if asked[method] <= refuse[method] {
					mu.Unlock()
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
			}
		}
		mu.Unlock()
		serve.ServeHTTP(w, r)
	}))
	defer web.Close()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: web.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	agent := agentOf(calling(fc("c1", "pay", `{"cents":5}`)), mcp.NewServer("shop", session, nil))
	got := outputs(must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)))
	if len(got) != 1 || !strings.HasPrefix(got[0], "The outcome of this tool call is unknown") {
		t.Errorf("outputs %q", got)
	}
	if diff := cmp.Diff(map[string]int{"tools/list": 4, "tools/call": 1}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	s.want(t)
}
