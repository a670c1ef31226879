package pawl_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
)

// Items are read by the exact names of their members and keep their bytes in every view (S8.8, S8.2).
func TestItemsAreReadByExactNames(t *testing.T) {
	const (
		call    = `{"Type":"message","type":"function_call","TYPE":7,"call_id":"c1","Call_ID":"c9","name":"charge","Name":"drop","arguments":"{\"cents\":5}","Arguments":"{}"}`
		message = `{"Content":"no","content":[{"Text":"no","type":"output_text","text":"yes","Type":"refusal","refusal":"no"}],"type":"message","ROLE":"user","role":"assistant","content ":1}`
		strange = `{"Type":"function_call","call_id":"c2","name":"charge","arguments":"{}"}`
	)
	var e effects
	m := newScript(items(item.FromTrusted(strange), item.FromTrusted(call)), items(item.FromTrusted(message)))
	sess := session.NewMemory("s")
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("hi"), &pawl.RunOptions{Session: sess}))
	if res.FinalOutput != "yes" {
		t.Errorf("final output %q", res.FinalOutput)
	}
	e.want(t, "charge 5")
	var parsed pawl.RunState
	if err := json.Unmarshal(marshal(t, res.State()), &parsed); err != nil {
		t.Fatal(err)
	}
	held, err := sess.Items(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]item.Item{"result": res.ToInputList(), "document": parsed.Result().ToInputList(), "session": held} {
		var got []string
		for _, it := range list {
			if raw := it.Raw(); raw == call || raw == message || raw == strange {
				got = append(got, raw)
			}
		}
		if diff := cmp.Diff([]string{strange, call, message}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Arguments under a name in other letters, or under a name that is there twice, are refused before a rule or the body sees
// them (S8.8): encoding/json would read either into the field.
func TestArgumentsAreReadByExactNames(t *testing.T) {
	for args, want := range map[string]string{
		`{"Cents":5}`:           `The arguments cannot be used: unknown field "Cents"; the fields are: cents`,
		`{"cents":5,"CENTS":9}`: `The arguments cannot be used: unknown field "CENTS"; the fields are: cents`,
		`{"cents":5,"cents":9}`: ``,
	} {
		t.Run(args, func(t *testing.T) {
			var e effects
			ruled := func(f *pawl.Func[charge, string]) {
				f.Approve = func(context.Context, *pawl.Call, charge) (pawl.Gate, error) {
					t.Error("the rule is asked")
					return pawl.Allow, nil
				}
			}
			m := newScript(calling(fc("c1", "charge", args)), says("done"))
			var r pawl.Runner
			res := must(t)(r.Run(t.Context(), agentWith(m, charging("charge", &e, nil)), pawl.UserText("hi"), nil))
			e.want(t)
			got := outputs(res.NewItems())
			if want != "" && (len(got) != 1 || got[0] != "c1: "+want) {
				t.Errorf("outputs %q, want %q", got, want)
			}
			m = newScript(calling(fc("c1", "charge", args)))
			res = must(t)(r.Run(t.Context(), agentWith(m, charging("charge", &e, ruled)), pawl.UserText("hi"), nil))
			if in := res.State().Interruptions(); len(in) != 1 || !in[0].Unreadable {
				t.Errorf("interruptions %+v", in)
			}
			e.want(t)
		})
	}
}

// encoding/json takes a member in other letters for the one that was asked for, and a tree of maps forgets how often a name
// stood there. So it decodes in few places: values that a schema has admitted, and what is compared with itself written again.
// Tests, programs of ours and what only they read are free.
func TestNothingDecodesLoosely(t *testing.T) {
	mayDecode := map[string]bool{"internal/schema": true, "journal/audit": true}
	for dir, p := range parseModule(t) {
		switch first, _, _ := strings.Cut(dir, "/"); {
		case mayDecode[dir], first == "cmd", first == "bench", dir == "internal/bench", dir == "internal/chaos", dir == "pawltest", dir == "scenarios":
			continue
		}
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if x, isName := selected(s); ok && isName && x == "json" && (s.Sel.Name == "Unmarshal" || s.Sel.Name == "NewDecoder") {
					t.Errorf("%s: decodes with encoding/json; use internal/jsonscan", p.fset.Position(n.Pos()))
				}
				return true
			})
		}
	}
}
