package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/owner"
	"github.com/pawl-agents/pawl/journal"
	"github.com/spf13/cobra"
)

const runsLong = `Lists the runs of a store, the newest first. The status is one of

  running      a process drives the run now
  queued       it was submitted, and no worker has begun it
  interrupted  no process drives it, and it is not at its end: resume it
  waiting      it waits for a decision
  decided      it waited, the decision is made: resume it
  failed       something failed; resume it to try again
  finished, cancelled`

func (a *app) runsCommand() *cobra.Command {
	var q journal.Query
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the runs of a store",
		Long:  runsLong,
		Args:  cobra.NoArgs,
		RunE: a.do(func(cmd *cobra.Command, _ []string) (any, error) {
			if q.Limit < 1 {
				return nil, &usageError{fmt.Errorf("--limit %d: it must be positive", q.Limit)}
			}
			return a.runs(cmd.Context(), q)
		}),
	}
	cmd.Flags().BoolVar(&q.Open, "open", false, "only runs that have not ended")
	cmd.Flags().IntVar(&q.Limit, "limit", 20, "list at most so many `runs`")
	return cmd
}

// listed is a run in a listing.
type listed struct {
	Run     string `json:"run"`
	Status  string `json:"status"`
	Agent   string `json:"agent"`
	Session string `json:"session,omitempty"`
	Queue   string `json:"queue,omitempty"`
	// Priority is what workers choose by.
	Priority int       `json:"priority,omitempty"`
	Facts    uint64    `json:"facts"`
	Started  time.Time `json:"started"`
	Updated  time.Time `json:"updated"`
	// Error is why the run cannot be read.
	Error string `json:"error,omitempty"`
}

func (a *app) runs(ctx context.Context, q journal.Query) (any, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	infos, err := st.List(ctx, q)
	if err != nil {
		return nil, err
	}
	list := make([]listed, len(infos))
	rows := make([][]string, len(infos))
	for i, info := range infos {
		list[i] = describe(ctx, st, info)
		l := list[i]
		rows[i] = []string{printable(l.Run), l.Status, printable(l.Agent), fmt.Sprint(l.Facts), l.Updated.Local().Format(time.DateTime)}
	}
	if len(list) == 0 {
		a.screen.line("The store has no such runs.")
	} else {
		a.screen.columns([]string{"run", "status", "agent", "facts", "last change"}, rows)
		a.screen.line("")
		a.screen.command("look", a.command("show", list[0].Run))
	}
	return list, nil
}

// describe folds a run far enough to say how it stands. A run that cannot be read is listed all the same.
func describe(ctx context.Context, st store, info journal.RunInfo) listed {
	l := listed{Run: info.Run, Session: info.Session, Queue: info.Queue, Priority: info.Priority, Facts: info.Head, Started: info.Created, Updated: info.Updated}
	state, err := (&pawl.Runner{Store: st}).State(ctx, info.Run)
	if err == nil {
		l.Agent = state.AgentKey()
		l.Status, err = standing(ctx, st, info, state)
	}
	if err != nil {
		l.Status, l.Error = "unreadable", err.Error()
	}
	return l
}

// standing is the status of a run, told apart by who drives it and what was decided.
func standing(ctx context.Context, st store, info journal.RunInfo, state *pawl.RunState) (string, error) {
	switch status := state.Status(); status {
	case pawl.StatusRunning:
		if info.Head == 1 {
			return "queued", nil
		}
		if info.Holder == nil || owner.Gone(info.Holder.Owner) {
			return "interrupted", nil
		}
		return string(status), nil
	case pawl.StatusWaiting:
		entries, err := st.Inbox(ctx, info.Run)
		if len(entries) > 0 {
			return "decided", err
		}
		return string(status), err
	default:
		return string(status), nil
	}
}
