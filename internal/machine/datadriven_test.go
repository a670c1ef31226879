package machine

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the scenarios in testdata: each is a run, told by the facts that come
// to it and what the machine makes of each. Replay equals live after every command
// [M16.5]. With -rewrite the files get the output there is.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d scripts, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := newScript(t)
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				s.t = t
				return s.do(d.FullCmd() + "\n" + d.Input)
			})
		})
	}
}
