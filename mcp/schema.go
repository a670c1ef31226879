package mcp

import (
	"regexp"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// schemaOf is the schema of a tool's arguments as it is offered: the server's, with a list of
// properties, which some model servers ask for, and without regular expressions that Go does not
// have. Those the server checks itself.
func schemaOf(def *sdk.Tool) any {
	doc := copied(def.InputSchema)
	if root, ok := doc.(map[string]any); ok {
		if _, ok := root["properties"]; !ok && isObject(root["type"]) {
			root["properties"] = map[string]any{}
		}
		schemas(root, dropPatterns)
	}
	return doc
}

// copied is a value of JSON that may be changed: the list belongs to the session.
func copied(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = copied(e)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, e := range v {
			object[name] = copied(e)
		}
		return object
	}
	return v
}

// schemas calls visit with a schema and each in it, from the outside to the inside.
func schemas(v any, visit func(schema map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			schemas(e, visit)
		}
	case map[string]any:
		visit(v)
		for member, e := range v {
			switch member {
			case "const", "default", "enum", "examples": // values
			case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
				named, _ := e.(map[string]any)
				for _, s := range named {
					schemas(s, visit)
				}
			default:
				schemas(e, visit)
			}
		}
	}
}

// dropPatterns takes the regular expressions that Go does not have out of a schema.
func dropPatterns(schema map[string]any) {
	if p, ok := schema["pattern"].(string); ok && !isRegexp(p) {
		delete(schema, "pattern")
	}
	named, _ := schema["patternProperties"].(map[string]any)
	for p := range named {
		if !isRegexp(p) {
			delete(named, p)
		}
	}
}

func isRegexp(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// closed says that a schema, and each in it, says which properties an object has: one that does not
// takes any, and would take none if it were made strict.
func closed(doc any) bool {
	closed := true
	schemas(doc, func(s map[string]any) {
		properties, _ := s["properties"].(map[string]any)
		closed = closed && (!isObject(s["type"]) || len(properties) > 0 || s["additionalProperties"] == false)
	})
	return closed
}

// isObject says that a type is that of objects, or such types are among others.
func isObject(t any) bool {
	types, _ := t.([]any)
	return t == "object" || slices.Contains(types, any("object"))
}
