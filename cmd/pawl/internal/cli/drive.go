package cli

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
)

// drive shows a run and decides what it waits for, until it ends, fails, or nobody is there to decide. The
// result is nil if there is an error other than errWaiting.
func (a *app) drive(ctx context.Context, d *demo.Desk, events iter.Seq2[pawl.Event, error], yes bool) (*pawl.Result, error) {
	for {
		paused, done, err := a.watch(events)
		if err != nil {
			return nil, err
		}
		if paused == nil {
			return done, nil
		}
		if err := a.decideAll(ctx, d, paused.State, yes); err != nil {
			return paused.Result, err
		}
		events = d.Resume(ctx, paused.State, 0)
	}
}

// watch shows a stream to its end.
func (a *app) watch(events iter.Seq2[pawl.Event, error]) (*pawl.Paused, *pawl.Result, error) {
	for ev, err := range events {
		if err != nil {
			return nil, nil, err
		}
		switch ev := ev.(type) {
		case *pawl.Paused:
			a.screen.endLine()
			return ev, nil, nil
		case *pawl.Done:
			a.screen.endLine()
			return nil, ev.Result, nil
		default:
			a.screen.event(ev)
		}
	}
	return nil, nil, errors.New("the run's stream ended without a result")
}

// decideAll stages a decision for everything that waits. If nobody is there, or the person leaves, what was decided is
// kept and the error is errWaiting.
func (a *app) decideAll(ctx context.Context, d *demo.Desk, state *pawl.RunState, yes bool) error {
	for _, in := range state.Interruptions() {
		err := a.decideOne(ctx, d, state, in, yes)
		if err == nil {
			continue
		}
		if staged := state.Staged(); len(staged) > 0 {
			err = errors.Join(err, d.Runner.Decide(context.WithoutCancel(ctx), state.Run(), staged...))
		}
		return err
	}
	return nil
}

func (a *app) decideOne(ctx context.Context, d *demo.Desk, state *pawl.RunState, in pawl.Interruption, yes bool) error {
	switch {
	case yes:
		decision, err := a.yes(ctx, d, in)
		if err != nil {
			return err
		}
		return state.Decide(decision)
	case a.prompt == nil:
		return errWaiting
	}
	for {
		decision, err := a.prompt.decide(ctx, in)
		if errors.Is(err, io.EOF) {
			return errWaiting
		}
		if err != nil {
			return err
		}
		err = state.Decide(decision)
		if !errors.Is(err, pawl.ErrDecision) {
			return err
		}
		a.screen.line("  That does not fit: %s", printable(cause(err)))
	}
}

// yes is what --yes decides: it approves. Of a call in doubt it finds out what the shop knows.
func (a *app) yes(ctx context.Context, d *demo.Desk, in pawl.Interruption) (pawl.Decision, error) {
	if in.Kind == pawl.ApprovalNeeded {
		a.screen.entry(green, "approved", callText(in.Tool, in.Arguments)+" (--yes)")
		return pawl.Approve(in.ID, "--yes"), nil
	}
	output, happened, err := d.Look(ctx, in)
	if err != nil {
		return pawl.Decision{}, err
	}
	if happened {
		a.screen.entry(yellow, "in doubt", in.Tool+": the shop's outbox has the mail, so it is settled (--yes)")
		return pawl.Settle(in.ID, "--yes", output), nil
	}
	a.screen.entry(yellow, "in doubt", in.Tool+": the shop's outbox has no such mail, so it runs again (--yes)")
	return pawl.Retry(in.ID, "--yes"), nil
}

// cause is an error's text without the run it is about.
func cause(err error) string {
	var re *pawl.RunError
	if errors.As(err, &re) {
		err = re.Err
	}
	return err.Error()
}
