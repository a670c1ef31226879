package pawltest

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/pawl-agents/pawl/item"
)

// ResponsesRequest is one request as the server received it, and what became of it. A copy is handed out by
// [ResponsesServer.Requests]; a [Responder] gets the live one and must not change it.
type ResponsesRequest struct {
	// Number counts the requests of one kind from 1: those that create a response for themselves, all others together.
	Number int
	Method string
	Path   string
	Header http.Header
	Body   []byte // raw; nil once it has been dropped (ResponsesOptions.Retain)

	// Set for requests that create a response, as far as the body could be read.
	Model              string
	Instructions       string
	Stream             bool
	Store              bool
	PreviousResponseID string
	Conversation       string
	Input              []item.Item // the request's own input; a plain string is one user message

	// Set when the request has been answered.
	Status     int             // HTTP status, 0 while unanswered or when the connection was cut before a status was sent
	Accepted   bool            // passed every check and reached the model (the script or the Responder)
	Stored     bool            // its items and response became part of the server's state
	ResponseID string          // of the response it created
	Refusal    *ResponsesError // what it was answered instead, by a rule or by a fault

	params   map[string]string
	history  history
	resolved []item.Item // Input with its references replaced
}

// Param returns the raw JSON of a top-level member of the body, nil if it is absent.
func (r *ResponsesRequest) Param(name string) json.RawMessage {
	value, ok := r.params[name]
	if !ok {
		return nil
	}
	return json.RawMessage(value)
}

// History returns everything the model would see: the items of the response chain or of the conversation that the request
// continues, then its own input. It copies, so it costs time in proportion to the history.
func (r *ResponsesRequest) History() []item.Item {
	input := r.resolved
	if input == nil {
		input = r.Input
	}
	return append(r.history.items(), input...)
}

// creates reports whether the request asks for a response.
func (r *ResponsesRequest) creates() bool {
	return r.Method == http.MethodPost && r.Path == "/v1/responses"
}

// clone copies what a reader may hold on to.
func (r *ResponsesRequest) clone() ResponsesRequest {
	c := *r
	c.Input = slices.Clone(r.Input)
	return c
}
