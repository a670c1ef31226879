package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStrictConversion(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"empty", ` {} `, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`},
		{"object without properties", `{"type":"object"}`, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`},
		{"objects are closed and complete, keywords stay in place",
			`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.org/x","required":["b"],"type":"object",` +
				`"properties":{"b":{"type":"string","title":"B"},"a":{"properties":{"x":{"type":"integer","minimum":1e2}}}},"x-note":1}`,
			`{"required":["b","a"],"type":"object","properties":{"b":{"type":"string","title":"B"},` +
				`"a":{"properties":{"x":{"type":"integer","minimum":1e2}},"type":"object","required":["x"],"additionalProperties":false}},` +
				`"x-note":1,"additionalProperties":false}`},
		{"arrays", `{"type":"object","properties":{"l":{"items":{"type":["object","null"],"properties":{}},"maxItems":3}}}`,
			`{"type":"object","properties":{"l":{"items":{"type":["object","null"],"properties":{},"required":[],"additionalProperties":false},` +
				`"maxItems":3,"type":"array"}},"required":["l"],"additionalProperties":false}`},
		{"oneOf becomes anyOf", `{"type":"object","properties":{"u":{"oneOf":[{"type":"string"},{"type":"object"}],"description":"d"}}}`,
			`{"type":"object","properties":{"u":{"description":"d","anyOf":[{"type":"string"},` +
				`{"type":"object","properties":{},"required":[],"additionalProperties":false}]}},"required":["u"],"additionalProperties":false}`},
		{"allOf of one is merged", `{"type":"object","properties":{"u":{"allOf":[{"type":"string","title":"inner","description":"inner"}],"description":"outer"}}}`,
			`{"type":"object","properties":{"u":{"type":"string","title":"inner","description":"outer"}},"required":["u"],"additionalProperties":false}`},
		{"null defaults go, others stay", `{"type":"object","properties":{"n":{"type":["string","null"],"default":null},"d":{"type":"integer","default":0}}}`,
			`{"type":"object","properties":{"n":{"type":["string","null"]},"d":{"type":"integer","default":0}},"required":["n","d"],"additionalProperties":false}`},
		{"keywords that are names of properties", `{"type":"object","properties":{"not":{"type":"string"},"default":{"type":"null"},"$ref":{"type":"string"}}}`,
			`{"type":"object","properties":{"not":{"type":"string"},"default":{"type":"null"},"$ref":{"type":"string"}},"required":["not","default","$ref"],"additionalProperties":false}`},
		{"choices get a type", `{"type":"object","properties":{"e":{"enum":["a","b"]},"c":{"const":1},"m":{"enum":[1,2.5,null,true,"x",-0.0]}}}`,
			`{"type":"object","properties":{"e":{"enum":["a","b"],"type":"string"},"c":{"const":1,"type":"integer"},` +
				`"m":{"enum":[1,2.5,null,true,"x",-0.0],"type":["integer","number","null","boolean","string"]}},` +
				`"required":["e","c","m"],"additionalProperties":false}`},
		{"references stay", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A~1B"}},"$defs":{"A/B":{"type":"object","properties":{"self":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A~1B"}},"$defs":{"A/B":{"type":"object","properties":{"self":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},` +
				`"required":["self"],"additionalProperties":false}},"required":["a"],"additionalProperties":false}`},
		{"described references are written out, through aliases",
			`{"type":"object","properties":{"a":{"$ref":"#/definitions/alias","description":"outer","default":null}},` +
				`"definitions":{"alias":{"$ref":"#/definitions/real"},"real":{"type":"object","description":"inner","properties":{"x":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","description":"outer","properties":{"x":{"type":"string"}},"required":["x"],"additionalProperties":false}},` +
				`"definitions":{"alias":{"$ref":"#/definitions/real"},"real":{"type":"object","description":"inner","properties":{"x":{"type":"string"}},` +
				`"required":["x"],"additionalProperties":false}},"required":["a"],"additionalProperties":false}`},
		{"a root that is a reference", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"x":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"x":{"type":"string"}},"$defs":{"A":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],` +
				`"additionalProperties":false}},"required":["x"],"additionalProperties":false}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := FromJSON([]byte(tt.raw), true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.JSON()); diff != "" {
				t.Error(diff)
			}
			again, err := FromJSON([]byte(s.JSON()), true)
			if err != nil || again.JSON() != s.JSON() || again.Digest() != s.Digest() {
				t.Errorf("converted again: %v, %v", again, err)
			}
		})
	}
}

// inObject is a strict object with one property, p, of the schema.
func inObject(schema string) string { return `{"type":"object","properties":{"p":` + schema + `}}` }

