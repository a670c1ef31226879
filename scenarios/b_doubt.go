package scenarios

import (
	"errors"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

// Calls of which nobody knows whether they took effect.

// The same tool with each promise.
var (
	plainPay      = tool{Name: "pay", Output: "receipt-5"}
	idempotentPay = tool{Name: "pay", Output: "receipt-5", Class: pawl.Idempotent}
	lookupPay     = tool{Name: "pay", Output: "receipt-5", Lookup: true}
)

// unknown is what the model reads of a call if its outcome is unknown.
func unknown(callID, key string) string {
	return "output " + callID + " The outcome of this tool call is unknown: it may or may not have taken effect. Do not assume that it failed. " +
		"Its idempotency key is " + key + "."
}

// gone is the reason of variants whose process dies.
func gone(c cell) string {
	if c.carrier != store {
		return "a run in memory is gone with its process"
	}
	return ""
}

func s22() scenario {
	s := scenario{
		id: "S22",
		script: `A process dies while it runs a tool that pays: before it said that it would, before or after the payment, before or
after the session has call and output. Another process opens the store and resumes. What did not begin is done then (an answer
of the model that was not recorded is asked for again), and what is recorded is not done again. In between nobody can know, and the class of the tool says what follows: an idempotent one runs
again with the same key, which its far side honours; one whose far side can be asked is asked; for any other a person is asked,
and the call is not repeated silently. So it is if the process lives and only the answer is lost, except that the model is told
then that the outcome is unknown.`,
		sources: []string{
			"https://github.com/crewAIInc/crewAI/issues/5802",
			"https://github.com/GEMISIS/leviath/issues/96",
			"https://github.com/openai/openai-agents-python/pull/4621",
		},
	}
	for _, kind := range []struct {
		name string
		tool tool
	}{{"plain", plainPay}, {"idempotent", idempotentPay}, {"lookup", lookupPay}} {
		for _, at := range []death{inRule, beforeEffect, afterEffect, beforeAppend, afterAppend} {
			s.variants = append(s.variants, variant{name: kind.name + ", dies " + string(at), impossible: gone,
				play: func(w *world) { s22Dies(w, kind.tool, at) }})
		}
		lost := kind.tool
		lost.AnswerLost = true
		output := "output c1 receipt-5"
		if kind.name == "plain" {
			output = unknown("c1", "pawl_6ed99348d0820e4ca6330138d7366d03")
		}
		s.variants = append(s.variants, variant{name: kind.name + ", the answer is lost", play: func(w *world) { s22Lost(w, lost, output) }})
	}
	return s
}

func s22Dies(w *world, t tool, at death) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{t}, plain
	script := payBy("pay", "output c1 receipt-5")
	if at == inRule && !onEngine(w.cell) { // the answer is recorded together with what its rules say
		script = append(script[:1:1], script...)
	}
	w.model(script...)
	w.dies(request{Input: []item.Item{item.UserText("pay")}, Dies: at})
	w.requests(1)

	w.resume()
	if inDoubt := at == beforeEffect || at == afterEffect; inDoubt && !t.Lookup && t.Class != pawl.Idempotent {
		w.waits("c1")
		if kind := w.last.Interruptions[0].Kind; kind != string(pawl.InDoubt) {
			w.Errorf("the interruption is of kind %q", kind)
		}
		w.requests(1)
		answer := settle("c1", "receipt-5")
		if at == beforeEffect {
			w.effects()
			answer = retry("c1")
		}
		w.resume(answer)
	}
	w.ends("done")
	w.effects("pay c1")
	w.requests(len(script))
	w.holds("user pay; call c1 pay; output c1 receipt-5; message done")
}

func s22Lost(w *world, t tool, output string) {
	w.Helper()
	w.setup.Tools = []tool{t, deletion}
	const asked = "user pay; call c1 pay; call c2 del; "
	w.model(
		turn("user pay", call("c1", "pay"), call("c2", "del")),
		turn(asked+output+"; output c2 deleted", says("done")),
	)
	w.start("pay")
	w.waits("c2")
	w.effects("pay c1")
	w.resume(approve("c2"))
	w.ends("done")
	w.effects("pay c1", "del c2")
}

func s26() scenario {
	return scenario{
		id: "S26",
		script: `An approval arrives twice: it is one approval, and the tool runs once. An approval that names the digest of other
arguments than those that wait is refused, on a state and by the run, and nothing runs. The tool takes effect and its answer is
lost: the attempt that follows has the same key, so that the far side takes effect once, or there is none and the model is told
that the outcome is unknown; the approval is used up either way and is not asked for again.`,
		sources: []string{"https://github.com/pydantic/pydantic-ai/issues/5536"},
		variants: []variant{
			{name: "twice", play: func(w *world) {
				w.setup.Tools = []tool{charge}
				w.model(payBy("charge", "output c1 receipt-5")...)
				w.start("pay")
				w.waits("c1")
				w.resume(approve("c1"), approve("c1"))
				w.ends("done")
				w.effects("charge c1")
			}},
			{name: "for other arguments", play: s26Digest},
			{name: "idempotent, the answer is lost", play: func(w *world) {
				s26Lost(w, tool{Name: "charge", Output: "receipt-5", Gated: true, AnswerLost: true, Class: pawl.Idempotent}, "output c1 receipt-5")
			}},
			{name: "plain, the answer is lost", play: func(w *world) {
				s26Lost(w, tool{Name: "charge", Output: "receipt-5", Gated: true, AnswerLost: true}, unknown("c1", "pawl_2c7235b5b34500a680e27b4aaabd4fbd"))
			}},
		},
	}
}

func s26Lost(w *world, t tool, output string) {
	w.Helper()
	w.setup.Tools = []tool{t}
	w.model(payBy("charge", output)...)
	w.start("pay")
	w.waits("c1")
	w.resume(approve("c1"))
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
}

func s26Digest(w *world) {
	w.setup.Tools = []tool{charge}
	w.model(payBy("charge", "output c1 receipt-5")...)
	w.start("pay")
	w.waits("c1")
	state := w.copyOfState()
	other, _, err := item.DigestArguments(`{"amount":6}`)
	if err != nil {
		w.Fatal(err)
	}
	forged := pawl.Approve(state.Interruptions()[0].ID, reviewer)
	forged.Digest = other
	if err := state.Decide(forged); !errors.Is(err, pawl.ErrDecision) {
		w.Errorf("decided on a state: %v, want ErrDecision", err)
	}
	if w.cell.carrier == live || w.cell.carrier == store {
		w.at(func(p *place) {
			runner, _ := p.options(request{})
			if err := runner.Decide(w.Context(), w.setup.Run, forged); !errors.Is(err, pawl.ErrDecision) {
				w.Errorf("decided by id: %v, want ErrDecision", err)
			}
		})
	}
	w.resume()
	w.waits("c1")
	w.effects()
	w.resume(approve("c1"))
	w.ends("done")
	w.effects("charge c1")
}
