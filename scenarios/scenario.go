package scenarios

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scenario is a reported failure and the ways to play it.
type scenario struct {
	id string
	// script says in our own words what happens and what must come of it.
	script string
	// sources are the threads that reported it.
	sources  []string
	variants []variant
}

// variant is one script of a scenario. All its cells must end alike.
type variant struct {
	name string
	// play plays the script. It is nil if no cell can exist.
	play func(*world)
	// mixed plays every combination of modes for the first three calls instead of one mode for all.
	mixed bool
	// impossible says why a cell cannot exist, "" if it can.
	impossible func(cell) string
}

// mode is how a call of the API is made.
type mode string

const (
	run    mode = "run"
	stream mode = "stream"
)

// carrier is what survives from one call to the next.
type carrier string

const (
	live    carrier = "live"    // the state and the runner
	byJSON  carrier = "json"    // the state as a document; agent and runner are made anew
	store   carrier = "store"   // the run's id; the place on the host is opened anew
	process carrier = "process" // the state as a document, read by another process
)

// cell is one way to play a variant.
type cell struct {
	carrier carrier
	modes   []mode // of the calls in order; the last one goes for the rest
	host    string // its name, "" for SQLite
}

func (c cell) mode(call int) mode { return c.modes[min(call, len(c.modes)-1)] }

func (c cell) String() string {
	words := []string{string(c.carrier)}
	for _, m := range c.modes {
		words = append(words, string(m))
	}
	return strings.Join(words, "-")
}

// cells returns all cells of a variant, possible or not.
func (v variant) cells() []cell {
	return v.cellsOn("", live, byJSON, store, process)
}

// cellsOn returns the cells of a variant with these carriers on a host, possible or not.
func (v variant) cellsOn(host string, carriers ...carrier) []cell {
	modes := [][]mode{{run}, {stream}}
	if h, err := hostNamed(host); v.mixed && err == nil && !h.Engine {
		modes = nil
		for n := range 8 {
			var m []mode
			for bit := range 3 {
				m = append(m, [...]mode{run, stream}[n>>(2-bit)&1])
			}
			modes = append(modes, m)
		}
	}
	var cells []cell
	for _, c := range carriers {
		for _, m := range modes {
			cells = append(cells, cell{c, m, host})
		}
	}
	return cells
}

// why says why a cell cannot exist, "" if it can.
func (v variant) why(c cell) string {
	if v.impossible == nil {
		return ""
	}
	return v.impossible(c)
}

// all lists the scenarios by group.
func all() []scenario {
	return slices.Concat(approval(), windows(), pairing(), serverManaged(), teams(), policy(), states(), streams())
}

// test plays every possible cell and compares what is left behind: streaming changes nothing [G3], nor does what carries
// the run from one call to the next [G4].
func (s scenario) test(t *testing.T) {
	for _, v := range s.variants {
		var first *record
		for _, c := range v.cells() {
			if v.why(c) != "" {
				continue
			}
			t.Run(strings.Trim(v.name+"/"+c.String(), "/"), func(t *testing.T) {
				got := playCell(t, s.id, v, c)
				if first == nil {
					first = got
				}
				if diff := cmp.Diff(first, got); diff != "" {
					t.Errorf("G3/G4: cell %s differs from the first (-first +this):\n%s", c, diff)
				}
			})
		}
	}
}

// storeOnly is the reason of variants whose fault is one of a store.
func storeOnly(c cell) string {
	if c.carrier != store {
		return "a run in memory has no store that could fail"
	}
	return engineWrites(c)
}

// onEngine reports whether a cell is played on an engine.
func onEngine(c cell) bool {
	h, err := hostNamed(c.host)
	return err == nil && h.Engine
}

// notOnEngine is the reason of variants that are about how a runner drives a run by itself.
func notOnEngine(why string) func(cell) string {
	return func(c cell) string {
		if onEngine(c) {
			return why
		}
		return ""
	}
}

// engineWrites is the reason of variants in which a certain write goes wrong, or is slow.
func engineWrites(c cell) string {
	if onEngine(c) {
		return "what an engine writes, when, and how often it tries, is its own"
	}
	return ""
}

func playCell(t *testing.T, id string, v variant, c cell) *record {
	t.Helper()
	before := goroutines()
	w := newWorld(t, id, c)
	defer w.abandon()
	v.play(w)
	got := w.finish()
	w.close()
	before.settled(t)
	return got
}
