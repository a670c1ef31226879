package audit

import (
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// Call is a tool call that a run planned.
type Call struct {
	// ID is where the call occurs, without an attempt.
	ID journal.EffectID
	// Tool and CallID are the names that the model gave.
	Tool, CallID string
	// Arguments are as the model wrote them.
	Arguments string
	// Key is the idempotency key that the far side of the call got.
	Key string
	// Run is the run that made the call: that of the ledger, or the one it was forked from.
	Run string
}

// Name names the call for people, for example "3.2": position 2 of response 3.
func (c Call) Name() string { return nameOf(c.ID) }

func nameOf(id journal.EffectID) string { return fmt.Sprintf("%d.%d", id.N, id.P) }

// Calls returns the calls that the run itself planned, not those of runs nested in it, in their order. The errors are those of HeadOf.
func Calls(run string, records []journal.Record) ([]Call, error) {
	l, err := read(run, records)
	if err != nil {
		return nil, err
	}
	b := newBook()
	for _, f := range l.facts {
		b.note(f)
	}
	list := make([]Call, len(b.calls))
	for i, c := range b.calls {
		list[i] = c.Call
	}
	return list, nil
}

// book knows the calls of a ledger, or of a nested run in it, fact by fact.
type book struct {
	frame    string           // of the nested run
	nested   map[string]*book // by frame, in the book of the ledger
	run      string
	facts    int
	turn     int
	items    []item.Item // of the newest response
	calls    []*bookCall
	offered  map[int][]journal.ToolSpec // tools by the turn that recorded them
	same     map[int]int                // the turn whose tools a turn has
	standing map[string]standing        // the newest sticky decision by tool identity
}

// bookCall is a call as the ledger has it so far.
type bookCall struct {
	Call
	plan     journal.PlannedCall
	identity string // of its tool, empty if it has none
	begun    bool   // an attempt began, or it is settled
	decided  bool   // it has a decision of its own on what its rule asks
	standing standing
}

// standing is a sticky decision.
type standing struct {
	fact    int // its number, 0 if there is none
	verdict journal.Verdict
}

func newBook() *book {
	return &book{nested: map[string]*book{}, offered: map[int][]journal.ToolSpec{}, same: map[int]int{}, standing: map[string]standing{}}
}

// note takes the next fact.
func (b *book) note(f journal.Fact) {
	b.facts++
	if f.Frame != b.frame {
		n := b.in(f.Frame)
		n.run, n.facts = b.run, b.facts-1
		n.note(f)
		return
	}
	if b.frame == "" {
		b.run = runAfter(b.run, f)
	}
	switch body := f.Body.(type) {
	case *journal.Forked:
		b.fork(b.run)
		for _, n := range b.nested {
			n.fork(b.run)
		}
	case *journal.Prepared:
		b.same[body.N] = body.Same
		if body.Manifest != nil {
			b.offered[body.N] = body.Manifest.Tools
		}
	case *journal.Responded:
		b.turn, b.items = body.ID.N, body.Items
	case *journal.Planned:
		b.plan(body)
	case *journal.Decided:
		b.decide(body)
	case *journal.Intended, *journal.Settled:
		if c := b.find(effectOf(body)); c != nil {
			c.begun = true
		}
	}
}

// in returns the book of a frame.
func (b *book) in(frame string) *book {
	if frame == b.frame {
		return b
	}
	n := b.nested[frame]
	if n == nil {
		n = newBook()
		n.frame = frame
		b.nested[frame] = n
	}
	return n
}

// fork makes the calls that have not begun those of another run.
func (b *book) fork(run string) {
	for _, c := range b.calls {
		if !c.begun {
			c.Run, c.Key = run, machine.Key(run, b.frame, c.ID)
		}
	}
}

func (b *book) plan(p *journal.Planned) {
	tools := slices.Concat(b.offered[b.same[b.turn]], p.Tools)
	for _, pc := range p.Calls {
		if pc.Twin || pc.P >= len(b.items) {
			continue
		}
		id := journal.EffectID{Kind: journal.EffectTool, N: p.N, P: pc.P}
		it := b.items[pc.P]
		head := it.Head()
		c := &bookCall{plan: pc, Call: Call{ID: id, Tool: head.Name, CallID: head.CallID, Arguments: argumentsOf(it),
			Key: machine.Key(b.run, b.frame, id), Run: b.run}}
		if pc.Tool >= 0 && pc.Tool < len(tools) {
			c.identity = tools[pc.Tool].Identity
			c.standing = b.standing[c.identity]
		}
		b.calls = append(b.calls, c)
	}
}

func argumentsOf(it item.Item) string {
	if fc, err := it.FunctionCall(); err == nil {
		return fc.Arguments
	}
	if r, err := it.ApprovalRequest(); err == nil {
		return r.Arguments
	}
	cc, _ := it.CustomToolCall()
	return cc.Input
}

// decide notes a decision; a sticky one stands for open and later calls of the tool [M9.6].
func (b *book) decide(d *journal.Decided) {
	own := b.find(d.Call)
	if own == nil {
		return
	}
	own.decided = own.decided || d.Stage == 0 // a later one is about what became of it
	if !d.Sticky || own.identity == "" {
		return
	}
	st := standing{b.facts, d.Verdict}
	b.standing[own.identity] = st
	for _, c := range b.calls {
		if c.identity == own.identity && !c.begun {
			c.standing = st
		}
	}
}

// covered returns the number of the sticky decision that decided the call, 0 if none did [M9.9].
func (c *bookCall) covered() int {
	switch {
	case c.decided, c.plan.Gate == journal.Deny, c.plan.Gate == journal.Allow && c.standing.verdict != journal.Reject:
		return 0
	}
	return c.standing.fact
}

// find returns the call of an effect, nil if it is none. Most are asked for soon.
func (b *book) find(id journal.EffectID) *bookCall {
	if id.Kind != journal.EffectTool {
		return nil
	}
	for _, c := range slices.Backward(b.calls) {
		if c.ID.N == id.N && c.ID.P == id.P {
			return c
		}
	}
	return nil
}

// effectOf returns the effect that a fact is about, zero if it is about none.
func effectOf(body journal.Body) journal.EffectID {
	switch b := body.(type) {
	case *journal.Intended:
		return b.ID
	case *journal.Responded:
		return b.ID
	case *journal.Decided:
		return b.Call
	case *journal.Expired:
		return b.Call
	case *journal.Settled:
		return b.ID
	case *journal.Absent:
		return b.ID
	case *journal.Failed:
		return b.ID
	case *journal.Fired:
		return b.ID
	}
	return journal.EffectID{}
}
