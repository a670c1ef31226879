package steps

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// script is what comes in, line by line.
func script(parts ...[][]Event) [][]Event { return slices.Concat(parts...) }

func TestRun(t *testing.T) {
	h := &played{script: script(turn(t, spec("pay", "")), [][]Event{came(ended(t, "t1.0.1", settled(t, "t1.0.1", "c0")))}, last(t, 3))}
	d := play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+2 once
start p2.0.1 6+1
start m2.0.1 7+1
start c2.0.1 8+1
start nothing 9+2
close 1`)
	if d.M.Status() != machine.Finished || d.M.Facts() != 11 {
		t.Errorf("%s, %d facts", d.M.Status(), d.M.Facts())
	}
}

// An effect that is alone ends in one batch with another that was begun before it, and with a
// message: all three are taken, whichever comes first.
func TestAloneEndsWithOthers(t *testing.T) {
	more := Event{Message: new(message("k1", &journal.Decided{Call: ref(t, "t9.0.0").ID, Verdict: journal.Approve}))} // refused, and done with all the same
	other, alone := ended(t, "t1.0.1", settled(t, "t1.0.1", "c0")), ended(t, "t1.1.1", nil)
	alone.End.Stored = &journal.Fact{Time: 1000, Body: settled(t, "t1.1.1", "c1")}
	for name, batch := range map[string][]Event{
		"behind":  {alone, other, more},
		"before":  {other, more, alone},
		"between": {more, alone, other},
	} {
		t.Run(name, func(t *testing.T) {
			h := &played{script: script(turn(t, spec("look", journal.ReadOnly), spec("book", journal.Transactional)), [][]Event{batch}, last(t, 5))}
			d := play(t, h, begun())
			h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+3
start t1.1.1 4+3
start p2.0.1 8+1 consume [k1]
start m2.0.1 9+1
start c2.0.1 10+1
start nothing 11+2
close 1`)
			if d.M.Status() != machine.Finished {
				t.Error(d.M.Status())
			}
		})
	}
}

// While an effect that is alone is carried out the ends of others wait: what it does to the
// projection is the next fact.
func TestAloneIsNext(t *testing.T) {
	alone := ended(t, "t1.1.1", nil)
	alone.End.Stored = &journal.Fact{Time: 1000, Body: settled(t, "t1.1.1", "c1")}
	h := &played{script: script(turn(t, spec("look", journal.ReadOnly), spec("book", journal.Transactional)),
		[][]Event{came(ended(t, "t1.0.1", settled(t, "t1.0.1", "c0"))), came(alone)}, last(t, 5))}
	d := play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+3
start t1.1.1 4+3
start p2.0.1 8+1
start m2.0.1 9+1
start c2.0.1 10+1
start nothing 11+2
close 1`)
	if d.M.Status() != machine.Finished {
		t.Error(d.M.Status())
	}
}

// Messages and resumes that come in with the end of the record of a rest are not lost.
func TestRestEndsWithOthers(t *testing.T) {
	h := &played{script: script(turn(t, spec("pay", "")), [][]Event{
		came(failed(t, "t1.0.1", Failure{Kind: Stopped, Stop: &Stop{Code: "agents", Text: "no agent"}})),
		came(Event{Resume: &Resume{Token: "again"}}, recorded()[0], Event{Message: new(message("k1", &journal.Cancelled{By: "ann"}))}),
		recorded(),
	})}
	d := play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+2 once
start nothing 4+2
start nothing 6+4 consume [k1]
close 1`)
	if d.M.Status() != machine.Cancelled || d.Stop != nil || !slices.Equal(d.Tokens, []string{"again"}) {
		t.Error(d.M.Status(), d.Stop, d.Tokens)
	}
}

