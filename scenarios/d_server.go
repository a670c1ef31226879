package scenarios

import (
	"fmt"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Group D: the server holds the conversation.

func serverManaged() []scenario { return []scenario{s58(), s59(), s61(), s62(), s64(), s65()} }

// pointer is how a run says what it continues.
type pointer string

const (
	onConversation pointer = "conversation"
	onPrevious     pointer = "previous response"
	onAuto         pointer = "auto"
)

// managed is the request of a new run on something the server holds. A previous response is made by the first step of the
// script, which answers "user earlier".
func (w *world) managed(p pointer, text string) request {
	w.Helper()
	r := request{Input: []item.Item{item.UserText(text)}}
	switch p {
	case onConversation:
		r.Conversation = w.conversation()
	case onPrevious:
		r.Previous = w.earlierResponse()
	case onAuto:
		r.Auto = true
	}
	return r
}

// script puts the step of the earlier response before the others if the pointer needs one.
func (p pointer) script(steps ...pawltest.ResponsesStep) []pawltest.ResponsesStep {
	if p == onPrevious {
		return append([]pawltest.ResponsesStep{turn("user earlier", says("hello"))}, steps...)
	}
	return steps
}

func s58() scenario {
	s := scenario{
		id: "S58",
		script: `The server holds the conversation, or the chain of responses, and three responses follow each other: reasoning
and a call, reasoning and a call, a message. Every request carries what the server does not have yet, which is the user's
message and then one output a turn; never an item of the server's own, which it would refuse as a duplicate. That stays so
if the run stops between any two turns, because its turns are used up, and is taken elsewhere and resumed.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/1789",
			"https://github.com/openai/openai-agents-js/issues/425",
		},
	}
	for _, p := range []pointer{onConversation, onPrevious, onAuto} {
		s.variants = append(s.variants,
			variant{name: string(p) + ", in one go", play: func(w *world) { s58Play(w, p, 0) }},
			variant{name: string(p) + ", turn by turn", play: func(w *world) { s58Play(w, p, 1) }})
	}
	return s
}

func s58Play(w *world, p pointer, turns int) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{{Name: "t", Output: "o"}}, noSession
	w.model(p.script(
		turn("user go", thinks("rs_1"), call("c1", "t")),
		turn("output c1 o", thinks("rs_2"), call("c2", "t")),
		turn("output c2 o", says("done")),
	)...)
	r := w.managed(p, "go")
	r.MaxTurns = turns
	w.do(r)
	for n := 2; turns > 0 && n <= 3; n++ {
		w.fails("max turns")
		w.requests(n - 1)
		w.do(request{MaxTurns: n})
	}
	w.ends("done")
	w.requests(3)
	w.effects("t c1", "t c2")
}

// manyTurns is how long the runs of S59 are. It has to be a multiple of four.
var manyTurns = 80

func s59() scenario {
	s := scenario{
		id: "S59",
		script: `Many turns on what the server holds, a thousand in a proof, each with a call whose output is equal, to the byte, to all outputs
before. Every output is sent, once, with the call it belongs to: what was delivered is known by the place of an item in the
run, not by its address in memory and not by its content. The run stops three times on the way, because its turns are used
up, and is taken elsewhere.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/3620",
			"https://github.com/openai/openai-agents-python/issues/2798",
		},
	}
	for _, p := range []pointer{onConversation, onPrevious} {
		s.variants = append(s.variants, variant{name: string(p), play: func(w *world) { s59Play(w, p) }})
	}
	return s
}

func s59Play(w *world, p pointer) {
	w.Helper()
	turns := manyTurns
	leg := turns / 4
	w.setup.Tools, w.setup.Session = []tool{{Name: "t", Output: "the same"}}, noSession
	script := []pawltest.ResponsesStep{turn("user go", call("c1", "t"))}
	var effects []string
	for n := 1; n < turns; n++ {
		answer := call(fmt.Sprint("c", n+1), "t")
		if n == turns-1 {
			answer = says("done")
		}
		script = append(script, turn(fmt.Sprintf("output c%d the same", n), answer))
		effects = append(effects, fmt.Sprint("t c", n))
	}
	w.model(p.script(script...)...)
	r := w.managed(p, "go")
	r.MaxTurns = leg
	w.do(r)
	for n := 2 * leg; n <= turns; n += leg {
		w.fails("max turns")
		w.requests(n - leg)
		w.do(request{MaxTurns: n})
	}
	w.ends("done")
	w.requests(turns)
	w.effects(effects...)
}
