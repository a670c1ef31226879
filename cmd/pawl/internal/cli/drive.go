package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-agents/pawl/journal"
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
		if err := a.decideAll(ctx, d, paused.Interruptions, yes); err != nil {
			return paused.Result, err
		}
		state, err := a.reload(d, paused.State)
		if err != nil {
			return paused.Result, err
		}
		events = d.Resume(ctx, state, 0)
	}
}

// reload sends the state of a run through JSON where that is what the demo is about: outputs that the server does
// not have yet must survive it.
func (a *app) reload(d *demo.Desk, state *pawl.RunState) (*pawl.RunState, error) {
	if d.Ticket.Mode != demo.ModeChain {
		return state, nil
	}
	again, size, err := demo.Reload(state)
	if err != nil {
		return nil, err
	}
	a.screen.entry(faint, "state", fmt.Sprintf("written as %d bytes of JSON, and read back", size))
	return again, nil
}

// goOn is drive for a run that began before, perhaps in another process.
func (a *app) goOn(ctx context.Context, d *demo.Desk, maxTurns int, yes bool) (*pawl.Result, error) {
	run := d.Ticket.Run()
	records, err := d.Runner.Store.Read(ctx, run, 0)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		f, err := journal.Decode(rec)
		if err != nil {
			return nil, err
		}
		if b, ok := f.Body.(*journal.Responded); ok {
			a.screen.learn(b.Items)
		}
	}
	return a.drive(ctx, d, d.Resume(ctx, pawl.RunID(run), maxTurns), yes)
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

// decideAll decides everything that waits. If nobody is there, or the person leaves, what was decided is kept and the
// error is errWaiting.
func (a *app) decideAll(ctx context.Context, d *demo.Desk, open []pawl.Interruption, yes bool) error {
	for _, in := range open {
		if err := a.decideOne(ctx, d, in, yes); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) decideOne(ctx context.Context, d *demo.Desk, in pawl.Interruption, yes bool) error {
	switch {
	case yes:
		decision, err := a.yes(ctx, d, in)
		if err != nil {
			return err
		}
		return d.Runner.Decide(ctx, in.Run, decision)
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
		err = d.Runner.Decide(ctx, in.Run, decision)
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

// cause is what does not fit of a decision.
func cause(err error) string {
	var re *pawl.RunError
	if errors.As(err, &re) {
		err = re.Err
	}
	return strings.TrimPrefix(err.Error(), pawl.ErrDecision.Error()+": ")
}
