package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// event is one thing that happened to a machine: a fact was folded, an effect was handed, an effect was ended, or
// facts became durable.
type event struct {
	fact    *journal.Fact
	stepped bool // not replayed
	handed  journal.EffectID
	ended   journal.EffectID
	durable int
}

// world is what a list of events says. It is read from the whole list, again for every question.
type world struct {
	log []event
	hit func(tag string)

	start     *journal.Started
	run       string
	session   *journal.SessionRef
	maxTurns  int
	epoch     uint64
	owner     journal.Owner
	cancelled bool
	forked    int // in the log: where the run was made of another, 0 if it was not
	failure   *journal.Failed
	finished  *journal.Finished

	loaded      bool
	places      []place
	inputAt     int // where the input begins
	inputEnd    int // and ends
	persisted   int
	chain       int // the end of what the server has [M6.3]
	previous    string
	responseID  string
	turns       []*turn
	responses   []*response
	batch       batch
	confirmed   int
	sticky      []stickyDecision
	usage       machine.Usage
	flight      []journal.EffectID
	notAgain    []journal.EffectID
	facts       int
	durable     int
	mustBeSaved bool // a fact asked for it [M13.2]
}

// place is a place of the history: an item, or the output of a call, or dropped.
type place struct {
	item    item.Item
	call    *call
	dropped bool
}

type turn struct {
	prepared *journal.Prepared
	manifest *journal.Manifest
	recorded int // the turn that recorded the manifest
	from     int
	previous string
	attempt  int
	open     bool
	doubt    bool
	repeat   bool
	retryAt  int64
}

type response struct {
	n, start, end int // end is behind the outputs once there is a plan
	items         []item.Item
	manifest      *journal.Manifest
	plan          *journal.Planned
	calls         []*call
	judged        *journal.Judged
}

type batch struct {
	open, doubt, absent bool
	n, upto, attempt    int
}

type stickyDecision struct {
	at       int // in the log
	identity string
	decided  *journal.Decided
}

// call is a planned call that is no twin, and everything in the log that is about it.
type call struct {
	id      journal.EffectID
	at      int // where it was planned in the log
	place   int
	item    item.Item
	planned journal.PlannedCall
	spec    journal.ToolSpec
	events  []moment
}

// moment is a fact and the epochs at its time.
type moment struct {
	at            int
	fact          journal.Fact
	epoch, before uint64
}

func read(log []event, hit func(string)) *world {
	w := &world{log: log, hit: hit}
	for i, e := range log {
		switch {
		case e.fact != nil:
			if e.stepped {
				w.mustBeSaved = w.mustBeSaved || w.asksForSync(*e.fact)
			} else {
				w.durable++
			}
			w.facts++
			w.readFact(i, *e.fact)
		case e.handed.Kind != 0:
			w.flight = append(w.flight, e.handed)
		case e.ended.Kind != 0:
			if slices.Contains(w.flight, e.ended) {
				w.hit("M1.7 ended")
				w.land(func(id journal.EffectID) bool { return id == e.ended })
				w.notAgain = append(w.notAgain, e.ended)
			}
		default:
			w.durable = e.durable
			if w.durable == w.facts {
				w.mustBeSaved = false
			}
		}
	}
	return w
}

// land takes effects out of flight.
func (w *world) land(which func(journal.EffectID) bool) {
	w.flight = slices.DeleteFunc(slices.Clone(w.flight), which)
}

