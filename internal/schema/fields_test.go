package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type (
	base struct {
		A string
		B string `json:"b"`
		C string
	}
	other struct {
		A string `json:"c"`
		B string `json:"B"`
	}
	Deep struct {
		base
		D string `json:"A"`
	}
	Ring struct {
		*Ring
		X string
	}
	Text string
)

// structOf returns a struct with a string field for each tag.
func structOf(tags ...string) any {
	var fields []reflect.StructField
	for i, tag := range tags {
		fields = append(fields, reflect.StructField{Name: string(rune('P' + i)), Type: reflect.TypeFor[string](),
			Tag: reflect.StructTag(`json:"` + tag + `"`)})
	}
	return reflect.New(reflect.StructOf(fields)).Elem().Interface()
}

func TestFieldsAreThoseOfEncodingJSON(t *testing.T) {
	for _, v := range []any{
		base{},
		Deep{},
		struct {
			base
			other
		}{},
		struct {
			Deep
			A     int
			other `json:"named"`
		}{},
		struct {
			*Deep
			Text
		}{Deep: &Deep{}},
		struct {
			Text `json:",omitzero"`
			Ring
		}{Text: "x"},
		struct{ base base }{},
		structOf("-,", "x y", "ü.$%-/", "a'b", `a\\b`, ",omitted", "-", "P"),
	} {
		fields, err := jsonFields(reflect.TypeOf(v))
		if err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		got := []string{}
		for _, f := range fields {
			got = append(got, f.name)
		}
		if diff := cmp.Diff(keysOf(t, v), got); diff != "" {
			t.Errorf("%T: %s", v, diff)
		}
	}
}

// keysOf returns the keys that encoding/json writes for v.
func keysOf(t *testing.T, v any) []string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	keys := []string{}
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
	}
	return keys
}
