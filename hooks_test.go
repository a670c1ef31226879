package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/session"
)

// noting is hooks that note what they are told, each with a name in front.
func noting(e *effects, who string) *pawl.Hooks {
	return &pawl.Hooks{
		AgentStart: func(_ context.Context, ev *pawl.AgentStart) {
			e.add("%s agent %s starts in turn %d with %d items", who, ev.Agent.Name, ev.Turn, len(ev.Input))
		},
		AgentEnd: func(_ context.Context, ev *pawl.AgentEnd) {
			e.add("%s agent %s ends in turn %d: %s", who, ev.Agent.Name, ev.Turn, ev.Output)
		},
		ModelStart: func(_ context.Context, ev *pawl.ModelStart) {
			e.add("%s model of %s asked in turn %d: %s %d items", who, ev.Agent.Name, ev.Turn, ev.Instructions, len(ev.Input))
		},
		ModelEnd: func(_ context.Context, ev *pawl.ModelEnd) {
			e.add("%s model of %s answered in turn %d: %d items, %d tokens", who, ev.Agent.Name, ev.Turn, len(ev.Items), ev.Usage.Total)
		},
		Handoff: func(_ context.Context, ev *pawl.HandoffDone) {
			e.add("%s %s hands over to %s in turn %d by %s", who, ev.From.Name, ev.To.Name, ev.Turn, ev.CallID)
		},
		ToolStart: func(_ context.Context, ev *pawl.ToolStart) {
			e.add("%s %s starts %s %s %s, attempt %d", who, ev.Agent.Name, ev.Tool, ev.ID, ev.Arguments, ev.Attempt)
		},
		ToolEnd: func(_ context.Context, ev *pawl.ToolEnd) {
			e.add("%s %s ended %s %s: %s %s", who, ev.Agent.Name, ev.Tool, ev.ID, ev.Output, ev.Error)
		},
	}
}

// ledgerOf returns the bodies of a stored run's facts but what hooks leave in it.
func ledgerOf(t *testing.T, store journal.Driver) (list []string, observed int) {
	t.Helper()
	recs, err := store.Read(t.Context(), "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		switch rec.Kind {
		case journal.KindObserved:
			observed++
		case journal.KindClaimed, journal.KindIntended: // they have times
			list = append(list, string(rec.Kind))
		default:
			list = append(list, string(rec.Kind)+" "+rec.Payload)
		}
	}
	return list, observed
}

