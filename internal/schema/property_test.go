package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

// drawType draws a type that has a strict schema.
func drawType(t *rapid.T, depth int) reflect.Type {
	scalars := []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int64](),
		reflect.TypeFor[uint16](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
		reflect.TypeFor[unit](), reflect.TypeFor[[]byte](), reflect.TypeFor[time.Time](), reflect.TypeFor[json.Number](),
		reflect.TypeFor[tree](), reflect.TypeFor[nested](), reflect.TypeFor[money](),
	}
	if depth == 0 {
		return rapid.SampledFrom(scalars).Draw(t, "scalar")
	}
	switch rapid.SampledFrom([]string{"scalar", "pointer", "slice", "array", "struct", "struct"}).Draw(t, "kind") {
	case "pointer":
		return reflect.PointerTo(drawType(t, depth-1))
	case "slice":
		return reflect.SliceOf(drawType(t, depth-1))
	case "array":
		return reflect.ArrayOf(rapid.IntRange(0, 3).Draw(t, "length"), drawType(t, depth-1))
	case "struct":
		return drawStruct(t, depth)
	}
	return drawType(t, 0)
}

func drawStruct(t *rapid.T, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range rapid.IntRange(0, 6).Draw(t, "fields") {
		name := string(rune('A' + i))
		tag := rapid.SampledFrom([]string{``, `json:"` + strings.ToLower(name) + `"`, `json:",omitempty"`, `json:",omitzero"`,
			`json:"` + name + name + `,omitempty" jsonschema:"a field"`}).Draw(t, "tag")
		fields = append(fields, reflect.StructField{Name: name, Type: drawType(t, depth-1), Tag: reflect.StructTag(tag)})
	}
	return reflect.StructOf(fields)
}

// fill sets v, which can be set, to something drawn.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Unix(rapid.Int64Range(0, 1<<35).Draw(t, "seconds"), 0).UTC()
		return
	case *json.Number:
		*x = json.Number(rapid.SampledFrom([]string{"0", "-1.50", "1e999", "123456789012345678901234567890"}).Draw(t, "number"))
		return
	case *money:
		*x = money(rapid.Int64Range(0, math.MaxInt64).Draw(t, "money"))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int8, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint8, reflect.Uint16, reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32).Draw(t, "float32")))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "float64"))
	case reflect.Pointer:
		if depth > 0 && rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if rapid.Bool().Draw(t, "present") {
			n := rapid.IntRange(0, max(0, min(depth, 3))).Draw(t, "length")
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			fillElements(t, v, depth-1)
		}
	case reflect.Array:
		fillElements(t, v, depth-1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), depth-1)
		}
	}
}

func fillElements(t *rapid.T, v reflect.Value, depth int) {
	for i := range v.Len() {
		fill(t, v.Index(i), depth)
	}
}

// wrap returns text as the schema wants it.
func wrap(s *Schema, text []byte) string {
	if s.Wrapped() {
		return `{"response":` + string(text) + `}`
	}
	return string(text)
}

// Whatever encoding/json writes for a value of a supported type fits its schema, and is read as encoding/json reads it.
func TestMarshalledValuesFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		goes := drawType(t, 3)
		s, err := ForOutputType(goes)
		if err != nil {
			t.Fatalf("%s: %v", goes, err)
		}
		v := reflect.New(goes)
		for root := v.Elem(); root.Kind() == reflect.Pointer; root = root.Elem() {
			root.Set(reflect.New(root.Type().Elem())) // the whole text is never null
		}
		fill(t, deepest(v), 5)
		text, err := json.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		got, want := reflect.New(goes), reflect.New(goes)
		if err := s.Decode(wrap(s, text), got.Interface()); err != nil {
			t.Fatalf("%s does not fit %s: %v", text, s.JSON(), err)
		}
		if err := json.Unmarshal(text, want.Interface()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Fatalf("%s was read as %+v", text, got)
		}
	})
}

