package machine

import (
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

const handlers = "handles max_turns refusal invalid_output"

func TestM20_1_WhatAPlanMaySay(t *testing.T) {
	s := prepared(t, "start", handlers).given("respond\nreasoning hm\nmessage no")
	s.refused(notDueText, "plan final=refusal at=0", "plan final=refusal at=2", "plan final=refusal at=-1", "plan final=invalid at=0", "plan final=invalid at=-2")
	for _, plan := range []string{"plan final=refusal at=1", "plan final=invalid at=1", "plan final=invalid at=-1"} {
		if err := s.m.Check(s.fact(plan)); err != nil {
			t.Errorf("%s: %v", plan, err)
		}
	}
	prepared(t, "start", "handles invalid_output").given("respond\nmessage no").refused(notDueText, "plan final=refusal at=0")
	prepared(t, "start", "handles refusal").given("respond\nmessage no").refused(notDueText, "plan final=invalid at=0")
	prepared(t, "start", handlers+"\ntool look").given("respond\nmessage no\ncall c1 look {}").refused(notDueText, "plan final=refusal at=0")
}

func TestM20_2_WhatIsHandled(t *testing.T) {
	s := prepared(t, "start", handlers).given("respond\nmessage no")
	s.then("plan final=refusal", "append planned 1 final refusal\nstart h1.0.1").refused(notDueText, "prepared", "fail h2.0.1", "fail p2.0.1")
	if kind, n := s.m.Unhandled(); kind != journal.HandlesRefusal || n != 1 {
		t.Errorf("%s %d", kind, n)
	}
	s.then("fail h1.0.1", "append failed h1.0.1 error\nsync\nstatus failed").then("resume", "append resumed\nstart h1.0.1\nstatus running")
	prepared(t, "start", handlers).given("respond\nmessage no").then("plan final=invalid", "append planned 1 final invalid\nstart h1.0.1")
	m := prepared(t, "start max-turns=1", handlers).given("respond\nmessage no")
	m.then("plan final=none", "append planned 1\nstart h2.0.1")
	prepared(t, "start max-turns=1", "").given("respond\nmessage no").then("plan final=none", "append planned 1\nappend failed p2.0.1 max_turns\nsync\nstatus failed")
}

func TestM20_3_WhatAHandlerSays(t *testing.T) {
	s := prepared(t, "start", handlers).given("respond\nmessage no").refused(notDueText, "handled 1 | so").given("plan final=refusal")
	s.refused(notDueText, "handled 2 | so", "handled 1 declined | so", "handled 1 declined include", "handled 1 user | so")
	s.then("cancel", "append cancelled\nsync").then("handled 1 include | so", "append handled 1 \"so\" included\nappend finished cancelled\nsync\nstatus cancelled")
	s.then("history", "0 user hello\n1 assistant no\nsettled 2, in the session 0")
}

func TestM20_4_AnAnswer(t *testing.T) {
	s := prepared(t, "start", handlers).given("respond\nmessage no", "plan final=refusal")
	s.then("handled 1 declined", "append handled 1 declined\nsync\nstatus failed").then("failure", "h1.0.1 refusal:")
	s.then("resume", "append resumed\nstart h1.0.1\nstatus running").refused(notDueText, "handled 2 | so")
	s.then("handled 1 include | so", "append handled 1 \"so\" included\nappend finished at 2: assistant so\nsync\nstatus finished")
	s.then("history", "0 user hello\n1 assistant no\n2 assistant so\nsettled 3, in the session 0")
	m := prepared(t, "start max-turns=1", handlers).given("respond\nmessage no", "plan final=none", "handled 2 declined")
	m.then("failure", "h2.0.1 max_turns:").then("resume max-turns=2", "append resumed max-turns 2\nstart p2.0.1 upto 2\nstatus running")
}

func TestM20_5_TheRunEnds(t *testing.T) {
	s := prepared(t, "start max-turns=1", handlers+"\nguards-output").given("respond\nmessage no", "plan final=none")
	s.then("handled 2 | so", "append handled 2 \"so\"\nstart o2.0.1").refused(notDueText, "finish at=-1 | so", "handled 2 | so")
	s.then("checked o2.0.1", "append checked o2.0.1\nappend finished text \"so\"\nsync\nstatus finished")
	i := newScript(t).given("start session=own max-turns=1", "loaded", "prepared\n"+handlers+"\nguards-output", "respond\nmessage no", "plan final=none")
	i.then("handled 2 include | so", "append handled 2 \"so\" included\nstart o2.0.1")
	i.then("checked o2.0.1 trip=x", "append checked o2.0.1 trips x\nappend finished cancelled tripped\nsync\nstatus cancelled")
	i.then("history", "0 user hello\n1 assistant no\n2 dropped\nsettled 3, in the session 2")
}

func TestM21_1_InputThatComesLater(t *testing.T) {
	s := planned(t, "start max-turns=2", "tool pay ask", "call c1 pay {}")
	s.refused(notDueText, "added", "added | output c1 x", "added | call c9 pay {}", "added frame=1.0 | user more")
	s.then("added | user more", "append added 1 items\nsync").given("added\ncall c9 pay {}\noutput c9 x")
	if pending := s.m.Pending(); len(pending) != 2 || pending[0].Items[0] != item.UserText("more") || pending[0].By != "ann" {
		t.Errorf("%+v", pending)
	}
	s.given("decide 1.0#0 reject", "prepared").refused(notDueText, "added | user more") // no turn is left
	prepared(t, "start", "").given("cancel").refused(notDueText, "added | user more")
	f := prepared(t, "start", "guards-output\n"+handlers).given("respond\nmessage so", "plan").refused(notDueText, "added | user more") // it ends
	f.given("checked o1.0.1").refused(notDueText, "added | user more")
	prepared(t, "start", handlers).given("respond\nmessage no", "plan final=refusal").refused(notDueText, "added | user more")
}

func TestM21_2_WhenItIsAdmitted(t *testing.T) {
	s := newScript(t).given("start session=plain", "added | user more")
	s.then("loaded", "append loaded 0 items, 0 healed\nappend admitted 1\nappend intended s1.0.1 upto 2\nsync\nstart s1.0.1 [0,2)")
	s.given("added | user again").refused(notDueText, "admitted 2").then("confirm", "append confirmed batch 1 upto 2\nappend admitted 2\nappend intended s2.0.1 upto 3\nsync\nstart s2.0.1 [2,3)")
	s.given("confirm", "prepared\ntool look\nuse custom", "added | user third").refused(notDueText, "admitted 3").given("respond\ncall c1 look {}").refused(notDueText, "admitted 3")
	s.given("plan").refused(notDueText, "admitted 3").then("settle t1.0.1 done", "append settled t1.0.1 done output c1\nappend intended s3.0.1 upto 5\nsync\nstart s3.0.1 [3,5)")
	s.given("confirm").refused(notDueText, "admitted 3") // a verdict comes first
	s.then("judge 1 final | so", "append judged 1 final so\nappend admitted 3\nappend intended s4.0.1 upto 6\nsync\nstart s4.0.1 [5,6)")
	s.then("history", "0 user hello\n1 user more\n2 user again\n3 call c1 look {}\n4 output c1 \n5 user third\nsettled 6, in the session 5")
	late := prepared(t, "start max-turns=2", "").given("respond\nreasoning hm", "added | user more")
	late.then("plan", "append planned 1\nappend admitted 1\nstart p2.0.1 upto 3")
	out := prepared(t, "start max-turns=1", "").refused(notDueText, "added | user more")
	out.given("resume max-turns=2", "added | user more", "resume max-turns=1", "respond\nmessage so")
	out.then("plan", "append planned 1 final message\nappend failed p2.0.1 max_turns\nsync\nstatus failed") // not lost, and not admitted
	out.then("resume max-turns=2", "append resumed max-turns 2\nappend admitted 1\nstart p2.0.1 upto 3\nstatus running")
}

func TestM21_3_ItIsChecked(t *testing.T) {
	s := newScript(t).given("start guards=blocking")
	s.given("added | user more").then("checked g0.0.1", "append checked g0.0.1\nstart g1.0.1").refused(notDueText, "admitted 1", "checked g2.0.1", "checked g1.1.1")
	s.then("checked g1.0.1", "append checked g1.0.1\nappend admitted 1\nstart p1.0.1 upto 2").given("prepared\nguards-input", "respond\nreasoning hm", "added | user again")
	s.then("plan", "append planned 1\nstart g2.0.1").then("fail g2.0.1", "append failed g2.0.1 error\nsync\nstatus failed").given("resume")
	s.then("checked g2.0.1 trip=no", "append checked g2.0.1 trips no\nappend finished cancelled tripped\nsync\nstatus cancelled")
	s.then("history", "0 user hello\n1 user more\n2 reasoning\nsettled 3, in the session 0") // what was settled before stays
}

func TestM21_4_TheRunGoesOn(t *testing.T) {
	s := prepared(t, "start", "guards-output\n"+handlers).given("added | user more", "respond\nmessage so")
	s.then("plan", "append planned 1 final message\nappend admitted 1\nstart p2.0.1 upto 3").refused(notDueText, "finish at=1", "checked o1.0.1")
	s.then("prepared", "append prepared turn 2 upto 3 as turn 1\nstart m2.0.1 [0,3)")
	r := prepared(t, "start", handlers).given("added | user more", "respond\nmessage no")
	r.then("plan final=refusal", "append planned 1 final refusal\nappend admitted 1\nstart p2.0.1 upto 3").refused(notDueText, "handled 1 | so")
}

func TestM22_1_Observed(t *testing.T) {
	s := newScript(t).given("start", "claim").refused(notDueText, "observed 0", "observed 3")
	s.then("observed 2", "append observed 2").refused(notDueText, "observed 2", "observed 1", "observed 3 frame=1.0")
	s.given("cancel", "fail p1.0.1").then("observed 6", "append observed 6\nsync") // behind the end
	if n := s.m.Observed(); n != 6 {
		t.Errorf("observed %d", n)
	}
}
