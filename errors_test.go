package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/session"
)

// fenced is a store that another driver takes a run from when its n-th append is due.
type fenced struct {
	journal.Driver
	n int
}

func (f *fenced) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if f.n--; f.n == 0 {
		return journal.ErrFenced
	}
	return f.Driver.Append(ctx, run, epoch, after, recs, with...)
}

// asking5 is an agent whose run "r" waits for the approval of a call.
func asking5(e *effects) *pawl.Agent {
	return agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", e, asking))
}

// waiting5 is a Runner whose run "r" waits for an approval, and its agent.
func waiting5(t *testing.T) (*pawl.Runner, *pawl.Agent, *pawl.RunState) {
	agent := asking5(new(effects))
	r := &pawl.Runner{Agents: []*pawl.Agent{agent}}
	return r, agent, must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})).State()
}

// runs returns the error of a run "r" whose model answers with the steps.
func runs(t *testing.T, change func(*pawl.Agent, *pawl.RunOptions), steps ...step) error {
	agent, opts := agentWith(newScript(steps...), charging("charge", new(effects), nil)), &pawl.RunOptions{ID: "r"}
	if change != nil {
		change(agent, opts)
	}
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), opts)
	return err
}

func parse(doc string) error {
	_, err := pawl.ParseRunState([]byte(doc))
	return err
}

