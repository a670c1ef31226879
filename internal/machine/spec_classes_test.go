package machine

import (
	"strings"
	"testing"
)

func TestM8_16_WhatIsToBeAskedAbout(t *testing.T) {
	// Only a call whose repeat may do harm, and that may have happened, is asked about.
	s := planned(t, "start", "tool a recover\ntool b recover idempotent\ntool c recover transactional\ntool d",
		"call c1 a {}\ncall c2 b {}\ncall c3 c {}\ncall c4 d {}")
	s.then("claim gone", `
append claimed epoch 1 gone
append intended t1.1.2 not after 601000
append intended t1.2.2 not after 601000
sync
start r1.2.1 about t1.0.1 key pawl_401017e1
start t1.1.2 key pawl_e0ee4f1f not after 601000
start t1.2.2 key pawl_a3f3545f not after 601000`)
	// An unknown outcome of the class that commits with its effect is nobody's to tell.
	s.then("settle t1.2.2 unknown | odd", "append settled t1.2.2 unknown output c3 odd\nsync")
	// Each claim lets it be asked again.
	s.given("settle t1.0.1 unknown", "settle t1.1.2 done")
	s.then("interruptions", "in-doubt 1.0#1 c1 a {}\nin-doubt 1.3#1 c4 d {}")
	s.then("claim", "append claimed epoch 2\nstart r1.2.1 about t1.0.1 key pawl_401017e1\nstatus running")
	s.then("interruptions", "in-doubt 1.3#1 c4 d {}")

	// So does an unknown outcome that a driver saw, whatever the tool says of those.
	for _, says := range []string{"", "tell", "wait"} {
		u := planned(t, "start", "tool a recover "+says, "call c1 a {}")
		u.then("settle t1.0.1 unknown", "append settled t1.0.1 unknown output c1\nsync\nstart r1.2.1 about t1.0.1 key pawl_401017e1")
		u.then("interruptions", "")
	}
	w := planned(t, "start", "tool a recover wait", "call c1 a {}").given("settle t1.0.1 unknown", "settle t1.0.1 unknown")
	w.then("claim", "append claimed epoch 1\nstart r1.2.1 about t1.0.1 key pawl_401017e1\nstatus running")
}

func TestM8_17_TheFarSideIsAskedAtItsTime(t *testing.T) {
	s := planned(t, "start", "tool look readonly\ntool a recover timeout=5000", "call c1 look {}\ncall c2 a {}")
	s.then("claim", `
append claimed epoch 1
append intended t1.0.2 not after 601000
sync
start t1.0.2 key pawl_401017e1 not after 601000
start w1.2.1 until 8000`)
	s.then("fired w1.2.1", "append fired w1.2.1\nstart w1.2.1 until 8000") // too early
	s.given("wait 7s").then("fired w1.2.1", "append fired w1.2.1\nstart r1.3.1 about t1.1.1 key pawl_e0ee4f1f")
	s.then("ready", "") // a Reconcile is in flight
	s.then("ended r1.3.1", "").then("claim gone", `
append claimed epoch 2 gone
append intended t1.0.3 not after 608000
sync
start t1.0.3 key pawl_401017e1 not after 608000
start r1.3.1 about t1.1.1 key pawl_e0ee4f1f`)
	s.refused(notDueText, "fail r1.3.1") // an error of the question is no answer, and no failure
	s.then("settle t1.1.1 done | it happened", "append settled t1.1.1 done output c2 it happened\nsync")
	s.then("in-flight", "1")

	// A body that a driver left behind may still act.
	r := planned(t, "start", "tool a recover timeout=5000", "call c1 a {}")
	r.then("settle t1.0.1 unknown running", "append settled t1.0.1 unknown running output c1\nsync\nstart w1.1.1 until 8000")
	r.then("settle t1.0.1 failed | no", "append settled t1.0.1 failed output c1 no\nsync\nstart p2.0.1 upto 3") // it came after all
	r.then("in-flight", "1")
}

