package pawl_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The features that docs/features.md must have a row for, by importance: those of agents, runs, turns, approvals, states,
// guardrails, handoffs, streams and hooks.
const (
	coreFeatures = `
A1.01 A1.03 A1.05 A1.06 A1.07 A1.08 A1.10 A1.11 A1.12 A1.13 A1.14 A1.15 A1.16 A1.17 A1.20 A1.21 A1.22 A1.23 A1.25 A1.26 A1.27
A1.29 A1.30 A1.31 A1.40 R2.01 R2.02 R2.03 R2.04 R2.05 R2.06 R2.08 R2.09 R2.10 R2.11 R2.12 R2.14 R2.15 R2.16 R2.20 R2.21 R2.30
R2.32 R2.35 L3.01 L3.02 L3.03 L3.10 L3.11 L3.12 L3.13 L3.20 L3.30 L3.31 L3.40 L3.41 L3.42 L3.50 L3.60 H4.01 H4.02 H4.04 H4.05
H4.06 H4.07 H4.08 H4.09 H4.11 H4.12 H4.14 H4.15 5.01 5.02 5.03 5.04 5.05 5.06 5.08 5.09 G10.01 G10.02 G10.03 G10.04 G10.05 G10.07
O11.01 O11.02 O11.03 O11.04 O11.07 O11.08 O11.09 E12.01 E12.02 E12.03 E12.05 E12.06 E12.07 E12.08 K13.01 K13.03 K13.04 K13.02`
	expectedFeatures = `
A1.02 A1.04 A1.09 A1.18 A1.24 A1.28 A1.32 R2.13 R2.17 R2.18 R2.19 R2.31 R2.33 R2.34 R2.36 L3.43 L3.44 H4.03 H4.13 5.07 5.10 G10.06
O11.05 O11.06 E12.04`
	// openFeatures are those that have no row yet.
	openFeatures = ``
)

// No feature is missing, and none is said to be missing that is there.
func TestFeaturesComplete(t *testing.T) {
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]?\d+\.\d+) \| (\w+) \|`).FindAllStringSubmatch(readFile(t, "docs/features.md"), -1) {
		rows[m[1]] = m[2]
	}
	open := strings.Fields(openFeatures)
	for importance, list := range map[string]string{"core": coreFeatures, "expected": expectedFeatures} {
		for _, id := range strings.Fields(list) {
			switch got, is := rows[id], slices.Contains(open, id); {
			case is && got != "":
				t.Errorf("%s has a row: take it from openFeatures", id)
			case !is && got != importance:
				t.Errorf("%s is %q, and has a row that says %q", id, importance, got)
			}
		}
	}
}
