package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// inBody is an agent with one tool whose body calls back.
func inBody(e *effects, body func(), change func(*pawl.Func[charge, string])) *pawl.Agent {
	return agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", e, func(f *pawl.Func[charge, string]) {
		f.Run = func(_ context.Context, c *pawl.Call, in charge) (string, error) {
			body()
			e.add("charge %d attempt %d key %s", in.Cents, c.Attempt, c.Key[:9])
			return "receipt", nil
		}
		if change != nil {
			change(f)
		}
	}))
}

// A crash in the middle of a body: what follows depends on what its author declared.
func TestCrashInTool(t *testing.T) {
	key := func(t *testing.T, s *pawl.RunState) string { return s.Interruptions()[0].Key }
	for name, tt := range map[string]struct {
		change func(*pawl.Func[charge, string])
		// decide is nil if nobody is asked.
		decide  func(in pawl.Interruption) pawl.Decision
		out     string
		effects []string
		waits   time.Duration
	}{
		"read only":       {change: func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
		"idempotent":      {change: func(f *pawl.Func[charge, string]) { f.Effect = pawl.Idempotent }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
		"settled":         {decide: func(in pawl.Interruption) pawl.Decision { return pawl.Settle(in.ID, "ann", "was charged") }, out: "c1: was charged"},
		"retried":         {decide: func(in pawl.Interruption) pawl.Decision { return pawl.Retry(in.ID, "ann") }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
		"given up":        {decide: func(in pawl.Interruption) pawl.Decision { return pawl.GiveUp(in.ID, "ann") }, out: "c1: The outcome of this tool call is unknown"},
		"wait":            {change: func(f *pawl.Func[charge, string]) { f.OnUnknown = pawl.UnknownWait }, decide: func(in pawl.Interruption) pawl.Decision { return pawl.GiveUp(in.ID, "ann") }, out: "c1: The outcome of this tool call is unknown"},
		"tell":            {change: func(f *pawl.Func[charge, string]) { f.OnUnknown = pawl.UnknownTell }, out: "c1: The outcome of this tool call is unknown"},
		"tell, idem":      {change: func(f *pawl.Func[charge, string]) { f.OnUnknown, f.Effect = pawl.UnknownTell, pawl.Idempotent }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
		"wait, read only": {change: func(f *pawl.Func[charge, string]) { f.OnUnknown, f.Effect = pawl.UnknownWait, pawl.ReadOnly }, out: "c1: receipt", effects: []string{"charge 5 attempt 2 key pawl_8cdf"}},
	} {
		for owner, change := range map[string]func(*journal.Owner){"gone": gone, "elsewhere": elsewhere} {
			t.Run(name+"/"+owner, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ignored effects
					doc := snapshot(t, func(body func()) *pawl.Agent { return inBody(&ignored, body, tt.change) }, &pawl.RunOptions{})
					var e effects
					agent := inBody(&e, func() {}, tt.change)
					agent.Model = newScript(says("done"))
					r := &pawl.Runner{Store: abandoned(t, doc, change)}
					res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
					if res.Waiting() != (tt.decide != nil) {
						t.Fatalf("status %s", res.Status)
					}
					if tt.decide != nil {
						in := res.Interruptions[0]
						if in.Kind != pawl.InDoubt || in.Key != key(t, res.State()) || in.Arguments != `{"cents":5}` {
							t.Errorf("%+v", in)
						}
						d := tt.decide(in)
						if owner == "elsewhere" {
							if err := r.Decide(t.Context(), "r", d); !errors.Is(err, pawl.ErrCallInFlight) {
								t.Errorf("before its time: %v", err)
							}
							time.Sleep(time.Until(in.NotBefore))
						}
						if err := r.Decide(t.Context(), "r", d); err != nil {
							t.Fatal(err)
						}
						res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
					}
					if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], tt.out) {
						t.Errorf("outputs %q, want %q", out, tt.out)
					}
					e.want(t, tt.effects...)
					replays(t, r, "r")
				})
			})
		}
	}
}

// A call in doubt twice is asked about twice, and an old answer does not answer the second.
func TestCrashTwice(t *testing.T) {
	var e effects
	doc := snapshot(t, func(body func()) *pawl.Agent { return inBody(&e, body, nil) }, &pawl.RunOptions{})
	store := abandoned(t, doc, gone)
	r := &pawl.Runner{Store: store}
	agent := inBody(&e, func() {}, nil)
	res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	first := res.Interruptions[0]
	if err := r.Decide(t.Context(), "r", pawl.Retry(first.ID, "ann")); err != nil {
		t.Fatal(err)
	}
	var again []byte
	agent = inBody(&e, func() { again = marshal(t, replays(t, r, "r")) }, nil)
	agent.Model = newScript(says("done"))
	must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	r = &pawl.Runner{Store: abandoned(t, again, gone)}
	res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	second := res.Interruptions[0]
	if second.ID == first.ID || second.Key != first.Key {
		t.Errorf("first %s %s, second %s %s", first.ID, first.Key, second.ID, second.Key)
	}
	if err := r.Decide(t.Context(), "r", pawl.Retry(first.ID, "bob")); err != nil {
		t.Errorf("the first answer again: %v", err)
	}
	if err := r.Decide(t.Context(), "r", pawl.GiveUp(first.ID, "bob")); !errors.Is(err, pawl.ErrDecided) {
		t.Errorf("another answer to the first: %v", err)
	}
	if res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)); !res.Waiting() {
		t.Errorf("%+v", res)
	}
}