func TestM8_18_ItDidNotHappen(t *testing.T) {
	s := planned(t, "start", "tool a recover timeout=5000", "call c1 a {}").given("claim")
	s.refused(notDueText, "absent t1.0.1") // it may still happen
	s.given("wait 7s").refused(notDueText, "absent t1.0.2", "absent t1.0.0", "absent t1.1.1", "absent t2.0.1")
	s.then("absent t1.0.1", `
append absent t1.0.1
append intended t1.0.2 not after 13000
sync
start t1.0.2 key pawl_401017e1 not after 13000`)
	s.refused(notDueText, "absent t1.0.1", "absent t1.0.2")
	// What did not happen is not told as if it might have.
	s.given("claim gone", "batch\nabsent t1.0.2\ncancel").then("history", `
0 user hello
1 call c1 a {}
2 output c1 (cancelled)
settled 3, in the session 0`)

	// A decision on what nobody knew does not count for what comes after it, nor does its stage come again [M9.1].
	late := planned(t, "start", "tool a recover", "call c1 a {}").given("claim gone", "settle t1.0.1 unknown")
	late.then("interruptions", "in-doubt 1.0#1 c1 a {}\n").given("claim gone", "absent t1.0.1", "claim gone", "settle t1.0.2 unknown")
	late.then("interruptions", "in-doubt 1.0#2 c1 a {}\n").refused(notDueText, "decide 1.0#1 retry", "decide 1.0#1 settle | done")
	late.given("decide 1.0#2 retry").refused(sameText, "decide 1.0#2 retry").refused(notDueText, "decide 1.0#1 retry")

	// The attempt before it may have happened all the same.
	b := planned(t, "start", "tool a recover", "call c1 a {}").given("claim gone", "settle t1.0.1 unknown", "decide 1.0#1 retry", "claim gone")
	b.then("batch\nabsent t1.0.2\ncancel", `
append absent t1.0.2
append cancelled
append settled t1.0.0 unknown output c1 (unknown)
append finished cancelled
sync
status cancelled`)
	p := planned(t, "start", "tool a", "call c1 a {}").given("claim gone")
	p.refused(notDueText, "absent t1.0.1") // nobody was to ask
}

func TestM8_19_TheFarSideCannotTell(t *testing.T) {
	const cannot = "settle t1.0.1 unknown error | no such report"
	s := planned(t, "start", "tool a recover timeout=5000", "call c1 a {}").given("claim").refused(notDueText, cannot)
	s.given("wait 7s").refused(notDueText, "settle t1.0.2 unknown", "settle t1.0.0 unknown", "settle t1.0.1 unknown running")
	// A crash: a person is asked.
	s.then(cannot, "append settled t1.0.1 unknown output c1 no such report\nsync\nstatus waiting")
	s.then("interruptions", "in-doubt 1.0#1 c1 a {} not before 8000: no such report")
	s.refused(notDueText, cannot).then("decide 1.0#1 giveup", `
append decided 1.0#1 giveup
append settled t1.0.0 unknown output c1 (unknown)
sync
start p2.0.1 upto 3
status running`)
	// A driver saw it: the model is told, unless the tool waits.
	l := planned(t, "start", "tool a recover", "call c1 a {}").given("settle t1.0.1 unknown")
	l.then("settle t1.0.1 unknown", "append settled t1.0.1 unknown output c1\nappend settled t1.0.0 unknown output c1 (unknown)\nsync\nstart p2.0.1 upto 3")
	w := planned(t, "start", "tool a recover wait", "call c1 a {}").given("settle t1.0.1 unknown")
	w.then("settle t1.0.1 unknown", "append settled t1.0.1 unknown output c1\nsync\nstatus waiting")
	c := planned(t, "start", "tool a recover tell", "call c1 a {}").given("claim gone")
	c.then("settle t1.0.1 unknown", "append settled t1.0.1 unknown output c1\nappend settled t1.0.0 unknown output c1 (unknown)\nsync\nstart p2.0.1 upto 3")
}

