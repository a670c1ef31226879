package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

type (
	verdict     = pawl.GuardrailVerdict
	toolVerdict = pawl.ToolVerdict
)

// onInput is a guardrail that notes what it was asked about and says v.
func onInput(name string, e *effects, v verdict) pawl.InputGuardrail {
	return pawl.InputGuardrail{Name: name, Check: func(_ context.Context, in *pawl.InputCheck) (verdict, error) {
		e.add("%s of %s: %s", name, in.Agent.Name, strings.ReplaceAll(texts(in.Input), "\n", ", "))
		return v, nil
	}}
}

func blocking(g pawl.InputGuardrail) pawl.InputGuardrail { g.Blocking = true; return g }

// onOutput is a guardrail that notes what it was asked about and trips on a text.
func onOutput(name string, e *effects, trips string) pawl.OutputGuardrail {
	return pawl.OutputGuardrail{Name: name, Check: func(_ context.Context, out *pawl.OutputCheck) (verdict, error) {
		e.add("%s of %s: %s", name, out.Agent.Name, out.Output)
		return verdict{Tripped: out.Output == trips}, nil
	}}
}

// said is what guardrails said, one a line.
func said(list []pawl.GuardrailResult) []string {
	var lines []string
	for _, r := range list {
		line := fmt.Sprintf("%s %s of %s", r.Stage, r.Guardrail, r.Agent)
		if r.Tool != "" {
			line += fmt.Sprintf(", %s %s", r.Tool, r.CallID)
		}
		if r.Tripped {
			line += ", tripped"
		}
		if r.Rejected {
			line += ", rejected"
		}
		if r.Info != "" {
			line += ": " + r.Info
		}
		lines = append(lines, line)
	}
	return lines
}

func wantSaid(t *testing.T, got []pawl.GuardrailResult, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, said(got)); diff != "" {
		t.Errorf("guardrails (-want +got):\n%s", diff)
	}
}

// tripped fails unless a run ended because of a guardrail, and stays so.
func tripped(t *testing.T, r *pawl.Runner, agent *pawl.Agent, res *pawl.Result, err error, want pawl.TripwireError) *pawl.RunState {
	t.Helper()
	var trip *pawl.TripwireError
	if !errors.As(err, &trip) || !cmp.Equal(*trip, want) {
		t.Fatalf("%v\n%s", err, cmp.Diff(&want, trip))
	}
	s := stateOf(t, err)
	if s.Status() != pawl.StatusCancelled || len(s.Interruptions()) > 0 {
		t.Errorf("it is %s, %v", s.Status(), s.Interruptions())
	}
	if res != nil && (res.Status != pawl.StatusCancelled || res.FinalOutput != "") { // a stream has only the error
		t.Errorf("the result is %s, %q", res.Status, res.FinalOutput)
	}
	again, err := r.Resume(t.Context(), agent, pawl.RunID(s.Run()), nil)
	if !errors.As(err, &trip) || !cmp.Equal(*trip, want) || !cmp.Equal(again.ToInputList(), s.Result().ToInputList()) {
		t.Errorf("again: %v", err)
	}
	if !cmp.Equal(viaJSON(t, s).Guardrails(), s.Guardrails()) {
		t.Error("the document says something else of the guardrails")
	}
	return s
}

func stored(t *testing.T, s session.Session) []pawl.Item {
	t.Helper()
	list, err := s.Items(context.Background(), -1)
	if err != nil {
		t.Fatal(err)
	}
	paired(t, "session", list)
	return list
}