// What is told of a run, in which order, and to whom: the hooks of the run first, then those of the agent. The run is the same as
// without hooks [S19.1] [S19.4].
func TestHooks(t *testing.T) {
	want := []string{
		"run agent Triage starts in turn 1 with 1 items",
		"own agent Triage starts in turn 1 with 1 items",
		"run model of Triage asked in turn 1: Route. 1 items",
		"own model of Triage asked in turn 1: Route. 1 items",
		"run model of Triage answered in turn 1: 2 items, 5 tokens",
		"own model of Triage answered in turn 1: 2 items, 5 tokens",
		`run Triage starts pay c1 {"cents":5}, attempt 1`,
		`own Triage starts pay c1 {"cents":5}, attempt 1`,
		"run Triage ended pay c1: receipt 5 ",
		"own Triage ended pay c1: receipt 5 ",
		"run Triage hands over to Billing in turn 1 by h1",
		"his Triage hands over to Billing in turn 1 by h1",
		"run agent Billing starts in turn 2 with 5 items",
		"his agent Billing starts in turn 2 with 5 items",
		"run model of Billing asked in turn 2: Bill. 5 items",
		"his model of Billing asked in turn 2: Bill. 5 items",
		"run model of Billing answered in turn 2: 1 items, 5 tokens",
		"his model of Billing answered in turn 2: 1 items, 5 tokens",
		"run agent Billing ends in turn 2: billed",
		"his agent Billing ends in turn 2: billed",
	}
	eachMode(t, func(t *testing.T, m mode) {
		for _, hooked := range []string{"both", "run", "agents", "none"} {
			for _, sess := range []session.Session{nil, session.NewMemory("s")} {
				d := newDesk([]step{calling(fc("c1", "pay", `{"cents":5}`), ho("h1", "billing"))}, []step{says("billed")})
				d.triage.Tools = []pawl.Tool{charging("pay", new(effects), nil)}
				opts := &pawl.RunOptions{ID: "r", Session: sess}
				keep := func(string) bool { return hooked != "none" }
				if hooked == "run" || hooked == "both" {
					opts.Hooks = noting(&d.e, "run")
				} else {
					keep = func(ev string) bool { return hooked != "none" && !strings.HasPrefix(ev, "run ") }
				}
				if hooked == "agents" || hooked == "both" {
					d.triage.Hooks, d.billing.Hooks = noting(&d.e, "own"), noting(&d.e, "his")
				} else if hooked == "run" {
					keep = func(ev string) bool { return strings.HasPrefix(ev, "run ") }
				}
				store := journal.NewMemory()
				res := must(t)(m.run(&pawl.Runner{Store: store}, t.Context(), d.triage, pawl.UserText("hi"), opts))
				var told []string
				for _, ev := range want {
					if keep(ev) {
						told = append(told, ev)
					}
				}
				d.e.want(t, told...)
				sameViews(t, res, d.answered, sess)
				ledger, observed := ledgerOf(t, store)
				if (observed > 0) != (hooked != "none") {
					t.Errorf("%s: %d facts of the hooks", hooked, observed)
				}
				d = newDesk([]step{calling(fc("c1", "pay", `{"cents":5}`), ho("h1", "billing"))}, []step{says("billed")})
				d.triage.Tools = []pawl.Tool{charging("pay", new(effects), nil)}
				if sess != nil {
					opts.Session = session.NewMemory("s")
				}
				opts.Hooks, store = nil, journal.NewMemory()
				must(t)(m.run(&pawl.Runner{Store: store}, t.Context(), d.triage, pawl.UserText("hi"), opts))
				plain, _ := ledgerOf(t, store)
				if diff := cmp.Diff(plain, ledger); diff != "" {
					t.Errorf("%s: the ledger (-without +with hooks):\n%s", hooked, diff)
				}
			}
		}
	})
}

// durableHooks are hooks that fail the test if what they are told of is not in a ledger.
func durableHooks(t *testing.T, store journal.Driver, e *effects) *pawl.Hooks {
	has := func(what string, is func(journal.Body) bool) {
		t.Helper()
		e.add("%s", what)
		recs, err := store.Read(context.Background(), "r", 0)
		if err != nil {
			t.Error(err)
		}
		if !slices.ContainsFunc(recs, func(rec journal.Record) bool {
			f, err := journal.Decode(rec)
			return err == nil && is(f.Body)
		}) {
			t.Errorf("%s is told, and not recorded", what)
		}
	}
	return &pawl.Hooks{
		AgentStart: func(_ context.Context, ev *pawl.AgentStart) {
			has("agent start", func(b journal.Body) bool { p, ok := b.(*journal.Prepared); return ok && p.N == ev.Turn })
		},
		AgentEnd: func(context.Context, *pawl.AgentEnd) {
			has("agent end", func(b journal.Body) bool { _, ok := b.(*journal.Finished); return ok })
		},
		ModelStart: func(_ context.Context, ev *pawl.ModelStart) {
			has(fmt.Sprintf("model start %d", ev.Turn), func(b journal.Body) bool { p, ok := b.(*journal.Prepared); return ok && p.N == ev.Turn })
		},
		ModelEnd: func(_ context.Context, ev *pawl.ModelEnd) {
			has(fmt.Sprintf("model end %d", ev.Turn), func(b journal.Body) bool { r, ok := b.(*journal.Responded); return ok && r.ID.N == ev.Turn })
		},
		ToolStart: func(_ context.Context, ev *pawl.ToolStart) {
			has("tool start "+ev.ID, func(b journal.Body) bool {
				i, ok := b.(*journal.Intended)
				return ok && i.ID.Kind == journal.EffectTool
			})
		},
		ToolEnd: func(_ context.Context, ev *pawl.ToolEnd) {
			has("tool end "+ev.ID, func(b journal.Body) bool { s, ok := b.(*journal.Settled); return ok && s.Output == ev.Item })
		},
	}
}

