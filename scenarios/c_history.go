package scenarios

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// What a run makes of the history it finds.

// has writes to the session before the run, as somebody else would.
func (w *world) has(items ...item.Item) {
	w.Helper()
	w.at(func(p *place) {
		if err := p.backend.Session(sessionID).Append(w.Context(), items); err != nil {
			w.Fatal(err)
		}
	})
}

func s37() scenario {
	s := scenario{
		id: "S37",
		script: `The model is to read only the newest items of a session, however many that are. If the cut falls between a call and its
output, or into a response with two calls, the caller gets a typed error before the model is asked, and resumes with another cut;
what is sent is never half a pair. Without any history, or with all of it, the run goes on. What the session holds is not touched by
a cut. Where the server has the conversation, and so the call, its output alone is what is to be sent, and is.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/4322",
			"https://github.com/agno-agi/agno/issues/9372",
		},
	}
	for n, sound := range []bool{true, true, false, false, false, true, true} {
		s.variants = append(s.variants, variant{name: fmt.Sprint("newest ", n), play: func(w *world) { s37Play(w, n, sound) }})
	}
	s.variants = append(s.variants, variant{name: "output for the server's call", play: s37Server})
	return s
}

func s37Play(w *world, n int, sound bool) {
	w.Helper()
	held := []item.Item{item.UserText("go"), call("c1", "t"), call("c2", "t"), item.FunctionOutput("c1", "o"), item.FunctionOutput("c2", "o"), says("well")}
	list := split("user go; call c1 t; call c2 t; output c1 o; output c2 o; message well")
	cut := strings.Join(append(list[len(list)-n:len(list):len(list)], "user next"), "; ")
	if !sound {
		cut = "user next"
	}
	w.model(turn(cut, says("done")))
	w.cut = true
	w.has(held...)
	w.do(request{Input: []item.Item{item.UserText("next")}, Window: n + 1})
	if !sound {
		w.fails("filter")
		w.requests(0)
		w.holds(strings.Join(list, "; "))
		w.do(request{Window: 1})
	}
	w.ends("done")
	w.requests(1)
	w.holds(strings.Join(append(list, "user next", "message done"), "; "))
}

func s37Server(w *world) {
	w.setup.Session = noSession
	w.model(
		turn("user earlier", call("c9", "t")),
		turn("output c9 by hand; user next", says("done")),
	)
	r := request{Previous: w.earlierResponse()}
	r.Input = []item.Item{item.FunctionOutput("c9", "by hand"), item.UserText("next")}
	w.continued = []item.Item{call("c9", "t")}
	w.do(r)
	w.ends("done")
	w.requests(1)
}

const found = "The outcome of this tool call is unknown: it was found without an output. Do not assume that it failed."

func s38() scenario {
	return scenario{
		id: "S38",
		script: `A session that others write, too, holds a call without an output, behind the reasoning that led to it, or behind
reasoning that led to a message. Nothing is left out: the call is answered with that its outcome is unknown, so that reasoning, call
and output stay together, in the session, in the request and in what can be replayed. A history in which
nothing is wrong is sent as it is.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/pull/3207",
			"https://github.com/openai/openai-agents-js/pull/1280",
		},
		variants: []variant{
			{name: "reasoning and call", play: func(w *world) {
				s38Play(w, "reasoning rs_1; call c1 t; output c1 "+found, thinksAloud("rs_1"), call("c1", "t"))
			}},
			{name: "reasoning, message and call", play: func(w *world) {
				s38Play(w, "reasoning rs_1; message hm; call c1 t; output c1 "+found, thinksAloud("rs_1"), says("hm"), call("c1", "t"))
			}},
			{name: "answered", play: func(w *world) {
				s38Play(w, "reasoning rs_1; call c1 t; output c1 o", thinksAloud("rs_1"), call("c1", "t"), item.FunctionOutput("c1", "o"))
			}},
		},
	}
}

// thinksAloud is reasoning that another server can be sent.
func thinksAloud(id string) item.Item {
	return item.FromTrusted(`{"type":"reasoning","id":"` + id + `","summary":[],"encrypted_content":"x"}`)
}

func s38Play(w *world, held string, items ...item.Item) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "t", Output: "o"}}
	list := "user go; " + held + "; user next"
	w.model(turn(list, says("done")))
	w.has(append([]item.Item{item.UserText("go")}, items...)...)
	w.start("next")
	w.ends("done")
	w.effects()
	w.holds(list + "; message done")
}

