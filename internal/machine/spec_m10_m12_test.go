package machine

import "testing"

func TestM10_1_AResponseEntersWhole(t *testing.T) {
	s := planned(t, "start session=own", "tool look\ntool pay ask", "message let me see\ncall c1 look {}\ncall c2 pay {}")
	s.then("settle t1.1.1 done", "append settled t1.1.1 done output c1\nsync\nstatus waiting")
	s.then("decide 1.2#0 reject", `
append decided 1.2#0 reject
append settled t1.2.0 rejected output c2 (rejected)
append confirmed batch 2 upto 6
batch 2 [1,6)
sync
start p2.0.1 upto 6
status running`)
}

func TestM10_2_WhatIsOwed(t *testing.T) {
	n := newScript(t).given("start") // no session
	n.then("prepared", "append prepared turn 1 upto 1\nstart m1.0.1 [0,1)")
	l := newScript(t).given("start session=own") // not loaded
	l.then("ready", "")
	l.then("loaded", "append loaded 0 items, 0 healed\nappend confirmed batch 1 upto 1\nbatch 1 [0,1)\nsync\nstart p1.0.1 upto 1")
	l.given("prepared", "respond").then("plan", "append planned 1\nstart p2.0.1 upto 1") // an empty response
}

func TestM10_3_OwnAndOtherSessions(t *testing.T) {
	o := newScript(t).given("start session=own")
	o.then("loaded\nuser old", "append loaded 1 items, 0 healed\nappend confirmed batch 1 upto 2\nbatch 1 [1,2)\nsync\nstart p1.0.1 upto 2")
	for _, kind := range []string{"plain", "batches"} {
		s := newScript(t).given("start session=" + kind)
		s.refused(notDueText, "intended s1.0.1 upto=1")
		s.then("loaded\nuser old", "append loaded 1 items, 0 healed\nappend intended s1.0.1 upto 2\nsync\nstart s1.0.1 [1,2)")
		s.refused(notDueText, "intended s1.0.2 upto=2", "intended s2.0.1 upto=2")
		s.given("confirm", "prepared", "respond\nmessage so")
		s.then("plan", "append planned 1 final message\nappend intended s2.0.1 upto 3\nsync\nstart s2.0.1 [2,3)")
	}
	w := newScript(t).given("start session=own")
	w.m.Step(w.fact("loaded"))
	w.refused(notDueText, "intended s1.0.1 upto=1")
}

func TestM10_4_AnOpenBatchIsAppended(t *testing.T) {
	s := newScript(t).given("start session=plain")
	s.then("loaded\nuser old", "append loaded 1 items, 0 healed\nappend intended s1.0.1 upto 2\nsync\nstart s1.0.1 [1,2)")
	s.then("ready", "")
}

func TestM10_5_ABatchInDoubt(t *testing.T) {
	p := newScript(t).given("start session=plain", "loaded")
	p.then("claim", "append claimed epoch 1\nstart r1.1.1 about s1.0.1 [0,1)")
	p.refused(notDueText, "intended s1.0.2 upto=1")
	b := newScript(t).given("start session=batches", "loaded")
	b.then("claim", "append claimed epoch 1\nappend intended s1.0.2 upto 1\nsync\nstart s1.0.2 [0,1)")
	b.m.Step(b.fact("claim"))
	b.refused(notDueText, "intended s1.0.3 upto=0", "intended s1.0.2 upto=1", "intended s1.0.4 upto=1")
}

func TestM10_6_AbsentBatches(t *testing.T) {
	s := newScript(t).given("start session=plain", "loaded")
	s.refused(notDueText, "absent s1.0.1")
	s.given("claim").refused(notDueText, "absent s1.0.2", "absent s2.0.1")
	s.then("absent s1.0.1", "append absent s1.0.1\nappend intended s1.0.2 upto 1\nsync\nstart s1.0.2 [0,1)")
	s.given("claim") // attempt 2 is another matter
	s.then("absent s1.0.2", "append absent s1.0.2\nappend intended s1.0.3 upto 1\nsync\nstart s1.0.3 [0,1)")
	// What did not happen cannot fail any more.
	s.given("fail s1.0.3", "absent s1.0.3").refused(notDueText, "fail s1.0.3")
}

