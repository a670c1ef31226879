package journal_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

const digestText = "AQIDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

var digest = item.Digest{1, 2, 3}

// oddItem has what a careless encoder would rewrite: white space, markup, line
// separators, escapes that are not needed, a number no float holds.
const oddItem = "{ \"type\" : \"x\",\n\"t\":\"<b>&\u2028\\u0041\\/\",\"n\":1.10e+2,\"big\":12345678901234567890 }"

func items(raw ...string) []item.Item {
	var list []item.Item
	for _, s := range raw {
		list = append(list, item.FromTrusted(s))
	}
	return list
}

func id(kind journal.EffectKind, n, p, a int) journal.EffectID {
	return journal.EffectID{Kind: kind, N: n, P: p, A: a}
}

// encodings pins the payload of every kind, with every member set and with none [S8.1].
var encodings = []struct {
	body    journal.Body
	payload string
}{
	{&journal.Started{Run: "r1", Agent: "desk", Digest: digest, Input: items(`{"role":"user","content":"hi"}`),
		Session:      &journal.SessionRef{ID: "s1", Backend: "sqlite", Own: true, Batches: true},
		Conversation: "conv_1", Previous: "resp_0", Auto: true, MaxTurns: 10, Parallel: 4, UniqueCallIDs: true, Machine: 1},
		`{"run":"r1","agent":"desk","digest":"` + digestText + `","input":[{"role":"user","content":"hi"}],` +
			`"session":{"id":"s1","backend":"sqlite","own":true,"batches":true},` +
			`"conv":"conv_1","prev":"resp_0","auto":true,"turns":10,"parallel":4,"unique":true,"machine":1}`},
	{&journal.Started{}, `{}`},
	{&journal.Forked{Run: "r2", Session: &journal.SessionRef{}}, `{"run":"r2","session":{}}`},
	{&journal.Forked{}, `{}`},
	{&journal.Claimed{Epoch: 1<<64 - 1, Owner: journal.Owner{Host: "h", Boot: "b", PID: 7, Start: "99"}, Gone: true},
		`{"epoch":18446744073709551615,"owner":{"host":"h","boot":"b","pid":7,"start":"99"},"gone":true}`},
	{&journal.Claimed{}, `{}`},
	{&journal.Resumed{MaxTurns: -1}, `{"turns":-1}`},
	{&journal.Resumed{}, `{}`},
	{&journal.Loaded{Items: items(oddItem, `{}`), Healed: items(`{"type":"y"}`)},
		`{"items":[` + oddItem + `,{}],"healed":[{"type":"y"}]}`},
	{&journal.Loaded{}, `{}`},
	{&journal.Prepared{N: 1, Upto: 4, Same: 1, Manifest: &journal.Manifest{Agent: "desk", Instructions: "Be <kind>.\n",
		Settings: "d1", ToolUse: "names", StopAt: []string{"a", ""}, Output: "d2", Tools: []journal.ToolSpec{
			{Name: "refund", Identity: "local:refund", Class: journal.Idempotent, Timeout: 600000, OnUnknown: journal.UnknownWait}, {}}}},
		`{"n":1,"upto":4,"manifest":{"agent":"desk","instr":"Be <kind>.\n","settings":"d1",` +
			`"tools":[{"name":"refund","id":"local:refund","class":"idempotent","timeout":600000,"unknown":"wait"},{}],` +
			`"use":"names","stop":["a",""],"output":"d2"},"same":1}`},
	{&journal.Prepared{N: 2, Upto: 6, Same: 1}, `{"n":2,"upto":6,"same":1}`},
	{&journal.Prepared{Manifest: &journal.Manifest{}}, `{"manifest":{}}`},
	{&journal.Intended{ID: id('t', 3, 1, 1), Upto: 5, NotAfter: 1764444600123}, `{"id":"t3.1.1","upto":5,"until":1764444600123}`},
	{&journal.Intended{}, `{}`},
	{&journal.Responded{ID: id('m', 1, 0, 2), ResponseID: "resp_1", RequestID: "req_1", Items: items(oddItem),
		Usage: &journal.Usage{Input: 5, Cached: 4, Output: 3, Reasoning: 2, Total: 8, Raw: `{"a":1}`}},
		`{"id":"m1.0.2","resp":"resp_1","req":"req_1","items":[` + oddItem + `],` +
			`"usage":{"in":5,"cached":4,"out":3,"reason":2,"total":8,"raw":"{\"a\":1}"}}`},
	{&journal.Responded{Usage: &journal.Usage{}}, `{"usage":{}}`},
	{&journal.Responded{}, `{}`},
	{&journal.Planned{N: 1, Final: journal.FinalMessage, FinalAt: 2, Refusal: "no", Calls: []journal.PlannedCall{
		{P: 1, Tool: -1, Digest: digest, Gate: journal.Ask, Unreadable: true, Twin: true, Output: item.FromTrusted(`{"a":1}`), Reject: "denied"}, {}}},
		`{"n":1,"calls":[{"p":1,"tool":-1,"digest":"` + digestText + `","gate":"ask","bad":true,"twin":true,"output":{"a":1},"reject":"denied"},{}],` +
			`"final":"message","at":2,"refusal":"no"}`},
	{&journal.Planned{Calls: []journal.PlannedCall{{Tool: 1}}, Tools: []journal.ToolSpec{{Name: "refund", Class: journal.ReadOnly}, {Name: "drop", Hosted: true}}},
		`{"calls":[{"tool":1}],"tools":[{"name":"refund","class":"readonly"},{"name":"drop","hosted":true}]}`},
	{&journal.Planned{}, `{}`},
	{&journal.Decided{Call: id('t', 1, 0, 0), Stage: 1, Digest: digest, Verdict: journal.Approve, Sticky: true,
		Arguments: `{"x":1}`, Text: "t", By: "ann", Why: "ok", At: 9},
		`{"id":"t1.0.0","stage":1,"digest":"` + digestText + `","verdict":"approve","sticky":true,"args":"{\"x\":1}","text":"t","by":"ann","why":"ok","at":9}`},
	{&journal.Decided{}, `{}`},
	{&journal.Settled{ID: id('t', 1, 0, 1), Outcome: journal.ToolFailed, Output: item.FunctionOutput("c1", "no"), Error: "e", Late: true},
		`{"id":"t1.0.1","outcome":"failed","output":{"type":"function_call_output","call_id":"c1","output":"no"},"error":"e","late":true}`},
	{&journal.Settled{}, `{}`},
	{&journal.Judged{N: 1, Final: true, Text: "done"}, `{"n":1,"final":true,"text":"done"}`},
	{&journal.Judged{}, `{}`},
	{&journal.Confirmed{N: 1, Upto: 3, Found: true}, `{"n":1,"upto":3,"found":true}`},
	{&journal.Confirmed{}, `{}`},
	{&journal.Absent{ID: id('s', 1, 0, 1)}, `{"id":"s1.0.1"}`},
	{&journal.Absent{}, `{}`},
	{&journal.Failed{ID: id('m', 1, 0, 1), Code: "c", Error: "e", Unknown: true, RetryAt: 7},
		`{"id":"m1.0.1","code":"c","error":"e","unknown":true,"retry":7}`},
	{&journal.Failed{}, `{}`},
	{&journal.Fired{ID: id('w', 1, 0, 1)}, `{"id":"w1.0.1"}`},
	{&journal.Fired{}, `{}`},
	{&journal.Cancelled{By: "ann", Why: "enough"}, `{"by":"ann","why":"enough"}`},
	{&journal.Cancelled{}, `{}`},
	{&journal.Finished{Cancelled: true, At: -1, Text: "t"}, `{"cancelled":true,"at":-1,"text":"t"}`},
	{&journal.Finished{}, `{}`},
	{&journal.Prepared{Manifest: &journal.Manifest{Tools: []journal.ToolSpec{
		{Name: "book", Class: journal.Transactional, Recover: true, Expires: 86400000, ExpiryFails: true}, {Expires: -1}}}},
		`{"manifest":{"tools":[{"name":"book","class":"transactional","recover":true,"expires":86400000,"expiryfails":true},{"expires":-1}]}}`},
	{&journal.Settled{ID: id('t', 1, 0, 1), Outcome: journal.Pending}, `{"id":"t1.0.1","outcome":"pending"}`},
	{&journal.Settled{ID: id('t', 1, 0, 2), Outcome: journal.AsksAgain, Error: "Really?"}, `{"id":"t1.0.2","outcome":"asks","error":"Really?"}`},
	{&journal.Settled{ID: id('t', 1, 0, 3), Outcome: journal.Unknown, Running: true}, `{"id":"t1.0.3","outcome":"unknown","running":true}`},
	{&journal.Expired{Call: id('t', 1, 0, 0), Stage: 2}, `{"id":"t1.0.0","stage":2}`},
	{&journal.Expired{}, `{}`},
	{&journal.Cancelled{By: "pawl", Successor: "r2"}, `{"by":"pawl","successor":"r2"}`},
	{&journal.Started{Agent: "desk", OmitReasoningIDs: true, Machine: 1}, `{"agent":"desk","omitids":true,"machine":1}`},
	{&journal.Started{Agent: "desk", Queue: "acme", Priority: -2, Due: 1700000000000, Machine: 1}, `{"agent":"desk","queue":"acme","priority":-2,"due":1700000000000,"machine":1}`},
	{&journal.Started{Agent: "desk", Context: `{"user":"ann"}`, Machine: 1}, `{"agent":"desk","ctx":"{\"user\":\"ann\"}","machine":1}`},
	{&journal.Resumed{MaxTurns: 3, Context: "{}"}, `{"turns":3,"ctx":"{}"}`},
	{&journal.Started{Agent: "desk", Guards: journal.GuardsBoth}, `{"agent":"desk","guards":"both"}`},
	{&journal.Loaded{Items: items(`{}`), View: []journal.Span{{From: 0, Upto: 1}, {Item: item.FromTrusted(oddItem)}, {}}},
		`{"items":[{}],"view":[{"upto":1},{"item":` + oddItem + `},{}]}`},
	{&journal.Prepared{N: 2, Same: 1, View: []journal.Span{{From: 3, Upto: 5}}}, `{"n":2,"same":1,"view":[{"from":3,"upto":5}]}`},
	{&journal.Prepared{Manifest: &journal.Manifest{GuardsInput: true, GuardsOutput: true,
		Handles: []journal.Handles{journal.HandlesMaxTurns, journal.HandlesRefusal, journal.HandlesInvalid}, Tools: []journal.ToolSpec{
			{Name: "ask", Agent: "desk/1", TellFailure: true, Guarded: true}, {Name: "transfer_to_desk", Handoff: "desk/2"}}}},
		`{"manifest":{"tools":[{"name":"ask","agent":"desk/1","tellfailure":true,"guarded":true},{"name":"transfer_to_desk","handoff":"desk/2"}],` +
			`"guardsin":true,"guardsout":true,"handles":["max_turns","refusal","invalid_output"]}}`},
	{&journal.Prepared{Manifest: &journal.Manifest{Instructions: "Be kind.", Prompt: `{"id":"p1"}`, Settings: "d1"}},
		`{"manifest":{"instr":"Be kind.","prompt":"{\"id\":\"p1\"}","settings":"d1"}}`},
	{&journal.Planned{N: 1, Final: journal.FinalRefusal, Refusal: "no"}, `{"n":1,"final":"refusal","refusal":"no"}`},
	{&journal.Planned{N: 1, Final: journal.FinalInvalid, FinalAt: 1, Calls: []journal.PlannedCall{{Checks: []journal.Check{{Name: "pii"}, {}}}}},
		`{"n":1,"calls":[{"checks":[{"name":"pii"},{}]}],"final":"invalid","at":1}`},
	{&journal.Settled{ID: id('t', 1, 0, 1), Checks: []journal.Check{{Name: "pii", Tripped: true, Info: `{"n":1}`}}},
		`{"id":"t1.0.1","checks":[{"name":"pii","tripped":true,"info":"{\"n\":1}"}]}`},
	{&journal.Transferred{N: 1, P: 2, Agent: "desk/2", Output: item.FunctionOutput("c1", "ok"), View: []journal.Span{{Upto: 2}}},
		`{"n":1,"p":2,"agent":"desk/2","output":{"type":"function_call_output","call_id":"c1","output":"ok"},"view":[{"upto":2}]}`},
	{&journal.Transferred{}, `{}`},
	{&journal.Checked{ID: id('k', 1, 0, 1), Checks: []journal.Check{{Name: "pii", Rejected: true, Info: "i"}}, Output: item.FunctionOutput("c1", "no")},
		`{"id":"k1.0.1","checks":[{"name":"pii","rejected":true,"info":"i"}],"output":{"type":"function_call_output","call_id":"c1","output":"no"}}`},
	{&journal.Checked{}, `{}`},
	{&journal.Handled{N: 3, Declined: true, Text: "t", Item: item.FromTrusted(oddItem)}, `{"n":3,"declined":true,"text":"t","item":` + oddItem + `}`},
	{&journal.Handled{}, `{}`},
	{&journal.Added{Items: items(oddItem, `{}`), By: "ann", At: 9}, `{"items":[` + oddItem + `,{}],"by":"ann","at":9}`},
	{&journal.Added{}, `{}`},
	{&journal.Admitted{N: 2}, `{"n":2}`},
	{&journal.Admitted{}, `{}`},
	{&journal.Observed{N: 1<<64 - 1}, `{"n":18446744073709551615}`},
	{&journal.Observed{}, `{}`},
	{&journal.Finished{Cancelled: true, Tripped: true, At: -1}, `{"cancelled":true,"tripped":true,"at":-1}`},
}

