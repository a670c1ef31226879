package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// shelf is a source whose tools may change.
type shelf struct {
	label string

	mu    sync.Mutex
	tools []pawl.Tool
	err   error
	lists int
	turns []int
}

func (s *shelf) Label() string { return s.label }

func (s *shelf) Tools(_ context.Context, rc *pawl.RunContext) ([]pawl.Tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	s.turns = append(s.turns, rc.Turn)
	return s.tools, s.err
}

func (s *shelf) put(err error, tools ...pawl.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools, s.err = tools, err
}

// sourced is an agent with the sources and no tools of its own.
func sourced(m *script, sources ...pawl.ToolSource) *pawl.Agent {
	agent := agentWith(m)
	agent.ToolSources = sources
	return agent
}

// refunding is the tool of a source that asks before it acts.
func refunding(e *effects) pawl.Tool { return charging("refund", e, asking) }

// toApprove is a run "r" that waits for the approval of a call of a source's tool.
func toApprove(t *testing.T, store journal.Driver, agent *pawl.Agent) *pawl.RunState {
	t.Helper()
	res := must(t)((&pawl.Runner{Store: store}).Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if len(res.Interruptions) != 1 {
		t.Fatalf("%+v", res)
	}
	s := res.State()
	if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
		t.Fatal(err)
	}
	return s
}

// A source is asked once a turn. What it has then is offered, and run [S14.7].
func TestToolSourceIsAskedInEveryTurn(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		desk := &shelf{label: "desk", tools: []pawl.Tool{charging("look", &e, nil)}}
		m := newScript(calling(fc("c1", "look", `{"cents":1}`)), calling(fc("c2", "buy", `{"cents":2}`)), says("done"))
		agent := sourced(m, desk)
		agent.Tools = namedTools("own")
		swap := charging("look", &e, func(f *pawl.Func[charge, string]) {
			f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
				desk.put(nil, charging("buy", &e, nil))
				return "looked", nil
			}
		})
		desk.put(nil, swap)
		res := must(t)(mode.run(&pawl.Runner{}, t.Context(), agent, pawl.UserText("go"), nil))
		var got [][]string
		for _, c := range m.calls() {
			got = append(got, c.Tools)
		}
		if diff := cmp.Diff([][]string{{"look", "own"}, {"buy", "own"}, {"buy", "own"}}, got); diff != "" {
			t.Errorf("offered (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{1, 2, 3}, desk.turns); diff != "" {
			t.Errorf("asked in the turns (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"c1: looked", "c2: receipt 2"}, outputs(res.NewItems())); diff != "" {
			t.Error(diff)
		}
	})
}

// A tool that says the same is the same offer, whatever value it is: the manifest is recorded
// once [S14.7].
func TestToolSourceThatStaysTheSame(t *testing.T) {
	for name, change := range map[string]func(*pawl.Func[charge, string]){
		"nothing": func(*pawl.Func[charge, string]) {},
		"body": func(f *pawl.Func[charge, string]) {
			f.OnError = func(context.Context, *pawl.Call, error) string { return "" }
		},
		"description": func(f *pawl.Func[charge, string]) { f.Description = "Now it says more." },
		"class":       func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly },
	} {
		t.Run(name, func(t *testing.T) {
			var e effects
			desk := &shelf{label: "desk"}
			desk.put(nil, charging("look", &e, func(f *pawl.Func[charge, string]) {
				f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
					desk.put(nil, charging("look", &e, change))
					return "looked", nil
				}
			}))
			m := pawltest.NewScriptedModel(pawltest.ScriptedItems(fc("c1", "look", `{"cents":1}`)), pawltest.ScriptedItems(fc("c2", "look", `{"cents":2}`)), pawltest.ScriptedText("done"))
			agent := sourced(nil, desk)
			agent.Model = m
			r := &pawl.Runner{Store: journal.NewMemory()}
			must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
			var manifests []string
			for _, rec := range must2(t)(r.Store.Read(t.Context(), "r", 0)) {
				fact, err := journal.Decode(rec)
				if err != nil {
					t.Fatal(err)
				}
				if p, ok := fact.Body.(*journal.Prepared); ok && p.Manifest != nil {
					manifests = append(manifests, fmt.Sprintf("%d %q %s", p.N, p.Manifest.Tools[0].Class, p.Manifest.Tools[0].Identity[:17]))
				}
			}
			want := []string{`1 "" source/desk/look/`}
			if name == "class" {
				want = append(want, `2 "readonly" source/desk/look/`)
			}
			if diff := cmp.Diff(want, manifests); diff != "" {
				t.Error(diff)
			}
			e.want(t, "look 2")
			if got := m.Calls()[1].Tools[0].Description; (got != "") != (name == "description") {
				t.Errorf("description %q", got)
			}
		})
	}
}

