package scenarios

import (
	"context"
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Guardrails beside approvals, tools and session writes.

// asked checks what a guardrail was asked about so far.
func (w *world) asked(name string, want ...string) {
	w.Helper()
	log, err := w.setup.guardLog().Effects()
	if err != nil {
		w.Fatal(err)
	}
	got := []string{}
	for _, e := range log {
		if e.Tool == name {
			got = append(got, e.Arguments)
		}
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		w.Fatalf("%s was asked (-want +got):\n%s", name, diff)
	}
}

// till is a desk whose guardrail is asked about the final output.
func till(use toolUse, trips string) []member {
	return []member{{Name: "Desk", Tools: []tool{charge, {Name: "other", Output: "o"}}, ToolUse: use,
		Guards: []guard{{Name: "G", On: pawl.StageOutput, Trips: trips}}}}
}

func s05() scenario {
	return scenario{
		id: "S05",
		script: `The output of a tool is the final output, and a guardrail is asked about it. The tool needs approval, is approved and
runs, the guardrail lets its output pass, and then the write to the session fails. The caller gets that error and resumes. The write is
made up for and the run ends with the same output: the model is not asked for another one, the guardrail is not asked again, and the
tool has run once.`,
		sources: []string{"https://github.com/openai/openai-agents-python/issues/4690"},
		variants: []variant{
			{name: "append fails", mixed: true, play: func(w *world) { s05Play(w, pawltest.SessionFault{}) }},
			{name: "acknowledgement lost", play: func(w *world) { s05Play(w, pawltest.SessionFault{Stored: pawltest.AllItems}) }},
		},
	}
}

func s05Play(w *world, fault pawltest.SessionFault) {
	w.Helper()
	w.setup.Team, w.setup.Session = till(firstTool, ""), plain
	w.model(turn("user pay", call("c1", "charge")))
	w.start("pay")
	w.waits("c1")
	w.asked("G")
	w.do(request{Decide: []decision{approve("c1")}, SessionFaults: map[int]pawltest.SessionFault{1: fault}})
	w.fails("session fault")
	w.asked("G", "receipt-5")
	w.resume()
	w.ends("receipt-5")
	w.asked("G", "receipt-5")
	w.effects("charge c1")
	w.requests(1)
	w.holds("user pay; call c1 charge; output c1 receipt-5")
}

func s07() scenario {
	return scenario{
		id: "S07",
		script: `An agent has a guardrail on its output, and stops at a tool which is not the one that is called. The call waits for an
approval, is approved and runs, and the run goes on to its answer. What could have been the final output was held back from the session
until it was clear that it is not; then all of it is written, the call before its output. Another run on the session is sent both.`,
		sources: []string{"https://github.com/openai/openai-agents-python/issues/4827"},
		variants: []variant{{name: "stops at another tool", play: func(w *world) { s07Play(w, lastTool) }},
			{name: "stops at none", play: func(w *world) { s07Play(w, askAgain) }}},
	}
}

func s07Play(w *world, use toolUse) {
	w.Helper()
	w.setup.Team = till(use, "")
	const settled = "user pay; call c1 charge; output c1 receipt-5"
	w.model(
		turn("user pay", call("c1", "charge")),
		turn(settled, says("ok")),
		turn(settled+"; message ok; user next", says("well")),
	)
	w.start("pay")
	w.waits("c1")
	w.holds("user pay")
	w.resume(approve("c1"))
	w.ends("ok")
	w.asked("G", "ok")
	w.holds(settled + "; message ok")
	w.anotherRun("S07 next")
	w.start("next")
	w.ends("well")
	w.effects("charge c1")
	w.holds(settled + "; message ok; user next; message well")
}

func s08() scenario {
	return scenario{
		id: "S08",
		script: `An approved tool has run and its output would be the final output, or the model has answered after it, and a guardrail
trips on that. The caller gets a typed error, as often as he resumes. What the tool did is done, so the session has the call and its
output behind it, blocking and as a stream: with a text in the place of what was withheld; and no message that was. The next run on the
session can use it.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/4125",
			"https://github.com/openai/openai-agents-python/pull/4126",
		},
		variants: []variant{
			{name: "the output of the tool", play: func(w *world) {
				s08Play(w, firstTool, "receipt", "user pay; call c1 charge; output c1 The output of this tool call was withheld by a guardrail.")
			}},
			{name: "a message", play: func(w *world) {
				s08Play(w, askAgain, "secret", "user pay; call c1 charge; output c1 receipt-5", turn("user pay; call c1 charge; output c1 receipt-5", says("a secret")))
			}},
		},
	}
}

func s08Play(w *world, use toolUse, trips, kept string, more ...pawltest.ResponsesStep) {
	w.Helper()
	w.setup.Team, w.withheld = till(use, trips), true
	w.model(append(append([]pawltest.ResponsesStep{turn("user pay", call("c1", "charge"))}, more...), turn(kept+"; user next", says("well")))...)
	w.start("pay")
	w.waits("c1")
	w.resume(approve("c1"))
	for range 2 {
		w.fails("tripped")
		w.effects("charge c1")
		w.requests(1 + len(more))
		w.holds(kept)
		w.resume()
	}
	w.fails("tripped")
	w.anotherRun("S08 next")
	w.start("next")
	w.ends("well")
	w.effects("charge c1")
	w.holds(kept + "; user next; message well")
}

func s46() scenario {
	return scenario{
		id: "S46",
		script: `A guardrail on the input is asked beside the first turn. It trips while the model is still answering: the request is
stopped, no tool runs and no other request is made. Or it trips when the model has answered with two calls: the one that only reads was
started and is awaited, the one that acts was not started and never is. A guardrail that blocks trips before the model is asked at all.
One that gives no verdict, because it fails, is asked again when the run is resumed; what acts waits until then. And if it lets pass,
everything runs. After a trip the session has the user's message, and calls only together with their outputs.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/991",
			"https://github.com/openai/openai-agents-python/pull/2688",
		},
		variants: []variant{
			{name: "while the model answers", play: s46Answering},
			{name: "while a tool runs", play: s46Running},
			{name: "before the model", play: s46Blocking},
			{name: "no verdict", play: s46NoVerdict},
			{name: "passes", play: s46Passes},
		},
	}
}

