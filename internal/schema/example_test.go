package schema_test

import (
	"fmt"

	"github.com/pawl-agents/pawl/internal/schema"
)

type Refund struct {
	Order  string  `json:"order" jsonschema:"the order number"`
	Cents  int64   `json:"cents" minimum:"1"`
	Reason string  `json:"reason" enum:"damaged,late,other"`
	Note   *string `json:"note"`
}

func ExampleFor() {
	s, err := schema.For[Refund]()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.JSON())
	// Output: {"type":"object","properties":{"order":{"type":"string","description":"the order number"},"cents":{"type":"integer","minimum":1},"reason":{"type":"string","enum":["damaged","late","other"]},"note":{"type":["string","null"]}},"required":["order","cents","reason","note"],"additionalProperties":false}
}

func ExampleFor_refused() {
	type search struct {
		Filters map[string]string `json:"filters"`
	}
	_, err := schema.For[search]()
	fmt.Println(err)
	// Output: pawl: no strict schema for schema_test.search: Filters: map[string]string is a map, and a strict schema names all its properties; use a list of structs with a key and a value
}

func ExampleForOutput() {
	s, err := schema.ForOutput[[]string]()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.JSON())
	var names []string
	err = s.Decode(`{"response":["Ada","Grace"]}`, &names)
	fmt.Println(names, err)
	// Output:
	// {"type":"object","properties":{"response":{"type":"array","items":{"type":"string"}}},"required":["response"],"additionalProperties":false}
	// [Ada Grace] <nil>
}

func ExampleSchema_Decode() {
	s, err := schema.For[Refund]()
	if err != nil {
		fmt.Println(err)
		return
	}
	var in Refund
	err = s.Decode(`{"order":"A-1001","cents":4200,"reason":"late","note":null}`, &in)
	fmt.Printf("%+v %v\n", in, err)
	err = s.Decode(`{"order":"A-1001","cents":"42.00","reason":"late","note":null}`, &in)
	fmt.Println(err)
	// Output:
	// {Order:A-1001 Cents:4200 Reason:late Note:<nil>} <nil>
	// pawl: cents: expected an integer of at least 1, got "42.00"
}

func ExampleFromJSON() {
	raw := []byte(`{"type":"object","properties":{"city":{"type":"string"},"unit":{"oneOf":[{"const":"C"},{"const":"F"}]}}}`)
	s, err := schema.FromJSON(raw, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.JSON())
	_, err = schema.FromJSON([]byte(`{"type":"object","additionalProperties":{"type":"string"}}`), true)
	fmt.Println(err)
	// Output:
	// {"type":"object","properties":{"city":{"type":"string"},"unit":{"anyOf":[{"const":"C","type":"string"},{"const":"F","type":"string"}]}},"required":["city","unit"],"additionalProperties":false}
	// pawl: this JSON Schema cannot be strict: the root: additionalProperties must be false; list the properties, or make it a list of objects with a key and a value; change it, or turn strict off
}
