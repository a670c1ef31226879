package machine

import (
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

func TestM7_1_ThePlanNamesEveryCall(t *testing.T) {
	s := prepared(t, "start", "tool look").given("respond\ncall c1 look {}\nmessage hm\ncall c2 look {}")
	s.refused(notDueText, "plan without-calls", "plan\n0 at 1", "plan\n2 at 0", "plan\n2 at 1", "plan n=2")
	s.given("plan").refused(notDueText, "plan")
}

func TestM7_2_PlacesAreReserved(t *testing.T) {
	s := planned(t, "start", "tool look", "call c1 look {}\ncall c1 look {}\ncall c2 look {}")
	s.then("history", `
0 user hello
1 call c1 look {}
2 dropped
3 call c2 look {}
4 reserved
5 reserved
settled 1, in the session 0`)
	s.given("settle t1.2.1 done | two", "settle t1.0.1 done | one")
	s.then("request 4 6", "4 output c1 one\n5 output c2 two")
}

func TestM7_3_ACallNamesATool(t *testing.T) {
	s := prepared(t, "start", "tool look").given("respond\ncall c1 look {}\ncall c2 nothing {}")
	s.refused(notDueText, "plan\n0 tool -1", "plan\n1 ask", "plan\n1 deny", "plan\n1 no-output", "plan\n0 tool 1")
	s.given("plan")
	c := prepared(t, "start", "tool look").given(`respond
raw {"type":"computer_call","call_id":"c1","action":{}}`)
	c.refused(notDueText, "plan", "plan\n0 tool 0", "plan without-calls")
	x := prepared(t, "start", "tool look").given(`respond
raw {"type":"custom_tool_call","call_id":"c1","name":"look","input":"free text"}`)
	x.then("plan", `
append planned 1 0
append intended t1.0.1 not after 601000
sync
start t1.0.1 key pawl_401017e1 not after 601000`)
	x.then("call t1.0.0", "true c1 free text by= attempt=1 edited=false")
}

func TestM7_4_PlannedOutputs(t *testing.T) {
	s := prepared(t, "start", "tool look").given("respond\ncall c1 look {}\ncall c2 look {\ncall c3 nothing {}")
	s.refused(notDueText, "plan\n0 output-of c2", "plan\n1 output-of c1", "plan\n1 no-output", "plan\n0 unreadable",
		"plan\n0 output x\n0 ask", "plan\n0 output x\n0 deny")
	s.then("plan\n0 output settled by the plan", "append planned 1 0:output 1:unreadable:output 2:output\nstart p2.0.1 upto 7")
	s.then("request 4 7", "4 output c1 settled by the plan\n5 output c2 bad arguments\n6 output c3 no such tool")
}

func TestM7_5_Twins(t *testing.T) {
	s := prepared(t, "start unique", "tool look\ntool pay")
	s.given("respond\ncall c1 look {\"a\":1}\ncall c1 look { \"a\" : 1 }\ncall c1 look {\"a\":1}\ncall c2 pay {}")
	s.refused(notDueText, "plan\n0 twin", "plan\n3 twin", "plan\n1 output x")
	s.given("plan", "settle t1.0.1 done", "settle t1.3.1 done")
	s.refused(notDueText, "settle t1.1.1 done")
	s.given("prepared", "respond\ncall c1 look {\"a\":1}").refused(notDueText, "plan\n0 twin\n0 no-output")
}

func TestM7_6_OneIdForTwoCalls(t *testing.T) {
	s := prepared(t, "start", "tool look\ntool pay").given("respond\ncall c1 look {}\ncall c1 look {\"a\":1}")
	s.refused(notDueText, "plan", "plan\n1 twin")
	n := prepared(t, "start", "tool look\ntool pay").given("respond\ncall c1 look {}\ncall c1 pay {}")
	n.refused(notDueText, "plan", "plan\n1 twin")

	reused := planned(t, "start", "tool look", "call c1 look {}").given("settle t1.0.1 done", "prepared", "respond\ncall c1 look {}")
	reused.then("plan", `
append planned 2 0
append intended t2.0.1 not after 601000
sync
start t2.0.1 key pawl_9a614584 not after 601000`)

	u := planned(t, "start unique", "tool look\ntool pay", "call c1 look {}").given("settle t1.0.1 done | found", "prepared")
	u.given("respond\ncall c1 look {}").refused(notDueText, "plan\n0 no-output", "plan\n0 output other", "plan\n0 ask\n0 unreadable")
	u.then("plan", "append planned 2 0:output\nstart p3.0.1 upto 5").then("request 4 5", "4 output c1 found")
	u.given("prepared", "respond\ncall c1 pay {}").refused(notDueText, "plan", "plan\n0 output x")
	u.given("fail c3.0.1", "cancel").then("status", "cancelled")
}

func TestM7_7_Recorded(t *testing.T) {
	s := planned(t, "start unique", "tool look", "call c1 look {}").given("settle t1.0.1 done | found")
	d := s.m.find(s.effect("t1.0.0")).digest
	out, ok, err := s.m.Recorded("c1", "look", d)
	if itemText(out) != "output c1 found" || !ok || err != nil {
		t.Errorf("%s, %v, %v", itemText(out), ok, err)
	}
	if _, ok, err := s.m.Recorded("c2", "look", d); ok || err != nil {
		t.Errorf("c2: %v, %v", ok, err)
	}
	if _, _, err := s.m.Recorded("c1", "pay", d); err == nil {
		t.Error("c1 of another tool is no error")
	}
	d[0]++
	if _, _, err := s.m.Recorded("c1", "look", d); err == nil {
		t.Error("c1 with other arguments is no error")
	}
	n := planned(t, "start", "tool look", "call c1 look {}").given("settle t1.0.1 done | found")
	if _, ok, err := n.m.Recorded("c1", "look", d); ok || err != nil {
		t.Errorf("ids that are not unique: %v, %v", ok, err)
	}
}

func TestM7_8_AFinalPlanListsNoCall(t *testing.T) {
	s := prepared(t, "start", "tool look").given("respond\nmessage so\ncall c1 look {}")
	s.refused(notDueText, "plan final=message at=0", "plan final=empty")
	m := prepared(t, "start", "").given("respond\nreasoning hm\nmessage so")
	m.refused(notDueText, "plan final=message at=0", "plan final=message at=2", "plan final=message at=-1")
	m.then("plan final=message at=1", "append planned 1 final message\nappend finished at 2: assistant so\nsync\nstatus finished")
}

func TestM7_9_AToolRunsAnAgentOrHandsOver(t *testing.T) {
	newScript(t).given("start").refused(notDueText, "prepared\ntool go handoff=b agent=c")
	s := prepared(t, "start", "tool go handoff=b").given("respond\ncall c1 go {}")
	f := s.fact("plan | 0 tool 1")
	plan := f.Body.(*journal.Planned)
	plan.Tools = []journal.ToolSpec{{Name: "go", Handoff: "b"}}
	if err := s.m.Check(f); err != nil {
		t.Error(err)
	}
	if plan.Tools[0].Agent = "c"; s.m.Check(f) == nil {
		t.Error("a tool that runs an agent and hands over")
	}
}

func TestM8_1_SettledByThePlan(t *testing.T) {
	s := planned(t, "start", "tool look", "call c1 nothing {}\ncall c2 look {}")
	s.then("history", `
0 user hello
1 call c1 nothing {}
2 call c2 look {}
3 output c1 no such tool
4 reserved
settled 1, in the session 0`)
	s.given("settle t1.1.1 done")
	s.refused(notDueText, "intended t1.0.1", "settle t1.0.0 rejected", "settle t1.0.1 done")
}

func TestM8_2_Intents(t *testing.T) {
	s := planned(t, "start parallel=1", "tool look\ntool pay ask", "call c1 look {}\ncall c2 look {}\ncall c3 pay {}")
	s.refused(notDueText, "intended t1.0.2", "intended t1.1.0", "intended t1.1.2", "intended t1.2.1", "intended t1.3.1", "intended t2.0.1")
	s.then("intended t1.1.1 not-after=5", "append intended t1.1.1 not after 5\nsync")
	s.then("claim", "append claimed epoch 1\nsync\nstatus waiting")
	s.then("interruptions", `
in-doubt 1.0#1 c1 look {} not before 603000
in-doubt 1.1#1 c2 look {} not before 2005
approval 1.2#0 c3 pay {}`)
}

func TestM8_3_OutcomesOfARunningCall(t *testing.T) {
	s := planned(t, "start", "tool a\ntool b readonly\ntool c wait timeout=5000", "call c1 a {}\ncall c2 a {}\ncall c3 a {}\ncall c4 b {}\ncall c5 c {}\ncall c6 c {}")
	s.then("settle t1.0.1 done | one", "append settled t1.0.1 done output c1 one\nsync")
	s.then("settle t1.1.1 failed | two", "append settled t1.1.1 failed output c2 two\nsync")
	s.then("settle t1.2.1 unknown | three", "append settled t1.2.1 unknown output c3 three\nsync")
	again := `
append settled t1.3.N unknown output c4 four
append intended t1.3.M not after 601000
sync
start t1.3.M key pawl_42cbacb5 not after 601000`
	s.then("settle t1.3.1 unknown | four", strings.NewReplacer("N", "1", "M", "2").Replace(again))
	s.then("settle t1.3.2 unknown | four", strings.NewReplacer("N", "2", "M", "3").Replace(again))
	s.then("settle t1.3.3 unknown | four", "append settled t1.3.3 unknown output c4 four\nsync")
	s.then("settle t1.4.1 unknown | five", "append settled t1.4.1 unknown output c5 five\nsync")
	s.given("wait 5s")
	s.then("settle t1.5.1 unknown running | six", "append settled t1.5.1 unknown running output c6 six\nsync\nstatus waiting")
	s.then("interruptions", "in-doubt 1.4#1 c5 c {}\nin-doubt 1.5#1 c6 c {} not before 8000")
	s.then("request 7 13", `
7 output c1 one
8 output c2 two
9 output c3 three
10 output c4 four
11 reserved
12 reserved`)
}

func TestM8_4_OutputsPairWithTheirCalls(t *testing.T) {
	s := planned(t, "start", "tool look", "call c1 look {}")
	s.refused(notDueText, "settle t1.0.1 done no-output", "settle t1.0.1 done output-of=c2", "settle t1.0.1 unknown no-output",
		"settle t1.0.1 notexecuted output-of=c1")
	s.given("settle t1.0.1 done")
	c := planned(t, "start", "tool look ask", `raw {"type":"custom_tool_call","call_id":"c1","name":"look","input":"x"}`)
	c.then("decide 1.0#0 reject", `
append decided 1.0#0 reject
append settled t1.0.0 rejected custom output c1 (rejected)
sync
start p2.0.1 upto 3
status running`)
}

func TestM8_5_WhatCanBeDoneForACall(t *testing.T) {
	s := planned(t, "start parallel=1", "tool look readonly\ntool pay ask\ntool wipe deny\ntool mail tell",
		"call c1 look {}\ncall c2 look {}\ncall c3 pay {}\ncall c4 wipe {}")
	s.then("in-flight", "1")
	s.then("request 7 9", "7 reserved\n8 output c4 (rejected)")
	s.then("settle t1.0.1 done", `
append settled t1.0.1 done output c1
append intended t1.1.1 not after 601000
sync
start t1.1.1 key pawl_e0ee4f1f not after 601000`)
	s.then("cancel", "append cancelled\nappend settled t1.2.0 dropped output c3 (cancelled)\nsync") // running: nothing

	m := planned(t, "start", "tool mail tell", "call c1 mail {}")
	m.then("claim", "append claimed epoch 1\nstart w1.1.1 until 603000")
	m.then("ready", "") // a wait is in flight
}

func TestM8_6_CallsGoInCallOrder(t *testing.T) {
	s := planned(t, "start parallel=2", "tool wipe deny\ntool look", "reasoning hm\ncall c1 wipe {}\ncall c2 look {}\ncall c3 wipe {}\ncall c4 look {}\ncall c5 look {}")
	want := `append started run-1 append prepared turn 1 upto 1 append responded m1.0.1 resp_1 append planned 1 1:deny 2 3:deny 4 5 ` +
		`append settled t1.1.0 rejected output c1 (rejected) append intended t1.2.1 not after 601000 ` +
		`append settled t1.3.0 rejected output c3 (rejected) append intended t1.4.1 not after 601000`
	var got []string
	for _, f := range s.facts {
		got = append(got, "append "+s.factText(f))
	}
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %s", text)
	}
}

