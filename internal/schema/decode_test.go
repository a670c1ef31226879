package schema

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-agents/pawl/internal/jsonscan"
)

// order has a field of every kind.
type order struct {
	ID      string     `json:"id"`
	Count   int        `json:"count" minimum:"1" maximum:"9007199254740993"`
	Small   int8       `json:"small"`
	Huge    uint64     `json:"huge"`
	Ratio   float64    `json:"ratio" exclusiveMinimum:"0" maximum:"1"`
	Single  float32    `json:"single"`
	Urgent  bool       `json:"urgent"`
	Size    *unit      `json:"size" enum:"S,M,L"`
	Level   int        `json:"level,omitempty" enum:"1,2,3"`
	Mail    string     `json:"mail,omitempty" format:"email"`
	Ship    *address   `json:"ship"`
	Tags    []string   `json:"tags" pattern:"^[a-z]+$" maxItems:"3"`
	Some    []int      `json:"some,omitempty" minItems:"1"`
	Pair    [2]bool    `json:"pair"`
	Raw     []byte     `json:"raw"`
	At      time.Time  `json:"at"`
	IP      netip.Addr `json:"ip"`
	Number  json.Number
	Price   money
	Between []*string `json:"between" minItems:"1" maxItems:"2"`
}

const wholeOrder = `{"id":"A1","count":9007199254740993,"small":-128,"huge":18446744073709551615,"ratio":0.5,"single":1e3,` +
	`"urgent":true,"size":"M","level":2,"mail":"a@example.org","ship":{"street":"Elm","zip":"12345"},"tags":["a","b"],` +
	`"some":[1],"pair":[true,false],"raw":"aGk=","at":"2026-01-02T03:04:05Z","ip":"192.0.2.1","Number":1.50,"Price":"12.05",` +
	`"between":["x",null]}`

