package pawltest

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// stage is where one point is played.
type stage struct {
	scenario Scenario
	point    point
	clean    *ending // nil in the clean run
	template string  // of the store's directory
	dir      string

	far     *far
	store   journal.Driver // as the newest process opened it; nil without one
	opened  []journal.Driver
	over    chan struct{}  // closed at the end, for the dead
	running sync.WaitGroup // calls of the API

	mu         sync.Mutex
	boundaries []Boundary
	ended      bool // what comes now is no boundary of the run
	struck     bool
	exposed    []string // calls that were under way when the fault struck
	calls      int
	worlds     int

	// What the caller of the API has.
	begun   bool
	state   *pawl.RunState
	saved   []byte
	known   int // effects when it was saved
	decided []pawl.Decision
	settled map[string]bool   // calls in doubt that were given an output
	edited  map[string]bool   // calls that were given other arguments
	asked   map[string]string // frames of the calls that somebody was asked about, by key
	asks    map[string]string // what somebody was asked about, by interruption
	adding  *pawl.RunState    // the state on which input is staged
	adds    struct{ tried, taken, refused int }
	zombie  *World // the process that was stopped
	back    bool   // it went on
	end     *ending
}

func (s Scenario) stage(p point, template string) *stage {
	st := &stage{scenario: s, point: p, template: template, far: newFar(s), settled: map[string]bool{}, edited: map[string]bool{}, asked: map[string]string{}, asks: map[string]string{}}
	return st
}

func (st *stage) runID() string { return "sweep-" + st.scenario.Name }

// arrive counts a boundary and returns the fault that is to strike there, "" if none is.
func (st *stage) arrive(w *World, kind BoundaryKind, name string) Fault {
	st.mu.Lock()
	if st.ended {
		st.mu.Unlock()
		st.far.note("  %s: %s", kind, name)
		return ""
	}
	b := Boundary{N: len(st.boundaries) + 1, Kind: kind, Name: name, Call: st.calls}
	st.boundaries = append(st.boundaries, b)
	due := st.point.fault != "" && !st.struck && b.N == st.point.boundary.N
	st.struck = st.struck || due
	st.mu.Unlock()
	if !due {
		st.far.note("  %s", b)
		return ""
	}
	st.far.note("  %s  <-- %s", b, st.point.fault)
	if b != st.point.boundary {
		st.far.problem("the scenario does not repeat itself: boundary %s was %s", b, st.point.boundary)
	}
	st.expose()
	return st.point.fault
}

// expose notes which calls are under way at this moment.
func (st *stage) expose() {
	open := st.far.openCalls()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.exposed = append(st.exposed, open...)
}

// boot starts a process.
func (st *stage) boot() *World {
	st.worlds++
	w := &World{stage: st, number: st.worlds}
	w.agent = st.scenario.Agent(w)
	st.far.meet(w.agent, true)
	w.runner = &pawl.Runner{OnHookError: func(err error) { st.far.problem("hook: %v", err) }}
	if st.store != nil {
		w.store = sweptStore{st.store, w}
		if t := journal.TransactorOf(st.store); t != nil {
			w.store = sweptTransactor{sweptStore{st.store, w}, t}
		}
		w.runner.Store = w.store
	}
	return w
}

// reboot starts a process after the last one died or was stopped. It knows what is stored or saved.
func (st *stage) reboot() *World {
	st.expose()
	st.openStore()
	st.state = nil
	if st.point.carrier == byJSON && st.saved != nil {
		st.far.forget(st.known)
		st.parse()
	}
	return st.boot()
}

// parse reads the saved document.
func (st *stage) parse() {
	state, err := pawl.ParseRunState(st.saved)
	if err != nil {
		st.far.problem("G4: the saved state: %v", err)
		return
	}
	st.state = state
}

// openStore opens the store, for a process that starts.
func (st *stage) openStore() {
	switch {
	case st.point.carrier != inStore:
		return
	case st.scenario.Store == nil && st.store == nil:
		st.store = journal.NewMemory()
	case st.scenario.Store != nil:
		store, err := st.scenario.Store(st.dir)
		if err != nil {
			st.far.problem("the store: %v", err)
			return
		}
		st.store = store
		st.opened = append(st.opened, store)
	}
}

