package machine

import "testing"

func TestM5_1_EveryAttemptSendsTheSame(t *testing.T) {
	s := prepared(t, "start previous=resp_0", "")
	s.then("fail m1.0.1 retry-at=1000", "append failed m1.0.1 error retry at 1000\nappend intended m1.0.2 upto 1\nsync\nstart m1.0.2 [0,1) after resp_0")
	s.then("fail m1.0.2 retry-at=1000", "append failed m1.0.2 error retry at 1000\nappend intended m1.0.3 upto 1\nsync\nstart m1.0.3 [0,1) after resp_0")
}

func TestM5_2_WhenARequestIsDue(t *testing.T) {
	s := newScript(t).given("start")
	s.then("prepared", "append prepared turn 1 upto 1\nstart m1.0.1 [0,1)") // open
	s.given("cancel")
	s.then("status", "running") // still in flight
	s.then("ended m1.0.1", "append finished cancelled\nsync\nstatus cancelled")
	r := prepared(t, "start", "").given("fail m1.0.1")
	r.then("resume", "append resumed\nappend intended m1.0.2 upto 1\nstart m1.0.2 [0,1)\nstatus running") // to be repeated
}

func TestM5_3_TheWaysOfARequest(t *testing.T) {
	c := prepared(t, "start conversation=c", "")
	c.then("fail m1.0.1 unknown retry-at=9000", "append failed m1.0.1 error unknown retry at 9000\nsync\nstart r1.0.1 about m1.0.1 [0,1)")
	c.then("absent m1.0.1", "append absent m1.0.1\nsync\nstart w1.0.1 until 9000")
	c.given("wait 8s")
	c.then("fired w1.0.1", "append fired w1.0.1\nappend intended m1.0.2 upto 1\nsync\nstart m1.0.2 [0,1)")

	s := prepared(t, "start", "").given("claim")
	s.refused(notDueText, "absent m1.0.1", "fail r1.0.1") // it is not in doubt any more
	s.then("fail m1.0.2 retry-at=3000", "append failed m1.0.2 error retry at 3000\nsync\nstart w1.0.2 until 3000")
	s.given("wait 2s") // the time has come, the timer has not
	s.then("ready", "append intended m1.0.3 upto 1\nstart m1.0.3 [0,1)")
	s.then("in-flight", "1")
}

func TestM5_4_ResponsesOfTheOpenAttempt(t *testing.T) {
	s := prepared(t, "start", "").given("fail m1.0.1 retry-at=1000")
	s.refused(notDueText, "respond of=m1.0.1", "respond of=m1.0.3", "respond of=m2.0.2", "respond of=t1.0.2")
	s.given("respond of=m1.0.2")
	s.refused(notDueText, "respond of=m1.0.2")

	d := prepared(t, "start conversation=c", "").given("claim")
	d.then("respond\nmessage done", "append responded m1.0.1\nsync\nstart c1.0.1")
}

func TestM5_5_AFailedAttemptIsRepeated(t *testing.T) {
	s := prepared(t, "start", "")
	s.then("fail m1.0.1 unknown", "append failed m1.0.1 error unknown\nsync\nstatus failed")
	s.refused(notDueText, "respond of=m1.0.1", "fail m1.0.1")
	s.then("resume", "append resumed\nappend intended m1.0.2 upto 1\nstart m1.0.2 [0,1)\nstatus running")
	s.then("fail m1.0.2 retry-at=2000", "append failed m1.0.2 error retry at 2000\nsync\nstart w1.0.2 until 2000")
}

func TestM5_6_UnknownOnAConversation(t *testing.T) {
	s := prepared(t, "start conversation=c", "")
	s.then("fail m1.0.1 unknown", "append failed m1.0.1 error unknown\nsync\nstatus failed")
	s.then("resume", "append resumed\nstart r1.0.1 about m1.0.1 [0,1)\nstatus running")
	s.then("absent m1.0.1", "append absent m1.0.1\nappend intended m1.0.2 upto 1\nsync\nstart m1.0.2 [0,1)")
	s.then("fail m1.0.2", "append failed m1.0.2 error\nsync\nstatus failed") // refused for sure
	s.then("resume", "append resumed\nappend intended m1.0.3 upto 1\nsync\nstart m1.0.3 [0,1)\nstatus running")
}

func TestM5_7_Absent(t *testing.T) {
	s := prepared(t, "start conversation=c", "")
	s.refused(notDueText, "absent m1.0.1") // open, not in doubt
	s.given("claim").refused(notDueText, "absent m1.0.2", "absent m2.0.1")
	s.then("absent m1.0.1", "append absent m1.0.1\nappend intended m1.0.2 upto 1\nsync\nstart m1.0.2 [0,1)")
}

func TestM5_8_TheNextAttempt(t *testing.T) {
	s := prepared(t, "start", "")
	s.refused(notDueText, "intended m1.0.2 upto=1", "intended m1.0.1 upto=1", "intended m2.0.1 upto=1") // the first is open
	s.m.Step(s.fact("fail m1.0.1 retry-at=9000"))
	s.refused(notDueText, "intended m1.0.3 upto=1", "intended m1.0.2 upto=0")
	if err := s.m.Check(s.fact("intended m1.0.2 upto=1")); err != nil {
		t.Error(err)
	}
	s.m.Step(s.fact("intended m1.0.2 upto=1"))
	s.m.Step(s.fact("claim")) // there is nothing to wait for any more
	s.then("ready", `
append failed m1.0.1 error retry at 9000
append intended m1.0.2 upto 1
append claimed epoch 1
append intended m1.0.3 upto 1
sync
start m1.0.3 [0,1)`)
	d := prepared(t, "start", "")
	d.m.Step(d.fact("claim"))
	if err := d.m.Check(d.fact("intended m1.0.2 upto=1")); err != nil {
		t.Error(err)
	}
	c := prepared(t, "start conversation=c", "").given("claim")
	c.refused(notDueText, "intended m1.0.2 upto=1")
	x := prepared(t, "start", "").given("fail m1.0.1", "cancel")
	x.refused(notDueText, "intended m1.0.2 upto=1")
}

