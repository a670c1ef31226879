package machine

import (
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

func TestM19_1_Verdicts(t *testing.T) {
	newScript(t).refused(notDueText, "start guards=odd")
	s := newScript(t).given("start guards=blocking").refused(notDueText, "checked g1.0.1", "checked g0.0.2", "checked g0.1.1", "checked o1.0.1", "checked k1.0.1")
	s.then("fail g0.0.1", "append failed g0.0.1 error\nsync\nstatus failed").then("resume", "append resumed\nstart g0.0.1\nstatus running")
	s.then("checked g0.0.1", "append checked g0.0.1\nstart p1.0.1 upto 1").refused(notDueText, "checked g0.0.1", "fail g0.0.1")
}

func TestM19_2_TheInputIsChecked(t *testing.T) {
	s := newScript(t)
	s.then("start guards=both session=plain", "append started run-1\nsync\nstart l0.0.1").refused(notDueText, "checked g0.0.1")
	s.then("loaded", "append loaded 0 items, 0 healed\nstart g0.0.1").then("claim", "append claimed epoch 1\nstart g0.0.1")
	s.refused(notDueText, "prepared", "fail p1.0.1")
	s.then("checked g0.0.1", "append checked g0.0.1\nappend intended s1.0.1 upto 1\nsync\nstart g0.1.1\nstart s1.0.1 [0,1)")
	newScript(t).then("start guards=parallel", "append started run-1\nsync\nstart g0.1.1\nstart p1.0.1 upto 1")
}

func TestM19_3_BesideTheTurns(t *testing.T) {
	s := prepared(t, "start guards=parallel", "tool pay ask").given("respond\ncall c1 pay {}")
	s.then("plan", "append planned 1 0:ask") // nothing to do, and yet it runs
	s.then("in-flight", "1").then("checked g0.1.1", "append checked g0.1.1\nsync\nstatus waiting")
	c := prepared(t, "start guards=parallel", "tool pay").given("respond\nreasoning hm")
	c.then("cancel", "append cancelled\nsync").then("plan", "append planned 1") // then it is waited for
	c.then("checked g0.1.1", "append checked g0.1.1\nappend finished cancelled\nsync\nstatus cancelled")
}

func TestM19_4_OnlyWhatChangesNothingStarts(t *testing.T) {
	tools := "tool look readonly\ntool pay\ntool put idempotent\ntool ask agent=b readonly\ntool go handoff=b readonly"
	s := prepared(t, "start guards=parallel", tools).given("respond\ncall c1 pay {}\ncall c2 put {}\ncall c3 ask {}\ncall c4 look {}")
	s.then("plan", "append planned 1 0 1 2 3\nappend intended t1.3.1 not after 601000\nsync\nstart t1.3.1 key pawl_42cbacb5 not after 601000")
	s.refused(notDueText, "intended t1.0.1", "start frame=1.2 run= agent=b", "fail e1.2.1")
	if out := s.do("checked g0.1.1"); !strings.Contains(out, "start t1.0.1") || !strings.Contains(out, "start t1.1.1") || !strings.Contains(out, "start e1.2.1") {
		t.Error(out)
	}
	h := prepared(t, "start guards=parallel", tools).given("respond\ncall c1 go {}")
	h.then("plan", "append planned 1 0").refused(notDueText, "transfer 1.0 agent=b", "fail x1.0.1")
	h.then("checked g0.1.1", "append checked g0.1.1\nstart x1.0.1")
}

func TestM19_5_WhatIsHeld(t *testing.T) {
	s := newScript(t).given("start session=own guards=parallel", "loaded", "prepared\ntool look readonly", "respond\ncall c1 look {}", "plan")
	s.then("settle t1.0.1 done", "append settled t1.0.1 done output c1\nsync\nstart p2.0.1 upto 3") // nothing of it is owed
	s.refused(notDueText, "confirm n=2 upto=3").given("checked g0.1.1")                             // while the turn is prepared
	s.then("prepared", "append prepared turn 2 upto 3 as turn 1\nstart m2.0.1 [0,3)").given("respond\nmessage so")
	s.then("plan", "append planned 2 final message\nappend confirmed batch 2 upto 4\nappend finished at 3: assistant so\nbatch 2 [1,4)\nsync\nstatus finished")

	o := newScript(t).given("start session=own", "loaded", "prepared\ntool look\nguards-output\nuse custom", "respond\ncall c1 look {}", "plan")
	o.then("settle t1.0.1 done", "append settled t1.0.1 done output c1\nsync\nstart j1.0.1").then("judge 1 final | so", "append judged 1 final so\nstart o1.0.1")
	o.then("checked o1.0.1", "append checked o1.0.1\nappend confirmed batch 2 upto 3\nappend finished text \"so\"\nbatch 2 [1,3)\nsync\nstatus finished")
	g := newScript(t).given("start session=own", "loaded", "prepared\ntool look\nguards-output", "respond\nmessage hm")
	g.then("plan final=none", "append planned 1\nappend confirmed batch 2 upto 2\nbatch 2 [1,2)\nsync\nstart p2.0.1 upto 2") // it is not final
}

func TestM19_6_TheFinalOutputIsChecked(t *testing.T) {
	s := prepared(t, "start guards=parallel", "guards-output").given("respond\nmessage so")
	s.then("plan", "append planned 1 final message\nstart o1.0.1").refused(notDueText, "checked o2.0.1", "finish at=1")
	if c := s.m.Candidate(); c == nil || c.At != 1 {
		t.Errorf("candidate %+v", c)
	}
	s.then("checked o1.0.1", "append checked o1.0.1").refused(notDueText, "checked o1.0.1", "finish at=1") // the input's verdict is missing
	s.then("checked g0.1.1", "append checked g0.1.1\nappend finished at 1: assistant so\nsync\nstatus finished")
	newScript(t).given("start auto").refused(notDueText, "prepared\nguards-output")
	newScript(t).given("start").then("prepared\nguards-output", "append prepared turn 1 upto 1\nstart m1.0.1 [0,1)")
}

func TestM19_7_ACallIsChecked(t *testing.T) {
	s := planned(t, "start", "tool pay guarded wait\ntool mail ask guarded\ntool ask agent=b guarded\ntool go handoff=b guarded", "call c1 pay {}\ncall c2 mail {}\ncall c3 ask {}\ncall c4 go {}")
	s.refused(notDueText, "intended t1.0.1", "checked k1.1.1", "checked k1.0.2", "fail e1.2.1")
	s.then("ready", "").then("fail k1.0.1", "append failed k1.0.1 error\nsync").then("resume", "append resumed\nstart k1.0.1")
	s.then("checked k1.2.1", "append checked k1.2.1\nstart e1.2.1 of t1.2.0 key pawl_a3f3545f")
	s.then("checked k1.0.1", "append checked k1.0.1\nappend intended t1.0.1 not after 601000\nsync\nstart t1.0.1 key pawl_401017e1 not after 601000")
	s.given("settle t1.0.1 unknown")
	s.then("decide 1.0#1 retry", "append decided 1.0#1 retry\nappend intended t1.0.2 not after 601000\nsync\nstart t1.0.2 key pawl_401017e1 not after 601000") // once
	s.then("checked k1.3.1", "append checked k1.3.1")                                                                                                          // it waits for the others
	s.then("decide 1.1#0 approve", "append decided 1.1#0 approve\nsync\nstart k1.1.1").then("in-flight", "3")
	if out := s.do("cancel"); !strings.Contains(out, "settled t1.1.0 dropped") {
		t.Error(out)
	}
	s.refused(notDueText, "checked k1.1.1").then("in-flight", "1")
}

func TestM19_8_WhatAVerdictSays(t *testing.T) {
	s := planned(t, "start", "tool pay guarded", "call c1 pay {}\ncall c2 pay {\"a\":1}")
	s.refused(notDueText, "checked k1.0.1 output-of=c2", "checked k1.0.1 trip=limit reject")
	s.then("checked k1.0.1 reject | not so much", "append checked k1.0.1 output c1 not so much")
	s.then("results", "")
	g := newScript(t).given("start guards=blocking").refused(notDueText, "checked g0.0.1 output-of=c1")
	g.then("cancel", "append cancelled\nsync").then("checked g0.0.1 trip=late", "append checked g0.0.1 trips late\nappend finished cancelled tripped\nsync\nstatus cancelled")
}

func TestM19_9_WhatIsTakenBack(t *testing.T) {
	start := []string{"start session=own guards=parallel", "loaded", "prepared\ntool look readonly\ntool pay ask"}
	s := newScript(t).given(start...).given("respond\nreasoning hm\nmessage one\ncall c1 look {}", "plan", "settle t1.2.1 done | found", "prepared", "respond\nmessage two\ncall c2 look {}", "plan")
	s.then("checked g0.1.1 trip=no", "append checked g0.1.1 trips no") // the running call is awaited
	s.then("settle t2.1.1 done | found", "append settled t2.1.1 done output c2 found\nappend confirmed batch 2 upto 8\nappend finished cancelled tripped\nbatch 2 [1,8)\nsync\nstatus cancelled")
	s.then("history", "0 user hello\n1 dropped\n2 dropped\n3 call c1 look {}\n4 output c1 found\n5 dropped\n6 call c2 look {}\n7 output c2 found\nsettled 8, in the session 8")

	c := newScript(t).given(start...).given("respond\nmessage one\ncall c1 pay {}", "plan", "cancel") // nobody will know any more
	c.then("history", "0 user hello\n1 dropped\n2 call c1 pay {}\n3 output c1 (cancelled)\nsettled 4, in the session 1")
	p := newScript(t).given("start session=own", "loaded", "prepared\ntool pay ask", "respond\nmessage one\ncall c1 pay {}", "plan", "cancel") // nothing was held
	p.then("history", "0 user hello\n1 assistant one\n2 call c1 pay {}\n3 output c1 (cancelled)\nsettled 4, in the session 4")

	l := newScript(t).given("start session=own", "loaded", "prepared\ntool look\nuse first\nguards-output", "respond\nmessage one\ncall c1 look {}", "plan", "cancel")
	l.given("settle t1.1.1 done | found") // settled after the end of all verdicts
	l.then("history", "0 user hello\n1 dropped\n2 call c1 look {}\n3 output c1 (withheld)\nsettled 4, in the session 4")
}

func TestM19_10_ChecksOnTheWay(t *testing.T) {
	s := planned(t, "start", "tool pay wait", "call c1 pay {}\ncall c2 pay {\"a\":1}")
	s.refused(notDueText, "settle t1.0.1 unknown trip=x", "settle t1.0.1 pending trip=x", "settle t1.0.1 notexecuted trip=x")
	s.then("settle t1.0.1 done trip=secret | withheld", "append settled t1.0.1 done trips secret output c1 withheld\nsync")
	s.then("tripped", "t1.0.1 secret").then("settle t1.1.1 done", "append settled t1.1.1 done output c2\nappend finished cancelled tripped\nsync\nstatus cancelled")
	p := prepared(t, "start", "tool pay ask").given("respond\ncall c1 pay {}")
	p.then("plan | 0 trip limit", "append planned 1 0:ask\nappend settled t1.0.0 dropped output c1 (cancelled)\nappend finished cancelled tripped\nsync\nstatus cancelled")
	p.then("tripped", "t1.0.0 limit")
	late := planned(t, "start", "tool pay tell", "call c1 pay {}").given("settle t1.0.1 unknown")
	late.given("settle t1.0.1 done trip=secret").then("tripped", "no")
}

func TestM19_11_TheRunEnds(t *testing.T) {
	s := prepared(t, "start guards=parallel", "tool pay ask").given("respond\ncall c1 pay {}", "fail c1.0.1").then("failure", "c1.0.1 error:")
	s.then("checked g0.1.1 trip=no", "append checked g0.1.1 trips no\nappend finished cancelled tripped\nsync\nstatus cancelled").then("failure", "none")
	if trip := s.m.Tripped(); trip == nil || trip.Check != (journal.Check{Name: "no", Tripped: true}) {
		t.Errorf("%+v", trip)
	}
	two := planned(t, "start", "tool pay guarded", "call c1 pay {}\ncall c2 pay {\"a\":1}")
	two.given("checked k1.0.1 trip=first").refused(notDueText, "checked k1.1.1 trip=second").then("tripped", "k1.0.1 first")
}

func TestM19_12_ANestedRunTrips(t *testing.T) {
	nested := func(tool string) *script {
		return planned(t, "start", tool, "call c1 ask {}").given("start frame=1.0 run= agent=b guards=blocking")
	}
	s := nested("tool ask agent=b told")
	s.then("checked g0.0.1 frame=1.0 trip=no", "append 1.0: checked g0.0.1 trips no\nappend 1.0: finished cancelled tripped\nstart v1.0.1 of t1.0.0")
	info, _ := s.m.Call(journal.EffectID{Kind: journal.EffectTool, N: 1, P: 0})
	if info.Failure == nil || info.Failure.Code != CodeTripped {
		t.Errorf("%+v", info.Failure)
	}
	s.then("tripped", "no").refused(notDueText, "settle t1.0.1 done").given("settle t1.0.1 failed")
	r := nested("tool ask agent=b")
	r.then("checked g0.0.1 frame=1.0 trip=no", "append 1.0: checked g0.0.1 trips no\nappend 1.0: finished cancelled tripped\nappend settled t1.0.0 dropped output c1 (stopped)\nappend finished cancelled tripped\nsync\nstatus cancelled")
	r.then("tripped", "1.0: g0.0.1 no")
}
