// Package schema derives strict JSON Schemas from Go types and reads JSON text that a model wrote for them.
//
// Strict is the subset of JSON Schema that OpenAI enforces while a model writes
// (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas): every object lists its properties, requires
// all of them and allows no others. An optional property is one that may be null.
//
// # Go types
//
// Properties are the fields encoding/json knows, under its names and in the order of the struct; embedded structs are
// flattened. A field is optional if it is a pointer, is tagged omitempty or omitzero, or is promoted through an embedded
// pointer. Integers carry the bounds of their type. []byte is base64 text, [time.Time] is an RFC 3339 date-time, and a type
// with MarshalText and UnmarshalText is a string. A type that refers to itself becomes a definition. Types whose JSON is not
// known from the type are refused: interfaces, maps, [encoding/json.RawMessage], channels, functions, complex numbers, and
// types with a MarshalJSON or UnmarshalJSON of their own. [Provider] is how a type states its schema itself.
//
// These struct tags say more about a field:
//
//	jsonschema:"the order number"       description for the model, as in github.com/google/jsonschema-go
//	enum:"small,large"                  the allowed strings or integers, separated by commas
//	minimum:"1" maximum:"10"            bounds of a number, inclusive
//	exclusiveMinimum:"0" exclusiveMaximum:"1"
//	pattern:"^[A-Z]{2}$"                regular expression (RE2) that a string must match somewhere
//	format:"email"                      date-time, time, date, duration, email, hostname, ipv4, ipv6 or uuid
//	minItems:"1" maxItems:"5"           length of a list
//
// On a list all but the description and the length apply to its elements.
//
// # Reading
//
// [Schema.Decode] accepts what the schema describes and, because not every model server enforces it and encoding/json writes
// so, two things more: an optional property may be absent, and null stands for an empty list. An integer must be written
// without fraction and exponent; it never passes through a float.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// maxTextDepth is how deep arguments may nest.
const maxTextDepth = 512

// responseKey names the property that holds the value of a wrapped schema.
const responseKey = "response"

// A Schema is a JSON Schema that is ready to read JSON text. It is immutable and safe for concurrent use.
type Schema struct {
	json    string
	digest  string
	strict  bool
	wrapped bool         // the value of goType is the property named responseKey
	goType  reflect.Type // nil if made by FromJSON
	root    node
	value   slot // of a goType
	precise bool // numbers may land in an interface value and must not become floats there
}

// For returns the strict schema of T, which must be a struct, a pointer to one, or a [Provider] of an object schema. The error
// names the field that has no strict schema and says what to do.
func For[T any]() (*Schema, error) { return ForType(reflect.TypeFor[T]()) }

// ForType is [For] for a type known at run time.
func ForType(t reflect.Type) (*Schema, error) {
	s, err := derive(t)
	if err != nil {
		return nil, err
	}
	if s.wrapped {
		return nil, fmt.Errorf("pawl: no object schema for %s: it is not a JSON object; use a struct with a field for it", t)
	}
	return s, nil
}

// ForOutput returns the strict schema of T as the final output of a model. The schema of a type that is not a JSON object is
// wrapped in an object whose only property, "response", holds the value; [Schema.Decode] unwraps it.
func ForOutput[T any]() (*Schema, error) { return ForOutputType(reflect.TypeFor[T]()) }

// ForOutputType is [ForOutput] for a type known at run time.
func ForOutputType(t reflect.Type) (*Schema, error) { return derive(t) }

// JSON returns the schema as compact JSON: properties in the order of the struct fields, or the document given to [FromJSON].
func (s *Schema) JSON() string { return s.json }

// Digest identifies what the schema accepts. Titles, descriptions, examples, comments and the order of keys do not change it.
// It is the version of this algorithm, a colon, and a SHA-256 in base64url.
func (s *Schema) Digest() string { return s.digest }

// Strict reports whether a model server may be asked to enforce the schema.
func (s *Schema) Strict() bool { return s.strict }

// Wrapped reports whether the value is the property "response" of the text; see [ForOutput].
func (s *Schema) Wrapped() bool { return s.wrapped }

// IsEmpty reports whether the schema names no properties and the empty object fits: a tool with it takes no arguments.
func (s *Schema) IsEmpty() bool {
	if n, ok := s.root.(*documentNode); ok {
		properties, _ := n.doc.get("properties")
		if len(properties.members) > 0 {
			return false
		}
	}
	return s.Validate("{}") == nil
}

// Validate reports whether text is one JSON value that fits the schema. The error is an [*Error].
func (s *Schema) Validate(text string) (err error) {
	defer recoverTo(&err)
	return s.validate(text)
}

func (s *Schema) validate(text string) error {
	if err := jsonscan.Valid(text, maxTextDepth); err != nil {
		return &Error{Problem: err.Error(), Err: err}
	}
	return s.root.check(strings.Trim(text, " \t\r\n"))
}

// Decode validates text and stores its value in dst, a pointer to the type the schema was derived from, or to any type if it
// was made by [FromJSON]. What dst held before is lost. A null for an optional field gives its zero value. Numbers decoded
// into an interface value become [json.Number]. If text does not fit, the error is an [*Error] and dst is left alone. After
// [FromJSON] the type of dst may also refuse a value that fits the schema; that is an [*Error] that wraps the reason.
func (s *Schema) Decode(text string, dst any) error { return s.decode(text, dst, s.validate) }

// DecodeValid is Decode for text that Validate has accepted.
func (s *Schema) DecodeValid(text string, dst any) error {
	return s.decode(text, dst, func(string) error { return nil })
}

func (s *Schema) decode(text string, dst any, validate func(string) error) (err error) {
	defer recoverTo(&err)
	target := reflect.ValueOf(dst)
	switch {
	case target.Kind() != reflect.Pointer || target.IsNil():
		return fmt.Errorf("pawl: cannot decode into %T: want a pointer that is not nil", dst)
	case s.goType != nil && target.Type().Elem() != s.goType:
		return fmt.Errorf("pawl: cannot decode into %T: the schema is that of %s", dst, s.goType)
	}
	if err := validate(text); err != nil {
		return err
	}
	if s.wrapped {
		text = response(text)
	}
	target.Elem().SetZero()
	switch {
	case s.precise:
		return refused(unmarshalPrecise(text, dst))
	case s.goType == nil:
		return refused(json.Unmarshal([]byte(text), dst))
	}
	return refused(s.value.read(strings.Trim(text, " \t\r\n"), target.Elem()))
}

// unmarshalPrecise decodes numbers into interface values as [json.Number].
func unmarshalPrecise(text string, dst any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(dst)
}

// response returns the value inside a wrapped text that was validated.
func response(text string) (value string) {
	jsonscan.Object(text, func(_, v string) error {
		value = v
		return nil
	})
	return value
}

// recoverTo turns a panic into an error: methods of the decoded types run here.
func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("pawl: reading JSON panicked: %v", p)
	}
}
