package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

const handoffTools = "tool look\ntool pay ask\ntool go handoff=b\ntool away handoff=c"

func TestM18_1_AHandoffHasNoAttempt(t *testing.T) {
	s := planned(t, "start", "tool go ask transactional timeout=5 handoff=b", "call c1 go {}")
	s.refused(notDueText, "intended t1.0.1").given("decide 1.0#0 approve").refused(notDueText, "intended t1.0.1", "settle t1.0.1 done")
	if calls := slices.Collect(s.m.Startable()); len(calls) != 0 {
		t.Errorf("a tool may start: %v", calls)
	}
	s = planned(t, "start", "tool go ask handoff=b", "call c1 go {}")
	s.then("decide 1.0#0 reject", "append decided 1.0#0 reject\nappend settled t1.0.0 rejected output c1 (rejected)\nsync\nstart p2.0.1 upto 3\nstatus running")
	s.then("history", "0 user hello\n1 call c1 go {}\n2 output c1 (rejected)\nsettled 3, in the session 0")
}

func TestM18_2_OneHandoff(t *testing.T) {
	for plan, want := range map[string]bool{
		"plan": false, "plan | 0 output ignored": true, "plan | 1 output ignored": true, "plan | 1 ask": false, "plan | 1 deny": false,
	} {
		s := prepared(t, "start", handoffTools).given("respond\ncall c1 go {}\ncall c2 away {}")
		if accepted := s.m.Check(s.fact(plan)) == nil; accepted != want {
			t.Errorf("%s: %v", plan, accepted)
		}
	}
	prepared(t, "start", handoffTools).given("respond\ncall c1 go {}\ncall c1 go {}", "plan") // a twin
}

func TestM18_3_AHandoffWaitsForTheOthers(t *testing.T) {
	s := planned(t, "start", handoffTools, "call c1 go {}\ncall c2 pay {}\ncall c3 look {}")
	s.refused(notDueText, "transfer 1.0 agent=b", "fail x1.0.1")
	s.then("settle t1.2.1 done", "append settled t1.2.1 done output c3\nsync\nstatus waiting")
	s.then("decide 1.1#0 reject", "append decided 1.1#0 reject\nappend settled t1.1.0 rejected output c2 (rejected)\nsync\nstart x1.0.1\nstatus running")
	s.then("ready", "").then("claim", "append claimed epoch 1\nstart x1.0.1")
	s.then("fail x1.0.1", "append failed x1.0.1 error\nsync\nstatus failed").then("resume", "append resumed\nstart x1.0.1\nstatus running")
}

func TestM18_4_WhatIsTransferred(t *testing.T) {
	s := planned(t, "start", handoffTools, "call c1 go {}\ncall c2 look {}")
	s.refused(notDueText, "transfer 1.0 agent=b").given("settle t1.1.1 done")
	s.refused(notDueText, "transfer 1.1 agent=b", "transfer 2.0 agent=b", "transfer 1.0", "transfer 1.0 agent=b output-of=c2")
	s.given("transfer 1.0 agent=b").refused(notDueText, "transfer 1.0 agent=b")
	m := planned(t, "start auto", handoffTools, "call c1 go {}")
	m.refused(notDueText, "transfer 1.0 agent=b | view 0 3").given("transfer 1.0 agent=b")
}

func TestM18_5_TheResponseGoesOn(t *testing.T) {
	for _, use := range []string{"use first", "use names look go", "use custom"} {
		s := planned(t, "start", handoffTools+"\n"+use, "call c1 look {}\ncall c2 go {}").given("settle t1.0.1 done | found")
		s.then("transfer 1.1 agent=b", "append transferred 1.1 to b\nsync\nstart p2.0.1 upto 5")
		s.then("results", "c1 look {} output c1 found").refused(notDueText, "judge 1 final")
		s.then("history", "0 user hello\n1 call c1 look {}\n2 call c2 go {}\n3 output c1 found\n4 output c2 {\"assistant\":\"b\"}\nsettled 5, in the session 0")
	}
	alone := planned(t, "start", handoffTools+"\nuse first", "call c2 go {}").given("transfer 1.0 agent=b")
	alone.then("results", "").then("status", "running")
}

