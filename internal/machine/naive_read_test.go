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
	stepped bool   // not replayed
	frame   string // of the effect
	handed  journal.EffectID
	ended   journal.EffectID
	durable int
}

// whole is what a list of events says of a run and those nested in it.
type whole struct {
	log []event
	hit func(tag string)

	frames      []*world // in the order in which they were started, the run's own first
	run         string
	epoch       uint64
	owner       journal.Owner
	cancelled   bool
	failure     *journal.Failed
	failedIn    string
	observed    uint64
	context     string
	usage       machine.Usage
	facts       int
	durable     int
	mustBeSaved bool // a fact asked for it [M13.2]
	forked      int  // in the log: the last fork that made another run
}

// world is what a list of events says of a frame, and of the whole. It is read from the whole list, again whenever
// something happened.
type world struct {
	*whole
	name   string
	outer  *world // nil for the run's own
	caller *call
	shut   bool // closed by M17.9

	start    *journal.Started
	session  *journal.SessionRef
	maxTurns int
	finished *journal.Finished

	loaded      bool
	places      []place
	inputAt     int // where the input begins
	inputEnd    int // and ends
	persisted   int
	chain       int          // the end of what the server has [M6.3]
	delivered   map[int]bool // the places that it has
	agent       string       // who has the conversation
	verdicts    map[journal.EffectID]bool
	tripped     *machine.Trip
	handled     *journal.Handled
	handledAt   int // the place of its message, -1 without
	handledFrom int
	added       []*journal.Added
	admitted    int
	viewed      []journal.Span
	viewedTo    int
	previous    string
	responseID  string
	turns       []*turn
	responses   []*response
	batch       batch
	confirmed   int
	sticky      []stickyDecision
	flight      []journal.EffectID
	notAgain    []journal.EffectID
}

// place is a place of the history: an item, or the output of a call, or dropped.
type place struct {
	item    item.Item
	call    *call
	dropped bool
	extra   bool // no response's, and settled as it is
}

type turn struct {
	prepared *journal.Prepared
	manifest *journal.Manifest
	recorded int // the turn that recorded the manifest
	from     int
	view     []journal.Span
	previous string
	attempt  int
	open     bool
	doubt    bool
	repeat   bool
	retryAt  int64
	approves bool // M5.11
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
	id       journal.EffectID
	at       int // where it was planned in the log
	place    int
	item     item.Item
	planned  journal.PlannedCall
	spec     journal.ToolSpec
	events   []moment
	withheld bool            // its output
	failed   *journal.Failed // what the model is to be told of [M17.8]
}

// moment is a fact and the epochs at its time.
type moment struct {
	at            int
	fact          journal.Fact
	epoch, before uint64
}

