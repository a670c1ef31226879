package schema

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// fieldTags are what the struct tags of a field say about its schema.
type fieldTags struct {
	description string
	constraints []constraint
}

// A constraint is a struct tag named after the JSON Schema keyword it sets.
type constraint struct{ keyword, text string }

// keywords are the tags that constrain a field, in the order in which they apply.
var keywords = [...]string{"minItems", "maxItems", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "format"}

// unsupported are keywords that OpenAI's list of supported properties lacks.
var unsupported = [...]string{"minLength", "maxLength", "multipleOf", "uniqueItems"}

// optionPrefix is how github.com/google/jsonschema-go tells a description from options of other packages.
var optionPrefix = regexp.MustCompile(`^[^ \t\n]*=`)

func parseTags(tag reflect.StructTag) (fieldTags, error) {
	var t fieldTags
	var ok bool
	if t.description, ok = tag.Lookup("jsonschema"); ok {
		switch {
		case t.description == "":
			return t, errors.New("the jsonschema tag is empty; it holds the description")
		case optionPrefix.MatchString(t.description):
			return t, fmt.Errorf("the jsonschema tag %q starts like an option; it holds the description, and options are tags of their own, as in `minimum:\"1\"`", t.description)
		}
	}
	for _, keyword := range unsupported {
		if _, ok := tag.Lookup(keyword); ok {
			return t, fmt.Errorf("the tag %s is not supported; strict schemas have no such keyword, but a pattern can often say it", keyword)
		}
	}
	for _, keyword := range keywords {
		if text, ok := tag.Lookup(keyword); ok {
			t.constraints = append(t.constraints, constraint{keyword, text})
		}
	}
	return t, nil
}

func (c constraint) misplaced(what string) error {
	return fmt.Errorf("the tag %s does not apply to %s", c.keyword, what)
}

func (c constraint) invalid(want string) error {
	return fmt.Errorf("the tag %s:%q is not %s", c.keyword, c.text, want)
}

// constrain returns n with the constraints. Nodes are shared between fields, so it changes a copy.
func (d *deriver) constrain(n node, constraints []constraint) (node, error) {
	for _, c := range constraints {
		var err error
		if n, err = d.constrainOne(n, c); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (d *deriver) constrainOne(n node, c constraint) (node, error) {
	switch n := n.(type) {
	case *listNode:
		if d.open[n] {
			return nil, c.misplaced("a list that contains itself")
		}
		return d.constrainList(*n, c)
	case *stringNode:
		return constrainString(*n, c)
	case *integerNode[int64]:
		return constrainInteger(*n, c)
	case *integerNode[uint64]:
		return constrainInteger(*n, c)
	case *numberNode:
		return constrainNumber(*n, c)
	case booleanNode:
		return nil, c.misplaced("a boolean")
	case bytesNode:
		return nil, c.misplaced("base64 bytes")
	case *structNode:
		return nil, c.misplaced("a struct")
	}
	return nil, c.misplaced("a type that describes itself")
}

func (d *deriver) constrainList(n listNode, c constraint) (node, error) {
	if c.keyword != "minItems" && c.keyword != "maxItems" {
		var err error
		n.element.node, err = d.constrainOne(n.element.node, c)
		return &n, err
	}
	length, err := strconv.Atoi(c.text)
	switch {
	case !n.slice:
		return nil, c.misplaced("an array, whose length is fixed")
	case err != nil || length < 0:
		return nil, c.invalid("a length")
	case c.keyword == "minItems":
		n.minItems = length
	default:
		n.maxItems = length
	}
	if n.maxItems != unbounded && n.maxItems < n.minItems {
		return nil, c.invalid(fmt.Sprintf("at least minItems, %d", n.minItems))
	}
	return &n, nil
}

func constrainString(n stringNode, c constraint) (node, error) {
	var err error
	switch c.keyword {
	case "enum":
		n.enum, err = splitEnum(c)
	case "pattern":
		if n.pattern, err = regexp.Compile(c.text); err != nil {
			return nil, c.invalid("a regular expression: " + err.Error())
		}
	case "format":
		if n.format != "" {
			return nil, c.misplaced("a " + n.format)
		}
		n.format = c.text
		if n.fits = formatCheck(c.text); n.fits == nil {
			return nil, c.invalid("one of " + formatNames)
		}
	default:
		return nil, c.misplaced("a string")
	}
	return &n, err
}

func splitEnum(c constraint) ([]string, error) {
	values := strings.Split(c.text, ",")
	for i, v := range values {
		if v == "" || v != strings.TrimSpace(v) || slices.Contains(values[:i], v) {
			return nil, c.invalid("a list of different values, separated by commas alone")
		}
	}
	return values, nil
}

func constrainInteger[T int64 | uint64](n integerNode[T], c constraint) (node, error) {
	values := []string{c.text}
	switch c.keyword {
	case "minimum", "maximum":
		if n.enum != nil {
			return nil, c.misplaced("an integer with an enum")
		}
	case "enum":
		var err error
		if values, err = splitEnum(c); err != nil {
			return nil, err
		}
	default:
		return nil, c.misplaced("an integer")
	}
	want := n.want()
	for _, text := range values {
		i, err := n.parse(text, 10, n.bits)
		switch {
		case err != nil || i < n.min || i > n.max || fmt.Sprint(i) != text:
			return nil, c.invalid(want)
		case c.keyword == "enum":
			n.enum = append(n.enum, i)
		case c.keyword == "minimum":
			n.min, n.stateMin = i, true
		default:
			n.max, n.stateMax = i, true
		}
	}
	return &n, nil
}

func constrainNumber(n numberNode, c constraint) (node, error) {
	switch c.keyword {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
	default:
		return nil, c.misplaced("a number")
	}
	limit, err := strconv.ParseFloat(c.text, 64)
	if err != nil || jsonscan.Valid(c.text, 0) != nil {
		return nil, c.invalid("a number")
	}
	n.bounds = append(slices.Clone(n.bounds), bound{c.keyword, c.text, limit})
	return &n, nil
}
