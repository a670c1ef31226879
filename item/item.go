// Package item holds conversation items: the JSON objects that go to a model, come back from it and make up its history, in the
// vocabulary of OpenAI's Responses API (https://platform.openai.com/docs/api-reference/responses/create#responses-create-input).
//
// An [Item] is its bytes. What is not understood is carried along unchanged, to the byte: unknown item types, unknown fields,
// the order of members, the spelling of numbers. Typed views such as [Item.FunctionCall] read an item where it lies, and
// constructors such as [FunctionOutput] write new items in a fixed order of members. Two views of one model call matter to the
// rest of the project: the canonical form of its arguments ([Canonical]) and their digest ([DigestArguments]).
//
// Constructors write the fewest members that the API asks for, without white space: equal arguments give equal bytes. Text that
// is not valid UTF-8 gets U+FFFD in place of each byte that is not. Constructors do not enforce [MaxSize].
//
// Views read member names exactly, case included. If a name is repeated the last one counts, as in most JSON readers.
// An optional member that is null reads as if it were absent.
package item

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// Bounds of one item. Both are checked before anything else of an item is read.
const (
	// MaxSize is the largest item, in bytes, without white space around it: room for a 50 MB file in base64
	// (https://platform.openai.com/docs/guides/pdf-files) and the text beside it.
	MaxSize = 128 << 20
	// MaxDepth is how deep arrays and objects may nest in an item; the item itself is the first level.
	MaxDepth = 512
)

// Errors of this package. Those about a text say what is wrong with it and where.
var (
	// ErrInvalid: the text is not one JSON object within the bounds. Views return it only for the zero Item and for items of
	// [FromTrusted] that should not have been trusted.
	ErrInvalid = errors.New("pawl: not a conversation item")
	// ErrWrongType: a view was asked of an item of another type.
	ErrWrongType = errors.New("pawl: item of another type")
	// ErrMalformed: a member that the view reads is not of the JSON type it has in the API.
	ErrMalformed = errors.New("pawl: malformed item")
	// ErrUnreadable: tool arguments that two readers could understand differently, or that are no JSON object.
	ErrUnreadable = errors.New("pawl: unreadable arguments")
)

// An Item is one conversation item. It is immutable and comparable: items are equal if and only if their bytes are. The zero
// Item holds nothing. Any number of goroutines may use one.
type Item struct{ raw string }

// Parse returns the item in raw: one JSON object in valid UTF-8 within [MaxSize] and [MaxDepth]. White space around it is
// dropped, everything else is kept as it is. Parse copies raw. It does not judge the item: an unknown type, or none, is fine.
// The error wraps [ErrInvalid].
func Parse(raw []byte) (Item, error) {
	raw = bytes.Trim(raw, whiteSpace)
	if err := check(raw); err != nil {
		return Item{}, err
	}
	return Item{string(raw)}, nil
}

// ParseString is [Parse] for a string, which it does not copy.
func ParseString(raw string) (Item, error) {
	raw = strings.Trim(raw, whiteSpace)
	if err := check(raw); err != nil {
		return Item{}, err
	}
	return Item{raw}, nil
}

// FromTrusted returns the item whose bytes are raw without checking them: for bytes that came from [Item.Raw] and were kept
// safe, as in a journal. The views of an item made from anything else return errors or zero values; they do not panic.
func FromTrusted(raw string) Item { return Item{raw} }

// whiteSpace is what RFC 8259 lets stand around a value.
const whiteSpace = " \t\r\n"

// check reports why trimmed text is no item.
func check[T jsonscan.Text](raw T) error {
	if len(raw) > MaxSize {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrInvalid, len(raw), MaxSize)
	}
	if err := jsonscan.Valid(raw, MaxDepth); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if raw[0] != '{' {
		return fmt.Errorf("%w: want a JSON object", ErrInvalid)
	}
	return nil
}

// Raw returns the bytes of the item, "" for the zero Item. It does not copy.
func (it Item) Raw() string { return it.raw }

// AppendRaw appends the bytes of the item to dst.
func (it Item) AppendRaw(dst []byte) []byte { return append(dst, it.raw...) }

// IsZero reports whether the item is the zero Item.
func (it Item) IsZero() bool { return it.raw == "" }

// Equal reports whether the items are the same bytes. It is what == says, under the name that go-cmp looks for.
func (it Item) Equal(other Item) bool { return it == other }

// String returns the bytes of the item, for printing.
func (it Item) String() string { return it.raw }

// MarshalJSON returns the bytes of the item, or null for the zero Item. Mind that encoding/json compacts what it gets from here
// and escapes '<', '>', '&', U+2028 and U+2029 in it: the result means the same but is not the same bytes. Where bytes matter,
// write [Item.Raw].
func (it Item) MarshalJSON() ([]byte, error) {
	if it.IsZero() {
		return []byte("null"), nil
	}
	return []byte(it.raw), nil
}

// UnmarshalJSON sets the item as [Parse] does. JSON null leaves it as it is.
func (it *Item) UnmarshalJSON(raw []byte) error {
	if jsonscan.IsNull(raw) {
		return nil
	}
	parsed, err := Parse(raw)
	if err != nil {
		return err
	}
	*it = parsed
	return nil
}

// WithoutID returns the item without its member "id"; the others keep their order and their values. It returns the item
// itself if there is no id.
func (it Item) WithoutID() Item {
	dst := append(make([]byte, 0, len(it.raw)), '{')
	found := false
	err := jsonscan.Object(it.raw, func(key, value string) error {
		if key == "id" {
			found = true
			return nil
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendString(dst, key), ':')
		dst = append(dst, value...)
		return nil
	})
	if err != nil || !found {
		return it
	}
	return Item{string(append(dst, '}'))}
}
