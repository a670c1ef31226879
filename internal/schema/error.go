package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Error says where and why JSON text does not fit a schema, in words short enough to be shown to the model that wrote it.
type Error struct {
	Path    string // where, as in customer.items[2].price; empty for the whole text
	Problem string // what was expected, and what was found
	Err     error  // the cause, if there is one: text that is not JSON, or a method of a Go type that refused its value
}

// Error returns the path and the problem.
func (e *Error) Error() string {
	if e.Path == "" {
		return "pawl: " + e.Problem
	}
	return "pawl: " + e.Path + ": " + e.Problem
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func problem(text string) error { return &Error{Problem: text} }

func mismatch(want, value string) error {
	return problem("expected " + want + ", got " + describe(value))
}

// refused is the error of a Go type that did not take its value, nil if err is.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Problem: shorten(err.Error()), Err: err}
}

// inField puts the name of a property before the path of err.
func inField(name string, err error) error {
	if e, ok := err.(*Error); ok {
		if e.Path != "" && e.Path[0] != '[' {
			name += "."
		}
		e.Path = name + e.Path
	}
	return err
}

// inElement puts the index of an element before the path of err.
func inElement(index int, err error) error {
	if e, ok := err.(*Error); ok {
		step := "[" + strconv.Itoa(index) + "]"
		if e.Path != "" && e.Path[0] != '[' {
			step += "."
		}
		e.Path = step + e.Path
	}
	return err
}

// describe names a JSON value, and shows it if it is a scalar.
func describe(value string) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return shorten(value)
}

// maxShown is the length in bytes up to which text from a model or a library is repeated in an error.
const maxShown = 200

func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	cut := maxShown
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

// choices lists what is allowed, as far as an error has room for it.
func choices(allowed []string) string {
	const maxChoices = 20
	if len(allowed) > maxChoices {
		return strings.Join(allowed[:maxChoices], ", ") + ", ..."
	}
	return strings.Join(allowed, ", ")
}
