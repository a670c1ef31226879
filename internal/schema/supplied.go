package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// A Provider is a type that states its own schema, because it reads and writes its own JSON or because strict schemas cannot
// be derived from it. JSONSchema is called on a zero value while a schema is derived. What it returns must be strict or
// convertible (see [FromJSON]) and without references.
type Provider interface {
	JSONSchema() json.RawMessage
}

// FromJSON returns a schema written by hand or sent by a server. raw must be a JSON object of JSON Schema draft-07 or
// draft 2020-12, as which any other draft is read, whose references are "#" or JSON pointers into itself.
//
// If strict is true, it is converted: objects are closed and all their properties required (an optional one does not become
// nullable), an empty schema becomes the closed empty object, oneOf becomes anyOf, an allOf of one is merged, a reference with
// annotations beside it is replaced by what it refers to, null defaults are dropped, a type that follows from other keywords is
// stated. What has no strict form, or would accept
// other values than before, is refused with an error that names the place. If strict is false, the document stays as it is.
//
// Nesting and the expansion of references are bounded, so converting a hostile schema ends. Validating text against a hostile
// schema may still take long: where alternatives overlap and recur, the time doubles with each level of the text.
func FromJSON(raw []byte, strict bool) (s *Schema, err error) {
	defer recoverTo(&err)
	doc, err := parseDocument(raw)
	if err != nil {
		return nil, fmt.Errorf("pawl: bad JSON Schema: %w", err)
	}
	text := strings.Trim(string(raw), " \t\r\n")
	if strict {
		if doc, err = strictRoot(doc); err != nil {
			return nil, fmt.Errorf("pawl: this JSON Schema cannot be strict: %w; change it, or turn strict off", err)
		}
		text = doc.String()
	}
	root, err := newDocumentNode(doc)
	if err != nil {
		return nil, fmt.Errorf("pawl: bad JSON Schema: %w", err)
	}
	return &Schema{json: text, digest: digest(doc), strict: strict, root: root, precise: true}, nil
}

func parseDocument(raw []byte) (value, error) {
	text := strings.Trim(string(raw), " \t\r\n")
	if text == "" || text[0] != '{' {
		return value{}, errors.New("it is not a JSON object")
	}
	if err := jsonscan.Valid(text, maxSchemaDepth); err != nil {
		return value{}, err
	}
	return parseValue(text)
}

func newProvidedNode(t reflect.Type) (*documentNode, error) {
	doc, err := provided(t)
	if err == nil {
		doc, err = strictPart(doc)
	}
	var n *documentNode
	if err == nil {
		n, err = newDocumentNode(doc)
	}
	if err != nil {
		return nil, fmt.Errorf("the JSONSchema method of %s: %w", t, err)
	}
	n.goType = t
	return n, nil
}

// provided asks a zero t for its schema.
func provided(t reflect.Type) (doc value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return parseDocument(reflect.New(t).Interface().(Provider).JSONSchema())
}

// A documentNode is a schema that was given as a document.
type documentNode struct {
	doc       value
	validator *jsonschema.Resolved
	goType    reflect.Type // that provided the document, and has to read the value; nil if none
}

func newDocumentNode(doc value) (*documentNode, error) {
	if err := checkNumbers(doc); err != nil {
		return nil, err
	}
	if err := checkReferences(doc); err != nil {
		return nil, err
	}
	plain := doc
	if s, ok := doc.get("$schema"); ok && !strings.Contains(s.scalar, "json-schema.org/draft-07/") {
		plain = doc.without("$schema") // the validator refuses other drafts, which differ little
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(plain.append(nil), &parsed); err != nil {
		return nil, err
	}
	validator, err := parsed.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &documentNode{doc: doc, validator: validator}, nil
}

func (n *documentNode) schema(*builder) value { return n.doc }

func (n *documentNode) check(value string) error {
	instance, err := plainValue(value)
	if err != nil {
		return problem(err.Error())
	}
	if err := n.validator.Validate(instance); err != nil {
		return &Error{Problem: shorten(strings.TrimPrefix(err.Error(), "validating root: ")), Err: err}
	}
	if n.goType == nil {
		return nil
	}
	return refused(unmarshalPrecise(value, reflect.New(n.goType).Interface()))
}

// checkNumbers refuses numbers that the validator, which holds them as float64, would change.
func checkNumbers(v value) error {
	for _, m := range v.members {
		if err := checkNumbers(m.value); err != nil {
			return fmt.Errorf("%s: %w", m.key, err)
		}
	}
	for _, e := range v.elements {
		if err := checkNumbers(e); err != nil {
			return err
		}
	}
	i, err := strconv.ParseInt(v.scalar, 10, 64)
	if err == nil && int64(float64(i)) != i || errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("the integer %s is too large to be compared exactly", v.scalar)
	}
	return nil
}

// plainValue returns a JSON value as the validator takes it. Integers stay exact as far as 64 bits hold them.
func plainValue(text string) (any, error) {
	switch text[0] {
	case '{':
		members := map[string]any{}
		err := jsonscan.Object(text, func(key, text string) error {
			if _, ok := members[key]; ok {
				return fmt.Errorf("field %q is given twice", key)
			}
			v, err := plainValue(text)
			members[key] = v
			return err
		})
		return members, err
	case '[':
		elements := []any{}
		err := jsonscan.Array(text, func(text string) error {
			v, err := plainValue(text)
			elements = append(elements, v)
			return err
		})
		return elements, err
	case '"':
		return jsonscan.String(text)
	case 't', 'f':
		return text == "true", nil
	case 'n':
		return nil, nil
	}
	return plainNumber(text)
}

func plainNumber(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is out of range", shorten(text))
	}
	return f, nil
}