// Every error says what is wrong, once, and whose it is.
func TestErrorsAsTheyRead(t *testing.T) {
	type made = func(t *testing.T) error
	for want, f := range map[string]made{
		"pawl: run r: the run id is in use with another input, agent or conversation": func(t *testing.T) error {
			r, agent, _ := waiting5(t)
			_, err := r.Run(t.Context(), agent, pawl.UserText("else"), &pawl.RunOptions{ID: "r"})
			return err
		},
		"pawl: run x: the store has no such run": func(t *testing.T) error {
			_, err := new(pawl.Runner).State(t.Context(), "x")
			return err
		},
		`pawl: run r: the run's agent is not known here: "support"`: func(t *testing.T) error {
			_, _, s := waiting5(t)
			_, err := new(pawl.Runner).Resume(t.Context(), nil, s, nil)
			return err
		},
		`pawl: run r: the run belongs to another agent: it is "support", not "sales"`: func(t *testing.T) error {
			r, agent, s := waiting5(t)
			_, err := r.Resume(t.Context(), &pawl.Agent{Name: "sales", Model: agent.Model}, s, nil)
			return err
		},
		"pawl: run r: the run is being driven elsewhere: run r is driven by process 7 on far until 2000-01-01T00:01:00Z": func(t *testing.T) error {
			store := journal.NewMemory()
			r := pawl.Runner{Store: store}
			must(t)(r.Run(t.Context(), asking5(new(effects)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
			_, err := store.Claim(t.Context(), "r", journal.ClaimRequest{Owner: journal.Owner{Host: "far", PID: 7}, TTL: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Resume(t.Context(), asking5(new(effects)), pawl.RunID("r"), nil)
			return err
		},
		"pawl: run r: the run store failed with 3 facts to record: the run was claimed by another driver": func(t *testing.T) error {
			r := pawl.Runner{Store: &fenced{journal.NewMemory(), 2}}
			_, err := r.Run(t.Context(), asking5(new(effects)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			return err
		},
		"pawl: run r: the run store failed with 3 facts to record: the answer of the store was lost": func(t *testing.T) error {
			plan := journaltest.Plan{}
			for n := 2; n < 20; n++ {
				plan[n] = journaltest.Absent
			}
			r := pawl.Runner{Store: journaltest.Faulty(journal.NewMemory(), plan)}
			_, err := r.Run(t.Context(), asking5(new(effects)), pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			return err
		},
		"pawl: run r: the state and the stored run have gone different ways": func(t *testing.T) error {
			r, agent, _ := waiting5(t)
			_, _, other := waiting5(t)
			_, err := r.Resume(t.Context(), agent, other, nil)
			return err
		},
		`pawl: run r: the interruption was decided otherwise before: 1.0#0 is decided here: approve by "ann"`: func(t *testing.T) error {
			_, _, s := waiting5(t)
			return errors.Join(s.Decide(pawl.Approve("1.0#0", "ann")), s.Decide(pawl.Reject("1.0#0", "bob", "")))
		},
		`pawl: run r: the interruption was decided otherwise before: 1.0#0 is decided: approve by "ann"`: func(t *testing.T) error {
			r, _, _ := waiting5(t)
			return errors.Join(r.Decide(t.Context(), "r", pawl.Approve("1.0#0", "ann")), r.Decide(t.Context(), "r", pawl.Reject("1.0#0", "bob", "")))
		},
		`pawl: run r: the interruption was decided otherwise before: approve by "ann"`: func(t *testing.T) error {
			r, agent, s := waiting5(t)
			if err := s.Decide(pawl.Approve("1.0#0", "ann")); err != nil {
				return err
			}
			must(t)(r.Resume(t.Context(), agent, s, nil))
			return r.Decide(t.Context(), "r", pawl.Reject("1.0#0", "bob", ""))
		},
		"pawl: run r: the interruption is not open: there is no call t9.9.0 at stage 0": func(t *testing.T) error {
			r, _, _ := waiting5(t)
			return r.Decide(t.Context(), "r", pawl.Approve("9.9#0", "ann"))
		},
		`pawl: run r: the decision does not fit the interruption: "nonsense" is not an interruption id`: func(t *testing.T) error {
			r, _, _ := waiting5(t)
			return r.Decide(t.Context(), "r", pawl.Approve("nonsense", "ann"))
		},
		"pawl: run r: the decision does not fit the interruption: retry cannot settle approval": func(t *testing.T) error {
			r, _, _ := waiting5(t)
			return r.Decide(t.Context(), "r", pawl.Retry("1.0#0", "ann"))
		},
		`pawl: run r: the decision does not fit the interruption: the arguments for 1.0#0: cents: expected an integer of 64 bits, got "5"`: func(t *testing.T) error {
			r, _, _ := waiting5(t)
			return r.Decide(t.Context(), "r", pawl.Edit("1.0#0", "ann", `{"cents":"5"}`))
		},
		"pawl: run r: the decision does not fit the interruption: unreadable arguments: want a JSON object": func(t *testing.T) error {
			_, _, s := waiting5(t)
			return s.Decide(pawl.Edit("1.0#0", "ann", `[]`))
		},
		"pawl: run r: the decision does not fit the interruption: a message goes with a rejection": func(t *testing.T) error {
			_, _, s := waiting5(t)
			return s.Decide(pawl.Decision{Interruption: "1.0#0", Verdict: journal.Approve, Message: "no"})
		},
		"pawl: run r: the call may still be running: decide it after 2000-01-01T00:10:02Z": func(t *testing.T) error {
			doc := snapshot(t, func(body func()) *pawl.Agent { return inBody(new(effects), body, nil) }, &pawl.RunOptions{})
			agent := inBody(new(effects), func() {}, nil)
			r := &pawl.Runner{Store: abandoned(t, doc, elsewhere)}
			res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
			return r.Decide(t.Context(), "r", pawl.GiveUp(res.Interruptions[0].ID, "ann"))
		},
		`pawl: run r: the call's tool has changed: "charge" is gone`: func(t *testing.T) error {
			r, agent, s := waiting5(t)
			changed := *agent
			changed.Tools = nil
			if err := s.Decide(pawl.Approve("1.0#0", "ann")); err != nil {
				return err
			}
			_, err := r.Resume(t.Context(), &changed, s, nil)
			return err
		},
		`pawl: run r: the run's session is missing: it is "s" in *pawl_test.points`: func(t *testing.T) error {
			agent := asking5(new(effects))
			var r pawl.Runner
			s := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: &points{session.NewMemory("s"), func(string) {}}})).State()
			_, err := r.Resume(t.Context(), agent, s, nil)
			return err
		},
		`pawl: run r: the session is not the run's session: the run has none, and "s" was given`: func(t *testing.T) error {
			r, agent, s := waiting5(t)
			_, err := r.Resume(t.Context(), agent, s, &pawl.RunOptions{Session: session.NewMemory("s")})
			return err
		},
		`pawl: run r, reading the session: session "s": item 0 is empty`: func(t *testing.T) error {
			return runs(t, func(_ *pawl.Agent, o *pawl.RunOptions) { o.Session = badSession{session.NewMemory("s")} })
		},
		"pawl: the run state cannot be read: invalid JSON at offset 0: unexpected end":                                          func(t *testing.T) error { return parse("") },
		`pawl: the run state cannot be read: its schema is ""`:                                                                  func(t *testing.T) error { return parse("{}") },
		`pawl: the run state cannot be read: the document has 0 facts and says -1`:                                              func(t *testing.T) error { return parse(`{"schema":"pawl.run/1","run":"r","facts":[]}`) },
		`pawl: the run state was written by a newer version of Pawl: member "x"`:                                                func(t *testing.T) error { return parse(`{"schema":"pawl.run/1","x":1}`) },
		`pawl: the run state was written by a newer version of Pawl: its schema is "pawl.run/2", this version reads pawl.run/1`: func(t *testing.T) error { return parse(`{"schema":"pawl.run/2"}`) },
		"pawl: run r: the run cannot be forked now: a fork needs an id of its own": func(t *testing.T) error {
			_, _, s := waiting5(t)
			_, err := s.Fork("r")
			return err
		},
		"pawl: run r: the run was cancelled": func(t *testing.T) error {
			r, agent, _ := waiting5(t)
			if err := r.Cancel(t.Context(), "r", "ann", ""); err != nil {
				return err
			}
			_, err := r.Resume(t.Context(), agent, pawl.RunID("r"), nil)
			return err
		},
		"pawl: run r, preparing turn 2: no final output after 1 turns": func(t *testing.T) error {
			return runs(t, func(_ *pawl.Agent, o *pawl.RunOptions) { o.MaxTurns = 1 }, calling(fc("c1", "charge", `{"cents":5}`)))
		},
		`pawl: run r, reading response 1: the model called the tool "pay" (call c1), which the agent does not have; it has charge`: func(t *testing.T) error {
			return runs(t, nil, calling(fc("c1", "pay", `{}`)))
		},
		`pawl: run r, reading response 1: the model used the call id "c1" for two different calls`: func(t *testing.T) error {
			return runs(t, nil, calling(fc("c1", "charge", `{"cents":5}`), fc("c1", "charge", `{"cents":6}`)))
		},
		"pawl: run r, reading response 1: the model refused: never": func(t *testing.T) error {
			refusal := item.FromTrusted(`{"type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"never"}]}`)
			return runs(t, nil, items(refusal))
		},
		"pawl: run r, reading response 1: the final output does not fit its type: expected an object, got 7": func(t *testing.T) error {
			return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) { a.Output = pawl.OutputOf[charge]() }, says("7"))
		},
		"pawl: run r, preparing turn 1: preparing turn 1 panicked: oops": func(t *testing.T) error {
			return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) {
				a.Instructions = func(context.Context, *pawl.RunContext) (string, error) { panic("oops") }
			})
		},
		"pawl: run r, model call of turn 1, attempt 1: the model did not answer in time: context deadline exceeded": func(t *testing.T) error {
			return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) { a.Settings = &pawl.ModelSettings{Timeout: time.Second} }, hanging(make(chan struct{})))
		},
		"pawl: run r, model call of turn 1, attempt 1: the line is dead": func(t *testing.T) error {
			return runs(t, nil, failing(errors.New("pawl: the line is dead")))
		},
		`pawl: Agent.Tools: tool "a b": the name must be 1 to 64 letters, digits, _ or -`: func(t *testing.T) error {
			return runs(t, func(a *pawl.Agent, _ *pawl.RunOptions) { a.Tools = []pawl.Tool{charging("a b", new(effects), nil)} })
		},
		"pawl: input: item 0 is empty": func(t *testing.T) error {
			_, err := new(pawl.Runner).Run(t.Context(), asking5(new(effects)), pawl.Input{{}}, nil)
			return err
		},
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := f(t)
				if err == nil || err.Error() != want {
					t.Errorf("\n got %v\nwant %s", err, want)
				}
				if text := fmt.Sprint(err); strings.Count(text, "pawl: ") != 1 {
					t.Errorf("it says whose it is %d times", strings.Count(text, "pawl: "))
				}
			})
		})
	}
}

// badSession holds something that is no item.
type badSession struct{ session.Session }

func (badSession) Items(context.Context, int) ([]pawl.Item, error) { return []pawl.Item{{}}, nil }
