package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// What comes in while a call waits, and after it was approved.

func s16() scenario {
	return scenario{
		id: "S16",
		script: `A call is approved and the run resumed. When the next request reaches the model, everything that it tells of is
already where it belongs: the decision was recorded first, then the tool took effect, then its output was stored in the session
together with the call. No request is sent for a call that is approved and has not run.`,
		sources:  []string{"https://github.com/vercel/eve/issues/236"},
		variants: []variant{{play: s16Play}},
	}
}

func s16Play(w *world) {
	w.setup.Tools = []tool{{Name: "t", Output: "o", Gated: true}}
	const settled = "user go; call c1 t; output c1 o"
	second := turn(settled, says("ok"))
	reads := second.Check
	second.Check = func(r *pawltest.ResponsesRequest) error {
		stored, err := w.host.Rows(w.Context(), w.setup.Address, sessionID)
		if err != nil {
			return err
		}
		if got := strings.Join(shapes(stored), "; "); got != settled {
			return fmt.Errorf("the model is asked while the session has %q, want %q", got, settled)
		}
		effects, err := w.log.Effects()
		if err != nil {
			return err
		}
		if len(effects) != 2 || effects[0].Tool != reviewer || effects[1].CallID != "c1" {
			return fmt.Errorf("the model is asked after %+v, want a decision and an effect", effects)
		}
		return reads(r)
	}
	w.model(turn("user go", call("c1", "t")), second)
	w.start("go")
	w.waits("c1")
	w.effects()
	w.resume(approve("c1"))
	w.ends("ok")
	w.effects("t c1")
	w.requests(2)
}

// knownToOthers is the reason of variants in which a run is known to who starts another one.
func knownToOthers(c cell) string {
	if c.carrier == byJSON || c.carrier == process {
		return "a run that is a document alone is not known to who starts another one"
	}
	return ""
}

func s17() scenario {
	return scenario{
		id: "S17",
		script: `A run waits for an approval, and the user writes something else on the same session. A new run is refused with an
error that names the run that waits, and nothing happened: it can still be approved. Or the caller says that the new run takes
the session over: the call that waits is answered with that it was not executed, which the session and the model get before the
new message, and an approval that comes late is refused with a typed error and runs nothing. Or the caller rejects the call
himself before he starts the new run: a late approval is refused all the same.`,
		sources: []string{
			"https://github.com/vercel/ai/pull/12973",
			"https://github.com/crynta/terax-ai/pull/1255",
		},
		variants: []variant{
			{name: "refused", play: s17Refused, impossible: knownToOthers},
			{name: "superseded", play: s17Superseded, impossible: knownToOthers},
			{name: "rejected first", play: s17Rejected},
		},
	}
}

const notExecuted = "output c1 The tool was not executed: the run was cancelled."

// s17Start starts the run that waits.
func s17Start(w *world, steps ...pawltest.ResponsesStep) *outcome {
	w.Helper()
	w.setup.Tools = []tool{charge}
	w.model(append([]pawltest.ResponsesStep{turn("user pay", call("c1", "charge"))}, steps...)...)
	w.start("pay")
	w.waits("c1")
	return w.last
}

func s17Refused(w *world) {
	pending := s17Start(w, turn("user pay; call c1 charge; output c1 receipt-5", says("done")))
	w.anotherRun("S17 new")
	w.start("never mind")
	w.fails("session waiting")
	w.effects()
	w.requests(1)
	w.holds("user pay")

	w.anotherRun("S17")
	w.last = pending
	w.resume(approve("c1"))
	w.ends("done")
	w.effects("charge c1")
	w.holds(paid)
}

func s17Superseded(w *world) {
	const whole = "user pay; call c1 charge; " + notExecuted + "; user never mind"
	pending := s17Start(w, turn(whole, says("fine")))
	w.anotherRun("S17 new")
	w.do(request{Input: []item.Item{item.UserText("never mind")}, Supersede: true})
	w.ends("fine")
	w.approvedTooLate(pending, "superseded")
	w.effects()
	w.requests(2)
	w.holds(whole + "; message fine")
}

func s17Rejected(w *world) {
	const first = "user pay; call c1 charge; output c1 dropped; message fine"
	s17Start(w, turn("user pay; call c1 charge; output c1 dropped", says("fine")), turn(first+"; user do X", says("X")))
	w.resume(reject("c1", "dropped"))
	w.ends("fine")
	rejected := w.last
	w.anotherRun("S17 new")
	w.start("do X")
	w.ends("X")
	w.approvedTooLate(rejected, "decided")
	w.effects()
	w.requests(3)
	w.holds(first + "; user do X; message X")
}

// approvedTooLate approves the call c1 of the run S17, by id and on a state, which must be refused.
func (w *world) approvedTooLate(at *outcome, want string) {
	w.Helper()
	state, err := at.document()
	if err != nil {
		w.Fatal(err)
	}
	approval := pawl.Approve("1.0#0", reviewer)
	err = state.Decide(approval)
	w.at(func(p *place) {
		runner, opts := p.options(request{})
		if served := p.serve(request{}); served != nil {
			w.Fatal(served)
		}
		if err == nil { // the state does not know it yet, the run does
			_, err = runner.Resume(w.Context(), p.agent(request{}), state, opts)
		}
		if names := newOutcome(nil, err).Errors; !slices.Equal(names, []string{want}) {
			w.Errorf("approved on a state: %v, want that it is %s", err, want)
		}
		if w.cell.carrier == live || w.cell.carrier == store {
			err = runner.Decide(w.Context(), "S17", approval)
			if names := newOutcome(nil, err).Errors; !slices.Equal(names, []string{want}) {
				w.Errorf("approved by id: %v, want that it is %s", err, want)
			}
		}
	})
}
