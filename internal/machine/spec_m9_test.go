package machine

import (
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

func TestM9_1_Interruptions(t *testing.T) {
	s := planned(t, "start", "tool sign ask wait\ntool look\ntool mail tell", "call c1 look {}\ncall c2 sign {\"a\":1}\ncall c3 mail {}\ncall c4 sign {}")
	s.then("interruptions", "approval 1.1#0 c2 sign {\"a\":1}\napproval 1.3#0 c4 sign {}")
	s.given("decide 1.3#0 approve", "claim gone")
	s.then("interruptions", "in-doubt 1.0#1 c1 look {}\napproval 1.1#0 c2 sign {\"a\":1}\nin-doubt 1.3#1 c4 sign {}")
	s.given("decide 1.3#1 retry", "settle t1.3.2 unknown")
	s.then("interruptions", "in-doubt 1.0#1 c1 look {}\napproval 1.1#0 c2 sign {\"a\":1}\nin-doubt 1.3#2 c4 sign {}")
	s.given("cancel")
	s.then("interruptions", "")
	f := planned(t, "start", "tool pay ask\nuse first", "call c1 pay {}").given("decide 1.0#0 approve", "settle t1.0.1 done")
	f.then("interruptions", "")
}

func TestM9_2_TheDigestInForce(t *testing.T) {
	s := planned(t, "start", "tool pay ask wait", "call c1 pay {\"cents\":5}")
	s.refused(digestText, "decide 1.0#0 approve digest=none", "decide 1.0#0 reject digest=none")
	s.refused(notDueText, "decide 1.0#1 approve", "decide 1.1#0 approve", "decide 2.0#0 approve", "decide 0.0#0 approve")
	s.given("decide 1.0#0 approve args={\"cents\":4}", "settle t1.0.1 unknown")
	s.refused(digestText, "decide 1.0#1 giveup digest=plan")
	s.given("decide 1.0#1 giveup")
}

func TestM9_3_VerdictsFitTheirInterruption(t *testing.T) {
	s := planned(t, "start", "tool pay ask wait", "call c1 pay {}")
	s.refused(verdictText, "decide 1.0#0 settle", "decide 1.0#0 retry", "decide 1.0#0 giveup", "decide 1.0#0 Approve")
	s.given("decide 1.0#0 approve", "settle t1.0.1 unknown")
	s.refused(verdictText, "decide 1.0#1 approve", "decide 1.0#1 reject")
	s.given("decide 1.0#1 settle")
}

func TestM9_4_ACallsOwnDecisionUntilItStarts(t *testing.T) {
	s := planned(t, "start", "tool pay ask", "call c1 pay {}\ncall c2 pay {}\ncall c3 pay {}\ncall c4 pay {}")
	s.then(`batch
decide 1.0#0 reject sticky | none
decide 1.1#0 approve
decide 1.2#0 reject | not this one`, `
append decided 1.0#0 reject sticky
append decided 1.1#0 approve
append decided 1.2#0 reject
append settled t1.0.0 rejected output c1 none
append intended t1.1.1 not after 601000
append settled t1.2.0 rejected output c3 not this one
append settled t1.3.0 rejected output c4 none
sync
start t1.1.1 key pawl_e0ee4f1f not after 601000
status running`)

	// A call that waits for its turn has not started.
	q := planned(t, "start parallel=1", "tool pay ask", "call c1 pay {}\ncall c2 pay {}").given("decide 1.0#0 approve sticky")
	q.then("decide 1.1#0 reject | no", "append decided 1.1#0 reject\nappend settled t1.1.0 rejected output c2 no\nsync")
	// The rule never asked.
	a := planned(t, "start parallel=1", "tool look", "call c1 look {}\ncall c2 look {}")
	a.refused(notDueText, "decide 1.1#0 reject")
}

func TestM9_5_DecidedBefore(t *testing.T) {
	s := planned(t, "start", "tool pay ask wait", "call c1 pay {}\ncall c2 pay {}").given("decide 1.0#0 approve sticky by=bob")
	s.refused(sameText, "decide 1.0#0 approve sticky", "decide 1.0#0 approve sticky by=eve", "decide 1.1#0 approve")
	s.refused(`call t1.0.0 was already decided: approve by "bob"`, "decide 1.0#0 approve", "decide 1.0#0 reject", "decide 1.0#0 approve sticky args={}",
		"decide 1.0#0 approve sticky digest=none", "decide 1.1#0 reject")
	s.given("settle t1.0.1 unknown", "decide 1.0#1 settle | paid")
	s.refused(sameText, "decide 1.0#1 settle | paid")
	s.refused(decidedText, "decide 1.0#1 settle | not paid", "decide 1.0#1 giveup")
	s.refused(notDueText, "decide 1.0#2 giveup")
	s.given("settle t1.1.1 done", "prepared", "respond\nmessage done", "plan")
	s.refused(sameText, "decide 1.0#0 approve sticky", "decide 1.1#0 approve", "decide 1.0#1 settle | paid")
	s.refused(decidedText, "decide 1.1#0 reject")
}

func TestM9_6_StickyDecisions(t *testing.T) {
	s := planned(t, "start", "tool pay ask\ntool sign ask\ntool odd ask anonymous wait", "call c1 pay {}\ncall c2 odd {}\ncall c3 sign {}\ncall c4 odd {}")
	s.refused(verdictText, "decide 1.1#0 approve sticky")
	s.given("decide 1.0#0 approve sticky", "decide 1.1#0 approve")
	s.then("interruptions", "approval 1.2#0 c3 sign {}\napproval 1.3#0 c4 odd {}") // other identities
	s.given("settle t1.1.1 unknown").refused(verdictText, "decide 1.1#1 settle sticky")
	s.given("decide 1.1#1 giveup", "decide 1.2#0 reject", "decide 1.3#0 reject", "settle t1.0.1 done")
	s.given("prepared", "respond\ncall c1 pay {}\ncall c2 pay {}\ncall c3 sign {}").then("plan", `
append planned 2 0:ask 1:ask 2:ask
append intended t2.0.1 not after 601000
append intended t2.1.1 not after 601000
sync
start t2.0.1 key pawl_9a614584 not after 601000
start t2.1.1 key pawl_4f06190c not after 601000`)
	// Nobody had to approve what the rule allows.
	s.given("settle t2.0.1 done", "settle t2.1.1 done", "decide 2.2#0 reject", "prepared", "respond\ncall c1 pay {}", "plan\n0 allow")
	s.then("call t3.0.0", "true c1 {} by= attempt=1 edited=false")
	s.refused(notDueText, "decide 3.0#0 approve")
	// The newest counts, in the calls that are open and in later ones.
	n := planned(t, "start parallel=1", "tool pay ask", "call c1 pay {}\ncall c2 pay {}\ncall c3 pay {}").given("decide 1.0#0 approve sticky")
	n.then("decide 1.1#0 reject sticky | enough", `
append decided 1.1#0 reject sticky
append settled t1.1.0 rejected output c2 enough
append settled t1.2.0 rejected output c3 enough
sync`)
	// What a newer decision no longer covers was decided by nobody.
	f := prepared(t, "start", "tool pay ask").given("respond\ncall c1 pay {}\ncall c2 pay {}\ncall c3 pay {}")
	for _, c := range []string{"plan\n2 allow", "decide 1.0#0 reject sticky", "decide 1.1#0 approve sticky"} {
		f.m.Step(f.fact(c))
	}
	f.given("ready").then("call t1.2.0", "true c3 {} by= attempt=1 edited=false")
	f.refused(notDueText, "decide 1.2#0 reject")
}

func TestM9_7_EditedArguments(t *testing.T) {
	s := planned(t, "start", "tool pay ask wait", "call c1 pay {\"cents\":5}\ncall c2 pay {\"cents\":6}")
	s.refused(verdictText, "decide 1.0#0 reject args={\"cents\":4}", "decide 1.0#0 approve args={\"b\":1,\"a\":2}", "decide 1.0#0 approve args=[1]", "decide 1.0#0 approve args={\"a\":1,\"a\":2}")
	s.then("decide 1.0#0 approve sticky args={\"cents\":4}", `
append decided 1.0#0 approve sticky {"cents":4}
append intended t1.0.1 not after 601000
append intended t1.1.1 not after 601000
sync
start t1.0.1 key pawl_401017e1 not after 601000
start t1.1.1 key pawl_e0ee4f1f not after 601000
status running`)
	s.then("call t1.0.0", `true c1 {"cents":4} by=ann attempt=1 edited=true`)
	s.then("call t1.1.0", `true c2 {"cents":6} by=ann attempt=1 edited=false`)
	s.given("settle t1.0.1 unknown").refused(verdictText, "decide 1.0#1 retry args={\"cents\":3}")

	c := planned(t, "start", "tool note ask", `raw {"type":"custom_tool_call","call_id":"c1","name":"note","input":"a"}`)
	c.given("decide 1.0#0 approve args=free-text").then("call t1.0.0", "true c1 free-text by=ann attempt=1 edited=true")
}

func TestM9_8_UnreadableArgumentsNeverRun(t *testing.T) {
	s := planned(t, "start", "tool pay ask", "call c1 pay {\ncall c2 pay {")
	s.then("decide 1.0#0 approve", "append decided 1.0#0 approve\nappend settled t1.0.0 rejected output c1 bad arguments\nsync")
	s.then("decide 1.1#0 approve args={}", `
append decided 1.1#0 approve {}
append intended t1.1.1 not after 601000
sync
start t1.1.1 key pawl_e0ee4f1f not after 601000
status running`)
	w := planned(t, "start", "tool pay ask wait", "call c1 pay {").then("interruptions", "approval 1.0#0 c1 pay { unreadable\n")
	w.given("decide 1.0#0 approve args={}", "settle t1.0.1 unknown").then("interruptions", "in-doubt 1.0#1 c1 pay {}\n")
	st := planned(t, "start", "tool pay ask", "call c1 pay {}\ncall c2 pay {")
	st.then("decide 1.0#0 approve sticky", `
append decided 1.0#0 approve sticky
append intended t1.0.1 not after 601000
append settled t1.1.0 rejected output c2 bad arguments
sync
start t1.0.1 key pawl_401017e1 not after 601000
status running`)
}

func TestM9_9_CallThenStickyThenRule(t *testing.T) {
	names := map[callState]string{callAsked: "asked", callReady: "ready", callDecided: "decided", callRunning: "running", callSettled: "settled"}
	for _, c := range []struct {
		gate        journal.Gate
		own, sticky journal.Verdict
		want        string
	}{
		{journal.Allow, "", "", "ready"},
		{journal.Allow, "", journal.Approve, "ready"},
		{journal.Allow, "", journal.Reject, "decided"},
		{journal.Ask, "", "", "asked"},
		{journal.Ask, "", journal.Approve, "ready"},
		{journal.Ask, "", journal.Reject, "decided"},
		{journal.Ask, journal.Approve, "", "ready"},
		{journal.Ask, journal.Approve, journal.Reject, "ready"},
		{journal.Ask, journal.Reject, journal.Approve, "decided"},
		{journal.Deny, "", "", "decided"},
		{journal.Deny, "", journal.Approve, "decided"},
	} {
		for _, first := range []string{"own", "sticky"} {
			// The call in question is at position 1; position 0 takes the sticky decision.
			s := prepared(t, "start", "tool pay ask").given("respond\ncall c1 pay {}\ncall c2 pay {}")
			gate := string(c.gate)
			if gate == "" {
				gate = "allow"
			}
			s.m.Step(s.fact("plan\n1 " + gate))
			own, sticky := "decide 1.1#0 "+string(c.own), "decide 1.0#0 "+string(c.sticky)+" sticky"
			if first == "own" && c.own != "" {
				s.m.Step(s.fact(own))
			}
			if c.sticky != "" {
				s.m.Step(s.fact(sticky))
			}
			if first == "sticky" && c.own != "" {
				if err := s.m.Check(s.fact(own)); err != nil {
					t.Errorf("%+v: %v", c, err)
				}
				s.m.Step(s.fact(own))
			}
			if got := names[s.m.find(s.effect("t1.1.0")).state]; got != c.want {
				t.Errorf("%+v, %s first: %s", c, first, got)
			}
		}
	}
}

func TestM9_10_HowADecidedCallIsSettled(t *testing.T) {
	s := prepared(t, "start", "tool pay ask wait\ntool wipe deny")
	s.given("respond\ncall c1 pay {}\ncall c2 pay {}\ncall c3 pay {}\ncall c4 pay {}\ncall c5 pay {}\ncall c6 pay {\ncall c7 wipe {}\ncall c8 wipe {}")
	s.then("plan\n3 reject the plan's text\n7 reject the plan's text", `
append planned 1 0:ask 1:ask 2:ask 3:ask 4:ask 5:ask:unreadable:output 6:deny 7:deny
append settled t1.6.0 rejected output c7 (rejected)
append settled t1.7.0 rejected output c8 the plan's text
sync
status waiting`)
	s.given("decide 1.0#0 approve", "decide 1.1#0 approve", "settle t1.0.1 unknown", "settle t1.1.1 unknown")
	settled := func(decision, want string) {
		t.Helper()
		s.given(decision)
		if got := s.factText(s.facts[len(s.facts)-1]); got != want {
			t.Errorf("%s\ngot %s", decision, got)
		}
	}
	settled("decide 1.0#1 settle | it was paid", "settled t1.0.0 decreed output c1 it was paid")
	settled("decide 1.1#1 giveup", "settled t1.1.0 unknown output c2 (unknown)")
	settled("decide 1.2#0 reject | no", "settled t1.2.0 rejected output c3 no")
	settled("decide 1.3#0 reject", "settled t1.3.0 rejected output c4 the plan's text")
	settled("decide 1.4#0 reject", "settled t1.4.0 rejected output c5 (rejected)")
	s.then("decide 1.5#0 approve", "append decided 1.5#0 approve\nappend settled t1.5.0 rejected output c6 bad arguments\nsync\nstart p2.0.1 upto 17\nstatus running")

	e := planned(t, "start", "tool pay wait", "call c1 pay {}").given("settle t1.0.1 unknown", "decide 1.0#1 settle")
	e.then("request 2 3", "2 output c1") // an empty text is a text
}

func TestM9_11_Retry(t *testing.T) {
	s := planned(t, "start", "tool pay ask", "call c1 pay {\"cents\":5}").given("decide 1.0#0 approve args={\"cents\":4}", "claim gone")
	s.then("decide 1.0#1 retry", `
append decided 1.0#1 retry
append intended t1.0.2 not after 601000
sync
start t1.0.2 key pawl_401017e1 not after 601000
status running`)
	s.then("call t1.0.0", `true c1 {"cents":4} by=ann attempt=2 edited=true`)
}

func TestM9_12_NoVerdictBeforeItsTime(t *testing.T) {
	s := planned(t, "start", "tool pay timeout=5000", "call c1 pay {}").given("claim", "wait 6999ms")
	s.refused(flightText, "decide 1.0#1 retry", "decide 1.0#1 settle", "decide 1.0#1 giveup")
	s.given("wait 1ms", "decide 1.0#1 retry")
}

func TestM9_13_NoDecisionInACancelledRun(t *testing.T) {
	s := planned(t, "start", "tool pay ask\ntool look", "call c1 look {}\ncall c2 pay {}\ncall c3 pay {}").given("decide 1.1#0 reject")
	s.m.Step(s.fact("cancel"))
	s.refused(notDueText, "decide 1.2#0 approve")
	s.refused(sameText, "decide 1.1#0 reject")
	s.refused(decidedText, "decide 1.1#0 approve")
}
