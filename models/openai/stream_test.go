package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

// frame is one event of a stream.
func frame(kind, members string) string {
	return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + members + "}\n\n"
}

func TestStreamEvents(t *testing.T) {
	const message = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi <b>"}]}`
	stream := frame("response.created", `"sequence_number":0,"response":{"id":"resp_1"}`) +
		frame("response.reasoning_summary_text.delta", `"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Let me "`) +
		frame("response.reasoning_text.delta", `"item_id":"rs_1","output_index":0,"content_index":0,"delta":"see."`) +
		": a comment\n\n" +
		frame("response.output_text.delta", `"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Hi ","logprobs":[]`) +
		frame("response.output_text.delta", `"item_id":"msg_1","output_index":1,"content_index":0,"delta":"\u003cb\u003e"`) +
		frame("response.refusal.delta", `"item_id":"msg_1","output_index":1,"delta":"No."`) +
		frame("response.function_call_arguments.delta", `"item_id":"fc_1","output_index":2,"delta":"{\"a\":"`) +
		frame("response.custom_tool_call_input.delta", `"item_id":"ctc_1","output_index":3,"delta":"SELECT"`) +
		frame("response.mcp_call_arguments.delta", `"item_id":"mcp_1","output_index":4,"delta":"{}"`) +
		frame("response.brand_new", `"anything":[1]`) +
		frame("response.completed", `"response":{"id":"resp_1","status":"completed","output":[`+message+`],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}`) +
		frame("response.output_text.delta", `"delta":"after the end"`)
	s := newFakeServer(t, answerStream(stream))
	var c collector
	got, err := s.model().Call(t.Context(), request(), c.emit)
	if err != nil {
		t.Fatal(err)
	}
	want := &model.Response{ID: "resp_1", RequestID: "req_1", Items: []item.Item{item.FromTrusted(message)},
		Usage: &model.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 7}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	wantEvents := []model.Event{
		{Type: "response.created"},
		{Kind: model.EventReasoningDelta, Type: "response.reasoning_summary_text.delta", Delta: "Let me ", ItemID: "rs_1"},
		{Kind: model.EventReasoningDelta, Type: "response.reasoning_text.delta", Delta: "see.", ItemID: "rs_1"},
		{Kind: model.EventTextDelta, Type: "response.output_text.delta", Delta: "Hi ", ItemID: "msg_1", OutputIndex: 1},
		{Kind: model.EventTextDelta, Type: "response.output_text.delta", Delta: "<b>", ItemID: "msg_1", OutputIndex: 1},
		{Kind: model.EventRefusalDelta, Type: "response.refusal.delta", Delta: "No.", ItemID: "msg_1", OutputIndex: 1},
		{Kind: model.EventArgumentsDelta, Type: "response.function_call_arguments.delta", Delta: `{"a":`, ItemID: "fc_1", OutputIndex: 2},
		{Kind: model.EventArgumentsDelta, Type: "response.custom_tool_call_input.delta", Delta: "SELECT", ItemID: "ctc_1", OutputIndex: 3},
		{Type: "response.mcp_call_arguments.delta", ItemID: "mcp_1", OutputIndex: 4},
		{Type: "response.brand_new"},
		{Type: "response.completed"},
	}
	if len(c.events) != len(wantEvents) {
		t.Fatalf("%d events, want %d", len(c.events), len(wantEvents))
	}
	for i := range c.events {
		raw := string(c.events[i].Raw)
		if !strings.HasPrefix(raw, `{"type":"`+wantEvents[i].Type+`",`) || !strings.HasSuffix(raw, "}") {
			t.Errorf("event %d: raw is %s", i, raw)
		}
		c.events[i].Raw = nil
	}
	if diff := cmp.Diff(wantEvents, c.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Forms of a stream that servers send besides the usual one.
func TestStreamForms(t *testing.T) {
	const a, b = `{"id":"msg_1","type":"message"}`, `{"id":"fc_1","type":"function_call"}`
	itemA, itemB := item.FromTrusted(a), item.FromTrusted(b)
	done := frame("response.output_item.done", `"output_index":1,"item":`+b) + frame("response.output_item.done", `"output_index":0,"item":`+a)
	completed := func(object string) string { return frame("response.completed", `"response":`+object) }
	tests := []struct {
		name, stream string
		want         []item.Item
	}{
		{"empty output is filled from the items that were done, in their order",
			done + completed(`{"id":"resp_1","status":"completed","output":[]}`), []item.Item{itemA, itemB}},
		{"missing output too", done + completed(`{"id":"resp_1"}`), []item.Item{itemA, itemB}},
		{"without indexes as they came",
			frame("response.output_item.done", `"item":`+b) + frame("response.output_item.done", `"item":`+a) + completed(`{"id":"resp_1"}`),
			[]item.Item{itemB, itemA}},
		{"output that is there is the output", done + completed(`{"id":"resp_1","output":[`+a+`]}`), []item.Item{itemA}},
		{"type only as the name of the frame",
			"event: response.completed\ndata: {\"response\":{\"id\":\"resp_1\",\"output\":[" + a + "]}}\n\n", []item.Item{itemA}},
		{"type only in the data", "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_1\",\"output\":[" + a + "]}}\n\n", []item.Item{itemA}},
		{"names in other letters", frame("response.completed", `"Type":"response.failed","Response":{"id":"resp_2","output":[]},"response":{"id":"resp_1","output":[`+a+`]}`),
			[]item.Item{itemA}},
		{"CRLF, no space after the colon, data over two lines",
			"event:response.completed\r\ndata:{\"response\":\r\ndata:{\"id\":\"resp_1\",\"output\":[" + a + "]}}\r\n\r\n", []item.Item{itemA}},
		{"end mark of Chat Completions in between", "data: [DONE]\n\n" + completed(`{"id":"resp_1","output":[`+a+`]}`), []item.Item{itemA}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t, answerStream(tt.stream))
			got, err := call(t.Context(), s.model(), request(), true)
			if err != nil {
				t.Fatal(err)
			}
			want := &model.Response{ID: "resp_1", RequestID: "req_1", Items: tt.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStreamFailures(t *testing.T) {
	created := frame("response.created", `"response":{"id":"resp_1"}`)
	tests := []struct {
		name, stream string
		want         model.Error
		cause        error
		events       int
	}{
		{"nothing", "", model.Error{Retryable: true}, model.ErrStreamCut, 0},
		{"no terminal event", created, model.Error{Retryable: true}, model.ErrStreamCut, 1},
		{"only an end mark", created + "data: [DONE]\n\n", model.Error{Retryable: true}, model.ErrStreamCut, 1},
		{"terminal event that was cut", created + `data: {"type":"response.completed","response":{"id":"resp_1","output":[]}}`,
			model.Error{Retryable: true}, model.ErrStreamCut, 1},
		{"error event as documented", frame("error", `"code":"rate_limit_exceeded","message":"wait","param":"p","sequence_number":1`),
			model.Error{Code: "rate_limit_exceeded", Message: "wait", Param: "p", Retryable: true}, model.ErrFailed, 1},
		{"error event as sent", frame("error", `"error":{"type":"tokens","code":"rate_limit_exceeded","message":"wait","param":null}`),
			model.Error{Kind: "tokens", Code: "rate_limit_exceeded", Message: "wait", Retryable: true}, model.ErrFailed, 1},
		{"error event in both forms", frame("error", `"message":"flat","code":"flat","error":{"code":"nested"}`),
			model.Error{Code: "nested", Message: "flat"}, model.ErrFailed, 1},
		{"quota in an error event", frame("error", `"error":{"type":"insufficient_quota","code":"server_error","message":"no money"}`),
			model.Error{Kind: "insufficient_quota", Code: "server_error", Message: "no money"}, model.ErrFailed, 1},
		{"garbage", created + "data: {\"type\":\n\n", model.Error{}, model.ErrMalformed, 1},
		{"event that is no object", created + "data: 1\n\n", model.Error{}, model.ErrMalformed, 1},
		{"delta with broken UTF-8", "data: {\"type\":\"response.output_text.delta\",\"delta\":\"\xff\"}\n\n", model.Error{}, model.ErrMalformed, 0},
		{"completed without a response", frame("response.completed", `"sequence_number":1`), model.Error{}, model.ErrMalformed, 1},
		{"completed with a broken item", frame("response.completed", `"response":{"output":[[]]}`), model.Error{}, model.ErrMalformed, 1},
		{"done item that is none", frame("response.output_item.done", `"item":7`) + frame("response.completed", `"response":{}`),
			model.Error{}, model.ErrMalformed, 2},
		{"endless line", "data: " + strings.Repeat("x", openai.MaxResponseSize+1), model.Error{}, model.ErrMalformed, 0},
		{"endless event", strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 34), model.Error{}, model.ErrMalformed, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFakeServer(t, answerStream(tt.stream))
			var c collector
			_, err := s.model().Call(t.Context(), request(), c.emit)
			wantModelError(t, err, tt.want, tt.cause)
			if len(c.events) != tt.events {
				t.Errorf("%d events were shown, want %d", len(c.events), tt.events)
			}
		})
	}
}

// The bound is on each event, not on the stream.
func TestLongStream(t *testing.T) {
	large := frame("response.image_generation_call.partial_image", `"partial_image_b64":"`+strings.Repeat("x", openai.MaxResponseSize/2)+`"`)
	stream := large + large + large + frame("response.completed", `"response":`+emptyResponse)
	s := newFakeServer(t, answerStream(stream))
	if _, err := call(t.Context(), s.model(), request(), true); err != nil {
		t.Error(err)
	}
}

// streamTransport answers with a stream that the test writes.
func streamTransport(body io.ReadCloser) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, r.Body)
		return &http.Response{
			StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: r, Body: body,
			Header: http.Header{"Content-Type": {"text/event-stream"}, "X-Request-Id": {"req_1"}},
		}, err
	})
}

