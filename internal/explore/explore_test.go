package explore

import (
	"flag"
	"runtime/debug"
	"strings"
	"testing"
)

var (
	faults = flag.Int("faults", 1, "how many faults on one path are explored")
	only   = flag.String("only", "", "explore the scenario of this name only")
	opens  = flag.Int("opens", 2, "how many drives of a run are explored")
)

// Whatever goes wrong, and in whatever order, no rule is broken and every run comes to its end.
func TestExplore(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	seen := map[string]int{}
	for _, sc := range Scenarios() {
		if *only != "" && sc.Name != *only {
			continue
		}
		r := Explore(sc, Bound{Faults: *faults, Opens: *opens}, Whole)
		t.Log(r)
		if r.Broken != "" {
			t.Errorf("%s: %s\n%s", sc.Name, r.Broken, strings.Join(r.Trace, "\n"))
		}
		if r.States < 400 {
			t.Errorf("%s: only %d states", sc.Name, r.States)
		}
		for what, n := range r.Seen {
			seen[what] += n
		}
	}
	if *only != "" {
		return
	}
	for _, what := range []string{
		"append: answered", "append: stored, answer lost", "append: lost", "append: lost, stored later",
		"an append arrives late", "a batch arrives late", "reads what became of its append",
		"effects: answered", "effects: stored, answer lost", "effects: lost", "effects: lost, stored later", "effects, and reads the inbox",
		"a body begins", "a body takes effect", "a body takes effect and does not know", "a body ends before it did anything",
		"is left by its driver", "a body that was left takes effect", "the far side answers", "the far side cannot tell",
		"a body asks a person", "a body takes effect and is slow to say so", "a body says what it did", "a body that was left says what it did",
		"claims the run to record what came late", "a result is delivered again",
		"is told to stop", "dies; others see it:", "time passes", "time passes, and a body was too slow", "time passes while the driver sleeps:",
		"the lease is renewed", "releases its claim", "leaves", "sees that the run stands still:", "steps what has come", "steps what has come, and the inbox",
		"somebody decides: approve", "somebody decides: reject", "somebody decides: settle", "somebody decides: retry", "somebody decides: giveup",
		"somebody cancels the run", "claims the run", "reads the ledger",
	} {
		if seen[what] == 0 {
			t.Errorf("never seen: %s", what)
		}
	}
}

// Without one of the rules something is found.
func TestBrokenRulesAreFound(t *testing.T) {
	for _, test := range []struct {
		rules    Broken
		scenario string
		want     string // part of what is found
	}{
		{NoFence, "a call at most once", "a record was stored under epoch 1, and 2 was granted"},
		{NoComparison, "a call at most once", "the ledger: pawl: fact 3 (*journal.Started) does not follow from the ledger"},
		{StartsBeforeDurable, "a call at most once", "the body of t1.0.1 is entered without an intent"},
		{NoLookAtTheClock, "an idempotent call", "the body of t1.0.1 is entered under epoch 1, and 2 was granted"},
		{TakesSilenceForDeath, "a person settles what a zombie may still do", "call t1.0.0 happened 2 times"},
		{TakesErrorForSuccess, "approval, then a call", "the body of t1.0.1 is entered without an intent"},
		{AppendsAgain, "a session elsewhere", "the session has\n[{\"role\":\"user\",\"content\":\"go\"} {\"role\":\"user\",\"content\":\"go\"}]"},
		{SaysNotExecuted, "a call at most once", "call t1.0.0 happened 2 times"},
		{ActsApart, "a call in the store's transaction", "call t1.0.0 happened, and the ledger does not say that it may have"},
		{ForgetsWhatRuns, "a call that its driver leaves running", "call t1.0.0 happened 2 times"},
		{TakesSilenceForNo, "a call that the far side is asked about", "call t1.0.0 happened 2 times"},
		{RecordsAgain, "a late result of a call that the far side is asked about", "the ledger: the result of t1.0.1 is recorded twice"},
	} {
		for _, sc := range Scenarios() {
			if sc.Name != test.scenario {
				continue
			}
			r := Explore(sc, Bound{Faults: 1, Opens: 2}, test.rules)
			if !strings.Contains(r.Broken, test.want) {
				t.Errorf("%s without rule %d: found %q, want %q\n%s", sc.Name, test.rules, r.Broken, test.want, strings.Join(r.Trace, "\n"))
			}
			if len(r.Trace) == 0 {
				t.Errorf("%s without rule %d: nothing says how", sc.Name, test.rules)
			}
		}
	}
}
