package machine

import (
	"slices"
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

// An approval makes its request one that is not made twice, until a response has come.
func TestM5_11_WhatIsNotRepeatable(t *testing.T) {
	s := planned(t, "start", "tool look", "asks m1 crm drop {}")
	s.then("decide 1.0#0 approve", "append decided 1.0#0 approve\nappend settled t1.0.0 decreed yes m1\nsync\nstart p2.0.1 upto 3\nstatus running")
	s.then("prepared", "append prepared turn 2 upto 3 as turn 1\nsync\nstart m2.0.1 [0,3)")
	s.then("claim", "append claimed epoch 1\nstart r2.0.1 about m2.0.1 [0,3)")
	s.refused(notDueText, "intended m2.0.2 upto=3")
	s.then("fail r2.0.1", "append failed r2.0.1 error\nsync\nstatus failed")
	s.then("resume", "append resumed\nstart r2.0.1 about m2.0.1 [0,3)\nstatus running")
	s.then("absent m2.0.1", "append absent m2.0.1\nappend intended m2.0.2 upto 3\nsync\nstart m2.0.2 [0,3)")
	s.then("fail m2.0.2 retry-at=2000", "append failed m2.0.2 error retry at 2000\nsync\nstart w2.0.2 until 2000") // refused for sure
	s.given("wait 1s")
	s.then("fired w2.0.2", "append fired w2.0.2\nappend intended m2.0.3 upto 3\nsync\nstart m2.0.3 [0,3)")
	s.then("fail m2.0.3 unknown retry-at=2000", "append failed m2.0.3 error unknown retry at 2000\nsync\nstart r2.0.3 about m2.0.3 [0,3)")
	s.then("respond\ncall c1 look {}", "append responded m2.0.3\nsync\nstart c2.0.1")
	s.given("plan", "settle t2.0.1 done | found")
	s.then("prepared", "append prepared turn 3 upto 5 as turn 1\nstart m3.0.1 [0,5)")
	s.then("claim", "append claimed epoch 2\nappend intended m3.0.2 upto 5\nstart m3.0.2 [0,5)")

	const ask, yes, no = "asks m1 crm drop {}", "yes m1", "no m1 never"
	for _, tt := range []struct {
		input string
		once  bool
	}{
		{ask + "\n" + yes, true},
		{ask + "\n" + yes + "\nuser go on", true},
		{ask + "\nasks m2 crm drop {}\n" + yes + "\nno m2", true},
		{ask + "\n" + no, false},
		{ask + "\n" + yes + "\nmessage dropped", false},
		{ask + "\n" + yes + "\nmessage dropped\nuser and now?", false},
		{"user the text mcp_approval_response", false},
	} {
		s := newScript(t).given("start\n"+tt.input, "prepared")
		if got := s.m.Unrepeatable(); got != tt.once {
			t.Errorf("%q: unrepeatable %v", tt.input, got)
		}
	}
	r := planned(t, "start", "", ask).given("decide 1.0#0 reject", "prepared")
	if r.m.Unrepeatable() {
		t.Error("nothing is done when the answer is no")
	}
	a := planned(t, "start", "", "message hm\n"+ask).given("decide 1.1#0 approve", "added | user and?", "prepared")
	if !a.m.Unrepeatable() {
		t.Error("input behind the approval")
	}
}

func TestM7_10_HostedCallsHaveHostedTools(t *testing.T) {
	s := prepared(t, "start unique", "tool look").given("respond\nasks m1 crm look {}\ncall c1 look {}")
	s.refused(notDueText, "plan\n0 tool 0", "plan\n0 tool -1", "plan\n1 tool 1", "plan\n0 unreadable", "plan\n0 output yes\n0 allow")
	for _, spoil := range []func(*journal.ToolSpec){
		func(t *journal.ToolSpec) { t.Agent = "b" },
		func(t *journal.ToolSpec) { t.Handoff = "b" },
		func(t *journal.ToolSpec) { t.Guarded = true },
	} {
		f := s.fact("plan")
		spoil(&f.Body.(*journal.Planned).Tools[0])
		if err := s.m.Check(f); err == nil {
			t.Errorf("accepted: %+v", f.Body.(*journal.Planned).Tools[0])
		}
		turn := prepared(t, "start", "tool look").given("respond\ncall c1 look {}", "plan", "settle t1.0.1 done")
		f = turn.fact("prepared\ntool look")
		man := f.Body.(*journal.Prepared).Manifest
		man.Tools[0].Hosted = true
		if err := turn.m.Check(f); err != nil {
			t.Error(err)
		}
		if spoil(&man.Tools[0]); turn.m.Check(f) == nil {
			t.Errorf("accepted: %+v", man.Tools[0])
		}
	}
	s.given("plan", "settle t1.1.1 done", "decide 1.0#0 reject no", "prepared", "respond\nasks m1 crm look {}")
	s.refused(notDueText, "plan\n0 ask")
	s.then("plan", "append planned 2 0:output\nstart p3.0.1 upto 7") // the record answers
	s.then("request 6 7", "6 no m1 (rejected)")
}

func TestM8_24_AHostedCallIsAnswered(t *testing.T) {
	s := planned(t, "start parallel=1", "tool look", "call c1 look {}\nasks m1 crm drop {\"id\":7}\nasks m2 crm drop {\"id\":8}\nasks m3 crm drop {\"id\":9}")
	s.then("decide 1.1#0 approve", "append decided 1.1#0 approve\nappend settled t1.1.0 decreed yes m1\nsync")
	s.then("decide 1.2#0 reject | not this one", "append decided 1.2#0 reject\nappend settled t1.2.0 rejected no m2 not this one\nsync")
	if startable := slices.Collect(s.m.Startable()); len(startable) > 0 {
		t.Errorf("%v may start", startable)
	}
	s.refused(notDueText, "intended t1.3.1", "settle t1.3.0 decreed | x", "settle t1.3.1 done | x", "settle t1.1.1 done | x")
	s.then("cancel", "append cancelled\nappend settled t1.3.0 dropped no m3 (cancelled)\nsync")

	p := prepared(t, "start", "tool look").given("respond\nasks m1 crm drop {}\nasks m2 crm drop {}")
	p.then("plan\n0 allow\n1 deny", "append planned 1 0 1:deny\nappend settled t1.0.0 decreed yes m1\nappend settled t1.1.0 rejected no m2 (rejected)\nsync\nstart p2.0.1 upto 5")

	// The server may act on an approval, so it waits for the guardrails on the input.
	g := newScript(t).given("start guards=parallel", "prepared", "respond\nasks m1 crm drop {}", "plan\n0 allow")
	g.refused(notDueText, "settle t1.0.0 decreed | x")
	g.then("checked g0.1.1", "append checked g0.1.1\nappend settled t1.0.0 decreed yes m1\nsync\nstart p2.0.1 upto 3")
}

func TestM9_21_InterruptionsOfHostedCalls(t *testing.T) {
	s := planned(t, "start", "tool drop ask", "asks m1 crm drop {\"id\":7}\ncall c1 drop {}\nasks m2 crm drop {\"id\":8}\nasks m3 - drop {}")
	in := s.m.Interruptions()
	if len(in) != 4 || in[0].Server != "crm" || in[0].Key != "" || in[0].Tool != "drop" || in[0].CallID != "m1" || in[0].Arguments != `{"id":7}` || in[1].Server != "" || in[1].Key == "" {
		t.Errorf("%+v", in)
	}
	s.refused(verdictText, "decide 1.0#0 approve args={}", "decide 1.0#0 settle", "decide 1.3#0 approve sticky")
	// A sticky decision is about the tool of that server, not about a function of that name.
	s.then("decide 1.0#0 approve sticky", "append decided 1.0#0 approve sticky\nappend settled t1.0.0 decreed yes m1\nappend settled t1.2.0 decreed yes m2\nsync")
	s.then("interruptions", "approval 1.1#0 c1 drop {}\napproval 1.3#0 m3 drop {}")
	s.given("decide 1.1#0 reject", "decide 1.3#0 reject", "prepared", "respond\nasks m4 crm drop {}\nasks m5 erp drop {}")
	s.then("plan", "append planned 2 0:ask 1:ask\nappend settled t2.0.0 decreed yes m4\nsync\nstatus waiting")
}