func TestDecodeWhole(t *testing.T) {
	s, err := For[order]()
	if err != nil {
		t.Fatal(err)
	}
	size, x := unit("M"), "x"
	want := order{ID: "A1", Count: 9007199254740993, Small: -128, Huge: 18446744073709551615, Ratio: 0.5, Single: 1000,
		Urgent: true, Size: &size, Level: 2, Mail: "a@example.org", Ship: &address{"Elm", "12345"}, Tags: []string{"a", "b"},
		Some: []int{1}, Pair: [2]bool{true, false}, Raw: []byte("hi"), At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		IP: netip.MustParseAddr("192.0.2.1"), Number: "1.50", Price: 1205, Between: []*string{&x, nil}}
	var got order
	if err := s.Decode(wholeOrder, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeOptional(t *testing.T) {
	type in struct {
		A string  `json:"a"`
		B *int    `json:"b"`
		C int     `json:"c,omitempty"`
		D []named `json:"d,omitzero"`
		E []bool  `json:"e"`
		F []byte  `json:"f"`
		*Optional
	}
	s, err := For[in]()
	if err != nil {
		t.Fatal(err)
	}
	one := 1
	tests := []struct {
		text string
		want in
	}{
		{`{"a":"x","b":null,"c":null,"d":null,"e":null,"f":null,"extra":null}`, in{A: "x", Optional: &Optional{}}},
		{`{"a":"x","e":[],"f":""}`, in{A: "x", E: []bool{}, F: []byte{}}},
		{" \n{\"f\":null, \"e\" : null , \"a\":\"\\u0078\",\"b\":1}\t", in{A: "x", B: &one}},
	}
	for _, tt := range tests {
		got := in{A: "old", B: &one, C: 7, D: []named{{"old"}}}
		if err := s.Decode(tt.text, &got); err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.text, diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	s, err := For[order]()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		old, new string // replaced in wholeOrder
		want     string
	}{
		{`{"id":"A1",`, `{`, `pawl: missing: id`},
		{`"id":"A1","count":9007199254740993,`, ``, `pawl: missing: id, count`},
		{`"id":"A1"`, `"id":"A1","id":"A1"`, `pawl: field "id" is given twice`},
		{`"id":"A1"`, `"id":"A1","\u0069d":"A1"`, `pawl: field "id" is given twice`},
		{`"id":"A1"`, `"id":"A1","ID":"A1"`, `pawl: unknown field "ID"; the fields are: id, count, small, huge, ratio, single, urgent, size, level, mail, ship, tags, some, pair, raw, at, ip, Number, Price, between`},
		{`"id":"A1"`, `"id":1`, `pawl: id: expected a string, got 1`},
		{`"id":"A1"`, `"id":null`, `pawl: id: expected a string, got null`},
		{`"id":"A1"`, `"id":["` + strings.Repeat("A", 500) + `"]`, `pawl: id: expected a string, got a list`},
		{`"count":9007199254740993`, `"count":9007199254740994`, `pawl: count: expected an integer from 1 to 9007199254740993, got 9007199254740994`},
		{`"count":9007199254740993`, `"count":0`, `pawl: count: expected an integer from 1 to 9007199254740993, got 0`},
		{`"count":9007199254740993`, `"count":1.0`, `pawl: count: expected an integer from 1 to 9007199254740993, got 1.0`},
		{`"count":9007199254740993`, `"count":"5"`, `pawl: count: expected an integer from 1 to 9007199254740993, got "5"`},
		{`"small":-128`, `"small":-129`, `pawl: small: expected an integer from -128 to 127, got -129`},
		{`"huge":18446744073709551615`, `"huge":18446744073709551616`, `pawl: huge: expected an integer of at least 0, got 18446744073709551616`},
		{`"huge":18446744073709551615`, `"huge":-1`, `pawl: huge: expected an integer of at least 0, got -1`},
		{`"ratio":0.5`, `"ratio":0`, `pawl: ratio: expected a number of more than 0, got 0`},
		{`"ratio":0.5`, `"ratio":1.01`, `pawl: ratio: expected a number of at most 1, got 1.01`},
		{`"ratio":0.5`, `"ratio":true`, `pawl: ratio: expected a number, got true`},
		{`"ratio":0.5`, `"ratio":-1e999`, `pawl: ratio: expected a number that fits 64 bits, got -1e999`},
		{`"single":1e3`, `"single":1e39`, `pawl: single: expected a number that fits 32 bits, got 1e39`},
		{`"urgent":true`, `"urgent":"true"`, `pawl: urgent: expected true or false, got "true"`},
		{`"size":"M"`, `"size":"XL"`, `pawl: size: expected one of S, M, L, got "XL"`},
		{`"level":2`, `"level":4`, `pawl: level: expected one of 1, 2, 3, got 4`},
		{`"mail":"a@example.org"`, `"mail":"nobody"`, `pawl: mail: expected text of the format email, got "nobody"`},
		{`"zip":"12345"`, `"zip":"1234"`, `pawl: ship.zip: expected text that matches ^[0-9]{5}$, got "1234"`},
		{`{"street":"Elm","zip":"12345"}`, `[]`, `pawl: ship: expected an object, got a list`},
		{`["a","b"]`, `["a","B"]`, `pawl: tags[1]: expected text that matches ^[a-z]+$, got "B"`},
		{`["a","b"]`, `["a","b","c","d"]`, `pawl: tags: expected a list of at most 3, got more than 3`},
		{`["a","b"]`, `{}`, `pawl: tags: expected a list, got an object`},
		{`"some":[1]`, `"some":[]`, `pawl: some: expected a list of at least 1, got 0`},
		{`[true,false]`, `[true]`, `pawl: pair: expected a list of 2, got 1`},
		{`[true,false]`, `null`, `pawl: pair: expected a list, got null`},
		{`"raw":"aGk="`, `"raw":"aGk"`, `pawl: raw: expected base64 text, got "aGk"`},
		{`"raw":"aGk="`, `"raw":"aG\nk="`, `pawl: raw: expected base64 text, got "aG\nk="`},
		{`"raw":"aGk="`, `"raw":[104]`, `pawl: raw: expected base64 text, got a list`},
		{`"2026-01-02T03:04:05Z"`, `"2026-01-02"`, `pawl: at: expected text of the format date-time, got "2026-01-02"`},
		{`"192.0.2.1"`, `"somewhere"`, `pawl: ip: ParseAddr("somewhere"): unable to parse IP`},
		{`"Number":1.50`, `"Number":"1.50"`, `pawl: Number: expected a number, got "1.50"`},
		{`"Price":"12.05"`, `"Price":"12"`, `pawl: Price: pattern: "12" does not match regular expression "^[0-9]+\\.[0-9]{2}$"`},
		{`"between":["x",null]`, `"between":null`, `pawl: between: expected a list, got null`},
		{`"between":["x",null]`, `"between":["x",0]`, `pawl: between[1]: expected a string, got 0`},
		{wholeOrder, `null`, `pawl: expected an object, got null`},
		{wholeOrder, ``, `pawl: invalid JSON at offset 0: unexpected end`},
		{wholeOrder, `{"id":"A1"`, `pawl: invalid JSON at offset 10: want ',' or '}'`},
		{wholeOrder, "{\"id\":\"\xff\"}", `pawl: invalid JSON at offset 7: invalid UTF-8`},
		{wholeOrder, `{} {}`, `pawl: invalid JSON at offset 3: text after the value`},
		{wholeOrder, `{"id":NaN}`, `pawl: invalid JSON at offset 6: want a value`},
		{wholeOrder, strings.Repeat("[", 600) + strings.Repeat("]", 600), `pawl: invalid JSON at offset 512: nested too deeply`},
	}
	for _, tt := range tests {
		text := strings.Replace(wholeOrder, tt.old, tt.new, 1)
		if text == wholeOrder {
			t.Fatalf("%q is not in the order", tt.old)
		}
		got := order{ID: "untouched"}
		err := s.Decode(text, &got)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: error\n%v, want\n%s", tt.new, err, tt.want)
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error of type %T", tt.new, err)
		}
		if got.ID != "untouched" {
			t.Errorf("%s: the destination was changed", tt.new)
		}
	}
}

func TestErrorsWrapTheirCause(t *testing.T) {
	s, err := For[order]()
	if err != nil {
		t.Fatal(err)
	}
	var syntax *jsonscan.SyntaxError
	if err := s.Validate(`{`); !errors.As(err, &syntax) || syntax.Offset != 1 {
		t.Errorf("error %v", err)
	}
	long := `{"id":` + strings.Repeat(`1`, 300) + `}`
	if err := s.Validate(long); len(err.Error()) > 260 {
		t.Errorf("error of %d bytes: %v", len(err.Error()), err)
	}
}

func TestDecodeNeedsTheDerivedType(t *testing.T) {
	s, err := For[named]()
	if err != nil {
		t.Fatal(err)
	}
	var none *named
	tests := []struct {
		dst  any
		want string
	}{
		{nil, "pawl: cannot decode into <nil>: want a pointer that is not nil"},
		{named{}, "pawl: cannot decode into schema.named: want a pointer that is not nil"},
		{none, "pawl: cannot decode into *schema.named: want a pointer that is not nil"},
		{new(any), "pawl: cannot decode into *interface {}: the schema is that of schema.named"},
		{new(*named), "pawl: cannot decode into **schema.named: the schema is that of schema.named"},
	}
	for _, tt := range tests {
		if err := s.Decode(`{"name":"x"}`, tt.dst); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

func TestErrorsStayShort(t *testing.T) {
	type many struct {
		A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U, V int
	}
	s, err := For[struct {
		Many *many
		X    float64     `exclusiveMinimum:"-1" exclusiveMaximum:"1"`
		Y    float64     `minimum:"-1" maximum:"1"`
		Z    int         `maximum:"3"`
		F    float32     `maximum:"0.1"`
		N    json.Number `minimum:"16777217"`
	}]()
	if err != nil {
		t.Fatal(err)
	}
	const whole = `{"Many":null,"X":0.999,"Y":-1,"Z":-5,"F":0.1,"N":16777217}`
	if err := s.Validate(whole); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ old, new, want string }{
		{`null`, `{}`, `pawl: Many: missing: A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, ...`},
		{`null`, `"` + strings.Repeat("ä", 200) + `"`, `pawl: Many: expected an object, got "` + strings.Repeat("ä", 99) + `...`},
		{`0.999`, `1`, `pawl: X: expected a number of less than 1, got 1`},
		{`-1`, `-1.5`, `pawl: Y: expected a number of at least -1, got -1.5`},
		{`16777217`, `16777216`, `pawl: N: expected a number of at least 16777217, got 16777216`},
		{`16777217`, `-1e999`, `pawl: N: expected a number of at least 16777217, got -1e999`},
		{`-5`, `4`, `pawl: Z: expected an integer of at most 3, got 4`},
	}
	for _, tt := range tests {
		err := s.Validate(strings.Replace(whole, tt.old, tt.new, 1))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: error\n%v, want\n%s", tt.new, err, tt.want)
		}
	}
}

func TestValidateDoesNotAllocate(t *testing.T) {
	type in struct {
		Order string   `json:"order"`
		Cents int64    `json:"cents" minimum:"1"`
		Why   string   `json:"why" enum:"late,other"`
		Tags  []string `json:"tags"`
		Ship  *address `json:"ship"`
	}
	s, err := For[in]()
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"order":"A-1","cents":42,"why":"late","tags":["a","b"],"ship":{"street":"Elm","zip":"12345"}}`
	allocations := testing.AllocsPerRun(100, func() {
		if err := s.Validate(text); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func TestDecodeWrapped(t *testing.T) {
	list, err := ForOutput[[]int64]()
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	if err := list.Decode(` {"response" : [1, 9007199254740993] }`, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{1, 9007199254740993}, got); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		`[1]`:                    `pawl: expected an object, got a list`,
		`{}`:                     `pawl: missing: response`,
		`{"response":["1"]}`:     `pawl: response[0]: expected an integer of 64 bits, got "1"`,
		`{"response":[1],"a":2}`: `pawl: unknown field "a"; the fields are: response`,
	} {
		if err := list.Decode(text, &got); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	pointer, err := ForOutput[*named]()
	if err != nil {
		t.Fatal(err)
	}
	var to *named
	if err := pointer.Decode(`{"name":"x"}`, &to); err != nil || to.Name != "x" {
		t.Errorf("got %v, %v", to, err)
	}
}

func TestDecodeRecursive(t *testing.T) {
	s, err := For[tree]()
	if err != nil {
		t.Fatal(err)
	}
	var got tree
	text := `{"label":"a","children":[{"label":"b","children":[],"parent":{"label":"a","children":[],"parent":null}}],"parent":null}`
	if err := s.Decode(text, &got); err != nil {
		t.Fatal(err)
	}
	want := tree{"a", []tree{{"b", []tree{}, &tree{"a", []tree{}, nil}}}, nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	bad := strings.Replace(text, `"parent":{"label":"a"`, `"parent":{"label":1`, 1)
	if err := s.Decode(bad, &got); err == nil || err.Error() != `pawl: children[0].parent.label: expected a string, got 1` {
		t.Errorf("error %v", err)
	}
}

// panicky panics when it is read.
type panicky struct{}

func (panicky) MarshalText() ([]byte, error) { return nil, nil }
func (*panicky) UnmarshalText([]byte) error  { panic("oops") }

func TestPanicsOfDecodedTypesAreErrors(t *testing.T) {
	s, err := For[struct{ P panicky }]()
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ P panicky }
	if err := s.Decode(`{"P":"x"}`, &got); err == nil || err.Error() != "pawl: reading JSON panicked: oops" {
		t.Errorf("error %v", err)
	}
}

func TestFormats(t *testing.T) {
	tests := []struct {
		format    string
		good, bad []string
	}{
		{"date-time", []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00"}, []string{"2026-01-02", "2026-13-02T03:04:05Z", ""}},
		{"time", []string{"03:04:05Z", "23:59:59.25-07:00"}, []string{"3:04:05Z", "03:04:05", "24:00:00Z"}},
		{"date", []string{"2024-02-29"}, []string{"2023-02-29", "2024-2-29", "2024-02-29T00:00:00Z"}},
		{"duration", []string{"P1Y2M3DT4H5M6.5S", "PT1S", "P3W"}, []string{"P", "PT", "P1YT", "1Y", "P1W2D"}},
		{"email", []string{"a.b+c@example.org"}, []string{"a", "A <a@example.org>", "a@b, c@d"}},
		{"hostname", []string{"example.org", "a-b", "localhost"}, []string{"-a.org", "a_b", "a..b", "", strings.Repeat("a.", 127) + "a"}},
		{"ipv4", []string{"192.0.2.1"}, []string{"192.0.2", "::1", "192.0.2.256"}},
		{"ipv6", []string{"::1", "2001:db8::1"}, []string{"192.0.2.1", "fe80::1%eth0", "::g"}},
		{"uuid", []string{"0190b5e2-7c3a-7def-8123-0123456789aB"}, []string{"0190b5e27c3a7def81230123456789ab", "{0190b5e2-7c3a-7def-8123-0123456789ab}"}},
	}
	for _, tt := range tests {
		fits := formatCheck(tt.format)
		for _, text := range tt.good {
			if !fits(text) {
				t.Errorf("%s refuses %q", tt.format, text)
			}
		}
		for _, text := range tt.bad {
			if fits(text) {
				t.Errorf("%s accepts %q", tt.format, text)
			}
		}
	}
	if formatCheck("uri") != nil {
		t.Error("uri is a format")
	}
}
