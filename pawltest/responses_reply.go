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
