package chaos

import (
	"fmt"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// call is one call of a response, as the ledger has it.
type call struct {
	id   string // the model's
	tool string // empty if there is none of that name
	gate journal.Gate

	intents  attempts[intent]
	idle     attempts[bool] // that the ledger says did not happen
	asked    attempts[bool] // that only asked a person
	started  attempts[bool] // whose result was to come later
	results  attempts[int]  // how many results each has, late ones included
	late     []*journal.Settled
	approved bool
	rejected bool   // or expired
	answers  int    // that the tool's own questions got
	found    string // what somebody found out when it had been settled as unknown
	settled  int    // how often; late results do not count
	outcome  journal.Outcome
	output   item.Item
	decided  attempts[bool] // by stage
	unknowns int

	// How it stands: nothing of it, or one of these.
	running, doubt, pending, asking bool

	askedAt int64 // Unix milliseconds
	reopens bool  // it expired, and the run failed of it: it has no deadline any more

	odd []string // what no call should have come to
}

// attempts are facts about the attempts of a call.
type attempts[T any] map[int]T

// set makes the map when there is something to put in it.
func (a *attempts[T]) set(attempt int, v T) {
	if *a == nil {
		*a = attempts[T]{}
	}
	(*a)[attempt] = v
}

// intent is an attempt that was to be made.
type intent struct {
	at      int64 // Unix milliseconds
	answers int   // that the tool's own questions had got
}

func (c *call) bad(format string, args ...any) { c.odd = append(c.odd, fmt.Sprintf(format, args...)) }

// harmless says that nothing is lost if a call runs twice.
func (t tool) harmless() bool { return t.kind == journal.Idempotent || t.kind == journal.ReadOnly }

// repeatable says that nothing is lost if an attempt is made twice.
func (t tool) repeatable() bool { return t.harmless() || t.kind == journal.Transactional }

// claimed reads that a driver took the run. What was running is in doubt, if it can be.
func (l *ledger) claimed() {
	if len(l.responses) == 0 {
		return
	}
	for _, c := range l.responses[len(l.responses)-1].calls {
		if t := toolOf(c.tool); c.running {
			c.running, c.doubt = false, !t.repeatable()
		}
	}
}

// aboutCall reads a fact about one call, if it is one.
func (l *ledger) aboutCall(f journal.Fact) error {
	var id journal.EffectID
	switch b := f.Body.(type) {
	case *journal.Intended:
		id = b.ID
	case *journal.Settled:
		id = b.ID
	case *journal.Absent:
		id = b.ID
	case *journal.Decided:
		id = b.Call
	case *journal.Expired:
		id = b.Call
	}
	if id.Kind != journal.EffectTool {
		return nil
	}
	c, err := l.at(id)
	if err != nil {
		return err
	}
	switch b := f.Body.(type) {
	case *journal.Intended:
		c.intend(id.A, f.Time, l.always[c.tool])
	case *journal.Settled:
		l.settle(c, b, f.Time)
	case *journal.Absent:
		if !c.doubt {
			c.bad("attempt %d is said not to have happened, and was not in doubt", id.A)
		}
		c.idle.set(id.A, true)
		c.doubt = false
		l.seen.told++
	case *journal.Decided:
		l.decide(c, b)
	case *journal.Expired:
		l.expire(c, b.Stage, f.Time)
	}
	return nil
}

// intend reads that an attempt is about to be made.
func (c *call) intend(attempt int, at int64, always bool) {
	if c.gate == journal.Ask && c.intents == nil && always {
		c.asking = false
	}
	switch {
	case c.settled > 0:
		c.bad("attempt %d was intended when the call was settled", attempt)
	case c.asking:
		c.bad("attempt %d was intended without an approval", attempt)
	case c.doubt || c.running || c.pending:
		c.bad("attempt %d was intended when another might have happened", attempt)
	}
	c.intents.set(attempt, intent{at, c.answers})
	c.running = true
}

// settle reads what became of an attempt.
func (l *ledger) settle(c *call, b *journal.Settled, at int64) {
	attempt := b.ID.A
	if attempt > 0 && (b.Outcome == journal.Done || b.Outcome == journal.ToolFailed) {
		c.results.set(attempt, c.results[attempt]+1)
		if c.doubt && toolOf(c.tool).canTell {
			l.seen.told++
		}
		if b.Late || c.doubt && toolOf(c.tool).deaf {
			l.seen.late++
		}
	}
	if b.Late {
		if c.settled == 0 {
			c.bad("a result of attempt %d came late, and the call was open", attempt)
		}
		c.late = append(c.late, b)
		return
	}
	doubt := c.goesOn(b)
	c.running, c.doubt, c.pending, c.asking = false, doubt, b.Outcome == journal.Pending, b.Outcome == journal.AsksAgain
	switch {
	case c.pending:
		c.started.set(attempt, true)
	case c.asking:
		c.asked.set(attempt, true)
		c.askedAt, c.reopens = at, false
		l.seen.questions++
	case b.Outcome == journal.NotExecuted:
		c.idle.set(attempt, true)
	case b.Outcome == journal.Unknown && attempt > 0 && (doubt || c.unknowns > 0 && c.unknowns < mostUnknown):
	default:
		c.settled++
		c.outcome, c.output = b.Outcome, b.Output
	}
}

// mostUnknown is how many unknown outcomes settle a call that may be repeated.
const mostUnknown = 3

// goesOn says that an unknown outcome leaves the call in doubt. What settles it comes later, and then counts alone.
func (c *call) goesOn(b *journal.Settled) bool {
	t := toolOf(c.tool)
	if b.Outcome != journal.Unknown || b.ID.A == 0 {
		return false
	}
	if t.harmless() {
		c.unknowns++
		return false
	}
	return t.waits
}

// decide reads a decision.
func (l *ledger) decide(c *call, b *journal.Decided) {
	if c.decided[b.Stage] {
		c.bad("stage %d was decided twice", b.Stage)
	}
	c.decided.set(b.Stage, true)
	t := toolOf(c.tool)
	switch b.Verdict {
	case journal.Approve, journal.Reject:
		if !c.asking && (b.Stage > 0 || c.intents != nil) {
			c.bad("%s at stage %d, and nobody had asked", b.Verdict, b.Stage)
		}
		approved := b.Verdict == journal.Approve
		c.approved = c.approved || approved && b.Stage == 0
		c.rejected = c.rejected || !approved
		if approved && b.Stage > 0 {
			c.answers++
		}
		if approved && b.Sticky {
			l.always[c.tool] = true
		}
		c.asking = false
	case journal.Retry:
		if !c.doubt {
			c.bad("somebody had it run again, and it was not in doubt")
		}
		if t.canTell {
			c.bad("somebody had it run again, and the far side could have told that it had not happened")
		}
		c.doubt = false
	case journal.Settle:
		if c.settled > 0 && c.outcome == journal.Unknown {
			c.found = b.Text
			break
		}
		fallthrough
	default:
		if !c.doubt && !(c.pending && b.Verdict == journal.Settle) {
			c.bad("somebody settled it, and it was not in doubt")
		}
		c.doubt, c.pending = false, false
	}
}

// expire reads that nobody answered in time.
func (l *ledger) expire(c *call, stage int, at int64) {
	t := toolOf(c.tool)
	if early := c.askedAt + t.expires.Milliseconds() - at; early > 0 {
		c.bad("it expired %d ms before its time", early)
	}
	if !c.asking || t.expires == 0 {
		c.bad("it expired, and had no deadline")
	}
	if l.seen.expired++; t.fails {
		c.reopens = true
		return
	}
	c.decided.set(stage, true)
	c.asking, c.rejected = false, true
}

// waits says what an open call waits for, empty if nobody has to do anything for it.
func (c *call) waits(l *ledger) string {
	t := toolOf(c.tool)
	switch {
	case c.asking && c.gate == journal.Ask && c.intents == nil && l.always[c.tool]:
	case c.asking && t.expires > 0 && !c.reopens:
	case c.asking:
		return "an approval"
	case c.doubt && t.waits, c.doubt && !t.hurry:
		return "somebody to look what became of it"
	case c.pending:
		return "its result"
	}
	return ""
}
