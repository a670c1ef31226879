package schema

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// A node is the schema of one Go type. Nodes form a graph, with a cycle where a type refers to itself.
type node interface {
	// schema returns the node as a JSON Schema, which refers to recursive nodes below by name.
	schema(b *builder) value
	// check returns an *Error if the JSON value, which is valid and has no white space around it, does not fit.
	check(value string) error
}

// A slot is a place that holds a value: a field, an element of a list, or the whole text.
type slot struct {
	node        node
	optional    bool // null is allowed and, for a field, stands for absence
	description string
}

func (s slot) check(value string) error {
	if s.optional && jsonscan.IsNull(value) {
		return nil
	}
	return s.node.check(value)
}

// A structNode is an object with the fields of a struct.
type structNode struct {
	fields []field
	index  map[string]int // of fields by name
}

type field struct {
	name string
	slot slot
	path []int // to the field of the Go struct
}

func (n *structNode) schema(b *builder) value {
	properties, required := object(), array()
	for _, f := range n.fields {
		properties.members = append(properties.members, member{f.name, b.slot(f.slot)})
		required.elements = append(required.elements, quoted(f.name))
	}
	return closedObject(properties, required)
}

func closedObject(properties, required value) value {
	return object(stringMember("type", "object"), member{"properties", properties}, member{"required", required},
		member{"additionalProperties", literal("false")})
}

func (n *structNode) check(value string) error {
	if value[0] != '{' {
		return mismatch("an object", value)
	}
	seen := make([]bool, len(n.fields))
	next := 0
	err := jsonscan.Object(value, func(key, value string) error {
		i, ok := n.find(key, next)
		if !ok {
			return problem(fmt.Sprintf("unknown field %q; the fields are: %s", shorten(key), choices(n.names(nil))))
		}
		if seen[i] {
			return problem(fmt.Sprintf("field %q is given twice", key))
		}
		seen[i] = true
		next = i + 1
		if err := n.fields[i].slot.check(value); err != nil {
			return inField(key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, f := range n.fields {
		if !seen[i] && !f.slot.optional {
			return problem("missing: " + choices(n.names(seen)))
		}
	}
	return nil
}

// find returns the index of the field named key. Models write fields in the order of the schema, so it looks at next first.
func (n *structNode) find(key string, next int) (int, bool) {
	if next < len(n.fields) && n.fields[next].name == key {
		return next, true
	}
	i, ok := n.index[key]
	return i, ok
}

// names returns the names of all fields, or of the required ones that were not seen.
func (n *structNode) names(seen []bool) []string {
	var names []string
	for i, f := range n.fields {
		if seen == nil || !seen[i] && !f.slot.optional {
			names = append(names, f.name)
		}
	}
	if names == nil {
		return []string{"(none)"}
	}
	return names
}

// A listNode is an array.
type listNode struct {
	element            slot
	minItems, maxItems int // maxItems is unbounded if it is -1
	slice              bool
}

const unbounded = -1

func (n *listNode) schema(b *builder) value {
	s := object(stringMember("type", "array"), member{"items", b.slot(n.element)})
	if n.minItems > 0 {
		s = s.with("minItems", literal(fmt.Sprint(n.minItems)))
	}
	if n.maxItems != unbounded {
		s = s.with("maxItems", literal(fmt.Sprint(n.maxItems)))
	}
	return s
}

func (n *listNode) check(value string) error {
	if n.slice && n.minItems == 0 && jsonscan.IsNull(value) {
		return nil
	}
	if value[0] != '[' {
		return mismatch("a list", value)
	}
	count := 0
	err := jsonscan.Array(value, func(value string) error {
		count++
		if count > n.maxItems && n.maxItems != unbounded {
			return n.wrongLength(fmt.Sprintf("more than %d", n.maxItems))
		}
		if err := n.element.check(value); err != nil {
			return inElement(count-1, err)
		}
		return nil
	})
	if err == nil && count < n.minItems {
		return n.wrongLength(fmt.Sprint(count))
	}
	return err
}

func (n *listNode) wrongLength(got string) error {
	switch {
	case n.minItems == n.maxItems:
		return problem(fmt.Sprintf("expected a list of %d, got %s", n.minItems, got))
	case n.maxItems == unbounded:
		return problem(fmt.Sprintf("expected a list of at least %d, got %s", n.minItems, got))
	case n.minItems == 0:
		return problem(fmt.Sprintf("expected a list of at most %d, got %s", n.maxItems, got))
	}
	return problem(fmt.Sprintf("expected a list of %d to %d, got %s", n.minItems, n.maxItems, got))
}

// A booleanNode is true or false.
type booleanNode struct{}

func (booleanNode) schema(*builder) value { return object(stringMember("type", "boolean")) }

func (booleanNode) check(value string) error {
	if value != "true" && value != "false" {
		return mismatch("true or false", value)
	}
	return nil
}

// A bytesNode is the base64 text of a []byte.
type bytesNode struct{}

func (bytesNode) schema(*builder) value {
	return object(stringMember("type", "string"),
		stringMember("pattern", "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"))
}

func (bytesNode) check(value string) error {
	if jsonscan.IsNull(value) {
		return nil
	}
	if value[0] != '"' {
		return mismatch("base64 text", value)
	}
	text, err := jsonscan.String(value)
	if err != nil {
		return problem(err.Error())
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil || strings.ContainsAny(text, "\r\n") {
		return mismatch("base64 text", value)
	}
	return nil
}
