package scenarios

import (
	"testing"
)

// A response pairs a call that needs approval with one of a tool the agent does not have, and the server holds the
// conversation. The error output of the unknown call is made before the pause; if the resume took it for sent, the server
// would refuse the next request: it has a call without an output. Both outputs have to reach the server, exactly once, and
// the model has to be told which tool is missing.
// https://github.com/openai/openai-agents-python/issues/3004
// https://github.com/openai/openai-agents-js/issues/1435
func TestUnknownToolOutputIsSentOnce(t *testing.T) {
	s := scenario{id: "unknown-tool"}
	for _, p := range []pointer{onConversation, onPrevious, onAuto} {
		s.variants = append(s.variants,
			variant{name: string(p) + ", one approval", play: func(w *world) { unknownToolOnce(w, p) }},
			variant{name: string(p) + ", two approvals", play: func(w *world) { unknownToolStaged(w, p) }})
	}
	s.test(t)
}

const ghostNotFound = `Tool "ghost" not found. Available tools: charge, ship.`

func unknownToolOnce(w *world, p pointer) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{charge, {Name: "ship", Output: "shipped", Gated: true}}, noSession
	w.model(p.script(
		turn("user go", call("c1", "charge"), call("c2", "ghost")),
		turn("output c1 receipt-5; output c2 "+ghostNotFound, says("done")),
	)...)
	r := w.managed(p, "go")
	r.TellModel = true
	w.do(r)
	w.waits("c1")
	w.requests(1)
	w.resume(approve("c1"))
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.sentOnce("c1", "c2")
}

// The same response stays the current one over both resumes, and nothing is sent in between.
func unknownToolStaged(w *world, p pointer) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{charge, {Name: "ship", Output: "shipped", Gated: true}}, noSession
	w.model(p.script(
		turn("user go", call("c1", "charge"), call("c2", "ghost"), call("c3", "ship")),
		turn("output c1 receipt-5; output c2 "+ghostNotFound+"; output c3 shipped", says("done")),
	)...)
	r := w.managed(p, "go")
	r.TellModel = true
	w.do(r)
	w.waits("c1", "c3")
	w.resume(approve("c3"))
	w.waits("c1")
	w.effects("ship c3")
	w.requests(1)
	w.resume(approve("c1"))
	w.ends("done")
	w.effects("ship c3", "charge c1")
	w.requests(2)
	w.sentOnce("c1", "c2", "c3")
}