func must2(t *testing.T) func([]journal.Record, error) []journal.Record {
	return func(recs []journal.Record, err error) []journal.Record {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return recs
	}
}

// A call that waits is bound by its name again, in another process too, to the tool that the
// source has then [S14.8].
func TestToolSourceOnResume(t *testing.T) {
	steps := func() []step {
		return []step{calling(fc("c1", "refund", `{"cents":5}`)), says("done")}
	}
	for name, pass := range map[string]func(t *testing.T) (journal.Driver, func(*pawl.RunState) (*pawl.Runner, pawl.Resumable)){
		"json": func(t *testing.T) (journal.Driver, func(*pawl.RunState) (*pawl.Runner, pawl.Resumable)) {
			return nil, func(s *pawl.RunState) (*pawl.Runner, pawl.Resumable) { return &pawl.Runner{}, viaJSON(t, s) }
		},
		"sqlite": func(t *testing.T) (journal.Driver, func(*pawl.RunState) (*pawl.Runner, pawl.Resumable)) {
			path := filepath.Join(t.TempDir(), "runs.db")
			return openSQLite(t, path), func(s *pawl.RunState) (*pawl.Runner, pawl.Resumable) {
				r := &pawl.Runner{Store: openSQLite(t, path)}
				if err := r.Decide(t.Context(), "r", pawl.Approve("1.0#0", "ann")); err != nil {
					t.Fatal(err)
				}
				return r, pawl.RunID("r")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode mode) {
				var e effects
				store, pass := pass(t)
				r, from := pass(toApprove(t, store, sourced(newScript(steps()...), &shelf{label: "desk", tools: []pawl.Tool{refunding(&e)}})))
				again := &shelf{label: "desk", tools: []pawl.Tool{charging("more", &e, nil), refunding(&e)}}
				m := newScript(steps()[1])
				res := must(t)(mode.resume(r, t.Context(), sourced(m, again), from, nil))
				if res.FinalOutput != "done" {
					t.Errorf("output %q", res.FinalOutput)
				}
				e.want(t, "refund 5")
				if diff := cmp.Diff([]int{1, 2}, again.turns); diff != "" {
					t.Errorf("asked in the turns (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"more", "refund"}, m.calls()[0].Tools); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// What became of the tool while its call waited [S14.8].
func TestToolSourceThatChangedMeanwhile(t *testing.T) {
	down := errors.New("the server is away")
	other := func(e *effects) pawl.Tool {
		type amount struct {
			Euros int `json:"euros"`
		}
		return pawl.NewTool(pawl.Func[amount, string]{Name: "refund", Run: func(context.Context, *pawl.Call, amount) (string, error) {
			e.add("other")
			return "", nil
		}})
	}
	for name, tt := range map[string]struct {
		now  func(e *effects, agent *pawl.Agent)
		want error
		text string
	}{
		"gone":      {func(_ *effects, a *pawl.Agent) { a.ToolSources = []pawl.ToolSource{&shelf{label: "desk"}} }, pawl.ErrToolChanged, "is gone"},
		"no source": {func(_ *effects, a *pawl.Agent) { a.ToolSources = nil }, pawl.ErrToolChanged, "is gone"},
		"other schema": {func(e *effects, a *pawl.Agent) {
			a.ToolSources = []pawl.ToolSource{&shelf{label: "desk", tools: []pawl.Tool{other(e)}}}
		}, pawl.ErrToolChanged, "takes other arguments now"},
		"other source": {func(e *effects, a *pawl.Agent) {
			a.ToolSources = []pawl.ToolSource{&shelf{label: "shop", tools: []pawl.Tool{refunding(e)}}}
		}, pawl.ErrToolChanged, "takes other arguments now"},
		"the agent's":   {func(e *effects, a *pawl.Agent) { a.ToolSources, a.Tools = nil, []pawl.Tool{refunding(e)} }, pawl.ErrToolChanged, "takes other arguments now"},
		"no answer":     {func(_ *effects, a *pawl.Agent) { a.ToolSources = []pawl.ToolSource{&shelf{label: "desk", err: down}} }, down, `the tools of source "desk": the server is away`},
		"the same name": {func(e *effects, a *pawl.Agent) { a.Tools = []pawl.Tool{refunding(e)} }, nil, `are named "refund"`},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode mode) {
				var e effects
				desk := &shelf{label: "desk", tools: []pawl.Tool{refunding(&e)}}
				s := toApprove(t, nil, sourced(newScript(calling(fc("c1", "refund", `{"cents":5}`))), desk))
				m := newScript(says("done"))
				agent := sourced(m, desk)
				tt.now(&e, agent)
				_, err := mode.resume(&pawl.Runner{}, t.Context(), agent, viaJSON(t, s), nil)
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
					t.Fatalf("error %v", err)
				}
				if name == "the same name" && !as[*pawl.ConfigError](err) || name == "no answer" && !as[*pawl.ToolSourceError](err) {
					t.Errorf("error %v", err)
				}
				e.want(t)
				res := must(t)(mode.resume(&pawl.Runner{}, t.Context(), sourced(m, desk), viaJSON(t, stateOf(t, err)), nil))
				e.want(t, "refund 5")
				if res.FinalOutput != "done" {
					t.Errorf("output %q", res.FinalOutput)
				}
			})
		})
	}
}

// A source that cannot be asked fails the turn before anything happens in it; the run can be
// resumed [S14.7].
func TestToolSourceThatFails(t *testing.T) {
	var e effects
	bang := errors.New("bang")
	agentTool := pawl.AgentTool(&pawl.Agent{Name: "other", Model: newScript()}, nil)
	tx := charging("pay", &e, func(f *pawl.Func[charge, string]) { f.Effect = pawl.Transactional })
	for name, tt := range map[string]struct {
		put  func(s *shelf)
		want string
	}{
		"error":    {func(s *shelf) { s.put(bang) }, `pawl: run r, preparing turn 2: the tools of source "desk": bang`},
		"no tool":  {func(s *shelf) { s.put(nil, pawl.Tool{}) }, `pawl: run r, preparing turn 2: the tools of source "desk": tool "": has no body; make it with NewTool`},
		"an agent": {func(s *shelf) { s.put(nil, agentTool) }, `pawl: run r, preparing turn 2: the tools of source "desk": tool "other" runs an agent; such a tool stands in Agent.Tools`},
		"tx":       {func(s *shelf) { s.put(nil, tx) }, `pawl: run r, preparing turn 2: the tools of source "desk": tool "pay" works in the store's transaction; such a tool stands in Agent.Tools`},
	} {
		t.Run(name, func(t *testing.T) {
			desk := &shelf{label: "desk"}
			desk.put(nil, bodyReturning(func(context.Context, *pawl.Call) (string, error) {
				tt.put(desk)
				return "looked", nil
			}))
			m := newScript(calling(fc("c1", desk.tools[0].Name(), `{"cents":1}`)), says("done"))
			r := &pawl.Runner{Store: journal.NewMemory()}
			_, err := r.Run(t.Context(), sourced(m, desk), pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
			if err == nil || err.Error() != tt.want || !as[*pawl.ToolSourceError](err) {
				t.Fatalf("error %v\nwant  %s", err, tt.want)
			}
			desk.put(nil, charging("look", &e, nil))
			res := must(t)(r.Resume(t.Context(), sourced(m, desk), pawl.RunID("r"), nil))
			if got := m.calls(); res.FinalOutput != "done" || len(got) != 2 || got[1].Tools[0] != "look" {
				t.Errorf("result %+v", res)
			}
		})
	}
}

type panicking struct{ label func() string }

func (p panicking) Label() string { return p.label() }

func (panicking) Tools(context.Context, *pawl.RunContext) ([]pawl.Tool, error) { panic("bang") }

func TestToolSourceThatPanics(t *testing.T) {
	m := newScript()
	_, err := new(pawl.Runner).Run(t.Context(), sourced(m, panicking{func() string { return "desk" }}), pawl.UserText("go"), nil)
	if !as[*pawl.ToolSourceError](err) || !as[*pawl.PanicError](err) {
		t.Errorf("error %v", err)
	}
	refusedBefore(t, sourced(m, panicking{func() string { panic("bang") }}), m, nil, "Agent.ToolSources[0]")
}

// Mistakes that can be seen before a source is asked are found before anything happens.
func TestToolSourceMistakes(t *testing.T) {
	s := newScript()
	refusedBefore(t, sourced(s, nil), s, nil, "Agent.ToolSources[0]")
	refusedBefore(t, sourced(s, &shelf{}), s, nil, "Agent.ToolSources[0]")
	refusedBefore(t, sourced(s, &shelf{label: "\xff"}), s, nil, "Agent.ToolSources[0]")
	refusedBefore(t, sourced(s, &shelf{label: "a"}, &shelf{label: "a"}), s, nil, "Agent.ToolSources[1]")
}

// Two tools of one name are a mistake, whoever has them, and nothing is sent [S14.7].
func TestToolSourceNames(t *testing.T) {
	var e effects
	look := charging("look", &e, nil)
	handoff := pawl.NewHandoff(pawl.HandoffFunc[struct{}]{Agent: &pawl.Agent{Name: "other", Model: newScript()}, Name: "look"})
	for want, change := range map[string]func(*pawl.Agent){
		`Agent.ToolSources: of agent "support": a tool of source "a" and one of "b" are named "look"`: func(a *pawl.Agent) {
			a.ToolSources = append(a.ToolSources, &shelf{label: "b", tools: []pawl.Tool{look}})
		},
		`Agent.ToolSources: of agent "support": a tool of source "a", and a tool or handoff of the agent's own are named "look"`: func(a *pawl.Agent) {
			a.Tools = []pawl.Tool{look}
		},
		`Agent.ToolSources: of agent "support": a tool of source "a", and a tool or handoff of the agent's own are named`: func(a *pawl.Agent) {
			a.Handoffs = []pawl.Handoff{handoff}
		},
		`Agent.ToolSources: of agent "support": a tool of source "a" and one of "a" are named "look"`: func(a *pawl.Agent) {
			a.ToolSources = []pawl.ToolSource{&shelf{label: "a", tools: []pawl.Tool{look, look}}}
		},
	} {
		m := newScript()
		agent := sourced(m, &shelf{label: "a", tools: []pawl.Tool{look}})
		change(agent)
		_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)
		if !as[*pawl.ConfigError](err) || !strings.Contains(err.Error(), want) || len(m.calls()) > 0 {
			t.Errorf("error %v\nwant  %s", err, want)
		}
		if _, err := agent.AllTools(t.Context(), &pawl.RunContext{Agent: agent}); !as[*pawl.ConfigError](err) {
			t.Errorf("AllTools: %v", err)
		}
	}
}

// A decision that covers later calls is about the tool of one source [S14.7].
func TestToolSourceOfADecision(t *testing.T) {
	var e effects
	a, b := &shelf{label: "a", tools: []pawl.Tool{refunding(&e)}}, &shelf{label: "b"}
	m := newScript(calling(fc("c1", "refund", `{"cents":1}`)), calling(fc("c2", "refund", `{"cents":2}`)), calling(fc("c3", "refund", `{"cents":3}`)), says("done"))
	agent := sourced(m, a, b)
	r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
	always := pawl.Approve(res.Interruptions[0].ID, "ann")
	always.Always = true
	if err := r.Decide(t.Context(), "r", always); err != nil {
		t.Fatal(err)
	}
	a.put(nil, charging("refund", &e, func(f *pawl.Func[charge, string]) {
		asking(f)
		f.Run = func(context.Context, *pawl.Call, charge) (string, error) {
			a.put(nil)
			b.put(nil, refunding(&e))
			return "the other has it", nil
		}
	}))
	res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
	if len(res.Interruptions) != 1 || res.Interruptions[0].CallID != "c2" {
		t.Errorf("interruptions %+v", res.Interruptions)
	}
}

// A request that is made again in another process offers what its turn recorded, of what the
// source has now [S14.2].
func TestToolSourceOfARepeatedRequest(t *testing.T) {
	var e effects
	look, buy := charging("look", &e, nil), charging("buy", &e, nil)
	r := &pawl.Runner{Store: journal.NewMemory()}
	_, err := r.Run(t.Context(), sourced(newScript(failing(errors.New("down"))), &shelf{label: "desk", tools: []pawl.Tool{look}}), pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
	if err == nil {
		t.Fatal("no error")
	}
	m := newScript(calling(fc("c1", "look", `{"cents":1}`)), says("done"))
	must(t)((&pawl.Runner{Store: r.Store}).Resume(t.Context(), sourced(m, &shelf{label: "desk", tools: []pawl.Tool{buy, look}}), pawl.RunID("r"), nil))
	got := [][]string{m.calls()[0].Tools, m.calls()[1].Tools}
	if diff := cmp.Diff([][]string{{"look"}, {"buy", "look"}}, got); diff != "" {
		t.Error(diff)
	}
	e.want(t, "look 1")
}

// A response that is read in another process is read with what the source has there [S14.8].
func TestToolSourceOfAResponse(t *testing.T) {
	var e effects
	bang := errors.New("bang")
	times := 0
	once := charging("look", &e, func(f *pawl.Func[charge, string]) {
		f.Enabled = func(context.Context, *pawl.RunContext) (bool, error) {
			if times++; times == 2 {
				return false, bang
			}
			return true, nil
		}
	})
	r := &pawl.Runner{Store: journal.NewMemory()}
	_, err := r.Run(t.Context(), sourced(newScript(calling(fc("c1", "look", `{"cents":1}`))), &shelf{label: "desk", tools: []pawl.Tool{once}}), pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
	if !errors.Is(err, bang) {
		t.Fatal(err)
	}
	for _, away := range []error{errors.New("away"), nil} {
		desk := &shelf{label: "desk", tools: []pawl.Tool{charging("look", &e, nil)}, err: away}
		_, err := (&pawl.Runner{Store: r.Store}).Resume(t.Context(), sourced(newScript(says("done")), desk), pawl.RunID("r"), nil)
		if !errors.Is(err, away) {
			t.Errorf("error %v", err)
		}
	}
	e.want(t, "look 1")
}

// A source has 30 seconds. One that is stopped has said nothing: the run goes on as if it had not
// been asked [S14.7].
func TestToolSourceThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := waiter{&shelf{label: "desk"}}
		start := time.Now()
		_, err := new(pawl.Runner).Run(t.Context(), sourced(newScript(), slow), pawl.UserText("go"), nil)
		if !as[*pawl.ToolSourceError](err) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 30*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := &pawl.Runner{Store: journal.NewMemory()}
		_, err = r.Run(ctx, sourced(newScript(), slow), pawl.UserText("go"), &pawl.RunOptions{ID: "r"})
		if as[*pawl.ToolSourceError](err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		for _, rec := range must2(t)(r.Store.Read(t.Context(), "r", 0)) {
			if rec.Kind == "failed" {
				t.Error("a failure is recorded")
			}
		}
		if res := must(t)(r.Resume(t.Context(), sourced(newScript(says("done")), slow.shelf), pawl.RunID("r"), nil)); res.FinalOutput != "done" {
			t.Errorf("result %+v", res)
		}
	})
}

// waiter is a source that waits until it is stopped.
type waiter struct{ *shelf }

func (waiter) Tools(ctx context.Context, _ *pawl.RunContext) ([]pawl.Tool, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Agents that calls run, and agents that take over, have sources of their own [S14.8].
func TestToolSourceOfOtherAgents(t *testing.T) {
	eachMode(t, func(t *testing.T, mode mode) {
		var e effects
		billing := newScript(calling(fc("x", "refund", `{"cents":5}`)), says("billed"))
		manager := newScript(calling(ask("a", "refund")), calling(ho("h1", "closing")))
		last := newScript(calling(fc("y", "close", `{"cents":6}`)), says("closed"))
		team := func() *pawl.Agent {
			b := sourced(billing, &shelf{label: "desk", tools: []pawl.Tool{refunding(&e)}})
			b.Name = "Billing desk"
			closing := sourced(last, &shelf{label: "door", tools: []pawl.Tool{charging("close", &e, asking)}})
			closing.Name = "closing"
			return &pawl.Agent{Name: "manager", Model: manager, Tools: []pawl.Tool{pawl.AgentTool(b, nil)}, Handoffs: []pawl.Handoff{pawl.HandoffTo(closing)},
				ToolSources: []pawl.ToolSource{&shelf{label: "desk", tools: []pawl.Tool{charging("look", &e, nil)}}}}
		}
		s := toApprove(t, nil, team())
		res := must(t)(mode.resume(&pawl.Runner{}, t.Context(), team(), viaJSON(t, s), nil))
		e.want(t, "refund 5")
		if len(res.Interruptions) != 1 || res.Interruptions[0].Tool != "close" {
			t.Fatalf("interruptions %+v", res.Interruptions)
		}
		s = res.State()
		if err := s.Approve(res.Interruptions[0], "ann"); err != nil {
			t.Fatal(err)
		}
		res = must(t)(mode.resume(&pawl.Runner{}, t.Context(), team(), viaJSON(t, s), nil))
		e.want(t, "refund 5", "close 6")
		if res.FinalOutput != "closed" {
			t.Errorf("output %q", res.FinalOutput)
		}
	})
}

// On an engine every step may be another process's [S14.8].
func TestToolSourceOnAnEngine(t *testing.T) {
	var e effects
	guarded := charging("refund", &e, func(f *pawl.Func[charge, string]) {
		asking(f)
		f.InputGuardrails = []pawl.ToolInputGuardrail{{Name: "limit", Check: func(context.Context, *pawl.ToolInputCheck) (pawl.ToolVerdict, error) {
			e.add("checked")
			return pawl.PassTool(nil), nil
		}}}
	})
	desk := &shelf{label: "desk", tools: []pawl.Tool{guarded}}
	m := newScript(calling(fc("c1", "refund", `{"cents":5}`)), says("done"))
	agent := sourced(m, desk)
	r, engine := onEngine(t, agent, pawl.StepperOptions{})
	res := must(t)(r.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: "r"}))
	if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	other, err := pawl.NewStepper(&pawl.Runner{Store: r.Store, Agents: r.Agents}, pawl.StepperOptions{Engine: engine.Name()})
	if err != nil {
		t.Fatal(err)
	}
	engine.use(other)
	if res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)); res.FinalOutput != "done" {
		t.Errorf("result %+v", res)
	}
	e.want(t, "checked", "refund 5")
}

// Any number of runs may have an agent and its sources at a time.
func TestOneToolSourceInManyRuns(t *testing.T) {
	var e effects
	desk := &shelf{label: "desk", tools: []pawl.Tool{charging("charge", &e, nil)}}
	agent := &pawl.Agent{Name: "Bank", ToolSources: []pawl.ToolSource{desk}, Model: echoing(func(in []pawl.Item) []pawl.Item {
		if len(in) == 1 {
			return []pawl.Item{fc("n1", "charge", fmt.Sprintf(`{"cents":%s}`, wanted(in)))}
		}
		return []pawl.Item{item.MessageItem("", "charged "+wanted(in))}
	})}
	var r pawl.Runner
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			res, err := r.Run(t.Context(), agent, pawl.UserText(fmt.Sprint(n)), nil)
			if err != nil || res.FinalOutput != fmt.Sprintf("charged %d", n) {
				t.Errorf("run %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if len(e.list) != 64 || desk.lists != 128 {
		t.Errorf("%d effects, %d lists", len(e.list), desk.lists)
	}
}
