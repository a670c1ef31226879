package jsonscan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestValid(t *testing.T) {
	tests := []struct {
		data string
		want string // the error, "" for valid text
	}{
		{`{}`, ""},
		{`[]`, ""},
		{` { "a" : [ 1 , -0.5e+3 , true , false , null , "x" ] } `, ""},
		{"\t\r\n0", ""},
		{`""`, ""},
		{`-0`, ""},
		{`1E5`, ""},
		{`"\"\\\/\b\f\n\r\t\u00Af"`, ""},
		{`"\ud800"`, ""}, // grammar allows it; AppendCanonical does not
		{`{"a":1,"a":2}`, ""},
		{"\"\u007f\u2028é\U0001F600\"", ""},

		{``, "invalid JSON at offset 0: unexpected end"},
		{`  `, "invalid JSON at offset 2: unexpected end"},
		{`{`, "invalid JSON at offset 1: want a string"},
		{`{"a"`, "invalid JSON at offset 4: want ':'"},
		{`{"a":`, "invalid JSON at offset 5: unexpected end"},
		{`{"a":1`, "invalid JSON at offset 6: want ',' or '}'"},
		{`{"a":1,}`, "invalid JSON at offset 7: want a string"},
		{`{a:1}`, "invalid JSON at offset 1: want a string"},
		{`[1,]`, "invalid JSON at offset 3: want a value"},
		{`[1 2]`, "invalid JSON at offset 3: want ',' or ']'"},
		{`[1}`, "invalid JSON at offset 2: want ',' or ']'"},
		{`[`, "invalid JSON at offset 1: unexpected end"},
		{`{} {}`, "invalid JSON at offset 3: text after the value"},
		{`1 x`, "invalid JSON at offset 2: text after the value"},
		{`nul`, "invalid JSON at offset 0: want null"},
		{`nulL`, "invalid JSON at offset 0: want null"},
		{`truetrue`, "invalid JSON at offset 4: text after the value"},
		{`NaN`, "invalid JSON at offset 0: want a value"},
		{`Infinity`, "invalid JSON at offset 0: want a value"},
		{`'a'`, "invalid JSON at offset 0: want a value"},
		{`/* */1`, "invalid JSON at offset 0: want a value"},
		{"\uFEFF{}", "invalid JSON at offset 0: want a value"},
		{"\u00a0{}", "invalid JSON at offset 0: want a value"},
		{`-`, "invalid JSON at offset 1: want a digit"},
		{`+1`, "invalid JSON at offset 0: want a value"},
		{`01`, "invalid JSON at offset 0: number with a leading zero"},
		{`-012`, "invalid JSON at offset 1: number with a leading zero"},
		{`1.`, "invalid JSON at offset 2: want a digit"},
		{`.5`, "invalid JSON at offset 0: want a value"},
		{`1e`, "invalid JSON at offset 2: want a digit"},
		{`1e+`, "invalid JSON at offset 3: want a digit"},
		{`0x10`, "invalid JSON at offset 1: text after the value"},
		{`"`, "invalid JSON at offset 1: unterminated string"},
		{`"abcdefghijkl`, "invalid JSON at offset 13: unterminated string"},
		{`"\`, "invalid JSON at offset 1: invalid escape"},
		{`"\x"`, "invalid JSON at offset 1: invalid escape"},
		{`"\u12"`, "invalid JSON at offset 1: invalid escape"},
		{`"\u12G4"`, "invalid JSON at offset 1: invalid escape"},
		{`"\u1`, "invalid JSON at offset 1: invalid escape"},
		{"\"a\nb\"", "invalid JSON at offset 2: control character in a string"},
		{"\"12345678\x1f12345678\"", "invalid JSON at offset 9: control character in a string"},
		{"\"\x80\"", "invalid JSON at offset 1: invalid UTF-8"},
		{"\"\xc0\x80\"", "invalid JSON at offset 1: invalid UTF-8"},                  // overlong
		{"\"\xe0\x9f\xbf\"", "invalid JSON at offset 1: invalid UTF-8"},              // overlong
		{"\"\xed\xa0\x80\"", "invalid JSON at offset 1: invalid UTF-8"},              // surrogate
		{"\"\xf0\x8f\xbf\xbf\"", "invalid JSON at offset 1: invalid UTF-8"},          // overlong
		{"\"\xf4\x90\x80\x80\"", "invalid JSON at offset 1: invalid UTF-8"},          // beyond U+10FFFF
		{"\"12345678\xe2\x82\"", "invalid JSON at offset 9: invalid UTF-8"},          // cut short by the quote
		{"\"12345678\xf0\x9f\x98", "invalid JSON at offset 9: invalid UTF-8"},        // cut short by the end
		{"{\"a\":1,\"\xff\":2}", "invalid JSON at offset 8: invalid UTF-8"},          // in a key
		{"[\"ok\",\"\\u00e9\xc3\x28\"]", "invalid JSON at offset 13: invalid UTF-8"}, // after an escape
	}
	for _, tt := range tests {
		if got := message(jsonscan.Valid(tt.data, 8)); got != tt.want {
			t.Errorf("Valid(%q) = %q, want %q", tt.data, got, tt.want)
		}
		if got := message(jsonscan.Valid([]byte(tt.data), 8)); got != tt.want {
			t.Errorf("Valid([]byte(%q)) = %q, want %q", tt.data, got, tt.want)
		}
	}
}

// Whether bytes are looked at singly or eight at a time cannot matter: wherever it stands in a string of a's, a byte that is not
// plain breaks it. A quote ends it early, a backslash escapes an a or the closing quote.
func TestValidEveryByteEverywhere(t *testing.T) {
	for length := 1; length <= 24; length++ {
		for at := range length {
			for c := range 256 {
				text := []byte(`"` + strings.Repeat("a", length) + `"`)
				text[1+at] = byte(c)
				want := c >= ' ' && c < 0x80 && c != '"' && c != '\\'
				if got := jsonscan.Valid(text, 0) == nil; got != want {
					t.Fatalf("Valid(%q) = %v, want %v", text, got, want)
				}
			}
		}
	}
}

func TestValidDepth(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`[{"a":`, n/2) + "[]" + strings.Repeat(`}]`, n/2) }
	tests := []struct {
		data     string
		maxDepth int
		want     string
	}{
		{`1`, 0, ""},
		{`[]`, 1, ""},
		{`[]`, 0, "invalid JSON at offset 0: nested too deeply"},
		{`{}`, 0, "invalid JSON at offset 0: nested too deeply"},
		{`[[]]`, 2, ""},
		{`[[]]`, 1, "invalid JSON at offset 1: nested too deeply"},
		{`{"a":{}}`, 1, "invalid JSON at offset 5: nested too deeply"},
		{nested(512), 513, ""},
		{nested(512), 512, "invalid JSON at offset 1536: nested too deeply"},
		{strings.Repeat("[", 1<<20), 512, "invalid JSON at offset 512: nested too deeply"},
	}
	for _, tt := range tests {
		if got := message(jsonscan.Valid(tt.data, tt.maxDepth)); got != tt.want {
			t.Errorf("Valid(%.20q of %d bytes, %d) = %q, want %q", tt.data, len(tt.data), tt.maxDepth, got, tt.want)
		}
	}
}

