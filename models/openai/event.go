package openai

import (
	"cmp"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/model"
)

// eventReader reads one streamed event after the other; its fields are what the last one said.
type eventReader struct {
	kind, itemID, delta string
	index               int
	item, response      []byte // as they stand in the event

	lastItemID string
	member     func(key, value []byte) error // readMember, bound once rather than for each event
}

func newEventReader() *eventReader {
	e := &eventReader{}
	e.member = e.readMember
	return e
}

// read reads the event in data. Its type is also the name of its SSE frame, which counts if the event does not say it.
func (e *eventReader) read(data []byte, frame string) error {
	e.kind, e.itemID, e.delta, e.index, e.item, e.response = frame, "", "", 0, nil, nil
	return jsonscan.Object(data, e.member)
}

func (e *eventReader) readMember(key, value []byte) (err error) {
	switch string(key) {
	case "type":
		e.kind, err = sameString(value, e.kind)
	case "item_id":
		e.itemID, err = sameString(value, e.lastItemID)
		e.lastItemID = e.itemID
	case "output_index":
		e.index = index(value)
	case "delta":
		e.delta = text(value)
	case "item":
		e.item = value
	case "response":
		e.response = value
	}
	return err
}

// sameString decodes a JSON string that is likely to be known, so that it need not be allocated again.
func sameString(value []byte, known string) (string, error) {
	n := len(value) - 1
	if n > 0 && value[0] == '"' && string(value[1:n]) == known && !strings.Contains(known, `\`) {
		return known, nil
	}
	return jsonscan.String(value)
}

func index(value []byte) int {
	n, err := jsonscan.Int(value)
	if err != nil {
		return 0
	}
	return int(n)
}

// failure reads an error event. The API reference has the members of the error in the event itself, the service sends them in
// an object of their own (https://github.com/openai/openai-dotnet/issues/881).
func (e *eventReader) failure(data []byte) serverError {
	var flat, nested serverError
	flat.read(data)
	_ = jsonscan.Object(data, func(key, value []byte) error { // read before without an error
		if string(key) == "error" {
			nested.read(value)
		}
		return nil
	})
	return serverError{
		code:    cmp.Or(nested.code, flat.code),
		kind:    nested.kind, // the flat one is the type of the event
		param:   cmp.Or(nested.param, flat.param),
		message: cmp.Or(nested.message, flat.message),
	}
}

// eventKind classifies an event by its type.
func eventKind(kind string) model.EventKind {
	switch kind {
	case "response.output_text.delta":
		return model.EventTextDelta
	case "response.refusal.delta":
		return model.EventRefusalDelta
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return model.EventReasoningDelta
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return model.EventArgumentsDelta
	}
	return model.EventRaw
}