func TestM8_20_Pending(t *testing.T) {
	s := planned(t, "start parallel=1", "tool a ask\ntool b", "call c1 b {}\ncall c2 b {}\ncall c3 b {}")
	s.refused(notDueText, "settle t1.0.1 pending output-of=c1", "settle t1.0.0 pending", "settle t1.0.2 pending", "settle t1.1.1 pending", "settle t1.0.1 pending running")
	s.then("settle t1.0.1 pending | the bank answers tomorrow", `
append settled t1.0.1 pending "the bank answers tomorrow"
append intended t1.1.1 not after 601000
sync
start t1.1.1 key pawl_e0ee4f1f not after 601000`)
	s.refused(notDueText, "settle t1.0.1 pending", "settle t1.0.1 unknown", "settle t1.0.1 notexecuted", "intended t1.0.2", "absent t1.0.1")
	s.given("settle t1.1.1 pending", "settle t1.2.1 pending")
	s.then("claim", "append claimed epoch 1\nsync") // a claim changes nothing about them
	s.then("interruptions", `
external 1.0#1 c1 b {}: the bank answers tomorrow
external 1.1#1 c2 b {}
external 1.2#1 c3 b {}`)
	s.then("decide 1.0#1 settle | paid", "append decided 1.0#1 settle\nappend settled t1.0.0 decreed output c1 paid\nsync")
	s.then("settle t1.1.1 done | late", "append settled t1.1.1 done output c2 late\nsync")
	s.then("cancel", "append cancelled\nappend settled t1.2.0 unknown output c3 (unknown)\nappend finished cancelled\nsync\nstatus cancelled")
	s.then("settle t1.2.1 failed | later", "append settled t1.2.1 failed late output c3 later\nsync")
	s.refused(notDueText, "settle t1.2.1 pending", "settle t1.2.1 asks")
}

func TestM8_21_AToolAsksAgain(t *testing.T) {
	s := planned(t, "start", "tool a", "call c1 a {}\ncall c2 a {}")
	s.refused(notDueText, "settle t1.0.1 asks output-of=c1", "settle t1.0.0 asks", "settle t1.0.1 asks running")
	s.then("settle t1.0.1 asks | All of it?", "append settled t1.0.1 asks \"All of it?\"\nsync")
	s.refused(notDueText, "settle t1.0.1 asks", "settle t1.0.1 unknown", "settle t1.0.1 notexecuted", "intended t1.0.2")
	s.then("interruptions", "approval 1.0#1 c1 a {}: All of it?")
	s.then("settle t1.1.1 done", "append settled t1.1.1 done output c2\nsync\nstatus waiting")
	s.then("claim", "append claimed epoch 1\nsync") // nothing is in doubt
	s.then("cancel", "append cancelled\nappend settled t1.0.0 dropped output c1 (cancelled)\nappend finished cancelled\nsync\nstatus cancelled")

	late := planned(t, "start", "tool a", "call c1 a {}").given("settle t1.0.1 asks")
	late.then("settle t1.0.1 done | after all", "append settled t1.0.1 done output c1 after all\nsync\nstart p2.0.1 upto 3\nstatus running")
}

func TestM8_22_ABodyThatHadNotReturned(t *testing.T) {
	s := planned(t, "start", "tool a wait timeout=5000\ntool b readonly", "call c1 a {}\ncall c2 b {}\ncall c3 a {}")
	s.refused(notDueText, "settle t1.0.1 done running", "settle t1.0.1 failed running", "settle t1.0.1 notexecuted running", "settle t1.0.0 unknown running")
	s.given("settle t1.0.1 unknown running", "settle t1.2.1 unknown")
	s.then("interruptions", "in-doubt 1.0#1 c1 a {} not before 8000\nin-doubt 1.2#1 c3 a {}")
	s.refused(flightText, "decide 1.0#1 giveup").given("decide 1.2#1 giveup")
	s.then("settle t1.1.1 unknown running", `
append settled t1.1.1 unknown running output c2
append intended t1.1.2 not after 601000
sync
start t1.1.2 key pawl_e0ee4f1f not after 601000`) // its repeat is harmless
	s.given("settle t1.1.2 done", "settle t1.1.1 unknown running late")
	s.refused(notDueText, "settle t1.1.1 done running late")
}

