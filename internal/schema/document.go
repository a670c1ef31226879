package schema

import (
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// A value is a JSON value that keeps what Go maps lose: the order of members and the text of numbers.
type value struct {
	kind     valueKind
	scalar   string // the text of a scalar
	members  []member
	elements []value
}

type valueKind uint8

const (
	scalarValue valueKind = iota
	objectValue
	arrayValue
)

type member struct {
	key   string
	value value
}

func literal(text string) value            { return value{scalar: text} }
func quoted(text string) value             { return literal(string(jsonscan.AppendString(nil, text))) }
func object(members ...member) value       { return value{kind: objectValue, members: members} }
func array(elements ...value) value        { return value{kind: arrayValue, elements: elements} }
func stringMember(key, text string) member { return member{key, quoted(text)} }

func quotedAll(texts []string) value {
	v := array()
	for _, text := range texts {
		v.elements = append(v.elements, quoted(text))
	}
	return v
}

// parseValue reads text that [jsonscan.Valid] accepted. It refuses duplicate keys.
func parseValue(text string) (value, error) {
	switch text[0] {
	case '{':
		v := object()
		seen := map[string]bool{}
		err := jsonscan.Object(text, func(key, text string) error {
			if seen[key] {
				return fmt.Errorf("duplicate key %q", key)
			}
			seen[key] = true
			m, err := parseValue(text)
			v.members = append(v.members, member{key, m})
			return err
		})
		return v, err
	case '[':
		v := array()
		err := jsonscan.Array(text, func(text string) error {
			e, err := parseValue(text)
			v.elements = append(v.elements, e)
			return err
		})
		return v, err
	}
	return literal(text), nil
}

func (v value) append(dst []byte) []byte {
	switch v.kind {
	case objectValue:
		dst = append(dst, '{')
		for i, m := range v.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonscan.AppendString(dst, m.key), ':')
			dst = m.value.append(dst)
		}
		return append(dst, '}')
	case arrayValue:
		dst = append(dst, '[')
		for i, e := range v.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.append(dst)
		}
		return append(dst, ']')
	}
	return append(dst, v.scalar...)
}

func (v value) String() string { return string(v.append(nil)) }

func (v value) index(key string) int {
	return slices.IndexFunc(v.members, func(m member) bool { return m.key == key })
}

func (v value) has(key string) bool { return v.index(key) >= 0 }

// get returns the member named key, or the zero value if there is none.
func (v value) get(key string) (value, bool) {
	if i := v.index(key); i >= 0 {
		return v.members[i].value, true
	}
	return value{}, false
}

// with returns v with the member named key set to m, in the place of the old one or at the end. It leaves v as it is.
func (v value) with(key string, m value) value {
	v.members = slices.Clone(v.members)
	if i := v.index(key); i >= 0 {
		v.members[i].value = m
	} else {
		v.members = append(v.members, member{key, m})
	}
	return v
}

// without returns v without the members named keys. It leaves v as it is.
func (v value) without(keys ...string) value {
	v.members = slices.DeleteFunc(slices.Clone(v.members), func(m member) bool { return slices.Contains(keys, m.key) })
	return v
}

// text returns the string that v is, if it is one.
func (v value) text() (string, bool) {
	if v.kind != scalarValue || v.scalar == "" || v.scalar[0] != '"' {
		return "", false
	}
	s, err := jsonscan.String(v.scalar)
	return s, err == nil
}

func (v value) is(scalar string) bool { return v.kind == scalarValue && v.scalar == scalar }
