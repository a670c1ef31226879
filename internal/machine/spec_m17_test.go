package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/journal"
)

// in runs commands in a frame that must be accepted.
func (s *script) in(frame string, commands ...string) *script {
	s.t.Helper()
	for _, c := range commands {
		word, rest, _ := strings.Cut(c, "\n")
		word, inline, ok := strings.Cut(word, " | ")
		if ok {
			rest = inline
		}
		s.given(word + " frame=" + frame + "\n" + rest)
	}
	return s
}

// entered returns a run whose first call, of the tool "ask", runs an agent and is entered.
func entered(t *testing.T, start, manifest string) *script {
	t.Helper()
	return planned(t, start, manifest, "call c1 ask {}").given("start frame=1.0")
}

// nested plays a turn of a frame, up to the plan of a response of these items.
func (s *script) nested(frame, manifest, items string) *script {
	s.t.Helper()
	return s.in(frame, "prepared\n"+manifest, "respond\n"+items, "plan")
}

func TestM17_1_FramesAreTheirOwn(t *testing.T) {
	if got := FrameName("2.1", journal.EffectID{Kind: journal.EffectTool, N: 3, P: 10}); got != "2.1/3.10" {
		t.Errorf("got %s", got)
	}
	s := entered(t, "start max-turns=1 parallel=1", "tool ask agent=helper\ntool pay ask").
		nested("1.0", "tool pay\ntool deeper agent=clerk", "call n1 pay {}\ncall n2 pay {}\ncall n3 deeper {}")
	s.then("call t1.0.0 frame=1.0", "true n1 {} by= attempt=0 edited=false")
	s.given("start frame=1.0/1.2 agent=clerk parallel=1").in("1.0/1.2", "prepared\ntool pay readonly")
	s.in("1.0/1.2", "respond tokens=7\ncall k1 pay {}\ncall k2 pay {}", "plan")
	s.then("frames", "\"\" desk\n\"1.0\" desk > helper\n\"1.0/1.2\" desk > helper > clerk")
	s.then("usage", "3 requests, 2 unreported, 7 tokens")
	s.then("decide 1.0/1.0#0 approve sticky", `
append 1.0: decided 1.0/1.0#0 approve sticky
append 1.0: intended t1.0.1 not after 601000
append 1.0: intended t1.1.1 not after 601000
sync
start 1.0: t1.0.1 key pawl_0092a5d8 not after 601000
start 1.0: t1.1.1 key pawl_9a858eeb not after 601000
status running`)
	s.then("interruptions", "approval 1.0/1.2/1.0#0 k1 pay {} (desk > helper > clerk)\napproval 1.0/1.2/1.1#0 k2 pay {} (desk > helper > clerk)")
	if in, call := s.m.Frame("1.0/1.2").Caller(); in != "1.0" || call != s.effect("t1.2.0") {
		t.Errorf("called by %s of %q", call, in)
	}
	if in, call := s.m.Caller(); in != "" || call != (journal.EffectID{}) {
		t.Errorf("called by %s of %q", call, in)
	}
	if a, b := s.m.Frame("1.0").KeyOf(s.effect("t1.0.1")), s.m.KeyOf(s.effect("t1.0.1")); a == b || a != Key("run-1", "1.0", s.effect("t1.0.0")) {
		t.Errorf("keys %s and %s", a, b)
	}
	s.in("1.0/1.2", "decide 1.0/1.2/1.0#0 approve sticky")
	s.then("in-flight", "3") // parallel=1 is of the innermost frame alone
}

func TestM17_2_Enter(t *testing.T) {
	s := prepared(t, "start parallel=1", "tool ask agent=helper\ntool pay").given("respond\ncall c1 ask {}\ncall c2 pay {}\ncall c3 ask {}")
	s.then("plan", `
append planned 1 0 1 2
append intended t1.1.1 not after 601000
sync
start e1.0.1 of t1.0.0 key pawl_401017e1
start t1.1.1 key pawl_e0ee4f1f not after 601000
start e1.2.1 of t1.2.0 key pawl_a3f3545f`)
	s.refused(notDueText, "intended t1.0.1")

	deep := planned(t, "start", "tool ask agent=helper", "call c1 ask {}")
	frame := ""
	for range MaxDepth - 1 {
		frame = FrameName(frame, journal.EffectID{N: 1})
		deep.in(frame, "start").nested(frame, "tool ask agent=helper", "call c1 ask {}")
	}
	frame += "/1.0"
	deep.in(frame, "start", "prepared\ntool ask agent=helper\ntool tell agent=helper told", "respond\ncall c1 tell {}")
	deep.then("plan frame="+frame, "append "+frame+`: planned 1 0
append `+frame+`: failed e1.0.1 max_depth
sync
start `+frame+": v1.0.1 of t1.0.0")
	deep.refused(notDueText, "start frame="+frame+"/1.0")
	deep.in(frame, "settle t1.0.1 failed | too deep", "prepared", "respond\ncall c1 ask {}", "plan")
	deep.then("failure", frame+": e2.0.1 max_depth: pawl: agents are nested deeper than 8")
}

