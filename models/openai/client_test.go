package openai_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/option"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

func TestInfo(t *testing.T) {
	got := openai.New(openai.Options{}).Responses("gpt-5.2").Info()
	want := model.Info{Provider: "openai", Name: "gpt-5.2", UniqueCallIDs: true, ServerState: true, ServerPrompts: true}
	if got != want {
		t.Errorf("Info is %+v, want %+v", got, want)
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	s := newFakeServer(t, answer(200, nil, emptyResponse))
	client := openai.New(openai.Options{
		APIKey:       "sk-test",
		BaseURL:      s.URL + "/proxy/v1/",
		Organization: "org-1",
		Project:      "proj-1",
		Headers:      map[string]string{"X-Gateway": "g", "x-tenant": "default"},
		HTTPClient:   s.Server.Client(),
	})
	req := settings(model.Settings{ExtraHeaders: map[string]string{"X-Tenant": "t1"}})
	if _, err := client.Responses("gpt-5.2").Call(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	r, _ := s.last(t)
	if r.Method != http.MethodPost || r.URL.Path != "/proxy/v1/responses" {
		t.Errorf("request is %s %s", r.Method, r.URL)
	}
	want := map[string]string{
		"Authorization":       "Bearer sk-test",
		"OpenAI-Organization": "org-1",
		"OpenAI-Project":      "proj-1",
		"X-Gateway":           "g",
		"X-Tenant":            "t1",
		"Content-Type":        "application/json",
	}
	for name, value := range want {
		if got := r.Header.Get(name); got != value {
			t.Errorf("header %s is %q, want %q", name, got, value)
		}
	}
}

func setEnvironment(t *testing.T, base string) {
	t.Setenv("OPENAI_API_KEY", "sk-env")
	t.Setenv("OPENAI_BASE_URL", base)
	t.Setenv("OPENAI_ORG_ID", "org-env")
	t.Setenv("OPENAI_PROJECT_ID", "proj-env")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Env: yes")
}

func TestNewDoesNotReadTheEnvironment(t *testing.T) {
	setEnvironment(t, "http://127.0.0.1:1/v1")
	s := newFakeServer(t, answer(200, nil, emptyResponse))
	client := openai.New(openai.Options{BaseURL: s.URL + "/v1"})
	if _, err := client.Responses("gpt-5.2").Call(t.Context(), request(), nil); err != nil {
		t.Fatal(err)
	}
	r, _ := s.last(t)
	for _, name := range []string{"Authorization", "OpenAI-Organization", "OpenAI-Project", "X-Env"} {
		if got := r.Header.Get(name); got != "" {
			t.Errorf("header %s is %q", name, got)
		}
	}
}

func TestFromEnv(t *testing.T) {
	setEnvironment(t, "http://127.0.0.1:1/v1")
	want := openai.Options{APIKey: "sk-env", BaseURL: "http://127.0.0.1:1/v1", Organization: "org-env", Project: "proj-env"}
	if diff := cmp.Diff(want, openai.FromEnv()); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func TestResponsesFromTheEnvironment(t *testing.T) {
	s := newFakeServer(t, answer(200, nil, emptyResponse))
	setEnvironment(t, s.URL+"/v1")
	if _, err := openai.Responses("gpt-5.2").Call(t.Context(), request(), nil); err != nil {
		t.Fatal(err)
	}
	if r, _ := s.last(t); r.Header.Get("Authorization") != "Bearer sk-env" {
		t.Errorf("Authorization is %q", r.Header.Get("Authorization"))
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	tests := []struct {
		name    string
		opts    openai.Options
		problem string
	}{
		{"no key", openai.Options{}, "no API key: set Options.APIKey, or OPENAI_API_KEY"},
		{"base URL without a scheme", openai.Options{BaseURL: "localhost/v1"}, `base URL "localhost/v1" is not an http or https URL`},
		{"base URL of another scheme", openai.Options{BaseURL: "ftp://localhost/v1"}, "is not an http or https URL"},
		{"base URL that is none", openai.Options{BaseURL: "http://[::1"}, "base URL: "},
		{"header", openai.Options{APIKey: "sk", Headers: map[string]string{"": "x"}}, `header name "" is invalid`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t, answer(200, nil, emptyResponse))
			_, err := openai.New(tt.opts).Responses("gpt-5.2").Call(t.Context(), request(), nil)
			wantRefusedBeforeSending(t, s, err, tt.problem)
			if err := tt.opts.Check(); err == nil || !strings.HasPrefix(err.Error(), "pawl: openai: ") || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("Check: %v, want %q", err, tt.problem)
			}
		})
	}
	if err := (openai.Options{APIKey: "sk"}).Check(); err != nil {
		t.Errorf("Check of options that can be used: %v", err)
	}
}

// One call is one request, whatever the server recommends and the library's options say.
func TestOneAttempt(t *testing.T) {
	s := newFakeServer(t, answer(500, http.Header{"X-Should-Retry": {"true"}, "Retry-After-Ms": {"1"}}, `{}`))
	client := openai.New(openai.Options{BaseURL: s.URL, RequestOptions: []option.RequestOption{option.WithMaxRetries(3)}})
	for _, stream := range []bool{false, true} {
		before := s.count()
		if _, err := call(t.Context(), client.Responses("gpt-5.2"), request(), stream); err == nil {
			t.Error("want an error")
		}
		if got := s.count() - before; got != 1 {
			t.Errorf("stream %v: %d requests, want 1", stream, got)
		}
	}
}

// net/http sends a request a second time if it carries a key and its body can be had again
// (https://pkg.go.dev/net/http#Transport).
func TestIdempotencyKeyDoesNotAllowASecondSending(t *testing.T) {
	s := newFakeServer(t, answer(200, nil, emptyResponse))
	var replayable []bool
	client := openai.New(openai.Options{BaseURL: s.URL, RequestOptions: []option.RequestOption{
		option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			replayable = append(replayable, r.GetBody != nil)
			return next(r)
		}),
	}})
	for _, header := range []string{"X-Other", "Idempotency-Key", "x-idempotency-key"} {
		req := settings(model.Settings{ExtraHeaders: map[string]string{header: "k1"}})
		if _, err := client.Responses("gpt-5.2").Call(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]bool{true, false, false}, replayable); diff != "" {
		t.Errorf("bodies that can be had again (-want +got):\n%s", diff)
	}
}

