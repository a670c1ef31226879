package pawltest

import (
	"net/http"

	"github.com/pawl-agents/pawl/item"
)

// routes maps methods and paths to endpoints.
func (s *ResponsesServer) routes() {
	s.mux = http.NewServeMux()
	for pattern, e := range map[string]endpoint{
		"POST /v1/responses":                         createResponse,
		"GET /v1/responses/{id}":                     getResponse,
		"DELETE /v1/responses/{id}":                  deleteResponse,
		"GET /v1/responses/{id}/input_items":         listInput,
		"POST /v1/conversations":                     createConversation,
		"GET /v1/conversations/{id}":                 getConversation,
		"POST /v1/conversations/{id}":                updateConversation,
		"DELETE /v1/conversations/{id}":              deleteConversation,
		"GET /v1/conversations/{id}/items":           listItems,
		"POST /v1/conversations/{id}/items":          addItems,
		"GET /v1/conversations/{id}/items/{item}":    getItem,
		"DELETE /v1/conversations/{id}/items/{item}": deleteItem,
		"/": unknownURL,
	} {
		s.mux.Handle(pattern, s.serve(e))
	}
}

// ok is an answer of a JSON object.
func ok(o object) (answer, *ResponsesError) {
	return answer{status: http.StatusOK, body: o.end()}, nil
}

// unknownURL refuses a URL the API doesn't have; the words are an assumption.
func unknownURL(x *exchange) (answer, *ResponsesError) {
	return answer{}, notFound("", "Invalid URL (%s %s)", x.req.Method, x.req.Path)
}

// createResponse is POST /v1/responses.
func createResponse(x *exchange) (answer, *ResponsesError) {
	t, refused := x.server.state.begin(x.req)
	if refused != nil {
		return answer{}, refused
	}
	x.turn = t
	x.req.Accepted = true
	reply, refused := x.reply()
	if refused != nil {
		return answer{}, refused
	}
	t.compose(reply, x.server.opts.Now())
	return answer{status: http.StatusOK, body: t.resp.body, stream: x.req.Stream}, nil
}

// reply asks the script, then the Responder.
func (x *exchange) reply() (ResponsesReply, *ResponsesError) {
	var reply ResponsesReply
	if x.server.opts.Respond != nil && x.server.script.done() {
		reply = x.server.opts.Respond(x.req)
	} else {
		step, refused := x.server.script.next(x.req)
		if refused != nil {
			return reply, refused
		}
		if step.Fault != nil {
			x.fault = step.Fault
		}
		if step.Fault.strikes(FaultBefore) {
			x.req.Accepted = !step.Fault.fails()
			if err := x.strike(); err != nil {
				return reply, err
			}
		}
		reply = step.Reply
		if step.Derive != nil {
			reply = step.Derive(x.req)
		}
	}
	if x.fault != nil && x.fault.Edit != nil {
		x.fault.Edit(&reply)
	}
	return reply, reply.Refuse
}

// getResponse is GET /v1/responses/{id}.
func getResponse(x *exchange) (answer, *ResponsesError) {
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	r, refused := s.response(x)
	if refused != nil {
		return answer{}, refused
	}
	return answer{status: http.StatusOK, body: r.body}, nil
}

// response finds the response a URL names (mu held). The words of its 404 are an assumption, after those for items.
func (s *responsesState) response(x *exchange) (*response, *ResponsesError) {
	id := x.http.PathValue("id")
	if r := s.responses[id]; r != nil {
		return r, nil
	}
	return nil, notFound("", "Response with id '%s' not found.", id)
}

// deleteResponse is DELETE /v1/responses/{id}. Responses that continue it stay whole (assumption).
func deleteResponse(x *exchange) (answer, *ResponsesError) {
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	r, refused := s.response(x)
	if refused != nil {
		return answer{}, refused
	}
	s.forget(r.id)
	if err := s.dir.saveResponse(r, true); err != nil {
		return answer{}, x.server.script.notKept(err)
	}
	return ok(object(nil).str("id", r.id).str("object", "response").bool("deleted", true))
}

// listInput is GET /v1/responses/{id}/input_items.
func listInput(x *exchange) (answer, *ResponsesError) {
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	r, refused := s.response(x)
	if refused != nil {
		return answer{}, refused
	}
	if r.listed == nil {
		r.listed = s.completeAll(r.input)
		s.know(r.listed)
		if err := s.dir.saveResponse(r, false); err != nil {
			return answer{}, x.server.script.notKept(err)
		}
	}
	return page(x, r.listed)
}

// itemList is a list object of items.
func itemList(items []item.Item, more bool) object {
	first, last := "", ""
	if len(items) > 0 {
		first, last = items[0].Head().ID, items[len(items)-1].Head().ID
	}
	return object(nil).str("object", "list").raw("data", array(items, item.Item.Raw)).
		strOrNull("first_id", first).strOrNull("last_id", last).bool("has_more", more)
}