func TestM17_3_ANestedRunStarts(t *testing.T) {
	s := planned(t, "start session=own", "tool ask agent=helper\ntool pay\ntool beg agent=helper ask", "call c1 ask {}\ncall c2 pay {}\ncall c3 beg {}")
	s.refused(notDueText, "start frame=1.1", "start frame=1.2", "start frame=2.0", "start frame=1.0/1.0", "start frame=01.0", "start frame=/1.0",
		"start frame=1.0 run=run-2", "start frame=1.0 agent=desk", "start frame=1.0 session=own", "start frame=1.0 session=batches",
		"start frame=1.0 conversation=c auto")
	s.refused("the journal was written", "start frame=1.0 machine=2")
	s.given("start frame=1.0").refused(notDueText, "start frame=1.0")
	s.then("call t1.0.0", "true c1 {} by= attempt=1 edited=false")
	s.given("decide 1.2#0 approve by=bob", "start frame=1.2 conversation=c").nested("1.2", "tool ask agent=helper", "call c1 ask {}")
	s.refused(notDueText, "start frame=1.2/1.0 conversation=c", "start frame=1.2/1.0 session=own").given("start frame=1.2/1.0 conversation=d")

	chained := planned(t, "start previous=resp_0", "tool ask agent=helper", "call c1 ask {}")
	chained.refused(notDueText, "start frame=1.0 previous=resp_0", "start frame=1.0 previous=resp_1").given("start frame=1.0 previous=resp_9")

	dead := planned(t, "start", "tool ask agent=helper", "call c1 ask {}").given("cancel")
	dead.refused(notDueText, "start frame=1.0")
}

func TestM17_4_WhatIsTheRunsOwn(t *testing.T) {
	s := entered(t, "start", "tool ask agent=helper").nested("1.0", "tool pay", "call n1 pay {}")
	s.refused(notDueText, "fork run=run-2 frame=1.0", "claim frame=1.0", "resume frame=1.0", "cancel frame=1.0")
	s.refused(notDueText, "settle t1.0.1 done frame=1.0/1.0", "prepared frame=1.1")
	s.in("1.0", "settle t1.0.1 unknown", "prepared", "respond\nmessage so", "plan")
	s.refused(notDueText, "prepared frame=1.0", "respond frame=1.0", "fired w1.0.1 frame=1.0", "loaded frame=1.0")
	s.then("settle t1.0.1 done frame=1.0\npaid", "append 1.0: settled t1.0.1 done late output n1 paid\nsync")
	s.refused(notDueText, "decide 1.0/1.0#1 giveup")
}

func TestM17_5_RulesGoFromFrameToFrame(t *testing.T) {
	s := planned(t, "start", "tool ask agent=helper\ntool pay", "call c1 ask {}\ncall c2 ask {}\ncall c3 pay {}")
	s.given("start frame=1.1", "start frame=1.0", "settle t1.2.1 unknown")
	s.in("1.1", "prepared\ntool pay", "respond\ncall n1 pay {}").in("1.0", "prepared\ntool pay", "respond\ncall n1 pay {}")
	s.then("batch\nplan frame=1.1\nplan frame=1.0", `
append 1.1: planned 1 0
append 1.0: planned 1 0
append 1.0: intended t1.0.1 not after 601000
append 1.1: intended t1.0.1 not after 601000
sync
start 1.0: t1.0.1 key pawl_0092a5d8 not after 601000
start 1.1: t1.0.1 key pawl_9eaab426 not after 601000`)
	// A frame waits for its own effects only.
	s.then("settle t1.0.1 done frame=1.0", "append 1.0: settled t1.0.1 done output n1\nsync\nstart 1.0: p2.0.1 upto 3")
	s.given("ended p2.0.1 frame=1.0").then("ready", "") // [M1.7]
	s.then("claim", `
append claimed epoch 1
start 1.0: p2.0.1 upto 3`)
}

