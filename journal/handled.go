package journal

import (
	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// Handles is an error of a run that an application can turn into a final output.
type Handles string

// The errors that can be handled.
const (
	HandlesMaxTurns Handles = "max_turns"
	HandlesRefusal  Handles = "refusal"
	HandlesInvalid  Handles = "invalid_output"
)

// Handled is the answer of an error handler.
type Handled struct {
	// N is the turn that there is none left for, or the response whose text is a
	// refusal or invalid.
	N int
	// Declined says that the error stands.
	Declined bool
	// Text is the final output.
	Text string
	// Item, when there is one, is a message that holds Text; it becomes part of the
	// history.
	Item item.Item
}

// Kind returns the fact's kind.
func (*Handled) Kind() Kind { return KindHandled }

func appendHandled(dst []byte, b *Handled) []byte {
	dst = appendInt(dst, "n", int64(b.N))
	dst = appendFlag(dst, "declined", b.Declined)
	dst = appendText(dst, "text", b.Text)
	return appendItem(dst, "item", b.Item)
}

func (b *Handled) read(name, value string) error {
	switch name {
	case "n":
		return scanInt(&b.N, value)
	case "declined":
		return scanFlag(&b.Declined, value)
	case "text":
		return scanText(&b.Text, value)
	case "item":
		return scanItem(&b.Item, value)
	}
	return errUnknown
}

func appendHandles(dst []byte, handles []Handles) []byte {
	if len(handles) == 0 {
		return dst
	}
	dst = append(appendName(dst, "handles"), '[')
	for _, h := range handles {
		dst = jsonscan.AppendString(appendComma(dst), string(h))
	}
	return append(dst, ']')
}

func scanHandles(v *[]Handles, value string) error {
	return jsonscan.Array(value, func(value string) error {
		*v = append(*v, "")
		return scanWord(&(*v)[len(*v)-1], value, HandlesMaxTurns, HandlesRefusal, HandlesInvalid)
	})
}
