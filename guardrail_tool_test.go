package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// onCall is a guardrail that notes what it was asked about and says v.
func onCall(name string, e *effects, v toolVerdict) pawl.ToolInputGuardrail {
	return pawl.ToolInputGuardrail{Name: name, Check: func(_ context.Context, in *pawl.ToolInputCheck) (toolVerdict, error) {
		e.add("%s: %s %s%s", name, in.Tool, in.Arguments, strings.Repeat(" approved", len(in.ApprovedBy)/3))
		if in.Key == "" || in.Attempt != 0 || in.Agent == nil {
			e.add("key %q, attempt %d", in.Key, in.Attempt)
		}
		return v, nil
	}}
}

// onResult is a guardrail that notes what it was asked about and says v.
func onResult(name string, e *effects, v toolVerdict) pawl.ToolOutputGuardrail {
	return pawl.ToolOutputGuardrail{Name: name, Check: func(_ context.Context, out *pawl.ToolOutputCheck) (toolVerdict, error) {
		e.add("%s: %s, %s", name, out.Arguments, out.Output)
		return v, nil
	}}
}

func guarding(in []pawl.ToolInputGuardrail, out []pawl.ToolOutputGuardrail) func(*pawl.Func[charge, string]) {
	return func(f *pawl.Func[charge, string]) { f.InputGuardrails, f.OutputGuardrails = in, out }
}

// A call is run, answered with a message, or ends the run; other calls of the response go on (S17.4).
func TestToolInputGuardrails(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e, paid effects
		sess := session.NewMemory("s")
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":5000}`), fc("c3", "free", `{"cents":1}`)), says("done"))
		limit := pawl.ToolInputGuardrail{Name: "limit", Check: func(_ context.Context, in *pawl.ToolInputCheck) (toolVerdict, error) {
			if strings.Contains(in.Arguments, "5000") {
				return pawl.RejectContent("Too much.", map[string]int{"max": 100}), nil
			}
			return pawl.PassTool(nil), nil
		}}
		agent := agentWith(m, charging("charge", &paid, guarding([]pawl.ToolInputGuardrail{limit, onCall("note", &e, pawl.PassTool("seen"))}, nil)), charging("free", &paid, nil))
		res := must(t)(mode.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Session: sess, MaxParallelTools: 1}))
		if got := texts(res.NewItems()); got != "call c1\ncall c2\ncall c3\nc1: receipt 5\nc2: Too much.\nc3: receipt 1\nassistant: done" {
			t.Error(got)
		}
		sameViews(t, res, m, sess)
		if len(e.list) != 2 || len(paid.list) != 2 {
			t.Errorf("asked %q, did %q", e.list, paid.list)
		}
		got := said(res.Guardrails())
		if len(got) != 4 || !strings.Contains(strings.Join(got, "\n"), `tool_input limit of support, charge c2, rejected: {"max":100}`+"\n"+`tool_input note of support, charge c2: "seen"`) {
			t.Errorf("%q", got)
		}
	})
}

// Of several messages the model reads that of the first guardrail, whichever answers first; a trip goes before all of them (S17.3).
func TestSeveralToolGuardrails(t *testing.T) {
	reject := func(name string, d time.Duration, v toolVerdict) pawl.ToolInputGuardrail {
		return pawl.ToolInputGuardrail{Name: name, Check: func(context.Context, *pawl.ToolInputCheck) (toolVerdict, error) { time.Sleep(d); return v, nil }}
	}
	synctest.Test(t, func(t *testing.T) {
		var e effects
		guards := []pawl.ToolInputGuardrail{reject("pass", 0, toolVerdict{}), reject("one", 2, pawl.RejectContent("First.", nil)), reject("two", 1, pawl.RejectContent("Second.", nil))}
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(m, charging("charge", &e, guarding(guards, nil))), pawl.UserText("pay"), nil))
		wantSaid(t, res.Guardrails(), "tool_input pass of support, charge c1", "tool_input one of support, charge c1, rejected", "tool_input two of support, charge c1, rejected")
		if got := outputs(res.NewItems()); len(got) != 1 || got[0] != "c1: First." {
			t.Errorf("%q", got)
		}
		m, r := newScript(calling(fc("c1", "charge", `{"cents":5}`))), &pawl.Runner{}
		agent := agentWith(m, charging("charge", &e, guarding(append(guards, reject("three", 3, pawl.TripTool(nil))), nil)))
		res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), nil)
		tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageToolInput, Guardrail: "three", Agent: "support", Tool: "charge", CallID: "c1"})
		e.want(t)
	})
}

