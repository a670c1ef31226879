package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

type recovery func(ctx context.Context, c *pawl.Call, in charge) (pawl.Recovered[string], error)

func answers(a pawl.RecoverAnswer, out string) recovery {
	return func(context.Context, *pawl.Call, charge) (pawl.Recovered[string], error) {
		return pawl.Recovered[string]{Answer: a, Output: out}, nil
	}
}

// The answers of a far side, and what stands for one.
var farSides = map[string]struct {
	ask recovery
	// what follows: the call's output, or that a person is asked.
	out  string
	runs bool // the body runs again
}{
	"happened":       {ask: answers(pawl.Happened, "from the bank"), out: "c1: from the bank"},
	"did not happen": {ask: answers(pawl.DidNotHappen, "ignored"), out: "c1: receipt", runs: true},
	"cannot tell":    {ask: answers(pawl.CannotTell, "ignored")},
	"an error": {ask: func(context.Context, *pawl.Call, charge) (pawl.Recovered[string], error) {
		return pawl.Recovered[string]{Answer: pawl.Happened}, errors.New("the bank is closed")
	}},
	"a panic": {ask: func(context.Context, *pawl.Call, charge) (pawl.Recovered[string], error) { panic("oh") }},
	"too slow": {ask: func(context.Context, *pawl.Call, charge) (pawl.Recovered[string], error) {
		time.Sleep(31 * time.Second)
		return pawl.Recovered[string]{Answer: pawl.Happened}, nil
	}},
}

// A call in doubt after a crash: the far side is asked, when nothing of the call can be
// running any more, and before any person.
func TestRecoverAfterCrash(t *testing.T) {
	for name, tt := range farSides {
		for owner, change := range map[string]func(*journal.Owner){"gone": gone, "elsewhere": elsewhere} {
			t.Run(name+"/"+owner, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ignored effects
					doc := snapshot(t, func(body func()) *pawl.Agent {
						return inBody(&ignored, body, func(f *pawl.Func[charge, string]) { f.Recover = tt.ask })
					}, &pawl.RunOptions{})
					var e effects
					var asked atomic.Int32 // a slow far side still answers when the next is asked
					agent := inBody(&e, func() {}, func(f *pawl.Func[charge, string]) {
						f.Recover = func(ctx context.Context, c *pawl.Call, in charge) (pawl.Recovered[string], error) {
							asked.Add(1)
							if c.Attempt != 1 || !strings.HasPrefix(c.Key, "pawl_8cdf") || in.Cents != 5 {
								t.Errorf("asked about %+v", c)
							}
							return tt.ask(ctx, c, in)
						}
					})
					agent.Model = newScript(says("done"))
					store := abandoned(t, doc, change)
					r := &pawl.Runner{Store: store}
					start := time.Now()
					res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
					if early := time.Since(start) < pawl.DefaultToolTimeout; early != (owner == "gone") {
						t.Errorf("it was asked after %v", time.Since(start))
					}
					want := tt.out
					if want == "" {
						if !res.Waiting() || res.Interruptions[0].Kind != pawl.InDoubt {
							t.Fatalf("%+v", res)
						}
						if err := r.Decide(t.Context(), "r", pawl.Settle(res.Interruptions[0].ID, "ann", "looked")); err != nil {
							t.Fatal(err)
						}
						res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
						// A new driver asks again, and then the person has decided already.
						want = "c1: looked"
						asked.Add(-1)
					}
					if out := outputs(res.NewItems()); !slices.Equal(out, []string{want}) || asked.Load() != 1 {
						t.Errorf("outputs %q, want %q; asked %d times", out, want, asked.Load())
					}
					if tt.runs {
						e.want(t, "charge 5 attempt 2 key pawl_8cdf")
					} else {
						e.want(t)
					}
					replays(t, r, "r")
					time.Sleep(time.Minute) // the slow one ends
				})
			})
		}
	}
}

// A body that reports an unknown outcome: the far side is asked at once, and the model is
// told only if it cannot tell.
func TestRecoverLive(t *testing.T) {
	for name, tt := range farSides {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
					f.Recover = tt.ask
					f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
						e.add("attempt %d", c.Attempt)
						if c.Attempt == 1 {
							return "", fmt.Errorf("no answer: %w", pawl.ErrOutcomeUnknown)
						}
						return "receipt", nil
					}
				})
				var r pawl.Runner
				res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
				want := tt.out
				if want == "" {
					want = "c1: The outcome of this tool call is unknown"
				}
				if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], want) {
					t.Errorf("outputs %q, want %q", out, want)
				}
				if tt.runs {
					e.want(t, "attempt 1", "attempt 2")
				} else {
					e.want(t, "attempt 1")
				}
				replays(t, &r, "r")
				time.Sleep(time.Minute) // the slow one ends
			})
		})
	}
}

// A driver that stops, or a run that is cancelled, while the far side is asked: there is no
// answer, and the next driver asks again, or nobody.
func TestRecoverStops(t *testing.T) {
	for _, how := range []string{"context", "cancel"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := journal.NewMemory()
				r := pawl.Runner{Store: store}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				asked := 0
				var e effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
				agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", pawl.ErrOutcomeUnknown }
					f.Recover = func(ctx context.Context, _ *pawl.Call, _ charge) (pawl.Recovered[string], error) {
						if asked++; asked > 1 {
							return pawl.Recovered[string]{Answer: pawl.Happened, Output: "found"}, nil
						}
						if how == "context" {
							stop()
						} else if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
							t.Error(err)
						}
						<-ctx.Done()
						return pawl.Recovered[string]{}, ctx.Err()
					}
				})
				agent.Model = m
				res, err := r.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				if how == "cancel" {
					cancelled(t, &r, agent, m, nil, res, err)
					if out := outputs(res.NewItems()); len(out) != 1 || !strings.HasPrefix(out[0], "c1: The outcome of this tool call is unknown") || asked != 1 {
						t.Errorf("outputs %q, asked %d times", out, asked)
					}
					return
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
				if diff := cmp.Diff([]string{"c1: found"}, outputs(res.NewItems())); diff != "" || asked != 2 {
					t.Errorf("asked %d times: %s", asked, diff)
				}
			})
		})
	}
}

