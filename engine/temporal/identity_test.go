package temporal

import (
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

// A worker keeps the name that it was given, and its process can be read from it.
func TestIdentity(t *testing.T) {
	self := journal.Owner{Host: `box/12 {"x"`, Boot: "b", PID: 7, Start: "99"}
	got := identity("payments {1}", self)
	if want := `payments {1} {"Host":"box/12 {\"x\"","Boot":"b","PID":7,"Start":"99"}`; got != want {
		t.Errorf("identity %s, want %s", got, want)
	}
	for name, want := range map[string]journal.Owner{
		identity("payments {1}", journal.Owner{Host: "box", PID: 7}): {Host: "box", PID: 7},
		identity("", journal.Owner{Host: "box", Start: "1"}):         {Host: "box", Start: "1"},
		got:                 self,
		"7@box":             {},
		"payments {1}":      {},
		`p {"Host":7}`:      {},
		`p {"Host":"b"} x`:  {},
		"":                  {},
		`{"Host":"b"}`:      {},
		`name {"Host":"b"}`: {Host: "b"},
	} {
		if got := process(name); got != want {
			t.Errorf("%s names %+v, want %+v", name, got, want)
		}
	}
}