func TestM8_7_StartingACall(t *testing.T) {
	s := prepared(t, "start", "tool a timeout=5000\ntool b\ntool c timeout=-1").given("respond\ncall c1 a {}\ncall c2 b {}\ncall c3 c {}", "wait 1s")
	s.then("plan", `
append planned 1 0 1 2
append intended t1.0.1 not after 7000
append intended t1.1.1 not after 602000
append intended t1.2.1 not after 602000
sync
start t1.0.1 key pawl_401017e1 not after 7000
start t1.1.1 key pawl_e0ee4f1f not after 602000
start t1.2.1 key pawl_a3f3545f not after 602000`)
}

func TestM8_8_AQueuedCallHasNoIntent(t *testing.T) {
	s := planned(t, "start parallel=1", "tool pay", "call c1 pay {}\ncall c2 pay {}").given("crash", "claim gone")
	s.then("interruptions", "in-doubt 1.0#1 c1 pay {}") // the second was not started, then or now
	s.then("decide 1.0#1 giveup", `
append decided 1.0#1 giveup
append settled t1.0.0 unknown output c1 (unknown)
sync`)
	s.then("in-flight", "1")
}

func TestM8_9_TheModelIsToldAtItsTime(t *testing.T) {
	s := planned(t, "start", "tool mail tell timeout=5000", "call c1 mail {}")
	s.then("claim", "append claimed epoch 1\nstart w1.1.1 until 8000")
	s.then("interruptions", "")
	s.refused(notDueText, "settle t1.0.0 rejected", "decide 1.0#1 giveup")
	s.then("fired w1.1.1", "append fired w1.1.1\nstart w1.1.1 until 8000") // too early
	s.given("wait 7s")
	s.then("fired w1.1.1", "append fired w1.1.1\nappend settled t1.0.0 unknown output c1 (unknown)\nsync\nstart p2.0.1 upto 3")
	e := planned(t, "start", "tool mail tell timeout=5000", "call c1 mail {}").given("claim", "ended w1.1.1").then("ready", "")
	e.given("wait 7s").then("ready", "append settled t1.0.0 unknown output c1 (unknown)\nsync\nstart p2.0.1 upto 3")
	g := planned(t, "start", "tool mail tell", "call c1 mail {}")
	g.then("claim gone", "append claimed epoch 1 gone\nappend settled t1.0.0 unknown output c1 (unknown)\nsync\nstart p2.0.1 upto 3")
}

