package model

import "github.com/pawl-agents/pawl/item"

// Input is a list of items together with their joined JSON. Appending shares the
// storage of what was there before, so a run of a thousand turns encodes each item
// once. An Input is immutable; values derived from one by Append share storage and
// must be appended to from one goroutine at a time.
type Input struct {
	items  []item.Item
	joined []byte
}

// NewInput returns an Input of the items.
func NewInput(items ...item.Item) Input { return Input{}.Append(items...) }

// Append returns an Input with the items added at the end.
func (in Input) Append(items ...item.Item) Input {
	for _, it := range items {
		if len(in.items) > 0 {
			in.joined = append(in.joined, ',')
		}
		in.joined = it.AppendRaw(in.joined)
		in.items = append(in.items, it)
	}
	return in
}

// Len returns the number of items.
func (in Input) Len() int { return len(in.items) }

// Items returns the items. The caller must not change the slice.
func (in Input) Items() []item.Item { return in.items[:len(in.items):len(in.items)] }

// JSON returns the items' bytes joined by commas, without the enclosing
// brackets. The caller must not change the slice.
func (in Input) JSON() []byte { return in.joined[:len(in.joined):len(in.joined)] }
