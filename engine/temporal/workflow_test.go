package temporal

import (
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// begun is a run in a store, claimed for the engine, that no workflow has.
func begun(t *testing.T, r *pawl.Runner, agent *pawl.Agent, run string) {
	t.Helper()
	r.Engine = unstarted{New(nil, Options{})}
	ctx, cancel := contextFor(t, 200*time.Millisecond)
	defer cancel()
	_, err := r.Run(ctx, agent, pawl.UserText("go"), &pawl.RunOptions{ID: run})
	if err == nil {
		t.Fatal("the run ended without a workflow")
	}
	r.Engine = nil
}

func TestWorkflow(t *testing.T) {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "c1", "look", `{}`)),
		pawltest.ScriptedText("done"))
	looks := 0
	agent := &pawl.Agent{Name: "support", Model: m, Tools: []pawl.Tool{looking(&looks)}}
	r := &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}
	begun(t, r, agent, "r")

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet)
	env := suite.NewTestWorkflowEnvironment()
	a := testActivities(t, r)
	env.RegisterWorkflowWithOptions(a.timing.runWorkflow, workflow.RegisterOptions{Name: workflowName})
	registerActivities(env, a)
	env.ExecuteWorkflow(workflowName, runInput{Run: "r"})
	if err := env.GetWorkflowError(); err != nil || !env.IsWorkflowCompleted() {
		t.Fatalf("completed: %v, %v", env.IsWorkflowCompleted(), err)
	}
	s, err := r.State(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	if res := s.Result(); res.Status != pawl.StatusFinished || res.FinalOutput != "done" || looks != 1 {
		t.Errorf("result %+v after %d looks", res, looks)
	}
}