// A trip before a call: nothing of it runs, what other calls did is recorded (S17.4).
func TestToolInputGuardrailTrips(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		synctest.Test(t, func(t *testing.T) {
			var paid effects
			sess, r := session.NewMemory("s"), &pawl.Runner{}
			r.Sessions = func(string) session.Session { return sess }
			slow := pawl.ToolInputGuardrail{Name: "slow", Check: func(context.Context, *pawl.ToolInputCheck) (toolVerdict, error) {
				time.Sleep(time.Second)
				return pawl.TripTool([]int{1}), nil
			}}
			m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "free", `{"cents":1}`)))
			agent := agentWith(m, charging("charge", &paid, guarding([]pawl.ToolInputGuardrail{slow}, nil)), charging("free", &paid, nil))
			res, err := mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: sess})
			s := tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageToolInput, Guardrail: "slow", Agent: "support", Tool: "charge", CallID: "c1", Info: "[1]"})
			wantSaid(t, s.Guardrails(), "tool_input slow of support, charge c1, tripped: [1]")
			paid.want(t, "free 1")
			if got := texts(stored(t, sess)); got != "user: pay\ncall c1\ncall c2\nc1: The tool was not executed: the run was cancelled.\nc2: receipt 1" {
				t.Error(got)
			}
		})
	})
}

// An approved call is checked with the arguments it runs with, once, however often its body runs (S17.4).
func TestToolInputGuardrailAfterAnApproval(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":6}`)), says("done"))
		tries := 0
		tool := func(v toolVerdict) pawl.Tool {
			return charging("charge", &e, func(f *pawl.Func[charge, string]) {
				f.Effect, f.Approve, f.InputGuardrails = pawl.ReadOnly, pawl.AlwaysAsk[charge], []pawl.ToolInputGuardrail{onCall("limit", &e, v)}
				run := f.Run
				f.Run = func(ctx context.Context, c *pawl.Call, in charge) (string, error) {
					if tries++; tries == 1 {
						return "", context.DeadlineExceeded
					}
					return run(ctx, c, in)
				}
			})
		}
		agent := agentWith(m, tool(pawl.PassTool(nil)))
		res := must(t)(mode.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("pay"), nil))
		e.want(t)
		s := viaJSON(t, res.State())
		if err := s.Decide(pawl.Decision{Interruption: res.Interruptions[0].ID, Verdict: journal.Approve, By: "ann", Arguments: `{"cents":3}`}); err != nil {
			t.Fatal(err)
		}
		res = must(t)(mode.resume(new(pawl.Runner), t.Context(), agent, s, nil))
		e.want(t, `limit: charge {"cents":3} approved`, "charge 3")
		s = viaJSON(t, res.State())
		if err := s.Decide(pawl.Approve(res.Interruptions[0].ID, "bob")); err != nil {
			t.Fatal(err)
		}
		agent.Tools[0] = tool(pawl.RejectContent("No.", nil))
		res = must(t)(mode.resume(new(pawl.Runner), t.Context(), agent, s, nil))
		e.want(t, `limit: charge {"cents":3} approved`, "charge 3", `limit: charge {"cents":6} approved`)
		if got := outputs(res.ToInputList()); strings.Join(got, "|") != "c1: The reviewer changed the arguments to {\"cents\":3}.\nreceipt 3|c2: No." {
			t.Errorf("%q", got)
		}
		wantSaid(t, res.Guardrails(), "tool_input limit of support, charge c1", "tool_input limit of support, charge c2, rejected")
	})
}

// With GuardBeforeApproval nobody is asked to approve what is rejected; what is approved is checked again (S17.5).
func TestGuardBeforeApproval(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":5000}`), fc("c3", "charge", `{"cents":1}`)), says("done"))
		guard := pawl.ToolInputGuardrail{Name: "limit", Check: func(_ context.Context, in *pawl.ToolInputCheck) (toolVerdict, error) {
			e.add("limit %s by %q", in.Arguments, in.ApprovedBy)
			if strings.Contains(in.Arguments, "5000") {
				return pawl.RejectContent("Too much.", nil), nil
			}
			return pawl.PassTool(nil), nil
		}}
		agent := agentWith(m, charging("charge", &e, func(f *pawl.Func[charge, string]) {
			f.InputGuardrails = []pawl.ToolInputGuardrail{guard}
			f.Approve = func(_ context.Context, _ *pawl.Call, in charge) (pawl.Gate, error) {
				if in.Cents == 1 {
					return pawl.Deny, nil
				}
				return pawl.Ask, nil
			}
		}))
		opts := &pawl.RunOptions{ID: "r", GuardBeforeApproval: true}
		r := &pawl.Runner{Store: journal.NewMemory()}
		res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), opts))
		e.want(t, `limit {"cents":5} by ""`, `limit {"cents":5000} by ""`)
		if len(res.Interruptions) != 1 || res.Interruptions[0].CallID != "c1" {
			t.Fatalf("%+v", res.Interruptions)
		}
		if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
			t.Fatal(err)
		}
		res = must(t)(mode.resume(r, t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{GuardBeforeApproval: true}))
		e.want(t, `limit {"cents":5} by ""`, `limit {"cents":5000} by ""`, `limit {"cents":5} by "ann"`, "charge 5")
		if got := outputs(res.ToInputList()); strings.Join(got, "|") != "c1: receipt 5|c2: Too much.|c3: Tool execution was not approved." {
			t.Errorf("%q", got)
		}
		wantSaid(t, res.Guardrails(), "tool_input limit of support, charge c1", "tool_input limit of support, charge c2, rejected", "tool_input limit of support, charge c1")
	})
}