func TestM17_6_Leave(t *testing.T) {
	s := entered(t, "start", "tool ask agent=helper").in("1.0", "prepared", "respond\nmessage so")
	s.then("plan frame=1.0", "append 1.0: planned 1 final message\nappend 1.0: finished at 1: assistant so\nstart v1.0.1 of t1.0.0")
	s.then("frames", `"" desk`).then("ready", "")
	s.then("crash", "status running")
	r := entered(t, "start", "tool ask agent=helper").nested("1.0", "", "message so")
	r.then("claim", "append claimed epoch 1\nstart v1.0.1 of t1.0.0")
	r.refused(notDueText, "start frame=1.0", "finish at=1 frame=1.0")
}

func TestM17_7_HowAnAgentCallIsSettled(t *testing.T) {
	s := entered(t, "start", "tool ask agent=helper\nuse first")
	s.refused(notDueText, "settle t1.0.1 done", "settle t1.0.1 failed", "settle t1.0.0 unknown")
	s.nested("1.0", "", "message so")
	s.refused(notDueText, "settle t1.0.1 failed", "settle t1.0.1 unknown", "settle t1.0.1 notexecuted", "settle t1.0.1 pending", "settle t1.0.1 asks",
		"settle t1.0.2 done", "settle t1.0.0 done", "settle t1.0.0 dropped", "settle t1.0.1 done output-of=c2")
	s.then("settle t1.0.1 done | so", `
append settled t1.0.1 done output c1 so
append finished at 2: output c1 so
sync
status finished`)
	s.refused(notDueText, "settle t1.0.1 done", "settle t1.0.1 unknown")
}

func TestM17_8_ToldOrFailed(t *testing.T) {
	s := entered(t, "start", "tool ask agent=helper told").nested("1.0", "tool deeper agent=clerk", "call n1 deeper {}").
		given("start frame=1.0/1.0 agent=clerk max-turns=1").nested("1.0/1.0", "tool look", "call k1 look {}")
	s.then("settle t1.0.1 done frame=1.0/1.0", `
append 1.0/1.0: settled t1.0.1 done output k1
append 1.0/1.0: failed p2.0.1 max_turns
append 1.0/1.0: finished cancelled
append 1.0: settled t1.0.0 dropped output n1 (stopped)
append 1.0: finished cancelled
sync
start v1.0.1 of t1.0.0`)
	s.then("call t1.0.0", "true c1 {} by= attempt=1 edited=false failure=max_turns").then("failure", "none")
	s.refused(notDueText, "settle t1.0.1 done")
	s.then("settle t1.0.1 failed | out of turns", "append settled t1.0.1 failed output c1 out of turns\nsync\nstart p2.0.1 upto 3")

	e := entered(t, "start", "tool ask agent=helper told").nested("1.0", "tool pay ask expires=10 fails", "call n1 pay {}\ncall n2 pay {}")
	e.given("wait 10ms").then("ready", `
append 1.0: expired 1.0/1.0#0
append 1.0: settled t1.0.0 dropped output n1 (cancelled)
append 1.0: settled t1.1.0 dropped output n2 (cancelled)
append 1.0: finished cancelled
sync
start v1.0.1 of t1.0.0
status running`)

	f := entered(t, "start", "tool ask agent=helper").in("1.0", "fail p1.0.1 | no instructions")
	f.then("failure", "1.0: p1.0.1 error: no instructions").then("status", "failed")
	f.then("resume", "append resumed\nstart 1.0: p1.0.1 upto 1\nstatus running").then("failure", "none")

	c := entered(t, "start", "tool ask agent=helper told").in("1.0", "prepared")
	c.given("cancel").then("fail m1.0.1 frame=1.0", `
append 1.0: failed m1.0.1 error
append 1.0: finished cancelled
append settled t1.0.0 dropped output c1 (stopped)
append finished cancelled
sync
status cancelled`)
	owes := planned(t, "start", "tool ask agent=helper told", "call c1 ask {}").given("start frame=1.0 session=batches").in("1.0", "loaded")
	owes.in("1.0", "fail s1.0.1").then("failure", "none") // the batch is appended all the same
	owes.then("fail s1.0.2 frame=1.0", "append 1.0: failed s1.0.2 error\nsync\nstatus failed").then("failure", "1.0: s1.0.2 error: ")
}

