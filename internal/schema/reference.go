package schema

import (
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
)

// escapePointer returns key as a step of a JSON pointer (RFC 6901).
func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

func unescapePointer(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// resolve returns what the reference ref, "#" or "#/" and a JSON pointer (RFC 6901), refers to in doc.
func resolve(doc value, ref string) (value, error) {
	pointer, err := pointerOf(ref)
	if err != nil {
		return value{}, err
	}
	at := doc
	for key := range pointerKeys(pointer) {
		var found bool
		if i, err := strconv.Atoi(key); at.kind == arrayValue && err == nil && 0 <= i && i < len(at.elements) {
			at, found = at.elements[i], true
		} else {
			at, found = at.get(key)
		}
		if !found {
			return value{}, fmt.Errorf("$ref %q refers to nothing", ref)
		}
	}
	return at, nil
}

// pointerOf returns the JSON pointer in a reference within the document.
func pointerOf(ref string) (string, error) {
	fragment, ok := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(fragment)
	if !ok || err != nil || pointer != "" && pointer[0] != '/' {
		return "", fmt.Errorf("$ref %q is not of the form #/$defs/name", ref)
	}
	return pointer, nil
}

// pointerKeys yields the unescaped steps of a JSON pointer.
func pointerKeys(pointer string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if pointer == "" {
			return
		}
		for step := range strings.SplitSeq(pointer[1:], "/") {
			if !yield(unescapePointer(step)) {
				return
			}
		}
	}
}

// checkReferences refuses a document whose references leave it, or lead back to themselves without entering a part of the
// value: a validator would never end. It also bounds the work of validation where references multiply.
func checkReferences(doc value) error {
	c := referenceChecker{doc: doc}
	return c.walk(doc, "")
}

type referenceChecker struct {
	doc   value
	steps int
}

// walk checks the schema v at a place, and all below.
func (c *referenceChecker) walk(v value, at string) error {
	for _, m := range v.members {
		if redirectsReferences(m.key) || m.key == "$id" && at != "" {
			return fmt.Errorf("%s: %s is not supported; refer by #/$defs/name", place(at), m.key)
		}
	}
	if err := c.expand(v, 0); err != nil {
		return fmt.Errorf("%s: %w", place(at), err)
	}
	_, err := mapSchemas(v, func(step string, sub value) (value, error) {
		return sub, c.walk(sub, at+step)
	})
	return err
}

// place names a JSON pointer in an error.
func place(at string) string {
	if at == "" {
		return "the root"
	}
	return at
}

// expand visits all schemas that apply to the same value as v.
func (c *referenceChecker) expand(v value, depth int) error {
	c.steps++
	switch {
	case depth > maxSchemaDepth:
		return errors.New("a reference leads back to itself")
	case c.steps > maxSchemaNodes:
		return fmt.Errorf("references expand to more than %d schemas", maxSchemaNodes)
	}
	if ref, ok := v.get("$ref"); ok {
		text, ok := ref.text()
		if !ok {
			return errors.New("$ref is not a string")
		}
		target, err := resolve(c.doc, text)
		if err != nil {
			return err
		}
		if err := c.expand(target, depth+1); err != nil {
			return err
		}
	}
	for _, m := range v.members {
		for _, sub := range appliedInPlace(m) {
			if err := c.expand(sub, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// appliedInPlace returns the schemas in the keyword m that apply to the same value as the schema that has m.
func appliedInPlace(m member) []value {
	switch m.key {
	case "allOf", "anyOf", "oneOf":
		return m.value.elements
	case "not", "if", "then", "else":
		return []value{m.value}
	case "dependentSchemas", "dependencies":
		var subs []value
		for _, d := range m.value.members {
			subs = append(subs, d.value)
		}
		return subs
	}
	return nil
}