// The agent's guardrails are asked, then the run's; blocking ones before the first request, and none in the turns that follow (S17.1).
func TestInputGuardrails(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e, paid effects
		m := newScript(func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			e.mu.Lock()
			if !slices.Contains(e.list, "first of support: user: pay") || !slices.Contains(e.list, "fourth of support: user: pay") {
				t.Errorf("a request after %q", e.list)
			}
			e.mu.Unlock()
			return calling(fc("c1", "charge", `{"cents":5}`))(ctx, req, emit)
		}, says("done"))
		agent := agentWith(m, charging("charge", &paid, nil))
		agent.InputGuardrails = []pawl.InputGuardrail{blocking(onInput("first", &e, verdict{Info: json.RawMessage("{\"score\":\"\xff\"}")})), onInput("second", &e, verdict{})}
		sess := session.NewMemory("s")
		if err := sess.Append(t.Context(), []pawl.Item{item.UserText("before")}); err != nil {
			t.Fatal(err)
		}
		opts := &pawl.RunOptions{ID: "r", Session: sess, Context: "mine",
			InputGuardrails: []pawl.InputGuardrail{onInput("third", &e, verdict{Info: "ok"}), blocking(onInput("fourth", &e, verdict{})),
				{Name: "fifth", Check: func(_ context.Context, in *pawl.InputCheck) (verdict, error) {
					return verdict{Info: []any{texts(in.History), in.Run, in.Turn, in.Value}}, nil
				}}}}
		r := &pawl.Runner{}
		res := must(t)(mode.run(r, t.Context(), agent, pawl.UserText("pay"), opts))
		want := []string{"input first of support: {\"score\":\"\uFFFD\"}", `input fourth of support`, `input second of support`, `input third of support: "ok"`,
			`input fifth of support: ["user: before","r",0,"mine"]`}
		wantSaid(t, res.Guardrails(), want...)
		wantSaid(t, viaJSON(t, res.State()).Guardrails(), want...)
		if paid.want(t, "charge 5"); len(e.list) != 4 || res.FinalOutput != "done" {
			t.Errorf("%q, %q", res.FinalOutput, e.list)
		}
		sameViews(t, res, m, sess)
	})
}

// After a trip the model is not asked, and the session has the input (S17.1).
func TestBlockingGuardrailTrips(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		m, s, r := newScript(), session.NewMemory("s"), &pawl.Runner{}
		agent := agentWith(m)
		agent.InputGuardrails = []pawl.InputGuardrail{onInput("beside", &e, verdict{}), blocking(onInput("polite", &e, verdict{Tripped: true, Info: "rude"}))}
		r.Sessions = func(string) session.Session { return s }
		res, err := mode.run(r, t.Context(), agent, pawl.UserText("you!"), &pawl.RunOptions{ID: "r", Session: s})
		state := tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageInput, Guardrail: "polite", Agent: "support", Info: `"rude"`})
		wantSaid(t, state.Guardrails(), `input polite of support, tripped: "rude"`)
		if e.want(t, "polite of support: user: you!"); len(m.calls()) != 0 || texts(stored(t, s)) != "user: you!" {
			t.Errorf("%d requests, session:\n%s", len(m.calls()), texts(stored(t, s)))
		}
	})
}

// later is a guardrail that says v after some time, or why it was stopped.
func later(name string, d time.Duration, v verdict) pawl.InputGuardrail {
	return pawl.InputGuardrail{Name: name, Check: func(ctx context.Context, _ *pawl.InputCheck) (verdict, error) {
		select {
		case <-time.After(d):
			return v, nil
		case <-ctx.Done():
			return verdict{}, ctx.Err()
		}
	}}
}

// after is a step that takes some time.
func after(d time.Duration, s step) step {
	return func(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
		select {
		case <-time.After(d):
			return s(ctx, req, emit)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A guardrail beside the first turn trips while the model writes, while a tool runs, and when the run would have ended: no tool
// that acts has started, what one that reads brought is recorded, and the model is not asked again (S17.2).
func TestParallelGuardrailTrips(t *testing.T) {
	read := fc("c1", "read", `{"cents":1}`)
	for name, tt := range map[string]struct {
		step    step
		session string
		effects []string
	}{
		"while the model writes":    {after(15*time.Second, calling(fc("c1", "charge", `{"cents":5}`))), "user: pay", nil},
		"before a tool would start": {after(5*time.Second, calling(fc("c1", "charge", `{"cents":5}`), read)), "", []string{"read begins", "read ends"}},
		"while a tool reads":        {after(5*time.Second, calling(read)), "user: pay\ncall c1\nc1: read", []string{"read begins", "read ends"}},
		"when the run would end":    {after(5*time.Second, says("here is how")), "user: pay", nil},
	} {
		if tt.session == "" {
			tt.step = after(5*time.Second, calling(fc("c0", "charge", `{"cents":5}`), read))
			tt.session = "user: pay\ncall c0\ncall c1\nc0: The tool was not executed: the run was cancelled.\nc1: read"
		}
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode mode) {
				synctest.Test(t, func(t *testing.T) {
					var e effects
					reading := pawl.NewTool(pawl.Func[charge, string]{Name: "read", Effect: pawl.ReadOnly, Run: func(context.Context, *pawl.Call, charge) (string, error) {
						e.add("read begins")
						time.Sleep(time.Minute)
						e.add("read ends")
						return "read", nil
					}})
					m, s, r := newScript(tt.step), session.NewMemory("s"), &pawl.Runner{}
					r.Sessions = func(string) session.Session { return s }
					agent := agentWith(m, charging("charge", &e, nil), reading)
					agent.InputGuardrails = []pawl.InputGuardrail{later("slow", time.Hour, verdict{}), later("polite", 10*time.Second, verdict{Tripped: true}), later("quick", time.Second, verdict{})}
					res, err := mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r", Session: s})
					state := tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageInput, Guardrail: "polite", Agent: "support"})
					wantSaid(t, state.Guardrails(), "input polite of support, tripped", "input quick of support")
					e.want(t, tt.effects...)
					if got := texts(stored(t, s)); got != tt.session || len(m.calls()) != 1 {
						t.Errorf("%d requests, session:\n%s", len(m.calls()), got)
					}
					if !cmp.Equal([]pawl.Item(state.Result().ToInputList()), stored(t, s)) {
						t.Error("the replay is another")
					}
				})
			})
		})
	}
}

