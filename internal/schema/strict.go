package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// strictRoot converts a whole document, which must describe an object.
func strictRoot(doc value) (value, error) {
	if len(doc.members) == 0 {
		return closedObject(object(), array()), nil
	}
	c := converter{root: doc, places: map[string]bool{}}
	doc, err := c.convert(doc.without("$schema", "$id"), "", 0)
	if err != nil {
		return doc, err
	}
	if t, _ := doc.get("type"); !t.is(`"object"`) || doc.has("anyOf") {
		return doc, errors.New("the root is not of type object alone")
	}
	return doc, c.checkTargets()
}

// strictPart converts a schema that becomes part of another document.
func strictPart(doc value) (value, error) {
	c := converter{root: doc, places: map[string]bool{}}
	doc, err := c.convert(doc, "", 0)
	if err == nil && (len(c.references) > 0 || doc.has("$defs") || doc.has("definitions")) {
		return doc, errors.New("it has references or definitions; write them out")
	}
	return doc, err
}

// A converter makes the schemas of one document strict.
type converter struct {
	root       value // as given
	count      int
	places     map[string]bool // JSON pointers of the schemas that were converted
	references []string        // that stay
}

// convert returns the strict form of the schema v at a place.
func (c *converter) convert(v value, at string, depth int) (value, error) {
	v, err := c.convertHere(v, at, depth)
	if err != nil {
		return v, err
	}
	return mapSchemas(v, func(step string, sub value) (value, error) {
		if step == "/additionalProperties" {
			return sub, nil
		}
		return c.convert(sub, at+step, depth+1)
	})
}

// convertHere converts v and leaves the schemas below it as they are.
func (c *converter) convertHere(v value, at string, depth int) (value, error) {
	c.places[at] = true
	v, err := c.combine(v, depth)
	if err == nil && !v.has("$ref") {
		v, err = closed(typed(v))
	}
	if err == nil {
		err = checkStrict(v)
	}
	if err != nil {
		return v, fmt.Errorf("%s: %w", place(at), err)
	}
	if d, ok := v.get("default"); ok && d.is("null") {
		v = v.without("default")
	}
	return v, nil
}

// combine resolves the keywords that combine schemas, until none is left but anyOf or a reference alone.
func (c *converter) combine(v value, depth int) (value, error) {
	for {
		c.count++
		switch {
		case depth >= maxSchemaDepth:
			return v, fmt.Errorf("it nests more than %d levels, or refers to itself beside a description", maxSchemaDepth)
		case c.count > maxSchemaNodes:
			return v, fmt.Errorf("it expands to more than %d schemas", maxSchemaNodes)
		case v.kind != objectValue:
			return v, fmt.Errorf("the schema %s is not an object; describe the type", shorten(v.String()))
		}
		next, done, err := c.combineOnce(v)
		if done || err != nil {
			return next, err
		}
		v = next
		depth++
	}
}

func (c *converter) combineOnce(v value) (next value, done bool, err error) {
	if all, ok := v.get("allOf"); ok {
		if len(all.elements) != 1 {
			return v, false, errors.New("allOf has no strict form; write the schema out")
		}
		next, err = merge(v.without("allOf"), all.elements[0], "allOf")
		return next, false, err
	}
	if one, ok := v.get("oneOf"); ok {
		if v.has("anyOf") {
			return v, false, errors.New("oneOf beside anyOf has no strict form")
		}
		return v.without("oneOf").with("anyOf", one), false, nil
	}
	ref, ok := v.get("$ref")
	if !ok {
		return v, true, nil
	}
	text, ok := ref.text()
	if !ok {
		return v, false, errors.New("$ref is not a string")
	}
	if len(v.members) == 1 {
		c.references = append(c.references, text)
		return v, true, nil
	}
	target, err := resolve(c.root, text)
	if err == nil {
		next, err = merge(v.without("$ref"), target, "$ref")
	}
	return next, false, err
}

// merge returns the schema that means v and other. Only one of them may constrain a value; annotations of v win. Definitions
// do not constrain.
func merge(v, other value, keyword string) (value, error) {
	if other.kind != objectValue {
		return v, fmt.Errorf("%s holds %s, which is not an object", keyword, shorten(other.String()))
	}
	if constrains(v) && constrains(other) {
		return v, fmt.Errorf("%s beside other constraints has no strict form; write the schema out", keyword)
	}
	merged := other
	for _, m := range v.members {
		merged = merged.with(m.key, m.value)
	}
	return merged, nil
}