func TestM8_10_WhatTheModelIsTold(t *testing.T) {
	s := planned(t, "start", "tool mail tell", "call c1 mail {}").given("claim gone")
	out, err := s.m.At(2).FunctionCallOutput()
	want := "The outcome of this tool call is unknown: it may or may not have taken effect. Do not assume that it failed. " +
		"Its idempotency key is pawl_401017e192a1ff8d40cd0d65f8eaf490."
	if err != nil || out.Text != want {
		t.Errorf("%v, %q", err, out.Text)
	}
}

func TestM8_11_NotExecuted(t *testing.T) {
	s := planned(t, "batch\nstart\nclaim", "tool pay", "call c1 pay {}")
	s.then("settle t1.0.1 notexecuted", `
append settled t1.0.1 notexecuted
append intended t1.0.2 not after 601000
sync
start t1.0.2 key pawl_401017e1 not after 601000`)
	s.refused(notDueText, "settle t1.0.1 notexecuted")
	s.given("claim").refused(notDueText, "settle t1.0.2 notexecuted")
	s.given("wait 603s", "decide 1.0#1 giveup").refused(notDueText, "settle t1.0.2 notexecuted")
}

func TestM8_12_LateResultsSettleAnOpenCall(t *testing.T) {
	s := planned(t, "start", "tool look readonly\ntool pay", "call c1 look {}\ncall c2 pay {}\ncall c3 pay {}").given("claim")
	s.refused(notDueText, "settle t1.0.1 unknown", "settle t1.1.1 unknown", "settle t1.1.1 rejected", "settle t1.1.1 decreed", "settle t1.1.1 dropped", "settle t1.0.3 done")
	s.then("settle t1.0.1 done | first", "append settled t1.0.1 done output c1 first\nsync") // attempt 2 is running
	s.then("settle t1.1.1 failed | so", "append settled t1.1.1 failed output c2 so\nsync")   // in doubt
	s.then("settle t1.0.2 done | second", "append settled t1.0.2 done late output c1 second\nsync\nstatus waiting")
	s.then("request 4 6", "4 output c1 first\n5 output c2 so")
}

