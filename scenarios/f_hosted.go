package scenarios

import "slices"

func s77() scenario {
	return scenario{
		id: "S77",
		script: `The model's server talks to MCP servers by itself and asks before it calls a tool of one. Every call of a tool of
one server is approved, or rejected. Later calls of that tool are answered without asking. A tool of the same name on another
server is asked for, and so is a function of the agent's that is called like it; the decision for a function does not reach a
server's tool either. A request that does not say which server it is about can only be decided by itself. What the run was
asked and answered survives every way to carry it on. (Documents of other SDKs, in which a decision names a tool alone, are not
part of this yet.)`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/pull/4256",
			"https://github.com/openai/openai-agents-js/pull/1600",
		},
		variants: []variant{
			{name: "all of one server approved", play: func(w *world) { s77Servers(w, "yes m1", "yes m2", always(approve("m1"))) }},
			{name: "all of one server rejected", play: func(w *world) { s77Servers(w, "no m1 never", "no m2 never", always(reject("m1", "never"))) }},
			{name: "all of the server approved, a function", play: s77Function},
			{name: "all of the function approved, a server", play: s77Server},
			{name: "no label", play: s77Unlabelled},
		},
	}
}

func s77Servers(w *world, first, later string, d decision) {
	w.Helper()
	begin := "user go; may m1 A/lookup; " + first
	more := begin + "; may m2 A/lookup; may m3 B/lookup; " + later + "; no m3 not there"
	w.model(
		turn("user go", mayCall("m1", "A", "lookup")),
		turn(begin, mayCall("m2", "A", "lookup"), mayCall("m3", "B", "lookup")),
		turn(more, mayCall("m4", "B", "lookup")),
		turn(more+"; may m4 B/lookup; yes m4", says("done")),
	)
	w.start("go")
	w.waits("m1")
	w.resume(d)
	w.waits("m3")
	if got := w.last.Interruptions[0].Server; got != "B" {
		w.Errorf("the question is about server %q", got)
	}
	w.resume()
	w.waits("m3")
	w.requests(2)
	w.resume(reject("m3", "not there"))
	w.waits("m4")
	w.resume(approve("m4"))
	w.ends("done")
	w.requests(4)
	w.effects()
}

// looking is a function of the agent's that is called like a tool of a server.
var looking = tool{Name: "lookup", Output: "found", Gated: true}

func s77Function(w *world) {
	w.setup.Tools = []tool{looking}
	const begin = "user go; may m1 A/lookup; yes m1"
	w.model(
		turn("user go", mayCall("m1", "A", "lookup")),
		turn(begin, call("c1", "lookup"), mayCall("m2", "A", "lookup")),
		turn(begin+"; call c1 lookup; may m2 A/lookup; output c1 found; yes m2", says("done")),
	)
	w.start("go")
	w.waits("m1")
	w.resume(always(approve("m1")))
	w.waits("c1")
	w.effects()
	w.resume(approve("c1"))
	w.ends("done")
	w.effects("lookup c1")
}

func s77Server(w *world) {
	w.setup.Tools = []tool{looking}
	const begin = "user go; call c1 lookup; output c1 found"
	w.model(
		turn("user go", call("c1", "lookup")),
		turn(begin, call("c2", "lookup"), mayCall("m1", "A", "lookup")),
		turn(begin+"; call c2 lookup; may m1 A/lookup; output c2 found; no m1 not there", says("done")),
	)
	w.start("go")
	w.waits("c1")
	w.resume(always(approve("c1")))
	w.waits("m1")
	w.effects("lookup c1", "lookup c2")
	w.resume(reject("m1", "not there"))
	w.ends("done")
	w.effects("lookup c1", "lookup c2")
}

func s77Unlabelled(w *world) {
	const begin = "user go; may m1 /lookup; yes m1"
	w.model(
		turn("user go", mayCall("m1", "", "lookup")),
		turn(begin, mayCall("m2", "", "lookup")),
		turn(begin+"; may m2 /lookup; yes m2", says("done")),
	)
	w.start("go")
	w.waits("m1")
	w.undecidable(always(approve("m1")))
	w.undecidable(always(reject("m1", "")))
	w.resume()
	w.waits("m1")
	w.requests(1)
	w.resume(approve("m1"))
	w.waits("m2")
	w.resume(approve("m2"))
	w.ends("done")
}

// undecidable checks that a decision is none that can be taken.
func (w *world) undecidable(d decision) {
	w.Helper()
	i := slices.IndexFunc(w.last.Interruptions, func(a asked) bool { return a.CallID == d.CallID })
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		err := w.decideOn(runner, w.last.Interruptions[i].ID, d)
		if names := newOutcome(nil, err).Errors; !slices.Equal(names, []string{"decision"}) {
			w.Errorf("%s of %s: %v, want that it cannot be decided so", d.Verdict, d.CallID, err)
		}
	})
}
