package jsonscan_test

import (
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/internal/jsonscan"
)

const call = `{"id":"fc_67ca09c6bedc8190a7abfec07b1a1332096610f474011cc0","type":"function_call","status":"completed",` +
	`"arguments":"{\"order\":\"A-1009\",\"cents\":8000,\"reason\":\"arrived broken, photo attached by the customer\"}",` +
	`"call_id":"call_fpkNZbBYvWQFbTHEFdnEwGgj","name":"refund"}`

func TestNoAllocationWithoutEscapes(t *testing.T) {
	data := []byte(call)
	var id []byte
	tests := []struct {
		name string
		run  func() error
	}{
		{"Valid", func() error { return jsonscan.Valid(data, 512) }},
		{"Object", func() error {
			return jsonscan.Object(data, func(key, value []byte) error {
				if string(key) == "id" {
					id = value
				}
				return nil
			})
		}},
		{"Array", func() error { return jsonscan.Array(`[1,"a",{}]`, func(string) error { return nil }) }},
		{"String", func() error { _, err := jsonscan.String(`"fc_67ca09c6bedc8190a7abfec07b1a1332"`); return err }},
		{"Int", func() error { _, err := jsonscan.Int(`1234567`); return err }},
	}
	for _, tt := range tests {
		if err := tt.run(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := testing.AllocsPerRun(100, func() { _ = tt.run() }); got != 0 {
			t.Errorf("%s allocates %v times, want 0", tt.name, got)
		}
	}
	if want := `"fc_67ca09c6bedc8190a7abfec07b1a1332096610f474011cc0"`; string(id) != want {
		t.Errorf("id = %s, want %s", id, want)
	}
}

func BenchmarkValid(b *testing.B) {
	inputs := []struct{ name, data string }{
		{"call", call},
		{"text", `{"type":"message","content":"` + strings.Repeat("The quick brown fox jumps over the lazy dog.\\n", 2000) + `"}`},
		{"cjk", `{"type":"message","content":"` + strings.Repeat("敏捷的棕色狐狸跳过了懒狗。", 2000) + `"}`},
		{"history", "[" + strings.Repeat(call+",", 999) + call + "]"},
	}
	for _, in := range inputs {
		b.Run(in.name, func(b *testing.B) {
			b.SetBytes(int64(len(in.data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := jsonscan.Valid(in.data, 512); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkObject(b *testing.B) {
	b.SetBytes(int64(len(call)))
	b.ReportAllocs()
	for b.Loop() {
		if err := jsonscan.Object(call, func(_, _ string) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendCanonical(b *testing.B) {
	const args = `{"order": "A-1009", "cents": 8000, "reason": "arrived broken, photo attached by the customer"}`
	b.SetBytes(int64(len(args)))
	b.ReportAllocs()
	buf := make([]byte, 0, len(args))
	for b.Loop() {
		if _, err := jsonscan.AppendCanonical(buf, args, 512); err != nil {
			b.Fatal(err)
		}
	}
}