func gate(trips string, blocking bool) []member {
	return []member{{Name: "Desk", Tools: []tool{{Name: "look", Output: "seen", Class: pawl.ReadOnly}, {Name: "act", Output: "done"}},
		Guards: []guard{{Name: "G", On: pawl.StageInput, Blocking: blocking, Trips: trips}}}}
}

func s46Answering(w *world) {
	w.setup.Team, w.withheld = gate("go", false), true
	asked := make(chan struct{})
	silent := turn("user go", call("c1", "act"))
	silent.Fault = &pawltest.ResponsesFault{Hold: make(chan struct{})}
	reads := silent.Check
	silent.Check = func(r *pawltest.ResponsesRequest) error { close(asked); return reads(r) }
	w.model(silent)
	w.broken = 1
	w.do(request{Input: []item.Item{item.UserText("go")}, Before: map[string]func(context.Context) error{
		"G": func(context.Context) error { <-asked; return nil }}})
	w.fails("tripped")
	w.resume()
	w.fails("tripped")
	w.effects()
	w.requests(1)
	w.asked("G", "user go")
	w.holds("user go")
}

func s46Running(w *world) {
	w.setup.Team, w.withheld = gate("go", false), true
	w.model(turn("user go", says("I will look."), call("c1", "look"), call("c2", "act")))
	running := make(chan struct{})
	w.do(request{Input: []item.Item{item.UserText("go")}, Before: map[string]func(context.Context) error{
		"G":  func(context.Context) error { <-running; return nil },
		"c1": func(ctx context.Context) error { close(running); <-ctx.Done(); return nil }}})
	w.fails("tripped")
	w.resume()
	w.fails("tripped")
	w.effects("look c1")
	w.requests(1)
	w.holds("user go; call c1 look; call c2 act; output c1 seen; output c2 The tool was not executed: the run was cancelled.")
}

func s46Blocking(w *world) {
	w.setup.Team, w.withheld = gate("go", true), true
	w.model()
	w.start("go")
	w.fails("tripped")
	w.resume()
	w.fails("tripped")
	w.effects()
	w.requests(0)
	w.asked("G", "user go")
	w.holds("user go")
}

const s46Settled = "user go; call c1 look; call c2 act; output c1 seen; output c2 done"

func s46NoVerdict(w *world) {
	w.setup.Team = gate("never", false)
	w.model(turn("user go", call("c1", "look"), call("c2", "act")), turn(s46Settled, says("well")))
	running := make(chan struct{})
	w.do(request{Input: []item.Item{item.UserText("go")}, Before: map[string]func(context.Context) error{
		"G":  func(context.Context) error { <-running; return errors.New("no line") },
		"c1": func(context.Context) error { close(running); return nil }}})
	w.fails("guardrail")
	w.effects("look c1")
	w.requests(1)
	w.holds("user go")
	w.resume()
	w.ends("well")
	w.asked("G", "user go", "user go")
	w.effects("look c1", "act c2")
	w.holds(s46Settled + "; message well")
}

func s46Passes(w *world) {
	w.setup.Team = gate("never", false)
	w.model(turn("user go", call("c1", "look"), call("c2", "act")), turn(s46Settled, says("well")))
	w.start("go")
	w.ends("well")
	w.asked("G", "user go")
	w.effects("look c1", "act c2")
	w.holds(s46Settled + "; message well")
}