func TestM10_7_AFailedAppendIsInDoubt(t *testing.T) {
	for _, fail := range []string{"fail s1.0.1", "fail s1.0.1 unknown"} {
		s := newScript(t).given("start session=plain", "loaded", fail)
		s.then("status", "failed")
		s.then("resume", "append resumed\nstart r1.1.1 about s1.0.1 [0,1)\nstatus running")
	}
}

func TestM10_8_Confirmed(t *testing.T) {
	s := newScript(t).given("start session=plain").refused(notDueText, "confirm")
	s.given("loaded").refused(notDueText, "confirm n=2", "confirm n=0", "confirm upto=0", "confirm upto=2")
	s.given("confirm").refused(notDueText, "confirm")
	s.given("prepared", "respond\nmessage so", "plan", "claim") // in doubt
	s.then("confirm found", "append confirmed batch 2 upto 2 found\nappend finished at 1: assistant so\nsync\nstatus finished")

	o := newScript(t).given("start session=own").refused(notDueText, "confirm n=1 upto=1")
	o.m.Step(o.fact("loaded"))
	o.refused(notDueText, "confirm n=2 upto=1", "confirm n=1 upto=0", "confirm n=1 upto=2")
	o.given("confirm n=1 upto=1").refused(notDueText, "confirm n=2 upto=1")
	newScript(t).given("start").refused(notDueText, "confirm n=1 upto=1")
	p := newScript(t).given("start session=plain")
	p.m.Step(p.fact("loaded"))
	p.refused(notDueText, "confirm n=1 upto=1") // not intended
}

func TestM10_9_NoRequestWhileSomethingIsOwed(t *testing.T) {
	s := newScript(t).given("start session=plain")
	for _, c := range []string{"loaded", "fail s1.0.1", "resume", "absent s1.0.1", "claim", "fail r1.1.2", "resume"} {
		s.given(c).refused(notDueText, "prepared")
		if n := len(s.facts); n == 0 {
			t.Fatal("no facts")
		}
		for id := range s.m.handed {
			if k := id.Kind; k == 'p' || k == 'm' {
				t.Errorf("after %s: %s is in flight", c, id)
			}
		}
	}
	s.then("confirm", "append confirmed batch 1 upto 1\nsync\nstart p1.0.1 upto 1")
}

func TestM10_10_AnInputThatWasNeverLoaded(t *testing.T) {
	s := newScript(t).given("start session=plain", "ended l0.0.1")
	s.then("cancel", "append cancelled\nappend finished cancelled\nsync\nstatus cancelled")
	l := newScript(t).given("start session=own", "cancel") // the history was being read
	l.then("loaded", "append loaded 0 items, 0 healed\nappend confirmed batch 1 upto 1\nappend finished cancelled\nbatch 1 [0,1)\nsync\nstatus cancelled")
}

func TestM11_1_TheFirstFailureCounts(t *testing.T) {
	s := newScript(t).given("start session=plain", "loaded", "fail s1.0.1 | the first", "fail s1.0.1 | the second")
	if f := s.m.Failure(); f == nil || f.Error != "the first" {
		t.Errorf("failure %+v", f)
	}
	r := prepared(t, "start", "").given("fail m1.0.1 retry-at=5000")
	if r.m.Failure() != nil {
		t.Error("a request that is tried again is a failure")
	}
	for _, c := range []struct{ start, fail string }{
		{"start session=own", "fail l0.0.1"}, {"start", "fail p1.0.1"},
	} {
		newScript(t).given(c.start, "cancel", c.fail).then("status", "cancelled")
	}
	p := prepared(t, "start", "").given("respond\nmessage so", "cancel", "fail c1.0.1")
	p.then("status", "cancelled")
	m := prepared(t, "start", "").given("cancel", "fail m1.0.1")
	m.then("status", "cancelled")
	j := planned(t, "start", "tool look\nuse custom", "call c1 look {}").given("settle t1.0.1 done", "cancel", "fail j1.0.1")
	j.then("status", "cancelled")
	q := prepared(t, "start conversation=c", "").given("claim", "cancel", "fail r1.0.1")
	q.then("status", "cancelled")
	b := newScript(t).given("start session=plain", "loaded", "cancel", "fail s1.0.1")
	b.then("status", "failed").given("resume", "fail r1.1.1").then("status", "failed")
}

