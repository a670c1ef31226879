package scenarios

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Calls that are cut short, fail, or come again.

func s47() scenario {
	return scenario{
		id: "S47",
		script: `One response calls a slow tool and a fast one. The fast one is done when the driving is stopped, or the reader of the
stream leaves, or, with the slow one alone, the process dies. Somebody resumes the run, or writes something new on its session at
once. The next request is valid each time: the fast call has its real output, the slow one exactly one, behind the call, which says
that its outcome is unknown; and the session has them too, so that the next run finds nothing to mend.`,
		sources: []string{
			"https://github.com/charmbracelet/crush/issues/1860",
			"https://github.com/kagent-dev/kagent/issues/2277",
		},
		variants: []variant{
			{name: "stopped, resumed", play: s47Resumed},
			{name: "stopped, another run", play: func(w *world) { s47Another(w, "") }, impossible: knownToOthers},
			{name: "reader leaves, another run", play: func(w *world) { s47Another(w, "c2") }, impossible: knownToOthers},
			{name: "process dies, another run", play: s47Dies, impossible: gone},
		},
	}
}

var s47Settled = "user go; call c1 slow; call c2 fast; " + unknown("c1", "pawl_6a308962596a2571e0d3b7bac62ca240") + "; output c2 quick"

func s47Start(w *world, leaveAt string, then ...pawltest.ResponsesStep) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "slow", Output: "made"}, {Name: "fast", Output: "quick"}}
	w.model(append([]pawltest.ResponsesStep{turn("user go", call("c1", "slow"), call("c2", "fast"))}, then...)...)
	started, other := make(chan struct{}), make(chan struct{})
	w.do(request{Input: []item.Item{item.UserText("go")}, LeaveAt: leaveAt, Before: map[string]func(context.Context) error{
		"c1": func(ctx context.Context) error {
			close(started)
			<-other
			if leaveAt == "" {
				w.stop()
			}
			<-ctx.Done()
			return ctx.Err()
		},
		"c2": func(context.Context) error { <-started; close(other); return nil },
	}})
	if leaveAt == "" {
		w.fails("stopped")
	}
	w.effects("fast c2")
}

func s47Resumed(w *world) {
	s47Start(w, "", turn(s47Settled, says("done")), turn(s47Settled+"; message done; user hello again", says("well")))
	w.resume()
	w.ends("done")
	w.holds(s47Settled + "; message done")
	w.anotherRun("S47 again")
	w.start("hello again")
	w.ends("well")
	w.effects("fast c2")
	w.holds(s47Settled + "; message done; user hello again; message well")
}

func s47Another(w *world, leaveAt string) {
	w.Helper()
	whole := s47Settled + "; user hello again"
	s47Start(w, leaveAt, turn(whole, says("well")), turn(whole+"; message well; user and?", says("nothing")))
	for i, text := range []string{"hello again", "and?"} {
		w.anotherRun(text)
		w.start(text)
		w.ends([]string{"well", "nothing"}[i])
	}
	w.effects("fast c2")
	w.requests(3)
	w.holds(whole + "; message well; user and?; message nothing")
}

func s47Dies(w *world) {
	w.setup.Tools = []tool{{Name: "slow", Output: "made"}}
	whole := "user go; call c1 slow; " + unknown("c1", "pawl_6a308962596a2571e0d3b7bac62ca240") + "; user hello again"
	w.model(turn("user go", call("c1", "slow")), turn(whole, says("well")))
	w.dies(request{Input: []item.Item{item.UserText("go")}, Dies: afterEffect})
	w.anotherRun("S47 again")
	w.start("hello again")
	w.ends("well")
	w.effects("slow c1")
	w.requests(2)
	w.holds(whole + "; message well")
}

func s50() scenario {
	s := scenario{
		id: "S50",
		script: `One response calls three tools. The second returns an error, or panics, or says that its context has ended. The others
have done their work, and their outputs are not lost: the model reads three outputs in the order of the calls, of which the second
says what went wrong, and for a context that has ended that the outcome is unknown. The run goes on to its answer.`,
		sources: []string{
			"https://github.com/openai/openai-agents-python/pull/2584",
			"https://github.com/openai/openai-agents-python/pull/2580",
		},
	}
	for _, v := range []struct {
		name, output string
		bad          func(context.Context) error
	}{
		{"error", "output c2 The tool failed: no paper", func(context.Context) error { return errors.New("no paper") }},
		{"panic", "output c2 The tool failed: tool \"bad\" panicked: no paper", func(context.Context) error { panic("no paper") }},
		{"context", unknown("c2", "pawl_498fe3ae6b52d60e3b22c00fb1086a9d"), func(context.Context) error { return context.Canceled }},
	} {
		s.variants = append(s.variants, variant{name: v.name, play: func(w *world) { s50Play(w, v.output, v.bad) }})
	}
	return s
}

