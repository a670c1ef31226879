package model

import (
	"sync/atomic"

	"github.com/pawl-agents/pawl/item"
)

// Input is a list of items together with their joined JSON. An Input is immutable and safe for concurrent use. Values derived
// from one another by Append share storage, so a run of a thousand turns writes each item once.
type Input struct {
	items  []item.Item
	joined []byte
	memory *memory
}

// memory is where the JSON of an Input and of those it was derived from lies: a head, the items, and room for more items or
// for a tail. What is written of head and items never changes.
type memory struct {
	taken atomic.Bool // by an Append, or by a Body until it is done with
	text  []byte      // head and items
	head  int
}

// take gives the memory to the caller if it is free and ends with the JSON of the input, n bytes.
func (m *memory) take(n int) bool {
	if m == nil || !m.taken.CompareAndSwap(false, true) {
		return false
	}
	if len(m.text)-m.head == n {
		return true
	}
	m.taken.Store(false)
	return false
}

// NewInput returns an Input of the items.
func NewInput(items ...item.Item) Input { return Input{}.Append(items...) }

// Append returns an Input with the items added at the end.
func (in Input) Append(items ...item.Item) Input {
	if len(items) == 0 {
		return in
	}
	m := in.memory
	if !m.take(len(in.joined)) {
		m = &memory{text: in.joined[:len(in.joined):len(in.joined)]}
		m.taken.Store(true)
		in.items = in.items[:len(in.items):len(in.items)]
	}
	for _, it := range items {
		if len(in.items) > 0 {
			m.text = append(m.text, ',')
		}
		m.text = it.AppendRaw(m.text)
		in.items = append(in.items, it)
	}
	in.joined, in.memory = m.text[m.head:], m
	m.taken.Store(false)
	return in
}

// Len returns the number of items.
func (in Input) Len() int { return len(in.items) }

// Items returns the items. The caller must not change the slice.
func (in Input) Items() []item.Item { return in.items[:len(in.items):len(in.items)] }

// JSON returns the items' bytes joined by commas, without the enclosing
// brackets. The caller must not change the slice.
func (in Input) JSON() []byte { return in.joined[:len(in.joined):len(in.joined)] }

// Body is a text around the items of an Input: what a model adapter sends.
type Body struct {
	// Text must not be changed.
	Text   []byte
	memory *memory
}

// Body returns the text made of head, the items' JSON and tail. It lies in the storage of the Input where it can, so that of a
// long history only what is new is written. The head should be the same from one request to the next.
func (in Input) Body(head, tail []byte) Body {
	m := in.memory
	if !m.take(len(in.joined)) {
		text := make([]byte, 0, len(head)+len(in.joined)+len(tail))
		return Body{Text: append(append(append(text, head...), in.joined...), tail...)}
	}
	if string(m.text[:m.head]) != string(head) {
		size := len(head) + len(in.joined) + len(tail)
		text := append(make([]byte, 0, size+size/4), head...) // room for what the next turn adds
		m.text, m.head = append(text, in.joined...), len(head)
	}
	n := len(m.text)
	text := append(m.text, tail...)
	m.text = text[:n] // the memory may have moved
	return Body{text[:len(text):len(text)], m}
}

// Done says that nobody reads Text any more, now or later: its tail is overwritten by the items to come. Call it once, or not
// at all: then they get other storage.
func (b Body) Done() {
	if b.memory != nil {
		b.memory.taken.Store(false)
	}
}
