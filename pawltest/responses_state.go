package pawltest

import (
	"strings"
	"sync"

	"github.com/pawl-agents/pawl/item"
)

// responsesState is what the server remembers: stored responses, each a link of a chain, and conversations. Only methods
// that say so expect mu to be held.
type responsesState struct {
	mu            sync.Mutex
	responses     map[string]*response
	stored        []string // ids in order of creation, for retain
	lastOrder     int
	retain        int // how many stored responses are kept, 0 = all
	conversations map[string]*conversation
	items         map[string]storedItem
	ids           idSource
	dir           *responsesDir // nil without persistence
}

// storedItem is an item the server knows by its id.
type storedItem struct {
	raw       item.Item
	follower  string // id of the item that came right after this reasoning item
	reasoning string // id of the reasoning item that came right before this item
}

// conversation is a conversation object. Its item slice is only ever appended to or replaced, so a copy of the slice
// header is a stable view.
type conversation struct {
	id        string
	createdAt int64
	metadata  string
	items     []item.Item
	known     map[string]bool // ids of items
	open      openCalls
	bytes     int
	busy      bool // a response is being made on it
}

func newResponsesState(retain int, dir *responsesDir) *responsesState {
	return &responsesState{
		responses:     map[string]*response{},
		retain:        retain,
		conversations: map[string]*conversation{},
		items:         map[string]storedItem{},
		ids:           idSource{next: map[string]int{}},
		dir:           dir,
	}
}

// history is what a request continues: nothing, a chain, or a conversation as it was when the request came.
type history struct {
	last  *response
	conv  *conversation
	saved []item.Item // of conv
}

func (h history) items() []item.Item {
	if h.conv != nil {
		return append([]item.Item(nil), h.saved...)
	}
	n := 0
	for r := h.last; r != nil; r = r.parent {
		n += len(r.base) + len(r.input) + len(r.output)
	}
	out := make([]item.Item, n)
	for r := h.last; r != nil; r = r.parent {
		for _, items := range [...][]item.Item{r.output, r.input, r.base} {
			n -= copy(out[n-len(items):], items)
		}
	}
	return out
}

// has reports whether an item of the history has the id. Chains are walked, so it is asked only for items that carry one.
func (h history) has(id string) bool {
	if h.conv != nil {
		return h.conv.known[id]
	}
	for r := h.last; r != nil; r = r.parent {
		for _, items := range [...][]item.Item{r.base, r.input, r.output} {
			for _, it := range items {
				if it.Head().ID == id {
					return true
				}
			}
		}
	}
	return false
}

func (h history) open() openCalls {
	switch {
	case h.conv != nil:
		return h.conv.open.clone()
	case h.last != nil:
		return h.last.open.clone()
	}
	return nil
}

func (h history) bytes() int {
	switch {
	case h.conv != nil:
		return h.conv.bytes
	case h.last != nil:
		return h.last.bytes
	}
	return 0
}

// openCalls are the calls that still need an output, oldest first.
type openCalls []item.Head

func (c openCalls) clone() openCalls { return append(openCalls(nil), c...) }

// settle removes the calls that an output of the given type answers, false if there is none. Two open calls of the same id
// are settled by one output (assumption: the service pairs by call id).
func (c *openCalls) settle(callID string, output item.Type) bool {
	kept := (*c)[:0]
	for _, call := range *c {
		if call.CallID != callID || item.OutputType(call.Type) != output {
			kept = append(kept, call)
		}
	}
	found := len(kept) < len(*c)
	*c = kept
	return found
}

// add notes what an item that the server accepted or made does to the open calls.
func (c *openCalls) add(it item.Item, h item.Head) {
	if needsOutput(it, h) {
		*c = append(*c, h)
		return
	}
	c.settle(h.CallID, h.Type)
}

// needsOutput is [item.Item.NeedsOutput] without another look at items whose head says enough.
func needsOutput(it item.Item, h item.Head) bool {
	switch h.Type {
	case item.TypeFunctionCall, item.TypeCustomToolCall:
		return true
	case item.TypeMessage, item.TypeReasoning, item.TypeFunctionCallOutput, item.TypeCustomToolCallOutput:
		return false
	}
	return it.NeedsOutput()
}

// keep stores a response (mu held): its items become known by id, and it can be continued. Old ones are forgotten if the
// server retains only so many; chains that lead over them stay whole.
func (s *responsesState) keep(r *response) {
	if r.order == 0 {
		r.order = s.lastOrder + 1
	}
	s.lastOrder = max(s.lastOrder, r.order)
	s.responses[r.id] = r
	s.stored = append(s.stored, r.id)
	s.know(r.input)
	s.know(r.output)
	for s.retain > 0 && len(s.stored) > s.retain {
		s.forget(s.stored[0])
	}
}

// forget removes a response (mu held).
func (s *responsesState) forget(id string) {
	delete(s.responses, id)
	for i, other := range s.stored {
		if other == id {
			s.stored = append(s.stored[:i:i], s.stored[i+1:]...)
			return
		}
	}
}

// know makes items findable by their ids (mu held), with their neighbours where one of them is a reasoning item. It clones
// what it keeps: an item shares memory with the whole body it came in.
func (s *responsesState) know(items []item.Item) {
	var before item.Head
	for _, it := range items {
		h := it.Head()
		if _, known := s.items[h.ID]; h.ID != "" && !known {
			entry := storedItem{raw: item.FromTrusted(strings.Clone(it.Raw()))}
			h = entry.raw.Head()
			if before.Type == item.TypeReasoning && before.ID != "" {
				entry.reasoning = before.ID
				first := s.items[before.ID]
				first.follower = h.ID
				s.items[before.ID] = first
			}
			s.items[h.ID] = entry
		}
		before = h
	}
}

// extend appends items to a conversation (mu held). They must have ids.
func (s *responsesState) extend(c *conversation, items []item.Item) {
	for _, it := range items {
		c.append(it, it.Head())
	}
	s.know(items)
}

func (c *conversation) append(it item.Item, h item.Head) {
	c.items = append(c.items, it)
	c.known[h.ID] = true
	c.open.add(it, h)
	c.bytes += len(it.Raw())
}

// remove deletes an item from a conversation (mu held).
func (c *conversation) remove(id string) {
	items := c.items
	c.items, c.open, c.bytes = nil, nil, 0
	delete(c.known, id)
	for _, it := range items {
		if h := it.Head(); h.ID != id {
			c.append(it, h)
		}
	}
}