// No hook is told of what is not recorded, whichever append fails; nor twice, if the driver could go on [S19.2].
func TestHooksFollowTheLedger(t *testing.T) {
	want := []string{"agent start", "model start 1", "model end 1", "tool start c1", "tool end c1", "model start 2", "model end 2", "agent end"}
	for name, replies := range map[string][]journaltest.Reply{"for good": slices.Repeat([]journaltest.Reply{journaltest.Absent}, 20), "once": {journaltest.Absent}, "answer lost": {journaltest.Stored}} {
		t.Run(name, func(t *testing.T) {
			appends := 0
			for n := 1; ; n++ {
				plan := journaltest.Plan{}
				for i, reply := range replies {
					plan[n+i] = reply
				}
				memory := journal.NewMemory()
				store := journaltest.Faulty(memory, plan)
				var e effects
				agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), charging("pay", new(effects), nil))
				_, err := (&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", Hooks: durableHooks(t, memory, &e)})
				if name == "for good" && err != nil {
					if len(e.list) >= len(want) || !slices.Equal(e.list, want[:len(e.list)]) {
						t.Errorf("append %d: told %q", n, e.list)
					}
				} else {
					e.want(t, want...)
				}
				if store.Appends() < n {
					break
				}
				appends++
			}
			if appends < 4 {
				t.Errorf("%d appends", appends)
			}
		})
	}
}

// toldAt remembers how much the hooks had been told before each append.
type toldAt struct {
	cuts
	e    *effects
	told []int
}

func (s *toldAt) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	s.told = append(s.told, len(s.e.list))
	return s.cuts.Append(ctx, run, epoch, after, recs, with...)
}

// Wherever the process dies, nothing is left untold: what was told before the death and what is told after it make the whole
// story, and only the last part is told twice [S19.3].
func TestHooksAfterACrash(t *testing.T) {
	agent := func() *pawl.Agent {
		d := newDesk([]step{calling(ho("h1", "billing"))}, []step{says("billed")})
		d.triage.Model, d.billing.Model = byLength(d.asked), byLength(newScript(says("no"), says("billed")))
		return d.triage
	}
	only := map[string]func(*pawl.Hooks) *pawl.Hooks{
		"all":     func(h *pawl.Hooks) *pawl.Hooks { return h },
		"agents":  func(h *pawl.Hooks) *pawl.Hooks { return &pawl.Hooks{AgentStart: h.AgentStart, AgentEnd: h.AgentEnd} },
		"answers": func(h *pawl.Hooks) *pawl.Hooks { return &pawl.Hooks{ModelEnd: h.ModelEnd, Handoff: h.Handoff} },
	}
	for name, pick := range only {
		t.Run(name, func(t *testing.T) {
			var e effects
			store := &toldAt{cuts: cuts{Driver: journal.NewMemory()}, e: &e}
			must(t)((&pawl.Runner{Store: store}).Run(t.Context(), agent(), pawl.UserText("hi"), &pawl.RunOptions{ID: "r", Hooks: pick(noting(&e, "run"))}))
			whole := slices.Clone(e.list)
			for i, n := range store.ends {
				memory := journal.NewMemory()
				if err := memory.Import("r", store.recs[:n]); err != nil {
					t.Fatal(err)
				}
				before := whole[:store.told[i]] // the process died before it told of the append
				var after effects
				r := &pawl.Runner{Store: memory}
				resume := func() {
					must(t)(r.Resume(t.Context(), agent(), pawl.RunID("r"), &pawl.RunOptions{Hooks: pick(noting(&after, "run"))}))
				}
				resume()
				from := len(whole) - len(after.list)
				earlier := 0 // told before the append before this one, which recorded that
				if i > 0 {
					earlier = store.told[i-1]
				}
				if from > len(before) || from < earlier || !slices.Equal(whole[from:], after.list) {
					t.Errorf("append %d: before %q, after %q", i, before, after.list)
				}
				told := len(after.list)
				resume() // and nothing once more
				if len(after.list) != told {
					t.Errorf("append %d: told again: %q", i, after.list[told:])
				}
			}
			if len(whole) < 2 {
				t.Errorf("told %q", whole)
			}
		})
	}
}

