package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// refusing is a step that refuses to answer.
func refusing(text string) step {
	return items(item.FromTrusted(`{"type":"message","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"` + text + `"}]}`))
}

// answering is an error handler that answers, and notes what it was asked.
func answering(e *effects, output any) pawl.ErrorHandler {
	return func(_ context.Context, h *pawl.HandledError) (*pawl.Handled, error) {
		e.add("%s turn %d, %d items, %d new, %d requests: %v", h.Agent.Name, h.Turn, len(h.History), len(h.NewItems), h.Usage.Requests, h.Err)
		return &pawl.Handled{Output: output}, nil
	}
}

// one is ErrorHandlers with the same handler for every error.
func one(h pawl.ErrorHandler) pawl.ErrorHandlers {
	return pawl.ErrorHandlers{MaxTurns: h, Refusal: h, InvalidOutput: h}
}

// Each error becomes the final output: it is stored, shown and part of the conversation, and nobody is asked again [M20.4] [M20.5] [S18.1].
func TestErrorHandlers(t *testing.T) {
	type receipt struct {
		Cents int `json:"cents"`
	}
	pay := calling(fc("c1", "pay", `{"cents":5}`))
	invalid := func(steps ...step) []step { return append([]step{pay}, steps...) }
	for name, tt := range map[string]struct {
		steps    []step
		output   pawl.OutputType
		maxTurns int
		with     any
		want     string // the final output
		asked    string // what the handler was asked
	}{
		"max turns":             {steps: []step{pay}, maxTurns: 1, with: "so far", want: "so far", asked: "support turn 1, 3 items, 2 new, 1 requests: pawl: no final output after 1 turns; resume the run with a larger MaxTurns"},
		"refusal":               {steps: []step{pay, refusing("no")}, with: "sorry", want: "sorry", asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the model refused: no"},
		"empty text":            {steps: []step{pay, refusing("no")}, with: "", want: "", asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the model refused: no"},
		"invalid output":        {steps: invalid(says("7")), output: pawl.OutputOf[receipt](), with: receipt{3}, want: `{"cents":3}`, asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the final output does not fit its type: expected an object, got 7"},
		"as JSON":               {steps: invalid(says("7")), output: pawl.OutputOf[receipt](), with: `{"cents":4}`, want: `{"cents":4}`, asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the final output does not fit its type: expected an object, got 7"},
		"a wrapped value":       {steps: invalid(says("7")), output: pawl.OutputOf[int](), with: 4, want: `{"response":4}`, asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the final output does not fit its type: expected an object, got 7"},
		"a wrapped text":        {steps: invalid(says("7")), output: pawl.OutputOf[string](), with: "x", want: `{"response":"x"}`, asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the final output does not fit its type: expected an object, got 7"},
		"no structured output":  {steps: invalid(says(" ")), output: pawl.OutputOf[receipt](), with: receipt{3}, want: `{"cents":3}`, asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the final output does not fit its type: there is none"},
		"not even a message":    {steps: invalid(items(item.ReasoningItem("", "hm"))), output: pawl.OutputOf[receipt](), with: receipt{3}, want: `{"cents":3}`, asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the final output does not fit its type: there is none"},
		"refusal, for a struct": {steps: invalid(refusing("no")), output: pawl.OutputOf[receipt](), with: &receipt{0}, want: `{"cents":0}`, asked: "support turn 2, 4 items, 3 new, 2 requests: pawl: the model refused: no"},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				for _, omit := range []bool{false, true} {
					var e effects
					s := newScript(tt.steps...)
					agent := agentWith(s, charging("pay", new(effects), nil))
					agent.Output = tt.output
					sess := session.NewMemory("s")
					handler := answering(&e, tt.with)
					opts := &pawl.RunOptions{ID: "r", Session: sess, MaxTurns: tt.maxTurns, ErrorHandlers: one(func(ctx context.Context, h *pawl.HandledError) (*pawl.Handled, error) {
						out, err := handler(ctx, h)
						out.OmitFromHistory = omit
						return out, err
					})}
					var r pawl.Runner
					res := must(t)(m.run(&r, t.Context(), agent, pawl.UserText("go"), opts))
					if res.FinalOutput != tt.want || res.Status != pawl.StatusFinished || len(s.calls()) != len(tt.steps) {
						t.Errorf("%s %q after %d calls", res.Status, res.FinalOutput, len(s.calls()))
					}
					e.want(t, tt.asked)
					list := res.ToInputList()
					if last := list[len(list)-1]; omit == (last == item.MessageItem("", tt.want)) {
						t.Errorf("omit=%v, and the last item is %s", omit, last)
					}
					sameViews(t, res, s, sess)
					if again := replays(t, &r, "r").Result().FinalOutput; again != tt.want {
						t.Errorf("replayed: %q", again)
					}
				}
			})
		})
	}
}

// What a stream shows of it, and a watch.
func TestErrorHandlerEvents(t *testing.T) {
	r := &pawl.Runner{Store: journal.NewMemory()}
	agent := agentWith(newScript(refusing("no")))
	got, err := trail(r.Stream(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", ErrorHandlers: one(answering(new(effects), "sorry"))}))
	want := []string{"started resumed=false", "agent support", "message_output_created", "message_output_created", "done sorry"}
	if diff := cmp.Diff(want, durable(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	watched, _, err := seen((&pawl.Runner{Store: r.Store, Agents: []*pawl.Agent{agent}}).Watch(t.Context(), "r", pawl.Cursor{}), nil)
	if diff := cmp.Diff(want, watched); diff != "" || err != nil {
		t.Errorf("watched: %v (-want +got):\n%s", err, diff)
	}
}

// A handler that declines, fails, panics or gives what does not fit leaves a run that can be resumed: it is asked again, and
// nobody else is [M20.4] [S18.2].
func TestErrorHandlerDoesNotAnswer(t *testing.T) {
	refused := func(err error) bool { return as[*pawl.RefusalError](err) }
	for name, tt := range map[string]struct {
		handler pawl.ErrorHandler
		is      func(error) bool
		text    string
	}{
		"declines": {func(context.Context, *pawl.HandledError) (*pawl.Handled, error) { return nil, nil }, refused,
			"pawl: run r, error handler at turn 1: the model refused: no"},
		"fails": {func(context.Context, *pawl.HandledError) (*pawl.Handled, error) { return nil, errors.New("no idea") }, func(err error) bool { return !refused(err) },
			"pawl: run r, error handler at turn 1: the error handler for refusal: no idea"},
		"panics": {func(context.Context, *pawl.HandledError) (*pawl.Handled, error) { panic("oops") }, as[*pawl.PanicError],
			"pawl: run r, error handler at turn 1: error handler at turn 1 panicked: oops"},
		"another type": {answering(new(effects), 7), as[*pawl.OutputError],
			"pawl: run r, error handler at turn 1: the error handler for refusal: the final output does not fit its type: it is of type int, and the output of the agent is text"},
	} {
		t.Run(name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, m mode) {
				s := newScript(refusing("no"))
				agent := agentWith(s)
				var r pawl.Runner
				_, err := m.run(&r, t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", ErrorHandlers: one(tt.handler)})
				if err == nil || err.Error() != tt.text || !tt.is(err) {
					t.Errorf("\n got %v\nwant %s", err, tt.text)
				}
				// Without a handler the error is the same, with one the run ends.
				_, err = m.resume(new(pawl.Runner), t.Context(), agent, viaJSON(t, stateOf(t, err)), nil)
				if !refused(err) {
					t.Errorf("without a handler: %v", err)
				}
				res := must(t)(m.resume(new(pawl.Runner), t.Context(), agent, viaJSON(t, stateOf(t, err)), &pawl.RunOptions{ErrorHandlers: one(answering(new(effects), "sorry"))}))
				if res.FinalOutput != "sorry" || len(s.calls()) != 1 {
					t.Errorf("%q after %d calls", res.FinalOutput, len(s.calls()))
				}
			})
		})
	}
}

// What does not fit the structured output is refused with the place.
func TestErrorHandlerOutputIsChecked(t *testing.T) {
	for _, bad := range []any{`{"cents":"x"}`, map[string]int{"dollars": 1}, make(chan int), nil} {
		agent := agentWith(newScript(says("7")))
		agent.Output = pawl.OutputOf[charge]()
		_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ErrorHandlers: one(answering(new(effects), bad))})
		if !as[*pawl.OutputError](err) || !strings.Contains(err.Error(), "the error handler for invalid_output: the final output does not fit its type: ") {
			t.Errorf("%T: %v", bad, err)
		}
	}
}

// A handler counts for the turns that were prepared with it; every other error stands [S18.3].
func TestErrorHandlersOfAnotherDrive(t *testing.T) {
	agent := agentWith(newScript(refusing("no")))
	_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)
	var e effects
	_, err = new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), &pawl.RunOptions{ErrorHandlers: one(answering(&e, "sorry"))})
	if !as[*pawl.RefusalError](err) {
		t.Errorf("%v", err)
	}
	for name, f := range map[string]func(*pawl.RunOptions){"invalid output": func(o *pawl.RunOptions) { o.ErrorHandlers.Refusal = nil }, "max turns": func(o *pawl.RunOptions) { o.ErrorHandlers = pawl.ErrorHandlers{MaxTurns: o.ErrorHandlers.MaxTurns} }} {
		opts := &pawl.RunOptions{ErrorHandlers: one(answering(&e, "sorry"))}
		f(opts)
		if _, err := new(pawl.Runner).Run(t.Context(), agentWith(newScript(refusing("no"))), pawl.UserText("go"), opts); !as[*pawl.RefusalError](err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = new(pawl.Runner).Run(t.Context(), agentWith(newScript(calling(fc("c1", "fly", `{}`)))), pawl.UserText("go"), &pawl.RunOptions{ErrorHandlers: one(answering(&e, "sorry"))})
	if !as[*pawl.ToolNotFoundError](err) {
		t.Errorf("%v", err)
	}
	e.want(t)
}

// A run that is out of turns and whose handler declines goes on with more of them.
func TestErrorHandlerThenMoreTurns(t *testing.T) {
	s := newScript(calling(fc("c1", "pay", `{"cents":5}`)), says("done"))
	agent := agentWith(s, charging("pay", new(effects), nil))
	var e effects
	decline := func(context.Context, *pawl.HandledError) (*pawl.Handled, error) {
		e.add("asked")
		return nil, nil
	}
	var r pawl.Runner
	_, err := r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", MaxTurns: 1, ErrorHandlers: one(decline)})
	if want := (&pawl.MaxTurnsError{MaxTurns: 1}); !errors.As(err, &want) || want.MaxTurns != 1 {
		t.Fatal(err)
	}
	res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, stateOf(t, err)), &pawl.RunOptions{MaxTurns: 2, ErrorHandlers: one(decline)}))
	if res.FinalOutput != "done" {
		t.Errorf("%q", res.FinalOutput)
	}
	e.want(t, "asked")
}