func TestEncodings(t *testing.T) {
	for _, e := range encodings {
		f := journal.Fact{Frame: "f", Time: 12, Body: e.body}
		r := journal.Encode(f, [16]byte{5})
		want := journal.Record{Kind: e.body.Kind(), Version: 1, Frame: "f", Time: 12, Payload: e.payload, Salt: [16]byte{5}, Hash: journal.LeafHash(&r)}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("Encode(%s), -want +got:\n%s", e.payload, diff)
		}
		got, err := journal.Decode(r)
		if err != nil {
			t.Errorf("Decode(%s): %v", e.payload, err)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("Decode(%s), -want +got:\n%s", e.payload, diff)
		}
	}
}

// S8.1
func TestEncodeReplacesInvalidText(t *testing.T) {
	r := journal.Encode(journal.Fact{Body: &journal.Cancelled{Why: "a\xffb"}}, [16]byte{})
	if want := `{"why":"a` + "\uFFFD" + `b"}`; r.Payload != want {
		t.Errorf("payload %q, want %q", r.Payload, want)
	}
}

// S8.1, S8.3
func TestDecodeRefuses(t *testing.T) {
	deep := `{"input":[` + strings.Repeat(`{"a":`, 512) + `{}` + strings.Repeat(`}`, 512) + `]}`
	tests := []struct {
		name    string
		kind    journal.Kind
		version int
		payload string
		want    error
		message string
	}{
		{"kind", "dreamt", 1, `{}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: fact "dreamt", version 1`},
		{"version", journal.KindFired, 2, `{}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: fact "fired", version 2`},
		{"version 0", journal.KindFired, 0, `{}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: fact "fired", version 0`},
		{"member", journal.KindFired, 1, `{"id":"w1.0.1","x":1}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: "x": not known here (fact "fired")`},
		{"member inside", journal.KindResponded, 1, `{"usage":{"in":1,"gold":2}}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: "usage": "gold": not known here (fact "responded")`},
		{"member of an element", journal.KindPlanned, 1, `{"calls":[{},{"z":1}]}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: "calls": "z": not known here (fact "planned")`},
		{"word", journal.KindDecided, 1, `{"verdict":"maybe"}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: "verdict": "maybe" is not known here (fact "decided")`},
		{"word of a list", journal.KindPrepared, 1, `{"manifest":{"handles":["rain"]}}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: "manifest": "handles": "rain" is not known here (fact "prepared")`},
		{"member of a span", journal.KindTransferred, 1, `{"view":[{"z":1}]}`, journal.ErrNewerJournal,
			`pawl: the journal was written by a newer version of Pawl: "view": "z": not known here (fact "transferred")`},
		{"empty", journal.KindFired, 1, ``, journal.ErrCorrupt,
			`pawl: the journal is damaged: invalid JSON at offset 0: want an object (fact "fired")`},
		{"cut", journal.KindFired, 1, `{"id":"w1.0.1"`, journal.ErrCorrupt, ""},
		{"more", journal.KindFired, 1, `{} {}`, journal.ErrCorrupt, ""},
		{"white space", journal.KindFired, 1, `{ }`, journal.ErrCorrupt,
			`pawl: the journal is damaged: payload not in the form it is written in (fact "fired")`},
		{"order", journal.KindConfirmed, 1, `{"upto":1,"n":1}`, journal.ErrCorrupt, ""},
		{"twice", journal.KindConfirmed, 1, `{"n":1,"n":1}`, journal.ErrCorrupt, ""},
		{"zero", journal.KindConfirmed, 1, `{"n":0}`, journal.ErrCorrupt, ""},
		{"false", journal.KindConfirmed, 1, `{"found":false}`, journal.ErrCorrupt, ""},
		{"empty text", journal.KindCancelled, 1, `{"by":""}`, journal.ErrCorrupt, ""},
		{"empty list", journal.KindLoaded, 1, `{"items":[]}`, journal.ErrCorrupt, ""},
		{"escape", journal.KindCancelled, 1, `{"by":"\u0041"}`, journal.ErrCorrupt, ""},
		{"name with an escape", journal.KindCancelled, 1, `{"b\u0079":"A"}`, journal.ErrCorrupt, ""},
		{"surrogate", journal.KindCancelled, 1, `{"by":"\ud800"}`, journal.ErrCorrupt, ""},
		{"bytes", journal.KindCancelled, 1, "{\"by\":\"\xff\"}", journal.ErrCorrupt, ""},
		{"type", journal.KindConfirmed, 1, `{"n":"1"}`, journal.ErrCorrupt, ""},
		{"null", journal.KindPrepared, 1, `{"manifest":null}`, journal.ErrCorrupt, ""},
		{"fraction", journal.KindConfirmed, 1, `{"n":1.0}`, journal.ErrCorrupt, ""},
		{"range", journal.KindConfirmed, 1, `{"n":9223372036854775808}`, journal.ErrCorrupt, ""},
		{"epoch", journal.KindClaimed, 1, `{"epoch":-1}`, journal.ErrCorrupt, ""},
		{"digest", journal.KindDecided, 1, `{"digest":"AQID"}`, journal.ErrCorrupt, ""},
		{"effect", journal.KindFired, 1, `{"id":"w1.01.1"}`, journal.ErrCorrupt, ""},
		{"item", journal.KindSettled, 1, `{"output":[]}`, journal.ErrCorrupt, ""},
		{"items", journal.KindLoaded, 1, `{"items":[{},null]}`, journal.ErrCorrupt, ""},
		{"depth", journal.KindStarted, 1, deep, journal.ErrCorrupt, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := journal.Decode(journal.Record{Kind: tt.kind, Version: tt.version, Payload: tt.payload})
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if err != nil && tt.message != "" && err.Error() != tt.message {
				t.Errorf("message %s\nwant    %s", err, tt.message)
			}
			if f.Body != nil {
				t.Errorf("got a body: %v", f.Body)
			}
		})
	}
}