// A pause is no crash: each thing is told once, and a resume begins no agent and no request anew.
func TestHooksOverAPause(t *testing.T) {
	for _, via := range []string{"JSON", "store"} {
		t.Run(via, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				var e effects
				agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), charging("pay", new(effects), asking))
				opts := func() *pawl.RunOptions { return &pawl.RunOptions{Hooks: noting(&e, "run")} }
				r := &pawl.Runner{Store: journal.NewMemory()}
				res := must(t)(m.run(r, t.Context(), agent, pawl.UserText("go"), opts()))
				first := []string{"run agent support starts in turn 1 with 1 items", "run model of support asked in turn 1:  1 items",
					"run model of support answered in turn 1: 1 items, 5 tokens"}
				e.want(t, first...)
				state := res.State()
				if via == "JSON" {
					state, r = viaJSON(t, state), new(pawl.Runner)
				}
				if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
					t.Fatal(err)
				}
				must(t)(m.resume(r, t.Context(), agent, state, opts()))
				e.want(t, append(first, `run support starts pay c1 {"cents":5}, attempt 1`, "run support ended pay c1: receipt 5 ",
					"run model of support asked in turn 2:  3 items", "run model of support answered in turn 2: 1 items, 5 tokens", "run agent support ends in turn 2: done")...)
			})
		})
	}
}

// What a drive without hooks recorded nobody is told of.
func TestHooksOfSomeDrives(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second bool
		want          []string
	}{
		"the first": {true, false, []string{"run agent support starts in turn 1 with 1 items", "run model of support asked in turn 1:  1 items", "run model of support answered in turn 1: 1 items, 5 tokens"}},
		"the last":  {false, true, []string{`run support starts pay c1 {"cents":5}, attempt 1`, "run support ended pay c1: receipt 5 ", "run model of support asked in turn 2:  3 items", "run model of support answered in turn 2: 1 items, 5 tokens", "run agent support ends in turn 2: done"}},
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			opts := func(hooks bool) *pawl.RunOptions {
				if hooks {
					return &pawl.RunOptions{Hooks: noting(&e, "run")}
				}
				return nil
			}
			agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), charging("pay", new(effects), asking))
			var r pawl.Runner
			state := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), opts(tt.first))).State()
			if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
				t.Fatal(err)
			}
			must(t)(r.Resume(t.Context(), agent, state, opts(tt.second)))
			must(t)(r.Resume(t.Context(), agent, state, opts(true))) // it has ended
			e.want(t, tt.want...)
		})
	}
}

