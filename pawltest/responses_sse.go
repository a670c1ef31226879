package pawltest

import (
	"unicode/utf8"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// defaultDelta is the number of bytes of text in one delta unless somebody says otherwise.
const defaultDelta = 16

// events sends the stream of one response in the service's order, each event through send:
// https://platform.openai.com/docs/api-reference/responses-streaming
type events struct {
	send  func(kind string, data string) error
	next  int64 // sequence number
	chunk int   // bytes of text in a delta, at most
	err   error // first error of send; nothing is sent after it
}

// emit sends one event. The type and the sequence number are its first members.
func (e *events) emit(kind string, members func(object) object) {
	if e.err != nil {
		return
	}
	o := object(nil).str("type", kind).num("sequence_number", e.next)
	e.next++
	e.err = e.send(kind, members(o).end())
}

// begin sends what comes before the output; body is the response in progress.
func (e *events) begin(body string) {
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		e.emit(kind, func(o object) object { return o.raw("response", body) })
	}
}

// finish sends the terminal event.
func (e *events) finish(r *response) {
	e.emit("response."+r.status, func(o object) object { return o.raw("response", r.body) })
}

// output sends all events of one output item.
func (e *events) output(index int, it item.Item) {
	h := it.Head()
	var at place = func(o object) object { return o.str("item_id", h.ID).num("output_index", int64(index)) }
	e.emit("response.output_item.added", func(o object) object {
		return o.num("output_index", int64(index)).raw("item", startedItem(it))
	})
	switch h.Type {
	case item.TypeMessage:
		e.message(it, at)
	case item.TypeReasoning:
		e.reasoning(it, at)
	case item.TypeFunctionCall:
		if call, err := it.FunctionCall(); err == nil {
			e.text("response.function_call_arguments", "arguments", call.Arguments, at)
		}
	case item.TypeCustomToolCall:
		if call, err := it.CustomToolCall(); err == nil {
			e.text("response.custom_tool_call_input", "input", call.Input, at)
		}
	default:
		for _, phase := range hostedPhases[h.Type] {
			e.emit("response."+string(h.Type)+"."+phase, at)
		}
	}
	e.emit("response.output_item.done", func(o object) object {
		return o.num("output_index", int64(index)).raw("item", it.Raw())
	})
}

// hostedPhases are the events between the announcement of a hosted call and its end.
var hostedPhases = map[item.Type][]string{
	item.TypeWebSearchCall:       {"in_progress", "searching", "completed"},
	item.TypeFileSearchCall:      {"in_progress", "searching", "completed"},
	item.TypeCodeInterpreterCall: {"in_progress", "interpreting", "completed"},
	item.TypeImageGenerationCall: {"in_progress", "generating", "completed"},
	item.TypeMCPCall:             {"in_progress", "completed"},
	item.TypeMCPListTools:        {"in_progress", "completed"},
}

// place adds the members that say which item, or which part of it, an event is about.
type place func(object) object

func (p place) part(name string, index int) place {
	return func(o object) object { return p(o).num(name, int64(index)) }
}

func (e *events) message(it item.Item, at place) {
	m, err := it.Message()
	if err != nil {
		return
	}
	for i, part := range m.Content {
		here := at.part("content_index", i)
		e.emit("response.content_part.added", func(o object) object { return here(o).raw("part", startedPart(part)) })
		switch part.Type() {
		case item.PartRefusal:
			e.text("response.refusal", "refusal", part.Refusal(), here)
		case item.PartOutputText:
			e.text("response.output_text", "text", part.Text(), func(o object) object {
				return here(o).raw("logprobs", "[]")
			})
		}
		e.emit("response.content_part.done", func(o object) object { return here(o).raw("part", part.Raw()) })
	}
}

func (e *events) reasoning(it item.Item, at place) {
	r, err := it.Reasoning()
	if err != nil {
		return
	}
	part := func(text string) string { return object(nil).str("type", "summary_text").str("text", text).end() }
	for i, summary := range r.Summary {
		here := at.part("summary_index", i)
		e.emit("response.reasoning_summary_part.added", func(o object) object { return here(o).raw("part", part("")) })
		e.text("response.reasoning_summary_text", "text", summary, here)
		e.emit("response.reasoning_summary_part.done", func(o object) object { return here(o).raw("part", part(summary)) })
	}
	for i, content := range r.Content {
		e.text("response.reasoning_text", "text", content, at.part("content_index", i))
	}
}

// text sends a text in deltas, then whole under the given member.
func (e *events) text(kind, member, text string, at place) {
	for rest := text; rest != ""; {
		n := chunkEnd(rest, e.chunk)
		delta := rest[:n]
		rest = rest[n:]
		e.emit(kind+".delta", func(o object) object { return at(o).str("delta", delta) })
	}
	e.emit(kind+".done", func(o object) object { return at(o).str(member, text) })
}

// chunkEnd is where a delta of at most size bytes ends without cutting a character in two.
func chunkEnd(s string, size int) int {
	if len(s) <= size {
		return len(s)
	}
	n := size
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if n == 0 { // one character is longer than a delta
		_, n = utf8.DecodeRuneInString(s)
	}
	return n
}

// startedItem is an item as it is announced: in progress, and empty where deltas will fill it.
func startedItem(it item.Item) string {
	var o object
	_ = jsonscan.Object(it.Raw(), func(key, value string) error { // the item was scanned when it was made
		switch {
		case key == "status":
			o = o.str(key, statusInProgress)
		case (key == "arguments" || key == "input") && value[0] == '"':
			o = o.str(key, "")
		case (key == "content" || key == "summary") && value[0] == '[':
			o = o.raw(key, "[]")
		default:
			o = o.raw(key, value)
		}
		return nil
	})
	return o.end()
}

// startedPart is a content part as it is announced: without its text.
func startedPart(p item.Part) string {
	var o object
	_ = jsonscan.Object(p.Raw(), func(key, value string) error {
		if key == "text" || key == "refusal" {
			value = `""`
		}
		o = o.raw(key, value)
		return nil
	})
	return o.end()
}