// The far side is asked about edited arguments as they ran, by the tool that ran, and the
// model reads that they were edited.
func TestRecoverOfEditedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		ask := func(_ context.Context, _ *pawl.Call, in charge) (pawl.Recovered[string], error) {
			return pawl.Recovered[string]{Answer: pawl.Happened, Output: fmt.Sprint("paid ", in.Cents)}, nil
		}
		agent := inBody(&e, nil, func(f *pawl.Func[charge, string]) {
			asking(f)
			f.Recover = ask
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", pawl.ErrOutcomeUnknown }
		})
		var r pawl.Runner
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
		if err := r.Decide(t.Context(), "r", pawl.Edit(res.Interruptions[0].ID, "ann", `{"cents":7}`)); err != nil {
			t.Fatal(err)
		}
		res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		want := "c1: The reviewer changed the arguments to {\"cents\":7}.\npaid 7"
		if diff := cmp.Diff([]string{want}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
	})
}

// However an edited call is settled, the model reads what was run (M9.7, M8.10, M9.10).
func TestSettledEditedCall(t *testing.T) {
	const note = "c1: The reviewer changed the arguments to {\"cents\":7}.\n"
	unknown := note + "The outcome of this tool call is unknown"
	wait := func(f *pawl.Func[charge, string]) { f.OnUnknown = pawl.UnknownWait }
	for name, tt := range map[string]struct {
		err    error
		change func(*pawl.Func[charge, string])
		decide func(id string) pawl.Decision // nil: it is settled by itself
		want   string
	}{
		"settled":         {pawl.ErrOutcomeUnknown, wait, func(id string) pawl.Decision { return pawl.Settle(id, "ann", "paid 7") }, note + "paid 7"},
		"settled, empty":  {pawl.ErrOutcomeUnknown, wait, func(id string) pawl.Decision { return pawl.Settle(id, "ann", "") }, note},
		"external":        {pawl.ErrPending, nil, func(id string) pawl.Decision { return pawl.Settle(id, "ann", "paid 7") }, note + "paid 7"},
		"given up":        {pawl.ErrOutcomeUnknown, wait, func(id string) pawl.Decision { return pawl.GiveUp(id, "ann") }, unknown},
		"told":            {pawl.ErrOutcomeUnknown, nil, nil, unknown},
		"rejected at all": {pawl.AskAgain("Sure?"), nil, func(id string) pawl.Decision { return pawl.Reject(id, "ann", "no") }, "c1: no"},
	} {
		t.Run(name, func(t *testing.T) {
			agent := inBody(&effects{}, nil, func(f *pawl.Func[charge, string]) { saying(tt.err, tt.change)(f); asking(f) })
			var r pawl.Runner
			res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
			decide := func(d pawl.Decision) {
				t.Helper()
				if err := r.Decide(t.Context(), "r", d); err != nil {
					t.Fatal(err)
				}
				res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
			}
			decide(pawl.Edit(res.Interruptions[0].ID, "ann", `{"cents":7}`))
			if tt.decide != nil {
				decide(tt.decide(res.Interruptions[0].ID))
			}
			out := outputs(res.NewItems())
			if len(out) != 1 || out[0] != tt.want && (tt.want != unknown || !strings.HasPrefix(out[0], unknown)) || res.FinalOutput != "done" {
				t.Errorf("outputs %q, want %q", out, tt.want)
			}
		})
	}
}

// A call in doubt is not asked about through another tool: the one it was has to come back.
func TestRecoverWithAnotherTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e effects
		recover := func(f *pawl.Func[charge, string]) { f.Recover = answers(pawl.Happened, "found") }
		doc := snapshot(t, func(body func()) *pawl.Agent { return inBody(&e, body, recover) }, &pawl.RunOptions{})
		agent := inBody(&e, func() {}, recover)
		agent.Model = newScript(says("done"))
		same := agent.Tools
		other := pawl.NewTool(pawl.Func[struct {
			Euros int `json:"euros"`
		}, string]{Name: "charge", Run: func(context.Context, *pawl.Call, struct {
			Euros int `json:"euros"`
		}) (string, error) {
			t.Error("another tool ran")
			return "", nil
		}})
		for name, tt := range map[string]struct {
			tools    []pawl.Tool
			notFound pawl.ToolNotFound
			want     error
			out      string
		}{
			"another":                     {tools: []pawl.Tool{other}, want: pawl.ErrToolChanged},
			"gone":                        {want: pawl.ErrToolChanged},
			"gone, and the model is told": {notFound: pawl.TellModel},
			"without Recover":             {tools: inBody(&e, func() {}, nil).Tools},
		} {
			store := abandoned(t, doc, gone)
			r := pawl.Runner{Store: store}
			agent.Tools = tt.tools
			res, err := r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{ToolNotFound: tt.notFound})
			if !errors.Is(err, tt.want) || tt.want == nil && !res.Waiting() {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			agent.Tools, agent.Model = same, newScript(says("done"))
			res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
			if diff := cmp.Diff([]string{"c1: found"}, outputs(res.NewItems())); diff != "" {
				t.Errorf("%s: with the old tool: %s", name, diff)
			}
		}
	})
}
