package pawltest

import (
	"github.com/pawl-agents/pawl/item"
)

// response is a stored response, a link of a chain. It doesn't change once it is stored, except for listed.
type response struct {
	id     string // "" is encoded as null
	order  int    // among stored responses
	parent *response
	base   []item.Item // of the conversation it was made on, at that time
	input  []item.Item // the request's own input
	listed []item.Item // input as it is listed, with ids; nil until somebody asks
	output []item.Item
	status string    // terminal
	open   openCalls // calls the next request must answer
	bytes  int       // item bytes of the whole chain up to and including this response
	body   string    // the final object as JSON
}

// The terminal statuses, and the one before them.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

// envelope is what a response object says besides its items.
type envelope struct {
	createdAt  int64
	incomplete string // reason
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

// encode writes the object of a response in the given status. Before the terminal status there is neither output nor usage.
func (e *envelope) encode(r *response, status string) string {
	problem, incomplete, output, usage := "null", "null", "[]", "null"
	if status == r.status {
		output, usage = array(r.output, item.Item.Raw), e.usage
	}
	switch status {
	case statusFailed:
		problem = object(nil).str("code", e.failure.Code).str("message", e.failure.Message).end()
	case statusIncomplete:
		incomplete = object(nil).str("reason", e.incomplete).end()
	}
	o := object(nil).strOrNull("id", r.id).str("object", "response").num("created_at", e.createdAt).str("status", status).
		raw("error", problem).raw("incomplete_details", incomplete)
	return o.members(e.echo).raw("output", output).raw("usage", usage).end()
}
