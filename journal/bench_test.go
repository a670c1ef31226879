package journal_test

import (
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// turn is what a turn with one call adds to a ledger.
func turn() []journal.Fact {
	const now = 1764444000123
	args := `{\"order\":\"A-1001\",\"amount\":\"12.50\",\"reason\":\"` + strings.Repeat("damaged ", 20) + `\"}`
	return []journal.Fact{
		{Time: now, Body: &journal.Prepared{N: 12, Upto: 57, Same: 1}},
		{Time: now, Body: &journal.Responded{
			ID:         id('m', 12, 0, 1),
			ResponseID: "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
			RequestID:  "req_0123456789abcdef0123456789abcdef",
			Items: items(`{"id":"rs_1","type":"reasoning","summary":[]}`,
				`{"id":"fc_1","type":"function_call","call_id":"call_1","name":"refund","arguments":"`+args+`","status":"completed"}`),
			Usage: &journal.Usage{Input: 1200, Cached: 1100, Output: 80, Reasoning: 64, Total: 1280},
		}},
		{Time: now, Body: &journal.Planned{N: 12, Calls: []journal.PlannedCall{{P: 1, Tool: 2, Digest: digest}}}},
		{Time: now, Body: &journal.Intended{ID: id('t', 12, 1, 1), NotAfter: now + 600000}},
		{Time: now, Body: &journal.Settled{ID: id('t', 12, 1, 1), Output: item.FunctionOutput("call_1", strings.Repeat("refunded ", 60))}},
	}
}

// A ledger is the items and little else. This pins how little, of which 89 bytes
// are the provider's ids.
func TestTurnIsSmall(t *testing.T) {
	payloads, raw := 0, 0
	for _, f := range turn() {
		payloads += len(journal.Encode(f, [16]byte{}).Payload)
		switch b := f.Body.(type) {
		case *journal.Responded:
			for _, it := range b.Items {
				raw += len(it.Raw())
			}
		case *journal.Settled:
			raw += len(b.Output.Raw())
		}
	}
	if got := payloads - raw; got != 385 {
		t.Errorf("a turn is %d bytes beside its items, want 385", got)
	}
}

func BenchmarkEncodeTurn(b *testing.B) {
	facts := turn()
	salts := make([]byte, 16*len(facts))
	b.ReportAllocs()
	for b.Loop() {
		journal.EncodeAll(facts, salts)
	}
}

func records(turns int) []journal.Record {
	var recs []journal.Record
	for range turns {
		for _, f := range turn() {
			recs = append(recs, journal.Encode(f, [16]byte{1}))
		}
	}
	return recs
}

func BenchmarkDecode5000(b *testing.B) {
	recs := records(1000)
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range recs {
			if _, err := journal.Decode(r); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkVerify5000(b *testing.B) {
	recs := records(1000)
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range recs {
			if err := r.Verify(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
