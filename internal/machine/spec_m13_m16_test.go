package machine

import (
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

func TestM13_1_MustSyncUntilAllIsDurable(t *testing.T) {
	m := New()
	m.Step(newScript(t).fact("start"))
	if rd := m.Ready(1); !rd.MustSync || len(rd.Facts) != 1 {
		t.Errorf("%+v", rd)
	}
	if rd := m.Ready(2); !rd.MustSync || len(rd.Facts) != 0 {
		t.Errorf("not durable yet: %+v", rd)
	}
	m.Advance(0)
	if rd := m.Ready(3); !rd.MustSync {
		t.Errorf("none durable: %+v", rd)
	}
	m.Advance(1)
	if rd := m.Ready(4); rd.MustSync {
		t.Errorf("durable: %+v", rd)
	}
}

func TestM13_2_FactsThatAreSynced(t *testing.T) {
	for _, c := range []struct{ given, command string }{
		{"", "start"},
		{"start", "fork run=run-2"},
		{"start", "cancel"},
		{"start", "fail p1.0.1"},
		{"start conversation=c", "prepared"},
		{"start conversation=c;prepared", "respond\nreasoning hm"},
		{"start conversation=c;prepared;claim", "absent m1.0.1"},
		{"start;prepared\ntool look;respond\ncall c1 look {}", "plan"}, // the intent
		{"start;prepared\ntool look;respond\ncall c1 look {}\ncall c2 look {};plan", "settle t1.0.1 done"},
		{"start;prepared\ntool pay ask;respond\ncall c1 pay {};plan", "decide 1.0#0 approve"},
		{"start session=own", "loaded"}, // the confirmation
		{"start session=plain;loaded", "confirm"},
		{"start session=plain", "loaded"}, // the batch's intent
		{"start;prepared;respond\nmessage so", "plan"},
		{"start session=plain;loaded;claim", "absent s1.0.1"},
	} {
		s := newScript(t)
		if c.given != "" {
			s.given(strings.Split(c.given, ";")...)
		}
		if out := s.do(c.command); !strings.Contains(out, "sync\n") {
			t.Errorf("%s: %s\n%s", c.given, c.command, out)
		}
	}
}

func TestM13_3_AStatusIsDurable(t *testing.T) {
	s := planned(t, "start", "tool pay ask", "call c1 pay {}")
	s.then("claim", "append claimed epoch 1\nsync")
	p := prepared(t, "start", "tool pay ask").given("respond\ncall c1 pay {}")
	p.then("plan", "append planned 1 0:ask\nsync\nstatus waiting")
}

func TestM13_4_FactsThatAreNotSynced(t *testing.T) {
	s := newScript(t).given("start")
	notSynced := func(command string) {
		t.Helper()
		if out := s.do(command); strings.Contains(out, "sync\n") || strings.HasPrefix(out, "refused") {
			t.Errorf("%s\n%s", command, out)
		}
	}
	notSynced("claim")
	notSynced("resume")
	notSynced("prepared\ntool look\nuse custom")
	notSynced("claim") // and the next request's intent
	notSynced("fired w1.0.1")
	notSynced("respond\nreasoning hm")
	notSynced("plan")
	s.given("prepared", "respond\ncall c1 look {}", "plan", "settle t2.0.1 done")
	notSynced("judge 2")
	s = newScript(t).given("start session=own")
	s.m.Step(s.fact("loaded"))
	if rd := s.m.Flush(); s.m.syncs(rd.Facts[0].Body) {
		t.Error("loaded is synced")
	}
}

func TestM14_1_WhatEndsARun(t *testing.T) {
	ends := func(use, items, plan string, then ...string) bool {
		t.Helper()
		s := prepared(t, "start", "tool look\n"+use).given("respond\n"+items, plan)
		s.given(then...)
		return s.m.Status() == Finished
	}
	for _, c := range []struct {
		use, items, plan string
		then             []string
		want             bool
	}{
		{"", "message so", "plan", nil, true},
		{"", "reasoning hm", "plan final=empty", nil, true},
		{"", "message so", "plan final=none", nil, false},
		{"", "call c1 look {}", "plan", []string{"settle t1.0.1 done"}, false},
		{"use first", "call c1 look {}", "plan", []string{"settle t1.0.1 done"}, true},
		{"use first", "call c1 look {}\ncall c2 look {}", "plan", []string{"settle t1.0.1 done"}, false},
		{"use names look", "call c1 look {}", "plan", []string{"settle t1.0.1 done"}, true},
		{"use names pay", "call c1 look {}", "plan", []string{"settle t1.0.1 done"}, false},
		{"use custom", "call c1 look {}", "plan", []string{"settle t1.0.1 done"}, false},
		{"use custom", "call c1 look {}", "plan", []string{"settle t1.0.1 done", "judge 1"}, false},
		{"use custom", "call c1 look {}", "plan", []string{"settle t1.0.1 done", "judge 1 final | so"}, true},
	} {
		if got := ends(c.use, c.items, c.plan, c.then...); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestM14_2_TheFinalOutput(t *testing.T) {
	prepared(t, "start", "").given("respond\nreasoning hm\nmessage so").then("plan", "append planned 1 final message\nappend finished at 2: assistant so\nsync\nstatus finished")
	prepared(t, "start", "").given("respond\nreasoning hm").then("plan final=empty", "append planned 1 final empty\nappend finished text \"\"\nsync\nstatus finished")
	j := planned(t, "start", "tool look\nuse custom", "call c1 look {}").given("settle t1.0.1 done | found")
	j.then("judge 1 final | the verdict", "append judged 1 final the verdict\nappend finished text \"the verdict\"\nsync\nstatus finished")
	f := planned(t, "start", "tool look\nuse first", "call c1 look {}")
	f.then("settle t1.0.1 done | found", "append settled t1.0.1 done output c1 found\nappend finished at 2: output c1 found\nsync\nstatus finished")
}

func TestM14_3_Results(t *testing.T) {
	tools := "tool look\ntool pay ask\ntool wipe deny\ntool mail tell\ntool sign wait"
	s := planned(t, "start", tools+"\nuse first", "call c1 nothing {}\ncall c2 pay {}\ncall c3 wipe {}\ncall c4 mail {}\ncall c5 sign {}\ncall c6 look {}\ncall c7 look {}")
	s.given("decide 1.1#0 reject", "settle t1.3.1 unknown", "settle t1.4.1 unknown", "decide 1.4#1 settle | signed")
	s.given("settle t1.6.1 done | later in order, earlier in time")
	s.then("settle t1.5.1 failed | first", `
append settled t1.5.1 failed output c6 first
append finished at 13: output c6 first
sync
status finished`)
	s.then("results", "c6 look {} output c6 first\nc7 look {} output c7 later in order, earlier in time")

	n := planned(t, "start", tools+"\nuse names sign look", "call c1 mail {}\ncall c2 look {}\ncall c3 sign {}")
	n.given("settle t1.0.1 done", "settle t1.2.1 done | signed")
	n.then("settle t1.1.1 done | found", "append settled t1.1.1 done output c2 found\nappend finished at 5: output c2 found\nsync\nstatus finished")

	late := planned(t, "start", tools+"\nuse first", "call c1 look {}").given("claim gone") // an output that came late is one
	late.then("settle t1.0.1 done | found", "append settled t1.0.1 done output c1 found\nappend finished at 2: output c1 found\nsync\nstatus finished")
}

func TestM14_4_Verdicts(t *testing.T) {
	s := planned(t, "start session=own", "tool look\ntool wipe deny\nuse custom", "call c1 look {}\ncall c2 look {}")
	s.refused(notDueText, "judge 1").given("settle t1.0.1 done").refused(notDueText, "judge 1")
	s.then("settle t1.1.1 done", "append settled t1.1.1 done output c2\nappend confirmed batch 2 upto 5\nbatch 2 [1,5)\nsync\nstart j1.0.1")
	s.refused(notDueText, "judge 0", "judge 2")
	s.then("judge 1", "append judged 1\nstart p2.0.1 upto 5").refused(notDueText, "judge 1")
	s.given("prepared", "respond\ncall c3 wipe {}").then("plan", `
append planned 2 0:deny
append settled t2.0.0 rejected output c3 (rejected)
append confirmed batch 3 upto 7
batch 3 [5,7)
sync
start p3.0.1 upto 7`) // no result
	s.refused(notDueText, "judge 2")

	c := planned(t, "start", "tool look\nuse custom", "call c1 look {}").given("settle t1.0.1 done", "cancel")
	c.then("judge 1 final", "append judged 1 final\nappend finished cancelled\nsync\nstatus cancelled")
	a := planned(t, "start", "tool look", "call c1 look {}").given("settle t1.0.1 done")
	a.refused(notDueText, "judge 1")
}

func TestM14_5_AResponseThatSaysNothing(t *testing.T) {
	prepared(t, "start", "").given("respond").then("plan", "append planned 1\nstart p2.0.1 upto 1")
}

func TestM14_7_ToolsUsed(t *testing.T) {
	for _, tt := range []struct {
		items string
		want  bool
	}{
		{`message hello`, false},
		{`call c1 look {}`, true},
		{`raw {"type":"web_search_call","id":"ws_1","status":"completed"}`, true},
		{`raw {"type":"tool_search_call","id":"ts_1","status":"completed"}`, false},
		{"reasoning hm\n" + `raw {"type":"tool_search_call","id":"ts_1","status":"completed"}`, false},
	} {
		m := prepared(t, "start", "tool look").given("respond\n" + tt.items).m
		if got := m.ToolsUsed(m.last().manifest.Agent); got != tt.want {
			t.Errorf("%s: used %v, want %v", tt.items, got, tt.want)
		}
		if m.ToolsUsed("another") {
			t.Errorf("%s: used by an agent that was not asked", tt.items)
		}
	}
}

func TestM14_6_FinishedFollowsFromTheRules(t *testing.T) {
	s := prepared(t, "start", "").refused(notDueText, "finish", "finish cancelled", "finish at=0").given("respond\nmessage so")
	s.m.Step(s.fact("plan"))
	s.refused(notDueText, "finish", "finish at=0", "finish cancelled", "finish at=1 | text")
	if err := s.m.Check(s.fact("finish at=1")); err != nil {
		t.Error(err)
	}
	c := newScript(t).given("start", "ended p1.0.1")
	c.m.Step(c.fact("cancel"))
	c.refused(notDueText, "finish", "finish cancelled at=0", "finish cancelled | text")
	if err := c.m.Check(c.fact("finish cancelled")); err != nil {
		t.Error(err)
	}
}

func TestM15_1_CancelledOnce(t *testing.T) {
	s := newScript(t).given("start", "cancel").refused(sameText, "cancel")
	s.given("fail p1.0.1").refused(notDueText, "cancel")
}

func TestM15_2_WhatACancelledRunAwaits(t *testing.T) {
	w := prepared(t, "start", "").given("fail m1.0.1 retry-at=9000")
	w.then("cancel", "append cancelled\nappend finished cancelled\nsync\nstatus cancelled")
	c := planned(t, "start", "tool mail tell", "call c1 mail {}").given("claim")
	c.then("cancel", "append cancelled\nappend settled t1.0.0 unknown output c1 (unknown)\nappend finished cancelled\nsync\nstatus cancelled")

	load := newScript(t).given("start session=own")
	load.then("cancel", "append cancelled\nsync").then("loaded", "append loaded 0 items, 0 healed\nappend confirmed batch 1 upto 1\nappend finished cancelled\nbatch 1 [0,1)\nsync\nstatus cancelled")
	plan := prepared(t, "start", "tool look").given("respond\ncall c1 look {}")
	plan.then("cancel", "append cancelled\nsync").then("plan", "append planned 1 0\nappend settled t1.0.0 dropped output c1 (cancelled)\nappend finished cancelled\nsync\nstatus cancelled")
	model := prepared(t, "start", "").then("cancel", "append cancelled\nsync")
	model.then("respond\nmessage so", "append responded m1.0.1\nappend finished cancelled\nsync\nstatus cancelled")
	body := planned(t, "start", "tool look", "call c1 look {}").then("cancel", "append cancelled\nsync")
	body.then("settle t1.0.1 done", "append settled t1.0.1 done output c1\nappend finished cancelled\nsync\nstatus cancelled")
}

func TestM15_3_HowOpenCallsEnd(t *testing.T) {
	s := planned(t, "start parallel=3", "tool pay ask\ntool look wait\ntool get readonly",
		"call c1 pay {}\ncall c2 pay {}\ncall c3 look {}\ncall c4 look {}\ncall c5 get {}\ncall c6 look {}\ncall c7 look {}")
	s.given("claim gone", "decide 1.2#1 settle | it was found") // get runs again, two look calls are started
	for _, c := range []string{"decide 1.0#0 reject | no", "decide 1.3#1 retry", "settle t1.4.2 unknown", "settle t1.5.1 notexecuted", "cancel"} {
		f := s.fact(c)
		if err := s.m.Check(f); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		s.m.Step(f)
	}
	s.then("ready", `
append decided 1.0#0 reject
append decided 1.3#1 retry
append settled t1.4.2 unknown output c5
append settled t1.5.1 notexecuted
append cancelled
append settled t1.0.0 rejected output c1 no
append settled t1.1.0 dropped output c2 (cancelled)
append settled t1.3.0 unknown output c4 (unknown)
append settled t1.4.0 unknown output c5 (unknown)
append settled t1.5.0 dropped output c6 (cancelled)
sync`)
	s.then("settle t1.6.1 done | found", "append settled t1.6.1 done output c7 found\nappend finished cancelled\nsync\nstatus cancelled")
	s.then("request 8 15", `
8 output c1 no
9 output c2 (cancelled)
10 output c3 it was found
11 output c4 (unknown)
12 output c5 (unknown)
13 output c6 (cancelled)
14 output c7 found`)
}

func TestM15_4_AResponseWithoutAPlanStaysOut(t *testing.T) {
	s := prepared(t, "start session=own", "tool look").given("cancel")
	s.then("respond\ncall c1 look {}", "append responded m1.0.1\nappend finished cancelled\nsync\nstatus cancelled")
	p := prepared(t, "start session=own", "tool look").given("respond\ncall c1 look {}", "cancel")
	p.then("plan", `
append planned 1 0
append settled t1.0.0 dropped output c1 (cancelled)
append confirmed batch 2 upto 3
append finished cancelled
batch 2 [1,3)
sync
status cancelled`)
}

func TestM15_5_CancelComesBeforeTheFinalOutput(t *testing.T) {
	s := prepared(t, "start session=own", "").given("respond\nmessage so", "cancel")
	s.then("plan", "append planned 1 final message\nappend confirmed batch 2 upto 2\nappend finished cancelled\nbatch 2 [1,2)\nsync\nstatus cancelled")
}

func TestM16_1_EffectIDs(t *testing.T) {
	id := journal.EffectID{Kind: journal.EffectTool, N: 3, P: 1, A: 2}
	back, err := journal.ParseEffectID("t3.1.2")
	if id.String() != "t3.1.2" || back != id || err != nil {
		t.Errorf("%s, %v, %v", id, back, err)
	}
}

func TestM16_2_Ordinals(t *testing.T) {
	// The second turn makes the first response with a call, and its batch is the third.
	s := prepared(t, "start session=plain", "tool mail tell\ntool look\nuse custom").given("respond\nreasoning hm")
	s.then("plan", "append planned 1\nappend intended s2.0.1 upto 2\nsync\nstart s2.0.1 [1,2)")
	s.then("confirm", "append confirmed batch 2 upto 2\nsync\nstart p2.0.1 upto 2")
	s.then("prepared", "append prepared turn 2 upto 2 as turn 1\nstart m2.0.1 [0,2)")
	s.then("fail m2.0.1 retry-at=9000", "append failed m2.0.1 error retry at 9000\nsync\nstart w2.0.1 until 9000")
	s.then("fired w2.0.1", "append fired w2.0.1\nappend intended m2.0.2 upto 2\nstart m2.0.2 [0,2)")
	s.then("respond\nreasoning hm\ncall c1 mail {}\ncall c2 look {}", "append responded m2.0.2\nstart c2.0.1")
	s.given("plan", "settle t2.2.1 done")
	s.then("claim", "append claimed epoch 1\nstart w2.2.1 until 603000")
	s.then("settle t2.1.1 done", "append settled t2.1.1 done output c1\nappend intended s3.0.1 upto 7\nsync\nstart s3.0.1 [2,7)")
	s.then("claim", "append claimed epoch 2\nstart r3.1.1 about s3.0.1 [2,7)")
	s.then("confirm", "append confirmed batch 3 upto 7\nsync\nstart j2.0.1")
}

func TestM16_3_Keys(t *testing.T) {
	// printf 'pawl-key/1\0run-1\0\0t1.0.0' | sha256sum
	const want = "pawl_401017e192a1ff8d40cd0d65f8eaf490"
	for _, a := range []int{0, 1, 7} {
		if got := Key("run-1", "", journal.EffectID{Kind: journal.EffectTool, N: 1, A: a}); got != want {
			t.Errorf("attempt %d: %s", a, got)
		}
	}
	seen := map[string]bool{want: true}
	for _, k := range []string{
		Key("run-2", "", journal.EffectID{Kind: journal.EffectTool, N: 1}),
		Key("run-1", "f", journal.EffectID{Kind: journal.EffectTool, N: 1}),
		Key("run-1", "", journal.EffectID{Kind: journal.EffectTool, N: 2}),
		Key("run-1", "", journal.EffectID{Kind: journal.EffectTool, N: 1, P: 1}),
	} {
		if seen[k] {
			t.Errorf("%s names two calls", k)
		}
		seen[k] = true
	}
}

func TestM16_4_InterruptionIDs(t *testing.T) {
	call := journal.EffectID{Kind: journal.EffectTool, N: 3, P: 1}
	for frame, want := range map[string]string{"": "3.1#2", "2.0": "2.0/3.1#2", "2.0/1.4": "2.0/1.4/3.1#2"} {
		if got := InterruptionID(frame, call, 2); got != want {
			t.Errorf("got %s", got)
		}
		in, back, stage, err := ParseInterruptionID(want)
		if in != frame || back != call || stage != 2 || err != nil {
			t.Errorf("%q, %v, %d, %v", in, back, stage, err)
		}
	}
	for _, bad := range []string{"", "3.1", "3#1", "3.1#", "3.x#1", "-3.1#1", "3.1#-1", "3.1#1#1", "/3.1#1", "2.0//#1", "03.1#1", "3.1#+1"} {
		if _, _, _, err := ParseInterruptionID(bad); err == nil {
			t.Errorf("%q is an interruption id", bad)
		}
	}
	// An approval and the doubts behind it have ids of their own, whoever approved.
	s := planned(t, "start", "tool pay ask wait", "call c1 pay {}\ncall c2 pay {}")
	s.then("interruptions", "approval 1.0#0 c1 pay {}\napproval 1.1#0 c2 pay {}")
	s.given("decide 1.0#0 approve sticky", "settle t1.0.1 unknown", "settle t1.1.1 unknown")
	s.then("interruptions", "in-doubt 1.0#1 c1 pay {}\nin-doubt 1.1#1 c2 pay {}")
	s.given("decide 1.1#1 retry", "settle t1.1.2 unknown")
	s.then("interruptions", "in-doubt 1.0#1 c1 pay {}\nin-doubt 1.1#2 c2 pay {}")
}

func TestM16_5_EqualFactsEqualStates(t *testing.T) {
	// Every command of every script compares replay with live; here is that the
	// comparison sees a difference.
	a := planned(t, "start", "tool pay", "call c1 pay {}").given("settle t1.0.1 done | a")
	b := planned(t, "start", "tool pay", "call c1 pay {}").given("settle t1.0.1 done | a")
	if diff := stateDiff(a.m, b.m); diff != "" {
		t.Error(diff)
	}
	c := planned(t, "start", "tool pay", "call c1 pay {}").given("settle t1.0.1 done | b")
	if stateDiff(a.m, c.m) == "" {
		t.Error("different outputs, equal states")
	}
}

func TestM15_6_Successor(t *testing.T) {
	m := New()
	for _, b := range []journal.Body{&journal.Started{Run: "a", Agent: "b"}, &journal.Cancelled{By: "pawl", Successor: "next"}} {
		if got := m.Successor(); got != "" {
			t.Errorf("before it is cancelled: %q", got)
		}
		m.Step(journal.Fact{Body: b})
	}
	if got := m.Successor(); got != "next" {
		t.Errorf("Successor() = %q", got)
	}
	if rd := m.Ready(1); rd.Status != Cancelled {
		t.Errorf("status %v", rd.Status)
	}
}
