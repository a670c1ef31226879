package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

var runFeatures = []feature{
	{"R2.01", func(t *testing.T) { // run to the final output
		s := newScript(calling(call("c1", "look")), says("a door"))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), nil))
		if res.FinalOutput != "a door" || res.Status != pawl.StatusFinished {
			t.Errorf("output %q, %s", res.FinalOutput, res.Status)
		}
	}},
	{"R2.03", func(t *testing.T) { // the same as a stream
		var r pawl.Runner
		res, err := pawl.Collect(r.Stream(t.Context(), agentWith(newScript(says("hello"))), pawl.UserText("go"), nil))
		if err != nil || res.FinalOutput != "hello" {
			t.Errorf("output %v, %v", res, err)
		}
	}},
	{"R2.04", func(t *testing.T) { // input is a text, items, none at all, or a state
		for name, in := range map[string]pawl.Input{"text": pawl.UserText("go"), "items": {item.UserText("a"), item.MessageItem("", "b"), item.UserText("c")}, "none": {}} {
			s := newScript(says("done"))
			must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s), in, nil))
			if got := s.calls()[0].Input; len(got) != len(in) {
				t.Errorf("%s: the model read %v", name, got)
			}
		}
	}},
	{"R2.08", func(t *testing.T) { // user code sees the run's context; the model does not
		var seen any
		s := newScript(calling(fc("c1", "look", `{"cents":1}`)), says("done"))
		look := charging("look", nil, func(f *pawl.Func[charge, string]) {
			f.Run = func(_ context.Context, c *pawl.Call, _ charge) (string, error) {
				seen = c.Value
				return c.Tool + " " + c.ID + " " + c.Arguments, nil
			}
		})
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, look), pawl.UserText("go"), &pawl.RunOptions{Context: "secret"}))
		doc, err := json.Marshal(res.State())
		if seen != "secret" || err != nil || strings.Contains(string(doc), "secret") {
			t.Errorf("the tool saw %v; %v", seen, err)
		}
		if got := outputs(res.NewItems())[0]; got != `c1: look c1 {"cents":1}` {
			t.Errorf("output %q", got)
		}
	}},
	{"R2.09", func(t *testing.T) { // what a result has
		s := newScript(response("resp_1", call("c1", "look")), response("resp_2", item.MessageItem("msg_1", "done")))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), nil))
		want := []pawl.Item{item.UserText("go"), call("c1", "look"), item.FunctionOutput("c1", "output of look"), item.MessageItem("msg_1", "done")}
		if diff := cmp.Diff(want, []pawl.Item(res.ToInputList())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if diff := cmp.Diff(want[1:], res.NewItems()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if res.LastResponseID != "resp_2" || res.Turns != 2 || res.State() == nil {
			t.Errorf("response %s, %d turns", res.LastResponseID, res.Turns)
		}
	}},
	{"R2.14", func(t *testing.T) { // turns are bounded over the whole run, a resume included
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), calling(fc("c2", "pay", `{"cents":1}`)), says("done"))
		var e effects
		agent := agentWith(s, charging("pay", &e, nil))
		var r pawl.Runner
		_, err := r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r", MaxTurns: 2})
		most, ok := errors.AsType[*pawl.MaxTurnsError](err)
		if !ok || most.MaxTurns != 2 || stateOf(t, err).Result().Turns != 2 {
			t.Fatalf("error %v", err)
		}
		if res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), &pawl.RunOptions{MaxTurns: 3})); res.FinalOutput != "done" {
			t.Errorf("output %q", res.FinalOutput)
		}
	}},
	{"R2.16", func(t *testing.T) { // what of a session the model reads
		sess, history := twoTurns(t)
		s := newScript(says("done"))
		last := func(_ context.Context, h, in []pawl.Item) ([]pawl.Item, error) { return append(h[4:], in...), nil }
		must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s), pawl.UserText("go"), &pawl.RunOptions{Session: sess, MergeInput: last}))
		if diff := cmp.Diff([]pawl.Item{history[4], history[5], item.UserText("go")}, s.calls()[0].Input); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if kept, err := sess.Items(t.Context(), -1); err != nil || len(kept) != len(history)+2 {
			t.Errorf("the session has %d items, %v", len(kept), err)
		}
	}},
	{"R2.17", func(t *testing.T) { // words for calls that are not run; the reviewer's own win
		var e effects
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`), fc("c2", "pay", `{"cents":2}`), fc("c3", "fly", `{}`)), says("done"))
		agent := agentWith(s, charging("pay", &e, asking))
		opts := &pawl.RunOptions{ToolNotFound: pawl.TellModel, ToolErrors: func(e pawl.ToolError) string { return string(e.Kind) + " " + e.Tool }}
		var r pawl.Runner
		state := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), opts)).State()
		list := state.Interruptions()
		if err := errors.Join(state.Reject(list[0], "ann", ""), state.Reject(list[1], "ann", "not today")); err != nil {
			t.Fatal(err)
		}
		res := must(t)(r.Resume(t.Context(), agent, state, opts))
		if diff := cmp.Diff([]string{"c1: approval_rejected pay", "c2: not today", "c3: tool_not_found fly"}, outputs(res.NewItems())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
	{"R2.18", func(t *testing.T) { // an unknown tool fails the run, or is told to the model
		s := newScript(calling(call("c1", "fly")), says("done"))
		var r pawl.Runner
		_, err := r.Run(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), nil)
		if missing, ok := errors.AsType[*pawl.ToolNotFoundError](err); !ok || missing.Tool != "fly" || missing.Disabled {
			t.Fatalf("error %v", err)
		}
		res := must(t)(r.Resume(t.Context(), agentWith(s, namedTools("look")...), stateOf(t, err), &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
		if diff := cmp.Diff([]string{`c1: Tool "fly" not found. Available tools: look.`}, outputs(res.NewItems())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
	{"R2.19", func(t *testing.T) { // reasoning items without their ids
		s := newScript(items(thought("rs_1"), call("c1", "look")), says("done"))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), &pawl.RunOptions{OmitReasoningIDs: true}))
		if diff := cmp.Diff([]string{""}, reasoningIDs(s.calls()[1].Input)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		sameViews(t, res, s, nil)
	}},
	{"R2.20", func(t *testing.T) { // usage of each request and of all
		s := newScript(costing("a", &model.Usage{InputTokens: 2, OutputTokens: 1, TotalTokens: 3}, call("c1", "look")), costing("b", nil, item.MessageItem("", "done")))
		res := must(t)(new(pawl.Runner).Run(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), nil))
		if want := (pawl.Usage{Requests: 2, Unreported: 1, Input: 2, Output: 1, Total: 3}); res.Usage != want || summed(res.Requests()) != want {
			t.Errorf("usage %+v, requests %+v", res.Usage, res.Requests())
		}
	}},
	{"R2.30", func(t *testing.T) { // failed attempts are repeated after a pause that grows
		synctest.Test(t, func(t *testing.T) {
			lost := failing(&model.Error{Status: 500, Retryable: true})
			agent := agentWith(newScript(lost, lost, says("done")))
			agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 2, InitialDelay: time.Second, MaxDelay: time.Minute}}
			start := time.Now()
			res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
			if took := time.Since(start); took != 3*time.Second || res.Usage.Requests != 3 {
				t.Errorf("%d requests in %v", res.Usage.Requests, took)
			}
		})
	}},
	{"R2.32", func(t *testing.T) { // nothing is repeated that a reader has seen
		cut := func(_ context.Context, _ *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
			if emit != nil {
				emit(&model.Event{Kind: model.EventTextDelta, Delta: "hel"})
			}
			return nil, &model.Error{Err: model.ErrStreamCut, Retryable: true}
		}
		s := newScript(cut, says("hello"))
		agent := agentWith(s)
		agent.Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 5, InitialDelay: time.Millisecond}}
		var r pawl.Runner
		_, err := pawl.Collect(r.Stream(t.Context(), agent, pawl.UserText("go"), nil))
		if !errors.Is(err, model.ErrStreamCut) || len(s.calls()) != 1 {
			t.Errorf("error %v after %d calls", err, len(s.calls()))
		}
	}},
	{"R2.36", func(t *testing.T) { // an attempt has a bound
		synctest.Test(t, func(t *testing.T) {
			agent := agentWith(newScript(hanging(make(chan struct{}))))
			agent.Settings = &pawl.ModelSettings{Timeout: 5 * time.Second}
			start := time.Now()
			_, err := new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil)
			if _, ok := errors.AsType[*pawl.TimeoutError](err); !ok || time.Since(start) != 5*time.Second {
				t.Errorf("error %v after %v", err, time.Since(start))
			}
		})
	}},
}

// paused runs one call of a tool that asks, and returns what can be decided.
func paused(t *testing.T, e *effects) (*pawl.Runner, *pawl.Agent, *pawl.RunState, *script) {
	t.Helper()
	s := newScript(calling(fc("c1", "pay", `{"cents":1}`), fc("c2", "look", `{"cents":2}`), fc("c3", "pay", `{"cents":3}`)), calling(fc("c4", "pay", `{"cents":4}`)), says("done"))
	agent := agentWith(s, charging("pay", e, asking), charging("look", e, nil))
	r := new(pawl.Runner)
	return r, agent, must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), nil)).State(), s
}

var approvalFeatures = []feature{
	{"H4.05", func(t *testing.T) { // all that waits is shown, and the other calls have run
		var e effects
		_, _, state, _ := paused(t, &e)
		var got []string
		for _, in := range state.Interruptions() {
			got = append(got, in.ID+" "+in.Tool+" "+in.CallID+" "+in.Arguments)
		}
		if diff := cmp.Diff([]string{`1.0#0 pay c1 {"cents":1}`, `1.2#0 pay c3 {"cents":3}`}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		e.want(t, "look 2")
	}},
	{"H4.06", func(t *testing.T) { // some are decided, the others wait on
		var e effects
		r, agent, state, _ := paused(t, &e)
		if err := state.Approve(state.Interruptions()[1], "ann"); err != nil {
			t.Fatal(err)
		}
		res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, state), nil))
		if len(res.Interruptions) != 1 || res.Interruptions[0].CallID != "c1" {
			t.Errorf("interruptions %v", res.Interruptions)
		}
		e.want(t, "look 2", "pay 3")
	}},
	{"H4.07", func(t *testing.T) { // a decision is for the call and the arguments that were shown
		var e effects
		_, _, state, _ := paused(t, &e)
		in := state.Interruptions()[0]
		in.Arguments = `{"cents":100}`
		if err := state.Approve(in, "ann"); !errors.Is(err, pawl.ErrDecision) {
			t.Errorf("error %v", err)
		}
	}},
	{"H4.08", func(t *testing.T) { // a decision for all calls of the tool, also later ones and after a round trip
		var e effects
		r, agent, state, _ := paused(t, &e)
		always := pawl.Approve(state.Interruptions()[0].ID, "ann")
		always.Always = true
		if err := state.Decide(always); err != nil {
			t.Fatal(err)
		}
		if res := must(t)(r.Resume(t.Context(), agent, viaJSON(t, state), &pawl.RunOptions{})); res.FinalOutput != "done" {
			t.Errorf("output %q", res.FinalOutput)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.list) != 4 || e.list[3] != "pay 4" {
			t.Errorf("effects %q", e.list)
		}
	}},
	{"H4.12", func(t *testing.T) { // what was decided is in the document
		var e effects
		_, _, state, _ := paused(t, &e)
		if err := state.Reject(state.Interruptions()[0], "ann", "no"); err != nil {
			t.Fatal(err)
		}
		read := viaJSON(t, state)
		if len(read.Staged()) != 1 || len(read.Interruptions()) != 1 || read.Staged()[0].By != "ann" {
			t.Errorf("staged %v, open %v", read.Staged(), read.Interruptions())
		}
	}},
	{"H4.15", func(t *testing.T) { // a session gets the response with the outputs, and no placeholder
		var e effects
		s := newScript(calling(fc("c1", "pay", `{"cents":1}`)), says("done"))
		agent, sess := agentWith(s, charging("pay", &e, asking)), session.NewMemory("s")
		var r pawl.Runner
		opts := &pawl.RunOptions{Session: sess}
		state := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), opts)).State()
		if held, err := sess.Items(t.Context(), -1); err != nil || len(held) != 1 {
			t.Errorf("while it waits the session has %v, %v", held, err)
		}
		if err := state.Approve(state.Interruptions()[0], "ann"); err != nil {
			t.Fatal(err)
		}
		res := must(t)(r.Resume(t.Context(), agent, state, opts))
		sameViews(t, res, s, sess)
	}},
}

