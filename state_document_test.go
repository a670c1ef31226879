package pawl_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// pausedState is the state of a run that waits for two decisions, one of them staged.
func pausedState(t *testing.T) *pawl.RunState {
	t.Helper()
	var e effects
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":6}`), fc("c3", "look", `{"cents":1}`)))
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agentWith(m, charging("charge", &e, asking), charging("look", &e, nil)),
		pawl.UserText("pay <b> \u2028 \"both\""), &pawl.RunOptions{ID: "run-1"}))
	s := res.State()
	d := pawl.Reject(s.Interruptions()[0].ID, "ann", "too much")
	d.Why = "policy"
	if err := s.Decide(d); err != nil {
		t.Fatal(err)
	}
	return s
}

func marshal(t *testing.T, s *pawl.RunState) []byte {
	t.Helper()
	doc, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// A document survives what JSON tools do to one.
func TestStateSurvivesJSONTools(t *testing.T) {
	s := pausedState(t)
	doc := marshal(t, s)
	for name, through := range map[string]func() ([]byte, error){
		"as it is": func() ([]byte, error) { return doc, nil },
		"marshal":  func() ([]byte, error) { return json.Marshal(s) },
		"indent": func() ([]byte, error) {
			var b bytes.Buffer
			err := json.Indent(&b, doc, " ", "\t")
			return b.Bytes(), err
		},
		"compact": func() ([]byte, error) {
			var b bytes.Buffer
			err := json.Compact(&b, doc)
			return b.Bytes(), err
		},
		"html escape": func() ([]byte, error) {
			var b bytes.Buffer
			json.HTMLEscape(&b, doc)
			return b.Bytes(), nil
		},
		"map": func() ([]byte, error) {
			var m map[string]any
			if err := json.Unmarshal(doc, &m); err != nil {
				return nil, err
			}
			return json.MarshalIndent(m, "", "  ")
		},
		"member of a struct": func() ([]byte, error) {
			outer, err := json.Marshal(struct{ State *pawl.RunState }{s})
			if err != nil {
				return nil, err
			}
			var in struct{ State pawl.RunState }
			if err := json.Unmarshal(outer, &in); err != nil {
				return nil, err
			}
			return in.State.MarshalJSON()
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := through()
			if err != nil {
				t.Fatal(err)
			}
			read, err := pawl.ParseRunState(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(doc), string(marshal(t, read))); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

// Damage anywhere is an error of this package or changes nothing that counts.
func TestStateDamaged(t *testing.T) {
	doc := marshal(t, pausedState(t))
	meaning := func(s *pawl.RunState) string {
		var list []string
		for _, in := range s.Interruptions() {
			list = append(list, fmt.Sprintf("%+v", in))
		}
		return fmt.Sprint(s.Run(), s.Status(), s.Facts(), s.Result().ToInputList(), list)
	}
	whole, err := pawl.ParseRunState(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := meaning(whole)
	check := func(what string, data []byte) (read bool) {
		s, err := pawl.ParseRunState(data)
		switch {
		case err == nil:
			if got := meaning(s); got != want {
				t.Errorf("%s: read as another run\n%s\n%s", what, got, data)
			}
		case !errors.Is(err, pawl.ErrState) && !errors.Is(err, pawl.ErrNewerState):
			t.Errorf("%s: %v", what, err)
		}
		return err == nil
	}
	for n := range doc {
		if check(fmt.Sprintf("cut at %d", n), doc[:n]) {
			t.Errorf("a document cut at %d of %d is read", n, len(doc))
		}
	}
	read := 0
	for n := range doc {
		for _, bit := range []byte{1, 0x20, 0x80} {
			damaged := bytes.Clone(doc)
			damaged[n] ^= bit
			if check(fmt.Sprintf("bit %#x of byte %d flipped", bit, n), damaged) {
				read++
			}
		}
	}
	// What is not under a hash is the status and the epoch, and what is staged.
	if limit := len("waiting") + 1 + len(doc) - bytes.Index(doc, []byte(`"staged"`)); read > 3*limit {
		t.Errorf("%d of %d damaged documents are read, want at most %d", read, 3*len(doc), 3*limit)
	}
}

// Edits that a person might make are refused.
func TestStateEdited(t *testing.T) {
	doc := string(marshal(t, pausedState(t)))
	member := func(name string) string {
		i := strings.Index(doc, `"`+name+`":`)
		if i < 0 {
			t.Fatalf("no member %s in\n%s", name, doc)
		}
		return doc[i:]
	}
	facts := func(change func([]json.RawMessage) []json.RawMessage) string {
		var d map[string]json.RawMessage
		if err := json.Unmarshal([]byte(doc), &d); err != nil {
			t.Fatal(err)
		}
		var list []json.RawMessage
		if err := json.Unmarshal(d["facts"], &list); err != nil {
			t.Fatal(err)
		}
		list = change(list)
		d["facts"], _ = json.Marshal(list)
		d["head"] = json.RawMessage(fmt.Sprint(len(list)))
		edited, _ := json.Marshal(d)
		return string(edited)
	}
	replace := func(old, new string) string {
		if !strings.Contains(doc, old) {
			t.Fatalf("no %s in\n%s", old, doc)
		}
		return strings.Replace(doc, old, new, 1)
	}
	for name, tt := range map[string]struct {
		doc  string
		want error
	}{
		"empty":                     {"", pawl.ErrState},
		"null":                      {"null", pawl.ErrState},
		"a list":                    {"[]", pawl.ErrState},
		"an object":                 {"{}", pawl.ErrState},
		"another schema":            {replace(pawl.StateSchema, "someone.else/1"), pawl.ErrState},
		"a future schema":           {replace(pawl.StateSchema, "pawl.run/2"), pawl.ErrNewerState},
		"far future":                {`{"schema":"pawl.run/999","facts":7}`, pawl.ErrNewerState},
		"unknown member":            {replace(`{"schema"`, `{"sealed":true,"schema"`), pawl.ErrNewerState},
		"schema twice":              {replace(`{"schema"`, `{"schema":"pawl.run/2","schema"`), pawl.ErrState},
		"schema twice, behind":      {doc[:len(doc)-1] + `,"schema":"pawl.run/1"}`, pawl.ErrState},
		"two documents":             {doc + doc, pawl.ErrState},
		"another run":               {replace(`"run":"run-1"`, `"run":"run-2"`), pawl.ErrState},
		"another head":              {replace(member("head")[:8], `"head":9`), pawl.ErrState},
		"facts missing":             {facts(func(l []json.RawMessage) []json.RawMessage { return l[:0] }), pawl.ErrState},
		"first fact missing":        {facts(func(l []json.RawMessage) []json.RawMessage { return l[1:] }), pawl.ErrState},
		"a fact twice":              {facts(func(l []json.RawMessage) []json.RawMessage { return slices.Insert(l, 1, l[0]) }), pawl.ErrState},
		"facts swapped":             {facts(func(l []json.RawMessage) []json.RawMessage { l[0], l[1] = l[1], l[0]; return l }), pawl.ErrState},
		"a fact is no object":       {facts(func(l []json.RawMessage) []json.RawMessage { l[1] = []byte("7"); return l }), pawl.ErrState},
		"an argument":               {replace(`\"cents\\\":5`, `\"cents\\\":9`), pawl.ErrState},
		"unknown verdict":           {replace(`"verdict":"reject"`, `"verdict":"retract"`), pawl.ErrNewerState},
		"verdict that does not fit": {replace(`"verdict":"reject"`, `"verdict":"retry"`), pawl.ErrState},
		"another call":              {replace(`"interruption":"1.0#0"`, `"interruption":"1.2#0"`), pawl.ErrState},
		"no call":                   {replace(`"interruption":"1.0#0"`, `"interruption":"x"`), pawl.ErrState},
		"member of a decision":      {replace(`"always":false`, `"always":false,"signature":"x"`), pawl.ErrNewerState},
		"verdict twice":             {replace(`"always":false`, `"verdict":"reject","always":false`), pawl.ErrState},
		"verdict in other letters":  {replace(`"always":false`, `"Verdict":"approve","always":false`), pawl.ErrNewerState},
		"payload twice":             {replace(`"p":`, `"p":"{}","p":`), pawl.ErrState},
		"kind in other letters":     {replace(`{"k":`, `{"K":"started","k":`), pawl.ErrNewerState},
		"deep":                      {`{"schema":` + strings.Repeat("[", 100_000), pawl.ErrState},
		"deep and whole":            {replace(`"always":false`, `"x":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), pawl.ErrState},
		"bad UTF-8":                 {replace("policy", "\xff"), pawl.ErrState},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := pawl.ParseRunState([]byte(tt.doc))
			if !errors.Is(err, tt.want) || s != nil {
				t.Errorf("%v, want %v", err, tt.want)
			}
			before := pausedState(t)
			doc := marshal(t, before)
			if err := before.UnmarshalJSON([]byte(tt.doc)); !errors.Is(err, tt.want) || !bytes.Equal(doc, marshal(t, before)) {
				t.Errorf("UnmarshalJSON: %v; the state is changed", err)
			}
		})
	}
}

// An empty state can be asked, and does nothing.
func TestEmptyState(t *testing.T) {
	var s pawl.RunState
	if s.Run() != "" || s.AgentKey() != "" || s.SessionID() != "" || s.Facts() != 0 || s.Interruptions() != nil || s.Staged() != nil {
		t.Errorf("an empty state says something: %+v", s)
	}
	s.Status()
	s.Result().ToInputList()
	if _, err := s.MarshalJSON(); !errors.Is(err, pawl.ErrState) {
		t.Errorf("MarshalJSON: %v", err)
	}
	if _, err := s.Fork("f"); !errors.Is(err, pawl.ErrFork) {
		t.Errorf("Fork: %v", err)
	}
	if err := s.Decide(pawl.Approve("1.0#0", "ann")); !errors.Is(err, pawl.ErrNotOpen) {
		t.Errorf("Decide: %v", err)
	}
	for _, from := range []pawl.Resumable{&s, (*pawl.RunState)(nil), nil} {
		var r pawl.Runner
		var bad *pawl.ConfigError
		if _, err := r.Resume(t.Context(), agentWith(newScript()), from, nil); !errors.As(err, &bad) {
			t.Errorf("Resume(%v): %v", from, err)
		}
	}
}

// Unknown items and members survive a document to the byte.
func TestStateKeepsBytes(t *testing.T) {
	strange, err := item.ParseString(`{"type":"hologram", "x":1.0e0,"y":{"b":1,"a":"\u00e9é"}, "call_id":null}`)
	if err != nil {
		t.Fatal(err)
	}
	m := newScript(items(strange, fc("c1", "charge", `{"cents":5}`)), says("done"))
	var e effects
	agent := agentWith(m, charging("charge", &e, asking))
	res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.Input{strange, item.UserText("pay")}, nil))
	s := viaJSON(t, viaJSON(t, res.State()))
	if err := s.Approve(s.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	res = must(t)(new(pawl.Runner).Resume(t.Context(), agent, s, nil))
	for i, want := range map[int]pawl.Item{0: strange, 2: strange} {
		if got := res.ToInputList()[i]; got != want {
			t.Errorf("item %d is\n%s, want\n%s", i, got, want)
		}
	}
	sameViews(t, res, m, nil)
}

// A decision is read by the exact names of its members, each of them once (S8.8).
func TestDecisionIsReadExactly(t *testing.T) {
	for _, text := range []string{
		`{"interruption":"1.0#0","verdict":"reject","Verdict":"approve"}`,
		`{"interruption":"1.0#0","verdict":"reject","verdict":"approve"}`,
		`{"interruption":"1.0#0","Verdict":"approve"}`,
		`{"interruption":"1.0#0","verdict":"Approve"}`,
		`{"interruption":"1.0#0","verdict":"approve","always":1}`,
		`{"interruption":"1.0#0","verdict":"approve","approved":true}`,
		`{"interruption":"1.0#0"}`,
		`[]`,
	} {
		d := pawl.Decision{By: "before"}
		if err := json.Unmarshal([]byte(text), &d); !errors.Is(err, pawl.ErrDecision) || d != (pawl.Decision{By: "before"}) {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
	}
}

// A decision is the same JSON on its own as in a document.
func TestDecisionAsJSON(t *testing.T) {
	d := pawl.Decision{Interruption: "1.0#0", Verdict: journal.Approve, By: "ann", Why: "due", Always: true, Arguments: `{"cents":4}`,
		Message: "m", Output: "o", Digest: item.Digest{1}}
	const want = `{"interruption":"1.0#0","verdict":"approve","by":"ann","why":"due","always":true,"arguments":"{\"cents\":4}","message":"m","output":"o",` +
		`"digest":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`
	text, err := json.Marshal(d)
	if err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	var back pawl.Decision
	if err := json.Unmarshal(text, &back); err != nil || back != d {
		t.Errorf("read back as %+v, %v", back, err)
	}
	_, _, s := waiting5(t)
	if err := s.Decide(pawl.Edit("1.0#0", "ann", `{"cents":4}`)); err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct{ Staged []pawl.Decision }
	if err := json.Unmarshal(doc, &whole); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Staged(), whole.Staged); diff != "" {
		t.Errorf("staged (-want +got):\n%s", diff)
	}
}