func TestM17_9_AFrameIsClosed(t *testing.T) {
	s := planned(t, "start", "tool ask agent=helper told", "call c1 ask {}").given("start frame=1.0 session=own").in("1.0", "loaded").
		nested("1.0", "tool deeper agent=clerk\ntool pay\ntool mail ask expires=10 fails", "call n1 deeper {}\ncall n2 mail {}\ncall n3 pay {}\ncall n4 deeper {}").
		given("start frame=1.0/1.0 agent=clerk").in("1.0/1.0", "prepared", "fail m1.0.1 retry-at=9000").
		given("start frame=1.0/1.3 agent=clerk").in("1.0/1.3", "prepared")
	s.given("wait 10ms")
	s.then("ready", `
append 1.0: expired 1.0/1.1#0
append 1.0: settled t1.1.0 dropped output n2 (cancelled)
append 1.0/1.0: finished cancelled
append 1.0: settled t1.0.0 dropped output n1 (stopped)
sync`)
	for frame, want := range map[string]bool{"": false, "1.0": true, "1.0/1.3": true} {
		if got := s.m.Frame(frame).Closed(); got != want {
			t.Errorf("frame %q closed: %v", frame, got)
		}
	}
	s.refused(notDueText, "decide 1.0/1.1#0 approve", "finish cancelled frame=1.0", "intended m1.0.2 frame=1.0/1.3")
	s.then("respond frame=1.0/1.3\ncall k1 wire {}", `
append 1.0/1.3: responded m1.0.1
append 1.0/1.3: finished cancelled
append 1.0: settled t1.3.0 dropped output n4 (stopped)
sync`)
	s.then("settle t1.2.1 done frame=1.0", `
append 1.0: settled t1.2.1 done output n3
append 1.0: confirmed batch 2 upto 9
append 1.0: finished cancelled
batch 1.0: 2 [1,9)
sync
start v1.0.1 of t1.0.0`)
}

func TestM17_10_HowAClosedRunsCallEnds(t *testing.T) {
	s := planned(t, "start", "tool ask agent=helper", "call c1 ask {}\ncall c2 ask {}\ncall c3 ask {}\ncall c4 ask {}\ncall c5 ask {}")
	for _, frame := range []string{"1.0", "1.1", "1.2", "1.3"} {
		s.given("start frame=" + frame)
	}
	s.nested("1.0", "tool deeper agent=clerk", "call n1 deeper {}").given("start frame=1.0/1.0 agent=clerk")
	s.nested("1.0/1.0", "tool pay", "call k1 pay {}").in("1.0/1.0", "settle t1.0.1 unknown")
	s.nested("1.1", "tool pay", "call n1 pay {}").in("1.1", "settle t1.0.1 unknown", "settle t1.0.1 done | it did") // evidence
	s.nested("1.2", "tool read readonly", "call n1 read {}")
	for range MaxUnknown {
		s.in("1.2", "settle t1.0."+string(rune('1'+s.m.Frame("1.2").find(s.effect("t1.0.0")).attempt-1))+" unknown")
	}
	s.nested("1.3", "", "message so")
	s.given("ended v1.3.1", "ended e1.4.1").given("ended p2.0.1 frame=1.0/1.0", "ended p2.0.1 frame=1.1", "ended p2.0.1 frame=1.2")
	s.then("cancel", `
append cancelled
append settled t1.3.0 dropped output c4 (stopped)
append settled t1.4.0 dropped output c5 (cancelled)
append 1.0/1.0: finished cancelled
append 1.0: settled t1.0.0 unknown output n1 (unknown)
append 1.0: finished cancelled
append 1.1: finished cancelled
append 1.2: finished cancelled
append settled t1.0.0 unknown output c1 (unknown)
append settled t1.1.0 dropped output c2 (stopped)
append settled t1.2.0 dropped output c3 (stopped)
append finished cancelled
sync
status cancelled`)
	s.refused(notDueText, "settle t1.3.1 done", "fail v1.3.1", "fail e1.4.1", "start frame=1.4")

	// The frame 1.10 is not inside the frame 1.1.
	many := planned(t, "start", "tool ask agent=helper", calls(11, "ask")).given("start frame=1.1", "start frame=1.10")
	many.nested("1.10", "tool pay", "call n1 pay {}").in("1.10", "settle t1.0.1 unknown")
	many.given("ended p1.0.1 frame=1.1", "ended p2.0.1 frame=1.10", "cancel")
	many.then("request 13 14", "13 output c1 (stopped)").then("request 22 23", "22 output c10 (unknown)")
}

// calls are calls of a tool, one a line.
func calls(n int, tool string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "call c%d %s {}\n", i, tool)
	}
	return b.String()
}

