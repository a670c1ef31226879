package mcp

import (
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-agents/pawl"
)

// serverError is what went wrong with a server.
type serverError struct {
	text   string
	causes []error
}

func (e *serverError) Error() string { return e.text }

func (e *serverError) Unwrap() []error { return e.causes }

// failed is an error of the server, or on the way to it. The text goes to ledgers and models, so it
// has no query of a URL: there stand secrets.
func (s *Server) failed(doing string, err error) *serverError {
	text := strings.TrimPrefix(err.Error(), "pawl: ")
	if u, ok := errors.AsType[*url.Error](err); ok && u.URL != "" {
		text = strings.ReplaceAll(text, u.URL, withoutQuery(u.URL))
	}
	e := &serverError{"pawl: MCP server " + s.label + ": " + doing + ": " + strings.ToValidUTF8(text, "\uFFFD"), []error{err}}
	if errors.Is(err, sdk.ErrConnectionClosed) {
		e.causes = append(e.causes, ErrNotConnected)
	}
	return e
}

func withoutQuery(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "its URL"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// callFailed is the error of a call that was perhaps sent. Only an answer of the server, or that
// there was no connection to it, says that the call has ended.
func (s *Server) callFailed(doing string, err error) error {
	e := s.failed(doing, err)
	if !answered(err) && !undialed(err) {
		e.causes = append(e.causes, pawl.ErrOutcomeUnknown)
	}
	return e
}

// What the SDK says by a code where no server has answered: that either side is closing, and that
// the transport gave up.
const (
	clientClosing = -32003
	serverClosing = -32004
	notDelivered  = -32005
)

// answered says that an error is what the server answered.
func answered(err error) bool {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && answer.Code != clientClosing && answer.Code != serverClosing && answer.Code != notDelivered
}

// undialed says that there was no connection to send anything over.
func undialed(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
