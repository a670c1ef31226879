package pawltest_test

import "testing"

func TestSweepOfTheExample(t *testing.T) {
	if r := sweepRefund(t); r.Points < 500 {
		t.Errorf("%d points", r.Points)
	}
}
