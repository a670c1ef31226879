package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-agents/pawl"
)

// deliver has a run take the result of a call. The courier looks for what the run waits with, unless it is told.
func (w *worker) deliver(ctx context.Context, t task) (interruption string, err error) {
	interruption = t.Letter.Interruption
	if interruption == "" {
		state, err := w.runner.State(ctx, t.Plan.Run)
		if err != nil {
			return "", err
		}
		open := state.Interruptions()
		i := slices.IndexFunc(open, func(in pawl.Interruption) bool { return in.CallID == t.Letter.Call && in.Kind != pawl.ApprovalNeeded })
		if i < 0 {
			return "", fmt.Errorf("%w: not yet, or not any more", pawl.ErrNotOpen)
		}
		interruption = open[i].ID
	}
	return interruption, w.runner.Decide(ctx, t.Plan.Run, pawl.Settle(interruption, "the far side", t.Letter.Text))
}

// decisions are what a person would decide about the calls of a run that wait. They are staged on the state, too.
func (w *worker) decisions(ctx context.Context, t task) (*pawl.RunState, []pawl.Decision, error) {
	state, err := w.runner.State(ctx, t.Plan.Run)
	if err != nil {
		return nil, nil, err
	}
	var list []pawl.Decision
	for _, in := range state.Interruptions() {
		d, ok, err := decide(w.log, w.seed, in, t.Taste)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		list = append(list, d)
		if err := state.Decide(d); err != nil {
			return nil, nil, err
		}
	}
	return state, list, nil
}

// decide decides about one call. People of one taste decide alike. A call in doubt is looked up in the effect
// log, as one would ask the far side: what was begun is never run again.
func decide(log effectLog, seed uint64, in pawl.Interruption, taste int) (d pawl.Decision, ok bool, err error) {
	rnd := drawn(seed, "decision", in.Run, in.ID, taste)
	by := fmt.Sprintf("person-%d", taste)
	if in.Kind == pawl.ApprovalNeeded {
		switch n := rnd.IntN(20); {
		case n < 4:
			return pawl.Reject(in.ID, by, "Not "+in.CallID+"."), true, nil
		case n < 9 && !in.Expires.IsZero():
			return d, false, nil // and so it expires
		case toolOf(in.Tool).asks: // whose questions are about one call as it is
		case n < 11 && !in.Unreadable:
			return pawl.Edit(in.ID, by, fmt.Sprintf(`{"call":%q,"pause":1,"freeze":false}`, in.CallID)), true, nil
		case n == 11:
			d = pawl.Approve(in.ID, by)
			d.Always = true
			return d, true, nil
		}
		return pawl.Approve(in.ID, by), true, nil
	}
	if in.Kind == pawl.External || time.Now().Before(in.NotBefore) {
		return d, false, nil // a courier knows the result, or it may still be running
	}
	begun, ended, err := log.happened(in.Run, in.CallID)
	switch {
	case err != nil:
		return d, false, err
	case ended:
		return pawl.Settle(in.ID, by, settledText(in.Key)), true, nil
	case begun:
		return pawl.GiveUp(in.ID, by), true, nil
	}
	return pawl.Retry(in.ID, by), true, nil
}

// settledText is the output of a call that somebody found to have happened.
func settledText(key string) string { return "somebody saw " + key }