func (w *world) readFact(i int, f journal.Fact) {
	before := w.epoch
	switch b := f.Body.(type) {
	case *journal.Started:
		w.start, w.run, w.session, w.maxTurns, w.previous = b, b.Run, b.Session, b.MaxTurns, b.Previous
		if b.Session == nil {
			w.makeHistory(nil, nil)
		}
	case *journal.Forked:
		w.readForked(i, b)
	case *journal.Claimed:
		w.epoch, w.owner = b.Epoch, b.Owner
		w.flight, w.notAgain = nil, nil // M12.6
		w.batch.doubt = w.batch.open && !w.batch.absent
		if t := w.turn(); t != nil {
			t.doubt = t.open
		}
	case *journal.Resumed:
		w.failure = nil
		if b.MaxTurns > 0 {
			w.maxTurns = b.MaxTurns
		} else if b.MaxTurns < 0 {
			w.maxTurns = 0
		}
	case *journal.Loaded:
		w.makeHistory(b.Items, b.Healed)
		w.persisted = len(b.Items)
	case *journal.Cancelled:
		if w.failure != nil {
			w.hit("M11.5 cancelled after a failure")
		}
		w.cancelled, w.failure = true, nil
		w.land(func(id journal.EffectID) bool { return id.Kind == journal.EffectWait }) // M15.2
	case *journal.Finished:
		w.finished = b
	case *journal.Planned:
		w.readPlan(i, b)
	case *journal.Judged:
		w.response().judged = b
	case *journal.Confirmed:
		if w.batch.doubt {
			w.hit("M10.8 confirmed in doubt")
		}
		w.persisted, w.confirmed, w.batch = b.Upto, b.N, batch{}
	case *journal.Failed:
		w.readFailed(b)
	case *journal.Expired:
		w.readExpired(b)
	default:
		w.readRequest(f.Body)
		w.readBatch(f.Body)
	}
	w.readCalls(moment{at: i, fact: f, epoch: w.epoch, before: before})
	ends := func(id journal.EffectID) bool { return w.ends(f.Body, id) }
	w.land(ends)
	w.notAgain = slices.DeleteFunc(slices.Clone(w.notAgain), ends)
}

// ends is M2.4.
func (w *world) ends(b journal.Body, id journal.EffectID) bool {
	about := journal.EffectID{Kind: journal.EffectModel, N: id.N, A: id.A}
	switch {
	case id.Kind == journal.EffectReconcile && id.P == 1:
		about.Kind = journal.EffectSession
	case id.Kind == journal.EffectReconcile && id.P >= 2:
		about.Kind, about.P = journal.EffectTool, id.P-2
	case id.Kind == journal.EffectWait && id.P >= 1:
		about.Kind, about.P = journal.EffectTool, id.P-1
	}
	switch b := b.(type) {
	case *journal.Loaded:
		return id.Kind == journal.EffectLoad
	case *journal.Prepared:
		return id.Kind == journal.EffectPrepare && id.N == b.N
	case *journal.Responded:
		return (id.Kind == journal.EffectModel || id.Kind == journal.EffectReconcile) && about == b.ID
	case *journal.Absent:
		return about == b.ID && (id.Kind == journal.EffectReconcile || about.Kind == journal.EffectTool) // M8.15
	case *journal.Planned:
		return id.Kind == journal.EffectPlan && id.N == b.N
	case *journal.Settled:
		if id != b.ID && about.Kind == journal.EffectTool && about.N == b.ID.N && about.P == b.ID.P { // M8.15
			s := w.state(w.call(b.ID))
			return s.phase == settled || s.phase == doubt && !s.ask
		}
		return id == b.ID
	case *journal.Judged:
		return id.Kind == journal.EffectJudge && id.N == b.N
	case *journal.Confirmed:
		return id.Kind == journal.EffectSession && id.N == b.N ||
			id.Kind == journal.EffectReconcile && id.P == 1 && id.N == b.N
	case *journal.Fired:
		return id == b.ID
	case *journal.Failed:
		return id == b.ID || id.Kind == journal.EffectReconcile && about == b.ID
	case *journal.Intended: // M5.8
		return b.ID.Kind == journal.EffectModel && id == journal.EffectID{Kind: journal.EffectWait, N: b.ID.N, A: b.ID.A - 1}
	}
	return false
}

// makeHistory is M3.1 to M3.3.
func (w *world) makeHistory(items, healed []item.Item) {
	w.loaded, w.places = true, nil
	for _, it := range slices.Concat(items, healed, w.start.Input) {
		w.places = append(w.places, place{item: it})
	}
	w.inputEnd = len(w.places)
	w.inputAt = w.inputEnd - len(w.start.Input)
}

// readForked is M1.8.
func (w *world) readForked(i int, b *journal.Forked) {
	if b.Run != w.run {
		w.epoch, w.owner, w.forked = 0, journal.Owner{}, i
	}
	w.run, w.session, w.batch = b.Run, b.Session, batch{}
	w.flight, w.notAgain = nil, nil
	w.confirmed, w.persisted = 0, 0
	if w.session != nil && w.loaded {
		w.hit("M1.8 all is owed to the new session")
	}
	if !w.loaded && b.Session == nil {
		w.hit("M1.8 the history was not loaded")
		w.makeHistory(nil, nil)
	}
}
