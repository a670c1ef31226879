package scenarios

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// What else happens while a tool is at work.

func s28() scenario {
	return scenario{
		id: "S28",
		script: `While a run is in a tool, another run is started on the same session. It is refused with a typed error and does
nothing: the model is not asked, the session is as it was. Once the first has ended the second is started again, and reads all of
the first. Where the two cannot know of each other, because their ledgers are in the memories of two runners, both run; the
session still has every turn in one piece, call and output together, and no turn of one in the middle of one of the other.`,
		sources: []string{"https://github.com/google/adk-python/issues/4751"},
		variants: []variant{
			{name: "known to each other", play: s28Known, impossible: knownToOthers},
			{name: "not known to each other", play: s28Unknown, impossible: func(c cell) string {
				if c.carrier == live || c.carrier == store {
					return "the runs of one store know of each other"
				}
				return ""
			}},
		},
	}
}

// meanwhile makes another run, in the middle of a call.
func (w *world) meanwhile(id, text string) *outcome {
	p := w.stay
	if p == nil {
		var err error
		if p, err = open(w.setup); err != nil {
			w.Error(err)
			return newOutcome(nil, err)
		}
		defer p.close()
	}
	r := request{Input: []item.Item{item.UserText(text)}}
	runner, opts := p.options(r)
	opts.ID = id
	if w.cell.mode(0) == stream {
		return newOutcome(pawl.Collect(runner.Stream(w.Context(), p.agent(r), r.Input, opts)))
	}
	return newOutcome(runner.Run(w.Context(), p.agent(r), r.Input, opts))
}

func s28Known(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o"}}
	const first = "user one; call c1 t; output c1 o"
	w.model(turn("user one", call("c1", "t")), turn(first, says("1")), turn(first+"; message 1; user two", says("2")))
	w.do(request{Input: []item.Item{item.UserText("one")}, Before: map[string]func(context.Context) error{
		"c1": func(context.Context) error {
			if second := w.meanwhile("S28 second", "two"); !slices.Equal(second.Errors, []string{"session busy"}) {
				w.Errorf("the second run: %+v, want that the session is busy", second.seen)
			}
			return nil
		}}})
	w.ends("1")
	w.requests(2)
	w.holds(first + "; message 1")

	w.anotherRun("S28 second")
	w.start("two")
	w.ends("2")
	w.effects("t c1")
	w.holds(first + "; message 1; user two; message 2")
}

func s28Unknown(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o"}}
	w.model(turn("user one", call("c1", "t")), turn("user one; user two", says("2")), turn("user one; call c1 t; output c1 o", says("1")))
	w.shared = true
	w.do(request{Input: []item.Item{item.UserText("one")}, Before: map[string]func(context.Context) error{
		"c1": func(context.Context) error {
			if second := w.meanwhile("S28 second", "two"); second.Final != "2" {
				w.Errorf("the second run: %+v, want that it ends", second.seen)
			}
			return nil
		}}})
	w.ends("1")
	w.effects("t c1")
	w.holds("user one; user two; message 2; call c1 t; output c1 o; message 1")
}

func s29() scenario {
	return scenario{
		id: "S29",
		script: `While a run is in a tool, somebody else appends a note to its session. The turn survives: the tool takes effect
once, call and output are appended together behind the note, and the run ends. It has read the session when it began, so the
note is not in its own requests; the next run on the session reads it, at its place. (Compaction in the background is not part of
this yet.)`,
		sources: []string{
			"https://github.com/google/adk-go/issues/1229",
			"https://github.com/google/adk-python/issues/5194",
		},
		variants: []variant{
			{name: "session of the store", play: func(w *world) { s29Play(w, inStore) }},
			{name: "plain session", play: func(w *world) { s29Play(w, plain) }},
		},
	}
}

func s29Play(w *world, kind sessionKind) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{{Name: "t", Output: "o"}}, kind
	const settled = "call c1 t; output c1 o"
	const after = "user go; user a note; " + settled + "; message done"
	w.model(turn("user go", call("c1", "t")), turn("user go; "+settled, says("done")), turn(after+"; user and?", says("read")))
	w.do(request{Input: []item.Item{item.UserText("go")}, Before: map[string]func(context.Context) error{
		"c1": func(ctx context.Context) error {
			p, err := open(w.setup)
			if err != nil {
				return err
			}
			defer p.close()
			return p.backend.Session(sessionID).Append(ctx, []item.Item{item.UserText("a note")})
		}}})
	w.ends("done")
	w.effects("t c1")
	w.holds(after)

	w.anotherRun("S29 next")
	w.start("and?")
	w.ends("read")
	w.effects("t c1")
	w.holds(after + "; user and?; message read")
}

