package pawltest

import (
	"cmp"
	"time"

	"github.com/pawl-agents/pawl/item"
)

// turn is the making of one response: what it continues, what it adds, and the response itself.
type turn struct {
	state     *responsesState
	req       *ResponsesRequest
	conv      *conversation // nil without one
	locked    bool          // conv is busy with this turn
	resp      *response
	env       *envelope
	entering  []item.Item // the input as it enters the conversation
	committed bool
}

// begin checks a request against the state and locks its conversation. It fills in the request's history.
func (s *responsesState) begin(r *ResponsesRequest) (*turn, *ResponsesError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, refused := s.continued(r)
	if refused != nil {
		return nil, refused
	}
	check := &itemCheck{param: "input", state: s, history: h}
	input, refused := check.checkModelInput(r.Input)
	if refused != nil {
		return nil, refused
	}
	r.history, r.resolved = h, input
	if h.conv != nil {
		h.conv.busy = true
	}
	return &turn{state: s, req: r, conv: h.conv, locked: h.conv != nil}, nil
}

// continued finds what the request continues (mu held).
func (s *responsesState) continued(r *ResponsesRequest) (history, *ResponsesError) {
	switch {
	case r.PreviousResponseID != "":
		last := s.responses[r.PreviousResponseID]
		if last == nil || last.status == statusFailed { // that a failed response can't be continued is an assumption
			return history{}, errNoPreviousResponse(r.PreviousResponseID)
		}
		return history{last: last}, nil
	case r.Conversation != "":
		conv := s.conversations[r.Conversation]
		if conv == nil {
			return history{}, errNoConversation(r.Conversation)
		}
		return history{conv: conv, saved: conv.items}, checkLocked(conv)
	}
	return history{}, nil
}

// compose makes the response of a reply.
func (t *turn) compose(reply ResponsesReply, now time.Time) {
	s := t.state
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &response{
		id:     reply.ID,
		parent: t.req.history.last,
		base:   t.req.history.saved,
		input:  t.req.resolved,
		status: cmp.Or(reply.Status, statusCompleted),
	}
	if r.id == "" && !reply.NoID {
		r.id = s.newID("resp")
	}
	if t.conv != nil { // before the output, for ids in the order of the conversation
		t.entering = s.completeAll(r.input)
	}
	for _, it := range reply.Output {
		it = s.complete(it)
		r.output = append(r.output, it)
		r.open.add(it, it.Head())
	}
	t.resp = r
	t.req.ResponseID = r.id
	t.env = &envelope{
		createdAt:  now.Unix(),
		incomplete: cmp.Or(reply.IncompleteReason, "max_output_tokens"),
		failure:    cmp.Or(reply.Failure, &ResponsesError{Code: "server_error", Message: ServerError().Message}),
		usage:      t.count(reply),
		echo:       echo(t.req),
	}
	r.body = t.env.encode(r, r.status)
}

// count measures the response and returns its usage as JSON.
func (t *turn) count(reply ResponsesReply) string {
	input := t.req.history.bytes() + size(t.resp.input)
	output := size(t.resp.output)
	t.resp.bytes = input + output
	switch {
	case reply.NoUsage:
		return "null"
	case reply.Usage != nil:
		return reply.Usage.encode()
	}
	const bytesPerToken = 4
	return ResponsesUsage{
		InputTokens:  int64(input+len(t.req.Instructions)) / bytesPerToken,
		OutputTokens: int64(output) / bytesPerToken,
	}.encode()
}

func size(items []item.Item) int {
	n := 0
	for _, it := range items {
		n += len(it.Raw())
	}
	return n
}

// commit makes the response part of the state, once. Only a completed response enters its conversation: the API reference
// says that its items are added after the response completes
// (https://platform.openai.com/docs/api-reference/responses/create#responses-create-conversation).
func (t *turn) commit() error {
	if t.committed {
		return nil
	}
	t.committed = true
	s := t.state
	s.mu.Lock()
	defer s.mu.Unlock()
	t.unlock() // before the client learns of the end: it may send the next request at once
	if t.req.Store && t.resp.id != "" {
		s.keep(t.resp)
		t.req.Stored = true
		if err := s.dir.saveResponse(t.resp, false); err != nil {
			return err
		}
	}
	if t.conv == nil || t.resp.status != statusCompleted || s.conversations[t.conv.id] != t.conv {
		return nil
	}
	s.extend(t.conv, t.entering)
	s.extend(t.conv, t.resp.output)
	t.req.Stored = true
	return s.dir.saveConversation(t.conv)
}

// release ends the turn, committed or not.
func (t *turn) release() {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	t.unlock()
}

// unlock frees the conversation for other turns (state.mu held).
func (t *turn) unlock() {
	if t.locked {
		t.conv.busy = false
		t.locked = false
	}
}