func TestM18_6_WhoHasTheConversation(t *testing.T) {
	s := prepared(t, "start agent=a", handoffTools)
	if s.m.Agent() != "a" {
		t.Errorf("agent %q", s.m.Agent())
	}
	s.given("respond\ncall c1 go {}", "plan", "transfer 1.0 agent=b")
	if s.m.Agent() != "b" {
		t.Errorf("agent %q", s.m.Agent())
	}
	s.refused(notDueText, "prepared same=1", "prepared\nagent a").given("prepared\ntool back handoff=a")
	s.given("respond\ncall c2 back {}", "plan", "transfer 2.0 agent=a")
	s.then("prepared same=1", "append prepared turn 3 upto 5 as turn 1\nstart m3.0.1 [0,5)")
}

func TestM18_7_AViewStandsForTheHistory(t *testing.T) {
	s := planned(t, "start", handoffTools, "message hm\ncall c1 go {}")
	s.then("transfer 1.1 agent=b\nview 1 2\nview user in short",
		"append transferred 1.1 to b view [1,2) view (user in short)\nsync\nstart p2.0.1 from 4 upto 4 view [1,2) view (user in short)")
	s.then("prepared\ntool back handoff=a\ntool look", "append prepared turn 2 upto 4\nstart m2.0.1 [4,4) view [1,2) view (user in short)")
	s.given("respond\ncall c2 look {}", "plan")
	s.then("settle t2.0.1 done", "append settled t2.0.1 done output c2\nsync\nstart p3.0.1 from 4 upto 6 view [1,2) view (user in short)")
	var sent []string
	for it := range s.m.Sent(Effect{View: s.m.turn.view, From: 4, Upto: 6}) {
		sent = append(sent, itemText(it))
	}
	if want := []string{"assistant hm", "user in short", "call c2 look {}", "output c2 "}; !slices.Equal(sent, want) {
		t.Errorf("sent %q", sent)
	}
	s.given("prepared", "respond\ncall c3 back {}", "plan")
	s.then("transfer 3.0 agent=a\nview 4 6", "append transferred 3.0 to a view [4,6)\nsync\nstart p4.0.1 from 8 upto 8 view [4,6)") // the newest counts
	l := newScript(t).given("start session=plain")
	l.then("loaded\nuser old\nview user short\nview 1 2", "append loaded 1 items, 0 healed view (user short) view [1,2)\nappend intended s1.0.1 upto 2\nsync\nstart s1.0.1 [1,2)")
	l.then("confirm", "append confirmed batch 1 upto 2\nsync\nstart p1.0.1 from 2 upto 2 view (user short) view [1,2)")
}

