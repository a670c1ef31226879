package pawltest

import (
	"github.com/pawl-agents/pawl/item"
)

// Responder plays the model: it answers a request that passed every check. It is called from many goroutines at once.
type Responder func(*ResponsesRequest) ResponsesReply

// ResponsesReply is what the model says to one request. The zero value is a completed response without output.
type ResponsesReply struct {
	ID     string      // response id; "" lets the server choose one
	NoID   bool        // the response carries "id": null, as some compatible servers do; it cannot be continued
	Output []item.Item // ids, call ids, statuses and content lists that are missing are filled in

	// Status is the terminal status: "" or "completed", "incomplete", "failed". It also chooses the terminal event.
	Status           string
	IncompleteReason string          // for "incomplete"; "" means "max_output_tokens"
	Failure          *ResponsesError // for "failed": its Code and Message are the response's error
	Refuse           *ResponsesError // answered instead of a response: nothing is created

	Usage   *ResponsesUsage // nil means counted from bytes, see ResponsesUsage
	NoUsage bool            // the response carries "usage": null
}

// ResponsesUsage is the usage of one response. Unless a reply says otherwise the server counts four bytes of item JSON
// as one token, input being history, instructions and own input together; so equal requests cost equal tokens.
type ResponsesUsage struct {
	InputTokens     int64
	CachedTokens    int64 // part of InputTokens
	OutputTokens    int64
	ReasoningTokens int64 // part of OutputTokens
}

// ReplyText is a reply of one assistant message.
func ReplyText(text string) ResponsesReply {
	return ResponsesReply{Output: []item.Item{item.MessageItem("", text)}}
}

// ReplyItems is a completed reply of the given items.
func ReplyItems(output ...item.Item) ResponsesReply {
	return ResponsesReply{Output: output}
}

func (u ResponsesUsage) encode() string {
	return object(nil).
		num("input_tokens", u.InputTokens).
		raw("input_tokens_details", object(nil).num("cached_tokens", u.CachedTokens).end()).
		num("output_tokens", u.OutputTokens).
		raw("output_tokens_details", object(nil).num("reasoning_tokens", u.ReasoningTokens).end()).
		num("total_tokens", u.InputTokens+u.OutputTokens).
		end()
}

// response is a response of the server: what it stores, and what it needs to encode it.
type response struct {
	id           string // "" is encoded as null
	order        int    // among stored responses
	parent       *response
	base         []item.Item // of the conversation it was made on, at that time
	conversation string
	input        []item.Item // the request's own input
	output       []item.Item
	status       string
	open         openCalls // calls the next request must answer
	bytes        int       // item bytes of the whole chain up to and including this response
	createdAt    int64
	body         string // the final object as JSON

	incomplete string
	failure    *ResponsesError
	usage      string // JSON
	echo       object // members copied from the request
}

// echoed are the request's parameters that the service repeats in the response, with the value it reports for an absent
// one: https://pkg.go.dev/github.com/openai/openai-go/v3/responses#Response
var echoed = [...]struct{ name, absent string }{
	{"background", "false"},
	{"instructions", "null"},
	{"max_output_tokens", "null"},
	{"max_tool_calls", "null"},
	{"metadata", "{}"},
	{"model", "null"},
	{"parallel_tool_calls", "true"},
	{"previous_response_id", "null"},
	{"prompt_cache_key", "null"},
	{"reasoning", `{"effort":null,"summary":null}`},
	{"safety_identifier", "null"},
	{"service_tier", `"default"`},
	{"store", "true"},
	{"temperature", "1.0"},
	{"text", `{"format":{"type":"text"}}`},
	{"tool_choice", `"auto"`},
	{"tools", "[]"},
	{"top_logprobs", "0"},
	{"top_p", "1.0"},
	{"truncation", `"disabled"`},
	{"user", "null"},
}

func echo(req *ResponsesRequest) object {
	var o object
	for _, p := range echoed {
		value, ok := req.params[p.name]
		if !ok || value == "null" {
			value = p.absent
		}
		o = o.raw(p.name, value)
	}
	if req.Conversation != "" {
		o = o.raw("conversation", object(nil).str("id", req.Conversation).end())
	}
	return o
}

// encode writes the response object in the given status. Before the terminal status there is neither output nor usage.
func (r *response) encode(status string) string {
	final := status == r.status
	o := object(nil).strOrNull("id", r.id).str("object", "response").
		num("created_at", r.createdAt).str("status", status)
	if final && status == statusFailed {
		o = o.raw("error", object(nil).str("code", r.failure.Code).str("message", r.failure.Message).end())
	} else {
		o = o.raw("error", "null")
	}
	if final && status == statusIncomplete {
		o = o.raw("incomplete_details", object(nil).str("reason", r.incomplete).end())
	} else {
		o = o.raw("incomplete_details", "null")
	}
	output, usage := "[]", "null"
	if final {
		output, usage = array(r.output, item.Item.Raw), r.usage
	}
	o = append(append(o, ','), r.echo[1:]...)
	return o.raw("output", output).raw("usage", usage).end()
}

// The terminal statuses, and the one before them.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)
