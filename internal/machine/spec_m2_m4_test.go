package machine

import (
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

func TestM2_1_ReadyHandsOutEverythingQueued(t *testing.T) {
	s := planned(t, "start", "tool pay ask\ntool look", "call c1 pay {}\ncall c2 look {}")
	s.then(`batch
settle t1.1.1 done | found
decide 1.0#0 reject`, `
append settled t1.1.1 done output c2 found
append decided 1.0#0 reject
append settled t1.0.0 rejected output c1 (rejected)
sync
start p2.0.1 upto 5`)
	s.then("ready", "")
}

func TestM2_2_TheOrderOfTheRules(t *testing.T) {
	// Each step makes one rule apply that did not apply while an earlier one did.
	s := newScript(t)
	s.then("ready", "") // 1
	s.then("start session=plain max-turns=1", "append started run-1\nsync\nstart l0.0.1")
	s.then("fail l0.0.1", "append failed l0.0.1 error\nsync\nstatus failed")
	s.then("ready", "") // 2
	s.then("resume", "append resumed\nstart l0.0.1\nstatus running")
	s.then("loaded", "append loaded 0 items, 0 healed\nappend intended s1.0.1 upto 1\nsync\nstart s1.0.1 [0,1)") // 9, 4
	s.then("confirm", "append confirmed batch 1 upto 1\nsync\nstart p1.0.1 upto 1")                              // 15
	s.then("prepared\ntool pay ask\ntool look\nuse custom", "append prepared turn 1 upto 1\nstart m1.0.1 [0,1)") // 5
	s.then("respond\ncall c1 pay {}\ncall c2 look {}", "append responded m1.0.1\nstart c1.0.1")                  // 6
	s.then("plan", `
append planned 1 0:ask 1
append intended t1.1.1 not after 601000
sync
start t1.1.1 key pawl_e0ee4f1f not after 601000`) // 7
	s.then("ready", "")                                                                              // 8
	s.then("settle t1.1.1 done | x", "append settled t1.1.1 done output c2 x\nsync\nstatus waiting") // 11
	s.then("decide 1.0#0 reject", `
append decided 1.0#0 reject
append settled t1.0.0 rejected output c1 (rejected)
append intended s2.0.1 upto 5
sync
start s2.0.1 [1,5)
status running`)
	s.then("confirm", "append confirmed batch 2 upto 5\nsync\nstart j1.0.1")                  // 12
	s.then("judge 1", "append judged 1\nappend failed p2.0.1 max_turns\nsync\nstatus failed") // 14
	s.then("cancel", "append cancelled\nappend finished cancelled\nsync\nstatus cancelled")   // 10

	f := planned(t, "start max-turns=1", "tool look\nuse first", "call c1 look {}")
	f.then("settle t1.0.1 done | x", "append settled t1.0.1 done output c1 x\nappend finished at 2: output c1 x\nsync\nstatus finished") // 13 before 14
}

func TestM2_3_NothingIsHandedTwice(t *testing.T) {
	s := newScript(t).given("start session=plain")
	s.then("ready", "")
	s.given("loaded").then("ready", "")
	s.given("confirm").then("ready", "")
	s.given("prepared\ntool look").then("ready", "")
	s.given("respond\ncall c1 look {}").then("ready", "")
	s.given("plan").then("ready", "")
	s.given("ended t1.0.1").then("ready", "")
	s.then("in-flight", "0")
}

func TestM2_4_WhatEndsAnEffect(t *testing.T) {
	s := newScript(t).given("start session=plain")
	for _, c := range []string{"loaded", "confirm", "prepared\ntool look\nuse custom", "respond\ncall c1 look {}", "plan", "settle t1.0.1 done", "confirm", "judge 1"} {
		s.then("in-flight", "1")
		s.given(c)
	}
	s.then("in-flight", "1") // p2.0.1
	for _, end := range []string{"confirm", "absent s1.0.1", "fail r1.1.1"} {
		r := newScript(t).given("start session=plain", "loaded", "fail s1.0.1", "resume")
		r.then("in-flight", "1")
		r.m.Step(r.fact(end))
		r.then("in-flight", "0")
	}
	for _, end := range []string{"respond", "absent m1.0.1", "fail r1.0.1", "fail m1.0.1"} {
		r := prepared(t, "start conversation=c", "").given("claim")
		r.then("in-flight", "1")
		r.m.Step(r.fact(end))
		r.then("in-flight", "0")
	}
	w := prepared(t, "start", "").given("fail m1.0.1 retry-at=5000")
	w.then("in-flight", "1")
	w.m.Step(w.fact("fired w1.0.1"))
	w.then("in-flight", "0")
}

func TestM2_5_OutcomesOfNothing(t *testing.T) {
	s := newScript(t).given("start")
	s.refused(notDueText, "loaded", "respond of=m1.0.1", "plan", "settle t1.0.1 done", "judge 1", "confirm", "absent m1.0.1", "absent s1.0.1",
		"fail l0.0.1", "fail m1.0.1", "fail c1.0.1", "fail j1.0.1", "fail s1.0.1", "fail r1.0.1", "fail r1.1.1", "fail p2.0.1")
	s.then("fired w1.0.1", "append fired w1.0.1")
	s.then("fired w3.2.1", "append fired w3.2.1")
	s.refused(notDueText, "fired m1.0.1")
}

func TestM3_1_TheInputIsTheHistory(t *testing.T) {
	s := newScript(t).given("start\nuser one\nuser two")
	s.then("history", "0 user one\n1 user two\nsettled 2, in the session 0")
	s.given("prepared\ntool look", "respond\ncall c1 look {}\ncall c1 look {}", "plan")
	s.then("history", "0 user one\n1 user two\n2 call c1 look {}\n3 dropped\n4 reserved\nsettled 2, in the session 0")
	n := 0
	for range s.m.Items(0, 5) {
		n++
	}
	if n != 3 {
		t.Errorf("the view has %d items, want 3", n)
	}
}

func TestM3_2_LoadedIsTheHistory(t *testing.T) {
	s := newScript(t).given("start session=own")
	s.then("history", "settled 0, in the session 0")
	s.given("loaded\nuser old\ncall c0 look {}\nhealed output c0 unknown")
	s.then("history", "0 user old\n1 call c0 look {}\n2 output c0 unknown\n3 user hello\nsettled 4, in the session 4")
	s.refused(notDueText, "loaded")
}

func TestM3_3_HealingOutputsAndInputAreOwed(t *testing.T) {
	s := newScript(t).given("start session=own")
	s.then("loaded\nuser old\ncall c0 look {}\nhealed output c0 unknown", `
append loaded 2 items, 1 healed
append confirmed batch 1 upto 4
batch 1 [2,4)
sync
start p1.0.1 upto 4`)
}

func TestM3_4_TheSettledMark(t *testing.T) {
	s := planned(t, "start", "tool look", "call c1 look {}\ncall c2 look {}")
	s.given("settle t1.1.1 done")
	s.then("history", "0 user hello\n1 call c1 look {}\n2 call c2 look {}\n3 reserved\n4 output c2 \nsettled 1, in the session 0")
	s.given("settle t1.0.1 done")
	if s.m.Settled() != 5 {
		t.Errorf("settled %d, want 5", s.m.Settled())
	}
	s.given("prepared", "respond\nreasoning hm")
	if s.m.Settled() != 5 {
		t.Errorf("settled %d before the plan, want 5", s.m.Settled())
	}
	s.given("plan")
	if s.m.Settled() != 6 {
		t.Errorf("settled %d, want 6", s.m.Settled())
	}
}

func TestM4_1_WhenATurnIsPrepared(t *testing.T) {
	s := newScript(t).given("start session=plain").refused(notDueText, "prepared") // not loaded
	s.given("loaded").refused(notDueText, "prepared")                              // a batch is open
	s.given("confirm").refused(notDueText, "prepared n=2", "prepared n=0", "prepared upto=0", "prepared upto=2")
	s.given("prepared\ntool look").refused(notDueText, "prepared") // a request is open
	s.given("fail m1.0.1").refused(notDueText, "prepared")         // to be repeated
	s.given("resume", "respond\ncall c1 look {}").refused(notDueText, "prepared")
	s.given("plan").refused(notDueText, "prepared")
	s.m.Step(s.fact("settle t1.0.1 done"))
	if err := s.m.Check(s.fact("prepared")); err == nil {
		t.Error("a turn is prepared while something is owed")
	}
	s.given("ready", "confirm", "prepared")
	v := planned(t, "start", "tool look\nuse custom", "call c1 look {}").given("settle t1.0.1 done")
	v.refused(notDueText, "prepared").given("judge 1", "prepared")
	f := prepared(t, "start", "").given("respond\nmessage done")
	f.m.Step(f.fact("plan"))
	if err := f.m.Check(f.fact("prepared")); err == nil {
		t.Error("a turn is prepared behind the final output")
	}
}

func TestM4_2_ManifestsAreRecordedOnce(t *testing.T) {
	s := newScript(t).given("start").refused(notDueText, "prepared same=0\ntool look", "prepared same=2\ntool look")
	s.given("prepared\ntool look", "respond\nreasoning hm", "plan")
	s.refused(notDueText, "prepared same=2", "prepared same=0")
	s.given("prepared same=1", "respond\nreasoning hm", "plan")
	s.refused(notDueText, "prepared same=2") // turn 2 has none of its own
	s.given("prepared\ntool pay")
	man, turn := s.m.Manifest()
	if turn != 3 || man.Tools[0].Name != "pay" {
		t.Errorf("turn %d offers %q", turn, man.Tools[0].Name)
	}
}

func TestM4_3_TheManifestGovernsItsResponse(t *testing.T) {
	s := planned(t, "start", "tool pay idempotent", "call c1 pay {}").given("settle t1.0.1 done")
	s.given("prepared\ntool pay", "respond\ncall c2 pay {}", "plan")
	s.then("call t1.0.0", "true c1 {} by= attempt=1 edited=false")
	one, _ := s.m.Call(s.effect("t1.0.0"))
	two, _ := s.m.Call(s.effect("t2.0.0"))
	if one.Spec.Class != "idempotent" || two.Spec.Class != "" {
		t.Errorf("classes %q and %q", one.Spec.Class, two.Spec.Class)
	}
}

func TestM4_4_TurnsCountWhenPrepared(t *testing.T) {
	s := prepared(t, "start max-turns=1", "").given("fail m1.0.1", "resume", "fail m1.0.2 retry-at=1000")
	if s.m.Turn() != 1 {
		t.Errorf("turn %d, want 1", s.m.Turn())
	}
	s.given("respond\nreasoning hm")
	s.then("plan", "append planned 1\nappend failed p2.0.1 max_turns\nsync\nstatus failed")
}

func TestM4_5_TheBoundOnTurns(t *testing.T) {
	s := prepared(t, "start max-turns=1", "").given("respond\nreasoning hm", "plan")
	s.then("resume", "append resumed\nappend failed p2.0.1 max_turns\nsync")
	s.then("resume max-turns=1", "append resumed max-turns 1\nappend failed p2.0.1 max_turns\nsync")
	s.then("resume max-turns=2", "append resumed max-turns 2\nstart p2.0.1 upto 2\nstatus running")
	s.given("prepared", "respond\nreasoning hm", "plan")
	s.then("status", "failed")
	s.then("resume max-turns=-1", "append resumed max-turns -1\nstart p3.0.1 upto 3\nstatus running")
	if s.m.MaxTurns() != 0 {
		t.Errorf("bound %d, want none", s.m.MaxTurns())
	}
}

func TestM4_6_PreparedAfterCancel(t *testing.T) {
	s := newScript(t).given("start", "cancel")
	s.then("prepared\ntool look", "append prepared turn 1 upto 1\nappend finished cancelled\nsync\nstatus cancelled")
}

// [M2.6]
func TestM2_6_AnEffectFollowsFromItsID(t *testing.T) {
	// Every script checks that another machine knows what was handed.
	s := planned(t, "start session=plain", "tool pay\ntool look readonly", "call c1 pay {}\ncall c2 look {}")
	for _, c := range []struct {
		id   string
		want bool
	}{{"t1.0.1", false}, {"t1.1.1", true}, {"m1.0.1", true}, {"s1.0.1", false}, {"p2.0.1", true}, {"c1.0.1", true}, {"t9.9.1", false}} {
		id, err := journal.ParseEffectID(c.id)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.m.Repeatable(id); got != c.want {
			t.Errorf("%s is repeatable: %v", id, got)
		}
	}
	id := journal.EffectID{Kind: journal.EffectTool, N: 1, P: 1, A: 1}
	if e := s.m.Effect(id); e.Key != Key("run-1", "", id) || e.NotAfter != 601000 {
		t.Errorf("the effect is %+v", e)
	}
	if e := prepared(t, "start conversation=c", "").m.Repeatable(journal.EffectID{Kind: journal.EffectModel, N: 1, A: 1}); e {
		t.Error("a request on a conversation is repeatable")
	}
}