var stateFeatures = []feature{
	{"5.01", func(t *testing.T) { // a state is a value: resuming does not change it, and resuming it again does nothing twice
		var e effects
		r, agent, state, _ := paused(t, &e)
		facts := state.Facts()
		for _, in := range state.Interruptions() {
			if err := state.Reject(in, "ann", "no"); err != nil {
				t.Fatal(err)
			}
		}
		first := must(t)(r.Resume(t.Context(), agent, state, nil))
		again := must(t)(r.Resume(t.Context(), agent, state, nil))
		if state.Facts() != facts || first.Run != again.Run || len(first.NewItems()) != len(again.NewItems()) {
			t.Errorf("%d facts, were %d; %d and %d items", state.Facts(), facts, len(first.NewItems()), len(again.NewItems()))
		}
		e.want(t, "look 2")
	}},
	{"5.04", func(t *testing.T) { // a document of a newer version is refused before anything else is read
		if _, err := pawl.ParseRunState([]byte(`{"schema":"pawl.run/2","facts":"?"}`)); !errors.Is(err, pawl.ErrNewerState) {
			t.Errorf("error %v", err)
		}
		if _, err := pawl.ParseRunState([]byte(`{"facts":[]}`)); !errors.Is(err, pawl.ErrState) {
			t.Errorf("error %v", err)
		}
	}},
}