// closeRecorder says whether a body was closed.
type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error { c.closed = true; return nil }

func TestBodyIsClosed(t *testing.T) {
	created := frame("response.created", `"response":{"id":"resp_1"}`)
	completed := frame("response.completed", `"response":`+emptyResponse)
	always := func(*model.Event) bool { return true }
	tests := []struct {
		name string
		body io.Reader
		emit func(*model.Event) bool
		want error
	}{
		{"completed", strings.NewReader(created + completed), always, nil},
		{"abandoned", strings.NewReader(created + completed), func(*model.Event) bool { return false }, model.ErrAbandoned},
		{"abandoned at the end", strings.NewReader(created + completed),
			func(ev *model.Event) bool { return ev.Type != "response.completed" }, model.ErrAbandoned},
		{"cut", io.MultiReader(strings.NewReader(created), failingReader{io.ErrUnexpectedEOF}), always, model.ErrStreamCut},
		{"malformed", strings.NewReader("data: x\n\n"), always, model.ErrMalformed},
		{"blocking", strings.NewReader(emptyResponse), nil, nil},
		{"blocking, cut", failingReader{io.ErrUnexpectedEOF}, nil, io.ErrUnexpectedEOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := &closeRecorder{Reader: tt.body}
			_, err := modelOver(streamTransport(body)).Call(t.Context(), request(), tt.emit)
			if !errors.Is(err, tt.want) {
				t.Errorf("want %v, got %v", tt.want, err)
			}
			if !body.closed {
				t.Error("the body was not closed")
			}
		})
	}
}

