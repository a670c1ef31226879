package schema

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// A stringNode is a string, or a type that is written as one.
type stringNode struct {
	enum    []string
	pattern *regexp.Regexp
	format  string
	fits    func(string) bool // whether text has the format; nil if any does
	goType  reflect.Type      // whose UnmarshalText reads the text; nil for strings
}

func (n *stringNode) schema(*builder) value {
	s := object(stringMember("type", "string"))
	if n.enum != nil {
		s = s.with("enum", quotedAll(n.enum))
	}
	if n.pattern != nil {
		s = s.with("pattern", quoted(n.pattern.String()))
	}
	if n.format != "" {
		s = s.with("format", quoted(n.format))
	}
	return s
}

func (n *stringNode) check(value string) error {
	if value[0] != '"' {
		return mismatch("a string", value)
	}
	if n.enum == nil && n.pattern == nil && n.fits == nil && n.goType == nil {
		return nil
	}
	text, err := jsonscan.String(value)
	switch {
	case err != nil:
		return problem(err.Error())
	case n.enum != nil && !slices.Contains(n.enum, text):
		return mismatch("one of "+choices(n.enum), value)
	case n.pattern != nil && !n.pattern.MatchString(text):
		return mismatch("text that matches "+n.pattern.String(), value)
	case n.fits != nil && !n.fits(text):
		return mismatch("text of the format "+n.format, value)
	case n.goType != nil:
		u := reflect.New(n.goType).Interface().(encoding.TextUnmarshaler)
		return refused(u.UnmarshalText([]byte(text)))
	}
	return nil
}

// An integerNode is an integer of a Go type, which strconv.ParseInt or ParseUint reads.
type integerNode[T int64 | uint64] struct {
	parse              func(text string, base, bits int) (T, error)
	bits               int
	min, max           T
	stateMin, stateMax bool // the bounds say more than that the integer has 64 bits
	enum               []T
}

func signed(bits int) *integerNode[int64] {
	return &integerNode[int64]{parse: strconv.ParseInt, bits: bits, stateMin: bits < 64, stateMax: bits < 64,
		min: int64(math.MinInt64) >> (64 - bits), max: int64(math.MaxInt64) >> (64 - bits)}
}

func unsigned(bits int) *integerNode[uint64] {
	return &integerNode[uint64]{parse: strconv.ParseUint, bits: bits, stateMin: true, stateMax: bits < 64,
		max: uint64(math.MaxUint64) >> (64 - bits)}
}

func (n *integerNode[T]) schema(*builder) value {
	s := object(stringMember("type", "integer"))
	if n.enum != nil {
		return s.with("enum", array(n.literals()...))
	}
	if n.stateMin {
		s = s.with("minimum", literal(fmt.Sprint(n.min)))
	}
	if n.stateMax {
		s = s.with("maximum", literal(fmt.Sprint(n.max)))
	}
	return s
}

func (n *integerNode[T]) literals() (values []value) {
	for _, e := range n.enum {
		values = append(values, literal(fmt.Sprint(e)))
	}
	return values
}

func (n *integerNode[T]) check(value string) error {
	i, err := n.parse(value, 10, n.bits)
	fits := err == nil && n.min <= i && i <= n.max
	if fits && (n.enum == nil || slices.Contains(n.enum, i)) {
		return nil
	}
	return mismatch(n.want(), value)
}

// want says in words what fits.
func (n *integerNode[T]) want() string {
	switch {
	case n.enum != nil:
		return "one of " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(n.enum)), ", "), "[]")
	case n.stateMin && n.stateMax:
		return fmt.Sprintf("an integer from %d to %d", n.min, n.max)
	case n.stateMin:
		return fmt.Sprintf("an integer of at least %d", n.min)
	case n.stateMax:
		return fmt.Sprintf("an integer of at most %d", n.max)
	}
	return "an integer of 64 bits"
}

// A numberNode is a floating point number, or any number if bits is 0.
type numberNode struct {
	bits   int
	bounds []bound
}

// A bound limits a number by the JSON Schema keyword of its name.
type bound struct {
	keyword string
	text    string // as in the schema
	limit   float64
}

// allows reports whether x keeps the bound, and says in words what would.
func (b bound) allows(x float64) (ok bool, want string) {
	switch b.keyword {
	case "minimum":
		return x >= b.limit, "a number of at least " + b.text
	case "maximum":
		return x <= b.limit, "a number of at most " + b.text
	case "exclusiveMinimum":
		return x > b.limit, "a number of more than " + b.text
	}
	return x < b.limit, "a number of less than " + b.text
}

func (n *numberNode) schema(*builder) value {
	s := object(stringMember("type", "number"))
	for _, b := range n.bounds {
		s = s.with(b.keyword, literal(b.text))
	}
	return s
}

func (n *numberNode) check(value string) error {
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return mismatch("a number", value)
	}
	if n.bits != 0 {
		if _, err := strconv.ParseFloat(value, n.bits); err != nil {
			return mismatch(fmt.Sprintf("a number that fits %d bits", n.bits), value)
		}
	}
	if n.bounds == nil {
		return nil
	}
	x, _ := strconv.ParseFloat(value, 64) // out of range is an infinity, which compares rightly
	for _, b := range n.bounds {
		if ok, want := b.allows(x); !ok {
			return mismatch(want, value)
		}
	}
	return nil
}
