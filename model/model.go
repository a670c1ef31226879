// Package model is the contract between an agent run and a language model:
// one interface, the request it takes, the response it returns.
//
// A model is called once per attempt and never retries by itself: attempts are
// facts of the run, so that a crash, a resume or a change of process cannot hide
// one. An adapter sends the input items as the bytes they are and returns the
// output items as the bytes it received.
package model

import (
	"context"

	"github.com/pawl-agents/pawl/item"
)

// Model calls a language model. An implementation must be safe for concurrent
// use: one Model serves many runs.
type Model interface {
	// Info says what the model and its adapter promise. It must not change
	// between calls.
	Info() Info

	// Call makes exactly one attempt. It must return soon after ctx ended: the run
	// waits for it. With a nil emit it blocks until the whole
	// response is there; otherwise it streams, and emit receives each event on
	// the calling goroutine before Call goes on. If emit returns false the call
	// is abandoned and returns ErrAbandoned.
	//
	// A response is returned only when the server completed it. Everything else
	// is an error: an *Error when the server or the transport gave one.
	Call(ctx context.Context, req *Request, emit func(*Event) bool) (*Response, error)
}

// Info describes a model.
type Info struct {
	// Provider is the adapter's short name, for example "openai".
	Provider string
	// Name is the model's name as the provider knows it.
	Name string
	// UniqueCallIDs says that the provider never reuses a call id within a
	// run. Only then is an equal call in a later response the replay of the
	// earlier one; otherwise it is a new call with a decision of its own.
	UniqueCallIDs bool
	// ServerState says that the adapter honours Request.PreviousResponseID and
	// Request.ConversationID.
	ServerState bool
	// ServerPrompts says that the adapter honours Static.Prompt.
	ServerPrompts bool
}

// ConversationReader is implemented by models whose server can be asked what a
// conversation holds. A run uses it after a lost acknowledgement, and only then.
type ConversationReader interface {
	// ConversationTail returns the newest items of a conversation, oldest
	// first, at most limit of them.
	ConversationTail(ctx context.Context, conversationID string, limit int) ([]item.Item, error)
}

// Request is one attempt. The machine prepares it once a turn; every attempt of
// the turn sends the same request.
type Request struct {
	// Static is the part that seldom changes between turns. Turns that have
	// the same static part share the pointer, so an adapter may encode it once.
	Static *Static
	// Input is what the model is to read: the whole history, or, with a server
	// that holds the conversation, only what the server does not have yet.
	Input Input
	// PreviousResponseID continues a chain of stored responses.
	PreviousResponseID string
	// ConversationID continues a conversation object held by the server.
	ConversationID string
}

// Response is a completed response.
type Response struct {
	// ID is the server's id for the response, empty if it gave none.
	ID string
	// RequestID identifies the HTTP request in the provider's logs.
	RequestID string
	// Items are the output items in order, as the bytes they came in.
	Items []item.Item
	// Usage is what the server reported, nil when it reported nothing.
	Usage *Usage
}

// Usage counts tokens of one request as the server reported them.
type Usage struct {
	InputTokens       int64
	CachedInputTokens int64
	OutputTokens      int64
	ReasoningTokens   int64
	TotalTokens       int64
	// Raw is the server's usage object, kept when Settings.PreserveRawUsage asks
	// for it.
	Raw string
}

// EventKind classifies a streamed event.
type EventKind int

// The kinds of streamed events.
const (
	// EventRaw is any provider event that has no kind of its own.
	EventRaw EventKind = iota
	// EventTextDelta carries a piece of output text.
	EventTextDelta
	// EventRefusalDelta carries a piece of a refusal.
	EventRefusalDelta
	// EventReasoningDelta carries a piece of a reasoning summary or text.
	EventReasoningDelta
	// EventArgumentsDelta carries a piece of a call's arguments or input.
	EventArgumentsDelta
)

// Event is one streamed event. It and its Raw bytes are valid only until emit
// returns; keep a copy of what you need.
type Event struct {
	Kind EventKind
	// Type is the provider's own event type, for example
	// "response.output_text.delta".
	Type string
	// Delta is the text of a delta event.
	Delta string
	// ItemID and OutputIndex say which output item the event belongs to.
	ItemID      string
	OutputIndex int
	// Raw is the whole event as it came.
	Raw []byte
}