type member struct{ Key, Value string }

func TestObject(t *testing.T) {
	tests := []struct {
		data string
		want []member
		err  string
	}{
		{`{}`, nil, ""},
		{" { } ", nil, ""},
		{`{"a":1}`, []member{{"a", "1"}}, ""},
		{` { "b" : [ 1, 2 ] , "a" : "x\n" , "" : null } `, []member{{"b", "[ 1, 2 ]"}, {"a", `"x\n"`}, {"", "null"}}, ""},
		{`{"a":1,"a":2}`, []member{{"a", "1"}, {"a", "2"}}, ""},
		{`{"\u0061\"é\ud83d\ude00\udead":{"\u0061":1}}`, []member{{"a\"é😀\uFFFD", `{"\u0061":1}`}}, ""},
		{`{"a":1,"b":}`, []member{{"a", "1"}}, "invalid JSON at offset 11: want a value"},
		{`{"a":1,"b"}`, []member{{"a", "1"}}, "invalid JSON at offset 10: want ':'"},
		{`{"a":1 "b":2}`, []member{{"a", "1"}}, "invalid JSON at offset 7: want ',' or '}'"},
		{`{"a":1} x`, []member{{"a", "1"}}, "invalid JSON at offset 8: text after the value"},
		{`{} x`, nil, "invalid JSON at offset 3: text after the value"},
		{`{"a":1,`, []member{{"a", "1"}}, "invalid JSON at offset 7: want a string"},
		{`{`, nil, "invalid JSON at offset 1: want a string"},
		{`[1]`, nil, "invalid JSON at offset 0: want an object"},
		{` null`, nil, "invalid JSON at offset 1: want an object"},
		{``, nil, "invalid JSON at offset 0: want an object"},
	}
	for _, tt := range tests {
		var got []member
		err := jsonscan.Object(tt.data, func(key, value string) error {
			got = append(got, member{key, value})
			return nil
		})
		if diff := cmp.Diff(tt.want, got); diff != "" || message(err) != tt.err {
			t.Errorf("Object(%s): error %q, want %q; members (-want +got):\n%s", tt.data, message(err), tt.err, diff)
		}
		var gotBytes []member
		err = jsonscan.Object([]byte(tt.data), func(key, value []byte) error {
			gotBytes = append(gotBytes, member{string(key), string(value)})
			return nil
		})
		if diff := cmp.Diff(tt.want, gotBytes); diff != "" || message(err) != tt.err {
			t.Errorf("Object([]byte(%s)): error %q, want %q; members (-want +got):\n%s", tt.data, message(err), tt.err, diff)
		}
	}
}

