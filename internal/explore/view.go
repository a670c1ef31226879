package explore

import (
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// view is what a ledger says of the run.
type view struct {
	m             *machine.Machine
	err           error // the ledger breaks a rule
	finished      bool
	interruptions []machine.Interruption
	intents       map[journal.EffectID]uint64          // the epochs they were written under
	outcomes      map[journal.EffectID]journal.Outcome // of settled calls, without attempt
	results       map[journal.EffectID]bool            // of attempts, and of their calls
	allowed       map[journal.EffectID]allowance       // of calls that somebody has to approve
	decided       map[stage]bool
	questions     map[stage]string // what each interruption was about, in this ledger and those before
	history       []item.Item      // what is settled of it
}

// stage is a question about a call.
type stage struct {
	call journal.EffectID
	n    int
}

// allowance is where a call stands that somebody has to approve.
type allowance string

const (
	asked    allowance = "asked"
	approved allowance = "approved"
	rejected allowance = "rejected"
	expired  allowance = "expired"
)

// view folds a ledger, once.
func (l *ledger) view() *view {
	if l.folded == nil {
		l.folded = l.fold()
	}
	return l.folded
}

func (l *ledger) fold() *view {
	v := &view{m: machine.New(), intents: map[journal.EffectID]uint64{}, outcomes: map[journal.EffectID]journal.Outcome{},
		results: map[journal.EffectID]bool{}, allowed: map[journal.EffectID]allowance{}, decided: map[stage]bool{}, questions: map[stage]string{}}
	for _, r := range l.records {
		err := v.m.Replay(r.fact)
		if err == nil {
			err = v.note(r)
		}
		if err != nil {
			v.err = err
			return v
		}
	}
	v.finished = v.m.Finished() != nil
	v.interruptions = v.m.Interruptions()
	for it := range v.m.Items(0, v.m.Settled()) {
		v.history = append(v.history, it)
	}
	for _, in := range v.interruptions {
		info, _ := v.m.Call(in.Call)
		v.questions[stage{in.Call, in.Stage}] = fmt.Sprintf("%s at attempt %d", in.Kind, info.Attempt)
	}
	if v.err = paired(v.history); v.err == nil {
		v.err = l.compare(v)
	}
	return v
}

// note looks at a record by itself: how often something is said, and who allowed it.
func (v *view) note(r *record) error {
	switch b := r.fact.Body.(type) {
	case *journal.Planned:
		for _, pc := range b.Calls {
			if pc.Gate == journal.Ask {
				v.allowed[journal.EffectID{Kind: journal.EffectTool, N: b.N, P: pc.P}] = asked
			}
		}
	case *journal.Intended:
		if _, again := v.intents[b.ID]; again {
			return fmt.Errorf("%s is intended twice", b.ID)
		}
		v.intents[b.ID] = r.epoch
		if a := v.allowed[callOf(b.ID)]; a != "" && a != approved {
			return fmt.Errorf("%s is intended, and its call is %s", b.ID, a)
		}
	case *journal.Decided:
		at := stage{b.Call, b.Stage}
		if v.decided[at] {
			return fmt.Errorf("%s is decided twice", machine.InterruptionID("", b.Call, b.Stage))
		}
		v.decided[at] = true
		switch b.Verdict {
		case journal.Approve:
			v.allowed[b.Call] = approved
		case journal.Reject:
			v.allowed[b.Call] = rejected
		}
	case *journal.Expired:
		if info, _ := v.m.Call(b.Call); !info.Spec.ExpiryFails {
			v.allowed[b.Call] = expired
		}
	case *journal.Settled:
		return v.settled(b)
	}
	return nil
}

// settled notes how an attempt ended, and the outcome of a call that has its output now.
func (v *view) settled(b *journal.Settled) error {
	if b.Outcome == journal.AsksAgain {
		v.allowed[callOf(b.ID)] = asked
	}
	if b.ID.A > 0 && (b.Outcome == journal.Done || b.Outcome == journal.ToolFailed) {
		if v.results[b.ID] {
			return fmt.Errorf("the result of %s is recorded twice", b.ID)
		}
		v.results[b.ID], v.results[callOf(b.ID)] = true, true
	}
	if b.Late || v.m.OutputOf(b.ID).IsZero() {
		return nil
	}
	if _, again := v.outcomes[callOf(b.ID)]; again {
		return fmt.Errorf("%s is settled twice", b.ID)
	}
	v.outcomes[callOf(b.ID)] = b.Outcome
	return nil
}

// callOf is the id of an attempt's call.
func callOf(id journal.EffectID) journal.EffectID {
	id.A = 0
	return id
}

// compare says what is wrong with a ledger beside the one before it: what was settled stays as it was,
// and what was said cannot be said again.
func (l *ledger) compare(v *view) error {
	if l.before == nil {
		return nil
	}
	for at, was := range l.before.view().questions {
		if is, again := v.questions[at]; again && is != was {
			return fmt.Errorf("%s is %s, and was %s", machine.InterruptionID("", at.call, at.n), is, was)
		}
		v.questions[at] = was
	}
	was := l.before.view().history
	if len(was) > len(v.history) || !slices.Equal(was, v.history[:len(was)]) {
		return fmt.Errorf("the history was\n%v\nand is\n%v", was, v.history)
	}
	for _, r := range l.records {
		f := r.fact
		f.Time += 1 << 40 // whatever is to be waited for is over
		switch f.Body.(type) {
		case *journal.Decided, *journal.Expired, *journal.Planned, *journal.Intended, *journal.Prepared, *journal.Responded,
			*journal.Confirmed, *journal.Absent, *journal.Cancelled, *journal.Finished:
			if v.m.Check(f) == nil {
				return fmt.Errorf("%T %s could be recorded again", f.Body, journal.Encode(f, [16]byte{}).Payload)
			}
		}
	}
	return nil
}

// paired says what is wrong with a list in which each call must have exactly one output,
// behind it.
func paired(items []item.Item) error {
	open := map[string]int{}
	for _, it := range items {
		h := it.Head()
		switch {
		case it.NeedsOutput():
			open[h.CallID]++
		case item.IsOutput(h.Type):
			if open[h.CallID]--; open[h.CallID] < 0 {
				return fmt.Errorf("an output of %s without its call", h.CallID)
			}
		}
	}
	for id, n := range open {
		if n != 0 {
			return fmt.Errorf("call %s has no output", id)
		}
	}
	return nil
}
