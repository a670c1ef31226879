package cli

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/sqlstore/pgstore"
)

// A store that is away is no run that failed, and is shown once, until a run says that it is back.
func TestStoreAway(t *testing.T) {
	var out bytes.Buffer
	w := &watch{app: &app{screen: newScreen(&out, false)}, ctx: t.Context()}
	away := pawl.RecoveredRun{Err: fmt.Errorf("pawl: asking for the next run: %w: connection refused", pgstore.ErrUnreachable)}
	w.tell(away)
	w.tell(pawl.RecoveredRun{Err: fmt.Errorf("pawl: listing the open runs: %w: broken pipe", pgstore.ErrUnreachable)})
	w.tell(pawl.RecoveredRun{Run: "r", Result: &pawl.Result{Status: pawl.StatusFinished, FinalOutput: "done"}})
	w.tell(away)
	want := "the store  the database server cannot be reached; it is asked again\nr  finished  done\nthe store  the database server cannot be reached; it is asked again\n"
	if out.String() != want || w.done != (worked{Finished: 1}) {
		t.Errorf("it printed %q, and counts %+v", out.String(), w.done)
	}
}
