package sqlstore

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// A turn with one call costs two commits if the session is in the store, and three if it is elsewhere: the response with its
// plan and the call's intent; the outcome with the batch, or with the batch's intent; and that the batch is there.
func TestCommitsOfATurn(t *testing.T) {
	for _, c := range []struct {
		name    string
		session func(*Store) session.Session
		want    int
	}{
		{"no session", func(*Store) session.Session { return nil }, 2},
		{"session in the store", func(s *Store) session.Session { return s.Session("c") }, 2},
		{"session elsewhere", func(*Store) session.Session { return session.NewMemory("c") }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := func(turns int) int {
				path := filepath.Join(t.TempDir(), "pawl.db")
				s := open(t, path, nil)
				runTurns(t, s, c.session(s), turns)
				return commits(t, path)
			}
			const more = 10
			if got := of(2+more) - of(2); got != more*c.want {
				t.Errorf("%d turns more cost %d commits, want %d each", more, got, c.want)
			}
		})
	}
}

// runTurns runs an agent that calls a tool in each of so many turns.
func runTurns(t *testing.T, s *Store, sess session.Session, turns int) {
	t.Helper()
	pay := pawl.NewTool(pawl.Func[struct{}, string]{Name: "pay", Run: func(context.Context, *pawl.Call, struct{}) (string, error) { return "paid", nil }})
	var steps []pawltest.ScriptedStep
	for n := range turns {
		steps = append(steps, pawltest.ScriptedItems(item.FunctionCallItem("", fmt.Sprint("c", n), "pay", "{}")))
	}
	agent := &pawl.Agent{Name: "A", Tools: []pawl.Tool{pay}, Model: pawltest.NewScriptedModel(append(steps, pawltest.ScriptedText("done"))...)}
	r := &pawl.Runner{Store: s}
	if _, err := r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{MaxTurns: -1, Session: sess}); err != nil {
		t.Fatal(err)
	}
}
