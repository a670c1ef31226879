package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

var seeds = []string{
	`{}`, `[]`, `null`, `-0.5e+3`, `"x"`, ` { "a" : [ 1 , {} ] , "b" : "\u00e9\ud83d\ude00" } `,
	`{"a":1,"a":2}`, `{"\u0061":1}`, `"\ud800"`, `[1,]`, `{"a"`, "\"\xff\"", "\"12345678\\\"\"", `[[[[`, `{"a":{"b":[{}]}} x`,
	`{"type":"function_call","call_id":"c","arguments":"{\"a\":1}"}`, "", "\uFEFF{}",
}

// FuzzValid: text is valid if encoding/json says so and it is UTF-8, which encoding/json does not ask for.
func FuzzValid(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want := json.Valid(data) && utf8.Valid(data)
		if err := jsonscan.Valid(data, jsonscan.MaxDepth); (err == nil) != want {
			t.Errorf("Valid = %v, encoding/json says %v", err, want)
		}
		if err := jsonscan.Valid(string(data), jsonscan.MaxDepth); (err == nil) != want {
			t.Errorf("Valid of a string = %v, encoding/json says %v", err, want)
		}
	})
}

// FuzzWalk: on any text Object and Array end without panic, with an error if the text is not valid, and pass on what
// encoding/json reads if it is.
func FuzzWalk(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var members []member
		objectErr := jsonscan.Object(data, func(key, value []byte) error {
			members = append(members, member{string(key), string(value)})
			return nil
		})
		var elements []string
		arrayErr := jsonscan.Array(string(data), func(value string) error {
			elements = append(elements, value)
			return nil
		})
		valid := jsonscan.Valid(data, jsonscan.MaxDepth) == nil
		trimmed := bytes.TrimLeft(data, " \t\r\n")
		if isObject := valid && trimmed[0] == '{'; isObject != (objectErr == nil) {
			t.Fatalf("Object: %v, but is it a valid object: %v", objectErr, isObject)
		} else if isObject {
			if diff := cmp.Diff(decodeMembers(t, data), members); diff != "" {
				t.Errorf("members (-encoding/json +Object):\n%s", diff)
			}
			for _, m := range members {
				got, ok := jsonscan.Checked(m.Value)
				if want, err := jsonscan.String(m.Value); ok != (err == nil) || got != want {
					t.Errorf("Checked(%s) = %q, %v, String says %q, %v", m.Value, got, ok, want, err)
				}
			}
		}
		if isArray := valid && trimmed[0] == '['; isArray != (arrayErr == nil) {
			t.Fatalf("Array: %v, but is it a valid array: %v", arrayErr, isArray)
		} else if isArray {
			if diff := cmp.Diff(decodeElements(t, data), elements); diff != "" {
				t.Errorf("elements (-encoding/json +Array):\n%s", diff)
			}
		}
	})
}

func decodeMembers(t *testing.T, data []byte) []member {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var members []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
		members = append(members, member{key.(string), string(value)})
	}
	return members
}

func decodeElements(t *testing.T, data []byte) []string {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	var elements []string
	for _, r := range raw {
		elements = append(elements, string(r))
	}
	return elements
}

// FuzzScalars: String, Int, Bool and IsNull read what encoding/json reads from a token without white space around it.
func FuzzScalars(f *testing.F) {
	for _, s := range []string{`"a"`, `"\u00e9\ud83d\ude00\ud800\n"`, `1`, `-0`, `1e3`, `9223372036854775808`, `true`, `null`, `"`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		token := value == strings.Trim(value, " \t\r\n") && utf8.ValidString(value)
		var wantString *string
		isString := token && json.Unmarshal([]byte(value), &wantString) == nil && wantString != nil
		if got, err := jsonscan.String(value); (err == nil) != isString || (isString && got != *wantString) {
			t.Errorf("String = %q, %v, encoding/json says %v", got, err, isString)
		}
		var wantInt *int64
		isInt := token && json.Unmarshal([]byte(value), &wantInt) == nil && wantInt != nil
		if got, err := jsonscan.Int(value); (err == nil) != isInt || (isInt && got != *wantInt) {
			t.Errorf("Int = %d, %v, encoding/json says %v", got, err, isInt)
		}
		var wantBool *bool
		isBool := token && json.Unmarshal([]byte(value), &wantBool) == nil && wantBool != nil
		if got, err := jsonscan.Bool(value); (err == nil) != isBool || (isBool && got != *wantBool) {
			t.Errorf("Bool = %v, %v, encoding/json says %v", got, err, isBool)
		}
		if got := jsonscan.IsNull(value); got != (value == "null") {
			t.Errorf("IsNull = %v", got)
		}
	})
}

// FuzzAppendString: encoding/json decodes what AppendString writes to the same text, with U+FFFD for each invalid byte, and
// AppendString writes no byte more than it must.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain text", "a\x00\x1f\"\\/\n", "é\u2028😀", "\xff12345678\xe2\x82", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := string([]rune(s))
		encoded := jsonscan.AppendString(nil, s)
		var got string
		if err := json.Unmarshal(encoded, &got); err != nil || got != want {
			t.Fatalf("AppendString wrote %s, which is %q (%v), want %q", encoded, got, err, want)
		}
		if got, err := jsonscan.String(encoded); err != nil || got != want {
			t.Errorf("String reads %s as %q (%v), want %q", encoded, got, err, want)
		}
		least := len(want) + 2
		for _, r := range want {
			switch {
			case strings.ContainsRune("\"\\\b\f\n\r\t", r):
				least++
			case r < ' ':
				least += len(`\u0000`) - 1
			}
		}
		if len(encoded) != least {
			t.Errorf("AppendString wrote %d bytes, want %d: %s", len(encoded), least, encoded)
		}
	})
}
