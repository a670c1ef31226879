package machine_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTwoReadings plays random runs on the machine and on a second reading of the spec, and compares all that they say
// after each step. It fails as well if the runs did not reach every rule and every clause that the second reading marks.
func TestTwoReadings(t *testing.T) {
	reached := map[string]int{}
	hit := func(tag string) { reached[tag]++ }
	missing := func() []string {
		return slices.DeleteFunc(marks(), func(tag string) bool { return reached[tag] > 0 })
	}
	for range 20 {
		rapid.Check(t, func(t *rapid.T) { play(t, hit) })
		if len(missing()) == 0 {
			break
		}
	}
	if missed := missing(); len(missed) > 0 {
		t.Errorf("never reached:\n%s", strings.Join(missed, "\n"))
	}
	for tag := range maps.Keys(reached) {
		if !slices.Contains(marks(), tag) {
			t.Errorf("%q is not among the marks", tag)
		}
	}
}
