package pawl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// deaf is an agent whose tool ignores its context for a minute, once stop was called.
func deaf(e *effects, stop func(), change func(*pawl.Func[charge, string])) *pawl.Agent {
	return inBody(e, nil, func(f *pawl.Func[charge, string]) {
		f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
			e.add("attempt %d", c.Attempt)
			stop()
			time.Sleep(time.Minute)
			return "late receipt", nil
		}
		if change != nil {
			change(f)
		}
	})
}

// lates returns the late results in a run's ledger.
func lates(t *testing.T, store journal.Driver) (list []string) {
	t.Helper()
	recs, err := store.Read(t.Context(), "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		f, err := journal.Decode(rec)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := f.Body.(*journal.Settled); ok && s.Late {
			list = append(list, s.ID.String()+" "+outputs([]pawl.Item{s.Output})[0])
		}
	}
	return list
}

// The body and its far side say the same, one after the other: the ledger has it once.
func TestLateResultThatTheFarSideTellsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		asked := make(chan struct{})
		charging1 := charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.Timeout = time.Second
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
				<-asked
				return "receipt", nil
			}
			f.Recover = func(context.Context, *pawl.Call, charge) (pawl.Recovered[string], error) {
				close(asked)
				time.Sleep(time.Second) // the body is first
				return pawl.Recovered[string]{Answer: pawl.Happened, Output: "receipt"}, nil
			}
		})
		busy := charging("look", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
				time.Sleep(time.Minute) // the drive goes on
				return "seen", nil
			}
		})
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "look", `{"cents":5}`)), says("done")), charging1, busy)
		r := pawl.Runner{Store: journal.NewMemory()}
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if out := outputs(res.NewItems()); !slices.Equal(out, []string{"c1: receipt", "c2: seen"}) {
			t.Errorf("outputs %q", out)
		}
		if list := lates(t, r.Store); len(list) > 0 {
			t.Errorf("recorded again: %q", list)
		}
	})
}

// What a body says after its driver is gone is in the ledger, whatever became of the run
// meanwhile: evidence if the call is settled, the output if it is not. There is never a second
// output, and no turn is made of it.
func TestLateResult(t *testing.T) {
	const late = "t1.0.1 c1: late receipt"
	wait := func(f *pawl.Func[charge, string]) { f.OnUnknown = pawl.UnknownWait }
	for name, tt := range map[string]struct {
		change func(*pawl.Func[charge, string])
		// meanwhile is what happens to the run while the body is still at it.
		meanwhile func(t *testing.T, r *pawl.Runner, agent *pawl.Agent)
		out       string // of the call in the end
		late      []string
		asks      bool // the run waits before the body ends
	}{
		"the run is left alone": {out: "c1: The outcome of this tool call is unknown", late: []string{late}},
		"the run has finished": {meanwhile: func(t *testing.T, r *pawl.Runner, agent *pawl.Agent) {
			must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		}, out: "c1: The outcome of this tool call is unknown", late: []string{late}},
		"the run was cancelled": {meanwhile: func(t *testing.T, r *pawl.Runner, agent *pawl.Agent) {
			if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil); !errors.Is(err, pawl.ErrCancelled) {
				t.Fatal(err)
			}
		}, out: "c1: The outcome of this tool call is unknown", late: []string{late}},
		"the call is in doubt": {change: wait, asks: true, out: "c1: late receipt"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := journal.NewMemory()
				ctx, cancel := context.WithCancel(t.Context())
				var e effects
				agent := deaf(&e, cancel, tt.change)
				agent.Model = newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"), says("done"))
				r := pawl.Runner{Store: store}
				_, err := r.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if tt.meanwhile != nil {
					tt.meanwhile(t, &pawl.Runner{Store: store}, agent)
				}
				if got := len(replays(t, &r, "r").Interruptions()) > 0; got != tt.asks {
					t.Errorf("interruptions before the body ends: %v", got)
				}
				if got := lates(t, store); len(got) != 0 {
					t.Errorf("late before the body ends: %q", got)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := lates(t, store); !slices.Equal(got, tt.late) {
					t.Errorf("late %q, want %q", got, tt.late)
				}
				if left, err := store.Inbox(t.Context(), "r"); err != nil || len(left) != 0 {
					t.Errorf("the inbox has %v, %v", left, err)
				}
				res, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
				if err != nil && !errors.Is(err, pawl.ErrCancelled) {
					t.Fatal(err)
				}
				if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], tt.out) {
					t.Errorf("outputs %q, want %q", out, tt.out)
				}
				e.want(t, "attempt 1")
				replays(t, &r, "r")
			})
		})
	}
}

// A driver that has lost the run leaves what its bodies did to whoever has it now, and to
// the ledger if nobody has.
func TestLateResultOfAZombie(t *testing.T) {
	for name, tt := range map[string]struct {
		body    time.Duration // of the body, from when its context ends
		settled bool          // a person settles the call before the body ends
		out     string
		late    []string
	}{
		"ends in the grace":         {out: "c1: late receipt"},
		"ends later":                {body: time.Minute, out: "c1: late receipt"},
		"ends after it was settled": {body: time.Minute, settled: true, out: "c1: settled", late: []string{"t1.0.1 c1: late receipt"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { zombie(t, tt.body, tt.settled, tt.out, tt.late) })
		})
	}
}