func s40() scenario {
	return scenario{
		id: "S40",
		script: `A filter of the input says what is sent of a conversation twice: each item again behind all others, outputs with another
text. Of two of one identity the newest is sent, once, and in a place that makes sense: an output behind its call, the reasoning
still before the call that it led to, which is where the first of the two stood. The session has what really happened.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/pull/4147",
			"https://github.com/openai/openai-agents-js/pull/1569",
		},
		variants: []variant{{play: s40Play}},
	}
}

// repeatOutputs says everything twice.
func repeatOutputs(_ context.Context, in *pawl.ModelInput) error {
	for _, it := range in.Items {
		if h := it.Head(); item.IsOutput(h.Type) {
			it = item.FromTrusted(fmt.Sprintf(`{"type":"function_call_output","id":%q,"call_id":%q,"output":"corrected"}`, h.ID, h.CallID))
		}
		in.Items = append(in.Items, it)
	}
	return nil
}

func s40Play(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o", Gated: true}}
	output := item.FromTrusted(`{"type":"function_call_output","id":"fco_1","call_id":"c1","output":"o"}`)
	const held = "message hello; reasoning rs_1; call c1 t; output c1 o; user go"
	w.model(turn("reasoning rs_1; call c1 t; user go; message hello; output c1 corrected; user go", says("done")))
	w.has(item.MessageItem("msg_x", "hello"), thinksAloud("rs_1"), item.FunctionCallItem("fc_1", "c1", "t", `{"amount":5}`), output)
	w.cut = true
	w.do(request{Input: []item.Item{item.UserText("go")}, Repeats: true})
	w.ends("done")
	w.holds(held + "; message done")
}

func s44() scenario {
	return scenario{
		id: "S44",
		script: `A run with a tool is streamed, on a session. Then another one on the same session. The session has the user's message, the
call, its output and the answer; the second run's model reads all of them before the new message and so has no reason to call the
tool again. It is the same without a stream.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/2426",
			"https://github.com/openai/openai-agents-python/pull/2433",
		},
		variants: []variant{
			{name: "session of the store", play: func(w *world) { s44Play(w, inStore) }},
			{name: "plain session", play: func(w *world) { s44Play(w, plain) }},
		},
	}
}

func s44Play(w *world, kind sessionKind) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{{Name: "t", Output: "o"}}, kind
	const first = "user go; call c1 t; output c1 o"
	w.model(turn("user go", call("c1", "t")), turn(first, says("done")), turn(first+"; message done; user again", says("as before")))
	w.start("go")
	w.ends("done")
	w.holds(first + "; message done")
	w.anotherRun("S44 again")
	w.start("again")
	w.ends("as before")
	w.effects("t c1")
	w.holds(first + "; message done; user again; message as before")
}

func s49() scenario {
	s := scenario{
		id: "S49",
		script: `Something is wrong with a session before a run begins: an output whose call is not there, an output twice. The run is not
stopped by that, now nor later: the part that fits nowhere is not sent, and nothing else is missing from the request. The session is
not rewritten, and the next run can use it as well. As the input of a run such an output is refused, before anything happens.`,
		sources: []string{
			"https://github.com/google/adk-go/issues/760",
			"https://github.com/google/adk-python/issues/6582",
		},
	}
	pair := []item.Item{call("c1", "t"), item.FunctionOutput("c1", "o")}
	const whole = "user go; call c1 t; output c1 o"
	for _, v := range []struct {
		name, held, sent string
		items            []item.Item
	}{
		{"no call", "user go; output c9 stale", "user go", []item.Item{item.FunctionOutput("c9", "stale")}},
		{"output twice", whole + "; output c1 o", whole, append(pair[:2:2], pair[1])},
		{"output before its call", "user go; output c1 o; call c1 t; output c1 o", whole, append([]item.Item{pair[1]}, pair...)},
	} {
		s.variants = append(s.variants, variant{name: v.name, play: func(w *world) { s49Play(w, v.held, v.sent, v.items) }})
	}
	s.variants = append(s.variants, variant{name: "as input", play: s49Input, impossible: noDocument})
	return s
}

func s49Play(w *world, held, sent string, items []item.Item) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "t", Output: "o"}}
	w.model(turn(sent+"; user next", says("done")), turn(sent+"; user next; message done; user more", says("well")))
	w.cut, w.damaged = true, true
	w.has(append([]item.Item{item.UserText("go")}, items...)...)
	w.start("next")
	w.ends("done")
	w.holds(held + "; user next; message done")
	w.anotherRun("S49 again")
	w.start("more")
	w.ends("well")
	w.effects()
	w.holds(held + "; user next; message done; user more; message well")
}

func s49Input(w *world) {
	w.setup.Session = noSession
	w.model()
	w.do(request{Input: []item.Item{item.UserText("go"), item.FunctionOutput("c9", "stale")}})
	w.fails("config")
	w.requests(0)
}

// noDocument is the reason of variants that are refused before anything happens.
func noDocument(c cell) string {
	if c.carrier == byJSON || c.carrier == process {
		return "a refused input leaves no document"
	}
	return ""
}
