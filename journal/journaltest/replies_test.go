package journaltest

import "testing"

// S9.19 is checked with every reply at every append, with one writer and with two. A case that is
// added or dropped is counted here.
func TestReplyCases(t *testing.T) {
	alone, frozen := 0, 0
	for _, c := range replyCases() {
		if c.frozen {
			frozen++
		} else {
			alone++
		}
	}
	if alone != 18 || frozen != 72 {
		t.Errorf("%d cases with one writer, %d with two, want 18 and 72", alone, frozen)
	}
}
