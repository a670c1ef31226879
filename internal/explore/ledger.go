package explore

import "github.com/pawl-agents/pawl/journal"

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
	case *journal.Planned:
		r.until = x.deadline(f.Time)
	case *journal.Settled:
		switch b.Outcome {
		case journal.Unknown:
			r.until = f.Time // it counts whether the body's time was over
		case journal.AsksAgain:
			r.until = x.deadline(f.Time)
		}
	}
	r.what = x.name(string(f.Body.Kind()) + journal.Encode(f, [16]byte{}).Payload)
	return r
}

// deadline is that of an approval that is asked for at a time, 0 if there is none.
func (x *explorer) deadline(from int64) int64 {
	if x.openTime == 0 {
		return 0
	}
	return from + x.openTime
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
	before  *ledger   // with one record less
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
	n := &ledger{before: l, records: append(l.records[:len(l.records):len(l.records)], r)}
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
