package scenarios

import (
	"slices"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// The rest of group A.

func s11() scenario {
	dies := func(c cell) string {
		if c.carrier == live {
			return "nothing is live after the process has gone"
		}
		return ""
	}
	return scenario{
		id: "S11",
		script: `One response calls a tool that needs approval and one that does not. The reader of the stream leaves, at the
pause or already when it is shown the output of the free call, and the process ends. Another process approves and resumes.
The free tool does not run again and its real result is in the next request: it was recorded before it was shown, and that
an output is not in the session does not mean that the call did not run.`,
		sources: []string{
			"https://github.com/google/adk-python/issues/6732",
			"https://github.com/google/adk-python/pull/6733",
		},
		variants: []variant{
			{name: "leaves at the pause", play: func(w *world) { s11Play(w, "paused") }, impossible: dies},
			{name: "leaves at the output", play: func(w *world) { s11Play(w, "c2") }, impossible: dies},
		},
	}
}

func s11Play(w *world, leaveAt string) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "del", Output: "deleted", Gated: true}, {Name: "send", Output: "sent as 7"}}
	w.model(
		turn("user tidy up", call("c1", "del"), call("c2", "send")),
		turn("user tidy up; call c1 del; call c2 send; output c1 deleted; output c2 sent as 7", says("ok")),
	)
	w.do(request{Input: []item.Item{item.UserText("tidy up")}, LeaveAt: leaveAt})
	w.waits("c1")
	w.effects("send c2")
	w.holds("user tidy up")

	w.resume(approve("c1"))
	w.ends("ok")
	w.effects("send c2", "del c1")
	w.holds("user tidy up; call c1 del; call c2 send; output c1 deleted; output c2 sent as 7; message ok")
}

func s13() scenario {
	return scenario{
		id: "S13",
		script: `A run continues what the server holds, and two responses in a row call a tool that needs approval, with equal
arguments. Each is decided after a round trip of the state. The request after the first decision carries the output of the
first call only, the one after the second only that of the second: an output the server has is never sent again.`,
		sources: []string{
			"https://github.com/openai/openai-agents-js/issues/1435",
			"https://github.com/openai/openai-agents-js/pull/1437",
		},
		variants: []variant{
			{name: "previous response, approve", play: func(w *world) { s13Play(w, true, approve, "pong", "ping c1", "ping c2") }},
			{name: "previous response, reject", play: func(w *world) { s13Play(w, true, refuse, "no") }},
			{name: "conversation, approve", play: func(w *world) { s13Play(w, false, approve, "pong", "ping c1", "ping c2") }},
			{name: "conversation, reject", play: func(w *world) { s13Play(w, false, refuse, "no") }},
		},
	}
}

func refuse(callID string) decision { return reject(callID, "no") }

func s13Play(w *world, previous bool, decide func(string) decision, output string, effects ...string) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{{Name: "ping", Output: "pong", Gated: true}}, noSession
	w.model(
		turn("user earlier", says("hello")),
		turn("user go", call("c1", "ping")),
		turn("output c1 "+output, call("c2", "ping")),
		turn("output c2 "+output, says("ok")),
	)
	r := request{Input: []item.Item{item.UserText("go")}}
	if earlier := w.earlierResponse(); previous {
		r.Previous = earlier
	} else {
		r.Conversation = w.conversation()
	}
	w.do(r)
	w.waits("c1")
	w.resume(decide("c1"))
	w.waits("c2")
	w.requests(2)
	w.resume(decide("c2"))
	w.ends("ok")
	w.effects(effects...)
}

func s14() scenario {
	s := scenario{
		id: "S14",
		script: `A run is started with a context value of the user's and waits for an approval. It is approved, and resumed with
no value, the same one, another one, or a struct. Each time the tool runs exactly once and sees the value of the resume:
what was decided is kept in the run and not in the user's value.`,
		sources: []string{"https://github.com/openai/openai-agents-python/issues/4244"},
	}
	for name, shown := range map[string]string{"none": "<nil>", "same": "alice", "new": "bob", "struct": "{7}"} {
		s.variants = append(s.variants, variant{name: name + " on resume", play: func(w *world) { s14Play(w, name, shown) }})
	}
	slices.SortFunc(s.variants, func(a, b variant) int { return len(a.name) - len(b.name) })
	return s
}

func s14Play(w *world, context, shown string) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "t", Output: "for", Gated: true, ShowContext: true}}
	w.model(
		turn("user go", call("c1", "t")),
		turn("user go; call c1 t; output c1 for "+shown, says("done")),
	)
	w.do(request{Input: []item.Item{item.UserText("go")}, Context: "start"})
	w.waits("c1")
	w.effects()
	w.do(request{Decide: []decision{approve("c1")}, Context: context})
	w.ends("done")
	w.effects("t c1")
}

func s19() scenario {
	return scenario{
		id: "S19",
		script: `One response calls a free tool and two that need approval. The run asks about the two, never about the free
one, which has run. Both are approved. The free one does not run again, and the model reads three outputs in the order of
its calls, whatever was ready first.`,
		sources: []string{"https://github.com/pydantic/pydantic-ai/issues/6486"},
		variants: []variant{{play: func(w *world) {
			w.setup.Tools = []tool{{Name: "load", Output: "l"}, {Name: "t1", Output: "one", Gated: true}, {Name: "t2", Output: "two", Gated: true}}
			w.model(
				turn("user go", call("c0", "load"), call("c1", "t1"), call("c2", "t2")),
				turn("user go; call c0 load; call c1 t1; call c2 t2; output c0 l; output c1 one; output c2 two", says("done")),
			)
			w.start("go")
			w.waits("c1", "c2")
			w.effects("load c0")
			w.holds("user go")
			w.resume(approve("c2"), approve("c1"))
			w.ends("done")
			w.effects("load c0", "t1 c1", "t2 c2")
		}}},
	}
}

func s20() scenario {
	return scenario{
		id: "S20",
		script: `A run begins with a history that ends in a call of a tool that needs approval, and nobody has decided anything.
The tool must not run: the place of a call in a list is no approval. As plain input such a history is refused, before
anything happens. In a session, which others write too, the call is answered with: the outcome is unknown; that answer is
written to the session as well, so that the session is whole again.`,
		sources: []string{"https://github.com/pydantic/pydantic-ai/pull/3355"},
		variants: []variant{
			{name: "input", play: s20Input, impossible: noDocument},
			{name: "session", play: s20Session},
		},
	}
}

var deletion = tool{Name: "del", Output: "deleted", Gated: true}

func s20Input(w *world) {
	w.setup.Tools, w.setup.Session = []tool{deletion}, noSession
	w.model()
	w.do(request{Input: []item.Item{item.UserText("delete it"), call("c1", "del")}})
	w.fails("config")
	w.effects()
	w.requests(0)
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		if _, err := runner.State(w.Context(), w.setup.Run); !is(pawl.ErrUnknownRun)(err) {
			w.Errorf("the refused run left something behind: %v", err)
		}
	})
}

func s20Session(w *world) {
	w.setup.Tools = []tool{deletion}
	const unknown = "output c1 The outcome of this tool call is unknown: it was found without an output. Do not assume that it failed."
	const whole = "user delete it; call c1 del; " + unknown + "; user and now?"
	w.model(turn(whole, says("I do not know.")))
	w.at(func(p *place) {
		if err := p.backend.Session(sessionID).Append(w.Context(), []item.Item{item.UserText("delete it"), call("c1", "del")}); err != nil {
			w.Fatal(err)
		}
	})
	w.start("and now?")
	w.ends("I do not know.")
	w.effects()
	w.holds(whole + "; message I do not know.")
}