func deepest(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// The derived schema and the reader agree: on damaged text they refuse together, but for what the package says is read or
// refused beyond the schema.
func TestReaderAgreesWithValidator(t *testing.T) {
	s, err := For[order]()
	if err != nil {
		t.Fatal(err)
	}
	validator := validatorOf(t, s)
	var whole map[string]json.RawMessage
	if err := json.Unmarshal([]byte(wholeOrder), &whole); err != nil {
		t.Fatal(err)
	}
	whole["count"] = json.RawMessage("5") // the validator holds the bound, which is odd, as a float
	values := []any{nil, true, "", "S", "x", "12.50", 0, 1, -1, 300, 0.5, 1e300, []any{}, []any{"a"}, []any{1, 2}, []any{nil},
		[]any{true, false}, map[string]any{}, map[string]any{"street": "s", "zip": "12345"}, map[string]any{"street": "s", "zip": 1}}
	accepted := 0
	for name := range whole {
		for _, v := range values {
			damaged := map[string]any{}
			for k, old := range whole {
				damaged[k] = old
			}
			damaged[name] = v
			text, err := json.Marshal(damaged)
			if err != nil {
				t.Fatal(err)
			}
			instance, err := plainValue(string(text))
			if err != nil {
				t.Fatal(err)
			}
			oracle, ours := validator.Validate(instance), s.Validate(string(text))
			if ours == nil {
				accepted++
			}
			if (oracle == nil) != (ours == nil) && !agreedDifference(name, v) {
				t.Errorf("%s = %v: validator says %v, Validate says %v", name, v, oracle, ours)
			}
		}
	}
	if accepted < 40 {
		t.Errorf("only %d texts were accepted", accepted)
	}
}

// agreedDifference reports whether the reader may differ from a validator of the schema.
func agreedDifference(name string, v any) bool {
	switch fmt.Sprint(name, "=", v) {
	case "tags=<nil>", "raw=<nil>": // null stands for an empty list
		return true
	case "ip=S", "ip=x", "ip=12.50": // UnmarshalText decides
		return true
	case "at=", "at=S", "at=x", "at=12.50", "mail=", "mail=S", "mail=x", "mail=12.50": // formats are annotations to it
		return true
	case "single=1e+300", "count=1e+300", "huge=1e+300": // beyond the Go type
		return true
	}
	return false
}

func validatorOf(t *testing.T, s *Schema) *jsonschema.Resolved {
	t.Helper()
	var parsed jsonschema.Schema
	if err := json.Unmarshal([]byte(s.JSON()), &parsed); err != nil {
		t.Fatal(err)
	}
	validator, err := parsed.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return validator
}

func FuzzDecode(f *testing.F) {
	f.Add(wholeOrder)
	f.Add(`{"label":"a","children":[{"label":"b","children":[],"parent":null}],"parent":null}`)
	f.Add(`{"oldest":null,"newest":{},"spare":{"label":"\ud800","children":null}}`)
	f.Add(`{"response":[[],[[]],null]}`)
	f.Add(`{"Kind":"k","Payload":1e400}`)
	fuzzed := []reflect.Type{reflect.TypeFor[order](), reflect.TypeFor[tree](), reflect.TypeFor[forest](), reflect.TypeFor[nested](),
		reflect.TypeFor[event](), reflect.TypeFor[*named]()}
	schemas := make([]*Schema, len(fuzzed))
	for i, goes := range fuzzed {
		var err error
		if schemas[i], err = ForOutputType(goes); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, s := range schemas {
			first := reflect.New(fuzzed[i])
			valid := s.Validate(text)
			if err := s.Decode(text, first.Interface()); (err == nil) != (valid == nil) {
				t.Fatalf("Validate says %v, Decode says %v", valid, err)
			}
			if valid != nil {
				continue
			}
			written, err := json.Marshal(first.Interface())
			if err != nil {
				t.Fatal(err)
			}
			second := reflect.New(fuzzed[i])
			if err := s.Decode(wrap(s, written), second.Interface()); err != nil {
				t.Fatalf("%s was accepted, %s is not: %v", text, written, err)
			}
			again, err := json.Marshal(second.Interface())
			if err != nil || !bytes.Equal(written, again) {
				t.Fatalf("%s became %s, %v", written, again, err)
			}
		}
	})
}

func FuzzFromJSON(f *testing.F) {
	for _, raw := range []string{`{}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/b","title":"t"}},"$defs":{"b":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`,
		`{"type":"object","properties":{"a":{"allOf":[{"type":"array","items":{"oneOf":[{"const":1}]}}]}}}`,
		`{"not":{"if":true,"dependencies":{"a":["b"],"c":{"$ref":"#/not"}}}}`} {
		f.Add(raw, `{"a":[1,null,{"a":"b"}]}`)
	}
	f.Fuzz(func(t *testing.T, raw, text string) {
		if s, err := FromJSON([]byte(raw), false); err == nil {
			checkText(t, s, text)
		}
		s, err := FromJSON([]byte(raw), true)
		if err != nil {
			return
		}
		checkText(t, s, text)
		again, err := FromJSON([]byte(s.JSON()), true)
		if err != nil || again.JSON() != s.JSON() {
			t.Fatalf("%s converted again: %v", s.JSON(), err)
		}
	})
}

func checkText(t *testing.T, s *Schema, text string) {
	if err := s.Validate(text); err != nil && strings.Contains(err.Error(), "panicked") {
		t.Fatal(err)
	}
}
