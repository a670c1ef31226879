package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
)

const pruneLong = `Deletes the runs that have ended and to which nothing happened for a while, with their ledgers and inboxes, for good.
Open runs and sessions stay.`

// pruned is what prune did.
type pruned struct {
	Runs int `json:"runs"`
}

func (a *app) pruneCommand() *cobra.Command {
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete runs that have ended",
		Long:  pruneLong,
		Args:  cobra.NoArgs,
		RunE: a.do(func(cmd *cobra.Command, _ []string) (any, error) {
			if older <= 0 {
				return nil, &usageError{errors.New("--older is needed, for example --older 720h: nothing happened to the runs for that long")}
			}
			return a.prune(cmd.Context(), older)
		}),
	}
	cmd.Flags().DurationVar(&older, "older", 0, "only runs to which nothing happened for so long")
	return cmd
}

func (a *app) prune(ctx context.Context, older time.Duration) (any, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	n, err := st.Prune(ctx, time.Now().Add(-older))
	if err != nil {
		return nil, err
	}
	a.screen.line("%d runs are deleted.", n)
	return pruned{n}, nil
}