// What becomes of calls: an error, a call that nobody let run, one that is answered without its body, and one that asks.
func TestHooksOfTools(t *testing.T) {
	var e effects
	asks := 0
	agent := agentWith(newScript(calling(fc("c1", "fails", `{"cents":1}`), fc("c2", "denied", `{"cents":2}`), fc("c3", "fails", `{}`), fc("c4", "asks", `{"cents":4}`)), says("done")),
		charging("fails", nil, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) { return "", errors.New("no line") }
		}),
		charging("denied", nil, func(f *pawl.Func[charge, string]) {
			f.Approve = func(context.Context, *pawl.Call, charge) (pawl.Gate, error) { return pawl.Deny, nil }
		}),
		charging("asks", nil, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
				if asks++; asks == 1 {
					return "", pawl.AskAgain("sure?")
				}
				return "sure", nil
			}
		}))
	h := noting(&e, "run")
	opts := &pawl.RunOptions{MaxParallelTools: 1, Hooks: &pawl.Hooks{ToolStart: h.ToolStart, ToolEnd: h.ToolEnd}}
	var r pawl.Runner
	state := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), opts)).State()
	want := []string{`run support starts fails c1 {"cents":1}, attempt 1`, "run support ended fails c1: The tool failed: no line no line", `run support starts asks c4 {"cents":4}, attempt 1`}
	e.want(t, want...)
	if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
		t.Fatal(err)
	}
	must(t)(r.Resume(t.Context(), agent, state, &pawl.RunOptions{Hooks: opts.Hooks}))
	e.want(t, append(want, `run support starts asks c4 {"cents":4}, attempt 2`, "run support ended asks c4: sure ")...)
}

// The hooks of a nested run are those of the caller's options and of its agent.
func TestHooksInNestedRuns(t *testing.T) {
	var e effects
	agent := withBilling(newScript(calling(ask("a", "go")), says("done")), newScript(calling(fc("x", "pay", `{"cents":5}`)), says("billed")), nil, charging("pay", new(effects), nil))
	var nested []bool
	h := noting(&e, "run")
	end := h.AgentEnd
	h.AgentEnd = func(ctx context.Context, ev *pawl.AgentEnd) {
		nested = append(nested, ev.Invocation != nil)
		end(ctx, ev)
	}
	must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Hooks: h}))
	e.want(t, "run agent manager starts in turn 1 with 1 items", "run model of manager asked in turn 1:  1 items", "run model of manager answered in turn 1: 1 items, 5 tokens",
		`run manager starts billing_desk a {"input":"go"}, attempt 1`,
		"run agent Billing desk starts in turn 1 with 1 items", "run model of Billing desk asked in turn 1: You charge. 1 items", "run model of Billing desk answered in turn 1: 1 items, 5 tokens",
		`run Billing desk starts pay x {"cents":5}, attempt 1`, "run Billing desk ended pay x: receipt 5 ",
		"run model of Billing desk asked in turn 2: You charge. 3 items", "run model of Billing desk answered in turn 2: 1 items, 5 tokens", "run agent Billing desk ends in turn 2: billed",
		"run manager ended billing_desk a: billed ",
		"run model of manager asked in turn 2:  3 items", "run model of manager answered in turn 2: 1 items, 5 tokens", "run agent manager ends in turn 2: done")
	if !slices.Equal(nested, []bool{true, false}) {
		t.Errorf("nested: %v", nested)
	}

	// Only the agent that is called has hooks; its input cannot be made.
	e.list = nil
	billing := &pawl.Agent{Name: "billing desk", Model: newScript(says("billed")), Hooks: noting(&e, "own")}
	fails := pawl.NewAgentTool(pawl.AgentFunc[struct{}]{Agent: billing, Name: "fails", Input: func(context.Context, *pawl.Call, struct{}) (pawl.Input, error) { return nil, errors.New("no input") }})
	agent = agentWith(newScript(calling(ask("a", "go"), fc("b", "fails", `{}`)), says("done")), pawl.AgentTool(billing, nil), fails)
	must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
	e.want(t, "own agent billing desk starts in turn 1 with 1 items", "own model of billing desk asked in turn 1:  1 items",
		"own model of billing desk answered in turn 1: 1 items, 5 tokens", "own agent billing desk ends in turn 1: billed")
}

