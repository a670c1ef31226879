package openai

import (
	"reflect"
	"strings"
	"testing"
)

// What a type of ours is made of is compiled again in every package that uses it. The official client has thousands of types
// behind it, so it must not be part of one.
func TestTypesDoNotHoldTheLibrarysClient(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		if strings.HasPrefix(typ.PkgPath(), "github.com/openai/openai-go/v3") && strings.HasSuffix(typ.Name(), "Service") {
			t.Errorf("%s is part of a type of this package", typ)
			return
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map, reflect.Chan:
			visit(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				visit(typ.Field(i).Type)
			}
		}
	}
	visit(reflect.TypeFor[responses]())
	if !seen[reflect.TypeFor[Client]()] {
		t.Error("the client was not looked at")
	}
}
