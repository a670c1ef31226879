package chaos

import (
	"errors"
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
	cancelled bool
	finished  *journal.Finished
	// always are the tools that somebody approved for all calls.
	always map[string]bool
	// ambiguous are the numbers of responses there were whenever the run refused to send anything.
	ambiguous []int
	odd       []string // what no run should have written
	// repeats says that an engine makes an attempt again whose worker it lost, if the tool's class allows it.
	repeats bool
	seen    sights
}

// response is one that the run accepted.
type response struct {
	request int // that it answered, -1 if its items do not say
	items   []item.Item
	planned bool
	calls   []*call
}

// readLedger reads the facts of a run.
func readLedger(records []journal.Record, h Host) (*ledger, error) {
	l := &ledger{always: map[string]bool{}, repeats: h.engine()}
	manifests := map[int]*journal.Manifest{}
	var last *journal.Manifest
	for _, rec := range records {
		f, err := journal.Decode(rec)
		if err = errors.Join(err, rec.Verify()); err != nil {
			return nil, err
		}
		if l.finished != nil && !afterEnd(f.Body) {
			l.odd = append(l.odd, fmt.Sprintf("%s is recorded behind its end", rec.Kind))
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
		case *journal.Failed:
			if b.Code == "delivery_ambiguous" {
				l.ambiguous = append(l.ambiguous, len(l.responses))
			}
		case *journal.Cancelled:
			l.cancelled = true
		case *journal.Finished:
			l.finished = b
		case *journal.Claimed:
			l.claimed()
		case *journal.Planned:
			err = l.plan(b, last, f.Time)
		default:
			err = l.aboutCall(f)
		}
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// afterEnd says that a fact may stand behind the end of a run: a late result, what somebody found out about a call, and the
// claim under which it is recorded.
func afterEnd(b journal.Body) bool {
	switch b := b.(type) {
	case *journal.Claimed:
		return true
	case *journal.Settled:
		return b.Late
	case *journal.Decided:
		return b.Verdict == journal.Settle
	}
	return false
}

// plan reads which calls a response has.
func (l *ledger) plan(b *journal.Planned, m *journal.Manifest, at int64) error {
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
		c := &call{id: fc.CallID, gate: pc.Gate, asking: pc.Gate == journal.Ask, askedAt: at}
		if pc.Tool >= 0 {
			c.tool = specs[pc.Tool].Name
		}
		if !pc.Output.IsZero() && pc.Gate == journal.Allow {
			c.settled, c.outcome, c.output = 1, journal.Rejected, pc.Output
		}
		r.calls = append(r.calls, c)
	}
	return nil
}

// at is the call of an effect.
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