// A nested run has the handlers of its options: those of the caller, unless it has options of its own. A caller is told of the
// error that a handler left.
func TestErrorHandlersInNestedRuns(t *testing.T) {
	var told error
	onError := func(_ context.Context, _ *pawl.Call, err error) string {
		told = err
		return "it failed"
	}
	decline := func(context.Context, *pawl.HandledError) (*pawl.Handled, error) { return nil, nil }
	for name, tt := range map[string]struct {
		tool pawl.AgentToolOptions
		with pawl.ErrorHandler
		want string
	}{
		"the caller's": {pawl.AgentToolOptions{}, answering(new(effects), "sorry"), "a: sorry"},
		"its own":      {pawl.AgentToolOptions{Options: &pawl.RunOptions{ErrorHandlers: one(answering(new(effects), "mine"))}}, decline, "a: mine"},
		"none":         {pawl.AgentToolOptions{Options: &pawl.RunOptions{}, OnError: onError}, answering(new(effects), "sorry"), "a: it failed"},
		"it declines":  {pawl.AgentToolOptions{OnError: onError}, decline, "a: it failed"},
	} {
		t.Run(name, func(t *testing.T) {
			told = nil
			agent := withBilling(newScript(calling(ask("a", "go")), says("done")), newScript(refusing("no")), &tt.tool)
			res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ErrorHandlers: one(tt.with)}))
			if diff := cmp.Diff([]string{tt.want}, outputs(res.NewItems())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if failed := tt.tool.OnError != nil; failed != as[*pawl.RefusalError](told) {
				t.Errorf("the caller was told of %v", told)
			}
		})
	}
}

