package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/audit"
	"github.com/pawl-agents/pawl/pawltest"
)

func export(t *testing.T, run string, records []journal.Record) ([]json.RawMessage, []byte) {
	t.Helper()
	lines, _, err := audit.Export(run, records)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := audit.WriteExport(&buf, lines); err != nil {
		t.Fatal(err)
	}
	return lines, buf.Bytes()
}

// S10.4
func TestExportForm(t *testing.T) {
	_, text := export(t, "r-1", small())
	const want = `{"fact":1,"time":"1970-01-01T00:00:01.000Z","kind":"started","run":"r-1","agent":"A","record":{"k":"started","t":1000,"s":"AQEBAQEBAQEBAQEBAQEBAQ","h":"ol7JzspS2x1MbPx8wFSIINZHh8uXT6aSCYP5Q1OxTL0","p":"{\"run\":\"r-1\",\"agent\":\"A\",\"machine\":1}"}}
{"fact":2,"time":"1970-01-01T00:00:02.000Z","kind":"confirmed","record":{"k":"confirmed","t":2000,"s":"AgICAgICAgICAgICAgICAg","h":"wqu3hzsxbbXY2rGtzNVZGBqIDq84DWklPoHoxvcrI4U","p":"{\"n\":1,\"upto\":3}"}}
{"fact":3,"time":"1970-01-01T00:00:03.000Z","kind":"finished","record":{"k":"finished","t":3000,"s":"AwMDAwMDAwMDAwMDAwMDAw","h":"cKevTHzeF_zUHPap7n74PuDr_RDdxaC8o7_iQTVw4WA","p":"{\"at\":2}"}}
{"schema":"pawl.head/1","run":"r-1","size":3,"root":"3ca8029c75f8adf546ed71bea3601089ac9264e3904e0be766db8a89a93a7094","head":"403c721a4af83783ebd23f7622ed3f939769afe17b7922d4477ac7cfbaf1a51d"}
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A line says who decided what, when and why, about which call with which key.
func TestExportIsReadable(t *testing.T) {
	lines, _ := export(t, "ticket-1", ticket(t))
	var got []string
	for _, l := range lines {
		var v struct {
			Kind, Call, Tool, Verdict, By, Why, Arguments, Message, Outcome, Key, At string
			Attempt                                                                  int
			Always                                                                   bool
		}
		if err := json.Unmarshal(l, &v); err != nil {
			t.Fatal(err)
		}
		switch v.Kind {
		case "decided":
			got = append(got, strings.Join([]string{v.Call, v.Tool, v.Verdict, v.By, v.Why, v.Arguments, v.Message}, "|"))
			if !strings.HasPrefix(v.Key, "pawl_") || v.At == "" || v.Always != (v.Call == "2.1") {
				t.Errorf("the decision on %s has key %q, time %q, always %t", v.Call, v.Key, v.At, v.Always)
			}
		case "settled":
			got = append(got, strings.Join([]string{v.Call, v.Tool, v.Outcome}, "|"))
		}
	}
	slices.Sort(got) // tools run at the same time
	want := []string{
		`1.1|look|done`,
		`1.2|refund|approve|ada|I looked at call_2|{"note":"half","order":9}|`,
		`1.2|refund|done`,
		`1.3|refund|rejected`,
		`1.3|refund|reject|bob|I looked at call_3||Not this one.`,
		`1.4|burn|rejected`,
		`1.5|refund|approve|ada|I looked at call_5||`,
		`1.5|refund|rejected`,
		`2.1|refund|approve|ada|I looked at call_6||`,
		`2.1|refund|done`,
		`3.1|refund|done`,
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// S10.5
func TestReadExport(t *testing.T) {
	records := ticket(t)
	_, text := export(t, "ticket-1", records)
	run, got, err := audit.ReadExport(text)
	if err != nil || run != "ticket-1" {
		t.Fatal(run, err)
	}
	if diff := cmp.Diff(records, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// What a JSON tool may do to a line changes nothing.
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	var v any
	if err := json.Unmarshal(first, &v); err != nil {
		t.Fatal(err)
	}
	if _, _, err := audit.ReadExport([]byte(toJSON(t, v) + "\r\n" + string(rest))); err != nil {
		t.Errorf("with its members in another order: %v", err)
	}
}

// Nothing in an export can be changed, what people read least of all. [S10.5]
func TestReadExportRefusesAnyChange(t *testing.T) {
	_, text := export(t, "r-1", append(small(), journal.Encode(journal.Fact{Time: 4000, Body: &journal.Decided{Call: call(1, 2), Verdict: journal.Approve,
		By: "ada", Why: "she knows him", Arguments: `{"cents":5}`, At: 3999}}, [16]byte{4})))
	for at := range len(text) - 1 { // without the last line feed
		for _, bit := range []byte{1, 0x20, 0x80} {
			changed := bytes.Clone(text)
			changed[at] ^= bit
			if run, got, err := audit.ReadExport(changed); err == nil {
				t.Fatalf("byte %d, %q, changed: run %q, %d records, no error", at, text[max(0, at-20):at+1], run, len(got))
			} else if !errors.Is(err, journal.ErrCorrupt) && !errors.Is(err, journal.ErrNewerJournal) {
				t.Fatalf("byte %d changed: %v, want ErrCorrupt or ErrNewerJournal", at, err)
			}
		}
	}
}

// S10.5
func TestReadExportRefuses(t *testing.T) {
	lines, text := export(t, "ticket-1", ticket(t))
	replace := func(old, with string) []byte {
		out := bytes.Replace(text, []byte(old), []byte(with), 1)
		if bytes.Equal(out, text) {
			t.Fatalf("the export has no %s", old)
		}
		return out
	}
	join := func(lines ...json.RawMessage) []byte {
		var buf bytes.Buffer
		_ = audit.WriteExport(&buf, lines)
		return buf.Bytes()
	}
	n := len(lines)
	for name, c := range map[string]struct {
		text []byte
		want error
	}{
		"nothing":                   {nil, journal.ErrCorrupt},
		"only the head":             {join(lines[n-1]), journal.ErrCorrupt},
		"no head":                   {join(lines[:n-1]...), journal.ErrCorrupt},
		"a line less":               {join(append(slices.Clone(lines[:3]), lines[4:]...)...), journal.ErrCorrupt},
		"two lines exchanged":       {join(append([]json.RawMessage{lines[0], lines[2], lines[1]}, lines[3:]...)...), journal.ErrCorrupt},
		"a line twice":              {join(append([]json.RawMessage{lines[0], lines[0]}, lines[1:]...)...), journal.ErrCorrupt},
		"the head of a beginning":   {join(append(slices.Clone(lines[:5]), lines[n-1])...), journal.ErrCorrupt},
		"somebody else by":          {replace(`"by":"ada"`, `"by":"eve"`), journal.ErrCorrupt},
		"a second by":               {replace(`"by":"ada"`, `"by":"ada","by":"eve"`), journal.ErrCorrupt},
		"another BY":                {replace(`"by":"ada"`, `"by":"ada","BY":"eve"`), journal.ErrNewerJournal},
		"a decision that is always": {replace(`"by":"ada"`, `"by":"ada","always":true`), journal.ErrCorrupt},
		"a line that is no object":  {replace(`{"fact":2,`, `[`), journal.ErrCorrupt},
		"a line without its number": {replace(`{"fact":2,`, `{`), journal.ErrCorrupt},
	} {
		if _, _, err := audit.ReadExport(c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzReadExport(f *testing.F) {
	lines, _, err := audit.Export("r-1", small())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Join([][]byte{lines[0], lines[1], lines[2], lines[3]}, []byte("\n")))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		run, records, err := audit.ReadExport(text)
		if err != nil {
			return
		}
		if _, err := audit.HeadOf(run, records); err != nil {
			t.Errorf("what was read has no head: %v", err)
		}
	})
}

// A nested run's calls and decisions are named and keyed like those of the run itself. [S10.4]
func TestExportOfNestedRuns(t *testing.T) {
	clerk := desk(calls([3]string{"call_1", "refund", `{"order":9}`}), pawltest.ScriptedText("Refunded."))
	clerk.Name = "Clerk"
	agent := &pawl.Agent{Name: "Manager", Tools: []pawl.Tool{pawl.AgentTool(clerk, nil)},
		Model: pawltest.NewScriptedModel(calls([3]string{"call_1", "clerk", `{"input":"go"}`}), pawltest.ScriptedText("Done."))}
	store := journal.NewMemory()
	var key string
	decide(t, &pawl.Runner{Store: store}, agent, pawl.UserText("Refund me."), func(in pawl.Interruption) pawl.Decision {
		key = in.Key
		return pawl.Approve(in.ID, "ada")
	})
	records, err := store.Read(t.Context(), "ticket-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	lines, text := export(t, "ticket-1", records)
	var got []string
	for _, l := range lines {
		var v struct{ Kind, Frame, Call, Tool, By, Key string }
		if err := json.Unmarshal(l, &v); err != nil {
			t.Fatal(err)
		}
		if v.Call == "" {
			continue
		}
		got = append(got, strings.Join([]string{v.Kind, v.Frame, v.Call, v.Tool, v.By}, "|"))
		if (v.Call == "1.1/1.1") != (v.Key == key) {
			t.Errorf("call %s has the key %s", v.Call, v.Key)
		}
	}
	want := []string{"decided|1.1|1.1/1.1|refund|ada", "intended|1.1|1.1/1.1|refund|", "settled|1.1|1.1/1.1|refund|", "settled||1.1|clerk|"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, read, err := audit.ReadExport(text); err != nil || len(read) != len(records) {
		t.Errorf("%d of %d records, %v", len(read), len(records), err)
	}
}
