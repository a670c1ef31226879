package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Responses without ids, and items that a server makes for itself.

func s64() scenario {
	s := scenario{
		id: "S64",
		script: `A run continues a chain of responses, and every second response has no id, as some compatible servers do. Each calls a
tool that needs approval, so that the run is taken elsewhere after each of them. The next request names the last response that had an id,
and carries what the chain lacks from there on: the items of the response without id too. If no response has an id, a request carries
everything.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/pull/3245",
			"https://github.com/openai/openai-agents-js/pull/1281",
		},
	}
	for _, p := range []pointer{onPrevious, onAuto} {
		s.variants = append(s.variants,
			variant{name: string(p) + ", every second", play: func(w *world) { s64Play(w, p, func(n int) bool { return n%2 == 1 }) }},
			variant{name: string(p) + ", none", play: func(w *world) { s64Play(w, p, func(int) bool { return false }) }})
	}
	return s
}

// s64Play plays four turns; named says which responses have an id.
func s64Play(w *world, p pointer, named func(n int) bool) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{{Name: "t", Output: "o", Gated: true}}, noSession
	lacks := "user go"
	var steps []pawltest.ResponsesStep
	for n := 1; n <= 4; n++ {
		id := fmt.Sprint("c", n)
		s := turn(lacks, call(id, "t"))
		if s.Reply.NoID = !named(n); s.Reply.NoID {
			w.broken++
		}
		steps = append(steps, s)
		if lacks += "; call " + id + " t"; named(n) {
			lacks = ""
		}
		lacks = strings.TrimPrefix(lacks+"; output "+id+" o", "; ")
	}
	w.model(p.script(append(steps, turn(lacks, says("done")))...)...)
	w.do(w.managed(p, "go"))
	var effects []string
	for n := 1; n <= 4; n++ {
		id := fmt.Sprint("c", n)
		w.waits(id)
		w.resume(approve(id))
		effects = append(effects, "t "+id)
	}
	w.ends("done")
	w.effects(effects...)
	w.requests(5)
}

func s65() scenario {
	return scenario{
		id: "S65",
		script: `A response has items of tools that the server runs itself, with members of their own, and one of a type that nobody knows
yet, between a message and a call. They are stored in the session, shown to the caller and sent again byte for byte, in this run and in
the next one on the session: members, their order and the writing of numbers included. Nothing is taken away, and a type that is not
known stops nothing.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/3267",
			"https://github.com/nlpodyssey/openai-agents-go/pull/34",
		},
		variants: []variant{
			{name: "session of the store", play: func(w *world) { s65Play(w, inStore) }},
			{name: "plain session", play: func(w *world) { s65Play(w, plain) }},
		},
	}
}

func s65Play(w *world, kind sessionKind) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{{Name: "t", Output: "o", Gated: true}}, kind
	var hosted []item.Item
	for _, raw := range []string{
		`{"id":"fs_1","type":"file_search_call","queries":["a"],"status":"completed","results":null}`,
		`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"b","n":1.50}}`,
		`{"type":"mcp_list_tools","id":"mcpl_1","server_label":"s","tools":[]}`,
		`{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk="}`,
		`{"type":"future_call","id":"x_1","zz":1e2,"aa":{"b":[1,2.0]}}`,
	} {
		hosted = append(hosted, item.FromTrusted(raw))
	}
	const types = "file_search_call; web_search_call; mcp_list_tools; image_generation_call; future_call"
	const first = "user go; " + types + "; call c1 t"
	w.model(
		turn("user go", append(slices.Clone(hosted), call("c1", "t"))...),
		turn(first+"; output c1 o", says("done")),
		turn(first+"; output c1 o; message done; user next", says("well")),
	)
	w.start("go")
	w.waits("c1")
	w.resume(approve("c1"))
	w.ends("done")
	w.keeps(hosted)
	w.anotherRun("S65 next")
	w.start("next")
	w.ends("well")
	w.keeps(hosted)
	w.effects("t c1")
	w.holds(first + "; output c1 o; message done; user next; message well")
}

// keeps checks that items are, byte for byte, in the session, in the last request and in the replay.
func (w *world) keeps(items []item.Item) {
	w.Helper()
	sent := w.sent()
	for _, it := range items {
		raw := it.Raw()
		if !slices.ContainsFunc(w.rows(sessionID), func(row json.RawMessage) bool { return string(row) == raw }) {
			w.Errorf("the session does not have %s", raw)
		}
		if !strings.Contains(string(sent[len(sent)-1].Body), raw) {
			w.Errorf("the last request does not have %s", raw)
		}
		if !slices.ContainsFunc(w.last.Replay, func(it item.Item) bool { return it.Raw() == raw }) {
			w.Errorf("the replay does not have %s", raw)
		}
	}
}
