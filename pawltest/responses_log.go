package pawltest

import (
	"net/http"
	"sync"

	"github.com/pawl-agents/pawl/item"
)

// responsesLog records requests. A request under way is the property of its handler; the log holds copies.
type responsesLog struct {
	mu       sync.Mutex
	retain   int // how many bodies are kept, 0 = all
	entries  []ResponsesRequest
	dropped  int // entries whose content has been dropped
	creating int // number of the latest request for a response
	others   int
}

// receive records a request and returns the handler's copy, and its place for note.
func (l *responsesLog) receive(r *http.Request, body []byte) (*ResponsesRequest, int) {
	req := ResponsesRequest{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	l.mu.Lock()
	defer l.mu.Unlock()
	count := &l.others
	if req.creates() {
		count = &l.creating
	}
	*count++
	req.Number = *count
	l.entries = append(l.entries, req)
	for l.retain > 0 && len(l.entries)-l.dropped > l.retain {
		l.drop(l.dropped)
		l.dropped++
	}
	return &req, len(l.entries) - 1
}

// note brings an entry up to date.
func (l *responsesLog) note(place int, r *ResponsesRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[place] = *r
	if place < l.dropped {
		l.drop(place)
	}
}

// drop lets go of what is large (mu held).
func (l *responsesLog) drop(place int) {
	e := &l.entries[place]
	e.Body, e.Input, e.resolved, e.params, e.history = nil, nil, nil, nil, history{}
}

func (l *responsesLog) list(want func(*ResponsesRequest) bool) []ResponsesRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []ResponsesRequest
	for i := range l.entries {
		if want(&l.entries[i]) {
			out = append(out, l.entries[i].clone())
		}
	}
	return out
}

func outputsFor(items []item.Item, callID string) int {
	n := 0
	for _, it := range items {
		h := it.Head()
		if _, isOutput := outputNouns[h.Type]; isOutput && h.CallID == callID {
			n++
		}
	}
	return n
}