func s34() scenario {
	return scenario{
		id: "S34",
		script: `A tool takes no notice of its time running out. The model is told that the outcome is unknown, not that the call
failed, and calls the tool again, under another key, with the same result; then it gives up. Much later both calls take effect
and return. What they return is kept in the ledger with their calls as late results: there is no second output in the session, in
what can be replayed or in any request, and no turn is made of it. Until then whoever asks the store for what is unsettled is
told of both calls, with their keys, although the run has ended; afterwards of none.`,
		sources:  []string{"https://github.com/github/copilot-cli/issues/4668"},
		variants: []variant{{play: s34Play}},
	}
}

func s34Play(w *world) {
	w.setup.Tools, w.setup.Grace = []tool{{Name: "slow", Output: "made", Timeout: time.Second}}, time.Millisecond
	once := "user make it; call c1 slow; " + unknown("c1", "pawl_4aa1c7c309ca2186b9b076f6311d1d04")
	twice := once + "; call c2 slow; " + unknown("c2", "pawl_029e3655105ca4ef078b256e4e1e234e")
	w.model(
		turn("user make it", call("c1", "slow")),
		turn(once, call("c2", "slow")),
		turn(twice, says("I do not know.")),
	)
	w.stays()
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	deaf := func(context.Context) error { <-released; return nil }
	w.do(request{Input: []item.Item{item.UserText("make it")}, Before: map[string]func(context.Context) error{"c1": deaf, "c2": deaf}})
	w.ends("I do not know.")
	w.effects()
	told := func(call, id, key string) pawl.Unsettled {
		return pawl.Unsettled{Run: "S34", Agent: "Desk", Call: call, Tool: "slow", CallID: id, Arguments: `{"amount":5}`, Key: key, Attempt: 1, Standing: pawl.StandsTold,
			Interruption: call + "#1"}
	}
	w.unsettled(told("1.0", "c1", "pawl_4aa1c7c309ca2186b9b076f6311d1d04"), told("2.0", "c2", "pawl_029e3655105ca4ef078b256e4e1e234e"))
	release()
	w.eventually("both calls have a late result", func() bool {
		n, err := w.stay.late(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		return n == 2
	})
	w.unsettled()
	w.effects("slow c1", "slow c2")
	w.requests(3)
	w.holds(twice + "; message I do not know.")
	w.leaves()
}

func s35() scenario {
	return scenario{
		id: "S35",
		script: `One response calls three tools. Two have done their work and the third is at it when the user stops the process. The
run is resumed: what is done is not done again, the third call is answered once with that its outcome is unknown, and the next
request is valid. If the user writes something new on the session instead, the new run closes the one that was stopped, and reads
the same three calls with the same three outputs in front of the new message.`,
		sources: []string{"https://github.com/EvoScientist/EvoScientist/issues/463"},
		variants: []variant{
			{name: "resumed", impossible: notStopped, play: func(w *world) {
				s35Stop(w, s35Settled)
				w.resume()
				w.ends("done")
				s35Check(w, s35Settled+"; message done")
			}},
			{name: "another run on the session", play: func(w *world) {
				s35Stop(w, s35Settled+"; user continue")
				w.anotherRun("S35 new")
				w.start("continue")
				w.ends("done")
				s35Check(w, s35Settled+"; user continue; message done")
			}, impossible: func(c cell) string { return cmp.Or(knownToOthers(c), notStopped(c)) }},
		},
	}
}

// notStopped is the reason of variants in which a process stops driving.
var notStopped = notOnEngine("who stops waiting for a run of an engine does not stop it")

var s35Settled = "user go; call c1 e1; call c2 e2; call c3 e3; output c1 one; output c2 two; " +
	unknown("c3", "pawl_5d57d97a615fe2257c4ff4a6a85093d7")

// s35Stop plays the script up to the end of the process.
func s35Stop(w *world, reads string) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "e1", Output: "one"}, {Name: "e2", Output: "two"}, {Name: "e3", Output: "three"}}
	w.model(turn("user go", call("c1", "e1"), call("c2", "e2"), call("c3", "e3")), turn(reads, says("done")))
	var others sync.WaitGroup
	others.Add(2)
	other := func(context.Context) error { others.Done(); return nil }
	w.do(request{Input: []item.Item{item.UserText("go")}, Before: map[string]func(context.Context) error{
		"c1": other, "c2": other, "c3": func(ctx context.Context) error {
			others.Wait()
			w.stop()
			<-ctx.Done()
			return ctx.Err()
		}}})
	w.fails("stopped")
	w.requests(1)
}

func s35Check(w *world, whole string) {
	w.Helper()
	w.effects("e1 c1", "e2 c2")
	w.requests(2)
	w.holds(whole)
}