func TestM18_8_ViewsThatAreRefused(t *testing.T) {
	// 0 user, 1 call c0 of old, 2 its output, 3 output of nothing, 4 user, 5 call c1, 6 call of the handoff, 7 and 8 their outputs
	s := newScript(t).given("start session=plain | user now", "loaded\ncall c0 look {}\noutput c0 x\noutput lost y\ncall open look {}\nraw {\"type\":\"item_reference\",\"id\":\"r\"}", "confirm",
		"prepared\n"+handoffTools, "respond\ncall c1 look {}\ncall c2 go {}", "plan", "settle t1.0.1 done | found")
	for view, want := range map[string]bool{
		"view 0 10":                       true,
		"view 0 2;view 5 6;view 6 10":     true,
		"view user short":                 true,
		"view 2 4":                        true, // the history has no call of it, and none of the other's output
		"view 3 4;view 5 6":               true,
		"view 7 8;view 9 10":              true,
		"view 0 1":                        false, // without its output
		"view 1 2":                        false, // without its call
		"view 1 2;view 0 1":               false,
		"view 0 2;view 0 2":               false,
		"view 0 2;view 1 3":               false,
		"view 0 11":                       false,
		"view 3 3":                        false,
		"view 4 3":                        false,
		"view 0 1;view output c0 short":   true,
		"view output c0 short":            false,
		"view output c0 short;view 0 1":   false,
		"view 0 2;view output c0 again":   false,
		"view call c0 look {};view 1 2":   true, // with less in it
		"view call c0 pay {};view 1 2":    false,
		"view call c9 look {}":            false,
		"view call open look {}":          true,
		"view call c0 look {}":            false,
		"view 3 4;view call open look {}": false, // twice open
	} {
		f := s.fact("transfer 1.1 agent=b\n" + strings.ReplaceAll(view, ";", "\n"))
		if err := s.m.Check(f); (err == nil) != want {
			t.Errorf("%s: %v", view, err)
		}
	}
	odd := s.fact("transfer 1.1 agent=b")
	odd.Body.(*journal.Transferred).View = []journal.Span{{}}
	if s.m.Check(odd) == nil {
		t.Error("an empty part")
	}
}

func TestM18_9_AViewOfOneTurn(t *testing.T) {
	s := newScript(t).given("start\nuser one\nuser two")
	s.then("prepared\ntool look\nview 1 2", "append prepared turn 1 upto 2 view [1,2)\nstart m1.0.1 [2,2) view [1,2)")
	s.then("fail m1.0.1 retry-at=1", "append failed m1.0.1 error retry at 1\nappend intended m1.0.2 upto 2\nsync\nstart m1.0.2 [2,2) view [1,2)") // each attempt
	s.given("respond\nreasoning hm").then("plan", "append planned 1\nstart p2.0.1 upto 3")
	s.refused(notDueText, "prepared | view 0 4").given("prepared")

	m := newScript(t).given("start previous=r0\nuser one\nuser two\nuser three", "prepared\ntool look\nview 2 3\nview user note", "respond id=r1\nreasoning hm")
	m.then("plan", "append planned 1\nstart p2.0.1 from 4 upto 4 view [0,2)")
	m.refused(notDueText, "prepared | view 2 3", "prepared\nview 0 1\nview 3 4").given("prepared | view 1 2", "respond\nreasoning hm")
	m.then("plan", "append planned 2\nstart p3.0.1 from 4 upto 5 view [0,2)") // no id: nothing was taken
	m.given("prepared | view 1 2", "respond id=r3\nreasoning hm").then("plan", "append planned 3\nstart p4.0.1 from 6 upto 6 view [0,1) view [4,5)")

	c := newScript(t).given("start conversation=c\nuser one\nuser two", "prepared\ntool look\nview 1 2", "respond\nreasoning hm")
	c.then("plan", "append planned 1\nstart p2.0.1 from 3 upto 3 view [0,1)")
}

func TestM18_10_ACancelledRunDropsAHandoff(t *testing.T) {
	s := planned(t, "start", handoffTools, "call c1 go {}")
	s.then("cancel", "append cancelled\nappend settled t1.0.0 dropped output c1 (cancelled)\nappend finished cancelled\nsync\nstatus cancelled")
	s.refused(notDueText, "transfer 1.0 agent=b").then("in-flight", "0")
}

func TestM18_11_Activates(t *testing.T) {
	s := prepared(t, "start", "tool look\ntool over handoff=desk").given("respond\ncall c1 look {}", "plan", "settle t1.0.1 done", "prepared", "respond\ncall c2 over {}", "plan", "transfer 2.0 agent=desk", "prepared")
	for turn, want := range map[int]bool{1: true, 2: false, 3: true} {
		if got := s.m.Activates(turn); got != want {
			t.Errorf("turn %d: %v", turn, got)
		}
	}
	if view, from, upto := s.m.Requested(); len(view) != 0 || from != 0 || upto != 5 {
		t.Errorf("turn 3 sends %v and %d to %d", view, from, upto)
	}
}
