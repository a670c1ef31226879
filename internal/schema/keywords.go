package schema

import (
	"fmt"
	"slices"
)

// holdsSchema reports whether the value of keyword may be a schema
// (https://json-schema.org/draft/2020-12/json-schema-core#section-10).
func holdsSchema(keyword string) bool {
	switch keyword {
	case "items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains",
		"propertyNames", "contentSchema", "not", "if", "then", "else":
		return true
	}
	return false
}

// holdsList reports whether the value of keyword may be a list of schemas.
func holdsList(keyword string) bool {
	switch keyword {
	case "items", "prefixItems", "allOf", "anyOf", "oneOf":
		return true
	}
	return false
}

// holdsMap reports whether the value of keyword is an object of schemas.
func holdsMap(keyword string) bool {
	switch keyword {
	case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
		return true
	}
	return false
}

// isAnnotation reports whether keyword accepts every value.
func isAnnotation(keyword string) bool {
	switch keyword {
	case "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment":
		return true
	}
	return false
}

// lacksStrictForm reports whether keyword has no meaning in the strict subset, or would lose it when objects are closed
// (https://platform.openai.com/docs/guides/structured-outputs#some-type-specific-keywords-are-not-yet-supported).
func lacksStrictForm(keyword string) bool {
	switch keyword {
	case "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
		"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties",
		"prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems":
		return true
	}
	return false
}

// redirectsReferences reports whether keyword makes references mean something else than a place in the document.
func redirectsReferences(keyword string) bool {
	switch keyword {
	case "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef":
		return true
	}
	return false
}

// mapSchemas returns the schema v with each schema right below it replaced by what fn returns for it and its place in v, a JSON
// pointer. A value that ought to be a schema and is not an object is passed on all the same.
func mapSchemas(v value, fn func(at string, sub value) (value, error)) (value, error) {
	v.members = slices.Clone(v.members)
	for i, m := range v.members {
		at := "/" + escapePointer(m.key)
		var err error
		switch {
		case m.value.kind == arrayValue && holdsList(m.key):
			v.members[i].value.elements = slices.Clone(m.value.elements)
			for j, e := range m.value.elements {
				if v.members[i].value.elements[j], err = fn(fmt.Sprint(at, "/", j), e); err != nil {
					return v, err
				}
			}
		case m.value.kind == objectValue && holdsMap(m.key):
			v.members[i].value.members = slices.Clone(m.value.members)
			for j, e := range m.value.members {
				if e.value.kind == arrayValue {
					continue // dependencies may list names
				}
				if v.members[i].value.members[j].value, err = fn(at+"/"+escapePointer(e.key), e.value); err != nil {
					return v, err
				}
			}
		case m.value.kind != arrayValue && holdsSchema(m.key):
			if v.members[i].value, err = fn(at, m.value); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}
