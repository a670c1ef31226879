package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// stream makes one call that answers with events (https://platform.openai.com/docs/api-reference/responses-streaming).
func (c *Client) stream(ctx context.Context, a *attempt, emit func(*model.Event) bool) (*model.Response, error) {
	requestCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := c.send(requestCtx, a)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	s := &stream{ctx: ctx, res: res, emit: emit, keepUsage: a.keepUsage, event: newEventReader()}
	response, err := s.run()
	if s.ended {
		drain(res.Body, cancel)
	}
	return response, err
}

// How long and for how many bytes a server may take to end a stream after its last event.
const (
	drainTime = 100 * time.Millisecond
	drainSize = 4 << 10
)

// drain reads to the end of a stream that has nothing more to say, so that the connection can be used again. A server that
// does not end it is cut off.
func drain(body io.Reader, cutOff func()) {
	timer := time.AfterFunc(drainTime, cutOff)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, drainSize) // an error only means that the connection is not used again
}

// stream is one streamed response on its way.
type stream struct {
	ctx       context.Context
	res       *http.Response
	emit      func(*model.Event) bool
	keepUsage bool

	event *eventReader
	shown model.Event // reused: the run may not keep it
	done  []doneItem
	ended bool // the terminal event has come
}

// doneItem is an output item as its own event said it.
type doneItem struct {
	index int
	raw   []byte
}

// run reads events until the terminal one and returns what that says. The library's decoder does for that: it hands out the
// bytes of an event as they came, each in memory of its own.
func (s *stream) run() (*model.Response, error) {
	body := &eventBody{ReadCloser: s.res.Body, left: MaxResponseSize}
	decoder := ssestream.NewDecoder(&http.Response{Body: body}) // without a content type, which may choose another decoder
	for decoder.Next() {
		body.left = MaxResponseSize
		frame := decoder.Event()
		data := bytes.TrimSpace(frame.Data)
		if string(data) == "[DONE]" { // some servers end all their streams as Chat Completions does
			continue
		}
		if err := s.event.read(data, frame.Type); err != nil {
			return nil, malformed(s.res, fmt.Errorf("event %q: %w", frame.Type, err))
		}
		if !s.emit(s.show(data)) {
			return nil, model.ErrAbandoned
		}
		if response, err := s.take(data); response != nil || err != nil {
			s.ended = true
			return response, err
		}
	}
	return nil, s.cut(decoder.Err())
}

// show returns the current event as the run sees it.
func (s *stream) show(data []byte) *model.Event {
	s.shown = model.Event{
		Kind:        eventKind(s.event.kind),
		Type:        s.event.kind,
		ItemID:      s.event.itemID,
		OutputIndex: s.event.index,
		Raw:         data,
	}
	if s.shown.Kind != model.EventRaw {
		s.shown.Delta = s.event.delta
	}
	return &s.shown
}

// take acts on the current event. It returns neither a response nor an error if more events are to come.
func (s *stream) take(data []byte) (*model.Response, error) {
	switch s.event.kind {
	case "response.output_item.done":
		s.done = append(s.done, doneItem{s.event.index, s.event.item})
	case "response.completed", "response.incomplete", "response.failed":
		return s.finish()
	case "error":
		e := &model.Error{
			Status:    s.res.StatusCode,
			RequestID: s.res.Header.Get(requestIDHeader),
			Err:       model.ErrFailed,
		}
		failure := s.event.failure(data)
		failure.copyTo(e)
		e.Retryable = retryable(e)
		return nil, e
	}
	return nil, nil
}

// finish returns what the terminal event says.
func (s *stream) finish() (*model.Response, error) {
	response, err := parseResponse(s.event.response, s.keepUsage)
	if err != nil {
		return nil, malformed(s.res, fmt.Errorf("event %q: %w", s.event.kind, err))
	}
	switch s.event.kind {
	case "response.failed":
		response.status = "failed"
	case "response.incomplete":
		response.status = "incomplete"
	}
	if len(response.items) == 0 { // some servers leave the output out where they sent it before
		slices.SortStableFunc(s.done, func(a, b doneItem) int { return cmp.Compare(a.index, b.index) })
		for _, done := range s.done {
			it, err := item.Parse(done.raw)
			if err != nil {
				return nil, malformed(s.res, err)
			}
			response.items = append(response.items, it)
		}
	}
	return response.result(s.res)
}

// cut is the error of a stream that ended before its terminal event.
func (s *stream) cut(cause error) *model.Error {
	switch {
	case errors.Is(cause, bufio.ErrTooLong), errors.Is(cause, errTooLarge):
		return malformed(s.res, errTooLarge)
	case cause == nil:
		return answerCut(s.ctx, s.res, model.ErrStreamCut)
	}
	return answerCut(s.ctx, s.res, fmt.Errorf("%w: %w", model.ErrStreamCut, cause))
}

// eventBody bounds how much is read for one event. The decoder bounds a line, but not how many lines make up an event.
type eventBody struct {
	io.ReadCloser
	left int
}

func (b *eventBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	return n, err
}
