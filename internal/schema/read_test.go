package schema_test

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/internal/schema"
)

type Inner struct {
	A string `json:"a,omitempty"`
	B *int   `json:"b"`
}

type unexported struct {
	C []string `json:"c"`
}

type kind string

type Everything struct {
	*Inner
	unexported
	Kind    kind        `json:"kind" enum:"x,y"`
	Times   []time.Time `json:"times"`
	At      *time.Time  `json:"at"`
	Addr    netip.Addr  `json:"addr"`
	Bytes   []byte      `json:"bytes"`
	Array   [2]uint8    `json:"array"`
	Deep    **[]*bool   `json:"deep"`
	Small   float32     `json:"small"`
	Number  json.Number `json:"number"`
	List    []Inner     `json:"list"`
	Address uintptr     `json:"address"`
}

// What fits is stored as encoding/json stores it.
func TestDecodeStoresWhatEncodingJSONDoes(t *testing.T) {
	full := `"kind":"x","times":["2026-01-02T03:04:05Z"],"at":"2026-01-02T03:04:05.6+02:00","addr":"10.0.0.1","bytes":"aGk=",
		"array":[1,255],"deep":[true,null,false],"small":1.1,"number":1e5,"list":[{"a":"é\u0041\ud83d\ude00\n","b":3},{"b":null}],"address":7`
	empty := `"kind":"y","times":null,"at":null,"addr":"::1","bytes":null,"array":[0,0],"deep":null,"small":-0,"number":0,"list":[],"address":0`
	for _, text := range []string{
		`{"a":"x","b":1,"c":["p","q"],` + full + `}`,
		` {"c":[],"b":null,` + full + "}\n",
		`{"c":null,` + empty + `,"b":-5}`,
		`{"b":0,"a":null,"c":["\ud800"],` + empty + `}`,
	} {
		s, err := schema.For[Everything]()
		if err != nil {
			t.Fatal(err)
		}
		got := Everything{Kind: "of before"}
		var want Everything
		if err := s.Decode(text, &got); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Everything{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s: nil and empty differ: %#v, want %#v", text, got, want)
		}
	}
}

func TestDecodeWrapped(t *testing.T) {
	s, err := schema.ForOutput[*[]int]()
	if err != nil {
		t.Fatal(err)
	}
	var got *[]int
	if err := s.Decode(`{ "response" : [1, 2] }`, &got); err != nil || !reflect.DeepEqual(got, &[]int{1, 2}) {
		t.Errorf("%v, %v", got, err)
	}
}
