package cli

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// defaultStore is where the demo keeps its files.
const defaultStore = "./pawl-demo"

const rootLong = `Pawl is a Go SDK for LLM agents whose runs never slip back. This command shows it at work and looks
after the runs in a store.

Start here; it needs no key and no network:

    %[1]s demo

An agent of a support desk looks up a customer in a small shop, wants to refund an order, and waits until you
approve. Kill it whenever you like: the run goes on where it was with "%[1]s resume RUN".`

const exitCodes = `
Exit codes (of the built binary; "go run" turns every one but 0 into 1):
  0    done
  1    something failed; the message says what, and how to go on
  2    the command line is wrong
  3    the run waits for a decision; the message has the commands that decide
  4    the store cannot be used: missing, not Pawl's, of a newer Pawl, damaged, locked, read-only
  5    the run cannot be used: unknown, another program's, decided already, driven elsewhere
  6    the ledger is not the one of the head: edited, cut short, put in another order, replaced
  130  interrupted; the run is safe and can be resumed

With --json every command prints one JSON object: "exit", and "result" or "error".
`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "pawl",
		Short:             "Agents whose runs never slip back",
		Long:              fmt.Sprintf(rootLong, a.self),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Version:           version(),
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&a.store, "store", defaultStore, "where the runs are: a `directory` with pawl.db in it, an SQLite file, or the URL of a PostgreSQL database")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON object instead of text")
	root.SetUsageTemplate(root.UsageTemplate() + exitCodes)
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		a.asked = cmd
		return &usageError{err}
	})
	root.AddCommand(a.demoCommand(), a.runsCommand(), a.unsettledCommand(), a.showCommand(), a.approveCommand(), a.rejectCommand(), a.settleCommand(),
		a.resumeCommand(), a.submitCommand(), a.workCommand(), a.pruneCommand(), a.auditCommand(), a.verifyCommand(), a.proveCommand(), a.sampleCommand())
	for _, cmd := range append(root.Commands(), root) {
		cmd.Args = a.usage(cmd.Args)
	}
	return root
}

// version is that of the module as the go command recorded it, and the Go it was built with.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version + " " + info.GoVersion
}

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usage makes what a check of the arguments refuses a usage error that says what the command takes.
func (a *app) usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		a.asked = cmd
		if err := check(cmd, args); err != nil {
			return &usageError{misused(cmd, args, err)}
		}
		return nil
	}
}

func misused(cmd *cobra.Command, args []string, err error) error {
	if !cmd.HasParent() {
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("%w; there is %s", err, strings.Join(near, ", "))
		}
		return err
	}
	_, takes, _ := strings.Cut(cmd.Use, " ")
	return fmt.Errorf("%s takes %s; %d were given", cmd.Name(), cmp.Or(takes, "no arguments"), len(args))
}

// help is the command line that explains the command that was asked for.
func (a *app) help() string {
	if a.asked == nil || !a.asked.HasParent() {
		return a.self + " help"
	}
	return a.self + " " + a.asked.Name() + " --help"
}

// do makes a command of a function that returns what --json prints as the result.
func (a *app) do(f func(cmd *cobra.Command, args []string) (any, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if a.json {
			a.screen.quiet()
			a.prompt = nil
		}
		if err := a.checkStore(); err != nil {
			return &outcome{err: err}
		}
		result, err := f(cmd, args)
		return &outcome{result: result, err: err}
	}
}

// outcome carries the result of a command to where it is printed.
type outcome struct {
	result any
	err    error
}

func (o *outcome) Error() string { return "outcome of a command" }

// split takes an outcome apart. Errors of the command line come as they are.
func split(err error) (result any, cause error) {
	var o *outcome
	if errors.As(err, &o) {
		return o.result, o.err
	}
	return nil, err
}
