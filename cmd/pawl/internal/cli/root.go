package cli

import (
	"errors"
	"fmt"
	"runtime/debug"

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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(a.demoCommand(), a.runsCommand(), a.unsettledCommand(), a.showCommand(), a.approveCommand(), a.rejectCommand(), a.settleCommand(),
		a.resumeCommand(), a.auditCommand(), a.verifyCommand(), a.proveCommand(), a.sampleCommand())
	for _, cmd := range append(root.Commands(), root) {
		cmd.Args = usage(cmd.Args)
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

// usage makes what a check of the arguments refuses a usage error.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}

// do makes a command of a function that returns what --json prints as the result.
func (a *app) do(f func(cmd *cobra.Command, args []string) (any, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if a.json {
			a.screen.quiet()
			a.prompt = nil
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
