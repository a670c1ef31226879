package pawltest

import (
	"hash/fnv"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// Moment is a call of an agent's code that does nothing to the world: a question, such as a guardrail's or a filter's, or what a
// hook is told. See [World.Ask] and [World.Told].
type Moment struct {
	// Kind is the kind of the boundary that such a call is.
	Kind BoundaryKind
	// Name tells the moment from all others of the run, and is the same when it is repeated. If it is about a call, the
	// model's id of the call is its last word.
	Name string
	// In is the RunContext that the code is given.
	In pawl.RunContext
	// Fact says whether a record of the ledger is the one that has the answer, or that the hook tells of.
	Fact func(journal.Record) bool
}

// moments are the times that a moment came.
type moments struct {
	Moment
	times int
}

// Ask passes the boundary of a question that the agent's code answers. Such code may be called again until its answer is
// recorded, and not after. Its error is one that the code is to return.
func (w *World) Ask(m Moment) error {
	if m.Kind.beside() {
		time.Sleep(20*time.Millisecond + pace(m.Name))
	}
	return w.at(m.Kind, m.Name, func() error {
		far := w.stage.far
		if at := far.noted(m); at > 0 && !w.wasStopped() {
			far.problem("%s was asked again after its answer was recorded", m.Name)
		}
		return nil
	})
}

// Told passes the boundary of a hook that is called. A hook is told of what is recorded, and only as long as it is not recorded
// that it was told.
func (w *World) Told(m Moment) {
	m.Kind = HookTold
	_ = w.at(m.Kind, m.Name, func() error { // a hook has nobody to return an error to
		far := w.stage.far
		switch at := far.noted(m); {
		case w.store == nil:
		case at == 0:
			far.problem("hook: %s was told before it was recorded", m.Name)
		case at <= far.observed() && !w.wasStopped():
			far.problem("hook: %s was told again after that was recorded", m.Name)
		}
		return nil
	})
}

// wasStopped says that the process was stopped once, and cannot know what happened meanwhile.
func (w *World) wasStopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.late
}

// pace is how long something takes that happens beside other things, different for each name.
func pace(name string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // it never fails
	return time.Millisecond + time.Duration(h.Sum32()%997)*time.Microsecond
}

// noted counts a moment and returns the place in the ledger of the fact that it is about, 0 if that is not recorded.
func (f *far) noted(m Moment) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.moments[m.Name]
	if seen == nil {
		seen = &moments{Moment: m}
		f.moments[m.Name] = seen
	}
	seen.times++
	return f.place(m)
}

// place returns the place of a moment's fact in the ledger, 0 if it has none. The caller holds the lock.
func (f *far) place(m Moment) int {
	for i, r := range f.ledger {
		if m.Fact(r) {
			return i + 1
		}
	}
	return 0
}

// observed is how far the ledger says that hooks were told.
func (f *far) observed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursor
}

// unchecked returns the guardrail on the input of a call's run whose verdict is not recorded, empty if there is none. The caller
// holds the lock.
func (f *far) unchecked(c *pawl.Call) string {
	for _, list := range []map[string]*moments{f.moments, f.expected} {
		for _, m := range list {
			if m.Kind == InputGuardrail && invocation(m.In) == invocation(c.RunContext) && f.place(m.Moment) == 0 {
				return m.Name
			}
		}
	}
	return ""
}

// invocation is the key of the call that a nested run is of, empty for the run itself.
func invocation(rc pawl.RunContext) string {
	if rc.Invocation == nil {
		return ""
	}
	return rc.Invocation.Key
}

// checkTold checks that hooks were told of everything: once, and if a process died or was stopped, at least once.
func (st *stage) checkTold() {
	f := st.far
	once := !st.point.fault.crashes() && !st.point.fault.stops() && (st.point.fault != Fails || !st.point.boundary.Kind.ofStore())
	for name, seen := range f.moments {
		if once && seen.Kind == HookTold && seen.times != 1 {
			f.problem("hook: %s was told %d times, and no process died", name, seen.times)
		}
	}
	if st.clean == nil || st.store == nil {
		return
	}
	for name, m := range st.clean.Moments {
		if m.Kind == HookTold && f.moments[name] == nil && f.place(m.Moment) > 0 {
			f.problem("hook: %s was recorded, and never told", name)
		}
	}
}
