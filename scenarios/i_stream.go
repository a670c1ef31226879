package scenarios

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Groups H and I: failing stores beneath a stream, stopping, budgets, usage.

func streams() []scenario { return []scenario{s94(), s95(), s97(), s98(), s100(), s101()} }

func s94() scenario {
	s := scenario{
		id: "S94",
		script: `A run of two turns writes to its session three times: the input, a turn, the answer. One of these writes fails, or
its acknowledgement is lost. Whether somebody reads the stream to its end, reads it slowly, or nobody reads one, the run ends
there, with that very error, and nothing hangs. Then it is resumed, the write is made up for, and the run ends as if nothing had
been wrong: each item is in the session once, and no request was made twice.`,
		sources: []string{"https://github.com/openai/openai-agents-python/pull/2131"},
	}
	for n, write := range []string{"input", "turn", "answer"} {
		for name, fault := range map[string]pawltest.SessionFault{"fails": {}, "acknowledgement lost": {Stored: pawltest.AllItems}} {
			for _, slow := range []bool{false, true} {
				if slow && fault.Stored != 0 {
					continue
				}
				name := write + ", " + name
				if slow {
					name += ", slow reader"
				}
				s.variants = append(s.variants, variant{name: name, play: func(w *world) { s94Play(w, n, fault, slow) }})
			}
		}
	}
	slices.SortFunc(s.variants, func(a, b variant) int { return len(a.name) - len(b.name) })
	return s
}

func s94Play(w *world, n int, fault pawltest.SessionFault, slow bool) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{{Name: "t", Output: "o"}}, plain
	const settled = "user go; call c1 t; output c1 o"
	w.model(turn("user go", call("c1", "t")), turn(settled, says("done")))
	w.do(request{Input: []item.Item{item.UserText("go")}, SessionFaults: map[int]pawltest.SessionFault{n + 1: fault}, SlowReader: slow})
	w.fails("session fault")
	w.requests(n)
	w.resume()
	w.ends("done")
	w.effects("t c1")
	w.requests(2)
	w.holds(settled + "; message done")
}

