package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/audit"
	"github.com/spf13/cobra"
)

const proveLong = `Writes a proof of one call: the records of the response that made it, of its plan, of what was decided about it and
of what became of it, each with its path to the head. Anybody can check it without the store, with the program
pawl-verify and the head. Nothing else of the run is disclosed; a response and its plan are in it whole.

CALL is the call as "show" prints it (3.2), its call id, or the tool's name if the run has only one call of it.`

func (a *app) proveCommand() *cobra.Command {
	var out, head string
	cmd := &cobra.Command{
		Use:   "prove RUN CALL",
		Short: "Write a proof of what was decided about a call and what became of it",
		Long:  proveLong,
		Args:  cobra.ExactArgs(2),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			var anchor *audit.Anchor
			if cmd.Flags().Changed("head") {
				kept, err := readAnchor(head)
				if err != nil {
					return nil, err
				}
				anchor = &kept
			}
			return a.withLedger(cmd.Context(), args[0], func(run string, records []journal.Record) (any, error) {
				return a.prove(run, records, args[1], anchor, out)
			})
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "write the proof to a `FILE` instead of standard output")
	cmd.Flags().StringVar(&head, "head", "", "prove it against a `HEAD` that was kept, a file or the hash; the newest if absent")
	return cmd
}

// proven is what --json prints of a proof.
type proven struct {
	Run   string          `json:"run"`
	Call  string          `json:"call"`
	Tool  string          `json:"tool"`
	Facts int             `json:"facts"`
	Head  string          `json:"head"`
	Out   string          `json:"out,omitempty"`
	Proof json.RawMessage `json:"proof,omitempty"`
}

func (a *app) prove(run string, records []journal.Record, name string, anchor *audit.Anchor, out string) (any, error) {
	call, err := a.findCall(run, records, name)
	if err != nil {
		return nil, err
	}
	proof, err := audit.Prove(run, records, call.ID, anchor)
	if err != nil {
		return nil, err
	}
	text, err := proof.Document()
	if err != nil {
		return nil, err
	}
	head, err := audit.HeadOf(run, records[:proof.Size])
	if err != nil {
		return nil, err
	}
	r := proven{Run: run, Call: call.Name(), Tool: call.Tool, Facts: len(proof.Facts), Head: hashText(head), Out: out}
	if out == "" {
		r.Proof = text
		if !a.json {
			_, err = fmt.Fprintf(a.out, "%s\n", text)
		}
		return r, err
	}
	if err := os.WriteFile(out, append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	a.screen.line("%s proves what became of %s [%s] of %s, in %d facts.", out, printable(call.Tool), r.Call, printable(run), r.Facts)
	a.screen.command("check", a.self+"-verify "+quote(out)+" "+r.Head)
	return r, nil
}

// findCall finds the call that the command line means.
func (a *app) findCall(run string, records []journal.Record, name string) (audit.Call, error) {
	calls, err := audit.Calls(run, records)
	if err != nil {
		return audit.Call{}, err
	}
	at, _, _ := strings.Cut(name, "#")
	var found []audit.Call
	var hints []string
	for _, c := range calls {
		switch name {
		case c.CallID, c.Tool:
			found = append(found, c)
			hints = append(hints, a.command("prove", run, c.Name()))
		}
		if c.Name() == at {
			return c, nil
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return audit.Call{}, &hintedError{err: fmt.Errorf("%w: %q", audit.ErrNoCall, name), hints: []string{a.command("show", run)}}
	}
	return audit.Call{}, &hintedError{err: errSeveralCalls, hints: hints}
}
