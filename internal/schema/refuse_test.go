package schema

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type loop *loop

type chain *loop

type ownJSON struct{ A int }

func (*ownJSON) UnmarshalJSON([]byte) error { return nil }

type writtenText struct{ A int }

func (writtenText) MarshalText() ([]byte, error) { return nil, nil }

type readText struct{ A int }

func (*readText) UnmarshalText([]byte) error { return nil }

type (
	provideNothing   struct{ A int }
	provideAny       struct{ A int }
	provideReference struct{ A int }
	providePanic     struct{ A int }
)

func (provideNothing) JSONSchema() json.RawMessage   { return nil }
func (provideAny) JSONSchema() json.RawMessage       { return json.RawMessage(`{}`) }
func (provideReference) JSONSchema() json.RawMessage { return json.RawMessage(`{"$ref":"#"}`) }
func (p *providePanic) JSONSchema() json.RawMessage  { panic("oops") }

type hidden struct{ A string }

type (
	left  struct{ X string }
	right struct{ X string }
)

// wide doubles with each level.
type (
	wide0  struct{ X, Y string }
	wide4  struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P wide0 }
	wide8  struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P wide4 }
	wide12 struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P wide8 }
	wide16 struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P wide12 }
)

type inner struct {
	Sub self `minItems:"1"`
}

type self []inner

