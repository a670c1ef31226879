package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/timeline"
	"github.com/spf13/cobra"
)

const showLong = `Prints what happened in a run, fact by fact, as the run's ledger has it: what the model was asked and said, what
each tool call was decided and did, what the session has, who drove the run.

RUN is the run's id or a beginning of it that no other run has.`

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show RUN",
		Short: "Show what happened in a run",
		Long:  showLong,
		Args:  cobra.ExactArgs(1),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			return a.withRun(cmd.Context(), args[0], func(st store, run string) (any, error) {
				return a.show(cmd.Context(), st, run)
			})
		}),
	}
}

func (a *app) show(ctx context.Context, st store, run string) (any, error) {
	records, err := st.Read(ctx, run, 0)
	if err != nil {
		return nil, err
	}
	entries, err := timeline.Of(records)
	if err != nil {
		return nil, err
	}
	r, _, err := a.report(ctx, st, run)
	if err != nil {
		return nil, err
	}
	r.Timeline = entries
	s := a.screen
	s.head("%s", printable(run))
	s.entry(faint, "agent", printable(r.Agent))
	if r.Session != "" {
		s.entry(faint, "session", printable(r.Session))
	}
	s.entry(faint, "usage", fmt.Sprintf("%d turns, %d requests, %d tokens in, %d out", r.Turns, r.Usage.Requests, r.Usage.InputTokens, r.Usage.OutputTokens))
	s.entry(faint, "began", entries[0].Time.Local().Format(time.DateTime))
	s.line("")
	for _, e := range entries {
		s.line("  %s  %-10s %s", s.styled(faint, fmt.Sprintf("%9s", offset(e.Time.Sub(entries[0].Time)))), e.What, oneLine(e.Text, 150))
	}
	switch r.Status {
	case pawl.StatusWaiting:
		a.showWaiting(r)
	case pawl.StatusFinished, pawl.StatusCancelled:
	default:
		s.line("")
		s.line("The run is not at its end.")
		s.goOn("go on", r.Resume)
	}
	return r, nil
}

// offset writes how long after its beginning something happened.
func offset(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("+%.3fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("+%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("+%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