// S8.5
func TestLongPayloadsAreRefused(t *testing.T) {
	room := make([]byte, journal.MaxPayload+1) // never touched, so it costs no memory
	r := journal.Record{Kind: journal.KindCancelled, Version: 1, Payload: unsafe.String(&room[0], len(room))}
	if _, err := journal.Decode(r); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("Decode: %v, want ErrCorrupt", err)
	}
}

func TestParseEffectID(t *testing.T) {
	for s, want := range map[string]journal.EffectID{
		"t3.1.2":            id('t', 3, 1, 2),
		"l0.0.0":            id('l', 0, 0, 0),
		"k2.1.1":            id('k', 2, 1, 1),
		"w2147483647.10.99": id('w', 2147483647, 10, 99),
	} {
		got, err := journal.ParseEffectID(s)
		if err != nil || got != want || got.String() != s {
			t.Errorf("ParseEffectID(%q) = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "t", "t1", "t1.2", "t1.2.", "t1.2.3.4", "z1.2.3", "t+1.2.3", "t01.2.3", "t-1.2.3", "t1..3", "t1.2.2147483648", " t1.2.3", "t1.2.3 "} {
		if got, err := journal.ParseEffectID(s); err == nil {
			t.Errorf("ParseEffectID(%q) = %v, want an error", s, got)
		}
	}
}

// Facts that are encoded together are what each is by itself.
func TestEncodeAll(t *testing.T) {
	facts := turn()
	for range 3 { // more than fit on the stack
		facts = append(facts, facts...)
	}
	var salts []byte
	var want []journal.Record
	for i, f := range facts {
		salt := [16]byte{byte(i), 1}
		salts = append(salts, salt[:]...)
		want = append(want, journal.Encode(f, salt))
	}
	if diff := cmp.Diff(want, journal.EncodeAll(facts, salts)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := journal.EncodeAll(nil, nil); len(got) != 0 {
		t.Errorf("of no facts: %v", got)
	}
}
