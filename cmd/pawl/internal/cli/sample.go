package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-agents/pawl/journal"
	"github.com/spf13/cobra"
)

const sampleLong = `Writes a store with a run of the demo in every state that a run can be in, to look at and to try the other commands on.
The runs are made by this program in processes of its own, some of which are killed on the way. It needs no key and no network.`

// scene is how a run comes into a state.
type scene struct {
	what string
	// demo are the flags of the demo that begins the run; then are commands after that, with the run's id behind their
	// first word.
	demo []string
	then [][]string
	// try are the commands to try, likewise.
	try [][]string
}

// scenes are the states, in the order in which a run may go through them.
func scenes() []scene {
	killed := func(at string) []string { return []string{"--yes", "--kill-at", at} }
	return []scene{
		{what: "waits for an approval", try: [][]string{{"approve"}, {"reject", "--message", "why not"}, {"resume"}}},
		{what: "is approved, and nobody has gone on with it", then: [][]string{{"approve", "--by", "ada"}}, try: [][]string{{"resume"}}},
		{what: "was left by a process that was killed right after a refund", demo: killed("after:refund"), try: [][]string{{"resume", "--yes"}}},
		{what: "is in doubt: a process was killed right after a mail, which has no key", demo: killed("after:mail"), then: [][]string{{"resume"}},
			try: [][]string{{"settle", "--output", "sent"}, {"settle", "--retry"}, {"settle", "--give-up"}}},
		{what: "failed: nobody listens where its model should be", demo: []string{"--base-url", nobody}, try: [][]string{{"resume", "--base-url", nobody}}},
		{what: "waits, and the server holds its conversation", demo: []string{"--fault", "unknown-tool"}, try: [][]string{{"resume", "--yes"}}},
		{what: "finished", demo: []string{"--yes"}},
		{what: "finished after a refund was rejected", then: [][]string{{"reject", "--message", "the photo is missing", "--by", "ada"}, {"resume"}}},
		{what: "was cancelled while it waited", then: [][]string{{cancelWord}}},
	}
}

// nobody is an address that answers nothing: port 1 needs more rights than a model's server has.
const nobody = "http://127.0.0.1:1/v1"

// cancelWord stands among the commands for a cancellation, for which there is no command.
const cancelWord = "cancel"

// sampled is a run of a sample.
type sampled struct {
	Run  string   `json:"run"`
	What string   `json:"what"`
	Try  []string `json:"try"`
}

func (a *app) sampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sample DIR",
		Short: "Write a store with a run in every state, to look at",
		Long:  sampleLong,
		Args:  cobra.ExactArgs(1),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			if cmd.Flags().Changed("store") {
				return nil, &usageError{errors.New("--store does not go with sample, which makes the store that it is told")}
			}
			a.store = args[0]
			if likeURL.MatchString(a.store) {
				return nil, &usageError{fmt.Errorf("%s is a URL; sample wants a new directory", a.storeName())}
			}
			return a.sample(cmd.Context())
		}),
	}
}

// sample makes the runs and says what they are.
func (a *app) sample(ctx context.Context) (any, error) {
	if entries, err := os.ReadDir(a.store); err == nil && len(entries) > 0 {
		return nil, &usageError{fmt.Errorf("%s is not empty; sample wants a new directory", a.store)}
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, &usageError{fmt.Errorf("%s cannot be the sample's directory: %w", a.store, err)}
	}
	a.screen.head("A sample of runs in %s", filepath.Join(a.store, demo.StoreFile))
	var list []sampled
	for _, sc := range scenes() {
		run, err := a.play(ctx, sc)
		if err != nil {
			return list, err
		}
		r := sampled{Run: run, What: sc.what}
		for _, words := range append(sc.try, []string{"show"}) {
			r.Try = append(r.Try, a.command(about(run, words)...))
		}
		list = append(list, r)
		a.screen.line("")
		a.screen.line("  %s  %s", a.screen.styled(bold, run), sc.what)
		for _, line := range r.Try {
			a.screen.command("", line)
		}
	}
	a.screen.line("")
	a.screen.command("all", a.command("runs"))
	return list, nil
}

// about puts a run behind the first word of a command.
func about(run string, words []string) []string { return slices.Insert(slices.Clone(words), 1, run) }

// play brings one run into its state.
func (a *app) play(ctx context.Context, sc scene) (run string, err error) {
	before, err := a.tickets(ctx)
	if err != nil {
		return "", err
	}
	if err := a.again(ctx, append([]string{"demo"}, sc.demo...)...); err != nil {
		return "", err
	}
	after, err := a.tickets(ctx)
	if err != nil {
		return "", err
	}
	after = slices.DeleteFunc(after, func(run string) bool { return slices.Contains(before, run) })
	if len(after) != 1 {
		return "", fmt.Errorf("the sample that %s has %d runs", sc.what, len(after))
	}
	for _, words := range sc.then {
		if words[0] == cancelWord {
			err = a.cancel(ctx, after[0])
		} else {
			err = a.again(ctx, about(after[0], words)...)
		}
		if err != nil {
			return "", err
		}
	}
	return after[0], nil
}

// tickets are the runs of the store, none if there is no store yet.
func (a *app) tickets(ctx context.Context) ([]string, error) {
	st, err := a.openStore(ctx)
	if errors.Is(err, errNoStore) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer st.Close()
	var list []string
	err = eachRun(ctx, st, journal.Query{}, func(info journal.RunInfo) bool {
		list = append(list, info.Run)
		return true
	})
	return list, err
}

// again runs this program in a process of its own. It may well fail, wait or be killed; only a command line that is
// wrong, or a store that cannot be used, is an error. It sees no key, so no scene asks a real model.
func (a *app) again(ctx context.Context, args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, exe, append(args, "--json", "--store", a.store)...)
	child.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "OPENAI_") })
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, a.errors
	err = child.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	switch exit.ExitCode() {
	case exitUsage, exitStore, exitRun:
		var doc struct {
			Error *failure `json:"error"`
		}
		_ = json.Unmarshal(out.Bytes(), &doc) // without it the exit code has to do
		return fmt.Errorf("%s: %w: %+v", strings.Join(args, " "), err, doc.Error)
	}
	return nil
}

// cancel cancels a run of the demo and carries that out.
func (a *app) cancel(ctx context.Context, run string) error {
	w, err := demo.Open(ctx, a.store, nil)
	if err != nil {
		return err
	}
	defer w.Close()
	ticket, err := w.Shop.Ticket(ctx, run)
	if err != nil {
		return err
	}
	d, err := w.Desk(ticket, demo.DeskOptions{})
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Runner.Cancel(ctx, run, "ada", "the customer has found the article"); err != nil {
		return err
	}
	if _, err := d.Runner.Resume(ctx, nil, pawl.RunID(run), nil); !errors.Is(err, pawl.ErrCancelled) {
		return err
	}
	return nil
}