func TestM17_11_EnterAndLeaveFail(t *testing.T) {
	s := planned(t, "start", "tool ask agent=helper\ntool tell agent=helper told", "call c1 ask {}\ncall c2 tell {}\ncall c3 tell {}")
	s.refused(notDueText, "fail v1.1.1", "fail e1.1.2", "fail e1.3.1")
	s.then("fail e1.1.1 | bad input", "append failed e1.1.1 error\nsync\nstart v1.1.1 of t1.1.0").then("failure", "none")
	s.refused(notDueText, "start frame=1.1", "fail e1.1.1", "settle t1.1.1 done").given("settle t1.1.1 failed | bad input")
	s.given("start frame=1.2").nested("1.2", "", "message so")
	s.then("fail v1.2.1 | bad extractor", "append failed v1.2.1 error\nsync\nstart v1.2.1 of t1.2.0").then("failure", "none")
	s.then("fail v1.2.1 | bad words", "append failed v1.2.1 error\nsync").then("failure", "v1.2.1 error: bad words")
	s.then("resume", "append resumed\nstart v1.2.1 of t1.2.0").given("settle t1.2.1 failed | bad extractor")
	s.then("fail e1.0.1 | bad input", "append failed e1.0.1 error\nsync\nstatus failed").then("failure", "e1.0.1 error: bad input")
	s.then("resume", "append resumed\nstart e1.0.1 of t1.0.0 key pawl_401017e1\nstatus running").given("start frame=1.0")
	s.nested("1.0", "", "message so").given("fail v1.0.1").then("failure", "v1.0.1 error: ").given("resume", "settle t1.0.1 done")
}

func TestM17_12_ClaimsAndForks(t *testing.T) {
	s := planned(t, "start", "tool ask agent=helper", "call c1 ask {}\ncall c2 ask {}\ncall c3 ask {}").given("start frame=1.0", "start frame=1.1")
	s.nested("1.0", "tool pay", "call n1 pay {}").in("1.1", "prepared\ntool look ask")
	s.given("claim").then("interruptions", "in-doubt 1.0/1.0#1 n1 pay {} (desk > helper) not before 603000")
	s.refused(flightText, "decide 1.0/1.0#1 retry").refused(notDueText, "fork run=run-2")
	s.given("claim gone").then("interruptions", "in-doubt 1.0/1.0#1 n1 pay {} (desk > helper) not before 603000")
	s.given("wait 11m", "decide 1.0/1.0#1 giveup").in("1.1", "respond of=m1.0.3\ncall n1 look {}", "plan")
	key := s.m.Frame("1.1").KeyOf(s.effect("t1.0.0"))
	s.given("fork run=run-2")
	s.then("interruptions", "approval 1.1/1.0#0 n1 look {} (desk > helper)").then("unsettled", "")
	if s.m.Frame("1.1").KeyOf(s.effect("t1.0.0")) == key {
		t.Error("a fork has the keys of the first run")
	}
	s.given("start frame=1.2 conversation=c").refused(notDueText, "fork run=run-3")
}

func TestM17_13_UnsettledInFrames(t *testing.T) {
	s := planned(t, "start", "tool ask agent=helper\ntool pay", "call c1 pay {}\ncall c2 ask {}\ncall c3 pay {}\ncall c4 ask {}").
		given("start frame=1.3", "start frame=1.1").nested("1.1", "tool pay", "call n1 pay {}\ncall n2 pay {}").
		nested("1.3", "tool pay", "call n1 pay {}\ncall n2 pay {}")
	s.given("settle t1.0.1 pending | a person").in("1.1", "settle t1.1.1 unknown error | timeout").in("1.3", "settle t1.0.1 unknown").given("settle t1.2.1 unknown")
	s.then("unsettled", `
told t1.2.0 c3 pay attempt=1 begun=1000 1.2#1
1.3: told t1.0.0 n1 pay attempt=1 begun=1000 1.3/1.0#1
1.1: told t1.1.0 n2 pay attempt=1 begun=1000 1.1/1.1#1 timeout
external t1.0.0 c1 pay attempt=1 begun=1000 1.0#1 a person
1.1: running t1.0.0 n1 pay attempt=1 begun=1000
1.3: running t1.1.0 n2 pay attempt=1 begun=1000`)
	var frames []string
	for u := range s.m.Unsettled() {
		frames = append(frames, u.Frame)
		if len(frames) == 5 {
			break
		}
	}
	if diff := cmp.Diff([]string{"", "1.3", "1.1", "", "1.1"}, frames); diff != "" {
		t.Error(diff)
	}
}