func constrains(v value) bool {
	return slices.ContainsFunc(v.members, func(m member) bool {
		return !isAnnotation(m.key) && m.key != "$defs" && m.key != "definitions"
	})
}

// typed gives v the type that its other keywords imply: the service wants one in every schema.
func typed(v value) value {
	if v.has("type") {
		return v
	}
	if v.has("properties") {
		return v.with("type", quoted("object"))
	}
	if v.has("items") {
		return v.with("type", quoted("array"))
	}
	var types []string
	for _, choice := range choicesOf(v) {
		if t := scalarType(choice.scalar); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	switch len(types) {
	case 0:
		return v
	case 1:
		return v.with("type", quoted(types[0]))
	}
	return v.with("type", quotedAll(types))
}

// choicesOf returns the values that enum or const allow.
func choicesOf(v value) []value {
	if constant, ok := v.get("const"); ok {
		return []value{constant}
	}
	enum, _ := v.get("enum")
	return enum.elements
}

// scalarType returns the JSON Schema type of a scalar.
func scalarType(scalar string) string {
	switch {
	case scalar == "null":
		return "null"
	case scalar == "true" || scalar == "false":
		return "boolean"
	case strings.HasPrefix(scalar, `"`):
		return "string"
	case strings.ContainsAny(scalar, ".eE"):
		return "number"
	}
	return "integer"
}

// closed requires all properties of v, if it is an object, and allows no others.
func closed(v value) (value, error) {
	if !hasType(v, "object") {
		return v, nil
	}
	if extra, ok := v.get("additionalProperties"); ok && !extra.is("false") {
		return v, errors.New("additionalProperties must be false; list the properties, or make it a list of objects with a key and a value")
	}
	properties, _ := v.get("properties")
	if !v.has("properties") {
		properties = object()
	}
	if properties.kind != objectValue {
		return v, errors.New("properties is not an object")
	}
	required, known := array(), map[string]bool{}
	for _, m := range properties.members {
		required.elements = append(required.elements, quoted(m.key))
		known[m.key] = true
	}
	given, _ := v.get("required")
	for _, e := range given.elements {
		if name, ok := e.text(); !ok || !known[name] {
			return v, fmt.Errorf("required names %s, which is not a property", shorten(e.String()))
		}
	}
	return v.with("properties", properties).with("required", required).with("additionalProperties", literal("false")), nil
}

// hasType reports whether t is the type of v or one of its types.
func hasType(v value, t string) bool {
	types, _ := v.get("type")
	if types.kind != arrayValue {
		types = array(types)
	}
	return slices.ContainsFunc(types.elements, func(e value) bool { return e.is(`"` + t + `"`) })
}

// checkStrict refuses what a strict schema may not say.
func checkStrict(v value) error {
	for _, m := range v.members {
		if lacksStrictForm(m.key) {
			return fmt.Errorf("the keyword %s has no strict form", m.key)
		}
	}
	for _, choice := range choicesOf(v) {
		if choice.kind != scalarValue {
			return fmt.Errorf("the choice %s is not a scalar and has no strict form", shorten(choice.String()))
		}
	}
	if !v.has("type") && !v.has("anyOf") && !v.has("$ref") {
		return errors.New("it accepts any value; give it a type")
	}
	if hasType(v, "array") {
		if items, _ := v.get("items"); items.kind != objectValue {
			return errors.New("an array needs items that are one schema")
		}
	}
	if format, ok := v.get("format"); ok && hasType(v, "string") {
		if name, _ := format.text(); formatCheck(name) == nil {
			return fmt.Errorf("the format %s is not one of %s", shorten(format.String()), formatNames)
		}
	}
	return nil
}

// checkTargets refuses a reference to what was not converted because it is no schema, or not one any more.
func (c *converter) checkTargets() error {
	for _, ref := range c.references {
		pointer, err := pointerOf(ref)
		if err == nil && !c.places[pointer] {
			err = fmt.Errorf("$ref %q does not refer to a schema; move that to $defs", ref)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
