package item_test

import (
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/item"
)

// functionCall is about 400 bytes, as the service sends them.
const functionCall = `{"id":"fc_67ca09c6bedc8190a7abfec07b1a1332096610f474011cc0","type":"function_call","status":"completed",` +
	`"arguments":"{\"order\":\"A-1009\",\"cents\":8000,\"reason\":\"arrived broken, photo attached by the customer, carrier informed\",` +
	`\"notify\":[\"customer@example.org\",\"carrier@example.org\"],\"ticket\":\"T-4711\"}",` +
	`"call_id":"call_fpkNZbBYvWQFbTHEFdnEwGgj","name":"refund","namespace":"billing"}`

func TestAllocations(t *testing.T) {
	it := item.FromTrusted(functionCall)
	parts := item.MessageItem("msg_1", "hello")
	tests := []struct {
		name string
		most float64
		run  func()
	}{
		{"Type", 0, func() { _ = it.Type() }},
		{"Head", 0, func() { _ = it.Head() }},
		{"NeedsOutput", 0, func() { _ = it.NeedsOutput() }},
		{"FunctionCall", 1, func() { _, _ = it.FunctionCall() }}, // the arguments have escapes
		{"Message", 1, func() { _, _ = parts.Message() }},        // the list of parts
		{"ParseString", 0, func() { _, _ = item.ParseString(functionCall) }},
		{"Parse", 1, func() { _, _ = item.Parse([]byte(`{"role":"user"}`)) }},
	}
	for _, tt := range tests {
		if got := testing.AllocsPerRun(100, tt.run); got > tt.most {
			t.Errorf("%s allocates %v times, want at most %v", tt.name, got, tt.most)
		}
	}
}

func BenchmarkType(b *testing.B) {
	it := item.FromTrusted(functionCall)
	b.ReportAllocs()
	for b.Loop() {
		_ = it.Type()
	}
}

func BenchmarkHead(b *testing.B) {
	it := item.FromTrusted(functionCall)
	b.ReportAllocs()
	for b.Loop() {
		_ = it.Head()
	}
}

func BenchmarkFunctionCall(b *testing.B) {
	it := item.FromTrusted(functionCall)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := it.FunctionCall(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	raw := []byte(functionCall)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := item.Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigestArguments(b *testing.B) {
	call, err := item.FromTrusted(functionCall).FunctionCall()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(call.Arguments)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := item.DigestArguments(call.Arguments); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFunctionOutput(b *testing.B) {
	output := strings.Repeat("a line of some tool's output\n", 40)
	b.SetBytes(int64(len(output)))
	b.ReportAllocs()
	for b.Loop() {
		_ = item.FunctionOutput("call_fpkNZbBYvWQFbTHEFdnEwGgj", output)
	}
}