// A name may stand once, whatever its escapes; another case is another name.
func TestUniqueObject(t *testing.T) {
	for _, tt := range []struct {
		data string
		want []string
		err  string
	}{
		{`{"type":1,"Type":2,"TYPE":3}`, []string{"type", "Type", "TYPE"}, ""},
		{`{"a":1,"b":2,"a":3}`, []string{"a", "b"}, `member "a" is there twice`},
		{`{"a":1,"\u0061":2}`, []string{"a"}, `member "a" is there twice`},
		{`{"a":1,}`, []string{"a"}, "invalid JSON at offset 7: want a string"},
	} {
		var got []string
		err := jsonscan.UniqueObject([]byte(tt.data), func(key, _ []byte) error {
			got = append(got, string(key))
			return nil
		})
		if diff := cmp.Diff(tt.want, got); diff != "" || message(err) != tt.err {
			t.Errorf("UniqueObject(%s): error %q, want %q; members (-want +got):\n%s", tt.data, message(err), tt.err, diff)
		}
	}
}

func TestArray(t *testing.T) {
	tests := []struct {
		data string
		want []string
		err  string
	}{
		{`[]`, nil, ""},
		{" [ ] ", nil, ""},
		{` [ 1 , "a,]" , [ 2, 3 ] , {"x":[4]} , null ] `, []string{"1", `"a,]"`, "[ 2, 3 ]", `{"x":[4]}`, "null"}, ""},
		{`[1,]`, []string{"1"}, "invalid JSON at offset 3: want a value"},
		{`[1}`, []string{"1"}, "invalid JSON at offset 2: want ',' or ']'"},
		{`[1] 2`, []string{"1"}, "invalid JSON at offset 4: text after the value"},
		{`[] 2`, nil, "invalid JSON at offset 3: text after the value"},
		{`[`, nil, "invalid JSON at offset 1: unexpected end"},
		{`{}`, nil, "invalid JSON at offset 0: want an array"},
		{``, nil, "invalid JSON at offset 0: want an array"},
	}
	for _, tt := range tests {
		var got []string
		err := jsonscan.Array(tt.data, func(value string) error {
			got = append(got, value)
			return nil
		})
		if diff := cmp.Diff(tt.want, got); diff != "" || message(err) != tt.err {
			t.Errorf("Array(%s): error %q, want %q; elements (-want +got):\n%s", tt.data, message(err), tt.err, diff)
		}
	}
}

func TestWalkStopsAtFirstErrorOfCallback(t *testing.T) {
	stop := errors.New("stop")
	calls := 0
	err := jsonscan.Object(`{"a":1,"b":2,`, func(key, _ string) error {
		calls++
		if key == "b" {
			return stop
		}
		return nil
	})
	if err != stop || calls != 2 {
		t.Errorf("Object: error %v after %d calls, want %v after 2", err, calls, stop)
	}
	calls = 0
	err = jsonscan.Array(`[1,2,`, func(value string) error {
		calls++
		if value == "2" {
			return stop
		}
		return nil
	})
	if err != stop || calls != 2 {
		t.Errorf("Array: error %v after %d calls, want %v after 2", err, calls, stop)
	}
}

func TestWalkDepth(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	ok := func(string) error { return nil }
	if err := jsonscan.Array(deep(jsonscan.MaxDepth), ok); err != nil {
		t.Errorf("Array at MaxDepth: %v", err)
	}
	want := "invalid JSON at offset 10000: nested too deeply"
	if err := jsonscan.Array(deep(jsonscan.MaxDepth+1), ok); message(err) != want {
		t.Errorf("Array beyond MaxDepth: %q, want %q", message(err), want)
	}
}

