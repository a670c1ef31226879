package chaos

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

// farSide is what the far sides of the tools know of all calls.
type farSide struct {
	asked   map[string]int     // key -> how often an idempotent tool asked
	booked  map[string]int     // call -> how often it is in the table
	parcels map[string]*parcel // key -> what is delivered later
}

// deeds are what the bodies of a call did, as the effect log has it.
type deeds struct {
	key          string
	begun, asked attempts[int] // lines of each attempt
	ended        attempts[int]
}

func (d *deeds) all(a attempts[int]) (n int) {
	for _, lines := range a {
		n += lines
	}
	return n
}

// check compares a call with what its bodies did.
func (c *call) check(l *ledger, logged []effect, far farSide) []string {
	problems := slices.Clone(c.odd)
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if c.settled > 1 {
		bad("it was settled %d times", c.settled)
	}
	t := toolOf(c.tool)
	d, odd := c.read(l, t, logged)
	problems = append(problems, odd...)
	begun := d.all(d.begun)
	if t.kind == journal.AtMostOnce && begun > 1 {
		bad("it may happen once, and was begun %d times", begun)
	}
	if c.gate != journal.Allow && begun > 0 && !c.approved && !l.always[c.tool] {
		bad("it ran without an approval")
	}
	if begun > 0 && c.rejected {
		bad("it ran and was rejected")
	}
	want := 0
	if t.kind == journal.Transactional && c.settled > 0 && c.outcome == journal.Done {
		want = 1
	}
	if booked := far.booked[c.id]; booked != want {
		bad("it is booked %d times, and its outcome says %d", booked, want)
	}
	for _, attempt := range slices.Sorted(maps.Keys(c.results)) {
		if n := c.results[attempt]; n > 1 {
			bad("attempt %d has %d results", attempt, n)
		}
	}
	return slices.Concat(problems, c.checkAttempts(t, d), c.checkLate(t, d), c.checkOutput(t, d, far), c.checkParcel(l, d, far))
}

// read reads what the log has of a call.
func (c *call) read(l *ledger, t tool, logged []effect) (d deeds, problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	d = deeds{begun: attempts[int]{}, asked: attempts[int]{}, ended: attempts[int]{}}
	for _, e := range logged {
		if d.key != "" && e.Key != d.key {
			bad("it has two keys")
		}
		d.key = e.Key
		if e.At == effectEnd {
			d.ended[e.Attempt]++
			continue
		}
		switch in, ok := c.intents[e.Attempt]; {
		case !ok:
			bad("attempt %d was made without an intent", e.Attempt)
		case e.Time < in.at:
			bad("attempt %d was made %d ms before its intent", e.Attempt, in.at-e.Time)
		case d.begun[e.Attempt]+d.asked[e.Attempt] > 0 && !(l.repeats && t.repeatable()):
			bad("attempt %d was made twice", e.Attempt)
		case e.At == effectBegin && t.asks && in.answers == 0:
			bad("attempt %d was made before anybody had answered", e.Attempt)
		}
		if e.At == effectAsk {
			d.asked[e.Attempt]++
		} else {
			d.begun[e.Attempt]++
		}
	}
	return d, problems
}

// checkAttempts compares what the ledger says of single attempts with what they did. What a transaction did is undone if it
// is not committed.
func (c *call) checkAttempts(t tool, d deeds) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, attempt := range slices.Sorted(maps.Keys(c.intents)) {
		did := d.begun[attempt]+d.asked[attempt] > 0
		switch {
		case c.idle[attempt] && did && t.kind != journal.Transactional:
			bad("attempt %d was made, and is said not to have happened", attempt)
		case c.asked[attempt] && d.asked[attempt] == 0:
			bad("attempt %d is said to have asked, and did not", attempt)
		case c.started[attempt] && d.ended[attempt] == 0:
			bad("attempt %d is said to have started something, and did not", attempt)
		}
	}
	return problems
}

// checkLate checks what came when the call had been settled without it: it is the truth, and nothing else follows from it.
func (c *call) checkLate(t tool, d deeds) (problems []string) {
	for _, b := range c.late {
		o, _ := b.Output.FunctionCallOutput()
		switch {
		case b.Outcome == journal.Unknown:
		case b.Outcome != journal.Done:
			problems = append(problems, fmt.Sprintf("attempt %d failed late: %s", b.ID.A, o.Text))
		case d.ended[b.ID.A] == 0 || !endsWith(o.Text, did(c.tool, d.key)):
			problems = append(problems, fmt.Sprintf("the late result of attempt %d is %q, and it came to its end %d times", b.ID.A, o.Text, d.ended[b.ID.A]))
		case t.kind == journal.Transactional:
			problems = append(problems, fmt.Sprintf("attempt %d has a late result, and was in a transaction", b.ID.A))
		}
	}
	return problems
}

// checkOutput compares a call's output with what its bodies did.
func (c *call) checkOutput(t tool, d deeds, far farSide) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if c.settled == 0 {
		return nil
	}
	o, _ := c.output.FunctionCallOutput()
	begun, ended := d.all(d.begun), d.all(d.ended)
	if c.found != "" && c.found != settledText(d.key) && (far.parcels[d.key] == nil || c.found != delivered(d.key)) {
		bad("somebody found out %q", c.found)
	}
	switch c.outcome {
	case journal.Done:
		if ended == 0 || !endsWith(o.Text, did(c.tool, d.key)) {
			bad("its output is %q, and it came to its end %d times", o.Text, ended)
		}
		if t.kind == journal.Idempotent && far.asked[d.key] == 0 {
			bad("the far side knows nothing of it")
		}
	case journal.Decreed:
		arrived := far.parcels[d.key] != nil && o.Text == delivered(d.key)
		if !arrived && (ended == 0 || !endsWith(o.Text, settledText(d.key))) { // behind what the reviewer changed
			bad("somebody settled it with %q, and it came to its end %d times", o.Text, ended)
		}
	case journal.Rejected, journal.Dropped:
		if begun > 0 && t.kind != journal.Transactional {
			bad("it was begun %d times, and its output says that it did not run: %q", begun, o.Text)
		}
	case journal.Unknown:
	case journal.ToolFailed:
		if t.kind != journal.Transactional { // which may run out of time, and then nothing of it is left
			bad("it failed: %s", o.Text)
		}
	default:
		bad("it %s: %s", c.outcome, o.Text)
	}
	return problems
}

// checkParcel checks that a result that came from elsewhere and was taken is the output.
func (c *call) checkParcel(l *ledger, d deeds, far farSide) []string {
	parcel := far.parcels[d.key]
	if parcel == nil || !parcel.taken || c.found == delivered(d.key) || l.finished != nil && l.finished.Cancelled {
		return nil
	}
	if o, _ := c.output.FunctionCallOutput(); c.outcome != journal.Decreed || o.Text != delivered(d.key) {
		return []string{fmt.Sprintf("the result that it took is lost, and its output is %q", o.Text)}
	}
	return nil
}
