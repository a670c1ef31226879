package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/spf13/cobra"
)

const resumeLong = `Goes on with a run of the demo where it was: after a decision, after Ctrl-C, after kill -9, after a failure.
RUN is the run's id or a beginning of it that no other run has.

This command knows the demo's agent only. A run of another program is refused, untouched: resume it from that
program, with Runner.Resume and the run's id.`

func (a *app) resumeCommand() *cobra.Command {
	var o driveOptions
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run of the demo",
		Long:  resumeLong,
		Args:  cobra.ExactArgs(1),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			if o.maxTurns < 0 {
				return nil, &usageError{fmt.Errorf("--max-turns %d: it must not be negative", o.maxTurns)}
			}
			if o.baseURL != "" {
				if err := checkURL(o.baseURL); err != nil {
					return nil, err
				}
			}
			return a.resume(cmd.Context(), args[0], o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().IntVar(&o.maxTurns, "max-turns", 0, "let the run have so many `turns` in all")
	return cmd
}

// driveOptions are the flags of commands that drive a run.
type driveOptions struct {
	yes      bool
	baseURL  string
	maxTurns int
	killAt   killFlag
}

func (o *driveOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "approve whatever waits, instead of asking")
	cmd.Flags().StringVar(&o.baseURL, "base-url", "", "`URL` of a server that speaks the Responses API, instead of OpenAI's")
	cmd.Flags().Var(&o.killAt, "kill-at", "for tests: die of SIGKILL beside a durable write, for example after:3 or before:mail")
	cmd.Flags().Lookup("kill-at").Hidden = true
}

// checkURL refuses the address of a real API that is none.
func checkURL(url string) error {
	if err := (openai.Options{BaseURL: url}).Check(); err != nil {
		return &usageError{errors.New(strings.TrimPrefix(err.Error(), "pawl: openai: "))}
	}
	return nil
}

func (a *app) resume(ctx context.Context, arg string, o driveOptions) (any, error) {
	state, err := a.demoRun(ctx, arg)
	if err != nil {
		return nil, err
	}
	run := state.Run()
	w, err := demo.Open(ctx, filepath.Dir(a.storePath()), o.killAt.kill())
	if err != nil {
		return nil, err
	}
	defer w.Close()
	ticket, err := w.Shop.Ticket(ctx, run)
	if err != nil {
		return nil, err
	}
	d, err := a.desk(w, ticket, o, demo.DeskOptions{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if state.Status() == pawl.StatusFinished {
		a.screen.head("%s has ended; nothing is left to do", run)
	} else {
		a.screen.head("%s goes on", run)
	}
	res, err := a.goOn(ctx, d, o.maxTurns, o.yes)
	if errors.Is(err, demo.ErrInjected) {
		return orNil(a.recover(ctx, d, o.yes, err))
	}
	return orNil(a.conclude(ctx, d, res, err))
}

// orNil keeps a nil report from becoming a value that is not nil.
func orNil(r *runReport, err error) (any, error) {
	if r == nil {
		return nil, err
	}
	return r, err
}

// demoRun finds a run and makes sure that it is the demo's.
func (a *app) demoRun(ctx context.Context, arg string) (*pawl.RunState, error) {
	if a.isDatabase() {
		return nil, &usageError{errors.New("--store is a database, which the demo has no runs in; resume a run with the program that it is of")}
	}
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	run, err := findRun(ctx, st, arg)
	if err != nil {
		return nil, err
	}
	state, err := (&pawl.Runner{Store: st}).State(ctx, run)
	if err != nil {
		return nil, err
	}
	if key := state.AgentKey(); key != demo.AgentKey {
		return nil, &hintedError{err: fmt.Errorf("%w: run %s is of the agent %q, which belongs to another program; resume it from there, "+
			"with Runner.Resume(ctx, agent, pawl.RunID(%q), nil)", pawl.ErrUnknownAgent, run, key, run)}
	}
	return state, nil
}

// openAIURL is the base URL of OpenAI's own service.
const openAIURL = "https://api.openai.com/v1"

// api says which server a real model is on, and whether there is one.
func api(baseURL string) (url string, ok bool) {
	key := os.Getenv("OPENAI_API_KEY")
	if baseURL == "" && key == "" {
		return "", false
	}
	return cmp.Or(baseURL, os.Getenv("OPENAI_BASE_URL"), openAIURL), true
}

// desk makes what drives the ticket's run. The key goes only to the server that this invocation names, never to
// one that a file names.
func (a *app) desk(w *demo.World, t *demo.Ticket, o driveOptions, opts demo.DeskOptions) (*demo.Desk, error) {
	if !t.Bundled() {
		url, ok := api(o.baseURL)
		if !ok || url != t.BaseURL {
			how := a.command("resume", t.Run(), "--base-url", t.BaseURL)
			if t.BaseURL == openAIURL {
				how = "OPENAI_API_KEY=... " + a.command("resume", t.Run())
			}
			return nil, &hintedError{err: fmt.Errorf("run %s talks to the model at %s", t.Run(), t.BaseURL), hints: []string{how}}
		}
		opts.Client = openai.FromEnv()
	}
	return w.Desk(t, opts)
}
