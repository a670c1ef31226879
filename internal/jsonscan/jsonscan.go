// Package jsonscan reads JSON text in place: it checks grammar, walks the members of one object or the elements of one array,
// and decodes single scalars. It builds no tree, uses no reflection, and allocates only for what has to be unescaped.
//
// The grammar is RFC 8259 with its optional choices closed: text must be valid UTF-8, nesting is bounded, nothing may follow
// the value. Names are compared exactly, case included. They need not be unique, except for [UniqueObject] and
// [AppendCanonical].
//
// Functions take string or []byte. What they pass on aliases their input, so a []byte must not change while it is read.
// All functions are safe for concurrent use. Errors about text are of type [*SyntaxError]; the caller says what was read.
package jsonscan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Text is JSON text: RFC 8259 in UTF-8, as a string or as bytes.
type Text interface{ ~string | ~[]byte }

// MaxDepth is how deep [Object] and [Array] let values nest. [Valid] and [AppendCanonical] take their bound as an argument.
// It is the limit of encoding/json.
const MaxDepth = 10000

// A SyntaxError says why text is not the JSON that was asked for.
type SyntaxError struct {
	Offset  int    // in bytes, from the start of the text given
	Problem string // what is wrong there
}

// Error returns the offset and the problem.
func (e *SyntaxError) Error() string {
	return "invalid JSON at offset " + strconv.Itoa(e.Offset) + ": " + e.Problem
}

func syntaxError(offset int, problem string) error {
	return &SyntaxError{Offset: offset, Problem: problem}
}

// Valid reports whether data is exactly one JSON value, possibly between white space, in which arrays and objects nest at most
// maxDepth deep; a scalar has depth 0, "[]" has depth 1. The error is a [*SyntaxError].
func Valid[T Text](data T, maxDepth int) error {
	end, err := skipValue(data, skipSpace(data, 0), maxDepth)
	if err != nil {
		return err
	}
	return atEnd(data, end)
}

// Object calls fn for each member of the JSON object in data, in order. A key is the text between its quotes, unescaped if it
// had escapes; a value is its raw text without white space around it. Both alias data except for an unescaped key. Duplicate
// keys are passed on as they come.
//
// Object stops at the first error of fn and returns it as it is. A [*SyntaxError] may come after members were passed to fn, so
// a caller that must not act on part of an object checks [Valid] first or acts after Object returned.
func Object[T Text](data T, fn func(key, value T) error) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return syntaxError(i, "want an object")
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return atEnd(data, i+1)
	}
	for {
		quoted, escaped, start, err := skipKey(data, i)
		if err != nil {
			return err
		}
		end, err := skipValue(data, start, MaxDepth-1)
		if err != nil {
			return err
		}
		key := quoted[1 : len(quoted)-1]
		if escaped {
			text, _ := unescape(key)
			key = T(text)
		}
		if err := fn(key, data[start:end]); err != nil {
			return err
		}
		next, more, err := skipSeparator(data, end, '}')
		if err != nil {
			return err
		}
		if !more {
			return atEnd(data, next)
		}
		i = next
	}
}

// UniqueObject is [Object] for text in which each name may stand once: it returns an error instead of passing on a second member
// of that name.
func UniqueObject[T Text](data T, fn func(key, value T) error) error {
	seen := make(map[string]bool, 8)
	return Object(data, func(key, value T) error {
		if seen[string(key)] {
			return fmt.Errorf("member %q is there twice", key)
		}
		seen[string(key)] = true
		return fn(key, value)
	})
}

// Array calls fn for each element of the JSON array in data, in order, with its raw text without white space around it, which
// aliases data. It stops at the first error of fn and returns it as it is; for the rest it behaves as [Object] does.
func Array[T Text](data T, fn func(value T) error) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return syntaxError(i, "want an array")
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		return atEnd(data, i+1)
	}
	for {
		end, err := skipValue(data, i, MaxDepth-1)
		if err != nil {
			return err
		}
		if err := fn(data[i:end]); err != nil {
			return err
		}
		next, more, err := skipSeparator(data, end, ']')
		if err != nil {
			return err
		}
		if !more {
			return atEnd(data, next)
		}
		i = next
	}
}

// String decodes the JSON string value, quotes included and nothing around them. An escaped surrogate without its pair becomes
// U+FFFD, as in encoding/json. The result shares memory with value if value is a string without escapes.
func String[T Text](value T) (string, error) {
	end, escaped, err := skipString(value, 0)
	if err != nil {
		return "", err
	}
	if end != len(value) {
		return "", syntaxError(end, "text after the string")
	}
	body := value[1 : end-1]
	if escaped {
		text, _ := unescape(body)
		return text, nil
	}
	return string(body), nil
}

// Checked is [String] for a value that [Object] or [Array] has passed on: it is valid JSON, so it is a string if it begins as
// one. It returns false if it is of another type.
func Checked(value string) (text string, ok bool) {
	if value == "" || value[0] != '"' {
		return "", false
	}
	body := value[1 : len(value)-1]
	if strings.IndexByte(body, '\\') < 0 {
		return body, true
	}
	text, _ = unescape(body)
	return text, true
}

// Int decodes a JSON number that is an integer literal, without fraction or exponent, within the range of int64.
func Int[T Text](value T) (int64, error) {
	end, err := skipNumber(value, 0)
	if err != nil {
		return 0, err
	}
	if end != len(value) {
		return 0, syntaxError(end, "text after the number")
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, syntaxError(0, "integer out of range")
	case err != nil:
		return 0, syntaxError(0, "want an integer")
	}
	return n, nil
}

// Bool decodes a JSON true or false.
func Bool[T Text](value T) (bool, error) {
	switch string(value) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, syntaxError(0, "want true or false")
}

// IsNull reports whether value is the JSON null.
func IsNull[T Text](value T) bool {
	return string(value) == "null"
}