// atEachAppend runs an agent with a store, and goes on from each append as if the process had died behind it.
func atEachAppend(t *testing.T, run func(r *pawl.Runner) (*pawl.Result, error), resume func(r *pawl.Runner, run string) (*pawl.Result, error), check func(t *testing.T, res *pawl.Result)) {
	t.Helper()
	w := &cuts{Driver: journal.NewMemory()}
	check(t, must(t)(run(&pawl.Runner{Store: w})))
	for _, n := range w.ends {
		store := journal.NewMemory()
		if err := store.Import("r", w.recs[:n]); err != nil {
			t.Fatal(err)
		}
		res, err := resume(&pawl.Runner{Store: store}, "r")
		if err != nil {
			t.Fatalf("behind fact %d: %v", n, err)
		}
		check(t, res)
		replays(t, &pawl.Runner{Store: store}, "r")
	}
	if len(w.ends) < 2 {
		t.Errorf("%d appends", len(w.ends))
	}
}

// cuts remembers the records of a store, and where its appends ended.
type cuts struct {
	journal.Driver
	recs []journal.Record
	ends []int
}

func (c *cuts) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	err := c.Driver.Append(ctx, run, epoch, after, recs, with...)
	if err == nil {
		c.recs = append(c.recs, recs...)
		c.ends = append(c.ends, len(c.recs))
	}
	return err
}

