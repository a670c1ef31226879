package pawltest

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// The endpoints of https://platform.openai.com/docs/api-reference/conversations.

// conversation finds the conversation a URL names (mu held).
func (s *responsesState) conversation(x *exchange) (*conversation, *ResponsesError) {
	id := x.http.PathValue("id")
	if refused := checkID("conversation_id", id, "conv"); refused != nil {
		return nil, refused
	}
	c := s.conversations[id]
	if c == nil {
		return nil, errNoConversation(id)
	}
	return c, nil
}

func (c *conversation) object() object {
	return object(nil).str("id", c.id).str("object", "conversation").
		num("created_at", c.createdAt).raw("metadata", c.metadata)
}

// conversationBody reads the members of a body about a conversation.
func (x *exchange) conversationBody(known ...string) (map[string]string, *ResponsesError) {
	members := map[string]string{}
	if len(x.req.Body) == 0 {
		return members, nil
	}
	var refused *ResponsesError
	err := jsonscan.Object(string(x.req.Body), func(key, value string) error {
		if !slices.Contains(known, key) && refused == nil {
			refused = refusal(key, "unknown_parameter", "Unknown parameter: '%s'.", key)
		}
		if value != "null" {
			members[key] = value
		}
		return nil
	})
	if err != nil {
		return nil, errMalformedBody()
	}
	return members, refused
}

// createConversation is POST /v1/conversations.
func createConversation(x *exchange) (answer, *ResponsesError) {
	body, refused := x.conversationBody("items", "metadata")
	if refused != nil {
		return answer{}, refused
	}
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &conversation{createdAt: x.server.opts.Now().Unix(), metadata: "{}", known: map[string]bool{}}
	if metadata, ok := body["metadata"]; ok {
		c.metadata = metadata
	}
	items, refused := s.newItems(x, c, body["items"])
	if refused != nil {
		return answer{}, refused
	}
	c.id = s.newID("conv")
	s.conversations[c.id] = c
	s.extend(c, items)
	return x.saved(c, c.object())
}

// newItems reads and checks items for a conversation (mu held).
func (s *responsesState) newItems(x *exchange, c *conversation, list string) ([]item.Item, *ResponsesError) {
	if list == "" {
		return nil, nil
	}
	items, refused := readItems("items", list)
	if refused != nil {
		return nil, refused
	}
	x.req.Input = items
	if refused := checkBatch(items); refused != nil {
		return nil, refused
	}
	check := &itemCheck{param: "items", state: s, history: history{conv: c}}
	items, refused = check.checkNewItems(items)
	if refused != nil {
		return nil, refused
	}
	x.req.Accepted, x.req.Stored = true, true
	return s.completeAll(items), nil
}

// saved keeps a changed conversation and answers with an object (mu held).
func (x *exchange) saved(c *conversation, o object) (answer, *ResponsesError) {
	if err := x.server.state.dir.saveConversation(c); err != nil {
		return answer{}, x.server.script.notKept(err)
	}
	return ok(o)
}

// getConversation is GET /v1/conversations/{id}.
func getConversation(x *exchange) (answer, *ResponsesError) {
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.conversation(x)
	if refused != nil {
		return answer{}, refused
	}
	return ok(c.object())
}

// updateConversation is POST /v1/conversations/{id}.
func updateConversation(x *exchange) (answer, *ResponsesError) {
	body, refused := x.conversationBody("metadata")
	if refused != nil {
		return answer{}, refused
	}
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.conversation(x)
	if refused != nil {
		return answer{}, refused
	}
	metadata, given := body["metadata"]
	if !given {
		return answer{}, errMissing("metadata")
	}
	c.metadata = metadata
	return x.saved(c, c.object())
}

// deleteConversation is DELETE /v1/conversations/{id}. Its items stay findable by their ids, as the API reference says
// that they are not deleted.
func deleteConversation(x *exchange) (answer, *ResponsesError) {
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.conversation(x)
	if refused != nil {
		return answer{}, refused
	}
	delete(s.conversations, c.id)
	if err := s.dir.deleteConversation(c); err != nil {
		return answer{}, x.server.script.notKept(err)
	}
	return ok(object(nil).str("id", c.id).str("object", "conversation.deleted").bool("deleted", true))
}

// listItems is GET /v1/conversations/{id}/items.
func listItems(x *exchange) (answer, *ResponsesError) {
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.conversation(x)
	if refused != nil {
		return answer{}, refused
	}
	return page(x, c.items)
}

// addItems is POST /v1/conversations/{id}/items.
func addItems(x *exchange) (answer, *ResponsesError) {
	body, refused := x.conversationBody("items")
	if refused != nil {
		return answer{}, refused
	}
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	c, refused := s.conversation(x)
	if refused != nil {
		return answer{}, refused
	}
	if refused := checkLocked(c); refused != nil {
		return answer{}, refused
	}
	if body["items"] == "" {
		return answer{}, errMissing("items")
	}
	items, refused := s.newItems(x, c, body["items"])
	if refused != nil {
		return answer{}, refused
	}
	s.extend(c, items)
	return x.saved(c, itemList(items, false))
}

// item finds the conversation and the item a URL names (mu held).
func (s *responsesState) item(x *exchange) (*conversation, item.Item, *ResponsesError) {
	c, refused := s.conversation(x)
	if refused != nil {
		return nil, item.Item{}, refused
	}
	id := x.http.PathValue("item")
	for _, it := range c.items {
		if it.Head().ID == id {
			return c, it, nil
		}
	}
	return nil, item.Item{}, notFound("", "Item with id '%s' not found in conversation with id '%s'.", id, c.id)
}

// getItem is GET /v1/conversations/{id}/items/{item}.
func getItem(x *exchange) (answer, *ResponsesError) {
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	_, it, refused := s.item(x)
	if refused != nil {
		return answer{}, refused
	}
	return answer{status: http.StatusOK, body: it.Raw()}, nil
}

// deleteItem is DELETE /v1/conversations/{id}/items/{item}; it answers with the conversation.
func deleteItem(x *exchange) (answer, *ResponsesError) {
	s := x.server.state
	s.mu.Lock()
	defer s.mu.Unlock()
	c, it, refused := s.item(x)
	if refused != nil {
		return answer{}, refused
	}
	if refused := checkLocked(c); refused != nil {
		return answer{}, refused
	}
	c.remove(it.Head().ID)
	return x.saved(c, c.object())
}

// page answers with the part of a list that the query asks for: limit from 1 to 100, 20 if absent; order, desc if absent;
// after, the id to go on behind (https://platform.openai.com/docs/api-reference/conversations/list-items). The words of
// its refusals are assumptions.
func page(x *exchange, items []item.Item) (answer, *ResponsesError) {
	query := x.http.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return answer{}, refusal("limit", "invalid_value", "Invalid 'limit': expected an integer from 1 to 100.")
		}
		limit = n
	}
	items = slices.Clone(items)
	switch query.Get("order") {
	case "asc":
	case "", "desc":
		slices.Reverse(items)
	default:
		return answer{}, refusal("order", "invalid_value", "Invalid 'order': expected 'asc' or 'desc'.")
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(it item.Item) bool { return it.Head().ID == after })
		if i < 0 {
			return answer{}, notFound("after", "Item with id '%s' not found.", after)
		}
		items = items[i+1:]
	}
	more := len(items) > limit
	if more {
		items = items[:limit]
	}
	return ok(itemList(items, more))
}
