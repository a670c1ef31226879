package scenarios

import (
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Handoffs beside approvals, and where the server has the conversation.

func s04() scenario {
	return scenario{
		id: "S04",
		script: `One response calls a tool that needs approval and hands the conversation over. The call is approved and runs, the
handoff takes place, and then the write of both to the session fails. The caller gets that very error. He resumes, and the write
is made up for: the tool has run once, the handoff was told of once, the session has both calls and then both outputs, and the
agent that took over answers. So it is if only the acknowledgement of the write was lost, and if the call is rejected the handoff takes place all the same.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/issues/4685",
			"https://github.com/openai/openai-agents-python/pull/4725",
		},
		variants: []variant{
			{name: "session append fails", mixed: true, play: func(w *world) { s04Play(w, pawltest.SessionFault{}) }},
			{name: "acknowledgement lost", play: func(w *world) { s04Play(w, pawltest.SessionFault{Stored: pawltest.AllItems}) }},
			{name: "rejected", play: s04Rejected},
		},
	}
}

// counter is a desk that charges and hands over.
func counter() []member {
	return []member{{Name: "Desk", Tools: []tool{charge}, Transfers: []transfer{{To: 1}}}, {Name: "Billing"}}
}

const billed = `user pay; call c1 charge; call h1 transfer_to_billing; output c1 %s; output h1 {"assistant":"Billing"}`

func s04Start(w *world, output string) (settled string) {
	w.Helper()
	w.setup.Team, w.setup.Session = counter(), plain
	settled = fmt.Sprintf(billed, output)
	w.model(
		turn("user pay", call("c1", "charge"), call("h1", "transfer_to_billing")),
		turn(settled, says("ok")),
	)
	w.start("pay")
	w.waits("c1")
	w.hands("Desk")
	w.effects()
	return settled
}

func s04Play(w *world, fault pawltest.SessionFault) {
	w.Helper()
	settled := s04Start(w, "receipt-5")
	w.do(request{Decide: []decision{approve("c1")}, SessionFaults: map[int]pawltest.SessionFault{1: fault}})
	w.fails("session fault")
	w.hands("Billing")
	w.requests(1)
	w.effects("charge c1", "transfer_to_billing h1")

	w.resume()
	w.ends("ok")
	w.hands("Billing")
	w.requests(2)
	w.effects("charge c1", "transfer_to_billing h1")
	w.holds(settled + "; message ok")
}

func s04Rejected(w *world) {
	settled := s04Start(w, "no")
	w.resume(reject("c1", "no"))
	w.ends("ok")
	w.hands("Billing")
	w.effects("transfer_to_billing h1")
	w.holds(settled + "; message ok")
}

func s61() scenario {
	s := scenario{
		id: "S61",
		script: `The server holds the conversation, and a handoff has a filter, its own or the run's: the filter could not take
anything away from what the server has. The run is refused before anything happens. So is the resume of a run that waits before
the handoff, if the filter is new; what was decided is not lost by that. Without the filter the handoff takes place, and the next
agent is sent what the server does not have: two outputs. (A nested history is such a filter.)`,
		sources: []string{"https://github.com/openai/openai-agents-python/pull/2747"},
	}
	for _, p := range []pointer{onConversation, onPrevious, onAuto} {
		s.variants = append(s.variants,
			variant{name: string(p) + ", filter of the handoff", play: func(w *world) { s61Refused(w, p, true) }, impossible: noDocument},
			variant{name: string(p) + ", filter of the run", play: func(w *world) { s61Refused(w, p, false) }, impossible: noDocument},
			variant{name: string(p) + ", filter on resume", play: func(w *world) { s61Resume(w, p) }})
	}
	return s
}

// filtered are the agents of a team with a filter on the first handoff.
func filtered(team []member) []member {
	team = slices.Clone(team)
	team[0].Transfers = []transfer{{To: 1, Filtered: true}}
	return team
}

func s61Refused(w *world, p pointer, own bool) {
	w.Helper()
	w.setup.Team, w.setup.Session = counter(), noSession
	if own {
		w.setup.Team = filtered(w.setup.Team)
	}
	w.model(p.script()...)
	r := w.managed(p, "pay")
	r.Filtered = !own
	w.do(r)
	w.fails("config")
	w.effects()
	w.requests(0)
}

func s61Resume(w *world, p pointer) {
	w.Helper()
	w.setup.Team, w.setup.Session = counter(), noSession
	w.model(p.script(
		turn("user pay", call("c1", "charge"), call("h1", "transfer_to_billing")),
		turn(`output c1 receipt-5; output h1 {"assistant":"Billing"}`, says("ok")),
	)...)
	w.do(w.managed(p, "pay"))
	w.waits("c1")
	w.do(request{Decide: []decision{approve("c1")}, Team: filtered(w.setup.Team)})
	w.fails("config")
	w.do(request{Filtered: true})
	w.fails("config")
	w.effects()
	w.requests(1)

	w.resume()
	w.ends("ok")
	w.hands("Billing")
	w.effects("charge c1", "transfer_to_billing h1")
	w.requests(2)
}

func s62() scenario {
	s := scenario{
		id: "S62",
		script: `One response hands the conversation over twice, to two agents, and calls a tool between. The tool runs, once, before
the conversation changes hands. The first handoff takes place; of the second nobody is told, and the model reads that it was
ignored: that output is sent to the server, which has the call, and stored in the session, like those of the other two.`,
		sources: []string{
			"https://github.com/openai/openai-agents-js/pull/1123",
			"https://github.com/openai/openai-agents-python/pull/344",
		},
		variants: []variant{{name: "session", play: func(w *world) {
			settled := "user go; call h1 transfer_to_b; call c1 t; call h2 transfer_to_c; " + s62Outputs
			s62Team(w, inStore)
			w.model(turn("user go", s62Calls()...), turn(settled, says("ok")))
			w.start("go")
			s62Ends(w)
			w.holds(settled + "; message ok")
		}}},
	}
	for _, p := range []pointer{onConversation, onPrevious, onAuto} {
		s.variants = append(s.variants, variant{name: string(p), play: func(w *world) {
			s62Team(w, noSession)
			w.model(p.script(turn("user go", s62Calls()...), turn(s62Outputs, says("ok")))...)
			w.do(w.managed(p, "go"))
			s62Ends(w)
			w.sentOnce("h1", "c1", "h2")
		}})
	}
	return s
}

const s62Outputs = `output h1 {"assistant":"B"}; output c1 o; output h2 Ignored: another call of the same response hands the conversation over.`

func s62Calls() []item.Item {
	return []item.Item{call("h1", "transfer_to_b"), call("c1", "t"), call("h2", "transfer_to_c")}
}

func s62Team(w *world, kind sessionKind) {
	w.setup.Session = kind
	w.setup.Team = []member{{Name: "A", Tools: []tool{{Name: "t", Output: "o"}}, Transfers: []transfer{{To: 1}, {To: 2}}}, {Name: "B"}, {Name: "C"}}
}

func s62Ends(w *world) {
	w.Helper()
	w.ends("ok")
	w.hands("B")
	w.effects("t c1", "transfer_to_b h1")
	if first := w.recorded()[0].Tool; first != "t" {
		w.Errorf("%s took effect first, want t", first)
	}
	w.requests(2)
}