func TestM8_23_WhatNobodyKnows(t *testing.T) {
	s := planned(t, "start", "tool pay\ntool look readonly\ntool put idempotent\ntool wipe wait\ntool ask recover",
		"call c1 pay {}\ncall c2 look {}\ncall c3 put {}\ncall c4 wipe {}\ncall c5 ask {}\ncall c6 pay {}\ncall c7 pay {}\ncall c8 pay {}")
	s.then("unsettled", `
running t1.0.0 c1 pay attempt=1 begun=1000
running t1.3.0 c4 wipe attempt=1 begun=1000
running t1.4.0 c5 ask attempt=1 begun=1000
running t1.5.0 c6 pay attempt=1 begun=1000
running t1.6.0 c7 pay attempt=1 begun=1000
running t1.7.0 c8 pay attempt=1 begun=1000`)
	s.given("settle t1.7.1 done", "settle t1.6.1 pending | the bank", "settle t1.0.1 unknown error | no answer", "settle t1.1.1 done", "settle t1.4.1 unknown error | hm", "wait 1s")
	s.given("settle t1.2.1 unknown", "settle t1.2.2 unknown", "settle t1.2.3 unknown error | odd", "claim gone") // of t1.3 and t1.5
	s.then("unsettled", `
told t1.0.0 c1 pay attempt=1 begun=1000 1.0#1 no answer
told t1.2.0 c3 put attempt=3 begun=2000 1.2#1 odd
in-doubt t1.3.0 c4 wipe attempt=1 begun=1000 1.3#1
in-doubt t1.4.0 c5 ask attempt=1 begun=1000  hm
in-doubt t1.5.0 c6 pay attempt=1 begun=1000 1.5#1
external t1.6.0 c7 pay attempt=1 begun=1000 1.6#1 the bank`)
	// An answer is known; giving up is not.
	s.given("decide 1.5#1 settle | paid", "decide 1.3#1 giveup why=lost", "settle t1.6.1 failed", "settle t1.4.1 done")
	s.then("unsettled", `
told t1.0.0 c1 pay attempt=1 begun=1000 1.0#1 no answer
told t1.2.0 c3 put attempt=3 begun=2000 1.2#1 odd
told t1.3.0 c4 wipe attempt=1 begun=1000 1.3#2 lost`)
	// Evidence that says what happened, from any attempt [M8.13].
	s.given("settle t1.0.1 unknown error | again", "settle t1.2.1 done | put", "settle t1.3.1 failed | no file")
	s.then("unsettled", "told t1.0.0 c1 pay attempt=1 begun=1000 1.0#1 no answer")

	// A cancelled run; the open call waits for its body.
	c := planned(t, "start", "tool pay\ntool look readonly recover", "call c1 pay {}\ncall c2 pay {}\ncall c3 look {}").given("settle t1.0.1 pending", "claim gone")
	c.given("cancel").then("unsettled", "told t1.0.0 c1 pay attempt=1 begun=1000 1.0#1\ntold t1.1.0 c2 pay attempt=1 begun=1000 1.1#1")

	// The calls of a run are not those of its fork.
	f := planned(t, "start", "tool pay\ntool buy ask", "call c1 pay {}\ncall c2 buy {}").given("settle t1.0.1 unknown", "fork run=run-2", "claim", "decide 1.1#0 approve", "settle t1.1.1 unknown")
	f.then("unsettled", "told t1.1.0 c2 buy attempt=1 begun=1000 1.1#1")
}

