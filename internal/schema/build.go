package schema

import (
	"fmt"
)

// Limits of one schema. Expanding references and repeating structs can make a small description huge, and a schema may come
// from a server nobody vouches for (https://github.com/openai/openai-agents-python/pull/3838).
const (
	maxSchemaDepth = 100
	maxSchemaNodes = 100_000
)

// A builder writes a graph of nodes as one JSON Schema document. Types are written where they are used; only those that refer
// to themselves become definitions.
type builder struct {
	root    node
	names   map[node]string // of the nodes that are referred to from below themselves
	defined map[node]bool
	pending []node // defined, not yet written
	depth   int
	count   int
	err     error
}

// document returns the schema of the root, which is an object, and the definitions it needs.
func (b *builder) document() (value, error) {
	b.defined = map[node]bool{}
	doc := b.body(b.root)
	definitions := object()
	for len(b.pending) > 0 {
		n := b.pending[0]
		b.pending = b.pending[1:]
		definitions.members = append(definitions.members, member{b.names[n], b.body(n)})
	}
	if len(definitions.members) > 0 {
		doc = doc.with("$defs", definitions)
	}
	return doc, b.err
}

// body writes a node in place.
func (b *builder) body(n node) value {
	b.count++
	if b.count > maxSchemaNodes && b.err == nil {
		b.err = fmt.Errorf("it expands to more than %d schemas", maxSchemaNodes)
	}
	if b.depth >= maxSchemaDepth && b.err == nil {
		b.err = fmt.Errorf("it nests more than %d levels", maxSchemaDepth)
	}
	if b.err != nil {
		return object()
	}
	b.depth++
	defer func() { b.depth-- }()
	return n.schema(b)
}

// reference refers to a node that has a name.
func (b *builder) reference(n node) value {
	if n == b.root {
		return object(stringMember("$ref", "#"))
	}
	if !b.defined[n] {
		b.defined[n] = true
		b.pending = append(b.pending, n)
	}
	return object(stringMember("$ref", "#/$defs/"+b.names[n]))
}

// slot writes what a place holds. A strict schema allows no keyword beside $ref, so a node with a description of its place is
// written there again unless null gives it an anyOf to stand on.
func (b *builder) slot(s slot) value {
	_, named := b.names[s.node]
	var v value
	if named && (s.optional || s.description == "") {
		v = b.reference(s.node)
	} else {
		v = b.body(s.node)
	}
	if s.optional {
		v = nullable(v)
	}
	if s.description != "" {
		v = v.with("description", quoted(s.description))
	}
	return v
}

// nullable returns the schema that also allows null: as a second type of a plain scalar, else as an alternative.
func nullable(v value) value {
	if t, ok := v.get("type"); ok && len(v.members) == 1 {
		return object(member{"type", array(t, quoted("null"))})
	}
	return object(member{"anyOf", array(v, object(stringMember("type", "null")))})
}
