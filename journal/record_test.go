package journal_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/journal"
)

func confirmed() journal.Record {
	salt := [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	return journal.Encode(journal.Fact{Frame: "a/é", Time: -5, Body: &journal.Confirmed{N: 1, Upto: 3}}, salt)
}

// The hash was computed by another program from the definition in S8.6.
func TestLeafHash(t *testing.T) {
	r := confirmed()
	const want = "dcbad04ad8b2e642b26512ce45e21ffdcec5b37fc5f7cc65999f460ae7efc60f"
	if got := hex.EncodeToString(r.Hash[:]); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

func TestVerifyRefusesAnyChange(t *testing.T) {
	for name, change := range map[string]func(*journal.Record){
		"kind":    func(r *journal.Record) { r.Kind = journal.KindJudged },
		"version": func(r *journal.Record) { r.Version = 2 },
		"frame":   func(r *journal.Record) { r.Frame = "" },
		"time":    func(r *journal.Record) { r.Time++ },
		"payload": func(r *journal.Record) { r.Payload = `{"n":1,"upto":4}` },
		"salt":    func(r *journal.Record) { r.Salt[15]++ },
		"hash":    func(r *journal.Record) { r.Hash[31]++ },
		"border":  func(r *journal.Record) { r.Kind, r.Frame = "confirm", "ed"+r.Frame },
	} {
		r := confirmed()
		change(&r)
		if err := r.Verify(); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%s changed: Verify() = %v, want ErrCorrupt", name, err)
		}
	}
}

// S8.7
func TestRecordJSON(t *testing.T) {
	r := confirmed()
	const want = `{"k":"confirmed","f":"a/é","t":-5,"s":"AAECAwQFBgcICQoLDA0ODw","h":"3LrQStiy5kKyZRLOReIf_c7Fs3_F98xlmZ9GCufvxg8","p":"{\"n\":1,\"upto\":3}"}`
	text := journal.AppendRecordJSON([]byte("x"), &r)
	if string(text) != "x"+want {
		t.Errorf("got  %s\nwant x%s", text, want)
	}
	got, err := journal.ReadRecordJSON(text[1:])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// S8.2, in a document
func TestRecordJSONKeepsBytes(t *testing.T) {
	for _, version := range []int{1, 7} {
		r := journal.Encode(journal.Fact{Body: &journal.Loaded{Items: items(oddItem)}}, [16]byte{1})
		r.Version = version
		r.Hash = journal.LeafHash(&r)
		got, err := journal.ReadRecordJSON(journal.AppendRecordJSON(nil, &r))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// A document passes through databases and tools that know only its meaning.
func TestRecordJSONSurvivesReformatting(t *testing.T) {
	r := journal.Encode(journal.Fact{Frame: "<a & b>", Body: &journal.Loaded{Items: items(oddItem)}}, [16]byte{1})
	text := journal.AppendRecordJSON(nil, &r)
	for name, reformat := range map[string]func() ([]byte, error){
		"indented": func() ([]byte, error) {
			var b bytes.Buffer
			err := json.Indent(&b, text, "", "\t")
			return b.Bytes(), err
		},
		"escaped for HTML": func() ([]byte, error) { return json.Marshal(json.RawMessage(text)) },
		"as a map": func() ([]byte, error) {
			var m map[string]any
			if err := json.Unmarshal(text, &m); err != nil {
				return nil, err
			}
			return json.Marshal(m)
		},
	} {
		changed, err := reformat()
		if err != nil {
			t.Fatal(name, err)
		}
		if bytes.Equal(changed, text) {
			t.Fatalf("%s: nothing changed", name)
		}
		got, err := journal.ReadRecordJSON(changed)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestReadRecordJSONRefuses(t *testing.T) {
	r := confirmed()
	good := string(journal.AppendRecordJSON(nil, &r))
	for name, tt := range map[string]struct {
		old, new string
		want     error
	}{
		"member":      {`{"k"`, `{"z":1,"k"`, journal.ErrNewerJournal},
		"twice":       {`,"p"`, `,"p":"{}","p"`, journal.ErrCorrupt},
		"twice, same": {`{"k"`, `{"k":"confirmed","k"`, journal.ErrCorrupt},
		"other case":  {`{"k"`, `{"K":"started","k"`, journal.ErrNewerJournal},
		"payload":     {`{\"n\":1`, `{\"n\":2`, journal.ErrCorrupt},
		"white space": {`{\"n\":1,`, `{ \"n\":1,`, journal.ErrCorrupt},
		"no payload":  {`,"p":"{\"n\":1,\"upto\":3}"`, ``, journal.ErrCorrupt},
		"raw payload": {`"{\"n\":1,\"upto\":3}"`, `{"n":1,"upto":3}`, journal.ErrCorrupt},
		"short salt":  {`"AAECAwQFBgcICQoLDA0ODw"`, `"AAEC"`, journal.ErrCorrupt},
		"long salt":   {`"AAECAwQFBgcICQoLDA0ODw"`, `"AAECAwQFBgcICQoLDA0ODxAR"`, journal.ErrCorrupt},
		"base64":      {`"AAECAwQFBgcICQoLDA0ODw"`, `"AAECAwQFBgcICQoLDA0OD!"`, journal.ErrCorrupt},
		"bits":        {`"AAECAwQFBgcICQoLDA0ODw"`, `"AAECAwQFBgcICQoLDA0ODx"`, journal.ErrCorrupt},
		"time":        {`-5`, `"-5"`, journal.ErrCorrupt},
		"kind":        {`"confirmed"`, `7`, journal.ErrCorrupt},
		"array":       {good, `[]`, journal.ErrCorrupt},
		"nothing":     {good, ``, journal.ErrCorrupt},
		"more":        {good, good + good, journal.ErrCorrupt},
	} {
		text := strings.Replace(good, tt.old, tt.new, 1)
		if text == good {
			t.Fatalf("%s: nothing replaced", name)
		}
		got, err := journal.ReadRecordJSON([]byte(text))
		if !errors.Is(err, tt.want) || got != (journal.Record{}) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, tt.want)
		}
	}
}
