package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// derive returns the schema of t, wrapped if it is not that of an object.
func derive(t reflect.Type) (*Schema, error) {
	if t == nil {
		return nil, fmt.Errorf("pawl: no strict schema for a nil type")
	}
	d := &deriver{nodes: map[reflect.Type]node{}, open: map[node]bool{}, recursive: map[node]string{}}
	root, err := d.slot(t)
	if err != nil {
		return nil, fmt.Errorf("pawl: no strict schema for %s: %w", t, err)
	}
	s := &Schema{strict: true, goType: t, root: root.node, value: root, precise: d.provided}
	if !isObject(s.root) {
		s.wrapped = true
		s.root = newStructNode(field{name: responseKey, slot: slot{node: s.root}})
	}
	b := &builder{root: s.root, names: d.recursive}
	doc, err := b.document()
	if err != nil {
		return nil, fmt.Errorf("pawl: no strict schema for %s: %w", t, err)
	}
	s.json, s.digest = doc.String(), digest(doc)
	return s, nil
}

func isObject(n node) bool {
	switch n := n.(type) {
	case *structNode:
		return true
	case *documentNode:
		t, _ := n.doc.get("type")
		return t.is(`"object"`)
	}
	return false
}

func newStructNode(fields ...field) *structNode {
	n := &structNode{fields: fields, index: map[string]int{}}
	for i, f := range fields {
		n.index[f.name] = i
	}
	return n
}

// A deriver makes nodes of Go types.
type deriver struct {
	nodes     map[reflect.Type]node // of types with a name
	open      map[node]bool         // under way: a second visit closes a cycle
	recursive map[node]string       // nodes on which a cycle closes, with the names of their definitions
	provided  bool                  // a type provides its schema
}

// slot derives a place that holds a t. A pointer makes it optional.
func (d *deriver) slot(t reflect.Type) (slot, error) {
	var s slot
	for hops := 0; t.Kind() == reflect.Pointer; hops++ {
		if hops == maxSchemaDepth {
			return s, fmt.Errorf("%s points to pointers without end", t)
		}
		s.optional = true
		t = t.Elem()
	}
	var err error
	s.node, err = d.node(t)
	return s, err
}

// node derives t, which is not a pointer.
func (d *deriver) node(t reflect.Type) (node, error) {
	if n, ok := d.nodes[t]; ok {
		if _, named := d.recursive[n]; d.open[n] && !named {
			d.recursive[n] = d.definitionName(t)
		}
		return n, nil
	}
	if n, err := d.methods(t); n != nil || err != nil {
		return n, err
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.structNode(t)
	case reflect.Slice, reflect.Array:
		return d.listNode(t)
	}
	return scalar(t)
}

// begin records a node before what it consists of is derived, so that a cycle finds it.
func (d *deriver) begin(t reflect.Type, n node) (end func()) {
	if t.Name() == "" {
		return func() {}
	}
	d.nodes[t] = n
	d.open[n] = true
	return func() { delete(d.open, n) }
}

// methods derives a type whose methods decide about its JSON; the node is nil if none does.
func (d *deriver) methods(t reflect.Type) (node, error) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &stringNode{format: "date-time", fits: formatCheck("date-time")}, nil
	case t == reflect.TypeFor[json.Number]():
		return &numberNode{}, nil
	case t == reflect.TypeFor[json.RawMessage]():
		return nil, fmt.Errorf("%s can be any JSON; use a struct, or a string that holds the JSON", t)
	case t.Kind() == reflect.Interface:
		return nil, fmt.Errorf("%s can be any value; use a struct with a field for each case", t)
	case has[Provider](t):
		d.provided = true
		n, err := newProvidedNode(t)
		return n, err
	case has[json.Marshaler](t) || has[json.Unmarshaler](t):
		return nil, fmt.Errorf("%s reads or writes its own JSON; give it a JSONSchema method that describes it", t)
	case has[encoding.TextMarshaler](t) && has[encoding.TextUnmarshaler](t):
		return &stringNode{goType: t}, nil
	case has[encoding.TextMarshaler](t):
		return nil, fmt.Errorf("%s has MarshalText but cannot be read; give it UnmarshalText", t)
	case has[encoding.TextUnmarshaler](t):
		return nil, fmt.Errorf("%s has UnmarshalText but cannot be written; give it MarshalText", t)
	}
	return nil, nil
}

