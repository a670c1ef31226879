package model

import (
	"bytes"
	"sync/atomic"

	"github.com/pawl-agents/pawl/item"
)

// Input is a list of items that is written as JSON when it is sent. An Input is immutable and safe for concurrent use. Values
// derived from one another by Append share storage, so a run of a thousand turns writes each item once.
type Input struct {
	items  []item.Item
	memory *memory
}

// memory is what an Input shares with those it was derived from and those derived from it, as long as they are of one line:
// each has the first few of its items.
type memory struct {
	taken atomic.Bool // by a method of Input, or by a Body until it is done with
	items []item.Item
	text  []byte // a head, and the JSON of the first items; behind it is room for more or for a tail
	head  int    // length of the head
	n     int    // items in text
}

// take gives the memory to the caller if it is free.
func (m *memory) take() bool { return m != nil && m.taken.CompareAndSwap(false, true) }

func (m *memory) release() { m.taken.Store(false) }

// NewInput returns an Input of the items.
func NewInput(items ...item.Item) Input { return Input{}.Append(items...) }

// Append returns an Input with the items added at the end.
func (in Input) Append(items ...item.Item) Input {
	m := in.memory
	switch {
	case len(items) == 0:
		return in
	case !m.take():
		m = &memory{items: in.Items()}
	case len(m.items) > len(in.items): // another one was derived from this
		m.release()
		m = &memory{items: in.Items()}
	}
	m.items = append(m.items, items...)
	in = Input{m.items, m}
	m.release()
	return in
}

// Len returns the number of items.
func (in Input) Len() int { return len(in.items) }

// Items returns the items. The caller must not change the slice.
func (in Input) Items() []item.Item { return in.items[:len(in.items):len(in.items)] }

// JSON returns the items' bytes joined by commas, without the enclosing
// brackets.
func (in Input) JSON() []byte { return appendItems(nil, in.items, true) }

// appendItems appends items joined by commas, with one before the first unless it is first of all.
func appendItems(dst []byte, items []item.Item, first bool) []byte {
	for _, it := range items {
		if !first {
			dst = append(dst, ',')
		}
		dst, first = it.AppendRaw(dst), false
	}
	return dst
}

// Body is a text around the items of an Input: what a model adapter sends.
type Body struct {
	// Text must not be changed.
	Text   []byte
	memory *memory
}

// Body returns the text made of head, the items joined by commas, and tail. It lies in memory that the Input shares with those
// derived from it, so that of a long history only what is new is written. The head should be the same from one request to the
// next.
func (in Input) Body(head, tail []byte) Body {
	m := in.memory
	if !m.take() {
		return Body{Text: append(appendItems(bytes.Clone(head), in.items, true), tail...)}
	}
	if m.n > len(in.items) { // it holds what comes after this Input
		m.release()
		return Body{Text: append(appendItems(bytes.Clone(head), in.items, true), tail...)}
	}
	if string(m.text[:m.head]) != string(head) {
		size := len(head) + len(m.text) - m.head + len(tail)
		for _, it := range in.items[m.n:] {
			size += len(it.Raw()) + 1
		}
		text := append(make([]byte, 0, size+size/4), head...) // with room for what the next turn adds
		m.text, m.head = append(text, m.text[m.head:]...), len(head)
	}
	m.text, m.n = appendItems(m.text, in.items[m.n:], m.n == 0), len(in.items)
	n := len(m.text)
	text := append(m.text, tail...)
	m.text = text[:n] // the memory may have moved
	return Body{text[:len(text):len(text)], m}
}

// Done says that nobody reads Text any more, now or later: its tail is overwritten by the items to come. Call it once, or not
// at all: then they get other storage.
func (b Body) Done() {
	if b.memory != nil {
		b.memory.release()
	}
}
