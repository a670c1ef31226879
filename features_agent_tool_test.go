package pawl_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

var agentToolFeatures = []feature{
	{"A1.20", TestAgentTool},
	{"A1.21", func(t *testing.T) { // the name and the description
		a := &pawl.Agent{Name: "Billing Desk 2"}
		tool := pawl.AgentTool(a, nil)
		if name, other := tool.Name(), pawl.AgentTool(a, &pawl.AgentToolOptions{Name: "bill"}).Name(); name != "billing_desk_2" || other != "bill" {
			t.Errorf("%q, %q", name, other)
		}
	}},
	{"A1.22", TestAgentToolLastText},
	{"A1.23", func(t *testing.T) { // a turn offers it or not
		m := newScript(calling(ask("a", "go")), says("done"))
		agent := withBilling(m, newScript(says("billed")), &pawl.AgentToolOptions{Enabled: func(_ context.Context, rc *pawl.RunContext) (bool, error) { return rc.Turn == 1, nil }})
		must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
		if calls := m.calls(); !slices.Equal(calls[0].Tools, []string{"billing_desk"}) || calls[1].Tools != nil {
			t.Errorf("offered: %v, %v", calls[0].Tools, calls[1].Tools)
		}
	}},
	{"A1.24", TestNestedEvents},
	{"A1.25", TestAgentToolOptions},
	{"A1.26", TestAgentToolFails},
	{"A1.27", TestAgentToolApproved},
	{"A1.28", TestAgentFunc},
	{"A1.29", TestNestedApprovals},
	{"A1.30", TestNestedApprovals},
	{"A1.31", func(t *testing.T) { // two states of one result are decided for themselves
		for _, approve := range []bool{true, false} {
			var e effects
			agent := withBilling(newScript(calling(ask("a", "go")), says("done")), newScript(calling(fc("x", "charge", `{"cents":5}`)), says("billed")), nil, charging("charge", &e, asking))
			res := must(t)(new(pawl.Runner).Run(t.Context(), agent, pawl.UserText("go"), nil))
			one, other := res.State(), res.State()
			if err := one.Approve(res.Interruptions[0], "ann"); err != nil {
				t.Fatal(err)
			}
			if err := other.Reject(res.Interruptions[0], "bob", ""); err != nil {
				t.Fatal(err)
			}
			if approve {
				must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, one), nil))
				e.want(t, "charge 5")
			} else {
				must(t)(new(pawl.Runner).Resume(t.Context(), agent, viaJSON(t, other), nil))
				e.want(t)
			}
		}
	}},
	{"A1.32", func(t *testing.T) { // what a nested run costs after a resume counts, once
		var e effects
		agent := withBilling(newScript(calling(ask("a", "go")), says("done")), newScript(calling(fc("x", "charge", `{"cents":5}`)), says("billed")), nil, charging("charge", &e, asking))
		r := &pawl.Runner{Store: journal.NewMemory()}
		res := must(t)(r.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: "r"}))
		before := res.Usage.Requests
		if err := r.Decide(t.Context(), "r", pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
			t.Fatal(err)
		}
		res = must(t)(r.Resume(t.Context(), agent, pawl.RunID("r"), nil))
		if diff := cmp.Diff([]int64{2, 4, 20}, []int64{before, res.Usage.Requests, res.Usage.Total}); diff != "" {
			t.Error(diff)
		}
	}},
}
