package chaos

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

const testKey = "pawl_k"

// lines are those of the effect log about one call: what is said of it at attempt and time.
func lines(tool string, list ...effect) []effect {
	for i := range list {
		list[i].Tool, list[i].Call = tool, "c"
		if list[i].Key == "" {
			list[i].Key = testKey
		}
	}
	return list
}

// Each check of a call finds what it is there for.
func TestCheckCall(t *testing.T) {
	begin := func(attempt int, at int64) effect { return effect{At: effectBegin, Attempt: attempt, Time: at} }
	ask := func(attempt int, at int64) effect { return effect{At: effectAsk, Attempt: attempt, Time: at} }
	end := effect{At: effectEnd, Attempt: 1, Time: 12}
	output := func(text string) item.Item { return item.FunctionOutput("c", text) }
	// done is a call of a tool that was made once and came to its end, but for what edit says.
	done := func(tool string, edit func(*call)) *call {
		c := &call{id: "c", tool: tool, intents: attempts[intent]{1: {at: 10}}, settled: 1, output: output(did(tool, testKey))}
		edit(c)
		return c
	}
	as := func(o journal.Outcome, text string) func(*call) {
		return func(c *call) { c.outcome, c.output = o, output(text) }
	}
	late := func(tool string, o journal.Outcome, text string) *call {
		return done(tool, func(c *call) {
			as(journal.Unknown, "unknown")(c)
			c.late = []*journal.Settled{{ID: journal.EffectID{Kind: journal.EffectTool, A: 1}, Outcome: o, Output: output(text), Late: true}}
		})
	}
	good := func(*call) {}
	once := []effect{begin(1, 11), end}
	ship := farSide{parcels: map[string]*parcel{testKey: {}}}
	shipped := farSide{parcels: map[string]*parcel{testKey: {taken: true}}}
	booked := func(n int) farSide { return farSide{booked: map[string]int{"c": n}} }
	for _, tt := range []struct {
		name string
		call *call
		log  []effect
		far  farSide
		want []string
	}{
		{"as it should be", done(toolPay, good), once, farSide{}, nil},
		{"twice", done(toolPay, func(c *call) { c.intents[2] = intent{at: 20} }), []effect{begin(1, 11), begin(2, 21), end}, farSide{},
			[]string{"it may happen once, and was begun 2 times"}},
		{"one attempt twice", done(toolLook, good), []effect{begin(1, 11), begin(1, 12), end}, farSide{}, []string{"attempt 1 was made twice"}},
		{"no intent", done(toolPay, good), []effect{begin(2, 11), end}, farSide{}, []string{"attempt 2 was made without an intent"}},
		{"before its intent", done(toolPay, good), []effect{begin(1, 7), end}, farSide{}, []string{"attempt 1 was made 3 ms before its intent"}},
		{"two keys", done(toolPay, good), []effect{begin(1, 11), {At: effectEnd, Key: "other", Attempt: 1, Time: 12}}, farSide{},
			[]string{"it has two keys", `its output is "pay did pawl_k", and it came to its end 1 times`}},
		{"never ended", done(toolPay, good), []effect{begin(1, 11)}, farSide{}, []string{`its output is "pay did pawl_k", and it came to its end 0 times`}},
		{"settled twice", done(toolPay, func(c *call) { c.settled = 2 }), once, farSide{}, []string{"it was settled 2 times"}},
		{"not approved", done(toolPay, func(c *call) { c.gate = journal.Ask }), once, farSide{}, []string{"it ran without an approval"}},
		{"approved", done(toolPay, func(c *call) { c.gate, c.approved = journal.Ask, true }), once, farSide{}, nil},
		{"rejected", done(toolPay, func(c *call) {
			c.gate, c.approved, c.rejected = journal.Ask, true, true
			as(journal.Rejected, "no")(c)
		}), once, farSide{}, []string{"it ran and was rejected", `it was begun 1 times, and its output says that it did not run: "no"`}},
		{"settled wrongly", done(toolPay, as(journal.Decreed, "somebody saw pawl_k")), []effect{begin(1, 11)}, farSide{},
			[]string{`somebody settled it with "somebody saw pawl_k", and it came to its end 0 times`}},
		{"not at the far side", done(toolPut, good), once, farSide{}, []string{"the far side knows nothing of it"}},
		{"nobody knows", done(toolPay, as(journal.Unknown, "unknown")), []effect{begin(1, 11)}, farSide{}, nil},

		{"booked, after a death", done(toolBook, func(c *call) { c.intents[2] = intent{at: 20} }), []effect{begin(1, 11), end, begin(2, 21), end}, booked(1), nil},
		{"booked twice", done(toolBook, good), once, booked(2), []string{"it is booked 2 times, and its outcome says 1"}},
		{"not booked", done(toolBook, good), once, booked(0), []string{"it is booked 0 times, and its outcome says 1"}},
		{"booked, and failed", done(toolBook, as(journal.ToolFailed, "too late")), []effect{begin(1, 11)}, booked(1),
			[]string{"it is booked 1 times, and its outcome says 0"}},
		{"booked, and asks", done(toolRent, func(c *call) { c.settled, c.asked = 0, attempts[bool]{1: true} }), []effect{ask(1, 11)}, booked(1),
			[]string{"it is booked 1 times, and its outcome says 0"}},

		{"late", late(toolMail, journal.Done, "mail did pawl_k"), once, farSide{}, nil},
		{"late, and twice", done(toolMail, func(c *call) {
			*c = *late(toolMail, journal.Done, "mail did pawl_k")
			c.results = attempts[int]{1: 2}
		}), once, farSide{}, []string{"attempt 1 has 2 results"}},
		{"late, and not true", late(toolMail, journal.Done, "mail did pawl_k"), []effect{begin(1, 11)}, farSide{},
			[]string{`the late result of attempt 1 is "mail did pawl_k", and it came to its end 0 times`}},
		{"late, and failed", late(toolMail, journal.ToolFailed, "broken"), once, farSide{}, []string{"attempt 1 failed late: broken"}},
		{"late, in a transaction", late(toolBook, journal.Done, "book did pawl_k"), once, farSide{},
			[]string{"attempt 1 has a late result, and was in a transaction"}},

		{"told not to have happened", done(toolCharge, func(c *call) {
			c.intents[2], c.idle = intent{at: 20}, attempts[bool]{1: true}
			as(journal.Unknown, "unknown")(c)
		}), []effect{begin(1, 11)}, farSide{}, []string{"attempt 1 was made, and is said not to have happened"}},
		{"asked nobody", done(toolSell, func(c *call) { c.asked, c.settled = attempts[bool]{1: true}, 0 }), nil, farSide{},
			[]string{"attempt 1 is said to have asked, and did not"}},
		{"did not wait for an answer", done(toolSell, good), once, farSide{}, []string{"attempt 1 was made before anybody had answered"}},
		{"answered", done(toolSell, func(c *call) { c.intents[2], c.asked = intent{at: 20, answers: 1}, attempts[bool]{1: true} }),
			[]effect{ask(1, 11), begin(2, 21), {At: effectEnd, Attempt: 2, Time: 22}}, farSide{}, nil},

		{"delivered", done(toolShip, func(c *call) { c.started = attempts[bool]{1: true}; as(journal.Decreed, "delivered pawl_k")(c) }), once, shipped, nil},
		{"delivered by nobody", done(toolShip, as(journal.Decreed, "delivered pawl_k")), once, farSide{},
			[]string{`somebody settled it with "delivered pawl_k", and it came to its end 1 times`}},
		{"delivered, and lost", done(toolShip, as(journal.Unknown, "unknown")), once, shipped,
			[]string{`the result that it took is lost, and its output is "unknown"`}},
		{"delivered when it was given up", done(toolShip, func(c *call) { as(journal.Unknown, "unknown")(c); c.found = "delivered pawl_k" }), once, shipped, nil},
		{"forged when it was given up", done(toolShip, func(c *call) { as(journal.Unknown, "unknown")(c); c.found = "forged pawl_k" }), once, ship,
			[]string{`somebody found out "forged pawl_k"`}},
		{"forged", done(toolShip, as(journal.Decreed, "forged pawl_k")), once, ship,
			[]string{`somebody settled it with "forged pawl_k", and it came to its end 1 times`}},
		{"not shipped", done(toolShip, func(c *call) { c.started = attempts[bool]{1: true}; as(journal.Decreed, "delivered pawl_k")(c) }),
			[]effect{begin(1, 11)}, shipped, []string{"attempt 1 is said to have started something, and did not"}},
	} {
		if diff := cmp.Diff(tt.want, tt.call.check(&ledger{}, lines(tt.call.tool, tt.log...), tt.far)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, diff)
		}
	}
}

