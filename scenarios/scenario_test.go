package scenarios

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	flag.IntVar(&manyTurns, "turns", manyTurns, "play S59 with so many turns")
	os.Exit(Main(m))
}

func TestScenarios(t *testing.T) {
	for _, s := range all() {
		t.Run(s.id, func(t *testing.T) {
			t.Logf("%s\n%s", s.script, strings.Join(s.sources, "\n"))
			s.test(t)
		})
	}
}

// cellsPlayed is the number of cells of TestScenarios; cellsThatCannotExist are the others, by their reason.
const cellsPlayed = 1746

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
