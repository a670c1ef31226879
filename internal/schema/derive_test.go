package schema

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type unit string

type address struct {
	Street string `json:"street"`
	Zip    string `json:"zip" jsonschema:"five digits" pattern:"^[0-9]{5}$"`
}

// tree refers to itself from the root.
type tree struct {
	Label    string `json:"label"`
	Children []tree `json:"children" jsonschema:"the branches"`
	Parent   *tree  `json:"parent"`
}

// forest holds trees below the root.
type forest struct {
	Oldest tree  `json:"oldest" jsonschema:"planted first"`
	Newest tree  `json:"newest"`
	Spare  *tree `json:"spare" jsonschema:"if any"`
}

type nested []nested

type ping struct {
	Pong *pong `json:"pong"`
}

type pong struct {
	Ping *ping `json:"ping"`
}

type named struct {
	Name string `json:"name"`
}

type audited struct {
	By string `json:"by"`
	At time.Time
}

type Optional struct {
	Extra string `json:"extra"`
}

// money states its own schema.
type money int64

func (money) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"string","pattern":"^[0-9]+\\.[0-9]{2}$","description":"like 12.50"}`)
}

func (m money) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d.%02d", m/100, m%100), nil }

func (m *money) UnmarshalText(text []byte) error {
	cents, err := strconv.ParseInt(strings.Replace(string(text), ".", "", 1), 10, 64)
	*m = money(cents)
	return err
}

// event is an object that states its own schema.
type event struct {
	Kind    string
	Payload any
}

func (*event) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"Kind":{"type":"string"},"Payload":{"type":["number","null"]}}}`)
}

