package main

import (
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// ledger is what a run's facts say, read without the code that drives runs.
type ledger struct {
	session   *journal.SessionRef
	before    []item.Item // what the session held, with the outputs that healed it
	input     []item.Item
	loaded    bool
	responses []*response
	finished  *journal.Finished
	// always are the tools that somebody approved for all calls.
	always map[string]bool
}

// response is one that the run accepted.
type response struct {
	request int // that it answered, -1 if its items do not say
	items   []item.Item
	planned bool
	calls   []*call
}

// call is one call of a response.
type call struct {
	id       string // the model's
	tool     string // empty if there is none of that name
	kind     journal.Class
	gate     journal.Gate
	intents  map[int]int64 // attempt -> when it was intended
	approved bool
	rejected bool
	settled  int // how often; late results do not count
	outcome  journal.Outcome
	output   item.Item
}

// readLedger reads the facts of a run.
func readLedger(records []journal.Record) (*ledger, error) {
	l := &ledger{always: map[string]bool{}}
	manifests := map[int]*journal.Manifest{}
	var last *journal.Manifest
	for _, rec := range records {
		f, err := journal.Decode(rec)
		if err != nil {
			return nil, err
		}
		switch b := f.Body.(type) {
		case *journal.Started:
			l.input, l.session, l.loaded = b.Input, b.Session, b.Session == nil
		case *journal.Loaded:
			l.before, l.loaded = slices.Concat(b.Items, b.Healed), true
		case *journal.Prepared:
			if b.Manifest != nil {
				manifests[b.N] = b.Manifest
			}
			last = manifests[b.Same]
		case *journal.Responded:
			l.responses = append(l.responses, &response{request: answered(b.Items), items: b.Items})
		case *journal.Finished:
			l.finished = b
		case *journal.Planned:
			err = l.plan(b, last)
		default:
			err = l.aboutCall(f)
		}
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// plan reads which calls a response has.
func (l *ledger) plan(b *journal.Planned, m *journal.Manifest) error {
	if b.N != len(l.responses) || m == nil {
		return fmt.Errorf("a plan of response %d, of %d", b.N, len(l.responses))
	}
	r := l.responses[b.N-1]
	r.planned = true
	specs := slices.Concat(m.Tools, b.Tools)
	for _, pc := range b.Calls {
		fc, err := r.items[pc.P].FunctionCall()
		if err != nil {
			return err
		}
		c := &call{id: fc.CallID, gate: pc.Gate, intents: map[int]int64{}}
		if pc.Tool >= 0 {
			c.tool = specs[pc.Tool].Name
			c.kind = classOf(c.tool)
		}
		if !pc.Output.IsZero() && pc.Gate == journal.Allow {
			c.settled, c.outcome, c.output = 1, journal.Rejected, pc.Output
		}
		r.calls = append(r.calls, c)
	}
	return nil
}

// classOf is the class that a tool has, whatever the ledger says.
func classOf(tool string) journal.Class {
	for _, t := range toolTable {
		if t.name == tool {
			return t.kind
		}
	}
	return journal.AtMostOnce
}

// aboutCall reads a fact about one call, if it is one.
func (l *ledger) aboutCall(f journal.Fact) error {
	switch b := f.Body.(type) {
	case *journal.Intended:
		if b.ID.Kind != journal.EffectTool {
			return nil
		}
		c, err := l.at(b.ID)
		if err != nil {
			return err
		}
		c.intents[b.ID.A] = f.Time
	case *journal.Decided:
		c, err := l.at(b.Call)
		if err != nil {
			return err
		}
		c.approved = c.approved || b.Verdict == journal.Approve
		c.rejected = c.rejected || b.Verdict == journal.Reject
		if b.Sticky && b.Verdict == journal.Approve {
			l.always[c.tool] = true
		}
	case *journal.Settled:
		c, err := l.at(b.ID)
		if err != nil || b.Late || b.Output.IsZero() {
			return err
		}
		if b.Outcome == journal.Unknown && b.ID.A > 0 && l.goesOn(c) {
			return nil // it runs again, or somebody is asked
		}
		c.settled++
		c.outcome, c.output = b.Outcome, b.Output
	}
	return nil
}

// goesOn says that an unknown outcome need not settle the call. What settles it comes later, and then counts alone.
func (l *ledger) goesOn(c *call) bool {
	return c.kind == journal.Idempotent || c.kind == journal.ReadOnly || c.tool == toolWire || c.tool == toolCharge
}

func (l *ledger) at(id journal.EffectID) (*call, error) {
	if id.N < 1 || id.N > len(l.responses) {
		return nil, fmt.Errorf("%v is of no response", id)
	}
	r := l.responses[id.N-1]
	if id.P < 0 || id.P >= len(r.calls) { // in this program's responses every item is a call
		return nil, fmt.Errorf("%v is no call", id)
	}
	return r.calls[id.P], nil
}

// history is everything that the conversation says up to the first n responses, as far as those are whole.
func (l *ledger) history(n int) []item.Item {
	return slices.Concat(l.before, l.added(n))
}

// added is what the run adds to it. An input that was never loaded is not owed.
func (l *ledger) added(n int) []item.Item {
	if !l.loaded {
		return nil
	}
	list := slices.Clone(l.input)
	for _, r := range l.responses[:n] {
		if !r.whole() {
			break
		}
		list = append(list, r.items...)
		for _, c := range r.calls {
			list = append(list, c.output)
		}
	}
	return list
}

func (r *response) whole() bool {
	return r.planned && !slices.ContainsFunc(r.calls, func(c *call) bool { return c.settled == 0 })
}

// answered is the request that a response answers, as its items say.
func answered(items []item.Item) int {
	for _, it := range items {
		if fc, err := it.FunctionCall(); err == nil {
			if _, _, request, ok := readCallID(fc.CallID); ok {
				return request
			}
		}
		if m, err := it.Message(); err == nil {
			if request, ok := readFarewell(m.Text()); ok {
				return request
			}
		}
	}
	return -1
}