func read(log []event, hit func(string)) *world {
	w := &world{whole: &whole{log: log, hit: hit}, delivered: map[int]bool{}, verdicts: map[journal.EffectID]bool{}}
	w.frames = []*world{w}
	for i, e := range log {
		switch {
		case e.fact != nil:
			w.readFact(i, *e.fact)
			if e.stepped {
				w.mustBeSaved = w.mustBeSaved || w.frame(e.fact.Frame).asksForSync(*e.fact)
			} else {
				w.durable++
			}
			w.facts++
		case e.handed.Kind != 0:
			f := w.frame(e.frame)
			f.flight = append(f.flight, e.handed)
		case e.ended.Kind != 0:
			if f := w.frame(e.frame); slices.Contains(f.flight, e.ended) {
				w.hit("M1.7 ended")
				f.land(func(id journal.EffectID) bool { return id == e.ended })
				f.notAgain = append(f.notAgain, e.ended)
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

// readFact reads a fact, w being the run's own frame.
func (w *world) readFact(i int, f journal.Fact) {
	m := moment{at: i, fact: f, before: w.epoch}
	switch b := f.Body.(type) {
	case *journal.Started:
		in := w
		if f.Frame != "" {
			in = w.nest(f.Frame)
			in.readCall(m)
		} else {
			w.run, w.context = b.Run, b.Context
		}
		in.start, in.session, in.maxTurns, in.previous, in.agent = b, b.Session, b.MaxTurns, b.Previous, b.Agent
		if b.Session == nil {
			in.makeHistory(nil, nil)
		}
	case *journal.Forked:
		w.readForked(i, b)
	case *journal.Claimed:
		w.epoch, w.owner = b.Epoch, b.Owner
		m.epoch = b.Epoch
		for _, in := range w.frames {
			in.readClaimed(m)
		}
	case *journal.Resumed:
		in := w // M4.5
		if w.failure != nil && w.failure.Code == machine.CodeMaxTurns {
			in = w.frame(w.failedIn)
		}
		w.failure, w.failedIn = nil, ""
		if b.Context != "" { // M1.11
			w.context = b.Context
		}
		if b.MaxTurns > 0 {
			in.maxTurns = b.MaxTurns
		} else if b.MaxTurns < 0 {
			in.maxTurns = 0
		}
	case *journal.Cancelled:
		if w.failure != nil {
			w.hit("M11.5 cancelled after a failure")
		}
		for _, in := range w.frames {
			if in.finished == nil {
				in.takeBackOpen()
			}
		}
		w.cancelled, w.failure, w.failedIn = true, nil, ""
		for _, in := range w.frames {
			in.land(func(id journal.EffectID) bool { return id.Kind == journal.EffectWait }) // M15.2
		}
	default:
		m.epoch = w.epoch
		w.frame(f.Frame).readOwn(m)
	}
}

// readClaimed is M12.2 and M12.6.
func (w *world) readClaimed(m moment) {
	w.flight, w.notAgain = nil, nil
	w.batch.doubt = w.batch.open && !w.batch.absent
	if t := w.turn(); t != nil {
		t.doubt = t.open
	}
	w.readCalls(m)
}

// readOwn reads a fact that is the frame's own.
func (w *world) readOwn(m moment) {
	w.readTrips(m.fact.Body)
	open := !w.settledNewest()
	switch b := m.fact.Body.(type) {
	case *journal.Loaded:
		w.makeHistory(b.Items, b.Healed)
		w.persisted = len(b.Items)
		w.setView(b.View)
	case *journal.Finished:
		w.finished = b
		if w.outer != nil {
			w.readCall(m)
		}
	case *journal.Planned:
		w.readPlan(m.at, b)
	case *journal.Judged:
		w.response().judged = b
	case *journal.Confirmed:
		if w.batch.doubt {
			w.hit("M10.8 confirmed in doubt")
		}
		w.persisted, w.confirmed, w.batch = b.Upto, b.N, batch{}
	case *journal.Failed:
		w.readFailed(m, b)
	case *journal.Expired:
		w.readExpired(b)
	default:
		w.readRequest(b)
		w.readBatch(b)
	}
	w.readCalls(m)
	if b, ok := m.fact.Body.(*journal.Transferred); ok {
		w.readTransferred(m, b)
	}
	w.readVerdicts(m)
	if open && w.settledNewest() && w.closed() && w.underVerdict() {
		w.takeBack(w.response())
	}
	ends := func(id journal.EffectID) bool { return w.ends(m.fact.Body, id) }
	w.land(ends)
	w.notAgain = slices.DeleteFunc(slices.Clone(w.notAgain), ends)
}

// ends is M2.4.
func (w *world) ends(b journal.Body, id journal.EffectID) bool {
	about := journal.EffectID{Kind: journal.EffectModel, N: id.N, A: id.A}
	switch {
	case id.Kind == journal.EffectTransfer, id.Kind == journal.EffectCheck:
		about.Kind, about.P = journal.EffectTool, id.P
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
		if (id.Kind == journal.EffectEnter || id.Kind == journal.EffectLeave) && id.N == b.ID.N && id.P == b.ID.P {
			return true
		}
		if id != b.ID && about.Kind == journal.EffectTool && about.N == b.ID.N && about.P == b.ID.P { // M8.15
			s := w.state(w.call(b.ID))
			return s.phase == settled || s.phase == doubt && !s.ask
		}
		return id == b.ID
	case *journal.Judged:
		return id.Kind == journal.EffectJudge && id.N == b.N
	case *journal.Checked:
		return id == b.ID
	case *journal.Handled:
		return id.Kind == journal.EffectHandle && id.N == b.N
	case *journal.Transferred:
		return id.Kind == journal.EffectTransfer && id.N == b.N && id.P == b.P
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
func (w *world) readForked(at int, b *journal.Forked) {
	if b.Run != w.run {
		w.epoch, w.owner, w.forked = 0, journal.Owner{}, at
	}
	w.run, w.session, w.batch = b.Run, b.Session, batch{}
	for _, in := range w.frames {
		in.flight, in.notAgain = nil, nil
	}
	w.confirmed, w.persisted = 0, 0
	if w.session != nil && w.loaded {
		w.hit("M1.8 all is owed to the new session")
	}
	if !w.loaded && b.Session == nil {
		w.hit("M1.8 the history was not loaded")
		w.makeHistory(nil, nil)
	}
}
