package pawltest

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/model"
)

// stream shows the events of a response to a caller that asked for them, with the faults that strike on the way.
func (m *ScriptedModel) stream(ctx context.Context, call *ScriptedCall, step *ScriptedStep, res *model.Response, faults []*ScriptedFault, emit func(*model.Event) bool) error {
	s := &scriptedStream{ctx: ctx, emit: emit, faults: faults}
	s.failing = func(f *ScriptedFault) {
		if f.Stored {
			m.accept(call, res)
		}
	}
	switch {
	case emit == nil:
		return s.strikeAll()
	case step.Events != nil:
		for i := range step.Events {
			if err := s.show(&step.Events[i]); err != nil {
				return err
			}
		}
	default:
		chunk := m.DeltaSize
		if chunk <= 0 {
			chunk = defaultDelta
		}
		if err := s.showResponse(res, chunk); err != nil {
			return err
		}
	}
	for _, f := range faults {
		if f.Point == FaultMidStream && f.Events >= s.sent {
			return m.mismatch(fmt.Errorf("pawltest: call %d: the fault after %d events did not strike: there were %d", call.Number, f.Events, s.sent))
		}
	}
	return nil
}

// scriptedStream is one stream on its way.
type scriptedStream struct {
	ctx     context.Context
	emit    func(*model.Event) bool
	faults  []*ScriptedFault
	failing func(*ScriptedFault)
	sent    int
}

// strikeAll lets every fault of the middle happen to a call that shows no events.
func (s *scriptedStream) strikeAll() error {
	for _, f := range s.faults {
		if f.Point == FaultMidStream {
			if err := s.strike(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scriptedStream) strike(f *ScriptedFault) error {
	err := f.strike(s.ctx)
	if err != nil && s.ctx.Err() == nil {
		s.failing(f)
	}
	return err
}

// show shows one event, after the fault whose turn it is.
func (s *scriptedStream) show(ev *model.Event) error {
	for _, f := range s.faults {
		if f.Point == FaultMidStream && f.Events == s.sent {
			if err := s.strike(f); err != nil {
				return err
			}
		}
	}
	s.sent++
	if !s.emit(ev) {
		return model.ErrAbandoned
	}
	if err := s.ctx.Err(); err != nil {
		return &model.Error{Err: err}
	}
	return nil
}

// showResponse shows a response as the Responses API streams one:
// https://platform.openai.com/docs/api-reference/responses-streaming
func (s *scriptedStream) showResponse(res *model.Response, chunk int) error {
	env := &envelope{usage: "null"}
	if u := res.Usage; u != nil {
		env.usage = ResponsesUsage{InputTokens: u.InputTokens, CachedTokens: u.CachedInputTokens,
			OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens}.encode()
	}
	r := &response{id: res.ID, output: res.Items, status: statusCompleted}
	r.body = env.encode(r, statusCompleted)
	e := &events{chunk: chunk, send: func(kind, data string) error { return s.show(scriptedEvent(kind, data)) }}
	e.begin(env.encode(r, statusInProgress))
	for i, it := range r.output {
		e.output(i, it)
	}
	e.finish(r)
	return e.err
}

// scriptedEvent is an event as an adapter for the API hands it out.
func scriptedEvent(kind, data string) *model.Event {
	ev := &model.Event{Kind: deltaKinds[kind], Type: kind, Raw: []byte(data)}
	_ = jsonscan.Object(data, func(key, value string) (err error) { // the data was made here
		switch key {
		case "item_id":
			ev.ItemID, err = jsonscan.String(value)
		case "output_index":
			n, err := jsonscan.Int(value)
			ev.OutputIndex = int(n)
			return err
		case "delta":
			ev.Delta, err = jsonscan.String(value)
		}
		return err
	})
	return ev
}

var deltaKinds = map[string]model.EventKind{
	"response.output_text.delta":             model.EventTextDelta,
	"response.refusal.delta":                 model.EventRefusalDelta,
	"response.reasoning_summary_text.delta":  model.EventReasoningDelta,
	"response.reasoning_text.delta":          model.EventReasoningDelta,
	"response.function_call_arguments.delta": model.EventArgumentsDelta,
	"response.custom_tool_call_input.delta":  model.EventArgumentsDelta,
}