// What a body reports as unknown.
func TestUnknownOutcomes(t *testing.T) {
	for name, err := range map[string]error{
		"cancelled":       fmt.Errorf("backend: %w", context.Canceled),
		"deadline":        context.DeadlineExceeded,
		"unknown":         fmt.Errorf("sent, no answer: %w", pawl.ErrOutcomeUnknown),
		"network timeout": fmt.Errorf("dial: %w", timeoutError{}),
	} {
		for on, tells := range map[pawl.OnUnknown]bool{pawl.UnknownDefault: true, pawl.UnknownTell: true, pawl.UnknownWait: false} {
			t.Run(name+"/"+string(on), func(t *testing.T) {
				var e effects
				agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
					f.OnUnknown = on
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", err }
				})
				var r pawl.Runner
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
				if res.Waiting() == tells {
					t.Fatalf("%+v", res)
				}
				if !tells {
					in := res.Interruptions[0]
					if in.Kind != pawl.InDoubt || !in.NotBefore.IsZero() {
						t.Errorf("%+v", in)
					}
					if err := r.Decide(t.Context(), res.Run, pawl.Settle(in.ID, "ann", "charged")); err != nil {
						t.Fatal(err)
					}
					res = must(t)(r.Resume(t.Context(), agent, pawl.RunID(res.Run), nil))
				}
				out := outputs(res.NewItems())
				if tells && (len(out) != 1 || !strings.Contains(out[0], "unknown") || !strings.Contains(out[0], "pawl_")) || !tells && !slices.Equal(out, []string{"c1: charged"}) {
					t.Errorf("outputs %q", out)
				}
			})
		}
	}
}

type timeoutError struct{}

// A harmless call with unknown outcomes runs again, but not for ever.
func TestUnknownHarmless(t *testing.T) {
	var e effects
	agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
		f.Effect = pawl.Idempotent
		f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
			e.add("attempt %d", c.Attempt)
			return "", pawl.ErrOutcomeUnknown
		}
	})
	var r pawl.Runner
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
	e.want(t, "attempt 1", "attempt 2", "attempt 3")
	if out := outputs(res.NewItems()); len(out) != 1 || !strings.Contains(out[0], "unknown") {
		t.Errorf("outputs %q", out)
	}
}

// A tool that runs into its timeout: the model is told, with the key; what comes late is
// evidence.
func TestToolTimeout(t *testing.T) {
	for name, heeds := range map[string]bool{"heeds its context": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "slow", `{"cents":1}`)), says("done"))
				tool := charging("charge", &e, func(f *pawl.Func[charge, string]) {
					f.Timeout = 10 * time.Second
					f.Run = func(ctx context.Context, c *pawl.Call, _ charge) (string, error) {
						deadline, ok := ctx.Deadline()
						if left := time.Until(deadline); !ok || left != 10*time.Second {
							t.Errorf("deadline in %v", left)
						}
						if heeds {
							<-ctx.Done()
							return "", ctx.Err()
						}
						time.Sleep(time.Minute)
						e.add("charged")
						return "late", nil
					}
				})
				slow := charging("slow", &e, func(f *pawl.Func[charge, string]) {
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
						time.Sleep(2 * time.Minute)
						return "slow", nil
					}
				})
				w := &watched{Driver: journal.NewMemory()}
				r := pawl.Runner{Store: w}
				res := must(t)(r.Run(t.Context(), agentWith(m, tool, slow), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
				out := outputs(res.NewItems())
				if len(out) != 2 || !strings.Contains(out[0], "unknown") || !strings.Contains(out[0], "pawl_8cdf") || out[1] != "c2: slow" {
					t.Errorf("outputs %q", out)
				}
				late := w.has(func(b journal.Body) bool {
					s, ok := b.(*journal.Settled)
					return ok && s.Late && s.Outcome == journal.Done
				})
				if late == heeds {
					t.Errorf("late result recorded: %v", late)
				}
				sameViews(t, res, m, nil)
				replays(t, &r, "r")
			})
		})
	}
}

// A body of a harmless call that ends after its second attempt began, without an answer, says
// nothing the run waits for.
func TestLateUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
			f.Effect, f.Timeout = pawl.Idempotent, 10*time.Second
			f.Run = func(ctx context.Context, c *pawl.Call, _ charge) (string, error) {
				if c.Attempt == 1 {
					time.Sleep(12 * time.Second) // past its deadline, and deaf
					return "", ctx.Err()
				}
				time.Sleep(5 * time.Second)
				return "second", nil
			}
		})
		var r pawl.Runner
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), nil))
		if diff := cmp.Diff([]string{"c1: second"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
	})
}

// An output is shown once, whatever comes late.
func TestLateOutcomeIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		m := newScript(calling(fc("c1", "deaf", `{"cents":5}`), fc("c2", "slow", `{"cents":1}`)), says("done"))
		deaf := charging("deaf", &e, func(f *pawl.Func[charge, string]) {
			f.Timeout = 10 * time.Second
			f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) {
				time.Sleep(time.Minute)
				return "", ctx.Err() // the same outcome again
			}
		})
		slow := charging("slow", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
				time.Sleep(2 * time.Minute)
				return "slow", nil
			}
		})
		var r pawl.Runner
		got, err := trail(r.Stream(t.Context(), agentWith(m, deaf, slow), pawl.UserText("go"), nil))
		want := []string{"started resumed=false", "agent support", "tool_called c1", "tool_called c2", "tool started deaf c1 1", "tool started slow c2 1",
			"tool_output c1", "tool_output c2", `delta text 2.1 "done"`, "message_output_created", "done done"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, events (-want +got):\n%s", err, diff)
		}
	})
}
