package machine

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// The tests of the files spec_*_test.go check the clauses of docs/spec.md, each named by its
// number.

// planned returns a run that has begun as start says, with the manifest's tools, and
// whose first response has these items and a plan.
func planned(t *testing.T, start, manifest, items string) *script {
	t.Helper()
	s := prepared(t, start, manifest)
	return s.given("respond id=resp_1\n"+items, "plan")
}

// prepared returns a run whose first turn is prepared.
func prepared(t *testing.T, start, manifest string) *script {
	t.Helper()
	s := newScript(t).given(start)
	if strings.Contains(start, "session=") {
		s.given("loaded")
	}
	if strings.Contains(start, "session=plain") || strings.Contains(start, "session=batches") {
		s.given("confirm")
	}
	return s.given("prepared\n" + manifest)
}

func TestEveryClauseHasATest(t *testing.T) {
	spec, err := os.ReadFile("../../docs/spec.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "spec_") {
			text, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	clauses := regexp.MustCompile(`(?m)^\* (M\d+)\.(\d+) `).FindAllStringSubmatch(string(spec), -1)
	if len(clauses) < 100 {
		t.Fatalf("the spec has %d clauses", len(clauses))
	}
	for _, c := range clauses {
		if name := "func Test" + c[1] + "_" + c[2] + "_"; strings.Count(tests.String(), name) != 1 {
			t.Errorf("clause %s.%s has %d tests", c[1], c[2], strings.Count(tests.String(), name))
		}
	}
}

func TestM1_1_StartedIsFirst(t *testing.T) {
	newScript(t).refused(notDueText, "claim", "cancel", "resume", "loaded")
	newScript(t).given("start").refused(notDueText, "start run=run-2")
}

func TestM1_2_ContradictoryStartsAreRefused(t *testing.T) {
	newScript(t).refused(notDueText, "start run=", "start agent=",
		"start session=own conversation=c", "start session=own previous=r", "start session=own auto",
		"start conversation=c previous=r", "start conversation=c auto")
	newScript(t).then("start machine=2", "refused: pawl: the journal was written by a newer version of Pawl: rules of version 2")
	for _, start := range []string{"start conversation=c", "start previous=r", "start auto", "start previous=r auto", "start session=own"} {
		newScript(t).given(start)
	}
}

func TestM1_3_FactsOfAFrame(t *testing.T) {
	newScript(t).refused(notDueText, "start frame=1.0")
	newScript(t).given("start").refused(notDueText, "start frame=1.0", "prepared frame=1.0", "prepared frame=t1.0.0")
	s := entered(t, "start", "tool ask agent=helper")
	s.then("prepared frame=1.0\ntool look", "append 1.0: prepared turn 1 upto 1\nstart 1.0: m1.0.1 [0,1)")
	s.refused(notDueText, "respond", "respond frame=1.1")
}

func TestM1_4_AfterTheEnd(t *testing.T) {
	s := planned(t, "start", "tool pay ask\nuse first", "call c1 pay {}")
	s.given("decide 1.0#0 approve", "settle t1.0.1 done | paid")
	s.then("status", "finished")
	s.refused(notDueText, "resume", "cancel", "prepared", "respond", "plan", "judge 1", "loaded", "confirm", "absent m1.0.1",
		"fail m1.0.1", "fired w1.0.1", "finish at=2", "fork run=run-2", "intended t1.0.2", "decide 1.0#1 giveup")
	s.refused(sameText, "decide 1.0#0 approve")
	s.refused(decidedText, "decide 1.0#0 reject")
	s.then("claim", "append claimed epoch 1\nsync")
	s.then("settle t1.0.1 failed | late", "append settled t1.0.1 failed late output c1 late\nsync")
}

func TestM1_5_Status(t *testing.T) {
	s := newScript(t)
	s.then("status", "running")
	s.given("start", "prepared\ntool pay ask\ntool look")
	s.then("status", "running")
	s.given("respond\ncall c1 pay {}\ncall c2 look {}", "plan")
	s.then("status", "running") // look is in flight
	s.given("settle t1.1.1 done")
	s.then("status", "waiting")
	s.given("decide 1.0#0 reject", "fail p2.0.1")
	s.then("status", "failed")
	s.given("resume")
	s.then("status", "running")
	s.given("prepared", "respond\nmessage done", "plan")
	s.then("status", "finished")

	c := newScript(t).given("start", "cancel", "fail p1.0.1")
	c.then("status", "cancelled")

	// A call that is running without being in flight waits for no decision.
	r := planned(t, "start", "tool pay ask\ntool look", "call c1 pay {}\ncall c2 look {}")
	r.given("ended t1.1.1")
	r.then("status", "running")
	r.given("claim")
	r.then("status", "waiting")
}

func TestM1_6_FlushAppliesNoRule(t *testing.T) {
	s := planned(t, "start", "tool look", "call c1 look {}")
	f := journal.Fact{Time: s.now, Body: &journal.Settled{ID: s.effect("t1.0.1"), Outcome: journal.NotExecuted}}
	if err := s.m.Check(f); err != nil {
		t.Fatal(err)
	}
	s.m.Step(f)
	s.then("flush", "append settled t1.0.1 notexecuted\nsync")
	s.then("flush", "")
	s.then("ready", `
append intended t1.0.2 not after 601000
sync
start t1.0.2 key pawl_401017e1 not after 601000`)
}

func TestM1_7_EndedWithoutAnOutcome(t *testing.T) {
	s := prepared(t, "start", "tool look")
	s.then("in-flight", "1")
	s.then("ended m1.0.1", "")
	s.then("in-flight", "0")
	s.then("ended m1.0.1", "")
	s.then("ended m9.0.1", "")
	s.then("in-flight", "0")
	s.then("claim", "append claimed epoch 1\nappend intended m1.0.2 upto 1\nstart m1.0.2 [0,1)")
}

func TestM1_8_Fork(t *testing.T) {
	s := planned(t, "start session=own", "tool pay ask", "call c1 pay {}").given("claim epoch=7")
	s.given("fork run=run-2")
	s.then("claim epoch=1", "append claimed epoch 1\nsync") // epochs begin again
	s.then("fork run=run-2 session=plain", "append forked run-2\nappend intended s1.0.1 upto 1\nsync\nstart s1.0.1 [0,1)\nstatus running")
	s.given("confirm")
	s.then("decide 1.0#0 approve", `
append decided 1.0#0 approve
append intended t1.0.1 not after 601000
sync
start t1.0.1 key pawl_16b293e4 not after 601000
status running`)
	if s.m.Run() != "run-2" || Key("run-2", "", s.effect("t1.0.1")) != s.m.KeyOf(s.effect("t1.0.0")) {
		t.Errorf("the fork is %s and its key %s", s.m.Run(), s.m.KeyOf(s.effect("t1.0.0")))
	}

	newScript(t).given("start session=own").then("fork run=run-2", "append forked run-2\nsync\nstart p1.0.1 upto 1")
	newScript(t).given("start session=own").then("fork run=run-2 session=own", "append forked run-2\nsync\nstart l0.0.1")
}

func TestM1_9_RefusedForks(t *testing.T) {
	newScript(t).given("start").refused(notDueText, "fork run=", "fork run=run-1")
	newScript(t).given("start session=own").refused(notDueText, "fork run=run-1 session=plain")
	newScript(t).given("start").given("fork run=run-1 session=own")
	newScript(t).given("start auto").refused(notDueText, "fork run=run-2 session=own").given("fork run=run-2")
	newScript(t).given("start conversation=c").refused(notDueText, "fork run=run-2")
	s := planned(t, "start", "tool pay\ntool look readonly", "call c1 pay {}\ncall c2 look {}")
	s.refused(notDueText, "fork run=run-2") // running
	s.given("claim", "settle t1.1.2 unknown")
	s.refused(notDueText, "fork run=run-2") // in doubt
	s.given("wait 603s", "decide 1.0#1 giveup", "settle t1.1.3 done")
	s.given("fork run=run-2")
	n := planned(t, "start parallel=1", "tool pay", "call c1 pay {}\ncall c2 pay {}").given("settle t1.0.1 notexecuted")
	n.refused(notDueText, "fork run=run-2") // open after an attempt
}

func TestM1_10_BadValuesAreRefused(t *testing.T) {
	s := prepared(t, "start", "tool pay ask\ntool look\nuse custom")
	s.given("respond\ncall c1 pay {}\nmessage hm\ncall c2 look {}")
	s.refused(notDueText, "plan n=0", "plan n=2", "plan\n0 maybe", "plan\n0 tool -2", "plan\n0 tool 2", "plan\n0 at -1", "plan\n0 at 3",
		"plan final=sometimes", "plan without-calls final=message at=-1", "plan without-calls final=message at=3")
	s.given("plan")
	s.refused(notDueText, "settle t1.2.1 perhaps", "settle t1.2.2 done", "settle t1.1.1 done", "settle t2.2.1 done", "settle t0.2.1 done",
		"settle t1.2.1 done output-of=c1", "settle t1.2.1 done no-output", "decide 9.9#0 approve", "judge 2", "confirm", "absent m1.0.1", "intended t1.2.9")
	s.refused(verdictText, "decide 1.0#0 perhaps")
	for _, b := range []journal.Body{
		&journal.Settled{ID: journal.EffectID{Kind: 't', N: 1, P: 2, A: -1}, Output: item.FunctionOutput("c2", "")},
		&journal.Decided{Call: journal.EffectID{Kind: 't', N: 1}, Stage: -1, Verdict: journal.Approve},
		&journal.Decided{Call: journal.EffectID{Kind: 't', N: 1, A: 1}, Verdict: journal.Approve},
		&journal.Prepared{N: -1}, &journal.Responded{ID: journal.EffectID{Kind: 'q'}}, nil,
	} {
		if err := s.m.Check(journal.Fact{Body: b}); !errors.Is(err, ErrNotDue) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	newScript(t).given("start").refused(notDueText, "prepared\nuse twice")
}

func TestM1_11_Context(t *testing.T) {
	s := prepared(t, "start context=ann", "tool helper agent=helper")
	for _, tt := range [][2]string{{"", "ann"}, {"resume", "ann"}, {"resume context=bob", "bob"}, {"resume max-turns=3", "bob"}, {"resume context=cid max-turns=3", "cid"}} {
		if tt[0] != "" {
			s.given(tt[0])
		}
		if got := s.m.Context(); got != tt[1] {
			t.Errorf("after %q: %q, want %q", tt[0], got, tt[1])
		}
	}
	s.given("respond\ncall c1 helper {}", "plan", "start frame=1.0 context=other")
	if got := s.m.Context(); got != "cid" {
		t.Errorf("with a nested run: %q", got)
	}
}