func s95() scenario {
	return scenario{
		id: "S95",
		script: `Whoever reads the stream asks for the run to stop after the turn, when he is shown the output of its tool; without a
stream, the tool does. No further request is made. The turn is in the session, and the reader was shown all of it, also if he is
slow, before he gets the error that says that the run was stopped. A run whose turns are used up ends in the same way. If the run
is stopped at once, the call that is at work is awaited: what it did is recorded. Each time the run can be resumed, and goes on
with the next turn.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/pull/4130",
			"https://github.com/openai/openai-agents-python/pull/2458",
			"https://github.com/openai/openai-agents-js/pull/1527",
		},
		variants: []variant{
			{name: "after the turn", play: func(w *world) { s95Play(w, request{StopAt: "c1"}, "stopped after the turn") }},
			{name: "after the turn, slow reader", play: func(w *world) { s95Play(w, request{StopAt: "c1", SlowReader: true}, "stopped after the turn") }},
			{name: "turns used up", play: func(w *world) { s95Play(w, request{MaxTurns: 1}, "max turns") }},
			{name: "turns used up, slow reader", play: func(w *world) { s95Play(w, request{MaxTurns: 1, SlowReader: true}, "max turns") }},
			{name: "at once", play: s95AtOnce},
		},
	}
}

const s95Turn = "user go; call c1 t; call c2 t; output c1 o; output c2 o"

func s95Model(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o"}}
	w.model(turn("user go", call("c1", "t"), call("c2", "t")), turn(s95Turn, says("done")))
}

func s95Play(w *world, r request, err string) {
	w.Helper()
	s95Model(w)
	r.Input = []item.Item{item.UserText("go")}
	w.do(r)
	w.fails(err)
	if w.cell.mode(0) == stream {
		shown := slices.Sorted(slices.Values(w.last.shown)) // tools end in any order
		if want := []string{"tool_called c1", "tool_called c2", "tool_output c1", "tool_output c2"}; !slices.Equal(shown, want) {
			w.Errorf("before the error the reader was shown %q, want %q", shown, want)
		}
	}
	w.effects("t c1", "t c2")
	w.requests(1)
	w.holds(s95Turn)
	w.do(request{MaxTurns: 2})
	w.ends("done")
	w.effects("t c1", "t c2")
	w.holds(s95Turn + "; message done")
}

func s95AtOnce(w *world) {
	s95Model(w)
	var both sync.WaitGroup
	both.Add(2)
	stop := func(context.Context) error { // and does its work all the same
		both.Done()
		both.Wait()
		w.stop()
		return nil
	}
	w.do(request{Input: []item.Item{item.UserText("go")}, Before: map[string]func(context.Context) error{"c1": stop, "c2": stop}})
	w.fails("stopped")
	w.effects("t c1", "t c2")
	w.requests(1)
	w.resume()
	w.ends("done")
	w.effects("t c1", "t c2")
	w.holds(s95Turn + "; message done")
}

func s97() scenario {
	return scenario{
		id: "S97",
		script: `A run may take three turns. It waits for an approval in the first and in the second, and each time it goes on elsewhere:
going on with a turn costs none, and after the third the bound is reached, as often as it is resumed, until it is resumed with a
higher one. A request that fails costs no turn either: with a bound of one the resumed run still gets its answer. Turns of an agent
that is called as a tool are its own: they count against its own bound, in each call anew, and not against that of the caller,
who is told if it is reached.`,
		sources: []string{
			"https://github.com/openai/openai-agents-js/pull/1606",
			"https://github.com/openai/openai-agents-python/pull/4412",
		},
		variants: []variant{
			{name: "pauses", play: s97Pauses},
			{name: "a request fails", play: s97Fails},
			{name: "nested agent", play: s97Nested},
			{name: "nested agent runs out", play: s97RunsOut},
		},
	}
}

func s97Pauses(w *world) {
	w.setup.Tools = []tool{{Name: "g", Output: "ok", Gated: true}, {Name: "t", Output: "o"}}
	list := "user go"
	var steps []pawltest.ResponsesStep
	for n, name := range []string{"g", "g", "t"} {
		id := fmt.Sprint("c", n+1)
		steps = append(steps, turn(list, call(id, name)))
		list += "; call " + id + " " + name + "; output " + id + " " + map[string]string{"g": "ok", "t": "o"}[name]
	}
	w.model(append(steps, turn(list, says("done")))...)
	w.do(request{Input: []item.Item{item.UserText("go")}, MaxTurns: 3})
	w.waits("c1")
	w.resume(approve("c1"))
	w.waits("c2")
	w.resume(approve("c2"))
	for range 2 {
		w.fails("max turns")
		w.requests(3)
		w.holds(list)
		w.resume()
	}
	w.fails("max turns")
	w.do(request{MaxTurns: 4})
	w.ends("done")
	w.requests(4)
	w.effects("g c1", "g c2", "t c3")
}

// refuses is a step whose request is answered with an error.
func refuses(s pawltest.ResponsesStep, err *pawltest.ResponsesError) pawltest.ResponsesStep {
	s.Reply = pawltest.ResponsesReply{Refuse: err}
	return s
}

func s97Fails(w *world) {
	w.model(refuses(turn("user go"), &pawltest.ResponsesError{Status: 400, Message: "not now"}), turn("user go", says("done")))
	w.broken = 1
	w.do(request{Input: []item.Item{item.UserText("go")}, MaxTurns: 1})
	w.fails("model 400")
	w.holds("user go")
	w.resume()
	w.ends("done")
	w.requests(2)
	if w.last.Turns != 1 {
		w.Errorf("%d turns, want 1", w.last.Turns)
	}
	w.holds("user go; message done")
}

func s97Nested(w *world) {
	w.setup.Team = []member{{Name: "Desk", Runs: []int{1}}, {Name: "Clerk", Tools: []tool{{Name: "t", Output: "o"}}, MaxTurns: 3}}
	var steps []pawltest.ResponsesStep
	desk := "user go"
	for n, task := range []string{"one", "two"} {
		m, a, b := fmt.Sprint("m", n+1), fmt.Sprint("a", n+1), fmt.Sprint("b", n+1)
		clerk := "user " + task
		steps = append(steps, turn(desk, asks(m, "clerk", task)), turn(clerk, call(a, "t")))
		clerk += "; call " + a + " t; output " + a + " o"
		steps = append(steps, turn(clerk, call(b, "t")), turn(clerk+"; call "+b+" t; output "+b+" o", says(task)))
		desk += "; call " + m + " clerk; output " + m + " " + task
	}
	w.model(append(steps, turn(desk, says("done")))...)
	w.do(request{Input: []item.Item{item.UserText("go")}, MaxTurns: 3})
	w.ends("done")
	w.requests(9)
	w.effects("t a1", "t a2", "t b1", "t b2")
	w.holds(desk + "; message done")
}

func s97RunsOut(w *world) {
	w.setup.Team = []member{{Name: "Desk", Runs: []int{1}}, {Name: "Clerk", Tools: []tool{{Name: "t", Output: "o"}}, MaxTurns: 2}}
	const clerk = "user it; call a1 t; output a1 o"
	const desk = "user go; call m1 clerk; output m1 The agent failed: it had no final output after 2 turns."
	w.model(
		turn("user go", asks("m1", "clerk", "it")),
		turn("user it", call("a1", "t")),
		turn(clerk, call("a2", "t")),
		turn(desk, says("done")),
	)
	w.do(request{Input: []item.Item{item.UserText("go")}, MaxTurns: 2})
	w.ends("done")
	w.requests(4)
	w.effects("t a1", "t a2")
	w.holds(desk + "; message done")
}

func s98() scenario {
	return scenario{
		id: "S98",
		script: `A model's server reports what each response used, or never, or fails two times before it answers, or breaks off in the
middle. Each request counts once. The tokens are the sum of what was reported; where nothing was reported it is unknown, and said to
be, and not nothing. It is the same whether the run is streamed or not, also in the state of an error, and when such a run has been
resumed nothing is counted again. What an agent uses that is called as a tool is counted once too.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/1973",
			"https://github.com/openai/openai-agents-python/issues/594",
			"https://github.com/MitulShah1/openai-agents-go/issues/93",
		},
		variants: []variant{
			{name: "never", play: s98Never},
			{name: "retries", play: s98Retries},
			{name: "breaks off", play: s98BreaksOff},
			{name: "nested agent", play: s98Nested},
		},
	}
}

