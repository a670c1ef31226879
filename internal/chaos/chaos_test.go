package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == workerWord {
		if err := work(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// campaignOf runs a campaign and returns the numbers of its last line.
func campaignOf(t *testing.T, args ...string) (code, kills, runs, effects, violations int) {
	t.Helper()
	var out bytes.Buffer
	code = run(t.Context(), args, &out, &out)
	last := regexp.MustCompile(`(?m)^chaos: (\d+) kills, (\d+) runs, (\d+) effects, (\d+) violations\n\z`).FindStringSubmatch(out.String())
	if last == nil {
		t.Fatalf("exit code %d\n%s", code, &out)
	}
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(last[i+1])
	}
	if n[3] > 0 {
		t.Log(out.String())
	}
	return code, n[0], n[1], n[2], n[3]
}

func TestCampaign(t *testing.T) {
	code, kills, runs, effects, violations := campaignOf(t, "-duration", "5s", "-dir", t.TempDir())
	if code != 0 || kills == 0 || runs == 0 || effects == 0 || violations != 0 {
		t.Errorf("exit code %d, %d kills, %d runs, %d effects, %d violations", code, kills, runs, effects, violations)
	}
}

// If the library is told that payments may be repeated, they are, and the campaign says so.
func TestCampaignFindsRepeats(t *testing.T) {
	for range 10 { // a kill may miss every payment
		code, _, _, _, violations := campaignOf(t, "-duration", "3s", "-lie", "-dir", t.TempDir())
		if violations > 0 {
			if code != 1 {
				t.Errorf("exit code %d", code)
			}
			return
		}
	}
	t.Error("payments were repeated, and no campaign noticed")
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-workers", "0"}, {"now"}, {"-no-such-flag"}} {
		var out bytes.Buffer
		if code := run(t.Context(), args, &out, &out); code != 2 || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, &out)
		}
	}
}

// Each check of a call finds what it is there for.
func TestCheckCall(t *testing.T) {
	const key = "pawl_k"
	begin := func(attempt int, at int64) effect { return effect{effectBegin, toolPay, "c", key, attempt, 1, at} }
	end := effect{effectEnd, toolPay, "c", key, 1, 1, 12}
	output := func(text string) item.Item { return item.FunctionOutput("c", text) }
	pay := func(edit func(*call)) *call {
		c := &call{id: "c", tool: toolPay, intents: map[int]int64{1: 10}, settled: 1, output: output("pay did pawl_k")}
		edit(c)
		return c
	}
	good := pay(func(*call) {})
	for _, tt := range []struct {
		name   string
		call   *call
		log    []effect
		far    map[string]int
		want   []string
		booked int
	}{
		{"as it should be", good, []effect{begin(1, 11), end}, nil, nil, 0},
		{"twice", pay(func(c *call) { c.intents[2] = 20 }), []effect{begin(1, 11), begin(2, 21), end}, nil,
			[]string{"it may happen once, and was begun 2 times"}, 0},
		{"one attempt twice", pay(func(c *call) { c.kind = journal.ReadOnly }), []effect{begin(1, 11), begin(1, 12), end}, nil,
			[]string{"attempt 1 was made twice"}, 0},
		{"no intent", good, []effect{begin(2, 11), end}, nil, []string{"attempt 2 was made without an intent"}, 0},
		{"before its intent", good, []effect{begin(1, 7), end}, nil, []string{"attempt 1 was made 3 ms before its intent"}, 0},
		{"two keys", good, []effect{begin(1, 11), {effectEnd, toolPay, "c", "other", 1, 1, 12}}, nil,
			[]string{"it has two keys", `its output is "pay did pawl_k", and it came to its end 1 times`}, 0},
		{"never ended", good, []effect{begin(1, 11)}, nil, []string{`its output is "pay did pawl_k", and it came to its end 0 times`}, 0},
		{"not approved", pay(func(c *call) { c.gate = journal.Ask }), []effect{begin(1, 11), end}, nil, []string{"it ran without an approval"}, 0},
		{"approved", pay(func(c *call) { c.gate, c.approved = journal.Ask, true }), []effect{begin(1, 11), end}, nil, nil, 0},
		{"rejected", pay(func(c *call) {
			c.gate, c.approved, c.rejected, c.outcome, c.output = journal.Ask, true, true, journal.Rejected, output("no")
		}), []effect{begin(1, 11), end}, nil, []string{"it ran and was rejected", `it was begun 1 times, and its output says that it did not run: "no"`}, 0},
		{"settled wrongly", pay(func(c *call) { c.outcome, c.output = journal.Decreed, output("somebody saw pawl_k") }), []effect{begin(1, 11)}, nil,
			[]string{`somebody settled it with "somebody saw pawl_k", and it came to its end 0 times`}, 0},
		{"not at the far side", pay(func(c *call) { c.kind = journal.Idempotent }), []effect{begin(1, 11), end}, map[string]int{},
			[]string{"the far side knows nothing of it"}, 0},
		{"nobody knows", pay(func(c *call) { c.outcome, c.output = journal.Unknown, output("unknown") }), []effect{begin(1, 11)}, nil, nil, 0},
		{"booked, after a death", pay(func(c *call) { c.kind, c.intents[2] = journal.Transactional, 20 }), []effect{begin(1, 11), end, begin(2, 21), end}, nil, nil, 1},
		{"booked twice", pay(func(c *call) { c.kind = journal.Transactional }), []effect{begin(1, 11), end}, nil,
			[]string{"it is booked 2 times, and its outcome says 1"}, 2},
		{"booked, and failed", pay(func(c *call) {
			c.kind, c.outcome, c.output = journal.Transactional, journal.ToolFailed, output("too late")
		}), []effect{begin(1, 11)}, nil, []string{"it is booked 1 times, and its outcome says 0"}, 1},
	} {
		if diff := cmp.Diff(tt.want, tt.call.check(&ledger{}, tt.log, tt.far, tt.booked)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, diff)
		}
	}
}

