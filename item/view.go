package item

import (
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// view calls fn for each member of an item of type want. An error of fn is a malformed member; an item of another type is that
// first of all, whatever its members are.
func (it Item) view(want Type, fn func(key, value string) error) error {
	got, err := it.read(fn)
	if got != want && !errors.Is(err, ErrInvalid) {
		return wrongType(got, string(want))
	}
	return err
}

func wrongType(got Type, want string) error {
	return fmt.Errorf("%w: it is %q, not %s", ErrWrongType, got, want)
}

func malformedMember(name string, err error) error {
	return fmt.Errorf("%w: member %q: %w", ErrMalformed, name, err)
}

// read calls fn for each member of the item and returns the item's type and the first error of fn, which names the member and
// wraps [ErrMalformed]. If the item is no JSON object the error wraps [ErrInvalid].
func (it Item) read(fn func(key, value string) error) (Type, error) {
	var (
		t         itemType
		malformed error
	)
	err := jsonscan.Object(it.raw, func(key, value string) error {
		t.read(key, value)
		if err := fn(key, value); err != nil && malformed == nil {
			malformed = malformedMember(key, err)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return t.value(), malformed
}

// text decodes a string member; null is as good as absent.
func text(value string) (string, error) {
	if s, ok := jsonscan.Checked(value); ok {
		return s, nil
	}
	if jsonscan.IsNull(value) {
		return "", nil
	}
	return jsonscan.String(value) // says what is there instead
}

// textOrEmpty is text where another JSON type is as good as absent.
func textOrEmpty(value string) string {
	s, err := text(value)
	if err != nil {
		return ""
	}
	return s
}

// nonNull returns the raw value, "" for null.
func nonNull(value string) string {
	if jsonscan.IsNull(value) {
		return ""
	}
	return value
}

// member returns the raw value of a member of the object in raw, "" if it is absent or raw is no object.
func member(raw, name string) string {
	var found string
	err := jsonscan.Object(raw, func(key, value string) error {
		if key == name {
			found = value
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return found
}

// textMember returns a string member of the object in raw, "" if there is none.
func textMember(raw, name string) string {
	return textOrEmpty(member(raw, name))
}