func TestM11_2_WhatCanFail(t *testing.T) {
	s := newScript(t).given("start session=plain")
	s.refused(notDueText, "fail p1.0.1", "fail l1.0.1", "fail l0.0.1 retry-at=5000", "fail w1.0.1", "fail r1.1.1")
	s.given("fail l0.0.1", "resume", "loaded").refused(notDueText, "fail l0.0.1", "fail s1.0.2", "fail s2.0.1", "fail s1.0.1 retry-at=5000", "fail r1.1.1", "fail p1.0.1")
	s.given("fail s1.0.1", "resume").refused(notDueText, "fail r1.0.1", "fail r1.1.2").given("fail r1.1.1", "resume", "confirm found")
	s.refused(notDueText, "fail p2.0.1", "fail p1.0.2", "fail m1.0.1").given("fail p1.0.1", "resume", "prepared\ntool look\nuse custom")
	s.refused(notDueText, "fail m1.0.2", "fail m2.0.1", "fail r1.0.1", "fail c1.0.1").given("fail m1.0.1", "resume", "respond\ncall c1 look {}")
	s.refused(notDueText, "fail c2.0.1", "fail c1.0.2", "fail m1.0.2").given("fail c1.0.1", "resume", "plan")
	s.refused(notDueText, "fail t1.0.1", "fail c1.0.1", "fail j1.0.1").given("settle t1.0.1 done", "confirm")
	s.refused(notDueText, "fail j2.0.1", "fail j1.0.2").given("fail j1.0.1", "resume", "judge 1").refused(notDueText, "fail j1.0.1")
	c := prepared(t, "start conversation=c", "").refused(notDueText, "fail r1.0.1").given("claim").refused(notDueText, "fail r1.0.2", "fail r1.1.1")
	c.given("fail r1.0.1")
}

func TestM11_3_NothingNewAfterAFailure(t *testing.T) {
	s := newScript(t).given("start session=batches", "loaded", "fail s1.0.1")
	s.then("ready", "")
	s.refused(notDueText, "intended s1.0.2 upto=1", "finish cancelled")
	// A reconcile that is in flight still has its say.
	c := prepared(t, "start conversation=c", "").given("fail m1.0.1 unknown retry-at=2000")
	c.m.Step(c.fact("fail r1.0.1"))
	c.then("ready", "append failed r1.0.1 error\nsync\nstatus failed")
	c.then("respond\nmessage so", "append responded m1.0.1\nsync")
	c.then("resume", "append resumed\nstart c1.0.1\nstatus running")
}

func TestM11_4_ResumedGoesOnWhereItFailed(t *testing.T) {
	s := newScript(t).given("start")
	s.then("resume", "append resumed") // nothing had failed
	s.then("fail p1.0.1", "append failed p1.0.1 error\nsync\nstatus failed")
	s.then("resume", "append resumed\nstart p1.0.1 upto 1\nstatus running")
}

func TestM11_5_CancelClearsAFailure(t *testing.T) {
	s := prepared(t, "start", "").given("fail m1.0.1")
	s.then("cancel", "append cancelled\nappend finished cancelled\nsync\nstatus cancelled")
}

func TestM12_1_EpochsGrow(t *testing.T) {
	s := newScript(t).given("start").refused(notDueText, "claim epoch=0").given("claim epoch=3")
	s.refused(notDueText, "claim epoch=3", "claim epoch=2").given("claim epoch=9")
	if s.m.Epoch() != 9 {
		t.Errorf("epoch %d, want 9", s.m.Epoch())
	}
	s.given("cancel", "fail p1.0.1").refused(notDueText, "claim epoch=9").given("claim epoch=10")
}

