package item_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// mustParse returns the item in raw, which a test wrote.
func mustParse(t *testing.T, raw string) item.Item {
	t.Helper()
	it, err := item.ParseString(raw)
	if err != nil {
		t.Fatalf("ParseString(%s): %v", raw, err)
	}
	return it
}

func TestParse(t *testing.T) {
	tests := []struct {
		raw, want, err string
	}{
		{`{}`, `{}`, ""},
		{" \t\r\n{\"role\" : \"user\"}\n ", `{"role" : "user"}`, ""},
		{`{"type":"of tomorrow","n":1.0e+00,"s":"\u0041\/<&>","a":1,"a":2,"z":{"b": [ ]}}`,
			`{"type":"of tomorrow","n":1.0e+00,"s":"\u0041\/<&>","a":1,"a":2,"z":{"b": [ ]}}`, ""},
		{`{"s":"\ud800"}`, `{"s":"\ud800"}`, ""},

		{``, "", "pawl: not a conversation item: invalid JSON at offset 0: unexpected end"},
		{`null`, "", "pawl: not a conversation item: want a JSON object"},
		{`[{}]`, "", "pawl: not a conversation item: want a JSON object"},
		{`"text"`, "", "pawl: not a conversation item: want a JSON object"},
		{`{} {}`, "", "pawl: not a conversation item: invalid JSON at offset 3: text after the value"},
		{`{"a":1,}`, "", "pawl: not a conversation item: invalid JSON at offset 7: want a string"},
		{`{"a":NaN}`, "", "pawl: not a conversation item: invalid JSON at offset 5: want a value"},
		{"{\"a\":\"\xff\"}", "", "pawl: not a conversation item: invalid JSON at offset 6: invalid UTF-8"},
		{"\uFEFF{}", "", "pawl: not a conversation item: invalid JSON at offset 0: want a value"},
		{"\v{}", "", "pawl: not a conversation item: invalid JSON at offset 0: want a value"},
	}
	for _, tt := range tests {
		for name, parse := range map[string]func() (item.Item, error){
			"Parse":       func() (item.Item, error) { return item.Parse([]byte(tt.raw)) },
			"ParseString": func() (item.Item, error) { return item.ParseString(tt.raw) },
		} {
			got, err := parse()
			if got.Raw() != tt.want || message(err) != tt.err {
				t.Errorf("%s(%q) = %s, %q, want %s, %q", name, tt.raw, got, message(err), tt.want, tt.err)
			}
			if (err != nil) != errors.Is(err, item.ErrInvalid) {
				t.Errorf("%s(%q): %v does not wrap ErrInvalid", name, tt.raw, err)
			}
		}
	}
}

func TestParseBounds(t *testing.T) {
	nested := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	sized := func(size int) string {
		const around = `{"a":""}`
		return `{"a":"` + strings.Repeat("x", size-len(around)) + `"}`
	}
	tests := []struct {
		name, raw, err string
	}{
		{"deepest", nested(512), ""},
		{"too deep", nested(513), "pawl: not a conversation item: invalid JSON at offset 516: nested too deeply"},
		{"largest", " " + sized(134217728) + " ", ""},
		{"too large", sized(134217729), "pawl: not a conversation item: 134217729 bytes, the limit is 134217728"},
		{"too large and garbage", strings.Repeat("[", 134217729), "pawl: not a conversation item: 134217729 bytes, the limit is 134217728"},
	}
	for _, tt := range tests {
		if _, err := item.ParseString(tt.raw); message(err) != tt.err {
			t.Errorf("%s: ParseString = %q, want %q", tt.name, message(err), tt.err)
		}
	}
}

func TestParseCopies(t *testing.T) {
	raw := []byte(`{"role":"user"}`)
	it, err := item.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	raw[2] = 'X'
	if want := `{"role":"user"}`; it.Raw() != want {
		t.Errorf("Raw() = %s after the input changed, want %s", it.Raw(), want)
	}
}