func TestM9_14_AskedAgain(t *testing.T) {
	s := planned(t, "start", "tool pay ask", "call c1 pay {\"cents\":5}").given("decide 1.0#0 approve args={\"cents\":4}", "settle t1.0.1 asks | Sure?")
	s.refused(digestText, "decide 1.0#1 approve digest=plan").refused(verdictText, "decide 1.0#1 settle", "decide 1.0#1 retry",
		"decide 1.0#1 approve sticky", "decide 1.0#1 reject sticky", "decide 1.0#1 approve args={\"cents\":3}")
	s.refused(sameText, "decide 1.0#0 approve args={\"cents\":4} digest=plan")
	s.then("call t1.0.0", `true c1 {"cents":4} by=ann attempt=1 edited=true`)
	s.then("decide 1.0#1 approve by=bob", `
append decided 1.0#1 approve
append intended t1.0.2 not after 601000
sync
start t1.0.2 key pawl_401017e1 not after 601000
status running`)
	s.then("call t1.0.0", `true c1 {"cents":4} by=bob attempt=2 edited=true approvals=1`)
	s.given("settle t1.0.2 asks | Really?").then("interruptions", "approval 1.0#2 c1 pay {\"cents\":4}: Really?\n")
	s.refused(sameText, "decide 1.0#1 approve").refused(decidedText, "decide 1.0#1 reject")
	s.then("decide 1.0#2 reject | no", "append decided 1.0#2 reject\nappend settled t1.0.0 rejected output c1 no\nsync\nstart p2.0.1 upto 3\nstatus running")

	// Whoever rejects a repeat does not say that nothing happened before [M9.10]. A look changed nothing, and a call
	// that was found absent did not happen.
	unknown := "\nThe outcome of this tool call is unknown: it may or may not have taken effect. Do not assume that it failed. Its idempotency key is " + Key("run-1", "", s.effect("t1.0.0")) + "."
	for tool, want := range map[string]string{
		"tool pay idempotent":       "unknown output c1 no" + unknown,
		"tool pay idempotent fresh": "rejected output c1 no",
		"tool pay readonly":         "rejected output c1 no",
		"tool pay transactional":    "rejected output c1 no",
	} {
		spec, fresh := strings.CutSuffix(tool, " fresh")
		r := planned(t, "start", spec, "call c1 pay {}")
		attempt := "t1.0.1"
		if !fresh {
			r.given("claim")
			attempt = "t1.0.2"
		}
		r.given("settle "+attempt+" asks").then("decide 1.0#1 reject | no", "append decided 1.0#1 reject\nappend settled t1.0.0 "+want+"\nsync\nstart p2.0.1 upto 3\nstatus running")
	}
	d := planned(t, "start", "tool pay idempotent expires=5000", "call c1 pay {}").given("claim", "settle t1.0.2 asks", "wait 5s")
	d.then("ready", "append expired 1.0#1\nappend settled t1.0.0 unknown output c1 "+ExpiredText+unknown+"\nsync\nstart p2.0.1 upto 3\nstatus running")
	d.then("unsettled", "told t1.0.0 c1 pay attempt=2 begun=1000 1.0#2")

	// A sticky decision does not answer the tool's own question.
	n := planned(t, "start parallel=1", "tool pay ask", "call c1 pay {}\ncall c2 pay {}").given("decide 1.0#0 approve", "settle t1.0.1 asks", "decide 1.1#0 approve sticky")
	n.then("interruptions", "approval 1.0#1 c1 pay {}\n")
	n.given("settle t1.1.1 asks").then("interruptions", "approval 1.0#1 c1 pay {}\napproval 1.1#1 c2 pay {}\n")
}

func TestM9_20_Findings(t *testing.T) {
	s := planned(t, "start", "tool pay ask\ntool buy\ntool look readonly", "call c1 pay {\"cents\":5}\ncall c2 buy {}\ncall c3 look {}\ncall c4 buy {}")
	s.given("decide 1.0#0 approve args={\"cents\":4}", "claim gone", "decide 1.0#1 giveup", "decide 1.1#1 giveup", "decide 1.3#1 settle | bought", "settle t1.2.2 unknown", "settle t1.2.3 unknown", "settle t1.2.4 unknown")
	s.given("prepared", "respond\nmessage bye", "plan")
	before := s.do("history")
	s.then("unsettled", "told t1.0.0 c1 pay attempt=1 begun=1000 1.0#2\ntold t1.1.0 c2 buy attempt=1 begun=1000 1.1#2")
	s.refused(notDueText, "decide 1.0#3 settle", "decide 1.2#1 settle", "decide 1.3#2 settle", "decide 1.1#0 settle").refused(digestText, "decide 1.0#2 settle digest=plan")
	s.refused(verdictText, "decide 1.0#2 retry", "decide 1.0#2 giveup", "decide 1.0#2 approve", "decide 1.0#2 settle sticky", "decide 1.0#2 settle args={}")
	s.then("decide 1.0#2 settle | paid", "append decided 1.0#2 settle\nsync")
	s.then("unsettled", "told t1.1.0 c2 buy attempt=1 begun=1000 1.1#2")
	s.refused(sameText, "decide 1.0#2 settle by=bob | paid").refused(decidedText, "decide 1.0#2 settle | not paid").refused(notDueText, "decide 1.0#3 settle")
	s.given("settle t1.0.1 done").then("history", before) // evidence all the same [M8.13]
	s.given("settle t1.1.1 failed").refused(notDueText, "decide 1.1#2 settle").then("unsettled", "")

	// In a cancelled run, before and after its end; while the call is open it is no finding.
	c := planned(t, "start", "tool pay\ntool buy", "call c1 pay {}\ncall c2 buy {}").given("settle t1.0.1 unknown")
	c.refused(notDueText, "decide 1.1#1 settle").given("cancel", "decide 1.0#1 settle | paid", "settle t1.1.1 unknown")
	c.then("unsettled", "told t1.1.0 c2 buy attempt=1 begun=1000 1.1#1").given("decide 1.1#1 settle").then("unsettled", "")

	// What a run left unknown its fork cannot find out.
	planned(t, "start", "tool pay\ntool buy ask", "call c1 pay {}\ncall c2 buy {}").given("settle t1.0.1 unknown", "fork run=run-2", "claim").refused(notDueText, "decide 1.0#1 settle")
}