func TestM12_2_WhatAClaimPutsInDoubt(t *testing.T) {
	c := prepared(t, "start conversation=c", "")
	c.then("claim", "append claimed epoch 1\nstart r1.0.1 about m1.0.1 [0,1)")
	b := newScript(t).given("start session=plain", "loaded")
	b.then("claim", "append claimed epoch 1\nstart r1.1.1 about s1.0.1 [0,1)")
	b.m.Step(b.fact("absent s1.0.1"))
	b.then("claim", "append absent s1.0.1\nappend claimed epoch 2\nappend intended s1.0.2 upto 1\nsync\nstart s1.0.2 [0,1)")
	r := prepared(t, "start", "").given("fail m1.0.1 retry-at=9000") // not open
	r.then("claim", "append claimed epoch 1\nstart w1.0.1 until 9000")
}

func TestM12_3_HarmlessCallsRunAgain(t *testing.T) {
	s := planned(t, "start", "tool a readonly wait\ntool b idempotent\ntool c\ntool d tell", "call c1 a {}\ncall c2 b {}\ncall c3 c {}\ncall c4 d {}")
	s.then("claim", `
append claimed epoch 1
append intended t1.0.2 not after 601000
append intended t1.1.2 not after 601000
sync
start t1.0.2 key pawl_401017e1 not after 601000
start t1.1.2 key pawl_e0ee4f1f not after 601000
start w1.4.1 until 603000`)
	s.then("interruptions", "in-doubt 1.2#1 c3 c {} not before 603000")
	// Claims are not counted as unknown outcomes are.
	s.given("claim", "claim", "claim", "settle t1.0.5 unknown").then("settle t1.0.6 done", "append settled t1.0.6 done output c1\nsync")
}

func TestM12_4_FromWhenACallInDoubtIsActedOn(t *testing.T) {
	s := planned(t, "start", "tool a timeout=5000\ntool b tell timeout=7000", "call c1 a {}\ncall c2 b {}")
	s.then("claim", "append claimed epoch 1\nstart w1.2.1 until 10000")
	s.then("interruptions", "in-doubt 1.0#1 c1 a {} not before 8000")
}

func TestM12_5_Gone(t *testing.T) {
	s := planned(t, "batch\nstart\nclaim", "tool a", "call c1 a {}\ncall c2 a {}")
	s.given("claim", "settle t1.0.1 done") // not known to be gone
	s.given("claim gone")                  // the second is gone, the first may not be
	s.refused(flightText, "decide 1.1#1 retry")
	s.given("wait 603s", "decide 1.1#1 retry", "claim gone") // the attempt was the third's
	s.then("interruptions", "in-doubt 1.1#2 c2 a {}")
	d := planned(t, "batch\nstart\nclaim", "tool a wait", "call c1 a {}").given("wait 600s", "settle t1.0.1 unknown running")
	d.then("interruptions", "in-doubt 1.0#1 c1 a {} not before 603000")
	d.given("claim gone").then("interruptions", "in-doubt 1.0#1 c1 a {}") // it was in doubt before the claim
}

func TestM12_6_AClaimTakesEverythingOutOfFlight(t *testing.T) {
	s := newScript(t).given("start session=own", "ended l0.0.1")
	s.then("claim", "append claimed epoch 1\nstart l0.0.1")
	s.then("claim", "append claimed epoch 2\nstart l0.0.1")
	s.then("in-flight", "1")
}

func TestM12_7_Owner(t *testing.T) {
	s := newScript(t).given("start")
	if s.m.Owner().Host != "" {
		t.Errorf("owner %+v before a claim", s.m.Owner())
	}
	s.given("claim")
	if s.m.Owner().Host != "host" {
		t.Errorf("owner %+v", s.m.Owner())
	}
	s.given("fork run=run-2")
	if s.m.Owner().Host != "" {
		t.Errorf("owner %+v of a fork", s.m.Owner())
	}
}
