package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-agents/pawl/item"
	"github.com/spf13/cobra"
)

const decideArgs = `
RUN is the run's id or a beginning of it that no other run has. CALL is needed if several calls wait: the call as
"show" and "resume" print it, its call id, or the tool's name if no other call of that tool waits.

The decision is stored at once, whatever program the run belongs to. It takes effect when the run goes on:
resume it, unless a program drives it anyway.`

const settleLong = `

A call that is settled as unknown ("told" in "unsettled") takes --output only, also after its run has ended: what you
found out is recorded, and the conversation stays as it is.`

// decider are the flags of commands that decide about a call.
type decider struct {
	by, why string
	always  bool
	// The answers of the single verdicts.
	arguments, message, output string
	retry, giveUp              bool
	// check, if not nil, refuses flags that do not go together.
	check func() error
}

func (v *decider) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.by, "by", me(), "who decides; it is kept in the ledger (`NAME`)")
	cmd.Flags().StringVar(&v.why, "why", "", "the `reason`, for the ledger")
}

func (a *app) approveCommand() *cobra.Command {
	var v decider
	cmd := a.decideCommand("approve", "Let a waiting call run", &v, pawl.ApprovalNeeded, func(id string) pawl.Decision {
		d := pawl.Approve(id, v.by)
		if v.arguments != "" {
			d = pawl.Edit(id, v.by, v.arguments)
		}
		d.Always = v.always
		return d
	})
	v.check = func() error {
		if _, err := item.Canonical(v.arguments); cmd.Flags().Changed("arguments") && err != nil {
			return &usageError{fmt.Errorf("--arguments: %s", strings.TrimPrefix(err.Error(), "pawl: "))}
		}
		return nil
	}
	cmd.Flags().StringVar(&v.arguments, "arguments", "", "run it with other arguments, a `JSON` object; the model is told")
	cmd.Flags().BoolVar(&v.always, "always", false, "also approve open and later calls of the tool in this run")
	return cmd
}

func (a *app) rejectCommand() *cobra.Command {
	var v decider
	cmd := a.decideCommand("reject", "Answer a waiting call instead of running it", &v, pawl.ApprovalNeeded, func(id string) pawl.Decision {
		d := pawl.Reject(id, v.by, v.message)
		d.Always = v.always
		return d
	})
	cmd.Flags().StringVar(&v.message, "message", "", "what the model reads (`TEXT`)")
	cmd.Flags().BoolVar(&v.always, "always", false, "also reject open and later calls of the tool in this run")
	return cmd
}

func (a *app) settleCommand() *cobra.Command {
	var v decider
	cmd := a.decideCommand("settle", "Say what became of a call: its process died, its result comes later, or nobody knew", &v, pawl.InDoubt, func(id string) pawl.Decision {
		switch {
		case v.retry:
			return pawl.Retry(id, v.by)
		case v.giveUp:
			return pawl.GiveUp(id, v.by)
		}
		return pawl.Settle(id, v.by, v.output)
	})
	cmd.Long += settleLong
	cmd.Flags().StringVar(&v.output, "output", "", "it happened, and returned this `TEXT`")
	cmd.Flags().BoolVar(&v.retry, "retry", false, "it did not happen: run it, with the same arguments and key")
	cmd.Flags().BoolVar(&v.giveUp, "give-up", false, "nobody knows: tell the model so")
	v.check = func() error {
		given := 0
		for _, name := range []string{"output", "retry", "give-up"} {
			if cmd.Flags().Changed(name) {
				given++
			}
		}
		if given != 1 {
			return &usageError{errors.New("say what became of the call with one of --output, --retry and --give-up")}
		}
		return nil
	}
	return cmd
}

func (a *app) decideCommand(verb, short string, v *decider, kind pawl.InterruptionKind, decision func(id string) pawl.Decision) *cobra.Command {
	cmd := &cobra.Command{
		Use:   verb + " RUN [CALL]",
		Short: short,
		Long:  short + ".\n" + decideArgs,
		Args:  cobra.RangeArgs(1, 2),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			if v.check != nil {
				if err := v.check(); err != nil {
					return nil, err
				}
			}
			return a.withRun(cmd.Context(), args[0], func(st store, run string) (any, error) {
				return a.decide(cmd.Context(), st, run, args[1:], v, kind, decision)
			})
		}),
	}
	v.flags(cmd)
	return cmd
}

