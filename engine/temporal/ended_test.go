package temporal

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// The id of a run that has ended is used up in its namespace, also if its store is gone: whoever begins another hears of it.
func TestIDUsedUp(t *testing.T) {
	agent := &pawl.Agent{Name: "support", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("done"))}
	s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{}).start()
	ctx, cancel := contextFor(t, time.Minute)
	defer cancel()
	if res, err := s.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: s.run()}); err != nil {
		t.Fatal(res, err)
	}
	anew := &pawl.Runner{Store: journal.NewMemory(), Agents: s.Agents, Engine: s.Engine}
	_, err := anew.Run(ctx, agent, pawl.UserText("pay"), &pawl.RunOptions{ID: s.run()})
	if stop, ok := errors.AsType[*pawl.EngineError](err); !ok || stop.Code != "workflow_ended" || !strings.Contains(stop.Text, "use another id") {
		t.Error(err)
	}
}