func TestRefusedTypes(t *testing.T) {
	tests := []struct {
		goes reflect.Type
		want string // after "pawl: no strict schema for TYPE: "
	}{
		{reflect.TypeFor[any](), `interface {} can be any value; use a struct with a field for each case`},
		{reflect.TypeFor[map[string]int](), `map[string]int is a map, and a strict schema names all its properties; use a list of structs with a key and a value`},
		{reflect.TypeFor[chan int](), "chan int has no JSON form; leave the field out with the tag `json:\"-\"`"},
		{reflect.TypeFor[func()](), "func() has no JSON form; leave the field out with the tag `json:\"-\"`"},
		{reflect.TypeFor[complex128](), "complex128 has no JSON form; leave the field out with the tag `json:\"-\"`"},
		{reflect.TypeFor[json.RawMessage](), `json.RawMessage can be any JSON; use a struct, or a string that holds the JSON`},
		{reflect.TypeFor[loop](), `schema.loop points to pointers without end`},
		{reflect.TypeFor[chain](), `schema.loop points to pointers without end`},
		{reflect.TypeFor[struct{ a int }](), `struct { a int } has fields, but none that JSON can hold; export them, or use struct{} to say that there are none`},
		{reflect.TypeFor[struct {
			A int `json:"-"`
		}](), "struct { A int \"json:\\\"-\\\"\" } has fields, but none that JSON can hold; export them, or use struct{} to say that there are none"},
		{reflect.TypeFor[struct {
			Customer struct {
				Items [][]*struct{ Extra map[string]string }
			}
		}](), `Customer.Items[][].Extra: map[string]string is a map, and a strict schema names all its properties; use a list of structs with a key and a value`},
		{reflect.TypeFor[struct{ E error }](), `E: error can be any value; use a struct with a field for each case`},
		{reflect.TypeFor[struct{ O ownJSON }](), `O: schema.ownJSON reads or writes its own JSON; give it a JSONSchema method that describes it`},
		{reflect.TypeFor[struct {
			time.Time
			X int
		}](), "struct { time.Time; X int } reads or writes its own JSON; give it a JSONSchema method that describes it"},
		{reflect.TypeFor[struct{ W writtenText }](), `W: schema.writtenText has MarshalText but cannot be read; give it UnmarshalText`},
		{reflect.TypeFor[struct{ R readText }](), `R: schema.readText has UnmarshalText but cannot be written; give it MarshalText`},
		{reflect.TypeFor[struct{ P provideNothing }](), `P: the JSONSchema method of schema.provideNothing: it is not a JSON object`},
		{reflect.TypeFor[struct{ P *provideAny }](), `P: the JSONSchema method of schema.provideAny: the root: it accepts any value; give it a type`},
		{reflect.TypeFor[struct{ P provideReference }](), `P: the JSONSchema method of schema.provideReference: it has references or definitions; write them out`},
		{reflect.TypeFor[struct{ P providePanic }](), `P: the JSONSchema method of schema.providePanic: it panicked: oops`},
		{reflect.TypeFor[struct{ *hidden }](), `hidden: encoding/json cannot set an embedded pointer to an unexported struct; embed the struct`},
		{reflect.TypeFor[struct {
			left
			right
		}](), `the fields left.X and right.X are both named "X"; rename one`},
		{reflect.TypeFor[struct {
			N int `json:"n,string"`
		}](), `N: the json option "string" is not supported; remove it, or make the field a string`},
		{reflect.TypeFor[struct {
			N int `jsonschema:""`
		}](), `N: the jsonschema tag is empty; it holds the description`},
		{reflect.TypeFor[struct {
			N int `jsonschema:"required,minimum=1"`
		}](), "N: the jsonschema tag \"required,minimum=1\" starts like an option; it holds the description, and options are tags of their own, as in `minimum:\"1\"`"},
		{reflect.TypeFor[struct {
			S string `maxLength:"5"`
		}](), `S: the tag maxLength is not supported; strict schemas have no such keyword, but a pattern can often say it`},
		{reflect.TypeFor[struct {
			S string `minimum:"5"`
		}](), `S: the tag minimum does not apply to a string`},
		{reflect.TypeFor[struct {
			S string `pattern:"("`
		}](), "S: the tag pattern:\"(\" is not a regular expression: error parsing regexp: missing closing ): `(`"},
		{reflect.TypeFor[struct {
			S string `format:"uri"`
		}](), `S: the tag format:"uri" is not one of date-time, time, date, duration, email, hostname, ipv4, ipv6, uuid`},
		{reflect.TypeFor[struct {
			T time.Time `format:"date"`
		}](), `T: the tag format does not apply to a date-time`},
		{reflect.TypeFor[struct {
			S string `enum:"a, b"`
		}](), `S: the tag enum:"a, b" is not a list of different values, separated by commas alone`},
		{reflect.TypeFor[struct {
			S string `enum:"a,b,a"`
		}](), `S: the tag enum:"a,b,a" is not a list of different values, separated by commas alone`},
		{reflect.TypeFor[struct {
			S string `enum:""`
		}](), `S: the tag enum:"" is not a list of different values, separated by commas alone`},
		{reflect.TypeFor[struct {
			N int8 `enum:"1,200"`
		}](), `N: the tag enum:"1,200" is not an integer from -128 to 127`},
		{reflect.TypeFor[struct {
			N int `minimum:"1.5"`
		}](), `N: the tag minimum:"1.5" is not an integer of 64 bits`},
		{reflect.TypeFor[struct {
			N int `minimum:"5" maximum:"4"`
		}](), `N: the tag maximum:"4" is not an integer of at least 5`},
		{reflect.TypeFor[struct {
			N int `enum:"1,2" minimum:"1"`
		}](), `N: the tag minimum does not apply to an integer with an enum`},
		{reflect.TypeFor[struct {
			N int `exclusiveMinimum:"1"`
		}](), `N: the tag exclusiveMinimum does not apply to an integer`},
		{reflect.TypeFor[struct {
			F float64 `maximum:"Inf"`
		}](), `F: the tag maximum:"Inf" is not a number`},
		{reflect.TypeFor[struct {
			F float64 `enum:"1.5"`
		}](), `F: the tag enum does not apply to a number`},
		{reflect.TypeFor[struct {
			B bool `enum:"true"`
		}](), `B: the tag enum does not apply to a boolean`},
		{reflect.TypeFor[struct {
			B []byte `pattern:"x"`
		}](), `B: the tag pattern does not apply to base64 bytes`},
		{reflect.TypeFor[struct {
			S hidden `pattern:"x"`
		}](), `S: the tag pattern does not apply to a struct`},
		{reflect.TypeFor[struct {
			M money `pattern:"x"`
		}](), `M: the tag pattern does not apply to a type that describes itself`},
		{reflect.TypeFor[struct {
			L []int `minItems:"3" maxItems:"2"`
		}](), `L: the tag maxItems:"2" is not at least minItems, 3`},
		{reflect.TypeFor[struct {
			L []int `minItems:"-1"`
		}](), `L: the tag minItems:"-1" is not a length`},
		{reflect.TypeFor[struct {
			L [2]int `minItems:"1"`
		}](), `L: the tag minItems does not apply to an array, whose length is fixed`},
		{reflect.TypeFor[self](), `[].Sub: the tag minItems does not apply to a list that contains itself`},
		{reflect.TypeFor[wide16](), `it expands to more than 100000 schemas`},
	}
	for _, tt := range tests {
		t.Run(tt.goes.String(), func(t *testing.T) {
			s, err := ForOutputType(tt.goes)
			if err == nil {
				t.Fatalf("accepted: %s", s.JSON())
			}
			if want := "pawl: no strict schema for " + tt.goes.String() + ": " + tt.want; err.Error() != want {
				t.Errorf("error\n%q, want\n%q", err, want)
			}
		})
	}
}

func TestNestedTooDeeply(t *testing.T) {
	goes := reflect.TypeFor[int]()
	for range 99 {
		goes = reflect.SliceOf(goes)
	}
	if _, err := ForOutputType(goes); err == nil || err.Error() != "pawl: no strict schema for "+goes.String()+": it nests more than 100 levels" {
		t.Errorf("error %v", err)
	}
	if _, err := ForOutputType(goes.Elem()); err != nil {
		t.Error(err)
	}
}

func TestForWantsAnObject(t *testing.T) {
	_, err := For[[]string]()
	want := "pawl: no object schema for []string: it is not a JSON object; use a struct with a field for it"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := ForType(nil); err == nil || err.Error() != "pawl: no strict schema for a nil type" {
		t.Errorf("error %v", err)
	}
}