// Tools that act wait for the verdict, and so do the end of the run and the session; turns go on (S17.2).
func TestParallelGuardrailPasses(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		synctest.Test(t, func(t *testing.T) {
			var e effects
			began, sess := time.Now(), session.NewMemory("s")
			stamp := func(change func(*pawl.Func[charge, string])) func(*pawl.Func[charge, string]) {
				return func(f *pawl.Func[charge, string]) {
					change(f)
					f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
						e.add("%s after %s, %d in the session", f.Name, time.Since(began), len(stored(t, sess)))
						return f.Name, nil
					}
				}
			}
			m := newScript(calling(fc("c1", "read", `{"cents":1}`)), calling(fc("c2", "charge", `{"cents":1}`)), says("done"))
			agent := agentWith(m, charging("read", &e, stamp(func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly })), charging("charge", &e, stamp(func(*pawl.Func[charge, string]) {})))
			agent.InputGuardrails = []pawl.InputGuardrail{later("slow", time.Minute, verdict{})}
			res := must(t)(mode.run(new(pawl.Runner), t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{Session: sess}))
			e.want(t, "read after 0s, 1 in the session", "charge after 1m0s, 1 in the session")
			wantSaid(t, res.Guardrails(), "input slow of support")
			sameViews(t, res, m, sess)
		})
	})
}

// Without a verdict the run fails, and all are asked again when it goes on; what the model said meanwhile is not asked for again (S17.3).
func TestGuardrailGivesNoVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		check func() (verdict, error)
		want  string
	}{
		"error":   {func() (verdict, error) { return verdict{}, errors.New("no answer") }, `pawl: run r, guardrails on the input: guardrail "bad" gave no verdict: no answer`},
		"panic":   {func() (verdict, error) { panic("oh") }, `pawl: run r, guardrails on the input: guardrail "bad" gave no verdict: guardrail "bad" panicked: oh`},
		"goexit":  {func() (verdict, error) { runtime.Goexit(); return verdict{}, nil }, `pawl: run r, guardrails on the input: guardrail "bad" gave no verdict: it ended its goroutine`},
		"no JSON": {func() (verdict, error) { return verdict{Tripped: true, Info: func() {}}, nil }, `pawl: run r, guardrails on the input: guardrail "bad" gave no verdict: its info cannot be written as JSON: json: unsupported type: func()`},
	} {
		for _, blocks := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, blocking %v", name, blocks), func(t *testing.T) {
				var e, paid effects
				m := newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done"))
				agent := agentWith(m, charging("charge", &paid, nil))
				n := 0
				good := onInput("good", &e, verdict{})
				bad := pawl.InputGuardrail{Name: "bad", Check: func(context.Context, *pawl.InputCheck) (verdict, error) {
					if n++; n == 1 {
						return tt.check()
					}
					return verdict{Info: n}, nil
				}}
				good.Blocking, bad.Blocking = blocks, blocks
				agent.InputGuardrails = []pawl.InputGuardrail{good, bad}
				_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				if err == nil || err.Error() != tt.want {
					t.Fatalf("\n got %v\nwant %s", err, tt.want)
				}
				ge, ok := errors.AsType[*pawl.GuardrailError](err)
				if !ok || ge.Stage != pawl.StageInput || ge.Guardrail != "bad" {
					t.Errorf("%#v", ge)
				}
				paid.want(t)
				s := viaJSON(t, stateOf(t, err))
				if wantSaid(t, s.Guardrails()); s.Status() != pawl.StatusFailed {
					t.Error(s.Status())
				}
				res := must(t)(new(pawl.Runner).Resume(t.Context(), agent, s, nil))
				wantSaid(t, res.Guardrails(), "input good of support", "input bad of support: 2")
				paid.want(t, "charge 5")
				e.want(t, "good of support: user: pay", "good of support: user: pay")
				if len(m.calls()) != 2 {
					t.Errorf("%d requests", len(m.calls()))
				}
			})
		}
	}
}