func TestM9_15_Deadlines(t *testing.T) {
	s := planned(t, "start", "tool a ask expires=5000\ntool b expires=3000\ntool c ask\ntool d ask expires=-1\ntool e ask expires=9000",
		"call c1 a {}\ncall c2 b {}\ncall c3 c {}\ncall c4 d {}\ncall c5 e {}")
	s.then("deadline", "6000").given("wait 1s")
	s.then("settle t1.1.1 asks", "append settled t1.1.1 asks\nsync\nstatus waiting") // nothing waits for it
	s.then("deadline", "5000").then("interruptions", `
approval 1.0#0 c1 a {} until 6000
approval 1.1#1 c2 b {} until 5000
approval 1.2#0 c3 c {}
approval 1.3#0 c4 d {}
approval 1.4#0 c5 e {} until 10000`)
	s.given("decide 1.1#1 reject", "decide 1.0#0 reject").then("deadline", "10000")
	s.given("cancel").then("deadline", "0")
	newScript(t).given("start").then("deadline", "0")
}

func TestM9_16_WhenApprovalsExpire(t *testing.T) {
	s := planned(t, "start", "tool a ask expires=5000\ntool b ask expires=5000 fails", "call c1 b {}\ncall c2 a {}\ncall c3 a {}")
	s.given("wait 4999ms").then("ready", "")
	s.given("decide 1.2#0 approve", "wait 1ms")
	// The first one fails the run; the second waits until it is resumed.
	s.then("ready", "append expired 1.0#0\nsync").then("ready", "")
	s.then("settle t1.2.1 done", "append settled t1.2.1 done output c3\nsync\nstatus failed")
	s.then("resume", "append resumed\nappend expired 1.1#0\nappend settled t1.1.0 rejected output c2 (expired)\nsync\nstatus waiting")

	c := planned(t, "start", "tool a ask expires=5000", "call c1 a {}").given("wait 5s")
	c.then("cancel", "append cancelled\nappend settled t1.0.0 dropped output c1 (cancelled)\nappend finished cancelled\nsync\nstatus cancelled")
}

func TestM9_17_WhatExpires(t *testing.T) {
	s := planned(t, "start", "tool a ask expires=5000\ntool b ask\ntool c expires=2000 recover", "call c1 a {}\ncall c2 b {}\ncall c3 c {}\ncall c4 c {}")
	s.refused(notDueText, "expired 1.0#0").given("settle t1.2.1 asks", "wait 4999ms").refused(notDueText, "expired 1.0#0", "expired 1.2#0", "expired 1.2#2", "expired 1.3#1")
	if err := s.m.Check(s.fact("expired 1.2#1")); err != nil {
		t.Error(err)
	}
	s.given("wait 1ms").refused(notDueText, "expired 1.0#1", "expired 1.0#0 attempt=1", "expired 1.1#0", "expired 1.4#0", "expired 2.0#0")
	s.m.Step(s.fact("cancel"))
	s.refused(notDueText, "expired 1.0#0")
	d := planned(t, "start", "tool a ask expires=5000", "call c1 a {}").given("wait 5s", "decide 1.0#0 approve") // whichever is first
	d.refused(notDueText, "expired 1.0#0", "expired 1.0#1")
}

