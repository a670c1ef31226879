package item_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
)

func TestCanonical(t *testing.T) {
	tests := []struct {
		args, want, err string
	}{
		{`{}`, `{}`, ""},
		{" {\n} ", `{}`, ""},
		{`{"b": 1, "a": [ {"d": null, "c": "x"} ]}`, `{"a":[{"c":"x","d":null}],"b":1}`, ""},
		{`{"n":12345678901234567890.10,"m":1e2,"z":-0}`, `{"m":1e2,"n":12345678901234567890.10,"z":-0}`, ""},
		{`{"\u0062":"\u00e9\/\ud83d\ude00","a":"\u0000\u000a"}`, `{"a":"\u0000\n","b":"é/😀"}`, ""},
		{`{"é":1,"z":2,"Z":3,"aa":4,"a":5}`, `{"Z":3,"a":5,"aa":4,"z":2,"é":1}`, ""},

		{``, "", "pawl: unreadable arguments: invalid JSON at offset 0: unexpected end"},
		{`  `, "", "pawl: unreadable arguments: invalid JSON at offset 2: unexpected end"},
		{`null`, "", "pawl: unreadable arguments: want a JSON object"},
		{`[1]`, "", "pawl: unreadable arguments: want a JSON object"},
		{`"{}"`, "", "pawl: unreadable arguments: want a JSON object"},
		{`{"a":1,"a":1}`, "", "pawl: unreadable arguments: invalid JSON at offset 7: duplicate key"},
		{`{"a":{"b":1,"\u0062":2}}`, "", "pawl: unreadable arguments: invalid JSON at offset 12: duplicate key"},
		{`{"a":NaN}`, "", "pawl: unreadable arguments: invalid JSON at offset 5: want a value"},
		{"{\"a\":\"\xff\"}", "", "pawl: unreadable arguments: invalid JSON at offset 6: invalid UTF-8"},
		{`{"a":"\ud83d"}`, "", "pawl: unreadable arguments: invalid JSON at offset 5: surrogate without its pair"},
		{`{"a":1} {"a":2}`, "", "pawl: unreadable arguments: invalid JSON at offset 8: text after the value"},
		{`{"a":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + `}`, "",
			"pawl: unreadable arguments: invalid JSON at offset 516: nested too deeply"},
	}
	for _, tt := range tests {
		got, err := item.Canonical(tt.args)
		if string(got) != tt.want || message(err) != tt.err {
			t.Errorf("Canonical(%s) = %s, %q, want %s, %q", tt.args, got, message(err), tt.want, tt.err)
		}
		if (err != nil) != errors.Is(err, item.ErrUnreadable) {
			t.Errorf("Canonical(%s): %v does not wrap ErrUnreadable", tt.args, err)
		}
	}
}

// The digests are those of sha256sum, in base64url.
func TestDigestArguments(t *testing.T) {
	tests := []struct {
		args, digest, canonical string
		unreadable              bool
	}{
		{`{}`, "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o", `{}`, false},
		{` { } `, "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o", `{}`, false},
		{`{"a":1,"b":2}`, "QyWM_3g_5wNtikMDP4MK38YOwDc4JHNUisdCuIgpJ3c", `{"a":1,"b":2}`, false},
		{`{"b":2, "\u0061":1}`, "QyWM_3g_5wNtikMDP4MK38YOwDc4JHNUisdCuIgpJ3c", `{"a":1,"b":2}`, false},
		{``, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "", true},
		{`{"a":1,"a":2}`, "HFPuDfexL9TWW5dhIMf6a4R9xB3_1_AzHDI3oc6rF1Y", "", true},
	}
	for _, tt := range tests {
		d, canonical, err := item.DigestArguments(tt.args)
		if d.String() != tt.digest || canonical != tt.canonical || errors.Is(err, item.ErrUnreadable) != tt.unreadable {
			t.Errorf("DigestArguments(%s) = %s, %s, %v, want %s, %s", tt.args, d, canonical, err, tt.digest, tt.canonical)
		}
		if parsed, err := item.ParseDigest(tt.digest); err != nil || parsed != d {
			t.Errorf("ParseDigest(%s) = %s, %v", tt.digest, parsed, err)
		}
	}
}

func TestParseDigestRefuses(t *testing.T) {
	tests := []struct{ s, err string }{
		{"", "pawl: digest of 0 characters, want 43"},
		{"RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o=", "pawl: digest of 44 characters, want 43"},
		{"RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o", "pawl: digest: illegal base64 data at input byte 17"},
		{"RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4p", "pawl: digest: illegal base64 data at input byte 42"}, // stray bits
		{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", "pawl: digest of 31 bytes, want 32"},
	}
	for _, tt := range tests {
		if d, err := item.ParseDigest(tt.s); message(err) != tt.err || !d.IsZero() {
			t.Errorf("ParseDigest(%q) = %s, %q, want the zero Digest, %q", tt.s, d, message(err), tt.err)
		}
	}
}

func TestDigestInEncodingJSON(t *testing.T) {
	d, _, err := item.DigestArguments(`{}`)
	if err != nil || d.IsZero() || !(item.Digest{}).IsZero() {
		t.Fatalf("digest %s of {}, error %v", d, err)
	}
	text, err := json.Marshal(map[string]item.Digest{"d": d})
	if want := `{"d":"RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"}`; err != nil || string(text) != want {
		t.Fatalf("Marshal = %s, %v, want %s", text, err, want)
	}
	var back map[string]item.Digest
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]item.Digest{"d": d}, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
