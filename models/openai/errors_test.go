package openai_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

func TestHTTPErrors(t *testing.T) {
	const (
		refused = model.DeliveryRefused
		unknown = model.DeliveryUnknown
	)
	apiError := func(members string) string { return `{"error":{` + members + `}}` }
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		want   model.Error
	}{
		{
			name: "bad request", status: 400, header: http.Header{"X-Request-Id": {"req_9"}},
			body: apiError(`"message":"No tool output found for function call call_1.","type":"invalid_request_error","param":"input","code":null`),
			want: model.Error{Message: "No tool output found for function call call_1.", Kind: "invalid_request_error", Param: "input",
				RequestID: "req_9", Delivery: refused},
		},
		{
			name: "locked conversation", status: 400,
			body: apiError(`"message":"Another process is using it.","type":"invalid_request_error","param":"conversation","code":"conversation_locked"`),
			want: model.Error{Message: "Another process is using it.", Kind: "invalid_request_error", Param: "conversation",
				Code: "conversation_locked", Delivery: refused, Retryable: true},
		},
		{name: "key", status: 401, body: apiError(`"message":"Incorrect API key.","code":"invalid_api_key"`),
			want: model.Error{Message: "Incorrect API key.", Code: "invalid_api_key", Delivery: refused}},
		{name: "forbidden", status: 403, body: apiError(`"message":"no"`), want: model.Error{Message: "no", Delivery: refused}},
		{name: "not found", status: 404, body: apiError(`"message":"no","code":"previous_response_not_found"`),
			want: model.Error{Message: "no", Code: "previous_response_not_found", Delivery: refused}},
		{name: "request timeout", status: 408, body: apiError(`"message":"no"`),
			want: model.Error{Message: "no", Delivery: unknown, Retryable: true}},
		{name: "conflict", status: 409, body: apiError(`"message":"no"`), want: model.Error{Message: "no", Delivery: refused, Retryable: true}},
		{name: "unprocessable", status: 422, body: apiError(`"message":"no"`), want: model.Error{Message: "no", Delivery: refused}},
		{name: "rate limit", status: 429, header: http.Header{"Retry-After": {"2"}},
			body: apiError(`"message":"slow down","type":"tokens","code":"rate_limit_exceeded"`),
			want: model.Error{Message: "slow down", Kind: "tokens", Code: "rate_limit_exceeded", Delivery: refused, Retryable: true,
				RetryAfter: 2 * time.Second}},
		{name: "quota", status: 429, body: apiError(`"message":"no money","type":"insufficient_quota","code":"credit_balance_exhausted"`),
			want: model.Error{Message: "no money", Kind: "insufficient_quota", Code: "credit_balance_exhausted", Delivery: refused}},
		{name: "client went away", status: 499, body: apiError(`"message":"no"`), want: model.Error{Message: "no", Delivery: unknown}},
		{name: "server error", status: 500, body: apiError(`"message":"oops","type":"server_error"`),
			want: model.Error{Message: "oops", Kind: "server_error", Delivery: unknown, Retryable: true}},
		{name: "overloaded", status: 503, header: http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"9"}},
			body: apiError(`"message":"busy"`),
			want: model.Error{Message: "busy", Delivery: unknown, Retryable: true, RetryAfter: 1500 * time.Millisecond}},
		{name: "told to retry", status: 400, header: http.Header{"X-Should-Retry": {"true"}}, body: apiError(`"message":"no"`),
			want: model.Error{Message: "no", Delivery: refused, Retryable: true}},
		{name: "told not to retry", status: 500, header: http.Header{"X-Should-Retry": {"false"}}, body: apiError(`"message":"no"`),
			want: model.Error{Message: "no", Delivery: unknown, Final: true}},
		{name: "code that is a number", status: 400, body: apiError(`"message":"no","code":1210`),
			want: model.Error{Message: "no", Code: "1210", Delivery: refused}},
		{name: "error that is a text", status: 400, body: `{"error":"model not loaded"}`,
			want: model.Error{Message: "model not loaded", Delivery: refused}},
		{name: "no JSON", status: 502, body: "<html>Bad Gateway</html>\n",
			want: model.Error{Message: "<html>Bad Gateway</html>", Delivery: unknown, Retryable: true}},
		{name: "long and no JSON", status: 502, body: strings.Repeat("x", 400),
			want: model.Error{Message: strings.Repeat("x", 300) + "...", Delivery: unknown, Retryable: true}},
		{name: "empty", status: 504, want: model.Error{Message: "Gateway Timeout", Delivery: unknown, Retryable: true}},
		{name: "redirect", status: 308, header: http.Header{"Location": {"https://model.test/v1/responses"}}, body: "moved",
			want: model.Error{Message: "the server redirects to https://model.test/v1/responses", Delivery: unknown}},
		{name: "not modified", status: 304, want: model.Error{Message: "Not Modified", Delivery: unknown}},
		{name: "bad retry-after", status: 429, header: http.Header{"Retry-After": {"soon"}, "Retry-After-Ms": {"-1"}}, body: apiError(`"message":"no"`),
			want: model.Error{Message: "no", Delivery: refused, Retryable: true}},
		{name: "retry-after beyond all measure", status: 429, header: http.Header{"Retry-After": {"1e300"}}, body: apiError(`"message":"no"`),
			want: model.Error{Message: "no", Delivery: refused, Retryable: true, RetryAfter: 365 * 24 * time.Hour}},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				s := newFakeServer(t, answer(tt.status, tt.header, tt.body))
				m := openai.New(openai.Options{BaseURL: s.URL}).Responses("gpt-5.2")
				_, err := call(t.Context(), m, request(), stream)
				var got *model.Error
				if !errors.As(err, &got) {
					t.Fatalf("want a *model.Error, got %v", err)
				}
				tt.want.Status = tt.status
				if diff := cmp.Diff(tt.want, *got, cmpopts.IgnoreFields(model.Error{}, "Err")); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if got.Err != nil {
					t.Errorf("cause is %v", got.Err)
				}
				if n := s.count(); n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		}
	}
}

