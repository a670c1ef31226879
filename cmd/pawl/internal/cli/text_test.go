package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
)

// What a model writes cannot steer the terminal, nor pass for the command's own words.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain, ünïcode, 日本":      "plain, ünïcode, 日本",
		"line\nand\ttab":          "line\nand\ttab",
		"\x1b[2J\x1b]0;title\x07": "�[2J�]0;title�",
		"a\rb\bc\x7f\u009b31m":    "a�b�c��31m",
		"\u202egnp.exe\u2066x":    "�gnp.exe�x",
		"a\u2028b":                "a�b",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestInterruptionCannotSteer(t *testing.T) {
	var out bytes.Buffer
	newScreen(&out, false).interruption(pawl.Interruption{Kind: pawl.ApprovalNeeded, Tool: "pay\x1b[8m", Arguments: "{\"to\x1b\":\"a\x1b[2K\rb\"}"})
	if bytes.ContainsAny(out.Bytes(), "\x1b\r") {
		t.Errorf("printed %q", out.String())
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"ticket-1001": "ticket-1001", "./a/b.db": "./a/b.db", "": "''", "a b": "'a b'", "3.1#0": "'3.1#0'", "it's": `'it'\''s'`, "$(x)": "'$(x)'",
	} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 20, "one two three"},
		{"one two three", 7, "one two\nthree"},
		{"one two three", 8, "one two\nthree"},
		{"ünï çødé three", 8, "ünï çødé\nthree"},
		{"abcdefghijkl m", 5, "abcdefghijkl\nm"},
		{"abcdefghijkl", 5, "abcdefghijkl"},
		{"a bcdefghijkl mn op", 5, "a\nbcdefghijkl\nmn op"},
		{"one\ntwo three\n", 5, "one\ntwo\nthree"},
		{"", 5, ""},
	} {
		if got := wrap(tt.text, tt.width); got != tt.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestCallText(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1,"a":"x y"}`: `pay(b=1, a="x y")`,
		`{}`:                `pay()`,
		`{"a":`:             `pay({"a":)`,
		`[1]`:               `pay([1])`,
		``:                  `pay()`,
	} {
		if got := callText("pay", in); got != want {
			t.Errorf("callText(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine("a  b\n c", 10); got != "a b c" {
		t.Errorf("got %q", got)
	}
	if got := oneLine("ääääääääää", 8); got != "äääää..." {
		t.Errorf("got %q", got)
	}
}

func TestValueLike(t *testing.T) {
	for _, tt := range []struct {
		old, answer, want string
		ok                bool
	}{
		{`"x"`, `plain words`, `"plain words"`, true},
		{`"x"`, `"quoted"`, `"quoted"`, true},
		{`"x"`, `"half`, `"\"half"`, true},
		{`"x"`, `12`, `"12"`, true},
		{`1`, `12`, `12`, true},
		{`1`, `1e2`, `1e2`, true},
		{`1`, `twelve`, ``, false},
		{`1`, `"1"`, `"1"`, false},
		{`true`, `false`, `false`, true},
		{`true`, `1`, `1`, false},
		{`null`, `1`, `1`, true},
		{`[1]`, `[2,3]`, `[2,3]`, true},
		{`{"a":1}`, `{"a":2}`, `{"a":2}`, true},
	} {
		if got, ok := valueLike(tt.old, tt.answer); got != tt.want || ok != tt.ok {
			t.Errorf("valueLike(%s, %s) = %s, %v; want %s, %v", tt.old, tt.answer, got, ok, tt.want, tt.ok)
		}
	}
}

// Where a line is short texts are wrapped to it, and a table becomes a list.
func TestNarrow(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, false)
	s.width = 40
	s.entry(plain, "model", "Both complaints are covered: the article and the fee.")
	s.columns([]string{"run", "status"}, [][]string{{"ticket-1", "waiting"}})
	s.columns([]string{"run", "last change"}, [][]string{{"ticket-1", "2026-11-30 08:58:33"}, {"", "of a run that has a very long name"}})
	want := `  model     Both complaints are covered:
            the article and the fee.
  run       status
  ticket-1  waiting
  run          ticket-1
  last change  2026-11-30 08:58:33

  last change  of a run that has a very
               long name
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s.width = 5; s.room(labelWidth) != narrow {
		t.Errorf("%d characters for a text", s.room(labelWidth))
	}
	if s.width = 0; s.room(labelWidth) != textWidth {
		t.Errorf("%d characters for a text", s.room(labelWidth))
	}
}