func TestDerivedSchemas(t *testing.T) {
	tests := []struct {
		name string
		goes reflect.Type
		want string
	}{
		{"no arguments", reflect.TypeFor[struct{}](),
			`{"type":"object","properties":{},"required":[],"additionalProperties":false}`},
		{"scalars", reflect.TypeFor[struct {
			S string
			B bool
			F float64
			I int
			U uint
			N json.Number
		}](), `{"type":"object","properties":{"S":{"type":"string"},"B":{"type":"boolean"},"F":{"type":"number"},` +
			`"I":{"type":"integer"},"U":{"type":"integer","minimum":0},"N":{"type":"number"}},` +
			`"required":["S","B","F","I","U","N"],"additionalProperties":false}`},
		{"integers carry the bounds of their type", reflect.TypeFor[struct {
			A int8
			B uint8
			C int32
			D uint16
			E int64
			F uint64
		}](), `{"type":"object","properties":{"A":{"type":"integer","minimum":-128,"maximum":127},` +
			`"B":{"type":"integer","minimum":0,"maximum":255},` +
			`"C":{"type":"integer","minimum":-2147483648,"maximum":2147483647},` +
			`"D":{"type":"integer","minimum":0,"maximum":65535},"E":{"type":"integer"},` +
			`"F":{"type":"integer","minimum":0}},"required":["A","B","C","D","E","F"],"additionalProperties":false}`},
		{"names and order are those of encoding/json", reflect.TypeFor[struct {
			Z      string `json:"z"`
			A      string `json:"a-b"`
			Plain  string
			Hidden string `json:"-"`
			lower  string
		}](), `{"type":"object","properties":{"z":{"type":"string"},"a-b":{"type":"string"},"Plain":{"type":"string"}},` +
			`"required":["z","a-b","Plain"],"additionalProperties":false}`},
		{"optional fields are required and nullable", reflect.TypeFor[struct {
			P *string  `json:"p"`
			O int      `json:"o,omitempty"`
			Z bool     `json:"z,omitzero"`
			L []string `json:"l,omitempty"`
			S *address `json:"s"`
			N *int8    `json:"n"`
			D **string `json:"d"`
		}](), `{"type":"object","properties":{"p":{"type":["string","null"]},"o":{"type":["integer","null"]},` +
			`"z":{"type":["boolean","null"]},"l":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]},` +
			`"s":{"anyOf":[{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$",` +
			`"description":"five digits"}},"required":["street","zip"],"additionalProperties":false},{"type":"null"}]},` +
			`"n":{"anyOf":[{"type":"integer","minimum":-128,"maximum":127},{"type":"null"}]},"d":{"type":["string","null"]}},` +
			`"required":["p","o","z","l","s","n","d"],"additionalProperties":false}`},
		{"descriptions", reflect.TypeFor[struct {
			A string  `json:"a" jsonschema:"say \"hello\" <b>"`
			B *string `json:"b" jsonschema:"may be null"`
			C *unit   `json:"c" jsonschema:"size" enum:"S,M"`
		}](), `{"type":"object","properties":{"a":{"type":"string","description":"say \"hello\" <b>"},` +
			`"b":{"type":["string","null"],"description":"may be null"},` +
			`"c":{"anyOf":[{"type":"string","enum":["S","M"]},{"type":"null"}],"description":"size"}},` +
			`"required":["a","b","c"],"additionalProperties":false}`},
		{"constraints", reflect.TypeFor[struct {
			Unit  unit     `json:"unit" enum:"celsius,fahrenheit"`
			Level int      `json:"level" enum:"1,2,-3"`
			Port  uint16   `json:"port" minimum:"1024"`
			Age   int      `json:"age" minimum:"0" maximum:"150"`
			Big   uint64   `json:"big" maximum:"1000"`
			Ratio float64  `json:"ratio" exclusiveMinimum:"0" maximum:"1.50"`
			Mail  string   `json:"mail" format:"email"`
			Tags  []string `json:"tags" jsonschema:"labels" enum:"a,b" minItems:"1" maxItems:"5"`
			Grid  [][]int  `json:"grid" minItems:"1" minimum:"0"`
		}](), `{"type":"object","properties":{"unit":{"type":"string","enum":["celsius","fahrenheit"]},` +
			`"level":{"type":"integer","enum":[1,2,-3]},"port":{"type":"integer","minimum":1024,"maximum":65535},` +
			`"age":{"type":"integer","minimum":0,"maximum":150},` +
			`"big":{"type":"integer","minimum":0,"maximum":1000},` +
			`"ratio":{"type":"number","maximum":1.50,"exclusiveMinimum":0},"mail":{"type":"string","format":"email"},` +
			`"tags":{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":5,"description":"labels"},` +
			`"grid":{"type":"array","items":{"type":"array","items":{"type":"integer","minimum":0}},"minItems":1}},` +
			`"required":["unit","level","port","age","big","ratio","mail","tags","grid"],"additionalProperties":false}`},
		{"standard types", reflect.TypeFor[struct {
			At   time.Time  `json:"at"`
			Till *time.Time `json:"till"`
			IP   netip.Addr `json:"ip"`
			Raw  []byte     `json:"raw"`
			Pair [2]bool    `json:"pair"`
			Key  [2]byte    `json:"key"`
		}](), `{"type":"object","properties":{"at":{"type":"string","format":"date-time"},` +
			`"till":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]},"ip":{"type":"string"},` +
			`"raw":{"type":"string","pattern":"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},` +
			`"pair":{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2},` +
			`"key":{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":2,"maxItems":2}},` +
			`"required":["at","till","ip","raw","pair","key"],"additionalProperties":false}`},
		{"embedded structs are flattened in place", reflect.TypeFor[struct {
			First string `json:"first"`
			named
			audited `json:"audit"`
			*Optional
			unit
			sync.Mutex
			Last *string `json:"last"`
		}](), `{"type":"object","properties":{"first":{"type":"string"},"name":{"type":"string"},` +
			`"audit":{"type":"object","properties":{"by":{"type":"string"},"At":{"type":"string","format":"date-time"}},` +
			`"required":["by","At"],"additionalProperties":false},` +
			`"extra":{"type":["string","null"]},"last":{"type":["string","null"]}},` +
			`"required":["first","name","audit","extra","last"],"additionalProperties":false}`},
		{"the outer field hides the embedded one", reflect.TypeFor[struct {
			named
			Name int `json:"name"`
		}](), `{"type":"object","properties":{"name":{"type":"integer"}},"required":["name"],"additionalProperties":false}`},
		{"lists of pointers hold null", reflect.TypeFor[struct {
			L []*bool `json:"l"`
		}](), `{"type":"object","properties":{"l":{"type":"array","items":{"type":["boolean","null"]}}},` +
			`"required":["l"],"additionalProperties":false}`},
		{"a pointer to a struct is the struct", reflect.TypeFor[*named](),
			`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`},
		{"recursion to the root", reflect.TypeFor[tree](),
			`{"type":"object","properties":{"label":{"type":"string"},` +
				`"children":{"type":"array","items":{"$ref":"#"},"description":"the branches"},` +
				`"parent":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["label","children","parent"],"additionalProperties":false}`},
		{"recursion below the root, written out where it is described", reflect.TypeFor[forest](),
			`{"type":"object","properties":{"oldest":{"type":"object","properties":{"label":{"type":"string"},` +
				`"children":{"type":"array","items":{"$ref":"#/$defs/tree"},"description":"the branches"},` +
				`"parent":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"required":["label","children","parent"],` +
				`"additionalProperties":false,"description":"planted first"},"newest":{"$ref":"#/$defs/tree"},` +
				`"spare":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}],"description":"if any"}},` +
				`"required":["oldest","newest","spare"],"additionalProperties":false,` +
				`"$defs":{"tree":{"type":"object","properties":{"label":{"type":"string"},` +
				`"children":{"type":"array","items":{"$ref":"#/$defs/tree"},"description":"the branches"},` +
				`"parent":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"required":["label","children","parent"],` +
				`"additionalProperties":false}}}`},
		{"recursion over two types", reflect.TypeFor[ping](),
			`{"type":"object","properties":{"pong":{"anyOf":[{"type":"object","properties":{` +
				`"ping":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["ping"],"additionalProperties":false},{"type":"null"}]}},` +
				`"required":["pong"],"additionalProperties":false}`},
		{"provided schemas, made strict", reflect.TypeFor[struct {
			Price money  `json:"price" jsonschema:"gross"`
			Tip   *money `json:"tip"`
			Event event  `json:"event"`
		}](), `{"type":"object","properties":{` +
			`"price":{"type":"string","pattern":"^[0-9]+\\.[0-9]{2}$","description":"gross"},` +
			`"tip":{"anyOf":[{"type":"string","pattern":"^[0-9]+\\.[0-9]{2}$","description":"like 12.50"},{"type":"null"}]},` +
			`"event":{"type":"object","properties":{"Kind":{"type":"string"},"Payload":{"type":["number","null"]}},` +
			`"required":["Kind","Payload"],"additionalProperties":false}},` +
			`"required":["price","tip","event"],"additionalProperties":false}`},
		{"a provided object", reflect.TypeFor[event](),
			`{"type":"object","properties":{"Kind":{"type":"string"},"Payload":{"type":["number","null"]}},` +
				`"required":["Kind","Payload"],"additionalProperties":false}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ForType(tt.goes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.JSON()); diff != "" {
				t.Error(diff)
			}
			if !s.Strict() || s.Wrapped() {
				t.Errorf("Strict, Wrapped = %v, %v", s.Strict(), s.Wrapped())
			}
			if _, err := FromJSON([]byte(s.JSON()), true); err != nil {
				t.Errorf("the converter refuses the derived schema: %v", err)
			}
		})
	}
}

func TestOutputSchemas(t *testing.T) {
	tests := []struct {
		name    string
		goes    reflect.Type
		want    string
		wrapped bool
	}{
		{"an object stays", reflect.TypeFor[named](),
			`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`, false},
		{"a pointer is followed", reflect.TypeFor[*named](),
			`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`, false},
		{"a scalar", reflect.TypeFor[int](),
			`{"type":"object","properties":{"response":{"type":"integer"}},"required":["response"],"additionalProperties":false}`, true},
		{"a list", reflect.TypeFor[[]named](),
			`{"type":"object","properties":{"response":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},` +
				`"required":["name"],"additionalProperties":false}}},"required":["response"],"additionalProperties":false}`, true},
		{"a list that contains itself", reflect.TypeFor[nested](),
			`{"type":"object","properties":{"response":{"$ref":"#/$defs/nested"}},"required":["response"],"additionalProperties":false,` +
				`"$defs":{"nested":{"type":"array","items":{"$ref":"#/$defs/nested"}}}}`, true},
		{"a provided scalar", reflect.TypeFor[money](),
			`{"type":"object","properties":{"response":{"type":"string","pattern":"^[0-9]+\\.[0-9]{2}$","description":"like 12.50"}},` +
				`"required":["response"],"additionalProperties":false}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ForOutputType(tt.goes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.JSON()); diff != "" {
				t.Error(diff)
			}
			if s.Wrapped() != tt.wrapped {
				t.Errorf("Wrapped() = %v", s.Wrapped())
			}
		})
	}
}

