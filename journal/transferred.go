package journal

import "github.com/pawl-agents/pawl/item"

// Span is a part of a view: a range of the history, or one item of its own.
type Span struct {
	// From and Upto are a range of the history; both are 0 with Item.
	From, Upto int
	// Item is an item that the history does not have.
	Item item.Item
}

// Transferred is the outcome of a handoff: the output of its call, and the agent that
// has the conversation from the next turn on.
type Transferred struct {
	// N and P are the call's response and its position there.
	N, P int
	// Agent is the target's key.
	Agent string
	// Output settles the call.
	Output item.Item
	// View, when not empty, is what later requests send instead of the history as it
	// is with that output.
	View []Span
}

// Kind returns the fact's kind.
func (*Transferred) Kind() Kind { return KindTransferred }

func appendTransferred(dst []byte, b *Transferred) []byte {
	dst = appendInt(dst, "n", int64(b.N))
	dst = appendInt(dst, "p", int64(b.P))
	dst = appendText(dst, "agent", b.Agent)
	dst = appendItem(dst, "output", b.Output)
	return appendView(dst, b.View)
}

func (b *Transferred) read(name, value string) error {
	switch name {
	case "n":
		return scanInt(&b.N, value)
	case "p":
		return scanInt(&b.P, value)
	case "agent":
		return scanText(&b.Agent, value)
	case "output":
		return scanItem(&b.Output, value)
	case "view":
		return scanObjects(&b.View, value)
	}
	return errUnknown
}

func appendView(dst []byte, view []Span) []byte {
	if len(view) == 0 {
		return dst
	}
	dst = append(appendName(dst, "view"), '[')
	for _, s := range view {
		dst = append(appendComma(dst), '{')
		dst = appendInt(dst, "from", int64(s.From))
		dst = appendInt(dst, "upto", int64(s.Upto))
		dst = append(appendItem(dst, "item", s.Item), '}')
	}
	return append(dst, ']')
}

func (s *Span) read(name, value string) error {
	switch name {
	case "from":
		return scanInt(&s.From, value)
	case "upto":
		return scanInt(&s.Upto, value)
	case "item":
		return scanItem(&s.Item, value)
	}
	return errUnknown
}