func s50Play(w *world, output string, bad func(context.Context) error) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "ok", Output: "o"}, {Name: "bad", Output: "never"}, {Name: "gated", Output: "g", Gated: true}}
	settled := "user go; call c1 ok; call c2 bad; call c3 ok; output c1 o; " + output + "; output c3 o"
	w.model(
		turn("user go", call("c1", "ok"), call("c2", "bad"), call("c3", "ok")),
		turn(settled, call("c4", "gated")),
		turn(settled+"; call c4 gated; output c4 g", says("final")),
	)
	w.do(request{Input: []item.Item{item.UserText("go")}, Before: map[string]func(context.Context) error{"c2": bad}})
	w.waits("c4")
	w.effects("ok c1", "ok c3")
	w.holds(settled)
	w.resume(approve("c4"))
	w.ends("final")
	w.effects("ok c1", "ok c3", "gated c4")
}

func s52() scenario {
	return scenario{
		id: "S52",
		script: `A server gives every call of a turn the same call id. The calls are different ones, of the same tool with other
arguments and of another tool. Each of them takes effect, has a key of its own and its own output, in the turn it belongs to; nothing
is taken for a repeat because its id was there before. The ids are stored as they came. A model whose adapter
vouches for its ids gets the caller a typed error instead, before the second call has done anything.`,
		sources: []string{
			"https://github.com/NousResearch/hermes-agent/issues/102629",
			"https://github.com/NousResearch/hermes-agent/issues/70724",
		},
		variants: []variant{{name: "ids come again", play: s52Play}, {name: "ids are vouched for", play: s52Vouched}},
	}
}

func s52Vouched(w *world) {
	w.setup.Tools = []tool{{Name: "write", Output: "written"}}
	w.model(
		turn("user go", callWith("X", "write", `{"amount":1}`)),
		turn("user go; call X write; output X written", callWith("X", "write", `{"amount":2}`)),
	)
	w.start("go")
	w.fails("call id")
	w.effects("write X")
	w.requests(2)
	w.holds("user go; call X write; output X written")
}

func s52Play(w *world) {
	w.setup.Tools, w.reused = []tool{{Name: "write", Output: "written"}, {Name: "read", Output: "text"}}, true
	w.setup.LooseIDs = true
	list := "user go"
	var steps []pawltest.ResponsesStep
	for _, c := range []item.Item{callWith("X", "write", `{"amount":1}`), callWith("X", "write", `{"amount":2}`), callWith("X", "read", `{"amount":1}`)} {
		steps = append(steps, turn(list, c))
		name := c.Head().Name
		list += "; call X " + name + "; output X " + map[string]string{"write": "written", "read": "text"}[name]
	}
	w.model(append(steps, turn(list, says("done")))...)
	w.start("go")
	w.ends("done")
	w.effects("write X", "write X", "read X")
	w.holds(list + "; message done")
}

func s53() scenario {
	const paid = "user go; call c1 pay; output c1 receipt-5"
	s := scenario{
		id: "S53",
		script: `A payment is approved and made. Then the model comes back with the id of that call: for another amount, for another
tool, or with the very same call. By the old approval nothing more is done. If the model's adapter vouches for its ids, the first two
get the caller a typed error, and the third is answered with the output that is recorded, without a question and without a second
payment. If it does not, each is a new call that nobody has decided: the run asks, and does what it is told then. The state goes
through its document each time.`,
		sources: []string{"https://github.com/openai/openai-agents-python/pull/4257"},
	}
	for name, second := range map[string]item.Item{"another amount": callWith("c1", "pay", `{"amount":5000}`), "another tool": call("c1", "delete"), "the same": call("c1", "pay")} {
		last := turn(paid+"; call c1 "+second.Head().Name+"; output c1 no", says("done"))
		s.variants = append(s.variants, variant{name: name + ", ids come again", play: func(w *world) {
			w.setup.LooseIDs = true
			s53Play(w, second, last)
			w.waits("c1")
			w.effects("pay c1")
			w.resume()
			w.waits("c1")
			w.resume(reject("c1", "no"))
			w.ends("done")
			w.effects("pay c1")
		}})
		s.variants = append(s.variants, variant{name: name + ", ids are vouched for", play: func(w *world) {
			if name == "the same" {
				s53Play(w, second, turn(paid+"; call c1 pay; output c1 receipt-5", says("done")))
				w.ends("done")
			} else {
				s53Play(w, second)
				w.fails("call id")
				w.requests(2)
				w.holds(paid)
			}
			w.effects("pay c1")
		}})
	}
	slices.SortFunc(s.variants, func(a, b variant) int { return strings.Compare(a.name, b.name) })
	return s
}

