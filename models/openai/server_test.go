package openai_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

// fakeServer answers every request in one way and keeps what it was sent.
type fakeServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func newFakeServer(t testing.TB, answer http.HandlerFunc) *fakeServer {
	t.Helper()
	s := &fakeServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *fakeServer) model() model.Model { return s.client().Responses("gpt-5.2") }

func (s *fakeServer) client() *openai.Client {
	return openai.New(openai.Options{APIKey: "sk-test", BaseURL: s.URL + "/v1", HTTPClient: s.Server.Client()})
}

func (s *fakeServer) last(t testing.TB) (*http.Request, string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		t.Fatal("the server got no request")
	}
	return s.requests[len(s.requests)-1], s.bodies[len(s.bodies)-1]
}

func (s *fakeServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// answer is a fixed answer.
func answer(status int, header http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// answerStream is a fixed stream.
func answerStream(stream string) http.HandlerFunc {
	return answer(http.StatusOK, http.Header{"Content-Type": {"text/event-stream"}, "X-Request-Id": {"req_1"}}, stream)
}

const emptyResponse = `{"id":"resp_1","object":"response","status":"completed","output":[]}`

func request(items ...item.Item) *model.Request {
	return &model.Request{Static: &model.Static{}, Input: model.NewInput(items...)}
}

// collector keeps copies of the events of a stream.
type collector struct{ events []model.Event }

func (c *collector) emit(ev *model.Event) bool {
	kept := *ev
	kept.Raw = append([]byte(nil), ev.Raw...)
	c.events = append(c.events, kept)
	return true
}

// call makes one call, blocking or as a stream.
func call(ctx context.Context, m model.Model, req *model.Request, stream bool) (*model.Response, error) {
	if !stream {
		return m.Call(ctx, req, nil)
	}
	return m.Call(ctx, req, func(*model.Event) bool { return true })
}

func ptr[T any](v T) *T { return &v }
