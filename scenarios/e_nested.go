package scenarios

import (
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// Group E: agents that are called as tools, agents that hand over, and who is who.

func teams() []scenario { return []scenario{s67(), s68(), s70(), s71()} }

// asks is the call of an agent as a tool.
func asks(callID, agent, text string) pawl.Item {
	return callWith(callID, agent, fmt.Sprintf(`{"input":%q}`, text))
}

func s67() scenario {
	return scenario{
		id: "S67",
		script: `An agent calls another one as a tool. That one writes a log, and then calls a tool that needs approval. The run
waits, and only its document, or its id, goes to another process. The call is decided there, and the nested agent goes on where
it was: the log is not written again, it is not asked again, and two requests are left, one of each agent. So it is if the agent
that waits is nested two deep, if the call is rejected, and if the run waits twice.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/pull/2500",
			"https://github.com/strands-agents/harness-sdk/issues/3076",
		},
		variants: []variant{
			{name: "approved", play: func(w *world) { s67Play(w, approve("n2"), "moved", "log n1", "move n2") }},
			{name: "rejected", play: func(w *world) { s67Play(w, reject("n2", "no"), "no", "log n1") }},
			{name: "two deep", play: s67Deep},
			{name: "twice", play: s67Twice},
		},
	}
}

var (
	logging = tool{Name: "log", Output: "logged"}
	moving  = tool{Name: "move", Output: "moved", Gated: true}
)

// bank is a desk that has a bank as a tool.
func bank() []member {
	return []member{{Name: "Desk", Runs: []int{1}}, {Name: "Bank", Tools: []tool{logging, moving}}}
}

func s67Play(w *world, d decision, output string, effects ...string) {
	w.Helper()
	w.setup.Team = bank()
	const read = "user move 5; call n1 log; output n1 logged"
	w.model(
		turn("user pay", asks("m1", "bank", "move 5")),
		turn("user move 5", call("n1", "log")),
		turn(read, call("n2", "move")),
		turn(read+"; call n2 move; output n2 "+output, says("well")),
		turn("user pay; call m1 bank; output m1 well", says("done")),
	)
	w.start("pay")
	w.waits("n2")
	w.effects("log n1")
	w.requests(3)
	w.holds("user pay")
	w.resume()
	w.waits("n2")
	w.requests(3)

	w.resume(d)
	w.ends("done")
	w.effects(effects...)
	w.requests(5)
	w.holds("user pay; call m1 bank; output m1 well; message done")
}

func s67Deep(w *world) {
	w.setup.Team = []member{{Name: "Desk", Runs: []int{1}}, {Name: "Bank", Tools: []tool{logging}, Runs: []int{2}}, {Name: "Vault", Tools: []tool{moving}}}
	w.model(
		turn("user pay", asks("m1", "bank", "move 5")),
		turn("user move 5", call("n1", "log"), asks("n2", "vault", "open")),
		turn("user open", call("v1", "move")),
		turn("user open; call v1 move; output v1 moved", says("open")),
		turn("user move 5; call n1 log; call n2 vault; output n1 logged; output n2 open", says("well")),
		turn("user pay; call m1 bank; output m1 well", says("done")),
	)
	w.start("pay")
	w.waits("v1")
	w.effects("log n1")
	w.requests(3)
	w.resume(approve("v1"))
	w.ends("done")
	w.effects("log n1", "move v1")
	w.requests(6)
}

func s67Twice(w *world) {
	w.setup.Team = bank()
	const first = "user move 5; call n1 move; output n1 moved"
	w.model(
		turn("user pay", asks("m1", "bank", "move 5")),
		turn("user move 5", call("n1", "move")),
		turn(first, call("n2", "move")),
		turn(first+"; call n2 move; output n2 moved", says("well")),
		turn("user pay; call m1 bank; output m1 well", says("done")),
	)
	w.start("pay")
	w.waits("n1")
	w.resume(approve("n1"))
	w.waits("n2")
	w.effects("move n1")
	w.resume(approve("n2"))
	w.ends("done")
	w.effects("move n1", "move n2")
	w.requests(5)
}

func s68() scenario {
	alone := func(c cell) string {
		if c.carrier == process {
			return "two processes that have a document each do not know of each other"
		}
		return ""
	}
	return scenario{
		id: "S68",
		script: `A nested agent waits for an approval, and two states are read from the same bytes. The call is approved on both, and
both are resumed in one process, one after the other or at once. They are one run: its tool runs once. The second gets the
outcome that is recorded, or is refused because the run is being driven. Nothing of one state's nested run is taken for the
other's. Two forks of the state are two runs: each has an effect of its own, under a key of its own.`,
		sources: []string{"https://github.com/openai/openai-agents-python/pull/2501"},
		variants: []variant{
			{name: "one after the other", play: func(w *world) { s68Play(w, false) }, impossible: alone},
			{name: "at once", play: func(w *world) { s68Play(w, true) }, impossible: alone},
			{name: "forks", play: s68Forks},
		},
	}
}

func s68Play(w *world, atOnce bool) {
	w.Helper()
	w.setup.Team = bank()
	w.model(
		turn("user pay", asks("m1", "bank", "move 5")),
		turn("user move 5", call("n1", "move")),
		turn("user move 5; call n1 move; output n1 moved", says("well")),
		turn("user pay; call m1 bank; output m1 well", says("done")),
	)
	w.start("pay")
	w.waits("n1")
	got := w.resumeTwo(atOnce, approve("n1"))
	for _, o := range got {
		busy := slices.Equal(o.Errors, []string{"claimed"})
		if o.Final != "done" && !(atOnce && busy) {
			w.Errorf("a copy ended with %+v", o.seen)
		}
	}
	w.ends("done")
	w.effects("move n1")
	w.requests(4)
	w.holds("user pay; call m1 bank; output m1 well; message done")
}

// resumeTwo decides on two states that are read from the document of the last call, and resumes both. The first that went
// through counts as the next call.
func (w *world) resumeTwo(atOnce bool, d decision) []*outcome {
	w.Helper()
	w.note([]decision{d})
	from := w.last
	got := make([]*outcome, 2)
	r := request{Mode: w.cell.mode(len(w.outcomes)), FromState: true, Decide: []decision{d}}
	w.at(func(p *place) {
		var both sync.WaitGroup
		for i := range got {
			state, err := from.document()
			if err != nil {
				w.Fatal(err)
			}
			one := func() { got[i] = p.call(w.Context(), r, state) }
			if !atOnce {
				one()
				continue
			}
			both.Go(one)
		}
		both.Wait()
	})
	w.last = got[slices.IndexFunc(got, func(o *outcome) bool { return o.Error == "" })]
	w.outcomes = append(w.outcomes, w.last.seen)
	w.checkAlways(w.last)
	return got
}

func s68Forks(w *world) {
	w.setup.Team, w.setup.Session = bank(), noSession
	rest := []pawltest.ResponsesStep{
		turn("user move 5; call n1 move; output n1 moved", says("well")),
		turn("user pay; call m1 bank; output m1 well", says("done")),
	}
	w.model(slices.Concat([]pawltest.ResponsesStep{
		turn("user pay", asks("m1", "bank", "move 5")),
		turn("user move 5", call("n1", "move")),
	}, rest, rest)...)
	w.forked = true
	w.start("pay")
	w.waits("n1")
	source := w.last
	for _, fork := range []string{"S68 a", "S68 b"} {
		w.last = source
		w.do(request{Decide: []decision{approve("n1")}, Fork: fork})
		w.ends("done")
	}
	w.effects("move n1", "move n1")
	keys := map[string]bool{}
	for _, e := range w.recorded() {
		if e.Tool != reviewer {
			keys[e.Key] = true
		}
	}
	if len(keys) != 2 {
		w.Errorf("two forks have the keys %v", keys)
	}
	w.requests(6)
}

func s70() scenario {
	return scenario{
		id: "S70",
		script: `A desk hands over to an agent that calls a tool which needs approval. The desk has another tool of that name. The
run waits, and is resumed with the desk, for that is the agent it was started with. The call runs the tool of the agent that made
it, once, and the desk's tool never; and the run goes on with that agent. A rejected call runs neither.`,
		sources: []string{"https://github.com/microsoft/agent-framework/issues/8247"},
		variants: []variant{
			{name: "approved", play: func(w *world) { s70Play(w, approve("c1"), "closed by the bank", "bank closes c1") }},
			{name: "rejected", play: func(w *world) { s70Play(w, reject("c1", "no"), "no") }},
		},
	}
}

func s70Play(w *world, d decision, output string, effects ...string) {
	w.Helper()
	w.setup.Team = []member{
		{Name: "Desk", Tools: []tool{{Name: "close", Does: "desk closes", Output: "closed by the desk"}}, Transfers: []transfer{{To: 1}}},
		{Name: "Bank", Tools: []tool{{Name: "close", Does: "bank closes", Output: "closed by the bank", Gated: true}}},
	}
	const before = `user go; call h1 transfer_to_bank; output h1 {"assistant":"Bank"}`
	w.model(
		turn("user go", call("h1", "transfer_to_bank")),
		turn(before, call("c1", "close")),
		turn(before+"; call c1 close; output c1 "+output, says("done")),
	)
	w.start("go")
	w.waits("c1")
	w.hands("Bank")
	w.effects("transfer_to_bank h1")
	w.resume()
	w.waits("c1")
	w.resume(d)
	w.ends("done")
	w.hands("Bank")
	w.effects(append(effects, "transfer_to_bank h1")...)
	w.requests(3)
	w.holds(before + "; call c1 close; output c1 " + output + "; message done")
}

// hands checks in whose hands the conversation is.
func (w *world) hands(agent string) {
	w.Helper()
	if w.last.LastAgent != agent {
		w.Fatalf("the conversation is in the hands of %q, want %q", w.last.LastAgent, agent)
	}
}

func s71() scenario {
	return scenario{
		id: "S71",
		script: `A desk can hand over to two agents of the same name, which have different tools, and one of them can hand back. The
run waits in the second of them and is resumed: it is that one that goes on, with its tool, and hands back to the desk. What
tells the two apart is the way that leads to them. If nothing leads there any more when it is resumed, the caller gets a typed
error before anything happened, and can resume with the agents that there were. Two agents that are given one key are refused
before anything happens, for nobody could tell whose a call is.`,
		sources: []string{
			"https://github.com/openai/openai-agents-js/pull/1149",
			"https://github.com/openai/openai-agents-js/pull/1243",
		},
		variants: []variant{
			{name: "the second one", play: func(w *world) { s71Play(w, nil) }},
			{name: "gone meanwhile", play: func(w *world) { s71Play(w, s71Team()[:2]) }},
			{name: "one key", play: s71Key, impossible: noDocument},
		},
	}
}

func s71Team() []member {
	return []member{
		{Name: "Desk", Transfers: []transfer{{To: 1, Name: "to_first"}, {To: 2, Name: "to_second"}}},
		{Name: "helper", Tools: []tool{{Name: "act", Does: "first acts", Output: "first", Gated: true}}},
		{Name: "helper", Tools: []tool{{Name: "act", Does: "second acts", Output: "second", Gated: true}}, Transfers: []transfer{{To: 0}}},
	}
}

func s71Play(w *world, without []member) {
	w.Helper()
	w.setup.Team = s71Team()
	const before = `user go; call h1 to_second; output h1 {"assistant":"helper"}`
	const after = before + `; call c1 act; call h2 transfer_to_desk; output c1 second; output h2 {"assistant":"Desk"}`
	w.model(
		turn("user go", call("h1", "to_second")),
		turn(before, call("c1", "act"), call("h2", "transfer_to_desk")),
		turn(after, says("done")),
	)
	w.start("go")
	w.waits("c1")
	w.hands("Desk/to_second")
	if without != nil {
		without[0].Transfers = without[0].Transfers[:1]
		w.do(request{Decide: []decision{approve("c1")}, Team: without})
		w.fails("unknown agent")
		if onEngine(w.cell) {
			w.refused = append(w.refused, "c1")
		}
		w.effects("to_second h1")
		w.requests(2)
		w.resume()
	} else {
		w.resume(approve("c1"))
	}
	w.ends("done")
	w.hands("Desk")
	w.effects("second acts c1", "to_second h1", "transfer_to_desk h2")
	w.holds(after + "; message done")
}

func s71Key(w *world) {
	w.setup.Team, w.setup.Session = s71Team(), noSession
	w.setup.Team[1].Key, w.setup.Team[2].Key = "helper", "helper"
	w.model()
	w.start("go")
	w.fails("config")
	w.effects()
	w.requests(0)
}
