package journal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
)

// errUnknown means that whoever wrote the value knew more than this reader.
var errUnknown = errors.New("not known here")

// fields is a pointer to a struct that reads itself from the members of an object.
type fields[T any] interface {
	*T
	read(name, value string) error
}

// scanMembers reads an object member by member; its errors name the member.
func scanMembers(value string, read func(name, value string) error) error {
	return jsonscan.Object(value, func(name, value string) error {
		if err := read(name, value); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		return nil
	})
}

func scanObject[T any, P fields[T]](v *P, value string) error {
	*v = new(T)
	return scanMembers(value, (*v).read)
}

func scanObjects[T any, P fields[T]](v *[]T, value string) error {
	return jsonscan.Array(value, func(value string) error {
		*v = append(*v, *new(T))
		return scanMembers(value, P(&(*v)[len(*v)-1]).read)
	})
}

func scanText(v *string, value string) (err error) {
	*v, err = jsonscan.String(value)
	return err
}

func scanTexts(v *[]string, value string) error {
	return jsonscan.Array(value, func(value string) error {
		s, err := jsonscan.String(value)
		*v = append(*v, s)
		return err
	})
}

// scanWord reads a text that is one of a few known words.
func scanWord[T ~string](v *T, value string, known ...T) error {
	s, err := jsonscan.String(value)
	*v = T(s)
	if err == nil && s != "" && !slices.Contains(known, *v) {
		return fmt.Errorf("%q is %w", s, errUnknown)
	}
	return err
}

func scanInt[T int | int64](v *T, value string) error {
	n, err := jsonscan.Int(value)
	if *v = T(n); err == nil && int64(*v) != n {
		return strconv.ErrRange
	}
	return err
}

func scanUint(v *uint64, value string) (err error) {
	*v, err = strconv.ParseUint(value, 10, 64)
	return err
}

func scanFlag(v *bool, value string) (err error) {
	*v, err = jsonscan.Bool(value)
	return err
}

func scanDigest(v *item.Digest, value string) error {
	s, err := jsonscan.String(value)
	if err == nil {
		*v, err = item.ParseDigest(s)
	}
	return err
}

// scanBytes reads base64url into all of dst.
func scanBytes(dst []byte, value string) error {
	s, err := jsonscan.String(value)
	if err != nil {
		return err
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err == nil && len(b) != len(dst) {
		err = fmt.Errorf("%d bytes, want %d", len(b), len(dst))
	}
	copy(dst, b)
	return err
}

func scanEffect(v *EffectID, value string) error {
	s, err := jsonscan.String(value)
	if err == nil {
		*v, err = ParseEffectID(s)
	}
	return err
}

func scanItem(v *item.Item, value string) (err error) {
	*v, err = item.ParseString(value)
	return err
}

func scanItems(v *[]item.Item, value string) error {
	return jsonscan.Array(value, func(value string) error {
		it, err := item.ParseString(value)
		*v = append(*v, it)
		return err
	})
}