// What a run, its requests and its session say has to agree.
func TestCheckRun(t *testing.T) {
	input, called := item.UserText("go"), item.FunctionCallItem("", "c", toolPay, `{}`)
	l := func(edit func(*ledger)) *ledger {
		c := &call{id: "c", tool: toolPay, intents: map[int]int64{1: 1}, settled: 1, output: item.FunctionOutput("c", "pay did k")}
		l := &ledger{loaded: true, input: []item.Item{input}, finished: &journal.Finished{},
			responses: []*response{{request: 1, items: []item.Item{called}, planned: true, calls: []*call{c}}}}
		edit(l)
		return l
	}
	effects := []effect{{effectBegin, toolPay, "c", "k", 1, 1, 1}, {effectEnd, toolPay, "c", "k", 1, 1, 2}}
	for name, tt := range map[string]struct {
		ledger *ledger
		log    []effect
		want   []string
	}{
		"as it should be": {l(func(*ledger) {}), effects, nil},
		"not ended":       {l(func(l *ledger) { l.finished = nil }), effects, []string{"it neither ended nor waits"}},
		"other request":   {l(func(l *ledger) { l.responses[0].request = 2 }), effects, []string{"response 1 answers no request"}},
		"other input": {l(func(l *ledger) { l.input = nil }), effects,
			[]string{"request 1 did not show the model what the ledger says came before response 1"}},
		"settled twice": {l(func(l *ledger) { l.responses[0].calls[0].settled = 2 }), effects, []string{"call c was settled 2 times"}},
		"unknown effect": {l(func(*ledger) {}), append([]effect{{effectBegin, toolPay, "d", "d", 1, 1, 1}}, effects...),
			[]string{"call d had an effect, and the ledger does not know it"}},
	} {
		p := &parent{brain: &brain{seen: map[int]uint64{1: digest([]item.Item{input})}}}
		if diff := cmp.Diff(tt.want, p.check(&job{begun: true}, tt.ledger, tt.log)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if got, want := differ([]item.Item{input, called}, []item.Item{input}), `row 1 is `+strconv.Quote(called.Raw())+`, and its runs say ""`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestUnpaired(t *testing.T) {
	c, o := item.FunctionCallItem("", "c", toolPay, `{}`), item.FunctionOutput("c", "x")
	for _, tt := range []struct {
		history []item.Item
		want    string
	}{
		{[]item.Item{c, o}, ""},
		{[]item.Item{c}, "call c has 0 outputs"},
		{[]item.Item{c, o, o}, "call c has 2 outputs"},
		{[]item.Item{o}, "an output of c, which nobody called, or called twice"},
	} {
		if got := unpaired(tt.history); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
