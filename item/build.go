package item

import (
	"unsafe"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// UserText returns a message of the user: {"role":"user","content":s}.
func UserText(s string) Item { return easyMessage("user", s) }

// SystemText returns a message of the system: {"role":"system","content":s}.
func SystemText(s string) Item { return easyMessage("system", s) }

// DeveloperText returns a message of the developer: {"role":"developer","content":s}.
func DeveloperText(s string) Item { return easyMessage("developer", s) }

// AssistantText returns a message of the assistant as input, for a history that no model of this run wrote:
// {"role":"assistant","content":s}. [MessageItem] is the form in which a model answers.
func AssistantText(s string) Item { return easyMessage("assistant", s) }

func easyMessage(role, s string) Item {
	o := newObject(len(s))
	o.text("role", role)
	o.text("content", s)
	return Item{o.close()}
}

// UserMessage returns a message of the user made of parts: {"role":"user","content":[...]}.
func UserMessage(parts ...Part) Item {
	o := newObject(rawLen(parts))
	o.text("role", "user")
	o.parts("content", parts)
	return Item{o.close()}
}

// FunctionOutput returns the output of the function call with this call id:
// {"type":"function_call_output","call_id":callID,"output":s}.
func FunctionOutput(callID, s string) Item {
	return FunctionCall{CallID: callID}.Output(s)
}

// FunctionOutputParts returns the output of a function call as a list of parts.
func FunctionOutputParts(callID string, parts ...Part) Item {
	return FunctionCall{CallID: callID}.OutputParts(parts...)
}

// CustomOutput returns the output of the custom tool call with this call id:
// {"type":"custom_tool_call_output","call_id":callID,"output":s}.
func CustomOutput(callID, s string) Item {
	return CustomToolCall{CallID: callID}.Output(s)
}

// Output returns the output of this call. It names the call's Caller, as the API asks for calls that a program made; a Caller
// that is no JSON object is left out.
func (c FunctionCall) Output(s string) Item {
	o := newOutput(TypeFunctionCallOutput, c.CallID, len(s)+len(c.Caller))
	o.text("output", s)
	return o.closeOutput(c.Caller)
}

// OutputParts is [FunctionCall.Output] for a list of parts.
func (c FunctionCall) OutputParts(parts ...Part) Item {
	o := newOutput(TypeFunctionCallOutput, c.CallID, rawLen(parts)+len(c.Caller))
	o.parts("output", parts)
	return o.closeOutput(c.Caller)
}

// Output returns the output of this call, as [FunctionCall.Output] does.
func (c CustomToolCall) Output(s string) Item {
	o := newOutput(TypeCustomToolCallOutput, c.CallID, len(s)+len(c.Caller))
	o.text("output", s)
	return o.closeOutput(c.Caller)
}

// OutputParts is [CustomToolCall.Output] for a list of parts.
func (c CustomToolCall) OutputParts(parts ...Part) Item {
	o := newOutput(TypeCustomToolCallOutput, c.CallID, rawLen(parts)+len(c.Caller))
	o.parts("output", parts)
	return o.closeOutput(c.Caller)
}

func newOutput(t Type, callID string, size int) object {
	const names = len(`{"type":"custom_tool_call_output","call_id":"","output":""}`)
	o := object{append(make([]byte, 0, names+len(callID)+size), '{')} // exact if nothing needs an escape: outputs are kept by the thousand
	o.text("type", string(t))
	o.text("call_id", callID)
	return o
}

func (o *object) closeOutput(caller string) Item {
	if caller != "" && check(caller) == nil {
		o.raw("caller", caller)
	}
	return Item{o.close()}
}

// ApprovalReply returns the answer to the MCP approval request with this id:
// {"type":"mcp_approval_response","approval_request_id":requestID,"approve":approve,"reason":reason}, without an empty reason.
func ApprovalReply(requestID string, approve bool, reason string) Item {
	o := newObject(len(reason))
	o.text("type", string(TypeMCPApprovalResponse))
	o.text("approval_request_id", requestID)
	if approve {
		o.raw("approve", "true")
	} else {
		o.raw("approve", "false")
	}
	o.optionalText("reason", reason)
	return Item{o.close()}
}

// FunctionCallItem returns a completed function call as a model answers it, for tests and for models that speak another
// protocol. An empty id is left out.
func FunctionCallItem(id, callID, name, arguments string) Item {
	o := newObject(len(arguments))
	o.text("type", string(TypeFunctionCall))
	o.optionalText("id", id)
	o.text("call_id", callID)
	o.text("name", name)
	o.text("arguments", arguments)
	o.text("status", "completed")
	return Item{o.close()}
}

// MessageItem returns a completed message of one output_text part as a model answers it, for tests and for models that speak
// another protocol. An empty id is left out.
func MessageItem(id, s string) Item {
	o := newObject(len(s))
	o.text("type", string(TypeMessage))
	o.optionalText("id", id)
	o.text("status", "completed")
	o.text("role", "assistant")
	part := newObject(len(s))
	part.text("type", string(PartOutputText))
	part.text("text", s)
	part.raw("annotations", "[]")
	o.parts("content", []Part{{part.close()}})
	return Item{o.close()}
}

// ReasoningItem returns a reasoning item with a summary of one part, or of none if summary is empty, for tests and for models
// that speak another protocol. An empty id is left out.
func ReasoningItem(id, summary string) Item {
	o := newObject(len(summary))
	o.text("type", string(TypeReasoning))
	o.optionalText("id", id)
	var list []Part
	if summary != "" {
		list = []Part{textPart(PartSummaryText, summary)}
	}
	o.parts("summary", list)
	return Item{o.close()}
}

// object writes one JSON object.
type object struct{ buf []byte }

// newObject has room for members of about size bytes besides the usual names and ids.
func newObject(size int) object {
	return object{append(make([]byte, 0, size+160), '{')}
}

func (o *object) key(name string) {
	if len(o.buf) > 1 {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(jsonscan.AppendString(o.buf, name), ':')
}

func (o *object) raw(name, value string) {
	o.key(name)
	o.buf = append(o.buf, value...)
}

func (o *object) text(name, s string) {
	o.key(name)
	o.buf = jsonscan.AppendString(o.buf, s)
}

func (o *object) optionalText(name, s string) {
	if s != "" {
		o.text(name, s)
	}
}

func (o *object) parts(name string, list []Part) {
	o.key(name)
	o.buf = append(o.buf, '[')
	first := true
	for _, p := range list {
		if p.raw == "" {
			continue
		}
		if !first {
			o.buf = append(o.buf, ',')
		}
		o.buf = append(o.buf, p.raw...)
		first = false
	}
	o.buf = append(o.buf, ']')
}

// close ends the object. Its text is the buffer itself, which is not written to any more.
func (o *object) close() string {
	buf := append(o.buf, '}')
	return unsafe.String(unsafe.SliceData(buf), len(buf))
}

func rawLen(list []Part) int {
	n := len(list)
	for _, p := range list {
		n += len(p.raw)
	}
	return n
}
