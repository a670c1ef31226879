package temporal

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

func TestPriority(t *testing.T) {
	for _, c := range []struct {
		of    int
		queue string
		want  sdk.Priority
	}{
		{0, "", sdk.Priority{}},
		{1, "acme", sdk.Priority{PriorityKey: 2, FairnessKey: "acme"}},
		{2, "", sdk.Priority{PriorityKey: 1}},
		{math.MaxInt, "", sdk.Priority{PriorityKey: 1}},
		{-1, "", sdk.Priority{PriorityKey: 4}},
		{-2, "", sdk.Priority{PriorityKey: 5}},
		{math.MinInt, "", sdk.Priority{PriorityKey: 5}},
		{0, strings.Repeat("x", 64), sdk.Priority{FairnessKey: strings.Repeat("x", 64)}},
		{0, strings.Repeat("x", 65), sdk.Priority{FairnessKey: "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9"}},
	} {
		if diff := cmp.Diff(c.want, priority(c.of, c.queue)); diff != "" {
			t.Errorf("%d %q: %s", c.of, c.queue, diff)
		}
	}
}

// The activities of a run have its priority, and its queue as the key of fairness [S23.1].
func TestActivitiesHavePriority(t *testing.T) {
	agent := &pawl.Agent{Name: "support", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("done"))}
	s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{}).start()
	if _, err := s.Run(t.Context(), agent, pawl.UserText("go"), &pawl.RunOptions{ID: s.run(), Queue: "acme", Priority: 1}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for it := s.client.GetWorkflowHistory(t.Context(), s.run(), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		ev, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		if a := ev.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == performName {
			seen = append(seen, a.GetPriority().GetFairnessKey(), string(rune('0'+a.GetPriority().GetPriorityKey())))
		}
	}
	if diff := cmp.Diff([]string{"acme", "2", "acme", "2", "acme", "2", "acme", "2"}, seen); diff != "" {
		t.Error(diff)
	}
}
