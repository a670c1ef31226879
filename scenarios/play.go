package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Report is what came of the cases on a host.
type Report struct {
	// Cases is how many there are, Played how many of them were played.
	Cases, Played, Failed int
	// NotApplicable counts the cases that cannot be on the host, by their reason.
	NotApplicable map[string]int
}

// PlayOptions are the options of Play; nil means all defaults.
type PlayOptions struct {
	// Every plays one case of so many; 0 and 1 play all, a negative number none.
	Every int
}

// Play plays the cases on a host and prints what does not apply to it, and then
//
//	enginetest: NAME N cases, F failed
//
// The cases are the scenarios of approvals, of crashes and of teams, blocking and as a stream, and those of the processes and
// servers around a run. A host must do to the byte what one process does by itself: the same requests of the model, session,
// effects and keys, results and errors.
func Play(t *testing.T, h Host, opts *PlayOptions) Report {
	every := 1
	if opts != nil && opts.Every != 0 {
		every = opts.Every
	}
	r := Report{NotApplicable: map[string]int{}}
	for _, s := range slices.Concat(approval(), windows(), teams()) {
		r.play(t, s, h, h.carriers(), every)
	}
	for _, s := range engines() {
		r.play(t, s, h, h.carriers()[:1], every)
	}
	for _, why := range slices.Sorted(maps.Keys(r.NotApplicable)) {
		fmt.Printf("enginetest: %s n/a %d: %s\n", h.Name, r.NotApplicable[why], why)
	}
	fmt.Printf("enginetest: %s %d cases, %d failed\n", h.Name, r.Played, r.Failed)
	return r
}

// play plays the cells of a scenario that the host can have.
func (r *Report) play(t *testing.T, s scenario, h Host, carriers []carrier, every int) {
	for _, v := range s.variants {
		var first *record
		for _, c := range v.cellsOn(h.Name, carriers...) {
			if why := v.why(c); why != "" {
				r.NotApplicable[why]++
				continue
			}
			r.Cases++
			if every < 0 || r.Cases%every != 0 {
				continue
			}
			r.Played++
			passed := t.Run(strings.Trim(s.id+"/"+v.name+"/"+c.String(), "/"), func(t *testing.T) {
				got := playCell(t, s.id, v, c)
				if first == nil {
					first = v.alone(t, s.id, got)
				}
				if diff := cmp.Diff(first, got); diff != "" {
					t.Errorf("this cell differs from one process by itself (-process +%s):\n%s", h.Name, diff)
				}
			})
			if !passed {
				r.Failed++
			}
		}
	}
}

// alone plays the variant with a run that nothing but its process keeps; where that cannot be, what was got first has to do.
func (v variant) alone(t *testing.T, id string, got *record) *record {
	t.Helper()
	c := v.cells()[0]
	if v.why(c) != "" {
		return got
	}
	return playCell(t, id, v, c)
}