func TestRetryAfterDate(t *testing.T) {
	at := time.Now().Add(time.Hour).UTC()
	s := newFakeServer(t, answer(503, http.Header{"Retry-After": {at.Format(http.TimeFormat)}}, `{}`))
	_, err := s.model().Call(t.Context(), request(), nil)
	var got *model.Error
	if !errors.As(err, &got) || got.RetryAfter < 59*time.Minute || got.RetryAfter > time.Hour {
		t.Errorf("want a pause of about an hour, got %+v", got)
	}
}

// An endless error body is read to a bound.
func TestEndlessErrorBody(t *testing.T) {
	s := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		block := []byte(strings.Repeat("x", 64<<10))
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	_, err := s.model().Call(t.Context(), request(), nil)
	var got *model.Error
	if !errors.As(err, &got) || got.Status != 500 || got.Message != strings.Repeat("x", 300)+"..." {
		t.Errorf("got %+v", err)
	}
}

// roundTripper is a transport of the application's own.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func modelOver(transport http.RoundTripper) model.Model {
	return openai.New(openai.Options{
		BaseURL:    "http://model.test/v1",
		HTTPClient: &http.Client{Transport: transport},
	}).Responses("gpt-5.2")
}

func TestTransportErrors(t *testing.T) {
	errNet := errors.New("network is down")
	pipe := func(serve func(net.Conn)) *http.Transport {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go serve(theirs)
			return ours, nil
		}}
	}
	readRequest := func(c net.Conn) { // to the end of its body
		buf := make([]byte, 4096)
		for text := ""; !strings.HasSuffix(text, "}"); {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			text += string(buf[:n])
		}
	}
	tests := []struct {
		name      string
		transport http.RoundTripper
		delivery  model.Delivery
		cause     error
	}{
		{"no connection", &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errNet }},
			model.DeliveryRefused, errNet},
		{"no TLS", &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return nil, errNet },
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errNet }}, model.DeliveryRefused, errNet},
		{"cut after the request", pipe(func(c net.Conn) { readRequest(c); c.Close() }), model.DeliveryUnknown, io.EOF},
		{"cut in the headers", pipe(func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nServer: x\r\n")
			c.Close()
		}), model.DeliveryUnknown, io.ErrUnexpectedEOF},
		{"cut in the body", pipe(func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
			c.Close()
		}), model.DeliveryUnknown, io.ErrUnexpectedEOF},
		{"transport of another make", roundTripper(func(*http.Request) (*http.Response, error) { return nil, errNet }),
			model.DeliveryUnknown, errNet},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				_, err := call(t.Context(), modelOver(tt.transport), request(), stream)
				var got *model.Error
				if !errors.As(err, &got) {
					t.Fatalf("want a *model.Error, got %v", err)
				}
				if got.Delivery != tt.delivery || !got.Retryable || !errors.Is(err, tt.cause) {
					t.Errorf("want delivery %v, retryable, %v; got %+v", tt.delivery, tt.cause, got)
				}
			})
		}
	}
}