func TestM8_13_EvidenceChangesNothing(t *testing.T) {
	s := planned(t, "start", "tool pay", "call c1 pay {}\ncall c2 pay {}")
	s.refused(notDueText, "settle t1.0.1 done late")
	s.given("settle t1.0.1 unknown | told")
	for _, outcome := range []string{"done", "failed", "unknown"} {
		s.then("settle t1.0.1 "+outcome+" | later", "append settled t1.0.1 "+outcome+" late output c1 later\nsync")
	}
	s.given("settle t1.0.1 done late | later")
	s.refused(notDueText, "settle t1.0.1 notexecuted", "settle t1.0.0 unknown", "settle t1.0.2 done", "settle t1.0.1 dropped")
	s.then("request 3 4", "3 output c1 told")
}

func TestM8_14_OutcomesWithoutAnAttempt(t *testing.T) {
	s := planned(t, "start parallel=1", "tool a\ntool b ask\ntool c ask wait", "call c1 a {}\ncall c2 a {}\ncall c3 b {}\ncall c4 c {}\ncall c5 b {}")
	all := []string{"rejected", "decreed", "dropped", "unknown", "done", "failed", "notexecuted"}
	refuse := func(id string, allowed ...string) {
		t.Helper()
		for _, o := range all {
			err := s.m.Check(s.fact("settle " + id + " " + o))
			if ok := len(allowed) > 0 && o == allowed[0]; ok != (err == nil) {
				t.Errorf("%s %s: %v", id, o, err)
			}
		}
	}
	refuse("t1.0.0") // running
	refuse("t1.1.0") // ready
	refuse("t1.2.0") // asked
	s.m.Step(s.fact("decide 1.2#0 reject"))
	refuse("t1.2.0", "rejected")
	s.given("ready", "settle t1.0.1 done", "settle t1.1.1 done", "decide 1.3#0 approve", "settle t1.3.1 unknown")
	refuse("t1.3.0") // in doubt
	s.m.Step(s.fact("decide 1.3#1 settle"))
	refuse("t1.3.0", "decreed")
	s.m.Step(s.fact("cancel"))
	refuse("t1.3.0", "decreed")
	refuse("t1.4.0", "dropped")
	s.given("ready")
	refuse("t1.4.0") // settled

	s = planned(t, "start", "tool mail tell\ntool pay wait", "call c1 mail {}\ncall c2 pay {}").given("claim")
	refuse("t1.0.0", "unknown")
	refuse("t1.1.0")
	s.given("claim gone").m.Step(s.fact("decide 1.1#1 giveup"))
	refuse("t1.1.0", "unknown")
}

func TestM8_15_ASettledCallWaitsForNothing(t *testing.T) {
	s := planned(t, "start", "tool mail tell", "call c1 mail {}").given("claim")
	s.then("in-flight", "1")
	s.then("settle t1.0.1 done | sent", "append settled t1.0.1 done output c1 sent\nsync\nstart p2.0.1 upto 3")
	s.then("in-flight", "1")
}
