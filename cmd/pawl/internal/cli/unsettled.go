package cli

import (
	"context"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/spf13/cobra"
)

const unsettledLong = `Lists the calls whose effect nobody knows, of all runs of a store, the newest run first. Such a call stands

  in-doubt     its process died in the middle of it, or nobody heard the answer; the run is open
  external     the tool has started something whose result has not come
  told         it was settled as unknown: the model was told, somebody gave up, or the run was cancelled

A call comes off the list when somebody settles it, or when its tool returns after all. "settle RUN CALL --output TEXT"
records what became of it; the model is not told of one that stands "told".`

func (a *app) unsettledCommand() *cobra.Command {
	var opts pawl.UnsettledOptions
	cmd := &cobra.Command{
		Use:   "unsettled",
		Short: "List the calls whose effect nobody knows",
		Long:  unsettledLong,
		Args:  cobra.NoArgs,
		RunE:  a.do(func(cmd *cobra.Command, _ []string) (any, error) { return a.unsettled(cmd.Context(), &opts) }),
	}
	cmd.Flags().BoolVar(&opts.Open, "open", false, "only of runs that have not ended")
	return cmd
}

// unreadable is a run among the calls, because it cannot be read.
type unreadable struct {
	Run   string `json:"run"`
	Error string `json:"error"`
}

func (a *app) unsettled(ctx context.Context, opts *pawl.UnsettledOptions) (any, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	list, rows := []any{}, [][]string{}
	first := ""              // run
	var next *pawl.Unsettled // the first call that can be decided
	for u, err := range (&pawl.Runner{Store: st}).Unsettled(ctx, opts) {
		if first == "" {
			first = u.Run
		}
		switch {
		case err != nil && u.Run == "":
			return nil, err
		case err != nil:
			list = append(list, unreadable{Run: u.Run, Error: err.Error()})
			rows = append(rows, []string{printable(u.Run), "unreadable"})
			continue
		case u.Interruption != "" && next == nil:
			next = &u
		}
		list = append(list, u)
		rows = append(rows, []string{printable(u.Run), string(u.Standing), u.Call, oneLine(printable(callText(u.Tool, u.Arguments)), 60),
			u.Since.Local().Format(time.DateTime), u.Key, oneLine(printable(u.Why), 80)})
	}
	if len(list) == 0 {
		a.screen.line("The store has no such calls.")
		return list, nil
	}
	a.screen.columns([]string{"run", "it is", "call", "of", "since", "key", "why"}, rows)
	a.screen.line("")
	a.screen.command("look", a.command("show", first))
	if next != nil {
		a.screen.command("happened", a.command("settle", next.Run, next.Interruption, "--output", "what it returned"))
	}
	return list, nil
}
