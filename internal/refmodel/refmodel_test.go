package refmodel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/refmodel"
)

// The reference says what the specification says.
func TestPlay(t *testing.T) {
	run := &refmodel.Run{Input: "go", Before: []string{"before"}, TellUnknown: true,
		Tools: []refmodel.Tool{{Name: "pay", Gate: refmodel.Asks, Once: true}, {Name: "get", Fails: true}},
		Turns: []refmodel.Turn{
			{Text: "let me see", Calls: []refmodel.Call{{ID: "a", Tool: "pay", N: 1}, {ID: "a", Tool: "pay", N: 1}, {ID: "b", Tool: "pay", N: 2}, {ID: "c", Tool: "get", N: 3}}},
			{Calls: []refmodel.Call{{ID: "d", Tool: "pay", N: 4}, {ID: "e", Tool: "nobody"}, {ID: "f", Tool: "get", Bad: true}}},
			{Text: "done"},
		},
		Decisions: map[string]refmodel.Decision{"a": {Edit: 7}, "b": {Reject: true, Always: true, Message: "no"}}}
	want := &refmodel.End{Output: "done", Requests: []int{2, 9, 15}, Asked: []string{"a", "b"},
		Effects: map[string]refmodel.Effect{"a": {Tool: "pay", N: 7, Once: true}, "c": {Tool: "get", N: 3}},
		Conversation: []string{"user before", "user go", "says let me see", `call a pay {"n":1}`, `call b pay {"n":2}`, `call c get {"n":3}`,
			"output a The reviewer changed the arguments to {\"n\":7}.\ndid a", "output b no", "output c The tool failed: cannot c",
			`call d pay {"n":4}`, `call e nobody {"n":0}`, `call f get {"n":"0"}`,
			"output d no", "output e there is no such tool", "output f these arguments do not fit", "says done"}}
	if diff := cmp.Diff(want, refmodel.Play(run)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	run.After, run.Decreed = refmodel.AfterFirst, map[string]bool{"a": true}
	if end := refmodel.Play(run); end.Output != "The tool failed: cannot c" || len(end.Requests) != 1 {
		t.Errorf("output %q after %d turns", end.Output, len(end.Requests))
	}
	run.After, run.MaxTurns = refmodel.AfterTwo, 1
	if end := refmodel.Play(run); end.Failed != "max_turns" {
		t.Errorf("%+v", end)
	}
}

// Whatever goes wrong on the way, a run comes to the end that the reference says.
func TestRunsComeToTheirEnd(t *testing.T) {
	struck, decreed, ends := map[kind]int{}, 0, map[string]int{}
	check := func(rt *rapid.T) {
		set := drawSetting(rt)
		var w *world
		var err error
		synctest.Test(t, func(*testing.T) {
			w = newWorld(set)
			err = w.play()
			time.Sleep(time.Minute) // what is late arrives
			err = errors.Join(err, w.fault)
		})
		for k, n := range w.struck {
			struck[k] += n
		}
		decreed += len(set.Run.Decreed)
		ends[refmodel.Play(set.Run).Failed]++
		if err != nil {
			rt.Fatal(err)
		}
	}
	for range 10 { // a run takes a millisecond
		rapid.Check(t, check)
	}
	t.Logf("%v, %d calls settled by a person, ends %v", struck, decreed, ends)
	for _, k := range []kind{stops, leaves, dies, full, lostStored, lostAbsent, lostLater, sessionDown, sessionDeaf, modelRefuses, modelDeaf, rival} {
		if struck[k] == 0 {
			t.Errorf("never: %s", k)
		}
	}
	if decreed == 0 || ends["max_turns"] == 0 || ends["tool_not_found"] == 0 {
		t.Errorf("%d calls were settled by a person, ends %v", decreed, ends)
	}
}

// play drives the run to its end and compares what came of it.
func (w *world) play() error {
	asked := map[string]bool{}
	for n := range 40 {
		tr := trouble{Kind: none}
		if n < len(w.set.Troubles) {
			tr = w.set.Troubles[n]
		}
		res, err := w.drive(tr)
		var turns *pawl.MaxTurnsError
		var unknown *pawl.ToolNotFoundError
		var re *pawl.RunError
		w.state = nil
		if errors.As(err, &re) && tr.Kind != dies {
			w.state = re.State
		}
		switch {
		case errors.As(err, &turns):
			return w.compare("max_turns", re.State.Result(), asked)
		case errors.As(err, &unknown):
			return w.compare("tool_not_found", re.State.Result(), asked)
		case errors.Is(err, pawl.ErrClaimed):
			time.Sleep(pawl.DefaultLease)
		case err != nil && tr.Kind == none:
			return fmt.Errorf("nothing went wrong in drive %d: %w", n, err)
		case err != nil:
		case res.Waiting():
			if err := w.decide(res, asked); err != nil {
				return err
			}
		default:
			return w.compare("", res, asked)
		}
	}
	return errors.New("the run does not come to an end")
}

// drive is one process: a new Runner, a new agent.
func (w *world) drive(tr trouble) (*pawl.Result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d := &drive{Driver: w.store, w: w, trouble: tr, cancel: cancel}
	defer d.others.Wait()
	w.drives = d
	r := pawl.Runner{Store: d}
	opts := &pawl.RunOptions{Session: w.session(d), ToolNotFound: w.notFound(), ToolErrors: toolErrors}
	known := true
	if _, err := r.State(ctx, "r"); err != nil {
		known = false
	}
	if !known || tr.Again {
		opts.ID, opts.MaxTurns, opts.MaxParallelTools = "r", w.set.Run.MaxTurns, w.set.Parallel
		if opts.MaxTurns == 0 {
			opts.MaxTurns = -1
		}
		opts.AutoPreviousResponseID = w.set.Place == chain
		if w.set.Place == conversation {
			opts.ConversationID = "conv"
		}
		if tr.Kind == leaves || tr.Stream {
			return d.shown(r.Stream(ctx, w.agent(d), pawl.UserText(w.set.Run.Input), opts))
		}
		return r.Run(ctx, w.agent(d), pawl.UserText(w.set.Run.Input), opts)
	}
	var from pawl.Resumable = pawl.RunID("r")
	if tr.State && w.state != nil {
		from = w.state
	}
	if tr.Kind == leaves || tr.Stream {
		return d.shown(r.ResumeStream(ctx, w.agent(d), from, opts))
	}
	return r.Resume(ctx, w.agent(d), from, opts)
}

// shown reads a stream, and may leave it.
func (d *drive) shown(stream func(func(pawl.Event, error) bool)) (res *pawl.Result, err error) {
	n := int64(0)
	for ev, err := range stream {
		if err != nil {
			return nil, err
		}
		if n++; d.hit(leaves, n) {
			return nil, errors.New("the reader left")
		}
		switch ev := ev.(type) {
		case *pawl.Paused:
			res = ev.Result
		case *pawl.Done:
			res = ev.Result
		}
	}
	return res, nil
}

// decide decides what the run waits for, as people would who look what happened.
func (w *world) decide(res *pawl.Result, asked map[string]bool) error {
	var list []pawl.Decision
	for _, in := range res.Interruptions {
		time.Sleep(time.Until(in.NotBefore))
		w.mu.Lock()
		happened := w.done[in.CallID] != nil
		w.mu.Unlock()
		switch {
		case in.Kind == pawl.ApprovalNeeded:
			asked[in.CallID] = true
			list = append(list, w.approval(in))
		case happened:
			w.set.Run.Decreed[in.CallID] = true
			returned := w.expected(in.CallID)
			if _, text, edited := strings.Cut(returned, ".\n"); edited {
				returned = text // what was edited is told all the same
			}
			list = append(list, pawl.Settle(in.ID, "ann", returned))
		default:
			list = append(list, pawl.Retry(in.ID, "ann"))
		}
	}
	r := pawl.Runner{Store: w.store}
	return r.Decide(context.Background(), "r", list...)
}

func (w *world) approval(in pawl.Interruption) pawl.Decision {
	given := w.set.Run.Decisions[in.CallID]
	d := pawl.Approve(in.ID, "ann")
	switch {
	case given.Reject:
		d = pawl.Reject(in.ID, "ann", given.Message)
	case given.Edit != 0:
		d = pawl.Edit(in.ID, "ann", fmt.Sprintf(`{"n":%d}`, given.Edit))
	}
	d.Always = given.Always
	return d
}

// expected is the output of a call that ran.
func (w *world) expected(callID string) string {
	for _, line := range refmodel.Play(w.set.Run).Conversation {
		if text, ok := strings.CutPrefix(line, "output "+callID+" "); ok {
			return text
		}
	}
	return "nobody expected that"
}

// compare compares a run that has ended with the reference.
func (w *world) compare(failed string, res *pawl.Result, asked map[string]bool) error {
	end := refmodel.Play(w.set.Run)
	var problems []error
	same := func(what string, want, got any) {
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			problems = append(problems, fmt.Errorf("%s (-reference +run):\n%s", what, diff))
		}
	}
	same("failure", end.Failed, failed)
	same("output", end.Output, res.FinalOutput)
	same("conversation", end.Conversation, allTold(res.ToInputList()))
	same("approvals", slices.Sorted(slices.Values(end.Asked)), slices.Sorted(maps.Keys(asked)))
	if w.set.Place == plain || w.set.Place == remembering {
		held, err := w.sess.Items(context.Background(), -1)
		problems = append(problems, err)
		same("session", end.Conversation, allTold(held))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	done := map[string]refmodel.Effect{}
	for id, e := range w.done {
		done[id] = refmodel.Effect{Tool: e.tool, N: e.n, Once: end.Effects[id].Once}
		if end.Effects[id].Once && e.times != 1 {
			problems = append(problems, fmt.Errorf("call %s took effect %d times", id, e.times))
		}
	}
	same("effects", end.Effects, done)
	return errors.Join(append(problems, w.requests(end))...)
}

// requests checks that the model was asked for each turn, and read each time what the
// reference says: of the conversation, all that was there.
func (w *world) requests(end *refmodel.End) error {
	whole := map[string][]string{} // what a server has at a response
	var talk []string
	turns := map[int]bool{}
	for _, call := range w.model.Calls() {
		turn := turnOf(call)
		read := append(slices.Clone(whole[call.PreviousResponseID]), allTold(call.Input)...)
		if w.set.Place == conversation {
			read = append(slices.Clone(talk), read...)
		}
		if turn > len(end.Requests) {
			return fmt.Errorf("the model was asked for turn %d of %d", turn, len(end.Requests))
		}
		if diff := cmp.Diff(end.Conversation[:end.Requests[turn-1]], read); diff != "" {
			return fmt.Errorf("request %d, of turn %d (-reference +run):\n%s", call.Number, turn, diff)
		}
		turns[turn] = true
		answered := append(read, distinct(allTold(w.turn(turn)))...)
		if call.ResponseID != "" {
			whole[call.ResponseID] = answered
		}
		if w.set.Place != chain {
			clear(whole)
		}
		talk = answered
	}
	if len(turns) != len(end.Requests) {
		return fmt.Errorf("the model was asked for %d of %d turns", len(turns), len(end.Requests))
	}
	return nil
}

// distinct drops what is said twice: the reference tells the model's calls without their twins, and a
// server has both.
func distinct(lines []string) (list []string) {
	for _, l := range lines {
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}
