//go:build unix

package duel

import (
	"encoding/json"
	"flag"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
)

var rounds = flag.Int("rounds", 10, "let two processes resume an approved run at once so often")

// Two processes that resume one approved run at the same moment: one drives it, the other is told that it is driven
// elsewhere, and the call has one effect. They resume it by its id, as a stream, or from copies of one document that has the
// approval.
func TestOneWinner(t *testing.T) {
	dir := t.TempDir()
	here, err := openWorld(dir)
	if err != nil {
		t.Fatal(err)
	}
	two := [2]*puppet{newPuppet(t, dir), newPuppet(t, dir)}
	won := [2]int{}
	for n := range *rounds {
		c := command{Do: []string{"resume", "stream", "document"}[n%3], Run: fmt.Sprintf("run%d", n), Gated: true, Hold: true}
		if n%2 == 0 {
			c.Session = "session" + c.Run
		}
		c.Document = here.approved(t, c)
		for _, p := range two {
			p.ready(c)
		}
		for _, p := range two {
			p.tell(command{Do: "go"})
		}
		winner := here.judge(t, two, c)
		won[winner]++
		here.check(t, c)
	}
	t.Logf("%d rounds, won by the first %d times and by the second %d times", *rounds, won[0], won[1])
}

// approved makes a run whose one call is approved: in its inbox, or on the document that it returns.
func (w *world) approved(t *testing.T, c command) []byte {
	t.Helper()
	r := w.runner(c)
	res, err := r.Run(t.Context(), r.Agents[0], pawl.UserText("pay"), &pawl.RunOptions{ID: c.Run, Session: w.session(c.Session)})
	if err != nil || len(res.Interruptions) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	in := res.Interruptions[0]
	if c.Do != "document" {
		if err := r.Decide(t.Context(), c.Run, pawl.Approve(in.ID, "ada")); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	state := res.State()
	if err := state.Approve(in, "ada"); err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// judge hears both. The winner's body waits, so the loser answers first.
func (w *world) judge(t *testing.T, two [2]*puppet, c command) (winner int) {
	t.Helper()
	var lost answer
	select {
	case lost = <-two[0].says:
		winner = 1
	case lost = <-two[1].says:
		winner = 0
	}
	if !lost.Claimed || lost.Status != "" {
		t.Fatalf("%s: the loser is told %+v", c.Run, lost)
	}
	two[winner].tell(command{Do: "release"})
	if won := two[winner].hear(); won.Error != "" || won.Status != pawl.StatusFinished {
		t.Fatalf("%s: the winner is told %+v", c.Run, won)
	}
	return winner
}

// check looks at what is left: one effect, and one output everywhere.
func (w *world) check(t *testing.T, c command) {
	t.Helper()
	effects, err := w.log.Effects()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range effects {
		if e.CallID == "call_"+c.Run {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%s: %d effects", c.Run, n)
	}
	state, err := w.runner(c).State(t.Context(), c.Run)
	if err != nil {
		t.Fatal(err)
	}
	kinds := func(items []pawl.Item) (list []string) {
		for _, it := range items {
			list = append(list, string(it.Type()))
		}
		return list
	}
	want := []string{"message", "function_call", "function_call_output", "message"}
	if diff := cmp.Diff(want, kinds(state.Result().ToInputList())); diff != "" {
		t.Errorf("%s: the conversation: -want +got:\n%s", c.Run, diff)
	}
	if c.Session == "" {
		return
	}
	rows, err := w.session(c.Session).Items(t.Context(), -1)
	if diff := cmp.Diff(want, kinds(rows)); diff != "" || err != nil {
		t.Errorf("%s: the session: %v -want +got:\n%s", c.Run, err, diff)
	}
}
