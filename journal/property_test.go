package journal_test

import (
	"math"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// words are the values of the types that have a fixed set of them.
var words = map[reflect.Type][]string{
	reflect.TypeFor[journal.Class]():     {"", "idempotent", "readonly", "transactional"},
	reflect.TypeFor[journal.OnUnknown](): {"", "tell", "wait"},
	reflect.TypeFor[journal.Gate]():      {"", "ask", "deny"},
	reflect.TypeFor[journal.Final]():     {"", "message", "empty", "refusal", "invalid"},
	reflect.TypeFor[journal.Guards]():    {"", "blocking", "parallel", "both"},
	reflect.TypeFor[journal.Handles]():   {"", "max_turns", "refusal", "invalid_output"},
	reflect.TypeFor[journal.Verdict]():   {"", "approve", "reject", "settle", "retry", "giveup"},
	reflect.TypeFor[journal.Outcome]():   {"", "failed", "unknown", "notexecuted", "pending", "asks", "rejected", "decreed", "dropped"},
}

// fill sets every field that v reaches, so that a field the encoding forgets is found.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case item.Item:
		v.Set(reflect.ValueOf(drawItem(t)))
		return
	case journal.EffectID:
		v.Set(reflect.ValueOf(drawEffect(t)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		known, ok := words[v.Type()]
		if !ok {
			v.SetString(rapid.String().Draw(t, "text"))
			return
		}
		v.SetString(rapid.SampledFrom(known).Draw(t, "word"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Int64Range(-2, 2), rapid.Int64()).Draw(t, "number"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "epoch"))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, "byte")))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, "length"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			fillAll(t, v)
		}
	case reflect.Array:
		fillAll(t, v)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no way to fill a %s", v.Type())
	}
}

func fillAll(t *rapid.T, v reflect.Value) {
	for i := range v.Len() {
		fill(t, v.Index(i))
	}
}

func drawItem(t *rapid.T) item.Item {
	raw := []byte(rapid.SampledFrom([]string{`{"type":"x","t":`, "{\n \"t\" :\t", `{"z":[1.0e3,-0,null],"t":`}).Draw(t, "head"))
	raw = jsonscan.AppendString(raw, rapid.String().Draw(t, "text"))
	raw = append(raw, rapid.SampledFrom([]string{`}`, " }", `,"u":"\u0041\ud83d\ude00\/"}`}).Draw(t, "tail")...)
	it, err := item.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func drawEffect(t *rapid.T) journal.EffectID {
	if rapid.Bool().Draw(t, "zero") {
		return journal.EffectID{}
	}
	number := rapid.IntRange(0, math.MaxInt32)
	return journal.EffectID{Kind: journal.EffectKind(rapid.SampledFrom([]byte("lpmctjsrwevxgokh")).Draw(t, "kind")),
		N: number.Draw(t, "n"), P: number.Draw(t, "p"), A: number.Draw(t, "a")}
}

func drawFact(t *rapid.T) journal.Fact {
	zero := encodings[rapid.IntRange(0, len(encodings)-1).Draw(t, "kind")].body
	body := reflect.New(reflect.TypeOf(zero).Elem())
	fill(t, body.Elem())
	if p, ok := body.Interface().(*journal.Prepared); ok && p.Manifest != nil {
		p.Manifest.ToolUse = rapid.SampledFrom([]string{"", "first", "names", "custom"}).Draw(t, "use")
	}
	return journal.Fact{
		Frame: rapid.String().Draw(t, "frame"),
		Time:  rapid.Int64().Draw(t, "time"),
		Body:  body.Interface().(journal.Body),
	}
}

func drawSalt(t *rapid.T) [16]byte {
	return [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "salt"))
}

func TestEveryFactComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFact(t)
		r := journal.Encode(f, drawSalt(t))
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
		if err := jsonscan.Valid(r.Payload, 600); err != nil {
			t.Fatalf("%v in %s", err, r.Payload)
		}
		got, err := journal.Decode(r)
		if err != nil {
			t.Fatalf("%v in %s", err, r.Payload)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Fatalf("%s\n-want +got:\n%s", r.Payload, diff)
		}
		if again := journal.Encode(got, r.Salt); again != r {
			t.Fatalf("encoded again: %v, want %v", again, r)
		}
		read, err := journal.ReadRecordJSON(journal.AppendRecordJSON(nil, &r))
		if err != nil || read != r {
			t.Fatalf("as JSON: %v, %v, want %v", read, err, r)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, e := range encodings {
		f.Add(string(e.body.Kind()), e.payload)
	}
	f.Add("cancelled", `{"by":"\u0000"}`)
	f.Fuzz(func(t *testing.T, kind, payload string) {
		r := journal.Record{Kind: journal.Kind(kind), Version: 1, Payload: payload}
		fact, err := journal.Decode(r)
		if err != nil {
			return
		}
		if got := string(journal.AppendPayload(nil, fact.Body)); got != payload {
			t.Errorf("accepted %s, which encodes as %s", strconv.Quote(payload), strconv.Quote(got))
		}
	})
}

func FuzzReadRecordJSON(f *testing.F) {
	for _, e := range encodings {
		r := journal.Encode(journal.Fact{Frame: "f", Time: 1, Body: e.body}, [16]byte{1})
		f.Add(journal.AppendRecordJSON(nil, &r))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := journal.ReadRecordJSON(value)
		if err != nil {
			return
		}
		again, err := journal.ReadRecordJSON(journal.AppendRecordJSON(nil, &r))
		if err != nil || again != r {
			t.Errorf("read %v, written and read again: %v, %v", r, again, err)
		}
	})
}