// Headers and a small body go out together.
func TestSmallRequestIsOneWrite(t *testing.T) {
	first := make(chan string, 1)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			buf := make([]byte, 64<<10)
			n, _ := theirs.Read(buf)
			first <- string(buf[:n])
			theirs.Close()
		}()
		return ours, nil
	}}
	_, _ = modelOver(transport).Call(t.Context(), request(), nil) // there is no answer
	if got := <-first; !strings.HasSuffix(got, "\r\n\r\n"+`{"model":"gpt-5.2","input":[]}`) {
		t.Errorf("the first write is %q", got)
	}
}

// Calls in a row share a connection, streams too, also when the stream ends a moment after its last event.
func TestConnectionIsReused(t *testing.T) {
	for _, stream := range []bool{false, true} {
		s := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
			if !stream {
				answer(200, nil, emptyResponse)(w, r)
				return
			}
			answerStream(frame("response.completed", `"response":`+emptyResponse))(w, r)
			w.(http.Flusher).Flush()
		})
		m := openai.New(openai.Options{BaseURL: s.URL}).Responses("gpt-5.2")
		connections := map[string]bool{}
		for range 5 {
			if _, err := call(t.Context(), m, request(), stream); err != nil {
				t.Fatal(err)
			}
			r, _ := s.last(t)
			connections[r.RemoteAddr] = true
		}
		if len(connections) != 1 {
			t.Errorf("stream %v: %d connections for 5 calls in a row, want 1", stream, len(connections))
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	s := newFakeServer(t, answer(200, nil, emptyResponse))
	m := s.model()
	shared := &model.Static{Instructions: "Settle refunds."}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				req := &model.Request{Static: shared, Input: model.NewInput(item.UserText("hi"))}
				if _, err := m.Call(t.Context(), req, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := s.count(); got != 80 {
		t.Errorf("%d requests, want 80", got)
	}
}