// A run that was submitted for later begins at its time; before, if somebody resumes it, and a cancelled one ends at once.
func TestDue(t *testing.T) {
	late := begun()
	late.Body.(*journal.Started).Due = 5000
	full := came(failed(t, "p1.0.1", Failure{Kind: NotBegun}))
	for name, c := range map[string]struct {
		script [][]Event
		did    string
	}{
		"its time": {script([][]Event{{}, full}), `
wait 5000
start p1.0.1 1+1`},
		"resumed": {script([][]Event{came(Event{Resume: &Resume{Token: "now"}}), full}), `
wait 5000
start p1.0.1 1+1`},
		"given input": {script([][]Event{came(Event{Message: new(message("k1", &journal.Added{Items: []item.Item{item.UserText("more")}, At: 1000}))}), recorded(), {}, full}), `
wait 5000
start nothing 1+2 consume [k1]
wait 5000
start p1.0.1 3+1`},
		"given input, which is recorded at the second attempt": {script([][]Event{came(Event{Message: new(message("k1", &journal.Added{Items: []item.Item{item.UserText("more")}, At: 1000}))}),
			came(Event{End: &End{Failure: &Failure{Kind: NotBegun}}}), {}, recorded(), {}, full}), `
wait 5000
start nothing 1+2 consume [k1]
wait 2000
start nothing 1+2 consume [k1]
wait 5000
start p1.0.1 3+1`},
		"cancelled": {script([][]Event{came(Event{Message: new(message("k1", &journal.Cancelled{By: "ann"}))}), recorded()}), `
wait 5000
start nothing 1+3 consume [k1]
close 1`},
	} {
		t.Run(name, func(t *testing.T) {
			h := &played{full: name != "cancelled", script: c.script}
			play(t, h, late)
			h.did(c.did)
		})
	}
}

// A step that was not begun is started again, after a pause that grows.
func TestNotBegun(t *testing.T) {
	not := came(failed(t, "m1.0.1", Failure{Kind: NotBegun}))
	all := turn(t, spec("pay", ""))
	h := &played{full: true, script: [][]Event{all[0], not, {}, not, {}, all[1], came(failed(t, "c1.0.1", Failure{Kind: NotBegun}))}}
	play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
wait 2000
start m1.0.1 2+1
wait 4000
start m1.0.1 2+1
start c1.0.1 3+1`)
}

// A tool that was not begun settles as not executed, and is a new attempt.
func TestToolNotBegun(t *testing.T) {
	h := &played{full: true, script: script(turn(t, spec("pay", "")), [][]Event{
		came(failed(t, "t1.0.1", Failure{Kind: NotBegun})), {}, came(ended(t, "t1.0.2", settled(t, "t1.0.2", "c0")))})}
	play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+2 once
wait 2000
start t1.0.2 4+4 once`)
}

