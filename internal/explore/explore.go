package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/journal"
)

// Broken names a rule that is left out, to see that its absence is found.
type Broken int

// The rules that can be left out.
const (
	// Whole leaves nothing out.
	Whole Broken = iota
	// NoFence: the store takes records under an older epoch.
	NoFence
	// NoComparison: the store takes records wherever the ledger ends.
	NoComparison
	// StartsBeforeDurable: a body starts while its intent is on its way.
	StartsBeforeDurable
	// NoLookAtTheClock: a body is entered, and acts, whatever the time.
	NoLookAtTheClock
	// TakesSilenceForDeath: whoever claims a run takes its last owner for gone, so that verdicts
	// on a call in doubt come before its notAfter.
	TakesSilenceForDeath
	// TakesErrorForSuccess: the driver goes on after an append that ended in an error.
	TakesErrorForSuccess
	// AppendsAgain: a session is not read back before a batch in doubt is appended again.
	AppendsAgain
	// SaysNotExecuted: a body that was entered, and whose outcome nobody knows, is recorded as not
	// executed.
	SaysNotExecuted
	// ActsApart: a transactional body takes effect whatever becomes of its transaction.
	ActsApart
	// ForgetsWhatRuns: a driver does not record that a body it left was still running.
	ForgetsWhatRuns
	// TakesSilenceForNo: a far side that cannot tell is taken to say that the call did not happen.
	TakesSilenceForNo
	// RecordsAgain: the driver records an outcome that the ledger has already.
	RecordsAgain
)

// Report is what was found.
type Report struct {
	Name                string
	Bound               Bound
	States, Transitions int
	// Seen counts what happened on the way to states.
	Seen map[string]int
	// Broken is the first rule that was broken, empty if none was; Trace is how.
	Broken string
	Trace  []string
}

// String says what was explored.
func (r *Report) String() string {
	return fmt.Sprintf("explore: %s: %d states, %d transitions, bound %d faults, %d opens",
		r.Name, r.States, r.Transitions, r.Bound.Faults, r.Bound.Opens)
}

// explorer explores one scenario.
type explorer struct {
	sc    *Scenario
	bound Bound
	rules Broken
	names map[string]int
	empty *ledger
	buf   []byte
	list  []move
	trace bool // moves have details
	// openTime is how long an approval of the scenario stays open, 0 if for ever.
	openTime int64

	found map[key]bool // states that were visited
	ends  map[key]bool // states from which the run comes to its end
	nodes []node
	seen  map[string]int
}

// node is how a state was reached.
type node struct {
	parent int
	move   int
}

// Explore explores a scenario to a bound, without one of the rules.
func Explore(sc Scenario, bound Bound, rules Broken) *Report {
	x := &explorer{sc: &sc, bound: bound, rules: rules, names: map[string]int{}, empty: &ledger{}, found: map[key]bool{}, ends: map[key]bool{}, seen: map[string]int{}}
	for _, t := range sc.Tools {
		x.openTime = max(x.openTime, t.Expires)
	}
	r := &Report{Name: sc.Name, Bound: bound, Seen: x.seen}
	broken, at := x.search(r)
	r.States = len(x.nodes)
	if broken != "" {
		r.Broken, r.Trace = broken, x.retell(at)
	}
	return r
}

// begin returns the world in which a run begins.
func (x *explorer) begin() *state {
	return &state{store: store{head: x.empty, holder: -1}}
}

// visit is a state to go on from, and the node that says how it was reached.
type visit struct {
	s  *state
	at int
}

// search visits every state within the bound, until a rule is broken. It returns the rule and the
// node.
func (x *explorer) search(r *Report) (broken string, at int) {
	open := []visit{{x.begin(), 0}}
	x.found[x.key(open[0].s)] = true
	x.nodes = append(x.nodes, node{parent: -1})
	for len(open) > 0 {
		v := open[len(open)-1]
		open = open[:len(open)-1]
		if broken := x.comesToAnEnd(v.s); broken != "" {
			return broken, v.at
		}
		for j, mv := range slices.Clone(x.moves(v.s)) {
			if !x.affords(v.s, mv.cost) {
				continue
			}
			n := x.apply(v.s, mv)
			r.Transitions++
			k := x.key(n)
			if x.found[k] && n.broken == "" {
				continue
			}
			x.found[k] = true
			x.seen[mv.what]++
			x.nodes = append(x.nodes, node{v.at, j})
			if broken := x.check(n); broken != "" {
				return broken, len(x.nodes) - 1
			}
			open = append(open, visit{n, len(x.nodes) - 1})
		}
	}
	return "", 0
}

func (x *explorer) affords(s *state, cost Bound) bool {
	return s.spent.Faults+cost.Faults <= x.bound.Faults && s.spent.Opens+cost.Opens <= x.bound.Opens
}

// apply returns the state after a move.
func (x *explorer) apply(s *state, mv move) *state {
	n := s.clone(mv.i)
	n.spent.Faults += mv.cost.Faults
	n.spent.Opens += mv.cost.Opens
	mv.do(n)
	for i := range n.drivers {
		n.drivers[i].recallBodies()
	}
	n.store.late = without(n.store.late, func(w write) bool { return x.hopeless(n, w) })
	return n
}

// calmly is how long a run may take to its end once nothing goes wrong any more.
const calmly = 300

// comesToAnEnd says what is wrong if the run does not end once nothing goes wrong any more.
func (x *explorer) comesToAnEnd(s *state) string {
	var way []key
	for range calmly {
		k := x.key(s)
		if x.ends[k] || s.store.head.view().finished {
			for _, k := range append(way, k) {
				x.ends[k] = true
			}
			return ""
		}
		way = append(way, k)
		_, n := x.calm(s, k)
		if n == nil {
			return "nothing happens any more, and the run has not ended"
		}
		if broken := x.check(n); broken != "" {
			return "once nothing goes wrong any more: " + broken
		}
		s = n
	}
	return "the run does not come to its end"
}

// calm returns what happens when nothing goes wrong, and the state after it.
func (x *explorer) calm(s *state, k key) (move, *state) {
	for _, mv := range slices.Clone(x.moves(s)) {
		if mv.calm {
			mv.cost = Bound{}
			if n := x.apply(s, mv); x.key(n) != k {
				return mv, n
			}
		}
	}
	return move{}, nil
}

// violate notes that a rule was broken.
func (x *explorer) violate(s *state, format string, args ...any) {
	if s.broken == "" {
		s.broken = fmt.Sprintf(format, args...)
	}
}

// retell returns the moves that led to a node, and on to the rule that was broken.
func (x *explorer) retell(at int) (lines []string) {
	var path []node
	for at > 0 {
		path = append(path, x.nodes[at])
		at = x.nodes[at].parent
	}
	x.trace = true
	s := x.begin()
	tell := func(mv move, n *state) {
		line := mv.detail
		for _, r := range n.store.head.records[len(s.store.head.records):] {
			line += "\n\t" + show(r)
		}
		lines, s = append(lines, line), n
	}
	for _, n := range slices.Backward(path) {
		mv := slices.Clone(x.moves(s))[n.move]
		tell(mv, x.apply(s, mv))
	}
	for range calmly {
		mv, n := x.calm(s, x.key(s))
		if x.check(s) != "" || n == nil {
			break
		}
		mv.detail += " (nothing goes wrong any more)"
		tell(mv, n)
	}
	return lines
}

func show(r *record) string {
	text := fmt.Sprintf("%d: %s %s", r.epoch, r.fact.Body.Kind(), journal.Encode(r.fact, [16]byte{}).Payload)
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return strings.ReplaceAll(text, "\n", " ")
}
