package pawltest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// Scenario is a run of an agent that [Sweep] plays again and again, each time with another thing going wrong. Everything of
// the agent that acts on the world goes through the [World] it is made with: the model, and what tools do.
//
// A run is played on fake time (package testing/synctest), so leases and deadlines cost nothing. Code of the agent must
// therefore wait for nothing outside of the test, such as a network.
type Scenario struct {
	// Name names the run in reports.
	Name string
	// Agent makes the agent. It is called by each process of the scenario, also by the one that goes on after a crash. Its model
	// is World.Model, and its tools act by World.Do.
	Agent func(w *World) *pawl.Agent
	// Input starts the run.
	Input pawl.Input
	// Script is what the model answers, one step a turn. A request that repeats a turn gets that turn's answer again: the model
	// goes by what the request holds, and not by how many there were. Steps may have Want, Check, Output, Usage and
	// NoResponseID, and nothing else; no two steps may begin with equal items.
	Script []ScriptedStep
	// Scripts are what the models of other agents answer, by the names that World.ModelOf is given.
	Scripts map[string][]ScriptedStep
	// UniqueCallIDs is what the model says of itself, see ScriptedModel.
	UniqueCallIDs bool
	// Options sets the options of the run, and of each resume. It sets neither the run's id nor its session.
	Options func(*pawl.RunOptions)
	// Driving sets what belongs to the driving and needs the World: hooks, guardrails, filters and error handlers of the run.
	Driving func(w *World, o *pawl.RunOptions)
	// Session is the kind of session the run has.
	Session SessionKind
	// Decide decides when the run waits, with the approvals it waits for. Nil approves all of them. If it returns nil, the
	// scenario ends there; a list without decisions resumes the run as it is. It may wait first, in fake time. Calls in doubt and
	// results that come later are settled by the sweep, which knows what the far side did.
	Decide func(open []pawl.Interruption) []pawl.Decision
	// Added is input that the run is given when it waits first, before anything is decided.
	Added pawl.Input
	// Cancel cancels the run when it waits, instead of deciding.
	Cancel bool
	// NoDoubt says that the far side of every tool can be asked, or honours the key, so that no call is ever in doubt.
	NoDoubt bool

	// Store opens a store in a directory, in which it may have been opened before. Nil means journals in memory, which outlive
	// the processes of the scenario as a store does.
	Store func(dir string) (journal.Driver, error)
	// StoreSession opens a session in the store's own database, for SessionInStore.
	StoreSession func(store journal.Driver, id string) session.Session

	// Committed returns what transactional tools committed to the store, a text for each call. It must be set if the agent has such
	// tools: World.Do counts what their bodies tried.
	Committed func(store journal.Driver) ([]string, error)

	// Want is the final output when nothing goes wrong, WantStatus how the run ends then; empty means finished. WantEffects are
	// what the tools do then, each "TOOL ARGUMENTS", in any order; nil means that it is not compared.
	Want        string
	WantStatus  pawl.Status
	WantEffects []string
	// WantAsked are the calls that somebody is asked about when nothing goes wrong, each "TOOL CALL_ID", in any order; nil means
	// that it is not compared.
	WantAsked []string

	// Withheld are texts that a guardrail keeps back: they are never in a session, in the replay or in the final output.
	// Unrecorded are texts that are never in the ledger or in the model's input either.
	Withheld, Unrecorded []string
	// Filtered says that a filter makes the model's input another one than the replay.
	Filtered bool
	// Races says that it is a matter of time how far the run comes, as beside a guardrail that trips: the conversation and the
	// usage at the end may differ.
	Races bool

	// Only plays the points whose name is this, or begins with it and a slash: the name of one point as a report gives it, "store",
	// or "store/stream". Every plays one of so many points; 0 means all.
	Only  string
	Every int
}

// SessionKind says what session the run of a [Scenario] has.
type SessionKind int

const (
	// NoSession: the run has none.
	NoSession SessionKind = iota
	// PlainSession knows nothing of batches, as a user might write one.
	PlainSession
	// BatchSession remembers the batches it took.
	BatchSession
	// SessionInStore is kept by the run's own store. Rows without a store have a BatchSession instead.
	SessionInStore
)

// SweepReport says what a sweep did.
type SweepReport struct {
	// Points is the number of runs with a fault, Left that of the points which Only and Every left out.
	Points, Left int
	// Impossible counts the combinations that cannot exist, by the reason.
	Impossible map[string]int
	// Boundaries are those of the clean run, by row, such as "store/run".
	Boundaries map[string][]Boundary
	// Violations are the points that went wrong, that with the shortest script first.
	Violations []Violation
}

// Violation is a point at which a promise was broken.
type Violation struct {
	// Point is the name of the point: set Scenario.Only to it to play this one again.
	Point string
	// Problems are the promises that were broken, and how.
	Problems []string
	// Script is what happened, step by step.
	Script string
}

// String tells all of it.
func (v Violation) String() string {
	return fmt.Sprintf("%s\n  %s\nwhat happened:\n%splay it again with Scenario.Only = %q", v.Point, strings.Join(v.Problems, "\n  "), v.Script, v.Point)
}