// A guardrail that trips, or gives no verdict, before anybody is asked (S17.5).
func TestGuardBeforeApprovalEnds(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var paid effects
		answers := []func() (toolVerdict, error){
			func() (toolVerdict, error) { return toolVerdict{}, errors.New("no answer") },
			func() (toolVerdict, error) { return pawl.TripTool("no"), nil },
		}
		n := 0
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`))), charging("charge", &paid, func(f *pawl.Func[charge, string]) {
			asking(f)
			f.InputGuardrails = []pawl.ToolInputGuardrail{{Name: "limit", Check: func(context.Context, *pawl.ToolInputCheck) (toolVerdict, error) { n++; return answers[n-1]() }}}
		}))
		opts := &pawl.RunOptions{GuardBeforeApproval: true}
		_, err := mode.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("pay"), opts)
		if ge, ok := errors.AsType[*pawl.GuardrailError](err); !ok || ge.Stage != pawl.StageToolInput {
			t.Fatal(err)
		}
		r := &pawl.Runner{}
		res, err := mode.resume(r, t.Context(), agent, viaJSON(t, stateOf(t, err)), opts)
		tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageToolInput, Guardrail: "limit", Agent: "support", Tool: "charge", CallID: "c1", Info: `"no"`})
		paid.want(t)
	})
}

// A guardrail on a call that gives no verdict fails the run; what other calls did stays (S17.3).
func TestToolInputGuardrailGivesNoVerdict(t *testing.T) {
	var paid effects
	n := 0
	guard := pawl.ToolInputGuardrail{Name: "limit", Check: func(context.Context, *pawl.ToolInputCheck) (toolVerdict, error) {
		if n++; n == 1 {
			runtime.Goexit()
		}
		return toolVerdict{}, nil
	}}
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "free", `{"cents":1}`)), says("done"))
	agent := agentWith(m, charging("charge", &paid, guarding([]pawl.ToolInputGuardrail{guard}, nil)), charging("free", &paid, nil))
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
	if want := `pawl: run r, guardrails on call 1.0: guardrail "limit" gave no verdict: it ended its goroutine`; err == nil || err.Error() != want {
		t.Fatalf("\n got %v\nwant %s", err, want)
	}
	paid.want(t, "free 1")
	must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), nil))
	paid.want(t, "free 1", "charge 5")
}

// A verdict on a call that was settled meanwhile counts for nothing (M19.7).
func TestLateVerdictOnACall(t *testing.T) {
	for name, v := range map[string]toolVerdict{"passes": {}, "rejects": pawl.RejectContent("no", nil), "trips": pawl.TripTool(nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e effects
				entered := make(chan struct{})
				r := &pawl.Runner{}
				deaf := pawl.ToolInputGuardrail{Name: "deaf", Check: func(context.Context, *pawl.ToolInputCheck) (toolVerdict, error) {
					close(entered)
					time.Sleep(time.Minute)
					return v, nil
				}}
				slow := charging("slow", &e, func(f *pawl.Func[charge, string]) {
					f.Run = func(ctx context.Context, _ *pawl.Call, _ charge) (string, error) {
						time.Sleep(2 * time.Minute) // the drive outlives the guardrail
						return "slow", nil
					}
				})
				agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "slow", `{"cents":1}`))), charging("charge", &e, guarding([]pawl.ToolInputGuardrail{deaf}, nil)), slow)
				go func() {
					<-entered
					synctest.Wait() // the other tool runs
					if err := r.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
						t.Error(err)
					}
				}()
				res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				if !errors.Is(err, pawl.ErrCancelled) {
					t.Fatal(err)
				}
				e.want(t)
				wantSaid(t, res.Guardrails())
				if got := outputs(res.ToInputList()); strings.Join(got, "|") != "c1: The tool was not executed: the run was cancelled.|c2: slow" {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

// Only what the guardrails let pass of an output is recorded, sent, kept and shown, and of the text of an error (S17.6).
func TestToolOutputGuardrails(t *testing.T) {
	const secret = "SSN 123"
	fails := func(f *pawl.Func[charge, string]) {
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", errors.New(secret) }
	}
	brings := func(f *pawl.Func[charge, string]) {
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return secret, nil }
	}
	for name, tt := range map[string]struct {
		run       func(*pawl.Func[charge, string])
		guard     func(toolVerdict) (toolVerdict, error)
		want      string
		said      string
		trips, ok bool
	}{
		"passes":             {run: brings, guard: func(toolVerdict) (toolVerdict, error) { return pawl.PassTool(1), nil }, want: secret, said: ": 1", ok: true},
		"rejects":            {run: brings, guard: func(toolVerdict) (toolVerdict, error) { return pawl.RejectContent("A number.", nil), nil }, want: "A number.", said: ", rejected"},
		"trips":              {run: brings, guard: func(toolVerdict) (toolVerdict, error) { return pawl.TripTool("ssn"), nil }, want: "The output of this tool call was withheld by a guardrail.", said: `, tripped: "ssn"`, trips: true},
		"errs":               {run: brings, guard: func(toolVerdict) (toolVerdict, error) { return toolVerdict{}, errors.New("down") }, want: "The output of this tool call was withheld: a guardrail on it failed."},
		"panics":             {run: brings, guard: func(toolVerdict) (toolVerdict, error) { panic("oh") }, want: "The output of this tool call was withheld: a guardrail on it failed."},
		"rejects an error":   {run: fails, guard: func(toolVerdict) (toolVerdict, error) { return pawl.RejectContent("It failed.", nil), nil }, want: "It failed.", said: ", rejected"},
		"trips on an error":  {run: fails, guard: func(toolVerdict) (toolVerdict, error) { return pawl.TripTool(nil), nil }, want: "The output of this tool call was withheld by a guardrail.", said: ", tripped", trips: true},
		"lets an error pass": {run: fails, guard: func(v toolVerdict) (toolVerdict, error) { return v, nil }, want: "The tool failed: " + secret, said: "", ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			run := func(stream bool) {
				sess, r := session.NewMemory("s"), &pawl.Runner{}
				r.Sessions = func(string) session.Session { return sess }
				agent := agentWith(newScript(calling(fc("c1", "look", `{"cents":5}`)), says("done")), charging("look", &e, func(f *pawl.Func[charge, string]) {
					tt.run(f)
					f.OutputGuardrails = []pawl.ToolOutputGuardrail{{Name: "pii", Check: func(_ context.Context, out *pawl.ToolOutputCheck) (toolVerdict, error) {
						if !strings.Contains(out.Output, secret) || !strings.Contains(out.Item.Raw(), secret) || out.ID != "c1" || out.Attempt != 1 {
							t.Errorf("asked about %+v", out)
						}
						return tt.guard(toolVerdict{})
					}}}
				}))
				opts := &pawl.RunOptions{ID: "r", Session: sess}
				var shown []string
				var err error
				if stream {
					for ev, serr := range r.Stream(t.Context(), agent, pawl.UserText("look"), opts) {
						if err = serr; err == nil {
							shown = append(shown, fmt.Sprintf("%+v", ev))
							if c, ok := ev.(*pawl.ItemCreated); ok {
								shown = append(shown, c.Item.Raw())
							}
						}
					}
				} else {
					_, err = r.Run(t.Context(), agent, pawl.UserText("look"), opts)
				}
				if tt.trips {
					want := pawl.TripwireError{Stage: pawl.StageToolOutput, Guardrail: "pii", Agent: "support", Tool: "look", CallID: "c1", Info: strings.TrimPrefix(strings.TrimPrefix(tt.said, ", tripped"), ": ")}
					tripped(t, r, agent, nil, err, want)
				} else if err != nil {
					t.Fatal(err)
				}
				s := replays(t, r, "r")
				if tt.said != "" || tt.ok {
					wantSaid(t, s.Guardrails(), "tool_output pii of support, look c1"+tt.said)
				} else {
					wantSaid(t, s.Guardrails())
				}
				if got := outputs(stored(t, sess)); len(got) != 1 || got[0] != "c1: "+tt.want {
					t.Errorf("%q", got)
				}
				everything := string(marshal(t, s)) + fmt.Sprint(shown, err) + texts(s.Result().ToInputList())
				if strings.Contains(everything, secret) != tt.ok {
					t.Errorf("what was withheld is in:\n%s", everything)
				}
			}
			run(false)
			run(true)
		})
	}
}

// The guardrails of a transactional tool are asked in its transaction: what it wrote commits with what they let pass, and not at
// all if they give no verdict (S17.6).
func TestTransactionalToolOutputGuardrails(t *testing.T) {
	for name, tt := range map[string]struct {
		guard pawl.ToolOutputGuardrail
		rows  int
		want  string
		trips bool
	}{
		"passes":  {onResult("pii", new(effects), pawl.PassTool(nil)), 1, "c1: paid", false},
		"rejects": {onResult("pii", new(effects), pawl.RejectContent("It is done.", nil)), 1, "c1: It is done.", false},
		"trips":   {onResult("pii", new(effects), pawl.TripTool(nil)), 1, "c1: The output of this tool call was withheld by a guardrail.", true},
		"errs": {pawl.ToolOutputGuardrail{Name: "pii", Check: func(context.Context, *pawl.ToolOutputCheck) (toolVerdict, error) {
			return toolVerdict{}, errors.New("down")
		}}, 0, "c1: The output of this tool call was withheld: a guardrail on it failed. Nothing was changed.", false},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			store, rows := payments(t)
			agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), paying(&e, nil, func(f *sqlstore.TxFunc[charge, string]) {
				f.OutputGuardrails = []pawl.ToolOutputGuardrail{tt.guard}
			}))
			r := &pawl.Runner{Store: store}
			res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			if tt.trips {
				tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageToolOutput, Guardrail: "pii", Agent: "support", Tool: "pay", CallID: "c1"})
			} else if err != nil {
				t.Fatal(err)
			}
			if got := outputs(res.ToInputList()); len(got) != 1 || got[0] != tt.want || rows() != tt.rows {
				t.Errorf("%q, %d rows", got, rows())
			}
			e.want(t, "pay 5 attempt 1")
		})
	}
}

// What the far side says of a call in doubt is checked, too (S17.6).
func TestRecoveredOutputIsGuarded(t *testing.T) {
	var e effects
	n := 0
	agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &e, func(f *pawl.Func[charge, string]) {
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) { n++; return "", context.DeadlineExceeded }
		f.Recover = answers(pawl.Happened, "SSN 123")
		f.OutputGuardrails = []pawl.ToolOutputGuardrail{onResult("pii", &e, pawl.RejectContent("A number.", nil))}
	}))
	res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), nil))
	e.want(t, `pii: {"cents":5}, SSN 123`)
	if got := outputs(res.ToInputList()); n != 1 || len(got) != 1 || got[0] != "c1: A number." || strings.Contains(string(marshal(t, res.State())), "SSN") {
		t.Errorf("%q after %d bodies", got, n)
	}
}

// Who drives a run on has the guardrails that are asked: those that are gone by now let pass (S17.4).
func TestGuardrailsThatAreGone(t *testing.T) {
	var e effects
	down := func() (verdict, error) { return verdict{}, errors.New("down") }
	m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
	guards := []pawl.ToolInputGuardrail{{Name: "call", Check: func(context.Context, *pawl.ToolInputCheck) (toolVerdict, error) {
		_, err := down()
		return toolVerdict{}, err
	}}}
	agent := agentWith(m, charging("charge", &e, guarding(guards, nil)))
	agent.InputGuardrails = []pawl.InputGuardrail{{Name: "input", Blocking: true, Check: func(context.Context, *pawl.InputCheck) (verdict, error) { return down() }}}
	agent.OutputGuardrails = []pawl.OutputGuardrail{{Name: "output", Check: func(context.Context, *pawl.OutputCheck) (verdict, error) { return down() }}}
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), nil)
	var failed []string
	for ; err != nil; _, err = new(pawl.Runner).Resume(t.Context(), agent, stateOf(t, err), nil) {
		ge, ok := errors.AsType[*pawl.GuardrailError](err)
		if !ok {
			t.Fatal(err)
		}
		switch failed = append(failed, ge.Guardrail); ge.Guardrail {
		case "input":
			agent.InputGuardrails = nil
		case "call":
			agent.Tools[0] = charging("charge", &e, nil)
		case "output":
			agent.OutputGuardrails = nil
		}
	}
	if got := strings.Join(failed, " "); got != "input call output" || len(m.calls()) != 2 {
		t.Errorf("%s, %d requests", got, len(m.calls()))
	}
	e.want(t, "charge 5")
}