func TestString(t *testing.T) {
	tests := []struct {
		value, want, err string
	}{
		{`""`, "", ""},
		{`"abc"`, "abc", ""},
		{`"é😀"`, "é😀", ""},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t", ""},
		{`"a\u00e9b\u0000"`, "aéb\x00", ""},
		{`"\uD83D\uDE00x"`, "😀x", ""},
		{`"\ud83dx"`, "\uFFFDx", ""},
		{`"\ud83d"`, "\uFFFD", ""},
		{`"\ude00\ud83d"`, "\uFFFD\uFFFD", ""},
		{`"\ud83d\ud83d\ude00"`, "\uFFFD😀", ""},
		{`"\ud83d\u0041"`, "\uFFFDA", ""},
		{`"\ud83d\n"`, "\uFFFD\n", ""},
		{`"\ufffd"`, "\uFFFD", ""},
		{`"` + strings.Repeat(`x\n`, 200) + `"`, strings.Repeat("x\n", 200), ""},
		{`"a" `, "", "invalid JSON at offset 3: text after the string"},
		{` "a"`, "", "invalid JSON at offset 0: want a string"},
		{`1`, "", "invalid JSON at offset 0: want a string"},
		{`null`, "", "invalid JSON at offset 0: want a string"},
		{``, "", "invalid JSON at offset 0: want a string"},
		{`"`, "", "invalid JSON at offset 1: unterminated string"},
	}
	for _, tt := range tests {
		got, err := jsonscan.String(tt.value)
		if got != tt.want || message(err) != tt.err {
			t.Errorf("String(%s) = %q, %q, want %q, %q", tt.value, got, message(err), tt.want, tt.err)
		}
		got, err = jsonscan.String([]byte(tt.value))
		if got != tt.want || message(err) != tt.err {
			t.Errorf("String([]byte(%s)) = %q, %q, want %q, %q", tt.value, got, message(err), tt.want, tt.err)
		}
	}
}

func TestInt(t *testing.T) {
	tests := []struct {
		value string
		want  int64
		err   string
	}{
		{`0`, 0, ""},
		{`-0`, 0, ""},
		{`9007199254740993`, 9007199254740993, ""}, // not a float64
		{`9223372036854775807`, 9223372036854775807, ""},
		{`-9223372036854775808`, -9223372036854775808, ""},
		{`9223372036854775808`, 0, "invalid JSON at offset 0: integer out of range"},
		{`1.0`, 0, "invalid JSON at offset 0: want an integer"},
		{`1e2`, 0, "invalid JSON at offset 0: want an integer"},
		{`01`, 0, "invalid JSON at offset 0: number with a leading zero"},
		{`+1`, 0, "invalid JSON at offset 0: want a value"},
		{`1_0`, 0, "invalid JSON at offset 1: text after the number"},
		{`"1"`, 0, "invalid JSON at offset 0: want a value"},
		{``, 0, "invalid JSON at offset 0: want a value"},
	}
	for _, tt := range tests {
		got, err := jsonscan.Int(tt.value)
		if got != tt.want || message(err) != tt.err {
			t.Errorf("Int(%s) = %d, %q, want %d, %q", tt.value, got, message(err), tt.want, tt.err)
		}
	}
}

func TestBoolAndNull(t *testing.T) {
	tests := []struct {
		value  string
		want   bool
		err    string
		isNull bool
	}{
		{`true`, true, "", false},
		{`false`, false, "", false},
		{`null`, false, "invalid JSON at offset 0: want true or false", true},
		{`True`, false, "invalid JSON at offset 0: want true or false", false},
		{`"true"`, false, "invalid JSON at offset 0: want true or false", false},
		{``, false, "invalid JSON at offset 0: want true or false", false},
	}
	for _, tt := range tests {
		got, err := jsonscan.Bool([]byte(tt.value))
		if got != tt.want || message(err) != tt.err {
			t.Errorf("Bool(%s) = %v, %q, want %v, %q", tt.value, got, message(err), tt.want, tt.err)
		}
		if got := jsonscan.IsNull([]byte(tt.value)); got != tt.isNull {
			t.Errorf("IsNull(%s) = %v, want %v", tt.value, got, tt.isNull)
		}
	}
}

func TestAppendString(t *testing.T) {
	tests := []struct{ s, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{"quote \" backslash \\ slash /", `"quote \" backslash \\ slash /"`},
		{"\b\f\n\r\t", `"\b\f\n\r\t"`},
		{"\x00\x01\x1f\x7f", `"\u0000\u0001\u001f` + "\x7f\""},
		{"<a href='x'>&amp;</a>", `"<a href='x'>&amp;</a>"`},
		{"\u2028\u2029é😀", "\"\u2028\u2029é😀\""},
		{"a\xffb\xc3", "\"a\uFFFDb\uFFFD\""},
		{"\xe2\x82", "\"\uFFFD\uFFFD\""},
	}
	for _, tt := range tests {
		if got := string(jsonscan.AppendString([]byte("k:"), tt.s)); got != "k:"+tt.want {
			t.Errorf("AppendString(%q) = %s, want %s", tt.s, got, "k:"+tt.want)
		}
	}
}

func TestSyntaxErrorIsTyped(t *testing.T) {
	var syntax *jsonscan.SyntaxError
	err := jsonscan.Valid(`{"a":tru}`, 1)
	if !errors.As(err, &syntax) {
		t.Fatalf("Valid returned %T, want *SyntaxError", err)
	}
	if diff := cmp.Diff(&jsonscan.SyntaxError{Offset: 5, Problem: "want true"}, syntax); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