// decided is what --json prints of a decision.
type decided struct {
	Run     string       `json:"run"`
	Call    string       `json:"call"`
	Tool    string       `json:"tool"`
	Verdict pawl.Verdict `json:"verdict"`
	By      string       `json:"by"`
	// Open is how many calls still wait.
	Open   int    `json:"open"`
	Resume string `json:"resume,omitempty"`
	// Found says that the call was settled as unknown: what was found out is recorded, and nothing follows from it.
	Found bool `json:"found,omitempty"`
}

func (a *app) decide(ctx context.Context, st store, run string, call []string, v *decider, kind pawl.InterruptionKind,
	decision func(id string) pawl.Decision) (any, error) {
	runner := &pawl.Runner{Store: st, Agents: []*pawl.Agent{demo.Agent()}}
	state, err := runner.State(ctx, run)
	if err != nil {
		return nil, err
	}
	in, err := a.pick(state, call, kind)
	if err != nil {
		return nil, err
	}
	d := decision(in.ID)
	d.Why = v.why
	if err := runner.Decide(ctx, run, d); err != nil {
		return nil, err
	}
	open, err := undecided(ctx, st, state)
	if err != nil {
		return nil, err
	}
	r := decided{Run: run, Call: in.ID, Tool: in.Tool, Verdict: d.Verdict, By: d.By, Open: len(open), Found: in.Kind == ""}
	if r.Found {
		a.screen.line("What %s of %s did is recorded, by %s. The model is not told.", printable(in.Tool), printable(run), printable(d.By))
		return r, nil
	}
	r.Resume = a.resumer(state)
	a.screen.line("%s of %s is decided: %s, by %s.", printable(in.Tool), printable(run), d.Verdict, printable(d.By))
	if r.Open > 0 {
		a.screen.line("%d more to decide.", r.Open)
	}
	a.screen.goOn("go on", r.Resume)
	return r, nil
}

// pick finds the waiting call that the command line means. One that is not waiting any more, because it is settled as
// unknown, has no kind.
func (a *app) pick(state *pawl.RunState, call []string, kind pawl.InterruptionKind) (pawl.Interruption, error) {
	var open, found []pawl.Interruption
	var hints []string
	all := state.Interruptions()
	for _, in := range all {
		hints = append(hints, a.deciders(in, len(all))...)
		settled := in.Kind == pawl.External && kind == pawl.InDoubt // by the same command
		if in.Kind != kind && !settled {
			continue
		}
		open = append(open, in)
		if len(call) == 0 || call[0] == in.ID || call[0] == in.CallID || call[0] == in.Tool {
			found = append(found, in)
		}
	}
	if len(found) == 0 && kind == pawl.InDoubt {
		found = told(state, call)
	}
	var err error
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(open) == 0 && len(found) == 0:
		err = fmt.Errorf("%w: run %s is %s", errNothingOpen, state.Run(), state.Status())
	case len(found) == 0:
		err = fmt.Errorf("%w: %q", errNoSuchCall, strings.Join(call, " "))
	default:
		err = errWhichCall
	}
	if len(hints) == 0 {
		hints = []string{a.command("show", state.Run())}
	}
	return pawl.Interruption{}, &hintedError{err: err, hints: hints}
}

// told are the calls settled as unknown that the command line may mean.
func told(state *pawl.RunState, call []string) (found []pawl.Interruption) {
	for _, u := range state.Unsettled() {
		if u.Standing == pawl.StandsTold && (len(call) == 0 || slices.Contains([]string{u.Interruption, u.Call, u.CallID, u.Tool}, call[0])) {
			found = append(found, pawl.Interruption{ID: u.Interruption, Run: u.Run, Tool: u.Tool, CallID: u.CallID, Arguments: u.Arguments})
		}
	}
	return found
}