// Sweep plays a scenario without a fault, counts the boundaries at which something becomes durable or leaves the process, and
// then plays it again with every [Fault] at every boundary: blocking and as a stream; in one process that keeps the state, with
// the state saved as JSON after each call and restored by another process, and with a store. After a fault it does what
// a careful caller does: it resumes, decides, and settles what is in doubt by looking at what the tools did. Then it compares
// the end with the end of the clean run and checks what Pawl promises: no effect over its class and none before its intent,
// every call with exactly one output in the session, in the model's input and in the replay, keys that do not change,
// usage counted once, nothing in doubt that need not be, and an end of every run. A fault that never struck is a failure too.
// Whatever is broken fails the test.
func Sweep(t *testing.T, s Scenario) *SweepReport {
	t.Helper()
	r := s.sweep(t)
	for i, v := range r.Violations {
		if i == maxViolations {
			t.Errorf("sweep %s: and %d more", s.Name, len(r.Violations)-i)
			break
		}
		t.Errorf("sweep %s: %s", s.Name, v)
	}
	t.Logf("sweep %s: %d points, %d violations, %d combinations that cannot exist", s.Name, r.Points, len(r.Violations), sum(r.Impossible))
	return r
}

// maxViolations is how many violations a test tells in full.
const maxViolations = 3

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// row is a way to drive the run.
type row struct {
	carrier carrier
	stream  bool
}

// carrier is what is left of a run between two calls.
type carrier string

const (
	inProcess carrier = "live"  // the state and the runner
	byJSON    carrier = "json"  // the state as a document, for another process
	inStore   carrier = "store" // the ledger in the store
)

func (r row) String() string {
	if r.stream {
		return string(r.carrier) + "/stream"
	}
	return string(r.carrier) + "/run"
}

// point is one run with one fault. The zero fault and boundary are the clean run.
type point struct {
	row
	boundary Boundary
	fault    Fault
}

func (p point) String() string {
	return fmt.Sprintf("%s/%d/%s", p.row, p.boundary.N, p.fault)
}

// sweep plays all points and reports what it found.
func (s Scenario) sweep(t *testing.T) *SweepReport {
	t.Helper()
	r := &SweepReport{Impossible: map[string]int{}, Boundaries: map[string][]Boundary{}}
	template := s.template(t)
	var first *ending
	var points []point
	clean := map[row]*ending{}
	for _, carrier := range []carrier{inStore, inProcess, byJSON} {
		for _, stream := range []bool{false, true} {
			row := row{carrier, stream}
			if why := s.noRow(carrier); why != "" {
				r.Impossible[why] += len(r.Boundaries["store/run"]) * len(faults)
				continue
			}
			st := s.stage(point{row: row}, template)
			st.run(t)
			if first == nil {
				first = st.end
			}
			st.checkClean(first)
			if v, broken := st.violation(); broken {
				v.Point = row.String()
				r.Violations = append(r.Violations, v)
				return r
			}
			clean[row] = st.end
			r.Boundaries[row.String()] = st.boundaries
			points = append(points, s.points(row, st.boundaries, r)...)
		}
	}
	for i, p := range points {
		if !s.selected(p, i) {
			r.Left++
			continue
		}
		st := s.stage(p, template)
		st.clean = clean[p.row]
		st.far.asked, st.far.expected = st.clean.Asked, st.clean.Moments
		st.run(t)
		st.check()
		r.Points++
		if v, broken := st.violation(); broken {
			r.Violations = append(r.Violations, v)
		}
	}
	slices.SortStableFunc(r.Violations, func(a, b Violation) int { return cmp.Compare(len(a.Script), len(b.Script)) })
	return r
}

func (s Scenario) selected(p point, i int) bool {
	name := p.String()
	if s.Only != "" && name != s.Only && !strings.HasPrefix(name, s.Only+"/") {
		return false
	}
	return s.Every <= 1 || i%s.Every == 0
}

// points returns the possible points of a row and counts the others. What only a store has is counted as impossible for the
// rows without one.
func (s Scenario) points(row row, boundaries []Boundary, r *SweepReport) (list []point) {
	for _, b := range boundaries {
		for _, f := range faults {
			p := point{row, b, f}
			if why := s.impossible(p); why != "" {
				r.Impossible[why]++
				continue
			}
			list = append(list, p)
		}
	}
	if row.carrier != inStore {
		for _, b := range r.Boundaries[strings.Replace(row.String(), string(row.carrier), string(inStore), 1)] {
			if b.Kind.ofStore() {
				r.Impossible[noStore] += len(faults)
			}
		}
	}
	return list
}

const noStore = "a run without a store has nothing of it that could fail"

// template makes an empty store once, for each point to copy: making one costs more than a run.
func (s Scenario) template(t *testing.T) string {
	t.Helper()
	if s.Store == nil {
		return ""
	}
	dir := filepath.Join(t.TempDir(), "template")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := s.Store(dir)
	if err == nil {
		err = closeStore(store)
	}
	if err != nil {
		t.Fatalf("sweep %s: the store: %v", s.Name, err)
	}
	return dir
}

// closeStore closes a store that can be closed.
func closeStore(store journal.Driver) error {
	if c, ok := store.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// run plays the stage's point in a bubble of its own.
func (st *stage) run(t *testing.T) {
	t.Helper()
	if st.template != "" {
		dir, err := os.MkdirTemp(filepath.Dir(st.template), "point")
		if err == nil {
			err = os.CopyFS(dir, os.DirFS(st.template))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		st.dir = dir
	}
	synctest.Test(t, func(*testing.T) { st.play() })
}

// violation says what was broken, if anything was.
func (st *stage) violation() (Violation, bool) {
	problems := st.far.problems
	if len(problems) == 0 {
		return Violation{}, false
	}
	var script strings.Builder
	fmt.Fprintf(&script, "  scenario %s, %s\n", st.scenario.Name, st.point)
	for _, line := range st.far.log {
		fmt.Fprintf(&script, "  %s\n", line)
	}
	return Violation{Point: st.point.String(), Problems: slices.Sorted(maps.Keys(problems)), Script: script.String()}, true
}

// since says how long after the beginning of the run something happened. A bubble's time begins at the turn of the century.
func since() time.Duration {
	return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}
