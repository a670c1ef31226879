package pawl_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// feature is the test of one row of docs/features.md.
type feature struct {
	id   string
	test func(t *testing.T)
}

// features are the rows that have a test, by section.
func features() []feature {
	return slices.Concat(agentFeatures, agentToolFeatures, runFeatures, moreRunFeatures, turnFeatures, approvalFeatures, moreApprovalFeatures,
		stateFeatures, moreStateFeatures, streamFeatures, moreStreamFeatures, handoffFeatures, guardrailFeatures, retryFeatures,
		aroundFeatures, orderFeatures, rowFeatures)
}

// What an agent, a run, its approvals, its state and its stream can do, row by row.
func TestFeature(t *testing.T) {
	for _, f := range features() {
		t.Run(f.id, f.test)
	}
}

// Each row of docs/features.md has its test, or says why there is nothing to test in Go, and
// each test has its row.
func TestFeaturesAreListed(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| ([A-Z]?\d+\.\d+) \| (core|expected) \| ([^|]+) \| ([^|]*) \| ([^|]*) \|$`)
	var listed, tested []string
	for _, m := range row.FindAllStringSubmatch(readFile(t, "docs/features.md"), -1) {
		id, test, note := m[1], strings.TrimSpace(m[4]), m[5]
		switch {
		case test == "`TestFeature/"+id+"`":
			listed = append(listed, id)
		case test == "" && strings.HasPrefix(note, "not applicable in Go: "):
		default:
			t.Errorf("%s has the test %q and the note %q", id, test, note)
		}
	}
	for _, f := range features() {
		tested = append(tested, f.id)
	}
	slices.Sort(listed)
	slices.Sort(tested)
	if diff := cmp.Diff(tested, listed); diff != "" {
		t.Errorf("-tested +listed:\n%s", diff)
	}
	if len(slices.Compact(listed)) != len(tested) {
		t.Error("an id is there twice")
	}
}
