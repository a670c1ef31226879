package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-agents/pawl/journal"
)

// endsWith is strings.HasSuffix; a reviewer who edited the arguments is mentioned before the tool's own output.
func endsWith(text, own string) bool { return strings.HasSuffix(text, own) }

// most is how many violations are explained; the rest are of the same kinds.
const most = 50

// explain writes a file about each run in which something is wrong: what is wrong, what was reported, its effects, and its
// ledger.
func (p *parent) explain(ctx context.Context, store journal.Driver) error {
	texts := map[string]*strings.Builder{}
	for i, v := range p.violations {
		if i == most {
			fmt.Fprintf(p.out, "chaos: and %d more\n", len(p.violations)-most)
		}
		if i < most {
			fmt.Fprintf(p.out, "chaos: violation: %s: %s\n", v.run, v.problem)
		}
		if texts[v.run] == nil {
			texts[v.run] = &strings.Builder{}
		}
		fmt.Fprintf(texts[v.run], "violation: %s\n", v.problem)
	}
	for _, j := range p.runs {
		text := texts[j.plan.Run]
		if text == nil {
			continue
		}
		plan, err := json.Marshal(j.plan)
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "\nseed %d, plan %s\n\n%s\n\n", p.o.seed, plan, strings.Join(j.history, "\n"))
		if lines, err := os.ReadFile(p.log.file(j.plan.Run)); err == nil {
			text.Write(lines)
		}
		records, err := store.Read(ctx, j.plan.Run, 0)
		if err != nil {
			return err
		}
		for _, rec := range records {
			fmt.Fprintf(text, "\n%s", journal.AppendRecordJSON(nil, &rec))
		}
		name := filepath.Join(p.o.dir, "violation-"+j.plan.Run+".txt")
		if err := os.WriteFile(name, []byte(text.String()+"\n"), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "chaos: see %s\n", name)
	}
	return nil
}