// What is lost is found out under a new claim, once nothing is in flight. A call that is harmless is then begun again.
func TestLost(t *testing.T) {
	lost := Failure{Kind: Lost, Lost: "w"}
	h := &played{full: true, script: script(turn(t, spec("pay", ""), spec("look", journal.ReadOnly)), [][]Event{
		came(failed(t, "t1.0.1", lost)), came(failed(t, "t1.1.1", lost)), came(ended(t, "t1.1.2", settled(t, "t1.1.2", "c1")))})}
	d := play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+3 once
start t1.1.1 4+3
open, lost ["w"]
start t1.1.2 4+5 epoch 2`)
	if d.M.Status() != machine.Waiting || len(d.M.Interruptions()) != 1 || d.Epoch() != 2 {
		t.Error(d.M.Status(), d.M.Interruptions(), d.Epoch())
	}
}

// A call that may have been begun before a worker could not begin it again, or before it was cancelled, is not called not executed.
func TestBegunBefore(t *testing.T) {
	stop := Failure{Kind: Stopped, Stop: &Stop{Code: "config", Text: "no"}, Begun: true}
	cancel := Event{Message: new(message("cancel", &journal.Cancelled{By: "ann"}))}
	for name, events := range map[string][][]Event{
		"stopped":   {came(failed(t, "t1.0.1", stop)), recorded(), came(cancel), recorded()},
		"cancelled": {came(cancel), came(failed(t, "t1.0.1", Failure{Kind: Lost})), recorded()},
	} {
		h := &played{script: script(turn(t, spec("put", journal.Idempotent)), events)}
		d := play(t, h, begun())
		var said []journal.Outcome
		for _, f := range h.facts {
			if s, ok := f.Body.(*journal.Settled); ok {
				said = append(said, s.Outcome)
			}
		}
		if diff := cmp.Diff([]journal.Outcome{journal.Unknown}, said); diff != "" || d.M.Status() != machine.Cancelled {
			t.Errorf("%s: %s %s", name, d.M.Status(), diff)
		}
	}
}

// A call that commits with its outcome is lost, and nobody who could begin it again may: what it has committed is found before
// anything else is taken, or it has not happened, and is a new attempt [S23.10].
func TestAloneIsLost(t *testing.T) {
	stop := Failure{Kind: Stopped, Stop: &Stop{Code: "config", Text: "no"}, Begun: true}
	lost := failed(t, "t1.1.1", stop)
	other := ended(t, "t1.0.1", settled(t, "t1.0.1", "c0"))
	again := Event{Resume: &Resume{Token: "again", Fact: journal.Resumed{MaxTurns: 20}}}
	cancel := Event{Message: new(message("cancel", &journal.Cancelled{By: "ann"}))}
	committed := &journal.Fact{Time: 1000, Body: settled(t, "t1.1.1", "c1")}
	second := ended(t, "t1.1.2", nil)
	second.End.Stored = &journal.Fact{Time: 1000, Body: settled(t, "t1.1.2", "c1")}
	for name, c := range map[string]struct {
		commit *journal.Fact
		events [][]Event
		did    string
		status machine.Status
	}{
		"committed": {committed, script([][]Event{came(lost), came(again), came(other), recorded()}, last(t, 5)), `
start t1.1.1 4+3
open, lost []
start nothing 8+0 epoch 2
start p2.0.1 8+3 epoch 2
start m2.0.1 11+1 epoch 2
start c2.0.1 12+1 epoch 2
start nothing 13+2 epoch 2
close 2`, machine.Finished},
		"committed, and ends with another": {committed, script([][]Event{came(other, lost), recorded(), came(again)}, last(t, 5)), `
start t1.1.1 4+3
open, lost []
start nothing 8+0 epoch 2
start p2.0.1 8+3 epoch 2
start m2.0.1 11+1 epoch 2
start c2.0.1 12+1 epoch 2
start nothing 13+2 epoch 2
close 2`, machine.Finished},
		"not committed": {nil, script([][]Event{came(other, lost), recorded(), came(again), came(second)}, last(t, 5)), `
start t1.1.1 4+3
open, lost []
start nothing 7+0 epoch 2
start t1.1.2 7+4 epoch 2
start p2.0.1 12+0 epoch 2
start m2.0.1 12+1 epoch 2
start c2.0.1 13+1 epoch 2
start nothing 14+2 epoch 2
close 2`, machine.Finished},
		"committed, and cancelled": {committed, [][]Event{came(cancel), came(failed(t, "t1.1.1", Failure{Kind: Lost})), came(other), came(failed(t, "p2.0.1", Failure{Kind: Ended})), recorded()}, `
start t1.1.1 4+3
open, lost []
start p2.0.1 8+2 epoch 2
cancel p2.0.1
start nothing 8+4 epoch 2 consume [cancel]
close 2`, machine.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			h := &played{commit: c.commit, script: script(turn(t, spec("look", journal.ReadOnly), spec("book", journal.Transactional)), c.events)}
			d := play(t, h, begun())
			h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+3` + c.did)
			if d.M.Status() != c.status {
				t.Error(d.M.Status())
			}
		})
	}
}

// A cancelled run asks what is in flight to stop, and needs no outcome of it.
func TestCancel(t *testing.T) {
	all := turn(t, spec("pay", ""))
	h := &played{script: [][]Event{all[0], came(Event{Message: new(message("k1", &journal.Cancelled{By: "ann"}))}), came(failed(t, "m1.0.1", Failure{Kind: Ended})), recorded()}}
	d := play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
cancel m1.0.1
start nothing 2+3 consume [k1]
close 1`)
	if d.M.Status() != machine.Cancelled {
		t.Error(d.M.Status())
	}
}

// A message that is in the store's inbox and was never told is found when the run rests, and is taken once.
func TestInbox(t *testing.T) {
	ask := spec("pay", "")
	all := turn(t, ask)
	all[2][0].End.Outcome.(*journal.Planned).Calls[0].Gate = journal.Ask
	digest := all[2][0].End.Outcome.(*journal.Planned).Calls[0].Digest
	entry := message("k1", &journal.Decided{Call: ref(t, "t1.0.0").ID, Digest: digest, Verdict: journal.Approve, By: "ann"})
	h := &played{script: script(all, [][]Event{recorded(entry, entry), came(Event{Message: &entry}, ended(t, "t1.0.1", settled(t, "t1.0.1", "c0")))}, last(t, 3))}
	play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start nothing 4+1
start t1.0.1 5+2 once consume [k1]
start p2.0.1 7+1
start m2.0.1 8+1
start c2.0.1 9+1
start nothing 10+2
close 1`)
}

