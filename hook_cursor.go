package pawl

import (
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// The hook cursor says of which facts the hooks were told. A drive with hooks says so in its
// first append, behind its claim. So the facts that it did not come to tell are known: those
// behind the cursor up to the claim of the next drive [S19.3].

// enlist is called behind the claim that a drive steps.
func (d *drive) enlist() {
	if d.hooked = d.engine == nil && d.root.team.hooked(d.root.opts); !d.hooked {
		return
	}
	d.untold, d.untoldEnd = d.leftUntold()
	if n := d.m.Facts(); n > d.m.Observed() {
		d.step(&journal.Observed{N: n})
	}
}

// leftUntold returns the range of the records of which an earlier drive was to tell its
// hooks, and perhaps did not.
func (d *drive) leftUntold() (from, end int) {
	records := d.records.list()
	for i := range records {
		switch records[i].Kind {
		case journal.KindObserved:
			from, end = i, len(records)
		case journal.KindClaimed:
			if end > i {
				end = i
			}
		}
	}
	if end == 0 {
		return 0, 0
	}
	last, err := journal.Decode(records[from])
	if b, ok := last.Body.(*journal.Observed); ok && err == nil {
		from = int(b.N)
	}
	for from < end && !tellsHooks(records[from].Kind) {
		from++
	}
	return from, end
}

// tellsHooks says that a hook may be told of facts of that kind.
func tellsHooks(k journal.Kind) bool {
	switch k {
	case journal.KindStarted, journal.KindPrepared, journal.KindResponded, journal.KindTransferred, journal.KindIntended,
		journal.KindSettled, journal.KindFinished:
		return true
	}
	return false
}

// tellUntold tells the hooks of what an earlier drive left untold, as it was then.
func (d *drive) tellUntold() {
	if d.untold >= d.untoldEnd {
		return
	}
	m := machine.New()
	for i, rec := range d.records.list()[:d.untoldEnd] {
		fact, err := journal.Decode(rec)
		if err == nil {
			err = m.Replay(fact)
		}
		if err != nil {
			return // the ledger was read before: this does not happen
		}
		if i >= d.untold {
			d.observe(m, fact)
		}
	}
}

// tellHooks tells the hooks of facts that are the last ones of the ledger.
func (d *drive) tellHooks(facts []journal.Fact) {
	n := uint64(d.records.size - len(facts))
	for _, fact := range facts {
		if n++; d.observe(d.m, fact) {
			d.told = n
		}
	}
}

// recordTold lets the cursor ride on the next append.
func (d *drive) recordTold() {
	if d.told > d.m.Observed() {
		d.step(&journal.Observed{N: d.told})
	}
}

// flushTold records the cursor when nothing else follows. If that fails, the hooks are told
// once more some time.
func (d *drive) flushTold() {
	if d.told <= d.m.Observed() || len(d.unsaved)+len(d.pending) > 0 {
		return
	}
	d.recordTold()
	recs := d.encode(d.m.Flush().Facts)
	if d.append(recs, nil) == nil {
		d.records.add(recs)
		d.m.Advance(uint64(d.records.size))
		d.r.bells.ring(d.m.Run())
	}
}

// catchUp tells the hooks of a run that has ended what its last drive left untold. If somebody
// else has the run, they will be told another time.
func (d *drive) catchUp() {
	if d.hooked = d.root.team.hooked(d.root.opts); !d.hooked {
		return
	}
	if from, end := d.leftUntold(); from >= end {
		return
	}
	m, records := d.m, d.records
	d.records = ledger{}
	if err := d.claim(d.caller, m.Run(), 0); err != nil || d.records.size == 0 {
		d.records = records
		d.use(m)
		return
	}
	defer d.release()
	d.untold, d.untoldEnd = d.leftUntold()
	d.tellUntold()
	d.m.Step(journal.Fact{Time: time.Now().UnixMilli(), Body: d.claimed})
	d.told = d.m.Facts()
	d.flushTold()
}
