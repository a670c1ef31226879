package machine

import (
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scenarios in testdata: each is a run, told by the facts that come
// to it and what the machine makes of each. Replay equals live after every command
// [M16.5]. With -rewrite the files get the output there is.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.do(d.FullCmd() + "\n" + d.Input)
		})
	})
}