func zombie(t *testing.T, body time.Duration, settled bool, out string, late []string) {
	store := journal.NewMemory()
	var e effects
	taken := make(chan struct{})
	agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
		f.Timeout = 4 * time.Second
		f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) {
			close(taken)
			<-ctx.Done() // the driver has noticed that it is fenced
			time.Sleep(body)
			return "late receipt", nil
		}
	})
	done := make(chan error)
	go func() {
		r := pawl.Runner{Store: store, Lease: 3 * time.Second}
		_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		done <- err
	}()
	<-taken
	other := deaf(&e, func() {}, nil)
	other.Model = newScript(says("done"))
	r := pawl.Runner{Store: takingOver{store}}
	res := must(t)(r.Resume(t.Context(), other, pawl.RunID("r"), nil))
	if !res.Waiting() {
		t.Fatalf("%+v", res)
	}
	if settled {
		time.Sleep(time.Until(res.Interruptions[0].NotBefore))
		if err := r.Decide(t.Context(), "r", pawl.Settle(res.Interruptions[0].ID, "ann", "settled")); err != nil {
			t.Fatal(err)
		}
		must(t)(r.Resume(t.Context(), other, pawl.RunID("r"), nil))
	}
	if err := <-done; !errors.Is(err, pawl.ErrFenced) {
		t.Errorf("the zombie: %v", err)
	}
	time.Sleep(body)
	synctest.Wait()
	if got := lates(t, store); !slices.Equal(got, late) {
		t.Errorf("late %q, want %q", got, late)
	}
	res = must(t)(r.Resume(t.Context(), other, pawl.RunID("r"), nil))
	if got := outputs(res.NewItems()); res.FinalOutput != "done" || !slices.Equal(got, []string{out}) {
		t.Errorf("outputs %q, want %q", got, out)
	}
	e.want(t)
	replays(t, &r, "r")
}

// takingOver is a store whose claims take any run over.
type takingOver struct{ journal.Driver }

func (s takingOver) Claim(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
	c, err := s.Driver.Claim(ctx, run, req)
	var held *journal.ClaimedError
	if errors.As(err, &held) {
		req.Takeover = held.Holder.Epoch
		return s.Driver.Claim(ctx, run, req)
	}
	return c, err
}

// An outcome that the store did not take is not lost if the store can be reached again
// when the driver lets go of the run.
func TestUnsavedOutcomeIsPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		flaky := &deadEnd{Driver: store}
		var e effects
		agent := inBody(&e, func() { flaky.dead.Store(true) }, nil)
		r := pawl.Runner{Store: reachable{flaky}}
		_, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		var je *pawl.JournalError
		if !errors.As(err, &je) {
			t.Fatal(err)
		}
		well := pawl.Runner{Store: store}
		agent = inBody(&e, func() { t.Error("it runs again") }, nil)
		agent.Model = newScript(says("done"))
		// By its id: the process that knows more is gone.
		res := must(t)(well.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		if out := outputs(res.NewItems()); res.FinalOutput != "done" || !slices.Equal(out, []string{"c1: receipt"}) {
			t.Errorf("%+v, outputs %q", res, out)
		}
		replays(t, &well, "r")
	})
}

// reachable is a store that takes posts when it takes nothing else.
type reachable struct{ *deadEnd }

func (s reachable) Post(ctx context.Context, run string, e journal.Entry) error {
	return s.Driver.Post(ctx, run, e)
}

// An inbox takes from a body only what a late body can say.
func TestStrangeLateResults(t *testing.T) {
	var e effects
	store := journal.NewMemory()
	agent := inBody(&e, func() {}, func(f *pawl.Func[charge, string]) {
		asking(f)
	})
	r := pawl.Runner{Store: store}
	must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	call := journal.EffectID{Kind: journal.EffectTool, N: 1}
	first := call
	first.A = 1
	for key, s := range map[string]*journal.Settled{
		"late/rejected":  {ID: call, Outcome: journal.Rejected, Output: item.FunctionOutput("c1", "no")},
		"late/dropped":   {ID: call, Outcome: journal.Dropped, Output: item.FunctionOutput("c1", "no")},
		"late/unstarted": {ID: first, Output: item.FunctionOutput("c1", "forged")},
		"late/not":       {ID: first, Outcome: journal.NotExecuted},
	} {
		if err := store.Post(t.Context(), "r", journal.Entry{Key: key, Body: journal.Encode(journal.Fact{Body: s}, [16]byte{1})}); err != nil {
			t.Fatal(err)
		}
	}
	res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	if len(res.Interruptions) != 1 || res.Interruptions[0].Kind != pawl.ApprovalNeeded {
		t.Errorf("%+v", res)
	}
	e.want(t)
}

// What the body of a nested run's tool returns too late is recorded in its frame.
func TestNestedLateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var e effects
		inner := deaf(&e, stop, nil)
		manager := newScript(calling(fc("a", "support", `{"input":"pay"}`)), says("done"))
		agent := &pawl.Agent{Name: "manager", Model: manager, Tools: []pawl.Tool{pawl.AgentTool(inner, nil)}}
		r := &pawl.Runner{Store: journal.NewMemory(), Grace: time.Second}
		if _, err := r.Run(ctx, agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		frames := ""
		for _, f := range facts(t, r.Store, "r") {
			if s, ok := f.Body.(*journal.Settled); ok && s.ID.N == 1 {
				frames += f.Frame + " " + string(s.Outcome) + ";"
			}
		}
		if frames != "1.0 unknown;1.0 ;" {
			t.Errorf("it has %s", frames)
		}
		for u, err := range r.Unsettled(t.Context(), nil) {
			t.Errorf("unsettled: %+v, %v", u, err)
		}
		e.want(t, "attempt 1")
	})
}