// A trip is one also if another guardrail errs, whichever comes first (S17.3).
func TestTripBesideAnError(t *testing.T) {
	for _, first := range []time.Duration{0, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			agent, r := agentWith(newScript()), &pawl.Runner{}
			agent.InputGuardrails = []pawl.InputGuardrail{blocking(later("polite", time.Second, verdict{Tripped: true})),
				{Name: "bad", Blocking: true, Check: func(context.Context, *pawl.InputCheck) (verdict, error) {
					time.Sleep(first)
					return verdict{}, errors.New("no answer")
				}}}
			res, err := r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
			s := tripped(t, r, agent, res, err, pawl.TripwireError{Stage: pawl.StageInput, Guardrail: "polite", Agent: "support"})
			wantSaid(t, s.Guardrails(), "input polite of support, tripped")
		})
	}
}

// Whoever leaves while guardrails are at work can go on: they are asked again (S17.3).
func TestGuardrailsAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paid effects
		entered := make(chan struct{})
		store := journal.NewMemory()
		agent := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`)), says("done")), charging("charge", &paid, nil))
		agent.InputGuardrails = []pawl.InputGuardrail{{Name: "slow", Check: func(ctx context.Context, _ *pawl.InputCheck) (verdict, error) {
			close(entered)
			<-ctx.Done()
			return verdict{Tripped: true}, ctx.Err()
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-entered; synctest.Wait(); cancel() }()
		_, err := (&pawl.Runner{Store: store}).Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		paid.want(t)
		agent.InputGuardrails[0] = later("slow", time.Second, verdict{})
		res := must(t)((&pawl.Runner{Store: store}).Resume(t.Context(), agent, pawl.RunID("r"), nil))
		if paid.want(t, "charge 5"); res.FinalOutput != "done" {
			t.Error(res.FinalOutput)
		}
	})
}

// A guardrail whose run is cancelled is stopped, and what it says then counts for nothing.
func TestCancelWhileGuardrailsAreAsked(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		for _, blocks := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				entered := make(chan struct{})
				agent, r := agentWith(newScript(after(time.Hour, says("done")))), &pawl.Runner{}
				agent.InputGuardrails = []pawl.InputGuardrail{{Name: "slow", Blocking: blocks, Check: func(ctx context.Context, _ *pawl.InputCheck) (verdict, error) {
					close(entered)
					<-ctx.Done()
					return verdict{}, ctx.Err()
				}}}
				go func() {
					<-entered
					synctest.Wait()
					if err := r.Cancel(t.Context(), "r", "ann", "enough"); err != nil {
						t.Error(err)
					}
				}()
				began := time.Now()
				_, err := mode.run(r, t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				if !errors.Is(err, pawl.ErrCancelled) || time.Since(began) > time.Minute {
					t.Errorf("%v after %s", err, time.Since(began))
				}
				wantSaid(t, stateOf(t, err).Guardrails())
			})
		}
	})
}

// Whoever leaves a stream whose model writes beside a guardrail can go on; the first request is made again (S17.2).
func TestLeavingAStreamBesideGuardrails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		m := newScript(says("hello"), says("hello again"))
		agent := agentWith(m)
		agent.InputGuardrails = []pawl.InputGuardrail{later("slow", time.Minute, verdict{})}
		for ev, err := range (&pawl.Runner{Store: store}).Stream(t.Context(), agent, pawl.UserText("hi"), &pawl.RunOptions{ID: "r"}) {
			if d, ok := ev.(*pawl.Delta); ok && d.Text == "hello" {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		res := must(t)((&pawl.Runner{Store: store}).Resume(t.Context(), agent, pawl.RunID("r"), nil))
		wantSaid(t, res.Guardrails(), "input slow of support")
		if res.FinalOutput != "hello again" || len(m.calls()) != 2 {
			t.Errorf("%q after %d requests", res.FinalOutput, len(m.calls()))
		}
	})
}

// A watch shows that a guardrail ended the run, as the stream did (S17.9).
func TestWatchATrip(t *testing.T) {
	var e effects
	agent, r := agentWith(newScript(calling(fc("c1", "charge", `{"cents":5}`), fc("c2", "charge", `{"cents":6}`)), says("secret")),
		charging("charge", &e, guarding([]pawl.ToolInputGuardrail{{Name: "limit", Check: func(_ context.Context, in *pawl.ToolInputCheck) (toolVerdict, error) {
			if in.ID == "c2" {
				return pawl.RejectContent("No.", nil), nil
			}
			return toolVerdict{}, nil
		}}}, nil))), &pawl.Runner{}
	agent.OutputGuardrails = []pawl.OutputGuardrail{onOutput("pii", &e, "secret")}
	show := func(ev pawl.Event) string {
		if c, ok := ev.(*pawl.ItemCreated); ok {
			return string(c.Name) + " " + texts([]pawl.Item{c.Item})
		}
		return ""
	}
	var streamed, watched []string
	var streamErr, watchErr error
	for ev, err := range r.Stream(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}) {
		if streamErr = err; err == nil && show(ev) != "" {
			streamed = append(streamed, show(ev))
		}
	}
	for ev, err := range r.Watch(t.Context(), "r", pawl.Cursor{}) {
		if watchErr = err; err == nil && show(ev.Event) != "" {
			watched = append(watched, show(ev.Event))
		}
	}
	trip, ok := errors.AsType[*pawl.TripwireError](watchErr)
	if !ok || trip.Guardrail != "pii" || watchErr.Error() != streamErr.Error() {
		t.Errorf("%v, %v", streamErr, watchErr)
	}
	want := []string{"tool_called call c1", "tool_called call c2", "tool_output c2: No.", "tool_output c1: receipt 5", "message_output_created assistant: secret"}
	slices.Sort(want)
	slices.Sort(streamed)
	slices.Sort(watched)
	if !cmp.Equal(want, streamed) || !cmp.Equal(want, watched) {
		t.Errorf("streamed %q, watched %q", streamed, watched)
	}
}

// A guardrail that does not heed its context holds nothing up for longer than the grace: neither a cancelled run, nor a trip of
// another one, nor a driver that stops (S17.3).
func TestDeafGuardrail(t *testing.T) {
	deaf := func(t *testing.T, entered chan<- struct{}) func(context.Context, *pawl.InputCheck) (verdict, error) {
		return func(context.Context, *pawl.InputCheck) (verdict, error) {
			close(entered)
			<-t.Context().Done()
			return verdict{}, nil
		}
	}
	for name, tt := range map[string]struct {
		blocks bool
		stop   func(r *pawl.Runner, cancel context.CancelFunc) error
		want   func(error) bool
	}{
		"cancelled": {false, func(r *pawl.Runner, _ context.CancelFunc) error { return r.Cancel(t.Context(), "r", "ann", "") },
			func(err error) bool { return errors.Is(err, pawl.ErrCancelled) }},
		"cancelled, blocking": {true, func(r *pawl.Runner, _ context.CancelFunc) error { return r.Cancel(t.Context(), "r", "ann", "") },
			func(err error) bool { return errors.Is(err, pawl.ErrCancelled) }},
		"stopped": {true, func(_ *pawl.Runner, cancel context.CancelFunc) error { cancel(); return nil },
			func(err error) bool { return errors.Is(err, context.Canceled) }},
		"another trips": {true, nil, as[*pawl.TripwireError]},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				entered, r := make(chan struct{}), &pawl.Runner{Grace: time.Minute}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				agent := agentWith(newScript(after(time.Hour, says("done"))))
				agent.InputGuardrails = []pawl.InputGuardrail{{Name: "deaf", Blocking: tt.blocks, Check: deaf(t, entered)}}
				if tt.stop == nil {
					agent.InputGuardrails = append(agent.InputGuardrails, blocking(later("trips", time.Second, verdict{Tripped: true})))
				} else {
					go func() {
						<-entered
						time.Sleep(time.Second)
						if err := tt.stop(r, cancel); err != nil {
							t.Error(err)
						}
					}()
				}
				began := time.Now()
				_, err := r.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"})
				if took := time.Since(began); !tt.want(err) || took != time.Minute+time.Second {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}
