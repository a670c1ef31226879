package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl"
)

// ErrNotConnected says that a Server has no session, or one whose connection is closed. Nothing was
// sent. Connect, tell the Server with Use, and resume the run.
var ErrNotConnected = errors.New("pawl: the MCP server is not connected")

// Options say how the tools of a server are offered and run. The zero value offers all of them, under
// the names that the server gives them, and asks nobody.
type Options struct {
	// Prefix offers a tool of the server "files" as mcp_files__read instead of read, so that
	// servers whose tools have the same names can stand beside each other. Names that are too
	// long then are cut and end with a digest. Approvals, Allow, Block and Adjust know a tool by
	// the server's name in any case.
	Prefix bool
	// Cache keeps the list of tools until Invalidate or ToolsChanged is called, or the session
	// is replaced. Without it the server is asked in every turn.
	Cache bool
	// Strict offers schemas in the form that the model's server can enforce, as far as they can
	// be converted without taking less than before, but for this: what was optional is required. The
	// others are offered as they are.
	Strict bool
	// Structured makes the structured content of a result the output of a call, as JSON, if there
	// is any and the result is no error.
	Structured bool
	// TrustHints takes the server's word for what its tools do: those with a readOnlyHint become
	// pawl.ReadOnly, those with an idempotentHint pawl.Idempotent, and are called again when
	// nobody knows what became of a call.
	TrustHints bool
	// Allow names the tools that are offered, nil all; Block those of them that are not.
	Allow, Block []string
	// Filter says which of the tools that are left a turn offers; nil means all. Its error
	// fails the run, resumably.
	Filter func(ctx context.Context, rc *pawl.RunContext, t *sdk.Tool) (bool, error)
	// Approve is the approval rule of every tool; nil allows every call. As pawl.Func.Approve.
	Approve Rule
	// Timeout bounds a call; 0 means pawl.DefaultToolTimeout. What happened to a call that ran
	// into it is unknown, and the server is told that nobody waits for it any more.
	Timeout time.Duration
	// Meta returns what is sent as _meta with a call, beside its key; nil means nothing. An error
	// is told to the model, and nothing is sent.
	Meta func(ctx context.Context, c *pawl.Call) (map[string]any, error)
	// Adjust changes what a tool is made of: its class, its texts, its guardrails, OnError,
	// Expires. It is called when a tool is listed that was not there before, or differently, and
	// must say the same for the same tool: calls that wait are bound to it again.
	Adjust func(t *sdk.Tool, f *pawl.RawFunc)
}

// Server is an MCP server whose tools are an agent's. It may be used by any number of agents and
// runs at a time.
type Server struct {
	label   string
	opts    Options
	session atomic.Pointer[sdk.ClientSession]

	mu      sync.Mutex
	listed  []tool // the newest list
	text    string // of which they were made
	cached  bool   // they are what the server has
	changes int    // that were heard of
}

// NewServer returns the server at the other end of a session. The label identifies it in ledgers and,
// with Options.Prefix, to the model; it must stay the same while runs are open. The session may be
// nil and come later, with Use. Nil options mean all defaults.
func NewServer(label string, session *sdk.ClientSession, o *Options) *Server {
	s := &Server{label: label}
	if o != nil {
		s.opts = *o
	}
	s.session.Store(session)
	return s
}

// Label returns the label.
func (s *Server) Label() string { return s.label }

// Use makes later calls go over another session, as after the connection was lost; nil means that
// there is none. It neither opens nor closes one.
func (s *Server) Use(session *sdk.ClientSession) {
	s.session.Store(session)
	s.Invalidate()
}

// Invalidate makes the next turn ask the server for its tools, with Options.Cache too.
func (s *Server) Invalidate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cached = false
	s.changes++
}

// ToolsChanged is Invalidate as sdk.ClientOptions.ToolListChangedHandler: with it a list is kept
// until the server says that it has changed.
func (s *Server) ToolsChanged(context.Context, *sdk.ToolListChangedRequest) { s.Invalidate() }

// Tools returns the tools that a turn offers.
func (s *Server) Tools(ctx context.Context, rc *pawl.RunContext) ([]pawl.Tool, error) {
	listed, err := s.list(ctx)
	if err != nil {
		return nil, s.failed("listing its tools", err)
	}
	var tools []pawl.Tool
	for _, t := range listed {
		offered, err := s.offers(ctx, rc, t.of)
		if err != nil {
			return nil, s.failed("the filter, asked about "+t.of.Name, err)
		}
		if offered {
			tools = append(tools, t.tool)
		}
	}
	return tools, nil
}

func (s *Server) offers(ctx context.Context, rc *pawl.RunContext, t *sdk.Tool) (bool, error) {
	switch {
	case s.opts.Allow != nil && !slices.Contains(s.opts.Allow, t.Name), slices.Contains(s.opts.Block, t.Name):
		return false, nil
	case s.opts.Filter == nil:
		return true, nil
	}
	return s.opts.Filter(ctx, rc, t)
}

// list returns what the server has, or had when it was last asked. What it says again need not be
// made into tools again.
func (s *Server) list(ctx context.Context) ([]tool, error) {
	s.mu.Lock()
	listed, cached, changes := s.listed, s.cached && s.opts.Cache, s.changes
	s.mu.Unlock()
	if cached {
		return listed, nil
	}
	session := s.session.Load()
	if session == nil {
		return nil, ErrNotConnected
	}
	defs, err := pages(ctx, session)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(defs)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	listed, same := s.listed, s.listed != nil && s.text == string(text)
	s.mu.Unlock()
	if !same {
		listed = s.make(defs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.text, s.cached = listed, string(text), s.changes == changes
	return listed, nil
}

// pages asks for the tools, page by page.
func pages(ctx context.Context, session *sdk.ClientSession) ([]*sdk.Tool, error) {
	var all []*sdk.Tool
	seen := make(map[string]bool)
	for cursor := ""; ; {
		page, err := pageAt(ctx, session, cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
		if seen[cursor] {
			return nil, fmt.Errorf("it sends the page %q again and again", cursor)
		}
		seen[cursor] = true
	}
}

// A page is asked for so often, with these pauses, the second twice as long.
const (
	pageTries = 3
	pagePause = 200 * time.Millisecond
)

// pageAt asks for one page. Asking changes nothing, so it is repeated if the server did not answer, but
// for a connection that is closed.
func pageAt(ctx context.Context, session *sdk.ClientSession, cursor string) (*sdk.ListToolsResult, error) {
	for try := 1; ; try++ {
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err == nil || try == pageTries || answered(err) || errors.Is(err, sdk.ErrConnectionClosed) {
			return page, err
		}
		select {
		case <-time.After(pagePause * time.Duration(try)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
