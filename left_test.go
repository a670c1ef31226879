package pawl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// A driver that stops may leave a body running. Its claim is released, and still nobody may decide the
// call before the body's time is over: it might yet act [M8.3] [M12.5].
func TestNobodyDecidesOverABodyThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		ctx, cancel := context.WithCancel(t.Context())
		started := time.Now()
		stubborn := charging("charge", &e, func(f *pawl.Func[charge, string]) {
			body := f.Run
			f.Timeout, f.OnUnknown = time.Minute, pawl.UnknownWait
			f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
				cancel()
				time.Sleep(30 * time.Second) // heeds nothing
				return body(ctx, c, in)
			}
		})
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
		store := journal.NewMemory()
		r := pawl.Runner{Store: store}
		if _, err := r.Run(ctx, agentWith(m, stubborn), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		other := pawl.Runner{Store: store}
		res := must(t)(other.Resume(t.Context(), agentWith(m, stubborn), pawl.RunID("r"), nil))
		if !res.Waiting() || len(res.Interruptions) != 1 {
			t.Fatalf("%+v", res)
		}
		in := res.Interruptions[0]
		if want := started.Add(time.Minute + 2*time.Second); !in.NotBefore.Equal(want) {
			t.Errorf("it may be decided from %v on, want %v", in.NotBefore, want)
		}
		if err := other.Decide(t.Context(), "r", pawl.Retry(in.ID, "ann")); !errors.Is(err, pawl.ErrCallInFlight) {
			t.Errorf("Decide: %v, want ErrCallInFlight", err)
		}
		time.Sleep(time.Minute) // the body acts, and what it says settles the call
		res = must(t)(other.Resume(t.Context(), agentWith(m, stubborn), pawl.RunID("r"), nil))
		if res.FinalOutput != "done" {
			t.Errorf("%+v", res)
		}
		e.want(t, "charge 5")
	})
}
