package pawltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// decide decides what the run waits for. What is in doubt is settled by what the far side knows.
func (st *stage) decide(w *World, res *pawl.Result) *World {
	var open []pawl.Interruption
	var decisions []pawl.Decision
	for _, in := range res.Interruptions {
		switch in.Kind {
		case pawl.InDoubt:
			st.doubted(in)
			decisions = append(decisions, st.settle(in))
		case pawl.External:
			decisions = append(decisions, st.settle(in))
		default:
			st.asked[in.Key] = frameIn(in)
			st.asks[in.ID] = in.Tool + " " + in.CallID
			open = append(open, in)
		}
	}
	st.calls++
	if len(open) > 0 && st.scenario.Cancel {
		return st.went(w, w.call(func() (*pawl.Result, error) {
			st.far.note("process %d: Cancel", w.number)
			return nil, w.runner.Cancel(context.Background(), st.runID(), "sweep", "the scenario cancels it")
		}))
	}
	if st.lacks(res, st.scenario.Added) {
		return st.went(w, w.call(func() (*pawl.Result, error) { return nil, st.add(w) }))
	}
	made := st.scenario.decisions(open)
	for _, d := range made {
		st.note(d, open)
	}
	decisions = append(decisions, made...)
	switch {
	case len(decisions) > 0:
	case made != nil:
		return st.next(w)
	default:
		st.end = st.ending(res, nil)
		return w
	}
	st.decided = append(st.decided, decisions...)
	return st.went(w, w.call(func() (*pawl.Result, error) { return nil, st.submit(w, decisions) }))
}

// decisions asks the scenario.
func (s Scenario) decisions(open []pawl.Interruption) (list []pawl.Decision) {
	switch {
	case len(open) == 0:
	case s.Decide != nil:
		return s.Decide(open)
	default:
		for _, in := range open {
			list = append(list, pawl.Approve(in.ID, "sweep"))
		}
	}
	return list
}

// lacks says that a run has not been given an input. Somebody who does not know looks for it.
func (st *stage) lacks(res *pawl.Result, input pawl.Input) bool {
	has := slices.Concat(res.ToInputList(), res.State().PendingInput())
	return len(input) > 0 && !slices.Contains(has, input[0])
}

// add gives the run the scenario's input, in the store or staged on the state.
func (st *stage) add(w *World) error {
	st.far.note("process %d: AddInput", w.number)
	input := st.scenario.Added
	st.mu.Lock()
	st.adds.tried++
	st.mu.Unlock()
	if st.point.carrier == inStore && !st.point.stream {
		w.adds = true
		ctx := context.Background()
		if st.point.fault == SlowTakeover { // it waits for the driver, and the sweep lets the driver wait for it
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 2*leaseOver)
			defer cancel()
		}
		err := w.runner.AddInput(ctx, st.runID(), input)
		if err == nil {
			st.mu.Lock()
			st.adds.taken++
			st.mu.Unlock()
		}
		return err
	}
	if st.point.carrier == inStore { // a resume from the state submits it
		state, err := w.runner.State(context.Background(), st.runID())
		if err != nil {
			return err
		}
		st.state, st.adding = state, state
		return state.AddInput(input)
	}
	return w.at(InputAdded, "staged", func() error { return st.state.AddInput(input) })
}

// checkAdded compares what callers were told of their input with the ledger: what was taken is there, what was refused is not.
func (st *stage) checkAdded() {
	n := 0
	for _, r := range st.facts() {
		if r.Kind == journal.KindAdded {
			n++
		}
	}
	a := st.adds
	if n < a.taken || n > a.tried-a.refused {
		st.far.problem("input: %d were recorded; of %d %d were said to be taken, and %d refused", n, a.tried, a.taken, a.refused)
	}
}

// submit submits decisions to the store, or stages them on the state.
func (st *stage) submit(w *World, decisions []pawl.Decision) error {
	st.far.note("process %d: decide %d", w.number, len(decisions))
	if st.point.carrier == inStore && !st.point.stream {
		return w.runner.Decide(context.Background(), st.runID(), decisions...)
	}
	if st.point.carrier == inStore { // a resume from the state submits them
		state, err := w.runner.State(context.Background(), st.runID())
		if err != nil {
			return err
		}
		st.state = state
	}
	for _, d := range decisions {
		stage := func() error { return st.state.Decide(d) }
		if st.point.carrier != inStore {
			name := fmt.Sprintf("%s %s", d.Verdict, d.Interruption)
			inner := stage
			stage = func() error { return w.at(DecisionPosted, name, inner) }
		}
		if err := stage(); err != nil {
			return err
		}
	}
	return nil
}

// note tells the far side what was allowed, before it is.
func (st *stage) note(d pawl.Decision, open []pawl.Interruption) {
	for _, in := range open {
		if in.ID == d.Interruption && d.Verdict == journal.Approve {
			st.edited[in.CallID] = d.Arguments != ""
			st.far.mu.Lock()
			st.far.allowed[in.Key] = true
			if d.Always {
				st.far.always[frameIn(in)+in.Tool] = true
			}
			st.far.mu.Unlock()
		}
	}
}

// frameIn is the frame of an interruption, as its id has it.
func frameIn(in pawl.Interruption) string { return in.ID[:strings.LastIndex(in.ID, "/")+1] }

// settle decides about a call in doubt, or one whose result comes later, by what the far side knows.
func (st *stage) settle(in pawl.Interruption) pawl.Decision {
	time.Sleep(time.Until(in.NotBefore))
	st.far.mu.Lock()
	answer, done := st.far.answers[in.Key]
	st.far.mu.Unlock()
	if done {
		st.settled[in.CallID] = true
		return pawl.Settle(in.ID, "sweep", answer)
	}
	return pawl.Retry(in.ID, "sweep")
}