func TestItemIsItsBytes(t *testing.T) {
	a := mustParse(t, `{"role":"user","content":"a"}`)
	same := mustParse(t, ` {"role":"user","content":"a"} `)
	spaced := mustParse(t, `{"role":"user", "content":"a"}`)
	if a != same || !a.Equal(same) {
		t.Errorf("%s and %s differ", a, same)
	}
	if a == spaced || a.Equal(spaced) {
		t.Errorf("%s and %s are equal", a, spaced)
	}
	if diff := cmp.Diff([]item.Item{a}, []item.Item{same}); diff != "" {
		t.Errorf("go-cmp sees a difference:\n%s", diff)
	}
	if got := string(a.AppendRaw([]byte("["))); got != `[{"role":"user","content":"a"}` {
		t.Errorf("AppendRaw = %s", got)
	}
	if got := a.String(); got != `{"role":"user","content":"a"}` {
		t.Errorf("String = %s", got)
	}
	if a.IsZero() || !(item.Item{}).IsZero() {
		t.Errorf("IsZero: %v for %s, %v for the zero Item", a.IsZero(), a, item.Item{}.IsZero())
	}
	if got := item.FromTrusted(a.Raw()); got != a {
		t.Errorf("FromTrusted(Raw()) = %s, want %s", got, a)
	}
}

func TestItemInEncodingJSON(t *testing.T) {
	type doc struct {
		One  item.Item
		List []item.Item
		None item.Item
		Keep *item.Item
	}
	const in = `{"One":{"a": "<"},"List":[{"b":1.0},{ }],"None":null,"Keep":null}`
	var got doc
	if err := json.Unmarshal([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	want := doc{
		One:  item.FromTrusted(`{"a": "<"}`),
		List: []item.Item{item.FromTrusted(`{"b":1.0}`), item.FromTrusted(`{ }`)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("Unmarshal (-want +got):\n%s", diff)
	}
	out, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	// Compacted and escaped, as documented.
	if want := `{"One":{"a":"\u003c"},"List":[{"b":1.0},{}],"None":null,"Keep":null}`; string(out) != want {
		t.Errorf("Marshal = %s, want %s", out, want)
	}
	if err := json.Unmarshal([]byte(`{"One":[]}`), &got); !errors.Is(err, item.ErrInvalid) {
		t.Errorf("Unmarshal of an array: %v, want ErrInvalid", err)
	}
	if want := `{"a": "<"}`; got.One.Raw() != want {
		t.Errorf("a failed Unmarshal left %s, want %s", got.One, want)
	}
}

// Bytes that nobody checked give errors and zero values, never a panic.
func TestUntrustworthyBytes(t *testing.T) {
	for _, raw := range []string{``, `{`, `{"type":"function_call"`, `{"type":"message","content":`, `[1`, `null`, "\xff", `{"a":1}}`} {
		it := item.FromTrusted(raw)
		if it.Type() != "" || it.Head() != (item.Head{}) || it.NeedsOutput() {
			t.Errorf("%q: Type %q, Head %+v, NeedsOutput %v, want zero values", raw, it.Type(), it.Head(), it.NeedsOutput())
		}
		for name, err := range viewErrors(it) {
			if !errors.Is(err, item.ErrInvalid) {
				t.Errorf("%q: %s: %v, want ErrInvalid", raw, name, err)
			}
		}
	}
}

// viewErrors returns the error of each view.
func viewErrors(it item.Item) map[string]error {
	errs := map[string]error{}
	_, errs["Message"] = it.Message()
	_, errs["Reasoning"] = it.Reasoning()
	_, errs["FunctionCall"] = it.FunctionCall()
	_, errs["FunctionCallOutput"] = it.FunctionCallOutput()
	_, errs["CustomToolCall"] = it.CustomToolCall()
	_, errs["CustomToolCallOutput"] = it.CustomToolCallOutput()
	_, errs["HostedCall"] = it.HostedCall()
	_, errs["ApprovalRequest"] = it.ApprovalRequest()
	_, errs["ApprovalResponse"] = it.ApprovalResponse()
	return errs
}

func TestWithoutID(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"rs_1","type":"reasoning","summary":[]}`:           `{"type":"reasoning","summary":[]}`,
		`{"type":"reasoning","id":"rs_1","n": 1.0 ,"e":"\u0041"}`: `{"type":"reasoning","n":1.0,"e":"\u0041"}`,
		`{"id":1,"a\"b":{"id":2},"id":null}`:                      `{"a\"b":{"id":2}}`,
		`{"id":"x"}`:                                              `{}`,
		`{ "type":"reasoning"}`:                                   `{ "type":"reasoning"}`,
		`{}`:                                                      `{}`,
	} {
		it, err := item.ParseString(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := it.WithoutID().Raw(); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
	if (item.Item{}).WithoutID() != (item.Item{}) {
		t.Error("the zero item became another")
	}
}
