package audit_test

import (
	"context"
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
	"github.com/pawl-agents/pawl/journal/audit"
	"github.com/pawl-agents/pawl/pawltest"
)

func call(n, p int) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectTool, N: n, P: p}
}

func kindsOf(p *audit.Proof) string {
	var list []string
	for _, f := range p.Facts {
		list = append(list, string(f.Record.Kind))
	}
	return strings.Join(list, " ")
}

// S10.6: what is in a proof, and nothing else.
func TestProve(t *testing.T) {
	records := ticket(t)
	for _, c := range []struct {
		n, p             int
		arguments, kinds string
	}{
		{1, 1, `{"order":9}`, "responded planned intended settled"},
		{1, 2, `{"order":9}`, "responded planned decided intended settled"},
		{1, 3, `{"note":"no","order":8}`, "responded planned decided settled"},
		{1, 4, `{"order":1}`, "responded planned settled"},
		{1, 5, `{"order":`, "responded planned decided settled"},
		{2, 1, `{"order":7}`, "responded planned decided intended settled"},
		{3, 1, `{"order":6}`, "decided responded planned intended settled"}, // the sticky decision on 2.1
	} {
		p, err := audit.Prove("ticket-1", records, call(c.n, c.p), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := kindsOf(p); got != c.kinds || p.Arguments != c.arguments || p.Call != fmt.Sprintf("%d.%d", c.n, c.p) {
			t.Errorf("%d.%d: %s %s has %s, want %s with %s", c.n, c.p, p.Call, p.Arguments, got, c.arguments, c.kinds)
		}
		h := headOf(t, records)
		if p.Run != "ticket-1" || p.Size != h.Size || p.Root != fmt.Sprintf("%x", h.Root) {
			t.Errorf("%s: for %s, %d, %s", p.Call, p.Run, p.Size, p.Root)
		}
		text, err := p.Document()
		if err != nil || strings.Contains(string(text), "Refund me.") || strings.Contains(string(text), "settings") {
			t.Errorf("%s: the proof has the input or a manifest: %v", p.Call, err)
		}
	}
}

// A call that a sticky decision let run, and that somebody settled: both are in its proof (S10.6).
func TestProveOfAStickyCallThatWasSettled(t *testing.T) {
	store := journal.NewMemory()
	r := pawl.Runner{Store: store}
	lost := func(context.Context, *pawl.Call, order) (string, error) { return "", pawl.ErrOutcomeUnknown }
	agent := &pawl.Agent{Name: "Desk", Model: pawltest.NewScriptedModel(calls([3]string{"call_1", "refund", `{"order":9}`}), calls([3]string{"call_2", "refund", `{"order":8}`}), calls()),
		Tools: []pawl.Tool{pawl.NewTool(pawl.Func[order, string]{Name: "refund", Approve: pawl.AlwaysAsk[order], Run: lost})}}
	res, err := r.Run(t.Context(), agent, pawl.UserText("Refund me."), &pawl.RunOptions{ID: "ticket-1"})
	if err != nil {
		t.Fatal(err)
	}
	always := pawl.Approve(res.Interruptions[0].ID, "ada")
	always.Always = true
	if err := r.Decide(t.Context(), "ticket-1", always); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(t.Context(), agent, pawl.RunID("ticket-1"), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Decide(t.Context(), "ticket-1", pawl.Settle("2.1#1", "bob", "the money is there")); err != nil {
		t.Fatal(err)
	}
	records, err := store.Read(t.Context(), "ticket-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := audit.Prove("ticket-1", records, call(2, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "decided responded planned intended settled decided"; kindsOf(p) != want {
		t.Errorf("facts %s, want %s", kindsOf(p), want)
	}
}

// S10.6: what the model's server asked whether it may do is answered, and nothing was begun here.
func TestProveOfAHostedCall(t *testing.T) {
	ask := func(id, args string) item.Item {
		return item.FromTrusted(fmt.Sprintf(`{"type":"mcp_approval_request","id":%q,"server_label":"crm","name":"drop","arguments":%q}`, id, args))
	}
	store := journal.NewMemory()
	agent := &pawl.Agent{Name: "Desk", Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(ask("m1", `{"order": 9}`), ask("m2", "{}")), pawltest.ScriptedText("Done."))}
	decide(t, &pawl.Runner{Store: store}, agent, pawl.UserText("Drop it."), func(in pawl.Interruption) pawl.Decision {
		if in.CallID == "m2" {
			return pawl.Reject(in.ID, "bob", "Not this one.")
		}
		return pawl.Approve(in.ID, "ada")
	})
	records, err := store.Read(t.Context(), "ticket-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	for at, arguments := range []string{`{"order":9}`, `{}`} {
		p, err := audit.Prove("ticket-1", records, call(1, at), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := "responded planned decided settled"; kindsOf(p) != want || p.Arguments != arguments {
			t.Errorf("facts %s with %s, want %s", kindsOf(p), p.Arguments, want)
		}
	}
	lines, _ := export(t, "ticket-1", records)
	var said []string
	for _, l := range lines {
		var v struct{ Kind, Tool, Output, Outcome string }
		if err := json.Unmarshal(l, &v); err != nil {
			t.Fatal(err)
		}
		if v.Kind == "settled" {
			said = append(said, v.Tool+" "+v.Outcome+": "+v.Output)
		}
	}
	if diff := cmp.Diff([]string{"drop decreed: approved", "drop rejected: not approved: Not this one."}, said); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// S10.6: against a head that was kept, with what it covers.
func TestProveAgainstAnchor(t *testing.T) {
	records := ticket(t)
	at := slices.IndexFunc(records, func(r journal.Record) bool { return strings.Contains(r.Payload, `"id":"t1.2.1"`) })
	h := headOf(t, records[:at+1])
	for form, a := range anchors(h) {
		p, err := audit.Prove("ticket-1", records, call(1, 2), &a)
		if err != nil {
			t.Fatal(err)
		}
		if got := kindsOf(p); got != "responded planned decided intended" || p.Size != h.Size {
			t.Errorf("against the %s: %s of %d facts", form, got, p.Size)
		}
		if _, err := audit.Prove("ticket-1", records, call(2, 1), &a); !errors.Is(err, audit.ErrNoCall) {
			t.Errorf("a call behind the %s: %v, want ErrNoCall", form, err)
		}
		if _, err := audit.Prove("ticket-1", ticket(t), call(1, 2), &a); !errors.Is(err, audit.ErrMismatch) {
			t.Errorf("against the %s of another ledger: %v, want ErrMismatch", form, err)
		}
	}
	for _, id := range []journal.EffectID{call(1, 0), call(1, 9), call(4, 0), call(9, 1), {}} {
		if _, err := audit.Prove("ticket-1", records, id, nil); !errors.Is(err, audit.ErrNoCall) {
			t.Errorf("%s: %v, want ErrNoCall", id, err)
		}
	}
}

// A fork makes what is open its own; what ran before it is the other run's. [S10.6]
func TestProveFork(t *testing.T) {
	store := journal.NewMemory()
	r := pawl.Runner{Store: store}
	agent := desk(calls([3]string{"call_1", "look", `{"order":9}`}, [3]string{"call_2", "refund", `{"order":9}`}))
	res, err := r.Run(t.Context(), agent, pawl.UserText("Refund me."), &pawl.RunOptions{ID: "ticket-1"})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := res.State().Fork("ticket-2")
	if err != nil {
		t.Fatal(err)
	}
	if err := fork.Approve(fork.Interruptions()[0], "ada"); err != nil {
		t.Fatal(err)
	}
	key := fork.Interruptions() // decided
	if len(key) != 0 {
		t.Fatal("the fork still waits")
	}
	if _, err := r.Resume(t.Context(), desk(calls()), fork, nil); err != nil {
		t.Fatal(err)
	}
	records, err := store.Read(t.Context(), "ticket-2", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Prove("ticket-2", records, call(1, 2), nil); err != nil {
		t.Error(err)
	}
	if _, err := audit.Prove("ticket-2", records, call(1, 1), nil); !errors.Is(err, audit.ErrNoCall) || !strings.Contains(err.Error(), `"ticket-1"`) {
		t.Errorf("a call of before the fork: %v, want ErrNoCall that names ticket-1", err)
	}
	list, err := audit.Calls("ticket-2", records)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range list {
		got = append(got, strings.Join([]string{c.Name(), c.Tool, c.CallID, c.Run}, " "))
	}
	if diff := cmp.Diff([]string{"1.1 look call_1 ticket-1", "1.2 refund call_2 ticket-2"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want := res.State().Interruptions()[0].Key; list[1].Key == want {
		t.Error("the fork's call has the other run's key")
	}
}

// A third party checks the document with the program pawl-verify and a head that it kept.
func ExampleProve() {
	records := small() // from journal.Driver.Read
	_, err := audit.Prove("r-1", records, journal.EffectID{Kind: journal.EffectTool, N: 3, P: 2}, nil)
	fmt.Println(err)
	// Output: pawl: the run has no such call: 3.2, in its first 3 facts
}