func TestBodyIsClosedWhenEmitPanics(t *testing.T) {
	body := &closeRecorder{Reader: strings.NewReader(frame("response.created", `"response":{}`))}
	defer func() {
		if recover() == nil {
			t.Error("the panic was swallowed")
		}
		if !body.closed {
			t.Error("the body was not closed")
		}
	}()
	_, _ = modelOver(streamTransport(body)).Call(t.Context(), request(), func(*model.Event) bool { panic("reader") })
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestCutStreamNamesItsCause(t *testing.T) {
	body := &closeRecorder{Reader: io.MultiReader(strings.NewReader(": hello\n\n"), failingReader{io.ErrUnexpectedEOF})}
	_, err := call(t.Context(), modelOver(streamTransport(body)), request(), true)
	wantModelError(t, err, model.Error{Retryable: true}, model.ErrStreamCut)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("want the cause in %v", err)
	}
}

func TestStreamIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
		answerStream(frame("response.created", `"response":{"id":"resp_1"}`))(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // the client hangs up
	})
	_, err := s.model().Call(ctx, request(), func(*model.Event) bool {
		cancel()
		return true
	})
	wantModelError(t, err, model.Error{}, context.Canceled)
}

// A server that keeps the stream open after its last event holds the result up for a moment only.
func TestStreamLeftOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			go func() {
				<-r.Context().Done()
				writer.CloseWithError(r.Context().Err())
			}()
			go func() { _, _ = io.WriteString(writer, frame("response.completed", `"response":`+emptyResponse)) }()
			return streamTransport(reader).RoundTrip(r)
		})
		start := time.Now()
		got, err := call(t.Context(), modelOver(transport), request(), true)
		if err != nil || got.ID != "resp_1" {
			t.Errorf("got %+v, %v", got, err)
		}
		if waited := time.Since(start); waited != 100*time.Millisecond {
			t.Errorf("waited for %v", waited)
		}
	})
}
