package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
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

type payment struct {
	To    string `json:"to"`
	Cents int    `json:"cents"`
}

// run is a run of an agent that pays: to Ann with other arguments, not to Bob, to Cid as to all after him, to Dan for that
// reason.
func run(t testing.TB) []journal.Record {
	t.Helper()
	say := func(list ...[2]string) pawltest.ScriptedStep {
		items := []item.Item{item.MessageItem("", "I will pay.")}
		for _, c := range list {
			items = append(items, item.FunctionCallItem("", c[0], "pay", c[1]))
		}
		return pawltest.ScriptedItems(items...)
	}
	agent := &pawl.Agent{Name: "Treasurer", Model: pawltest.NewScriptedModel(
		say([2]string{"call_ann", `{"to": "Ann", "cents": 100}`}, [2]string{"call_bob", `{"to":"Bob","cents":200}`}),
		say([2]string{"call_cid", `{"to":"Cid","cents":300}`}),
		say([2]string{"call_dan", `{"to":"Dan","cents":400}`}),
		pawltest.ScriptedText("Paid."),
	), Tools: []pawl.Tool{pawl.NewTool(pawl.Func[payment, string]{Name: "pay", Approve: pawl.AlwaysAsk[payment],
		Run: func(_ context.Context, _ *pawl.Call, in payment) (string, error) {
			return "paid " + in.To + " \x1b[31m\u202e\u2028<b>", nil
		}})}}
	store := journal.NewMemory()
	r := pawl.Runner{Store: store}
	res, err := r.Run(t.Context(), agent, pawl.UserText("Pay them. I tell you a secret."), &pawl.RunOptions{ID: "pay-1"})
	for err == nil && res.Status == pawl.StatusWaiting {
		s := res.State()
		for _, in := range s.Interruptions() {
			d := pawl.Approve(in.ID, "ada")
			switch in.CallID {
			case "call_ann":
				d = pawl.Edit(in.ID, "ada", `{"cents":50,"to":"Ann"}`)
				d.Why = "half is enough"
			case "call_bob":
				d = pawl.Reject(in.ID, "ada", "Not Bob.")
			case "call_cid":
				d.Always = true
			}
			if err := s.Decide(d); err != nil {
				t.Fatal(err)
			}
		}
		res, err = r.Resume(t.Context(), agent, s, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	records, err := store.Read(t.Context(), "pay-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// frozen is such a run as it was exported once. Its proofs are the same in every process, and what was exported goes on
// being read.
func frozen(t testing.TB) []journal.Record {
	t.Helper()
	text, err := os.ReadFile("testdata/pay-1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, records, err := audit.ReadExport(text)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func proofOf(t testing.TB, records []journal.Record, n, p int) *audit.Proof {
	t.Helper()
	proof, err := audit.Prove("pay-1", records, journal.EffectID{Kind: journal.EffectTool, N: n, P: p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func document(t testing.TB, p *audit.Proof) []byte {
	t.Helper()
	text, err := p.Document()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func headOf(t testing.TB, records []journal.Record) hash {
	t.Helper()
	h, err := audit.HeadOf("pay-1", records)
	if err != nil {
		t.Fatal(err)
	}
	return h.Hash()
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

// What a proof shows, without the times.
func TestProofHolds(t *testing.T) {
	t.Run("now", func(t *testing.T) { holds(t, run(t)) })
	t.Run("frozen", func(t *testing.T) { holds(t, frozen(t)) })
}

func holds(t *testing.T, records []journal.Record) {
	for _, c := range []struct {
		n, p int
		want []string
	}{
		{1, 1, []string{`arguments  {"cents":100,"to":"Ann"}`, `the model calls "pay", call id "call_ann"`, `its rule says ask`,
			`"approve", by "ada", at TIME, why half is enough, args {"cents":50,"to":"Ann"}`, `attempt 1 begins`,
			`attempt 1 ends: done, output "The reviewer changed the arguments to {\"cents\":50,\"to\":\"Ann\"}.\npaid Ann \u001b[31m��<b>"`}},
		{1, 2, []string{`arguments  {"cents":200,"to":"Bob"}`, `the model calls "pay", call id "call_bob"`, `its rule says ask`,
			`"reject", by "ada", at TIME, text Not Bob.`, `settled without an attempt: rejected, output "Not Bob."`}},
		{2, 1, []string{`arguments  {"cents":300,"to":"Cid"}`, `the model calls "pay", call id "call_cid"`, `its rule says ask`, `"approve", by "ada", at TIME`,
			`attempt 1 begins`, `attempt 1 ends: done, output "paid Cid \u001b[31m��<b>"`}},
		{3, 1, []string{`arguments  {"cents":400,"to":"Dan"}`, `a standing decision on "t2.1.0", a call of the same tool: "approve", by "ada", at TIME`,
			`the model calls "pay", call id "call_dan"`, `its rule says ask`, `attempt 1 begins`, `attempt 1 ends: done, output "paid Dan \u001b[31m��<b>"`}},
	} {
		p := proofOf(t, records, c.n, c.p)
		var out strings.Builder
		if err := verify(&out, document(t, p), headOf(t, records)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(times.ReplaceAllString(out.String(), "TIME")) {
			said, isFact := strings.CutPrefix(strings.TrimSpace(line), "TIME  fact ")
			if isFact {
				_, said, _ = strings.Cut(said, ": ")
			}
			if isFact || strings.HasPrefix(line, "arguments") {
				got = append(got, said)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%d.%d: -want +got:\n%s", c.n, c.p, diff)
		}
		calls, err := audit.Calls("pay-1", records)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(calls, func(k audit.Call) bool { return k.ID.N == c.n && k.ID.P == c.p })
		if !strings.Contains(out.String(), "key        "+calls[i].Key+"\n") {
			t.Errorf("%d.%d: not with the key %s:\n%s", c.n, c.p, calls[i].Key, &out)
		}
		for _, r := range out.String() {
			if r == 0x1b || r == 0x202e || r == 0x2028 {
				t.Errorf("%d.%d: the terminal gets %q", c.n, c.p, r)
			}
		}
	}
}

// A proof may be indented or not.
func TestWhiteSpaceIsFree(t *testing.T) {
	records := frozen(t)
	text := document(t, proofOf(t, records, 1, 1))
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{text, append(text, "\r\n"...), compact.Bytes()} {
		if err := verify(new(strings.Builder), text, headOf(t, records)); err != nil {
			t.Error(err)
		}
	}
}

// Each byte of a proof counts (S10.7).
func TestEveryChangeIsRefused(t *testing.T) {
	records := frozen(t)
	head := headOf(t, records)
	text := document(t, proofOf(t, records, 1, 2))
	for i := range text {
		for _, with := range []byte{text[i] ^ 1<<(i%8), text[i] ^ 0x20} {
			changed := bytes.Clone(text)
			changed[i] = with
			if err := verify(new(strings.Builder), changed, head); err == nil {
				t.Fatalf("byte %d, %q, changed to %q: no error", i, text[max(0, i-20):i+1], with)
			}
		}
	}
	for i := 0; i < len(text); i += 7 {
		if err := verify(new(strings.Builder), text[:i], head); err == nil {
			t.Fatalf("the first %d bytes: no error", i)
		}
	}
	for i := range head {
		other := head
		other[i] ^= 1 << (i % 8)
		if err := verify(new(strings.Builder), text, other); err == nil || !strings.Contains(err.Error(), "another head") {
			t.Errorf("against another head: %v", err)
		}
	}
}

// What is in the ledger, and is not what the proof says it is.
func TestOtherFactsAreRefused(t *testing.T) {
	records := frozen(t)
	head := headOf(t, records)
	ann, bob := func() *audit.Proof { return proofOf(t, records, 1, 1) }, proofOf(t, records, 1, 2)
	dan := proofOf(t, records, 3, 1)
	pick := func(p *audit.Proof, kind journal.Kind) audit.ProvenFact {
		return p.Facts[slices.IndexFunc(p.Facts, func(f audit.ProvenFact) bool { return f.Record.Kind == kind })]
	}
	without := func(kind journal.Kind) func(*audit.Proof) {
		return func(p *audit.Proof) {
			p.Facts = slices.DeleteFunc(p.Facts, func(f audit.ProvenFact) bool { return f.Record.Kind == kind })
		}
	}
	with := func(f audit.ProvenFact) func(*audit.Proof) {
		return func(p *audit.Proof) {
			p.Facts = append(p.Facts, f)
			slices.SortStableFunc(p.Facts, func(a, b audit.ProvenFact) int { return int(a.Fact) - int(b.Fact) })
		}
	}
	for name, change := range map[string]func(*audit.Proof){
		"no facts":                        func(p *audit.Proof) { p.Facts = nil },
		"only the response":               func(p *audit.Proof) { p.Facts = p.Facts[:1] },
		"no response":                     without(journal.KindResponded),
		"no plan":                         without(journal.KindPlanned),
		"no approval of what was changed": func(p *audit.Proof) { p.Arguments = `{"cents":50,"to":"Ann"}` },
		"another's decision":              with(pick(bob, journal.KindDecided)),
		"another's outcome":               with(pick(bob, journal.KindSettled)),
		"another's response":              with(pick(dan, journal.KindResponded)),
		"a fact twice":                    with(pick(bob, journal.KindPlanned)),
		"another order":                   func(p *audit.Proof) { p.Facts[2], p.Facts[3] = p.Facts[3], p.Facts[2] },
		"another call":                    func(p *audit.Proof) { p.Call = "1.2" },
		"a message as a call":             func(p *audit.Proof) { p.Call = "1.0" },
		"a call behind the end":           func(p *audit.Proof) { p.Call = "1.9" },
		"a call of no response":           func(p *audit.Proof) { p.Call = "0.1" },
		"a negative call":                 func(p *audit.Proof) { p.Call = "1.-1" },
		"a call of another form":          func(p *audit.Proof) { p.Call = "01.1" },
		"another number":                  func(p *audit.Proof) { p.Facts[2].Fact++ },
		"number 0":                        func(p *audit.Proof) { p.Facts[0].Fact = 0 },
		"a longer path":                   func(p *audit.Proof) { p.Facts[0].Path = append(p.Facts[0].Path, p.Root) },
		"no path":                         func(p *audit.Proof) { p.Facts[0].Path = nil },
		"a shorter path":                  func(p *audit.Proof) { p.Facts[0].Path = p.Facts[0].Path[1:] },
		"a frame":                         func(p *audit.Proof) { p.Facts[0].Record.Frame = "x" },
		"a salt of another length":        func(p *audit.Proof) { p.Facts[0].Record.Salt += "AA" },
		"a salt that is none":             func(p *audit.Proof) { p.Facts[0].Record.Salt = "?" },
		"a root that is none":             func(p *audit.Proof) { p.Root = "xyz" },
		"a smaller ledger":                func(p *audit.Proof) { p.Size-- },
		"another run":                     func(p *audit.Proof) { p.Run = "pay-2" },
		"another schema":                  func(p *audit.Proof) { p.Schema = "pawl.proof/2" },
	} {
		p := ann()
		change(p)
		if err := verify(new(strings.Builder), document(t, p), head); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	text := string(document(t, ann()))
	for name, changed := range map[string]string{
		"nothing":             "",
		"null":                "null",
		"a member twice":      strings.Replace(text, `"run":`, `"run":"pay-1","run":`, 1),
		"a member in capital": strings.Replace(text, `"run":`, `"RUN":`, 1),
		"a member more":       strings.Replace(text, `"run":`, `"more":1,"run":`, 1),
		"another escape":      strings.Replace(text, `"pay-1"`, `"\u0070ay-1"`, 1),
		"something behind":    text + "{}",
	} {
		if err := verify(new(strings.Builder), []byte(changed), head); err == nil || changed == text {
			t.Errorf("%s: no error", name)
		}
	}
}

// A member that differs only in case does not change what a call is called: Pawl reads the exact one.
func TestExactMembersCount(t *testing.T) {
	var o object
	if err := json.Unmarshal([]byte(`{"name":"refund","Name":"look","NAME":7}`), &o); err != nil {
		t.Fatal(err)
	}
	if o.text("name") != "refund" || o.text("none") != "" || o.number("name") != 0 {
		t.Errorf("name %q", o.text("name"))
	}
}

func TestReadHead(t *testing.T) {
	records := frozen(t)
	want := headOf(t, records)
	digits := hex.EncodeToString(want[:])
	h, _ := audit.HeadOf("pay-1", records)
	line, _ := h.MarshalJSON()
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, arg := range []string{digits, file("hash", digits+"\n"), file("head", string(line)), file("export", "{}\n"+string(line)+"\n")} {
		if got, err := readHead(arg); err != nil || got != want {
			t.Errorf("%s: %x, %v", arg, got, err)
		}
	}
	for _, arg := range []string{"", digits[1:], strings.ToUpper(digits), filepath.Join(dir, "none"), file("empty", ""), file("json", "{}"),
		file("edited", strings.Replace(string(line), "pay-1", "pay-2", 1)),
		file("twice", strings.Replace(string(line), `{"`, `{"run":"pay-2","`, 1)), file("case", strings.Replace(string(line), `"run"`, `"Run"`, 1)),
		file("more", strings.Replace(string(line), `{"`, `{"HEAD":"","`, 1)), file("other", strings.Replace(string(line), "head/1", "head/2", 1))} {
		if _, err := readHead(arg); err == nil {
			t.Errorf("%s: no error", arg)
		}
	}
}

func FuzzVerify(f *testing.F) {
	records := frozen(f)
	head := headOf(f, records)
	good := map[string]bool{}
	for _, c := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {3, 1}} {
		p := proofOf(f, records, c[0], c[1])
		good[p.Arguments] = true
		f.Add(document(f, p))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if verify(new(strings.Builder), text, head) != nil {
			return
		}
		p, err := parse(text)
		if err != nil || p.Run != "pay-1" || !good[p.Arguments] {
			t.Errorf("a proof that nobody wrote holds: %s", text)
		}
	})
}