// maxCalls is how many calls a caller makes before the run counts as stuck.
const maxCalls = 48

// leaseOver is how long after a crash, or after a process stopped, its claim is certainly over.
const leaseOver = pawl.DefaultLease + time.Second

// play plays the point to its end.
func (st *stage) play() {
	st.over = make(chan struct{})
	st.openStore()
	w := st.boot()
	for st.end == nil {
		if st.calls == maxCalls {
			st.far.problem("G5: the run does not end")
			break
		}
		w = st.turn(w)
	}
	if st.end != nil {
		st.mu.Lock()
		st.ended = true
		st.mu.Unlock()
		st.afterwards(w)
	}
	close(st.over)
	st.running.Wait()
	time.Sleep(time.Hour) // for what is left to end: bodies of tools, leases that are renewed
	st.far.close()
	for _, store := range st.opened {
		if err := closeStore(store); err != nil {
			st.far.problem("the store: %v", err)
		}
	}
}

// turn makes a call and returns the process that makes the next one.
func (st *stage) turn(w *World) *World {
	st.calls++
	from := st.from()
	return st.went(w, w.call(func() (*pawl.Result, error) { return w.drive(from) }))
}

// went goes on after a call.
func (st *stage) went(w *World, f fate) *World {
	switch {
	case f.what == died:
		return st.reboot()
	case f.what == stoppedThere:
		st.zombie = w
		time.Sleep(leaseOver)
		return st.reboot()
	case f.err != nil:
		st.failed(f.err)
	case f.res == nil: // a decision was submitted, or staged
		st.save()
	default:
		st.reached(f.res)
		if f.res.Waiting() {
			return st.decide(w, f.res)
		}
		st.end = st.ending(f.res, nil)
	}
	return st.next(w)
}

// next is the process of the next call: the same one, or another as a careful caller may have.
func (st *stage) next(w *World) *World {
	if st.point.carrier == inProcess || st.end != nil {
		return w
	}
	if st.point.carrier == byJSON && st.saved != nil {
		st.parse()
	}
	return st.boot()
}

// from is what to resume from, nil if the run has to be started.
func (st *stage) from() pawl.Resumable {
	if st.point.carrier == inStore && !st.begun && st.point.stream {
		st.begun = st.far.begun() // a caller who does not know whether it has begun may ask the store, or start it again
	}
	switch {
	case st.state != nil:
		return st.state
	case st.begun && st.point.carrier == inStore:
		return pawl.RunID(st.runID())
	}
	return nil
}

// reached keeps what a call has come to.
func (st *stage) reached(res *pawl.Result) { st.keep(res.State()) }

func (st *stage) keep(state *pawl.RunState) {
	st.begun, st.state = true, state
	if st.point.carrier == inStore {
		st.state = nil
	}
	st.save()
}

// save saves the state as a document.
func (st *stage) save() {
	if st.point.carrier != byJSON {
		return
	}
	doc, err := json.Marshal(st.state)
	if err != nil {
		st.far.problem("G4: the state: %v", err)
	}
	st.far.mu.Lock()
	defer st.far.mu.Unlock()
	st.saved, st.known = doc, len(st.far.effects)
}

// failed goes on after an error: the run has ended with it, or it is one that the fault explains.
func (st *stage) failed(err error) {
	st.far.note("  error: %v", err)
	var re *pawl.RunError
	if errors.As(err, &re) && re.State != nil {
		st.keep(re.State)
		if st.point.carrier == inStore && st.point.stream && !errors.Is(err, pawl.ErrClaimed) {
			st.state = re.State // also what the store did not take
		}
	}
	switch {
	case st.clean == nil || err.Error() == st.clean.Error || st.clean.Tripped != "" && st.clean.Tripped == tripOf(err):
		st.end = st.ending(nil, err)
	case st.claimed(err):
		time.Sleep(leaseOver)
	case errors.Is(err, ErrSwept), st.lostRace(err):
	case st.undeliverable(err):
		st.end = st.ending(nil, err)
	default:
		st.far.problem("G5: nothing explains the error: %v", err)
		st.end = st.ending(nil, err)
	}
}