type list[T any] struct {
	Value T
	Rest  []list[T]
}

func TestDefinitionNamesAreDistinct(t *testing.T) {
	type tree struct{ Next *tree }
	s, err := For[struct {
		A list[string]
		B list[bool]
		C forest
		D tree
	}]()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Defs map[string]struct{} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(s.JSON()), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{}{"list_string_": {}, "list_bool_": {}, "tree": {}, "tree_2": {}}
	if diff := cmp.Diff(want, doc.Defs); diff != "" {
		t.Error(diff)
	}
}

func TestDigest(t *testing.T) {
	digestOf := func(raw string) string {
		t.Helper()
		s, err := FromJSON([]byte(raw), false)
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest()
	}
	base := digestOf(`{"type":"object","properties":{"a":{"type":["string","null"]},"description":{"type":"string"}},"required":["a","description"]}`)
	if want := "v1:Wt02BaPpFtYHrq5IIXn-763X8Lh-6wJH7ob-jKsShjc"; base != want {
		t.Errorf("Digest() = %q, want %q", base, want)
	}
	same := []string{
		`{"title":"T","required":["description","a"],"type":"object","properties":{"description":{"type":"string","description":"d"},"a":{"type":["null","string"],"examples":["x"]}}}`,
		` {"type" : "object", "$comment":"c", "properties":{"a":{"type":["string","null"],"title":"A"},"descri\u0070tion":{"type":"string"}},"required":["a","description"]}`,
	}
	for _, raw := range same {
		if got := digestOf(raw); got != base {
			t.Errorf("digest changed for %s", raw)
		}
	}
	other := []string{
		`{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a","description"]}`,
		`{"type":"object","properties":{"a":{"type":"string"},"description":{"type":"string"}},"required":["a","description"]}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"description":{"type":"string"}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"description":{"type":"string","const":{"title":"x"}}},"required":["a","description"]}`,
	}
	for _, raw := range other {
		if got := digestOf(raw); got == base {
			t.Errorf("digest did not change for %s", raw)
		}
	}
	for _, raw := range []string{`{"const":"\ud800"}`, `{"dependencies":{"a":["b"],"title":{"title":"x"}}}`} {
		if got := digestOf(raw); got == base || len(got) != len(base) {
			t.Errorf("digest of %s is %q", raw, got)
		}
	}
	data := digestOf(`{"const":{"title":"x"}}`)
	if data == digestOf(`{"const":{}}`) {
		t.Error("a title inside data was taken for an annotation")
	}
}

func TestDigestIgnoresDescriptionTags(t *testing.T) {
	a, err := For[struct {
		X int `json:"x" jsonschema:"one"`
	}]()
	if err != nil {
		t.Fatal(err)
	}
	b, err := For[struct {
		X int `json:"x" jsonschema:"two"`
	}]()
	if err != nil {
		t.Fatal(err)
	}
	if a.Digest() != b.Digest() || a.JSON() == b.JSON() {
		t.Errorf("digests %q and %q of %s and %s", a.Digest(), b.Digest(), a.JSON(), b.JSON())
	}
}