// An engine makes an attempt again whose worker it lost, and only if that does no harm.
func TestCheckRepeats(t *testing.T) {
	twice := func(tool string) []effect {
		return lines(tool, effect{At: effectBegin, Attempt: 1, Time: 11}, effect{At: effectBegin, Attempt: 1, Time: 15}, effect{At: effectEnd, Attempt: 1, Time: 16})
	}
	for tool, want := range map[string][]string{
		toolLook: nil,
		toolPut:  nil,
		toolPay:  {"it may happen once, and was begun 2 times", "attempt 1 was made twice"},
	} {
		c := &call{id: "c", tool: tool, intents: attempts[intent]{1: {at: 10}}, settled: 1, output: item.FunctionOutput("c", did(tool, testKey))}
		got := c.check(&ledger{repeats: true}, twice(tool), farSide{asked: map[string]int{testKey: 2}})
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tool, diff)
		}
	}
}

// What a run, its requests and its session say has to agree.
func TestCheckRun(t *testing.T) {
	input, called := item.UserText("go"), item.FunctionCallItem("", "c", toolPay, `{}`)
	answer := item.FunctionOutput("c", "pay did k")
	log := []effect{{effectBegin, toolPay, "c", "k", 1, 1, 1}, {effectEnd, toolPay, "c", "k", 1, 1, 2}}
	open := func(tool string, edit func(*call)) func(*job, *ledger) {
		return func(j *job, l *ledger) {
			l.finished, j.plan.Leave, j.begun = nil, true, true
			c := &call{id: "c", tool: tool, gate: journal.Allow, intents: attempts[intent]{1: {at: 1}}}
			edit(c)
			l.responses[0].calls[0] = c
		}
	}
	refused := func(l *ledger) {
		l.responses, l.ambiguous, l.cancelled, l.finished = nil, []int{0}, true, &journal.Finished{Cancelled: true}
	}
	for name, tt := range map[string]struct {
		edit func(*job, *ledger)
		log  []effect
		want []string
	}{
		"as it should be": {func(*job, *ledger) {}, log, nil},
		"not ended":       {func(_ *job, l *ledger) { l.finished = nil }, log, []string{"it neither ended nor waits"}},
		"left, and done":  {func(j *job, l *ledger) { l.finished, j.plan.Leave = nil, true }, log, []string{"it neither ended nor waits"}},
		"cancelled by nobody": {func(_ *job, l *ledger) { l.finished.Cancelled = true }, log,
			[]string{"it was cancelled, and nobody had done so"}},
		"other request": {func(_ *job, l *ledger) { l.responses[0].request = 2 }, log, []string{"response 1 answers no request"}},
		"other input": {func(_ *job, l *ledger) { l.input = nil }, log, []string{
			"request 1 did not show the model what the ledger says came before response 1"}},
		"what was never said": {func(j *job, l *ledger) { j.plan.Run = "odd" }, log, []string{
			`request 7, whose answer was lost, showed the model what the ledger never said: 2 items, the last "call c pay{}"`}},
		"what was forgotten": {func(j *job, l *ledger) { j.plan.Run, j.plan.Mode = "forgetful", modeNone }, log, nil},
		"what a session would have": {func(j *job, l *ledger) { j.plan.Run, j.plan.Mode = "forgetful", modeOwn }, log, []string{
			`request 8, whose answer was lost, showed the model what the ledger never said: 2 items, the last "call c pay{}"`}},
		"a conversation asked again": {func(j *job, l *ledger) { j.plan.Run, j.plan.Mode = "again", modeConversation }, log, []string{
			"the server accepted 1 requests on the conversation whose answers the ledger does not have"}},
		"unknown effect": {func(*job, *ledger) {}, append([]effect{{effectBegin, toolPay, "d", "d", 1, 1, 1}}, log...), []string{
			"call d had an effect, and the ledger does not know it"}},

		"waits for an approval": {open(toolRefund, func(c *call) { c.intents, c.gate, c.asking = nil, journal.Ask, true }), nil, nil},
		"waits for a look":      {open(toolPay, func(c *call) { c.doubt = true }), log[:1], nil},
		"waits for its result":  {open(toolShip, func(c *call) { c.pending = true }), log, nil},
		"waits for nobody":      {open(toolPay, func(c *call) { c.running = true }), log[:1], []string{"call c of pay is open, and waits for nobody"}},
		"the model is told":     {open(toolCable, func(c *call) { c.doubt = true }), log[:1], []string{"call c of cable is open, and waits for nobody"}},
		"expires": {open(toolOffer, func(c *call) { c.intents, c.gate, c.asking = nil, journal.Ask, true }), nil, []string{
			"call c of offer is open, and waits for nobody"}},
		"expired, and failed": {open(toolBid, func(c *call) { c.intents, c.gate, c.asking, c.reopens = nil, journal.Ask, true, true }), nil, nil},

		"refused": {func(j *job, l *ledger) {
			j.plan = plan{Run: "once", Mode: modeConversation, Cancel: true}
			refused(l)
		}, nil, nil},
		"refused, and nothing was accepted": {func(j *job, l *ledger) {
			j.plan = plan{Run: "never", Mode: modeConversation, Cancel: true}
			refused(l)
		}, nil, []string{"it refused to send anything, and the server had accepted 0 requests"}},
		"refused, a chain": {func(j *job, l *ledger) {
			j.plan = plan{Run: "once", Mode: modeChain, Cancel: true}
			refused(l)
		}, nil, []string{"it refused to send anything, and is not on a conversation"}},
		"refused, and went on": {func(j *job, l *ledger) { j.plan.Mode, l.ambiguous = modeConversation, []int{0} }, log, []string{
			"it refused to send anything, and went on"}},
		"refused, behind a response": {func(j *job, l *ledger) { j.plan.Mode, l.ambiguous = modeConversation, []int{1} }, log, []string{
			"it refused to send anything, and had 1 responses to know the conversation by"}},
	} {
		before := digest([]item.Item{input})
		other := digest([]item.Item{input, called})
		behind6 := other
		behind6.answer, behind6.before = 6, before.digest
		p := &parent{brain: &brain{
			seen:  map[int]shown{1: before, 6: before, 7: other, 8: behind6},
			asked: map[string][]int{"": {1}, "odd": {1, 7}, "forgetful": {1, 6, 8}, "again": {1, 6}, "once": {1}}}}
		c := &call{id: "c", tool: toolPay, intents: attempts[intent]{1: {at: 1}}, settled: 1, output: answer}
		l := &ledger{loaded: true, input: []item.Item{input}, finished: &journal.Finished{},
			responses: []*response{{request: 1, items: []item.Item{called}, planned: true, calls: []*call{c}}}}
		j := &job{begun: true}
		tt.edit(j, l)
		if diff := cmp.Diff(tt.want, p.check(j, l, tt.log)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if got, want := differ([]item.Item{input, called}, []item.Item{input}), `row 1 is `+strconv.Quote(called.Raw())+`, and its runs say ""`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