// has reports whether a t that can be addressed has the methods of M.
func has[M any](t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[M]())
}

func (d *deriver) structNode(t reflect.Type) (node, error) {
	n := newStructNode()
	defer d.begin(t, n)()
	fields, err := jsonFields(t)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 && t.NumField() > 0 {
		return nil, fmt.Errorf("%s has fields, but none that JSON can hold; export them, or use struct{} to say that there are none", t)
	}
	for _, f := range fields {
		s, err := d.field(f)
		if err != nil {
			return nil, within(f.goName, err)
		}
		n.index[f.name] = len(n.fields)
		n.fields = append(n.fields, field{f.name, s, f.path})
	}
	return n, nil
}

func (d *deriver) field(f jsonField) (slot, error) {
	s, err := d.slot(f.goType)
	if err != nil {
		return s, err
	}
	s.optional = s.optional || f.optional
	tags, err := parseTags(f.tag)
	if err != nil {
		return s, err
	}
	s.description = tags.description
	s.node, err = d.constrain(s.node, tags.constraints)
	return s, err
}

func (d *deriver) listNode(t reflect.Type) (node, error) {
	if t.Kind() == reflect.Slice && isBytes(t) {
		return bytesNode{}, nil
	}
	n := &listNode{maxItems: unbounded, slice: t.Kind() == reflect.Slice}
	if !n.slice {
		n.minItems, n.maxItems = t.Len(), t.Len()
	}
	defer d.begin(t, n)()
	var err error
	if n.element, err = d.slot(t.Elem()); err != nil {
		return nil, within("[]", err)
	}
	return n, nil
}

// A placeError says where in a type the type is that cannot be derived.
type placeError struct {
	place string // as in Customer.Items[].Extra
	err   error
}

func (e *placeError) Error() string { return e.place + ": " + e.err.Error() }

// within puts a step before the place of err.
func within(step string, err error) error {
	e, ok := err.(*placeError)
	switch {
	case !ok:
		return &placeError{step, err}
	case !strings.HasPrefix(e.place, "[]"):
		step += "."
	}
	return &placeError{step + e.place, e.err}
}

// isBytes reports whether encoding/json writes the slice type t as base64.
func isBytes(t reflect.Type) bool {
	e := t.Elem()
	return e.Kind() == reflect.Uint8 && !has[json.Marshaler](e) && !has[encoding.TextMarshaler](e)
}

func scalar(t reflect.Type) (node, error) {
	switch t.Kind() {
	case reflect.Bool:
		return booleanNode{}, nil
	case reflect.String:
		return &stringNode{}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return signed(t.Bits()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return unsigned(t.Bits()), nil
	case reflect.Float32, reflect.Float64:
		return &numberNode{bits: t.Bits()}, nil
	case reflect.Map:
		return nil, fmt.Errorf("%s is a map, and a strict schema names all its properties; use a list of structs with a key and a value", t)
	}
	return nil, fmt.Errorf("%s has no JSON form; leave the field out with the tag `json:\"-\"`", t)
}

// definitionName returns a name for t that no other definition has and that needs no escape in a reference.
func (d *deriver) definitionName(t reflect.Type) string {
	plain := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, t.Name())
	name := plain
	for i := 2; d.taken(name); i++ {
		name = fmt.Sprint(plain, "_", i)
	}
	return name
}

func (d *deriver) taken(name string) bool {
	for _, other := range d.recursive {
		if other == name {
			return true
		}
	}
	return false
}