// A hook that panics is reported, and nothing else comes of it [S19.5].
func TestHookPanics(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var e effects
		boom := &pawl.Hooks{
			AgentStart: func(context.Context, *pawl.AgentStart) { panic("oops") }, AgentEnd: func(context.Context, *pawl.AgentEnd) { panic("oops") },
			ModelStart: func(context.Context, *pawl.ModelStart) { panic("oops") }, ModelEnd: func(context.Context, *pawl.ModelEnd) { panic("oops") },
			ToolStart: func(context.Context, *pawl.ToolStart) { panic("oops") }, ToolEnd: func(context.Context, *pawl.ToolEnd) { panic("oops") },
		}
		agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done")), charging("pay", &e, nil))
		var own effects
		agent.Hooks = noting(&own, "own")
		var reported []string
		r := &pawl.Runner{OnHookError: func(err error) {
			if p, ok := errors.AsType[*pawl.PanicError](err); !ok || p.Stack == "" {
				t.Errorf("reported: %v", err)
			}
			reported = append(reported, err.Error())
		}}
		res := must(t)(m.run(r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", Hooks: boom}))
		e.want(t, "pay 5")
		if res.FinalOutput != "done" || len(own.list) != 8 {
			t.Errorf("%q, told %q", res.FinalOutput, own.list)
		}
		var want []string
		for _, name := range []string{"AgentStart", "ModelStart", "ModelEnd", "ToolStart", "ToolEnd", "ModelStart", "ModelEnd", "AgentEnd"} {
			want = append(want, "pawl: run r: hook "+name+" panicked: oops")
		}
		if diff := cmp.Diff(want, reported); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
	})
}

// The end of the driving is told of too, in a context that has not ended.
func TestHooksWhenTheDrivingStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	agent := agentWith(newScript(calling(fc("c1", "pay", `{"cents":5}`))), charging("pay", nil, func(f *pawl.Func[charge, string]) {
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
			cancel()
			return "paid", nil
		}
	}))
	_, err := new(pawl.Runner).Run(ctx, agent, pawl.UserText("go"), &pawl.RunOptions{Hooks: &pawl.Hooks{ToolEnd: func(ctx context.Context, ev *pawl.ToolEnd) {
		told = append(told, fmt.Sprintf("%s %v", ev.Output, ctx.Err()))
	}}})
	if !errors.Is(err, context.Canceled) || !slices.Equal(told, []string{"paid <nil>"}) {
		t.Errorf("%v, told %q", err, told)
	}
}

// An agent that hands over to itself starts again, and one whose output comes from an error handler ends.
func TestHooksOfAgents(t *testing.T) {
	var e effects
	h := noting(&e, "run")
	agent := agentWith(newScript(calling(ho("h1", "support")), refusing("no")))
	agent.Handoffs = []pawl.Handoff{pawl.HandoffTo(agent)}
	must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{Hooks: &pawl.Hooks{AgentStart: h.AgentStart, AgentEnd: h.AgentEnd}, ErrorHandlers: one(answering(new(effects), "sorry"))}))
	e.want(t, "run agent support starts in turn 1 with 1 items", "run agent support starts in turn 2 with 3 items", "run agent support ends in turn 2: sorry")
}

// Without OnHookError, or if that panics, the log says it.
func TestHookPanicsAreLogged(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	for want, report := range map[string]func(error){
		`msg="pawl: run r: hook AgentEnd panicked: oops"`:         nil,
		`msg="pawl: run r: Runner.OnHookError panicked: no line"`: func(error) { panic("no line") },
	} {
		var log strings.Builder
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		r := pawl.Runner{OnHookError: report}
		opts := &pawl.RunOptions{ID: "r", Hooks: &pawl.Hooks{AgentEnd: func(context.Context, *pawl.AgentEnd) { panic("oops") }}}
		must(t)(r.Run(t.Context(), agentWith(newScript(says("done"))), pawl.UserText("go"), opts))
		if !strings.Contains(log.String(), "level=ERROR "+want) {
			t.Errorf("logged %q, want %s", log.String(), want)
		}
	}
}