// using is a step whose response reports what it used.
func using(s pawltest.ResponsesStep, input, output int64) pawltest.ResponsesStep {
	s.Reply.Usage = &pawltest.ResponsesUsage{InputTokens: input, OutputTokens: output}
	return s
}

// used checks what the run has used according to the last call.
func (w *world) used(requests, unreported, input, output int64) {
	w.Helper()
	got := w.last.Usage
	if got.Requests != requests || got.Unreported != unreported || got.Input != input || got.Output != output {
		w.Errorf("used: %+v, want %d requests, %d unreported, %d in, %d out", got, requests, unreported, input, output)
	}
}

func s98Never(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o", Gated: true}}
	first := turn("user go", call("c1", "t"))
	first.Reply.NoUsage = true
	w.model(first, using(turn("user go; call c1 t; output c1 o", says("done")), 7, 3))
	w.start("go")
	w.waits("c1")
	w.used(1, 1, 0, 0)
	w.resume(approve("c1"))
	w.ends("done")
	w.used(2, 1, 7, 3)
}

func s98Retries(w *world) {
	w.setup.Team = []member{{Name: "Desk", Retries: 2}}
	fails := refuses(turn("user go"), pawltest.ServerError())
	w.model(fails, fails, using(turn("user go", says("done")), 7, 3))
	w.broken = 2
	w.start("go")
	w.ends("done")
	w.used(3, 2, 7, 3)
}

func s98BreaksOff(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o"}}
	const settled = "user go; call c1 t; output c1 o"
	cut := turn(settled, says("a long answer"))
	cut.Fault = &pawltest.ResponsesFault{Point: pawltest.FaultMidStream, Events: 4, Cut: true}
	w.model(using(turn("user go", call("c1", "t")), 10, 5), cut, using(turn(settled, says("done")), 7, 3))
	w.broken = 1
	w.start("go")
	w.fails("cut")
	w.used(2, 1, 10, 5)
	w.resume()
	w.ends("done")
	w.used(3, 1, 17, 8)
	w.effects("t c1")
}

func s98Nested(w *world) {
	w.setup.Team = bank()
	w.model(
		using(turn("user pay", asks("m1", "bank", "move 5")), 10, 5),
		using(turn("user move 5", call("n1", "move")), 4, 2),
		using(turn("user move 5; call n1 move; output n1 moved", says("well")), 4, 2),
		using(turn("user pay; call m1 bank; output m1 well", says("done")), 7, 3),
	)
	w.start("pay")
	w.waits("n1")
	w.usage(2, 14, 7)
	w.resume(approve("n1"))
	w.ends("done")
	w.usage(4, 25, 12)
	w.effects("move n1")
}