// The address of a request may hold secrets, and errors end up in logs and journals.
func TestTransportErrorDoesNotShowTheQuery(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, client := range []*http.Client{nil, {}} {
		m := openai.New(openai.Options{BaseURL: "http://" + l.Addr().String(), HTTPClient: client}).Responses("gpt-5.2")
		req := settings(model.Settings{ExtraQuery: map[string]string{"key": "secret"}})
		_, err = m.Call(t.Context(), req, nil)
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("want an error that names the server only, got %v", err)
		}
	}
}

func TestUnreachableServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	m := openai.New(openai.Options{BaseURL: "http://" + l.Addr().String()}).Responses("gpt-5.2")
	_, err = m.Call(t.Context(), request(), nil)
	var got *model.Error
	if !errors.As(err, &got) || got.Delivery != model.DeliveryRefused || !got.Retryable || got.Status != 0 {
		t.Errorf("want a refusal that can be retried, got %+v", err)
	}
}

func TestContext(t *testing.T) {
	type outcome struct {
		Delivery  model.Delivery
		Retryable bool
	}
	waiting := func(entered chan<- struct{}) http.RoundTripper { // for an answer
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				buf := make([]byte, 4096)
				_, _ = theirs.Read(buf)
				close(entered)
				_, _ = io.Copy(io.Discard, theirs)
			}()
			return ours, nil
		}}
	}
	dialing := func(entered chan<- struct{}) http.RoundTripper {
		return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(entered)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	}
	tests := []struct {
		name      string
		transport func(entered chan<- struct{}) http.RoundTripper
		end       error
		want      outcome
	}{
		{"cancelled while it waits", waiting, context.Canceled, outcome{model.DeliveryUnknown, false}},
		{"cancelled while it connects", dialing, context.Canceled, outcome{model.DeliveryRefused, false}},
		{"timeout while it waits", waiting, context.DeadlineExceeded, outcome{model.DeliveryUnknown, true}},
		{"timeout while it connects", dialing, context.DeadlineExceeded, outcome{model.DeliveryRefused, true}},
	}
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				entered := make(chan struct{})
				ctx := &endableContext{Context: t.Context(), done: make(chan struct{})}
				go func() {
					<-entered
					ctx.end(tt.end)
				}()
				_, err := call(ctx, modelOver(tt.transport(entered)), request(), stream)
				var got *model.Error
				if !errors.As(err, &got) || !errors.Is(err, tt.end) {
					t.Fatalf("want a *model.Error of %v, got %v", tt.end, err)
				}
				if diff := cmp.Diff(tt.want, outcome{got.Delivery, got.Retryable}); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// endableContext ends when it is told to, as if its deadline had passed.
type endableContext struct {
	context.Context
	done chan struct{}
	err  error
}

func (c *endableContext) end(err error) { c.err = err; close(c.done) }

func (c *endableContext) Done() <-chan struct{} { return c.done }

func (c *endableContext) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}