var streamFeatures = []feature{
	{"E12.04", func(t *testing.T) { // what the reader asks while it handles an event counts before the next turn
		var r pawl.Runner
		s := newScript(calling(call("c1", "look")), says("done"))
		for ev, err := range r.Stream(t.Context(), agentWith(s, namedTools("look")...), pawl.UserText("go"), &pawl.RunOptions{ID: "r"}) {
			if it, ok := ev.(*pawl.ItemCreated); ok && it.Name == pawl.ToolOutput {
				r.StopAfterTurn("r")
			}
			if err != nil && !errors.Is(err, pawl.ErrStopped) {
				t.Errorf("error %v", err)
			}
		}
		if len(s.calls()) != 1 {
			t.Errorf("%d model calls", len(s.calls()))
		}
	}},
	{"E12.05", func(t *testing.T) { // at once, or after the turn
		var r pawl.Runner
		s := newScript(calling(call("c1", "look")), says("done"))
		agent := agentWith(s, namedTools("look")...)
		for range r.Stream(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}) {
			break
		}
		if len(s.calls()) != 0 {
			t.Errorf("%d model calls", len(s.calls()))
		}
		r.StopAfterTurn("q")
		r.StopAfterTurn("q")
		if _, err := pawl.Collect(r.Stream(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "q"})); !errors.Is(err, pawl.ErrStopped) {
			t.Errorf("error %v", err)
		}
		if res := must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil)); res.FinalOutput != "done" {
			t.Errorf("output %q", res.FinalOutput)
		}
	}},
	{"E12.07", func(t *testing.T) { // how a run stands can be asked while it is streamed
		var r pawl.Runner
		var turns []int
		for ev, err := range r.Stream(t.Context(), agentWith(newScript(calling(call("c1", "look")), says("done")), namedTools("look")...), pawl.UserText("go"), &pawl.RunOptions{ID: "r"}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := ev.(*pawl.ItemCreated); ok {
				turns = append(turns, replays(t, &r, "r").Result().Turns)
			}
		}
		if diff := cmp.Diff([]int{1, 1, 2}, turns); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}},
	{"E12.08", func(t *testing.T) { // a run and a stream come to the same
		var got [2][]pawl.Item
		for i, m := range modes {
			var e effects
			s := busyScript()
			res := must(t)(m.run(new(pawl.Runner), t.Context(), busyAgent(s, &e), pawl.UserText("go"), &pawl.RunOptions{ToolNotFound: pawl.TellModel}))
			got[i] = res.ToInputList()
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" || len(got[0]) == 0 {
			t.Errorf("-run +stream:\n%s", diff)
		}
	}},
}
