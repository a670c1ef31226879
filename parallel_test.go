package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
)

// Calls that wait for their turn are not started after a failure. They are when the run is
// resumed, and outputs stand in call order.
func TestQueuedCallsAfterAFailure(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		synctest.Test(t, func(t *testing.T) {
			var e effects
			s := newScript(calling(fc("c1", "slow", `{"cents":1}`), fc("c2", "pay", `{"cents":2}`), fc("c3", "asks", `{"cents":3}`)), says("done"))
			slow := charging("slow", &e, func(f *pawl.Func[charge, string]) {
				f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
					e.add("slow")
					time.Sleep(time.Minute) // the approval expires meanwhile
					return "slow", nil
				}
			})
			asks := charging("asks", &e, func(f *pawl.Func[charge, string]) {
				asking(f)
				f.Expires, f.OnExpiry = time.Second, pawl.ExpiryFails
			})
			agent := agentWith(s, slow, charging("pay", &e, nil), asks)
			var r pawl.Runner
			_, err := m.run(&r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", MaxParallelTools: 1})
			if !errors.Is(err, pawl.ErrApprovalExpired) {
				t.Fatalf("error %v", err)
			}
			e.want(t, "slow")
			res := must(t)(m.resume(&r, t.Context(), agent, pawl.RunID("r"), nil))
			e.want(t, "slow", "pay 2")
			state := res.State()
			if err := state.Approve(res.Interruptions[0], "ann"); err != nil {
				t.Fatal(err)
			}
			res = must(t)(m.resume(&r, t.Context(), agent, state, nil))
			if diff := cmp.Diff([]string{"c1: slow", "c2: receipt 2", "c3: receipt 3"}, outputs(res.NewItems())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	})
}
