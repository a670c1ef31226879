package scenarios

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Group G: states, copies of states, versions.

func states() []scenario { return []scenario{s88(), s89()} }

func s88() scenario {
	return scenario{
		id: "S88",
		script: `A run has used 10 tokens of input and 5 of output when it waits for an approval. Its state is saved twice, and
from each copy a fork goes on, which uses 7 and 3 more. Each fork has used 17 and 8, in two requests: what was used before
the pause is counted, and once. The state they came from still says 10 and 5.
If an agent that is called as a tool
has used 4 and 2 of it before the pause, that is counted once in each fork, too. (Compaction is not part of this yet.)`,
		sources: []string{
			"https://github.com/openai/openai-agents-js/pull/1451",
			"https://github.com/openai/openai-agents-python/pull/4479",
		},
		variants: []variant{{name: "one agent", play: s88Play}, {name: "nested agent", play: s88Nested}},
	}
}

func s88Play(w *world) {
	w.setup.Tools, w.setup.Session = []tool{{Name: "t", Output: "o", Gated: true}}, noSession
	second := using(turn("user go; call c1 t; output c1 o", says("done")), 7, 3)
	w.model(using(turn("user go", call("c1", "t")), 10, 5), second, second)
	w.forked = true

	w.start("go")
	w.waits("c1")
	source := w.last
	w.usage(1, 10, 5)
	for _, fork := range []string{"S88 a", "S88 b"} {
		w.last = source
		w.do(request{Decide: []decision{approve("c1")}, Fork: fork})
		w.ends("done")
		w.usage(2, 17, 8)
	}
	w.effects("t c1", "t c1") // a fork is a run of its own, with effects of its own

	if source.state != nil && w.cell.carrier == live {
		source.seen = newOutcome(source.state.Result(), nil).seen
	}
	w.last = source
	w.waits("c1")
	w.usage(1, 10, 5)
	again, err := source.document()
	if err != nil {
		w.Fatal(err)
	}
	if diff := cmp.Diff(source.seen, newOutcome(again.Result(), nil).seen); diff != "" {
		w.Errorf("the state the forks came from has changed (-before +after):\n%s", diff)
	}
}

func s88Nested(w *world) {
	w.setup.Team, w.setup.Session = bank(), noSession
	rest := []pawltest.ResponsesStep{
		using(turn("user move 5; call n1 move; output n1 moved", says("well")), 4, 2),
		using(turn("user pay; call m1 bank; output m1 well", says("done")), 7, 3),
	}
	w.model(slices.Concat([]pawltest.ResponsesStep{
		using(turn("user pay", asks("m1", "bank", "move 5")), 10, 5),
		using(turn("user move 5", call("n1", "move")), 4, 2),
	}, rest, rest)...)
	w.forked = true
	w.start("pay")
	w.waits("n1")
	w.usage(2, 14, 7)
	source := w.last
	for _, fork := range []string{"S88 a", "S88 b"} {
		w.last = source
		w.do(request{Decide: []decision{approve("n1")}, Fork: fork})
		w.ends("done")
		w.usage(4, 25, 12)
	}
	w.effects("move n1", "move n1")
}

// usage checks what the run has used according to the last call.
func (w *world) usage(requests, input, output int64) {
	w.Helper()
	got := w.last.Usage
	if int64(got.Requests) != requests || got.Input != input || got.Output != output || got.Unreported != 0 {
		w.Errorf("used: %+v, want %d requests, %d in, %d out", got, requests, input, output)
	}
}

func s89() scenario {
	return scenario{
		id: "S89",
		script: `Two copies are taken of the state of a run that waits. The call is approved on one and rejected on the other,
and whatever slices the result and the states hand out are overwritten. The first copy is resumed, while the others are
read. The second copy still says rejected and the result still says waiting, to the byte: nothing is shared. Submitting the
second copy's verdict to the run that has gone on is refused, and changes nothing.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/pull/4251",
			"https://github.com/openai/openai-agents-python/pull/4384",
			"https://github.com/openai/openai-agents-python/pull/4413",
		},
		variants: []variant{{play: s89Play}},
	}
}

func s89Play(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o", Gated: true}}
	w.model(
		turn("user go", call("c1", "t")),
		turn("user go; call c1 t; output c1 o", says("done")),
	)
	w.start("go")
	w.waits("c1")

	source := w.copyOfState()
	result := source.Result()
	other := result.State()
	in := other.Interruptions()[0]
	if err := other.Reject(in, reviewer, "no"); err != nil {
		w.Fatal(err)
	}
	if open := source.Interruptions(); len(open) != 1 {
		w.Errorf("a rejection on a copy shows on the state it was taken from: %v", open)
	}
	before := w.describe(result, other)
	scribble(result, source, other)

	var readers sync.WaitGroup
	readers.Go(func() {
		for range 50 {
			w.describe(result, other)
		}
	})
	w.resume(approve("c1"))
	readers.Wait()
	w.ends("done")
	w.effects("t c1")
	if diff := cmp.Diff(before, w.describe(result, other)); diff != "" {
		w.Errorf("the other copy has changed (-before +after):\n%s", diff)
	}

	if w.cell.carrier != live && w.cell.carrier != store {
		return // the other document would be a run of its own here: nothing knows of the first any more
	}
	w.at(func(p *place) {
		runner, opts := p.options(request{})
		_, err := runner.Resume(w.Context(), p.agent(request{}), other, opts)
		if names := newOutcome(nil, err).Errors; !slices.Equal(names, []string{"decided"}) {
			w.Errorf("resuming the other copy: %v, want that the call is decided", err)
		}
	})
	w.effects("t c1")
	w.requests(2)
}

// copyOfState is another copy of the state that the next call goes on from.
func (w *world) copyOfState() (s *pawl.RunState) {
	w.Helper()
	if s = w.state(request{}); s != nil {
		return s
	}
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		var err error
		if s, err = runner.State(w.Context(), w.setup.Run); err != nil {
			w.Fatal(err)
		}
	})
	return s
}

// describe writes down all that a result and a state say.
func (w *world) describe(res *pawl.Result, s *pawl.RunState) []string {
	w.Helper()
	doc, err := json.Marshal(s)
	if err != nil {
		w.Error(err)
	}
	return []string{string(doc), encode(res.Interruptions), encode(res.NewItems()), encode(res.ToInputList()), encode(res.Usage),
		string(res.Status), encode(s.Interruptions()), encode(s.Staged())}
}

// scribble overwrites what a caller was handed.
func scribble(res *pawl.Result, states ...*pawl.RunState) {
	junk := item.UserText("overwritten")
	for _, list := range [][]item.Item{res.NewItems(), res.ToInputList()} {
		for i := range list {
			list[i] = junk
		}
	}
	for _, s := range states {
		for i := range s.Interruptions() {
			s.Interruptions()[i] = pawl.Interruption{ID: "overwritten"}
		}
		for i := range s.Staged() {
			s.Staged()[i] = pawl.Decision{By: "overwritten"}
		}
	}
}
