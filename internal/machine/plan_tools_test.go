package machine

import (
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// A tool that was added since the request is the plan's own [M7.3].
func TestM7_3_ThePlanAddsTools(t *testing.T) {
	s := prepared(t, "start", "tool look").given("respond\ncall c1 pay {}")
	d, _, _ := item.DigestArguments("{}")
	plan := &journal.Planned{N: 1, Calls: []journal.PlannedCall{{Tool: 1, Digest: d}}}
	if err := s.m.Check(journal.Fact{Body: plan}); err == nil {
		t.Error("a tool behind the manifest's is accepted")
	}
	plan.Tools = []journal.ToolSpec{{Name: "pay", Identity: "local/pay", Class: journal.Idempotent}}
	if err := s.m.Check(journal.Fact{Body: plan}); err != nil {
		t.Fatal(err)
	}
	s.m.Step(journal.Fact{Time: 1, Body: plan})
	rd := s.m.Ready(2)
	if len(rd.Effects) != 1 || rd.Effects[0].ID.String() != "t1.0.1" {
		t.Fatalf("effects %v", rd.Effects)
	}
	info, ok := s.m.Call(rd.Effects[0].ID)
	if !ok || info.Spec != plan.Tools[0] {
		t.Errorf("the call's tool is %+v", info.Spec)
	}
}
