package cli

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/audit"
	"github.com/spf13/cobra"
)

const auditLong = `Writes the ledger of a run as lines of JSON: one for each fact, with its record and what people look for beside
it (who decided what, when and why; calls with their keys), and as the last line the head, which stands for them all.
Every record is checked against its hash first; nothing is written if one is not what its hash says.

Keep the head where whoever can write the store cannot: a mail, a repository, a notary. "verify" and "prove" are worth
what the head is worth that they are given.`

func (a *app) auditCommand() *cobra.Command {
	headOnly := false
	cmd := &cobra.Command{
		Use:   "audit RUN",
		Short: "Write the ledger of a run as evidence",
		Long:  auditLong,
		Args:  cobra.ExactArgs(1),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			return a.withLedger(cmd.Context(), args[0], func(run string, records []journal.Record) (any, error) {
				return a.audit(run, records, headOnly)
			})
		}),
	}
	cmd.Flags().BoolVar(&headOnly, "head", false, "write only the head, to be kept elsewhere")
	return cmd
}

// audited is what --json prints of an audit.
type audited struct {
	Head  audit.Head        `json:"head"`
	Facts []json.RawMessage `json:"facts,omitempty"`
}

func (a *app) audit(run string, records []journal.Record, headOnly bool) (any, error) {
	lines, head, err := audit.Export(run, records)
	if err != nil {
		return nil, err
	}
	last := len(lines) - 1
	if headOnly {
		lines = lines[last:]
	}
	if a.json {
		return audited{Head: head, Facts: lines[:len(lines)-1]}, nil
	}
	return nil, audit.WriteExport(a.out, lines)
}

const verifyLong = `Says whether the ledger of a run is still the one whose head was kept: it may have grown, and nothing else. A ledger
that was edited, cut short, put in another order or replaced ends with exit code 6.

HEAD is a file with the line that "audit --head" wrote, or with a whole export, or the hash in it ("head").`

func (a *app) verifyCommand() *cobra.Command {
	var file, head string
	cmd := &cobra.Command{
		Use:   "verify [RUN]",
		Short: "Compare the ledger of a run with a head that was kept",
		Long:  verifyLong,
		Args:  cobra.MaximumNArgs(1),
		RunE: a.do(func(cmd *cobra.Command, args []string) (any, error) {
			if (len(args) == 1) == (file != "") {
				return nil, &usageError{errors.New("say what to verify: a RUN of the store, or an export with --file")}
			}
			anchor, err := readAnchor(head)
			if err != nil {
				return nil, err
			}
			var result any
			if file != "" {
				result, err = a.verifyFile(file, anchor)
			} else {
				result, err = a.withLedger(cmd.Context(), args[0], func(run string, records []journal.Record) (any, error) {
					return a.verify(run, records, anchor)
				})
			}
			// Damage by accident and by hand look alike.
			if errors.Is(err, journal.ErrCorrupt) && !errors.Is(err, audit.ErrMismatch) {
				err = fmt.Errorf("%w: %w", audit.ErrMismatch, err)
			}
			return result, err
		}),
	}
	cmd.Flags().StringVar(&head, "head", "", "the `HEAD` that was kept: a file, or the hash")
	cmd.Flags().StringVar(&file, "file", "", "verify an export instead of a run of the store (`FILE`)")
	return cmd
}

// readAnchor reads a head from a file, or as the hash itself.
func readAnchor(arg string) (audit.Anchor, error) {
	if arg == "" {
		return audit.Anchor{}, &usageError{errors.New("--head is missing: the head that was kept")}
	}
	if hash, err := audit.ParseHash(arg); err == nil {
		return audit.Anchor{Hash: hash}, nil
	}
	text, err := os.ReadFile(arg)
	if err != nil {
		return audit.Anchor{}, &usageError{fmt.Errorf("--head: it is neither a hash of 64 hexadecimal digits nor a file: %w", err)}
	}
	anchor, err := audit.ParseAnchor(text)
	if err != nil {
		return audit.Anchor{}, &usageError{fmt.Errorf("--head %s: %s", arg, strings.TrimPrefix(err.Error(), "pawl: "))}
	}
	return anchor, nil
}

// verified is what --json prints of a verification.
type verified struct {
	Run string `json:"run"`
	// Size is how many facts the head is of, Facts how many there are now.
	Size  uint64 `json:"size"`
	Facts int    `json:"facts"`
	Head  string `json:"head"`
}

func (a *app) verifyFile(file string, anchor audit.Anchor) (any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	run, records, err := audit.ReadExport(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return a.verify(run, records, anchor)
}

func (a *app) verify(run string, records []journal.Record, anchor audit.Anchor) (any, error) {
	head, err := audit.Verify(run, records, anchor)
	if err != nil {
		return nil, err
	}
	since := ""
	if n := uint64(len(records)) - head.Size; n > 0 {
		since = fmt.Sprintf(" Since then it has grown by %d.", n)
	}
	a.screen.line("The ledger of %s is the one of the head, %d facts.%s", printable(run), head.Size, since)
	return verified{Run: run, Size: head.Size, Facts: len(records), Head: hashText(head)}, nil
}

func hashText(h audit.Head) string {
	hash := h.Hash()
	return hex.EncodeToString(hash[:])
}

// withLedger opens the store, finds the run that the argument names, reads its ledger, and runs f.
func (a *app) withLedger(ctx context.Context, arg string, f func(run string, records []journal.Record) (any, error)) (any, error) {
	return a.withRun(ctx, arg, func(st store, run string) (any, error) {
		records, err := st.Read(ctx, run, 0)
		if err != nil {
			return nil, err
		}
		return f(run, records)
	})
}