func TestStrictConversionRefuses(t *testing.T) {
	tests := []struct{ raw, want string }{
		{`{"type":"string"}`, `the root is not of type object alone`},
		{`{"type":["object","null"]}`, `the root is not of type object alone`},
		{`{"type":"object","anyOf":[{"type":"object"}]}`, `the root is not of type object alone`},
		{`{"oneOf":[{"type":"object"}]}`, `the root is not of type object alone`},
		{`{"description":"anything"}`, `the root: it accepts any value; give it a type`},
		{inObject(`{"type":"object","additionalProperties":true}`), `/properties/p: additionalProperties must be false; list the properties, or make it a list of objects with a key and a value`},
		{inObject(`{"type":"object","additionalProperties":{}}`), `/properties/p: additionalProperties must be false; list the properties, or make it a list of objects with a key and a value`},
		{inObject(`{"type":["null","object"],"additionalProperties":{"type":"string"}}`), `/properties/p: additionalProperties must be false; list the properties, or make it a list of objects with a key and a value`},
		{inObject(`{"type":"object","required":["q"]}`), `/properties/p: required names "q", which is not a property`},
		{inObject(`{"type":"object","properties":[]}`), `/properties/p: properties is not an object`},
		{inObject(`{"enum":["a",{"type":"object"}]}`), `/properties/p: the choice {"type":"object"} is not a scalar and has no strict form`},
		{inObject(`{"const":[]}`), `/properties/p: the choice [] is not a scalar and has no strict form`},
		{inObject(`{}`), `/properties/p: it accepts any value; give it a type`},
		{inObject(`true`), `/properties/p: the schema true is not an object; describe the type`},
		{inObject(`{"type":"array"}`), `/properties/p: an array needs items that are one schema`},
		{inObject(`{"type":"array","items":[{"type":"string"}]}`), `/properties/p: an array needs items that are one schema`},
		{inObject(`{"type":"string","format":"uri"}`), `/properties/p: the format "uri" is not one of date-time, time, date, duration, email, hostname, ipv4, ipv6, uuid`},
		{inObject(`{"type":"string","not":{"const":"x"}}`), `/properties/p: the keyword not has no strict form`},
		{inObject(`{"type":"object","patternProperties":{"^x":{"type":"string"}}}`), `/properties/p: the keyword patternProperties has no strict form`},
		{inObject(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`), `/properties/p: the keyword uniqueItems has no strict form`},
		{inObject(`{"if":{"type":"string"},"type":"string"}`), `/properties/p: the keyword if has no strict form`},
		{inObject(`{"allOf":[{"type":"string"},{"minLength":1}]}`), `/properties/p: allOf has no strict form; write the schema out`},
		{inObject(`{"allOf":[{"minLength":1}],"type":"string"}`), `/properties/p: allOf beside other constraints has no strict form; write the schema out`},
		{inObject(`{"allOf":[false]}`), `/properties/p: allOf holds false, which is not an object`},
		{inObject(`{"oneOf":[{"type":"string"}],"anyOf":[{"type":"string"}]}`), `/properties/p: oneOf beside anyOf has no strict form`},
		{inObject(`{"$ref":"#/$defs/x"}`), ``},
		{inObject(`{"$ref":"#","type":"object"}`), `/properties/p: $ref beside other constraints has no strict form; write the schema out`},
		{inObject(`{"$ref":"#","description":"again"}`), `it nests more than 100 levels, or refers to itself beside a description`},
		{inObject(`{"$ref":1}`), `/properties/p: $ref is not a string`},
		{inObject(`{"$ref":"#/properties/q","title":"Q"}`), `/properties/p: $ref "#/properties/q" refers to nothing`},
		{inObject(`{"$ref":"other.json","title":"O"}`), `/properties/p: $ref "other.json" is not of the form #/$defs/name`},
		{`{"type":"object","properties":{"p":{"$ref":"#/x-types/T"}},"x-types":{"T":{"type":"object"}}}`, `$ref "#/x-types/T" does not refer to a schema; move that to $defs`},
		{`{"type":"object","properties":{"p":{"$ref":"#/properties/q/oneOf/0"},"q":{"oneOf":[{"type":"string"}]}}}`, `$ref "#/properties/q/oneOf/0" does not refer to a schema; move that to $defs`},
	}
	for _, tt := range tests {
		s, err := FromJSON([]byte(tt.raw), true)
		switch {
		case err == nil:
			t.Errorf("%s: accepted: %s", tt.raw, s.JSON())
		case !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: error\n%v, want\n%s", tt.raw, err, tt.want)
		}
	}
}

func TestDocumentsRefused(t *testing.T) {
	doubled := `{"type":"object","properties":{"p":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 40 {
		doubled += fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubled += `"d40":{"type":"string"}}}`
	described := strings.ReplaceAll(doubled, `"},{`, `","title":"T"},{`)
	tests := []struct{ name, raw, want string }{
		{"nothing", ``, `pawl: bad JSON Schema: it is not a JSON object`},
		{"null", `null`, `pawl: bad JSON Schema: it is not a JSON object`},
		{"boolean", `true`, `pawl: bad JSON Schema: it is not a JSON object`},
		{"not JSON", `{"type":"object"`, `pawl: bad JSON Schema: invalid JSON at offset 16: want ',' or '}'`},
		{"duplicate key", `{"type":"object","type":"object"}`, `pawl: bad JSON Schema: duplicate key "type"`},
		{"too deep", strings.Repeat(`{"not":`, 101) + `{}` + strings.Repeat(`}`, 101), `pawl: bad JSON Schema: invalid JSON at offset 700: nested too deeply`},
		{"remote reference", `{"$ref":"https://example.org/schema"}`, `pawl: bad JSON Schema: the root: $ref "https://example.org/schema" is not of the form #/$defs/name`},
		{"dangling reference", inObject(`{"$ref":"#/$defs/x"}`), `pawl: bad JSON Schema: /properties/p: $ref "#/$defs/x" refers to nothing`},
		{"nested id", inObject(`{"$id":"x","type":"string"}`), `pawl: bad JSON Schema: /properties/p: $id is not supported; refer by #/$defs/name`},
		{"anchor", inObject(`{"$anchor":"x","type":"string"}`), `pawl: bad JSON Schema: /properties/p: $anchor is not supported; refer by #/$defs/name`},
		{"reference to itself", `{"type":"object","properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`,
			`pawl: bad JSON Schema: /properties/p: a reference leads back to itself`},
		{"references that multiply", doubled, `pawl: bad JSON Schema: /properties/p: references expand to more than 100000 schemas`},
		{"described references that multiply", described, ` expand`},
		{"definition in a list", `{"type":"object","anyOf":[{"type":"object"},{"$ref":"#/anyOf/0"},{"$ref":"#/anyOf/2"}]}`,
			`pawl: bad JSON Schema: the root: a reference leads back to itself`},
		{"large integer", inObject(`{"type":"integer","enum":[9007199254740993]}`), `pawl: bad JSON Schema: properties: p: enum: the integer 9007199254740993 is too large to be compared exactly`},
		{"bad pattern", inObject(`{"type":"string","pattern":"(?<=a)b"}`), `pattern: error parsing regexp`},
		{"bad type", inObject(`{"type":1}`), `invalid value for "type"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				s, err := FromJSON([]byte(tt.raw), strict)
				if err == nil {
					t.Fatalf("strict %v: accepted: %s", strict, s.JSON())
				}
				if !strict && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error\n%v, want\n%s", err, tt.want)
				}
			}
		})
	}
}

func TestFromJSONAsItIs(t *testing.T) {
	raw := "\n{ \"type\":\"object\", \"properties\": {\"n\": {\"type\":\"integer\"}}, \"patternProperties\":{\"^x-\":{\"type\":\"string\"}} }\n"
	s, err := FromJSON([]byte(raw), false)
	if err != nil {
		t.Fatal(err)
	}
	if s.JSON() != strings.TrimSpace(raw) || s.Strict() || s.Wrapped() {
		t.Errorf("JSON, Strict, Wrapped = %q, %v, %v", s.JSON(), s.Strict(), s.Wrapped())
	}
	for text, want := range map[string]string{
		`{}`:                                   ``,
		`{"n":1,"other":[]}`:                   ``,
		`{"n":1.0}`:                            ``,
		`{"n":18446744073709551616,"x-a":"b"}`: ``,
		`{"n":"1"}`:                            `pawl: validating /properties/n: type: 1 has type "string", want "integer"`,
		`{"x-a":1}`:                            `pawl: validating /patternProperties/^x-: type: 1 has type "integer", want "string"`,
		`{"o":{"a":1,"a":2}}`:                  `pawl: field "a" is given twice`,
		`{"o":[1e999]}`:                        `pawl: the number 1e999 is out of range`,
		`[]`:                                   `pawl: type: [] has type "array", want "object"`,
		`{`:                                    `pawl: invalid JSON at offset 1: want a string`,
	} {
		err := s.Validate(text)
		if got := fmt.Sprint(err); err != nil && got != want || err == nil && want != "" {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	var got any
	if err := s.Decode(`{"n":9007199254740993}`, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"n": json.Number("9007199254740993")}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOldDraftsAreRead(t *testing.T) {
	for _, draft := range []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-06/schema#"} {
		s, err := FromJSON([]byte(`{"$schema":"`+draft+`","type":"object","properties":{"a":{"$ref":"#/definitions/s"}},"definitions":{"s":{"type":"string"}}}`), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(`{"a":"x"}`); err != nil {
			t.Errorf("%s: %v", draft, err)
		}
		if err := s.Validate(`{"a":1}`); err == nil {
			t.Errorf("%s: accepted", draft)
		}
	}
}

func TestIsEmpty(t *testing.T) {
	for raw, want := range map[string]bool{
		`{}`: true, `{"type":"object"}`: true, `{"type":"object","properties":{}}`: true,
		`{"type":"object","properties":{"a":{"type":"string"}}}`: false,
		`{"type":"object","required":["a"]}`:                     false,
		`{"type":"object","minProperties":1}`:                    false,
	} {
		s, err := FromJSON([]byte(raw), false)
		if err != nil {
			t.Fatal(err)
		}
		if s.IsEmpty() != want {
			t.Errorf("%s: IsEmpty() = %v", raw, !want)
		}
	}
	none, err := For[struct{}]()
	if err != nil || !none.IsEmpty() {
		t.Errorf("struct{}: %v, %v", none, err)
	}
	some, err := For[named]()
	if err != nil || some.IsEmpty() {
		t.Errorf("named: %v, %v", some, err)
	}
}