// A loop that is full goes on from what it saved as if it were the same one.
func TestFull(t *testing.T) {
	all, end := turn(t, spec("pay", "")), last(t, 3)
	h := &played{full: true, script: script(all, [][]Event{came(ended(t, "t1.0.1", settled(t, "t1.0.1", "c0")))}, end[:1],
		[][]Event{came(Event{Message: new(message("k1", &journal.Decided{Call: ref(t, "t9.0.0").ID, Verdict: journal.Approve}))}, end[1][0])})}
	d := play(t, h, begun())
	saved := d.Save()
	if saved.Delta.After != 8 || len(saved.Delta.Facts) != 1 || !slices.Equal(saved.Seen, []string{"k1"}) {
		t.Fatalf("%+v", saved)
	}
	facts := slices.Clone(h.facts)
	l, err := Restore(facts, saved)
	if err != nil {
		t.Fatal(err)
	}
	h.full, h.script = false, end[2:]
	if over, err := NewDriver(l, h, 1).Run(); !over || err != nil {
		t.Fatal(over, err)
	}
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+2 once
start p2.0.1 6+1
start m2.0.1 7+1
start c2.0.1 8+1 consume [k1]
start nothing 9+2
close 1`)
	if stepped, err := l.Take(message("k1", &journal.Cancelled{}), h.now); stepped || err != nil {
		t.Error("a message that an earlier loop has had is taken again", err)
	}
	if _, err := Restore(facts[:3], saved); err == nil {
		t.Error("a store that has lost facts is believed")
	}
}

// What is stored first has to be what comes next.
func TestEndStored(t *testing.T) {
	l, err := Open([]journal.Fact{begun()})
	if err == nil {
		err = l.Step(&journal.Claimed{Epoch: 1}, 1000)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Next(1000)
	if err := l.EndStored(journal.Fact{Body: &journal.Prepared{}}); err == nil {
		t.Error("an outcome is taken that was stored before what precedes it")
	}
	d := l.Delta()
	l.Stored(d)
	l.Stored(d) // two steps had it
	if now := l.Delta(); now.After != 2 || len(now.Facts) != 0 {
		t.Errorf("%+v", now)
	}
}

// A request that is to be tried again at a time waits until then, and one that failed for good until somebody resumes.
func TestWaits(t *testing.T) {
	all := turn(t, spec("pay", ""))
	fails := func(of string, at int64) []Event {
		return came(ended(t, of, &journal.Failed{ID: ref(t, of).ID, Code: "busy", Error: "busy", RetryAt: at}))
	}
	h := &played{full: true, script: [][]Event{all[0], fails("m1.0.1", 7000), {}, fails("m1.0.2", 0), recorded(),
		came(Event{Resume: &Resume{Token: "again"}}), came(failed(t, "m1.0.3", Failure{Kind: NotBegun}))}}
	d := play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
wait 7000
start m1.0.2 3+3
start nothing 6+1
start m1.0.3 7+2`)
	if d.Stop != nil || !slices.Equal(d.Tokens, []string{"again"}) {
		t.Error(d.Stop, d.Tokens)
	}
}

// A decision about a call that may still be running is taken once it cannot be any more.
func TestEarly(t *testing.T) {
	pay := spec("pay", "")
	pay.Timeout = 5000
	all := turn(t, pay)
	digest := all[2][0].End.Outcome.(*journal.Planned).Calls[0].Digest
	decision := message("k1", &journal.Decided{Call: ref(t, "t1.0.0").ID, Stage: 1, Digest: digest, Verdict: journal.Settle, Text: "paid", By: "ann"})
	h := &played{script: script(all, [][]Event{came(failed(t, "t1.0.1", Failure{Kind: Lost})), recorded(), came(Event{Message: &decision}), recorded(), {}}, last(t, 3))}
	d := play(t, h, begun())
	h.did(`
start p1.0.1 1+1
start m1.0.1 2+1
start c1.0.1 3+1
start t1.0.1 4+2 once
open, lost [""]
start nothing 4+3 epoch 2
start nothing 7+0 epoch 2
wait 8000
start p2.0.1 7+2 epoch 2 consume [k1]
start m2.0.1 9+1 epoch 2
start c2.0.1 10+1 epoch 2
start nothing 11+2 epoch 2
close 2`)
	if d.M.Status() != machine.Finished {
		t.Error(d.M.Status())
	}
}