// s53Play plays up to what follows the second call of that id.
func s53Play(w *world, second item.Item, last ...pawltest.ResponsesStep) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "pay", Output: "receipt-5", Gated: true}, {Name: "delete", Output: "deleted", Gated: true}}
	w.reused = true
	w.model(append([]pawltest.ResponsesStep{turn("user go", call("c1", "pay")), turn("user go; call c1 pay; output c1 receipt-5", second)}, last...)...)
	w.start("go")
	w.waits("c1")
	w.resume(approve("c1"))
}

func s55() scenario {
	return scenario{
		id: "S55",
		script: `A response is cut off by the bound on tokens: one call is complete, another one is not, or looks complete and lacks what
it needs. Nothing of such a response is done, not even the call that is complete, and nothing of it enters the session: the caller
gets a typed error. The run is not stuck in it: he resumes, the model is asked again, and what it answers this time is done once.`,
		sources: []string{
			"https://github.com/OpenRouterTeam/typescript-agent/pull/125",
			"https://github.com/ollama/ollama/pull/17564",
		},
		variants: []variant{
			{name: "arguments cut", play: func(w *world) { s55Play(w, `{"amount":`) }},
			{name: "arguments look whole", play: func(w *world) { s55Play(w, `{}`) }},
		},
	}
}

func s55Play(w *world, args string) {
	w.Helper()
	w.setup.Tools = []tool{{Name: "t", Output: "o"}}
	const settled = "user go; call c1 t; call c2 t; output c1 o; output c2 o"
	cut := turn("user go", call("c1", "t"), item.FromTrusted(`{"type":"function_call","call_id":"c2","name":"t","status":"incomplete","arguments":`+encode(args)+`}`))
	cut.Reply.Status, cut.Reply.IncompleteReason = "incomplete", "max_output_tokens"
	w.model(cut, turn("user go", call("c1", "t"), call("c2", "t")), turn(settled, says("done")))
	w.start("go")
	w.fails("incomplete")
	w.effects()
	w.requests(1)
	w.holds("user go")
	w.resume()
	w.ends("done")
	w.effects("t c1", "t c2")
	w.holds(settled + "; message done")
}

func s25() scenario {
	return scenario{
		id: "S25",
		script: `A tool has run and the server refuses the next request as a bad one. The run has failed with that error: nobody sends the
request again by itself, and who looks after the runs of a store leaves it alone, for a repeat would be refused as well. The caller
resumes it; only the request is made again, and refused again. Once the server takes it the run ends. The tool has run once.`,
		sources:  []string{"https://github.com/agentarea/agentarea/pull/320"},
		variants: []variant{{play: s25Play}},
	}
}

func s25Play(w *world) {
	w.setup.Team = []member{{Name: "Desk", Tools: []tool{{Name: "sh", Output: "o"}}, Retries: 3}}
	const settled = "user go; call c1 sh; output c1 o"
	bad := refuses(turn(settled), &pawltest.ResponsesError{Status: 400, Message: "bad request"})
	w.model(turn("user go", call("c1", "sh")), bad, bad, turn(settled, says("done")))
	w.broken = 2
	w.start("go")
	for n := range 2 {
		w.fails("model 400")
		w.effects("sh c1")
		w.requests(2 + n)
		w.recovers()
		w.requests(2 + n)
		w.resume()
	}
	w.ends("done")
	w.effects("sh c1")
	w.requests(4)
	w.holds(settled + "; message done")
}

// recovers looks after the runs of the store, as a supervisor does. An engine looks after its own by itself.
func (w *world) recovers() {
	w.Helper()
	if onEngine(w.cell) {
		return
	}
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		if err := runner.Recover(w.Context(), nil); err != nil {
			w.Fatal(err)
		}
	})
}