func TestM9_18_TheDeadlineRejects(t *testing.T) {
	s := planned(t, "start", "tool pay ask expires=5000\ntool look expires=1000", "call c1 pay {}\ncall c2 look {}\ncall c3 pay {\ncall c4 pay {}").given("settle t1.1.1 asks", "wait 5s")
	s.then("ready", `
append expired 1.0#0
append expired 1.1#1
append expired 1.2#0
append expired 1.3#0
append settled t1.0.0 rejected output c1 (expired)
append settled t1.1.0 rejected output c2 (expired)
append settled t1.2.0 rejected output c3 (expired)
append settled t1.3.0 rejected output c4 (expired)
sync
start p2.0.1 upto 9
status running`)
	const by = `call t1.0.0 was already decided: reject by "the deadline"`
	s.refused(by, "decide 1.0#0 approve", "decide 1.0#0 reject", "decide 1.0#0 approve sticky")
	s.refused(`call t1.1.0 was already decided: reject by "the deadline"`, "decide 1.1#1 approve")
	s.refused(notDueText, "decide 1.1#2 approve", "expired 1.0#0")
}

func TestM9_19_TheDeadlineFailsTheRun(t *testing.T) {
	s := planned(t, "start", "tool pay ask expires=5000 fails", "call c1 pay {}\ncall c2 pay {}").given("wait 5s")
	s.then("ready", "append expired 1.0#0\nsync\nstatus failed").then("failure", "t1.0.0 approval_expired: pawl: the approval 1.0#0 expired")
	s.then("interruptions", "approval 1.0#0 c1 pay {}\napproval 1.1#0 c2 pay {} until 6000\n")
	s.refused(notDueText, "expired 1.0#0").given("expired 1.1#0").then("failure", "t1.0.0 approval_expired: pawl: the approval 1.0#0 expired") // the first counts
	s.given("decide 1.1#0 reject").then("resume", `
append resumed
append settled t1.1.0 rejected output c2 (rejected)
sync
status waiting`)
	s.given("wait 5s").then("ready", "")
	s.then("decide 1.0#0 approve", `
append decided 1.0#0 approve
append intended t1.0.1 not after 611000
sync
start t1.0.1 key pawl_401017e1 not after 611000
status running`)
	s.then("settle t1.0.1 asks", "append settled t1.0.1 asks\nsync\nstatus waiting").then("deadline", "16000") // a new question, a new deadline
}

func TestM12_8_ATransactionIsFenced(t *testing.T) {
	s := planned(t, "start", "tool book transactional wait timeout=5000", "call c1 book {}\ncall c2 book {}")
	s.given("settle t1.1.1 done").then("claim", `
append claimed epoch 1
append intended t1.0.2 not after 6000
sync
start t1.0.2 key pawl_401017e1 not after 6000`)
	s.then("claim", `
append claimed epoch 2
append intended t1.0.3 not after 6000
sync
start t1.0.3 key pawl_401017e1 not after 6000`)
	// What was rolled back has no result.
	s.refused(notDueText, "settle t1.0.1 done", "settle t1.0.2 failed", "settle t1.0.2 unknown")
	s.m.Step(s.fact("settle t1.0.3 notexecuted"))
	s.refused(notDueText, "settle t1.0.3 done")
	// A body that broke its transaction.
	s.given("ready", "settle t1.0.4 unknown").then("interruptions", "in-doubt 1.0#1 c1 book {}")
	s.refused(notDueText, "settle t1.0.3 done").then("settle t1.0.4 done", "append settled t1.0.4 done output c1\nsync\nstart p2.0.1 upto 5\nstatus running")
	c := planned(t, "start", "tool book transactional", "call c1 book {}").given("batch\nclaim\ncancel")
	c.then("history", "0 user hello\n1 call c1 book {}\n2 output c1 (cancelled)\nsettled 3, in the session 0")
}
