package pawltest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// api sends requests to a server as a client without any library would.
type api struct {
	t *testing.T
	s *pawltest.ResponsesServer
}

type reply struct {
	status int
	header http.Header
	body   string
}

func newAPI(t *testing.T, opts *pawltest.ResponsesOptions) api {
	t.Helper()
	return api{t, pawltest.NewResponsesServer(t, opts)}
}

// talker answers every request with the same text.
func talker(text string) *pawltest.ResponsesOptions {
	return &pawltest.ResponsesOptions{Respond: func(*pawltest.ResponsesRequest) pawltest.ResponsesReply {
		return pawltest.ReplyText(text)
	}}
}

// script is a server's options with the given replies.
func script(replies ...pawltest.ResponsesReply) *pawltest.ResponsesOptions {
	opts := &pawltest.ResponsesOptions{}
	for _, r := range replies {
		opts.Steps = append(opts.Steps, pawltest.ResponsesStep{Reply: r})
	}
	return opts
}

// try sends a request and returns the transport's error.
func (a api) try(method, path, body string) (reply, error) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.s.URL()+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	resp, err := a.s.Client().Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(raw)}, err
}

// send is try for requests that must get an answer.
func (a api) send(method, path, body string) reply {
	a.t.Helper()
	r, err := a.try(method, path, body)
	if err != nil {
		a.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// want is send for requests that must be answered with the status.
func (a api) want(status int, method, path, body string) string {
	a.t.Helper()
	r := a.send(method, path, body)
	if r.status != status {
		a.t.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, r.status, status, r.body)
	}
	return r.body
}

// create creates a response that must succeed.
func (a api) create(members string) string {
	a.t.Helper()
	return a.want(200, http.MethodPost, "/responses", `{"model":"gpt-test",`+members+`}`)
}

func call(callID, args string) item.Item { return item.FunctionCallItem("", callID, "work", args) }

// kinds are the event types of a stream in order.
func kinds(stream string) []string {
	var out []string
	for line := range strings.Lines(stream) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			out = append(out, strings.TrimSpace(kind))
		}
	}
	return out
}

// recorder is a testing.TB that keeps what a failing test would print.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
