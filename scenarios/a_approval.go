package scenarios

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/pawltest"
)

// Group A: a call is approved and the run resumed. One effect, one output.

func approval() []scenario {
	return []scenario{s01(), s02(), s04(), s05(), s07(), s08(), s10(), s11(), s13(), s14(), s16(), s17(), s19(), s20()}
}

var (
	charge = tool{Name: "charge", Output: "receipt-5", Gated: true}

	// payment is the script of S01 and S02.
	payment = []pawltest.ResponsesStep{
		turn("user pay", call("c1", "charge")),
		turn("user pay; call c1 charge; output c1 receipt-5", says("done")),
	}
)

const paid = "user pay; call c1 charge; output c1 receipt-5; message done"

// askToPay starts the run of S01 and S02, up to the question whether to charge.
func askToPay(w *world, kind sessionKind) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{charge}, kind
	w.model(payment...)
	w.start("pay")
	w.waits("c1")
	w.effects()
	w.holds("user pay")
}

func s01() scenario {
	return scenario{
		id: "S01",
		script: `A tool that charges a card needs approval. It is approved and runs, and then the write of the call and its
output to the session fails. The caller gets that very error, and the model is not asked while the write is owed. Resuming
writes what is missing, once, and goes on: one charge, one call and one output in the session, in what the model reads and
in what can be replayed. It makes no difference whether the caller resumes from the state of the error or from the one he had
approved the call on, as long as there is something that knows better: the runner, or the store.
With a plain session the append of the batch fails. With the session in the run's own database batch and outcome are one
append of the journal, and that fails, for good: whoever still has the state of the error goes on, for the outcome is in it.
Who has only the store finds a call that may have happened. It is not repeated, a person says what became of it.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/4615",
			"https://github.com/openai/openai-agents-python/pull/4621",
		},
		variants: []variant{
			{name: "session append fails", play: s01Session, mixed: true},
			{name: "session append fails, resumed from the old state", play: s01OldState, mixed: true, impossible: func(c cell) string {
				if c.carrier == byJSON || c.carrier == process {
					return "a document saved before the call ran cannot know that it ran"
				}
				return ""
			}},
			{name: "journal append fails", play: s01Journal, mixed: true, impossible: storeOnly},
			{name: "journal append fails and the process is lost", play: s01JournalLost, mixed: true, impossible: storeOnly},
		},
	}
}

func s01Session(w *world) {
	askToPay(w, plain)
	w.do(request{Decide: []decision{approve("c1")}, SessionFaults: map[int]pawltest.SessionFault{1: {}}})
	w.fails("session fault")
	w.effects("charge c1")
	w.requests(1)
	w.holds("user pay")

	w.resume()
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.holds(paid)
}

func s01OldState(w *world) {
	askToPay(w, plain)
	old := w.last
	w.do(request{FromState: true, Decide: []decision{approve("c1")}, SessionFaults: map[int]pawltest.SessionFault{1: {}}})
	w.fails("session fault")
	w.last = old
	w.do(request{FromState: true, Decide: []decision{approve("c1")}})
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.holds(paid)
}

// noOutcome fails the append that has the outcome of the first tool in it, however often the driver tries.
var noOutcome = journaltest.Plan{2: journaltest.Absent, 3: journaltest.Absent, 4: journaltest.Absent}

func s01Journal(w *world) {
	askToPay(w, inStore)
	w.do(request{Decide: []decision{approve("c1")}, JournalFaults: noOutcome})
	w.fails("journal fault", "journal")
	w.effects("charge c1")
	w.requests(1)
	w.holds("user pay")

	w.do(request{FromState: true})
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.holds(paid)
}

func s01JournalLost(w *world) {
	askToPay(w, inStore)
	w.do(request{Decide: []decision{approve("c1")}, JournalFaults: noOutcome})
	w.fails("journal fault", "journal")
	w.effects("charge c1")

	w.resume()
	w.waits("c1")
	if kind := w.last.Interruptions[0].Kind; kind != "in-doubt" {
		w.Errorf("the interruption is of kind %q", kind)
	}
	w.requests(1)
	w.resume(settle("c1", "receipt-5"))
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.holds(paid)
}

func s02() scenario {
	return scenario{
		id: "S02",
		script: `As S01, but the failed write is in the session: only its acknowledgement was lost. Resuming looks before it
writes, finds the batch and writes nothing. If only a part of the batch is there, nobody can know who put it there: the
caller gets a typed error with what was to be written and what is there, as often as he resumes, and neither the model nor
the tool is called. Once he has taken the half batch out the run goes on. A resume with another session is refused before
anything happens, and the other session stays empty. Never are there two outputs.
With the session in the run's own database the lost acknowledgement is one of the journal's. The driver reads the ledger,
finds what it wrote and goes on: nobody notices.`,
		sources: []string{
			"https://github.com/openai/openai-agents-js/pull/1757",
			"https://github.com/openai/openai-agents-python/issues/4615",
		},
		variants: []variant{
			{name: "acknowledgement lost", play: s02Lost, mixed: true},
			{name: "half of the batch stored", play: s02Partial, impossible: notOnEngine("an engine brings the text of an error, not what the error holds")},
			{name: "another session", play: s02Other},
			{name: "journal acknowledgement lost", play: s02JournalLost, mixed: true, impossible: storeOnly},
			{name: "journal, half of the batch stored", impossible: func(cell) string {
				return "an append of the journal is one transaction: there is no half of it"
			}},
			{name: "journal, another session", play: s02JournalOther, impossible: storeOnly},
		},
	}
}

func s02Lost(w *world) {
	askToPay(w, plain)
	w.do(request{Decide: []decision{approve("c1")}, SessionFaults: map[int]pawltest.SessionFault{1: {Stored: pawltest.AllItems}}})
	w.fails("session fault")
	w.requests(1)
	w.resume()
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.holds(paid)
}

func s02Partial(w *world) {
	askToPay(w, plain)
	w.damaged = true
	w.do(request{Decide: []decision{approve("c1")}, SessionFaults: map[int]pawltest.SessionFault{1: {Stored: 1}}})
	w.fails("session fault")
	for range 2 {
		w.resume()
		w.fails("session ambiguous", "repair payload")
		w.effects("charge c1")
		w.requests(1)
		w.holds("user pay; call c1 charge")
	}

	w.at(func(p *place) {
		if _, _, err := p.backend.Session(sessionID).Pop(w.Context()); err != nil {
			w.Fatal(err)
		}
	})
	w.damaged = false
	w.resume()
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.holds(paid)
}

func s02Other(w *world) {
	askToPay(w, plain)
	w.do(request{Decide: []decision{approve("c1")}, SessionFaults: map[int]pawltest.SessionFault{1: {}}})
	w.fails("session fault")
	w.do(request{OtherSession: "another"})
	w.fails("session mismatch")
	w.effects("charge c1")
	w.requests(1)
	if other := w.rows("another"); len(other) > 0 {
		w.Errorf("the other session has %d items", len(other))
	}
	w.resume()
	w.ends("done")
	w.effects("charge c1")
	w.holds(paid)
}

func s02JournalLost(w *world) {
	askToPay(w, inStore)
	w.do(request{Decide: []decision{approve("c1")}, JournalFaults: journaltest.Plan{2: journaltest.Stored}})
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.holds(paid)
}

func s02JournalOther(w *world) {
	askToPay(w, inStore)
	w.do(request{Decide: []decision{approve("c1")}, OtherSession: "another"})
	w.fails("session mismatch")
	w.effects()
	if other := w.rows("another"); len(other) > 0 {
		w.Errorf("the other session has %d items", len(other))
	}
	w.resume()
	w.ends("done")
	w.effects("charge c1")
	w.holds(paid)
}

func s10() scenario {
	return scenario{
		id: "S10",
		script: `On a conversation that the server holds, one response calls a tool that needs approval and one that does not.
The free one runs before the run waits. After the decision and a round trip of the state, the next request carries exactly
the outputs of both calls, once each: that the free one ran before the pause does not mean that the server knows its output.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/3004",
			"https://github.com/openai/openai-agents-python/pull/3006",
		},
		variants: []variant{
			{name: "approve", play: func(w *world) { s10Play(w, approve("c1"), "cleaned", "cleanup c1", "diag c2") }},
			{name: "reject", play: func(w *world) { s10Play(w, reject("c1", "not now"), "not now", "diag c2") }},
		},
	}
}

func s10Play(w *world, d decision, output string, effects ...string) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "cleanup", Output: "cleaned", Gated: true}, {Name: "diag", Output: "all well"}}
	w.setup.Session = noSession
	w.model(
		turn("user go", call("c1", "cleanup"), call("c2", "diag")),
		turn("output c1 "+output+"; output c2 all well", says("done")),
	)
	w.do(request{Input: []item.Item{item.UserText("go")}, Conversation: w.conversation()})
	w.waits("c1")
	w.effects("diag c2")
	w.resume(d)
	w.ends("done")
	w.effects(effects...)
}
