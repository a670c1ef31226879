package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// A jsonField is a struct field as encoding/json sees it.
type jsonField struct {
	name     string // of the property
	goName   string // with the embedded structs that promote it
	goType   reflect.Type
	path     []int // to the field, through embedded structs
	tag      reflect.StructTag
	optional bool
	tagged   bool // name comes from a tag
	depth    int  // of embedding
}

// jsonFields returns the fields that encoding/json reads and writes for the struct t, in their order, with embedded structs
// flattened. Of several fields with one name the least nested wins, then the only one named by a tag
// (https://pkg.go.dev/encoding/json#Marshal). Where encoding/json would leave out all of them, the error names them.
func jsonFields(t reflect.Type) ([]jsonField, error) {
	c := fieldCollector{}
	if err := c.collect(t, jsonField{}); err != nil {
		return nil, err
	}
	var fields []jsonField
	for _, f := range c.fields {
		rivals := c.rivals(f)
		switch {
		case len(rivals) > 1:
			return nil, fmt.Errorf("the fields %s and %s are both named %q; rename one", rivals[0].goName, rivals[1].goName, f.name)
		case rivals[0].goName == f.goName:
			fields = append(fields, f)
		}
	}
	return fields, nil
}

type fieldCollector struct {
	fields []jsonField
	open   []reflect.Type // the structs that are being collected
}

// rivals returns the fields that have the best claim to the name of f.
func (c *fieldCollector) rivals(f jsonField) []jsonField {
	var best []jsonField
	for _, r := range c.fields {
		if r.name != f.name {
			continue
		}
		switch {
		case len(best) == 0 || r.beats(best[0]):
			best = []jsonField{r}
		case !best[0].beats(r):
			best = append(best, r)
		}
	}
	return best
}

func (f jsonField) beats(g jsonField) bool {
	if f.depth != g.depth {
		return f.depth < g.depth
	}
	return f.tagged && !g.tagged
}

// collect adds the fields of t, which is embedded as parent says.
func (c *fieldCollector) collect(t reflect.Type, parent jsonField) error {
	if slices.Contains(c.open, t) {
		return nil // its fields are there, less nested
	}
	c.open = append(c.open, t)
	defer func() { c.open = c.open[:len(c.open)-1] }()
	for i := range t.NumField() {
		if err := c.add(t.Field(i), i, parent); err != nil {
			return err
		}
	}
	return nil
}

func (c *fieldCollector) add(sf reflect.StructField, at int, parent jsonField) error {
	tag := sf.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	embedded := embeddedStruct(sf)
	if tag == "-" || !sf.IsExported() && embedded == nil {
		return nil
	}
	if !isPropertyName(name) {
		name = ""
	}
	f := jsonField{name: name, goName: sf.Name, goType: sf.Type, tag: sf.Tag, optional: parent.optional, tagged: name != "",
		depth: parent.depth, path: append(slices.Clip(parent.path), at)}
	if parent.goName != "" {
		f.goName = parent.goName + "." + sf.Name
	}
	pointer := sf.Type.Kind() == reflect.Pointer
	if pointer && !sf.IsExported() {
		return within(f.goName, errors.New("encoding/json cannot set an embedded pointer to an unexported struct; embed the struct"))
	}
	if embedded != nil && name == "" {
		f.optional = f.optional || pointer
		f.depth++
		return c.collect(embedded, f)
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			f.optional = true
		case "string":
			return within(f.goName, errors.New("the json option \"string\" is not supported; remove it, or make the field a string"))
		}
	}
	if name == "" {
		f.name = sf.Name
	}
	c.fields = append(c.fields, f)
	return nil
}

// embeddedStruct returns the struct that sf embeds by value or by pointer, nil if it embeds none.
func embeddedStruct(sf reflect.StructField) reflect.Type {
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !sf.Anonymous || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// isPropertyName reports whether encoding/json takes the name in a json tag.
func isPropertyName(name string) bool {
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) {
			return false
		}
	}
	return name != ""
}
