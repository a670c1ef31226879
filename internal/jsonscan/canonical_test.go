package jsonscan_test

import (
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

func TestAppendCanonical(t *testing.T) {
	tests := []struct {
		data, want, err string
	}{
		{`1`, `1`, ""},
		{` "x" `, `"x"`, ""},
		{` [ true , false , null ] `, `[true,false,null]`, ""},
		{`[ ]`, `[]`, ""},
		{`{ }`, `{}`, ""},
		{`{"b":1,"a":2}`, `{"a":2,"b":1}`, ""},
		{`{"b":{"d":[{"z":1,"y":2}],"c":0},"a":{}}`, `{"a":{},"b":{"c":0,"d":[{"y":2,"z":1}]}}`, ""},
		{`{"10":1,"9":2,"":3,"1":4}`, `{"":3,"1":4,"10":1,"9":2}`, ""},
		// U+1F600 sorts after U+FB00 by UTF-8 bytes, before it by UTF-16 units.
		{`{"\ud83d\ude00":1,"\ufb00":2}`, "{\"\ufb00\":2,\"\U0001F600\":1}", ""},
		// A quote sorts as itself, not as the backslash that escapes it.
		{`{"\u005b":1,"\"":2,"\u0000":3}`, `{"\u0000":3,"\"":2,"[":1}`, ""},
		{`[1,1.0,1e0,-0,0.10,12345678901234567890123,1E+2]`, `[1,1.0,1e0,-0,0.10,12345678901234567890123,1E+2]`, ""},
		{`"\/\u0041\u00e9\u001F\u0009\u007f\ud83d\ude00\u2028\u0022\u005c"`, "\"/Aé\\u001f\\t\x7f😀\u2028\\\"\\\\\"", ""},
		{`"\ufffd"`, "\"\uFFFD\"", ""},

		{``, "", "invalid JSON at offset 0: unexpected end"},
		{`{"a":1,"a":1}`, "", "invalid JSON at offset 7: duplicate key"},
		{`{"b":0,"a":1,"c":2,"a":1}`, "", "invalid JSON at offset 19: duplicate key"},
		{`{"a":1,"\u0061":2}`, "", "invalid JSON at offset 7: duplicate key"},
		{`[{"x":{"a":1,"a":1}}]`, "", "invalid JSON at offset 13: duplicate key"},
		{`"\ud800"`, "", "invalid JSON at offset 0: surrogate without its pair"},
		{`{"\udc00":1}`, "", "invalid JSON at offset 1: surrogate without its pair"},
		{`["a","\ud83d\u0041"]`, "", "invalid JSON at offset 5: surrogate without its pair"},
		{"\"\xff\"", "", "invalid JSON at offset 1: invalid UTF-8"},
		{`{"a":NaN}`, "", "invalid JSON at offset 5: want a value"},
		{`{"a":-Infinity}`, "", "invalid JSON at offset 6: want a digit"},
		{`{"a":01}`, "", "invalid JSON at offset 5: number with a leading zero"},
		{`{"a":1}{}`, "", "invalid JSON at offset 7: text after the value"},
		{`{"a":1,}`, "", "invalid JSON at offset 7: want a string"},
		{`{"a" 1}`, "", "invalid JSON at offset 5: want ':'"},
		{`[1 2]`, "", "invalid JSON at offset 3: want ',' or ']'"},
		{`{"a":1 "b":2}`, "", "invalid JSON at offset 7: want ',' or '}'"},
		{`[[[[]]]]`, `[[[[]]]]`, ""},
		{`[[[[[]]]]]`, "", "invalid JSON at offset 4: nested too deeply"},
		{`{"a":{"a":{"a":{"a":{}}}}}`, "", "invalid JSON at offset 20: nested too deeply"},
	}
	for _, tt := range tests {
		got, err := jsonscan.AppendCanonical(nil, tt.data, 4)
		if string(got) != tt.want || message(err) != tt.err {
			t.Errorf("AppendCanonical(%s) = %s, %q, want %s, %q", tt.data, got, message(err), tt.want, tt.err)
		}
		got, err = jsonscan.AppendCanonical([]byte("k="), []byte(tt.data), 4)
		want := ""
		if tt.err == "" {
			want = "k=" + tt.want
		}
		if string(got) != want || message(err) != tt.err {
			t.Errorf("AppendCanonical(k=, []byte(%s)) = %s, %q, want %s, %q", tt.data, got, message(err), want, tt.err)
		}
	}
}

// More members than are kept on the stack, in the worst order, in an object within an object.
func TestAppendCanonicalManyMembers(t *testing.T) {
	var data, want strings.Builder
	data.WriteString(`{"z":{`)
	want.WriteString(`{"y":0,"z":{`)
	for c := 'z'; c >= 'a'; c-- {
		data.WriteString(`"` + string(c) + `":"` + string(c) + `",`)
	}
	for c := 'a'; c <= 'z'; c++ {
		want.WriteString(`"` + string(c) + `":"` + string(c) + `",`)
	}
	text := strings.TrimSuffix(data.String(), ",") + `},"y":0}`
	got, err := jsonscan.AppendCanonical(nil, text, 2)
	if wantText := strings.TrimSuffix(want.String(), ",") + "}}"; err != nil || string(got) != wantText {
		t.Errorf("AppendCanonical = %s, %v, want %s", got, err, wantText)
	}
}
