package scenarios

import (
	"os"
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
	store   carrier = "store"   // the run's id; an SQLite file is opened anew
	process carrier = "process" // the state as a document, read by another process
)

// cell is one way to play a variant.
type cell struct {
	carrier carrier
	modes   []mode // of the calls in order; the last one goes for the rest
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
	modes := [][]mode{{run}, {stream}}
	if v.mixed {
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
	for _, c := range []carrier{live, byJSON, store, process} {
		for _, m := range modes {
			cells = append(cells, cell{c, m})
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

func TestMain(m *testing.M) {
	if file := os.Getenv(jobVariable); file != "" {
		os.Exit(doJob(file))
	}
	os.Exit(m.Run())
}

func TestScenarios(t *testing.T) {
	for _, s := range all() {
		t.Run(s.id, func(t *testing.T) {
			t.Logf("%s\n%s", s.script, strings.Join(s.sources, "\n"))
			s.test(t)
		})
	}
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

// cellsPlayed is the number of cells of TestScenarios; cellsThatCannotExist are the others, by their reason.
const cellsPlayed = 1682

var cellsThatCannotExist = map[string]int{
	"a run in memory has no store that could fail":                          78,
	"an append of the journal is one transaction: there is no half of it":   8,
	"nothing is live after the process has gone":                            4,
	"a refused input leaves no document":                                    36,
	"a run in memory is gone with its process":                              120,
	"a run that is a document alone is not known to who starts another one": 24,
	"two processes that have a document each do not know of each other":     4,
	"the runs of one store know of each other":                              4,
	"a document saved before the call ran cannot know that it ran":          16,
}

// A cell that cannot exist is not left out silently: it has a reason, and their number is pinned.
func TestCellsThatCannotExist(t *testing.T) {
	played, impossible := 0, map[string]int{}
	for _, s := range all() {
		for _, v := range s.variants {
			n := 0
			for _, c := range v.cells() {
				why := v.why(c)
				if why == "" {
					n++
					continue
				}
				t.Logf("%s/%s/%s: %s", s.id, v.name, c, why)
				impossible[why]++
			}
			if (n == 0) != (v.play == nil) {
				t.Errorf("%s/%s has %d cells", s.id, v.name, n)
			}
			played += n
		}
	}
	if diff := cmp.Diff(cellsThatCannotExist, impossible); diff != "" {
		t.Errorf("cells that cannot exist (-want +got):\n%s", diff)
	}
	if played != cellsPlayed {
		t.Errorf("%d cells are played, want %d", played, cellsPlayed)
	}
}

// Every scenario says where it is from, what happens, and has a cell of each mode, and one in another process.
func TestScenariosAreComplete(t *testing.T) {
	want := []string{"S01", "S02", "S04", "S05", "S07", "S08", "S10", "S11", "S13", "S14", "S16", "S17", "S19", "S20", "S22", "S23", "S25", "S26", "S28", "S29", "S31", "S32", "S34", "S35", "S37", "S38", "S40", "S44", "S46", "S47", "S49", "S50", "S52", "S53", "S55", "S56", "S58", "S59", "S61", "S62", "S64", "S65", "S67", "S68", "S70", "S71", "S73", "S74", "S76", "S77", "S79", "S80", "S82", "S88", "S89", "S94", "S95", "S97", "S98", "S100", "S101"}
	var ids []string
	for _, s := range all() {
		ids = append(ids, s.id)
		if len(s.script) < 200 || len(s.sources) == 0 {
			t.Errorf("%s: no script or no source", s.id)
		}
		for _, src := range s.sources {
			if !strings.HasPrefix(src, "https://") {
				t.Errorf("%s: the source %q is no address", s.id, src)
			}
		}
		have := map[string]bool{}
		for _, v := range s.variants {
			for _, c := range v.cells() {
				if v.why(c) == "" {
					have[string(c.modes[0])], have[string(c.carrier)] = true, true
				}
			}
		}
		for _, w := range []string{"run", "stream", "json", "store", "process"} {
			if !have[w] {
				t.Errorf("%s: no cell of %s", s.id, w)
			}
		}
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("scenarios (-want +got):\n%s", diff)
	}
}

// storeOnly is the reason of variants whose fault is one of a store.
func storeOnly(c cell) string {
	if c.carrier != store {
		return "a run in memory has no store that could fail"
	}
	return ""
}

func playCell(t *testing.T, id string, v variant, c cell) *record {
	t.Helper()
	before := goroutines()
	w := newWorld(t, id, c)
	v.play(w)
	got := w.finish()
	w.close()
	before.settled(t)
	return got
}