func TestM5_9_UsageCountsEachAttemptOnce(t *testing.T) {
	s := prepared(t, "start conversation=c", "")
	s.then("usage", "0 requests, 0 unreported, 0 tokens")
	s.given("fail m1.0.1 unknown", "resume")
	s.then("usage", "0 requests, 0 unreported, 0 tokens") // nobody knows yet
	s.given("absent m1.0.1")
	s.then("usage", "1 requests, 1 unreported, 0 tokens")
	s.given("fail m1.0.2", "resume")
	s.then("usage", "2 requests, 2 unreported, 0 tokens")
	s.given("fail m1.0.3 unknown", "resume", "respond tokens=5\nreasoning hm") // found by reading back
	s.then("usage", "3 requests, 2 unreported, 5 tokens")

	d := prepared(t, "start", "").given("claim")
	d.then("usage", "1 requests, 1 unreported, 0 tokens")
	d.given("respond tokens=7\nmessage done")
	d.then("usage", "2 requests, 1 unreported, 7 tokens")
}

func TestM5_10_FiredLiftsTheWait(t *testing.T) {
	s := prepared(t, "start", "").given("fail m1.0.1 retry-at=9000")
	s.then("fired w1.0.2", "append fired w1.0.2") // another's
	s.then("fired w1.0.1", "append fired w1.0.1\nappend intended m1.0.2 upto 1\nstart m1.0.2 [0,1)")
}

func TestM6_1_ItemsAreAppended(t *testing.T) {
	s := prepared(t, "start", "").given("respond\nreasoning hm\nmessage so")
	s.then("history", "0 user hello\n1 reasoning\n2 assistant so\nsettled 1, in the session 0")
	n, items, man := s.m.Response()
	if n != 1 || len(items) != 2 || man == nil {
		t.Errorf("response %d of %d items", n, len(items))
	}
}

func TestM6_2_NothingIsSettledBeforeThePlan(t *testing.T) {
	s := prepared(t, "start session=own", "").given("respond\nmessage done")
	s.then("ready", "")
	s.then("plan", `
append planned 1 final message
append confirmed batch 2 upto 2
append finished at 1: assistant done
batch 2 [1,2)
sync
status finished`)
}

func TestM6_3_WhatARequestCovers(t *testing.T) {
	s := planned(t, "start", "tool look", "call c1 look {}").given("settle t1.0.1 done")
	s.then("prepared", "append prepared turn 2 upto 3 as turn 1\nstart m2.0.1 [0,3)")
	c := planned(t, "start conversation=c", "tool look", "call c1 look {}").given("settle t1.0.1 done")
	c.then("prepared", "append prepared turn 2 upto 3 as turn 1\nsync\nstart m2.0.1 [2,3)")
}

func TestM6_4_TheChain(t *testing.T) {
	p := newScript(t).given("start previous=resp_0")
	p.then("prepared", "append prepared turn 1 upto 1\nstart m1.0.1 [0,1) after resp_0")
	p.given("respond id=resp_1\nreasoning hm", "plan")
	p.then("prepared", "append prepared turn 2 upto 2 as turn 1\nstart m2.0.1 [2,2) after resp_1")
	p.given("respond\nreasoning hm", "plan") // without an id
	p.then("prepared", "append prepared turn 3 upto 3 as turn 1\nstart m3.0.1 [2,3) after resp_1")
	p.given("respond id=resp_3\nreasoning hm", "plan")
	p.then("prepared", "append prepared turn 4 upto 4 as turn 1\nstart m4.0.1 [4,4) after resp_3")

	a := newScript(t).given("start auto")
	a.then("prepared", "append prepared turn 1 upto 1\nstart m1.0.1 [0,1)")
	a.given("respond\nreasoning hm", "plan")
	a.then("prepared", "append prepared turn 2 upto 2 as turn 1\nstart m2.0.1 [0,2)")
	a.given("respond id=resp_2\nreasoning hm", "plan")
	a.then("prepared", "append prepared turn 3 upto 3 as turn 1\nstart m3.0.1 [3,3) after resp_2")

	c := prepared(t, "start conversation=c", "").given("respond\nreasoning hm", "plan") // an id is not needed
	c.then("prepared", "append prepared turn 2 upto 2 as turn 1\nsync\nstart m2.0.1 [2,2)")
}

func TestM6_5_ARequestCarriesWhatTheChainLacks(t *testing.T) {
	s := planned(t, "start auto", "tool pay ask\ntool look\ntool wipe deny",
		"call c1 pay {}\ncall c2 nothing {}\ncall c3 look {\ncall c4 look {}\ncall c5 wipe {}")
	s.given("settle t1.3.1 failed | broken", "claim", "decide 1.0#0 reject | no")
	s.then("prepared", "append prepared turn 2 upto 11 as turn 1\nstart m2.0.1 [6,11) after resp_1")
	s.then("request 6 11", `
6 output c1 no
7 output c2 no such tool
8 output c3 bad arguments
9 output c4 broken
10 output c5 (rejected)`)
}