// Wherever the process dies, the run ends with what the handler says.
func TestErrorHandlerAfterACrash(t *testing.T) {
	agent := func() *pawl.Agent {
		return agentWith(byLength(newScript(calling(fc("c1", "look", `{"cents":5}`)), refusing("no"))),
			charging("look", new(effects), func(f *pawl.Func[charge, string]) { f.Effect = pawl.ReadOnly }))
	}
	opts := func() *pawl.RunOptions { return &pawl.RunOptions{ErrorHandlers: one(answering(new(effects), "sorry"))} }
	atEachAppend(t, func(r *pawl.Runner) (*pawl.Result, error) {
		o := opts()
		o.ID = "r"
		return r.Run(t.Context(), agent(), pawl.UserText("go"), o)
	}, func(r *pawl.Runner, run string) (*pawl.Result, error) {
		return r.Resume(t.Context(), agent(), pawl.RunID(run), opts())
	}, func(t *testing.T, res *pawl.Result) {
		if res.FinalOutput != "sorry" || texts(res.NewItems()[3:]) != "assistant: sorry" {
			t.Errorf("%q, %s", res.FinalOutput, texts(res.NewItems()))
		}
	})
}

// A drive that is stopped while its handler is at work leaves it to the next one; without a handler then the error stands.
func TestErrorHandlerIsStopped(t *testing.T) {
	agent := agentWith(newScript(refusing("no")))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := new(pawl.Runner).Run(ctx, agent, pawl.UserText("go"), &pawl.RunOptions{ErrorHandlers: one(func(ctx context.Context, _ *pawl.HandledError) (*pawl.Handled, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	state := stateOf(t, err)
	if _, err := new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, state), nil); !as[*pawl.RefusalError](err) {
		t.Errorf("%v", err)
	}
	res := must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, state), &pawl.RunOptions{ErrorHandlers: one(answering(new(effects), "sorry"))}))
	if res.FinalOutput != "sorry" {
		t.Errorf("%q", res.FinalOutput)
	}
}
