package explore

import (
	"fmt"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// record is a fact as its writer stored it.
type record struct {
	fact  journal.Fact
	epoch uint64 // it was written under
	what  int    // names its content, times left out
	until int64  // the time it names, 0 without one
}

// record makes the record of a fact.
func (x *explorer) record(f journal.Fact, epoch uint64) *record {
	r := &record{fact: f, epoch: epoch}
	switch b := f.Body.(type) {
	case *journal.Intended:
		bare := *b
		r.until, bare.NotAfter = b.NotAfter, 0
		f.Body = &bare
	case *journal.Settled:
		if b.Outcome == journal.Unknown {
			r.until = f.Time // it counts whether the body's time was over
		}
	}
	r.what = x.name(string(f.Body.Kind()) + journal.Encode(f, [16]byte{}).Payload)
	return r
}

// name returns the number of a text; equal texts have equal numbers.
func (x *explorer) name(text string) int {
	n, ok := x.names[text]
	if !ok {
		n = len(x.names)
		x.names[text] = n
	}
	return n
}

// same says that two records are one: a writer that repeats an append repeats its bytes.
func (r *record) same(o *record) bool {
	return r.what == o.what && r.epoch == o.epoch && r.until == o.until
}

// ledger is what a store holds of the run. Equal ledgers are one value.
type ledger struct {
	records []*record
	next    []*ledger // with one record more
	folded  *view
}

// with returns the ledger with more records.
func (l *ledger) with(records []*record) *ledger {
	for _, r := range records {
		l = l.extend(r)
	}
	return l
}

func (l *ledger) extend(r *record) *ledger {
	for _, n := range l.next {
		if n.records[len(l.records)].same(r) && n.records[len(l.records)].fact.Time == r.fact.Time {
			return n
		}
	}
	n := &ledger{records: append(l.records[:len(l.records):len(l.records)], r)}
	l.next = append(l.next, n)
	return n
}

// holds says that the ledger continues with these records after the first n.
func (l *ledger) holds(n int, records []*record) bool {
	if len(l.records) < n+len(records) {
		return false
	}
	for i, r := range records {
		if !l.records[n+i].same(r) {
			return false
		}
	}
	return true
}

// view is what a ledger says of the run.
type view struct {
	m             *machine.Machine
	err           error // the ledger breaks a rule
	finished      bool
	interruptions []machine.Interruption
	intents       map[journal.EffectID]uint64          // the epochs they were written under
	outcomes      map[journal.EffectID]journal.Outcome // of settled calls, without attempt
	history       []item.Item                          // what is settled of it
}

// view folds a ledger, once.
func (l *ledger) view() *view {
	if l.folded == nil {
		l.folded = l.fold()
	}
	return l.folded
}

func (l *ledger) fold() *view {
	v := &view{m: machine.New(), intents: map[journal.EffectID]uint64{}, outcomes: map[journal.EffectID]journal.Outcome{}}
	type stage struct {
		call  journal.EffectID
		stage int
	}
	decided := map[stage]bool{}
	for _, r := range l.records {
		if v.err = v.m.Replay(r.fact); v.err != nil {
			return v
		}
		switch b := r.fact.Body.(type) {
		case *journal.Intended:
			if _, again := v.intents[b.ID]; again {
				v.err = fmt.Errorf("%s is intended twice", b.ID)
			}
			v.intents[b.ID] = r.epoch
		case *journal.Decided:
			at := stage{b.Call, b.Stage}
			if decided[at] {
				v.err = fmt.Errorf("%s is decided twice", machine.InterruptionID("", b.Call, b.Stage))
			}
			decided[at] = true
		case *journal.Settled:
			v.settled(b)
		}
	}
	v.finished = v.m.Finished() != nil
	v.interruptions = v.m.Interruptions()
	for it := range v.m.Items(0, v.m.Settled()) {
		v.history = append(v.history, it)
	}
	if v.err == nil {
		v.err = paired(v.history)
	}
	return v
}

// settled notes the outcome of a call that has its output now.
func (v *view) settled(b *journal.Settled) {
	call := b.ID
	call.A = 0
	if b.Late || v.m.OutputOf(call).IsZero() {
		return
	}
	if _, again := v.outcomes[call]; again {
		v.err = fmt.Errorf("%s is settled twice", call)
	}
	v.outcomes[call] = b.Outcome
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
