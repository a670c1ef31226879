package scenarios

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// Group K: what only who keeps runs for others can get wrong. The processes are real, and so are their ends.

func engines() []scenario {
	return []scenario{workerKilled(), serverKilled(), nobodyUp(), decidedTwice(), oversized(), twoWorkers(), zombie(), rolledOver()}
}

// needsProcesses is the reason of variants in which other processes go on with a run.
func needsProcesses(c cell) string {
	if c.carrier != store {
		return "a run in memory is gone with its process"
	}
	return ""
}

func needsServer(c cell) string {
	if h, err := hostNamed(c.host); err == nil && h.KillServer == nil {
		return "the host has no server"
	}
	return ""
}

func needsHistory(c cell) string {
	if h, err := hostNamed(c.host); err == nil && h.Rolled == nil {
		return "the history of a run is never cut"
	}
	return ""
}

func workerKilled() scenario {
	s := scenario{
		id: "worker killed",
		script: `A worker is killed with SIGKILL while its run pays: before the intent is recorded, in the body before it has paid, or
after it has paid and before that is recorded. Another worker is started, and nobody tells it of the run. What did not begin is
done then. Of the other two nobody can know: a plain call waits for a person, who says what became of it or has it repeated; an
idempotent one runs again under its key, which the far side honours; one whose far side can be asked is asked. There is one
payment.`,
	}
	for _, kind := range []struct {
		name string
		tool tool
	}{{"plain", plainPay}, {"idempotent", idempotentPay}, {"lookup", lookupPay}} {
		for _, at := range []death{inRule, beforeEffect, afterEffect} {
			s.variants = append(s.variants, variant{name: kind.name + ", killed " + string(at), impossible: needsProcesses,
				play: func(w *world) { killWorker(w, kind.tool, at) }})
		}
	}
	return s
}

func killWorker(w *world, t tool, at death) {
	w.Helper()
	w.setup.Tools, w.setup.Session = []tool{t}, plain
	script := payBy("pay", "output c1 receipt-5")
	if at == inRule && !onEngine(w.cell) { // the answer is recorded together with what its rules say
		script = append(script[:1:1], script...)
	}
	w.model(script...)
	w.worker(request{Input: []item.Item{item.UserText("pay")}, Dies: at}).dies()
	w.requests(1)

	w.worker(request{})
	if at != inRule && !t.Lookup && t.Class != pawl.Idempotent {
		w.comesTo(pawl.StatusWaiting)
		w.waits("c1")
		w.asksOf(pawl.InDoubt)
		w.requests(1)
		if at == beforeEffect {
			w.effects()
			w.decides(retry("c1"))
		} else {
			w.decides(settle("c1", "receipt-5"))
		}
	}
	w.comesTo(pawl.StatusFinished)
	w.ends("done")
	w.effects("pay c1")
	w.requests(len(script))
	w.holds("user pay; call c1 pay; output c1 receipt-5; message done")
}

// asksOf checks the kind of the only interruption.
func (w *world) asksOf(kind pawl.InterruptionKind) {
	w.Helper()
	if got := w.last.Interruptions[0].Kind; got != string(kind) {
		w.Errorf("the interruption is of kind %q, want %q", got, kind)
	}
}

func serverKilled() scenario {
	return scenario{
		id: "server killed",
		script: `The server that keeps the runs is killed with SIGKILL and started again: while a run waits for an approval, and while
its tool is at work. The run is there again with all that was acknowledged; it is approved, and pays once. The worker was up
all the time and goes on by itself. Whether the result of the tool that was at work can still be recorded is a matter of time: if
not, a person is asked what became of the call, and it is not repeated.`,
		variants: []variant{
			{name: "the run waits", play: killServerWaiting, impossible: needsServer},
			{name: "a tool is at work", play: killServerAtWork, impossible: needsServer},
		},
	}
}

func killServerWaiting(w *world) {
	w.setup.Tools = []tool{charge}
	w.model(payment...)
	w.start("pay")
	w.waits("c1")
	w.killServer()
	w.decides(approve("c1"))
	w.killServer()
	w.worker(request{})
	w.comesTo(pawl.StatusFinished)
	w.ends("done")
	w.effects("charge c1")
	w.requests(2)
	w.holds(paid)
}

func (w *world) killServer() {
	w.Helper()
	if err := w.host.KillServer(); err != nil {
		w.Fatal(err)
	}
}

func killServerAtWork(w *world) {
	w.setup.Tools, w.setup.Lease = []tool{plainPay}, time.Second
	w.model(payBy("pay", "output c1 receipt-5")...)
	gate := w.gate()
	w.worker(request{Input: []item.Item{item.UserText("pay")}, Gate: gate})
	w.isAt(gate)
	w.killServer()
	w.opens(gate)
	if w.comesTo(pawl.StatusFinished, pawl.StatusWaiting).Status == pawl.StatusWaiting {
		w.waits("c1")
		w.asksOf(pawl.InDoubt)
		w.decides(settle("c1", "receipt-5"))
		w.comesTo(pawl.StatusFinished)
	}
	w.ends("done")
	w.effects("pay c1")
	w.holds("user pay; call c1 pay; output c1 receipt-5; message done")
}

func nobodyUp() scenario {
	return scenario{
		id: "no worker up",
		script: `A run waits for an approval, and no worker is up. The approval is taken all the same, and nothing happens. A worker is
started, much later, and goes on: one payment.`,
		variants: []variant{{play: func(w *world) {
			w.setup.Tools = []tool{charge}
			w.model(payment...)
			w.start("pay")
			w.waits("c1")
			w.decides(approve("c1"))
			w.effects()
			w.requests(1)
			w.goesOn()
			w.ends("done")
			w.effects("charge c1")
			w.requests(2)
			w.holds(paid)
		}}},
	}
}

// goesOn has the run driven to its end, by a worker where there can be one.
func (w *world) goesOn() {
	w.Helper()
	if w.cell.carrier != store {
		w.resume()
		return
	}
	w.worker(request{})
	w.comesTo(pawl.StatusFinished)
}

func decidedTwice() scenario {
	return scenario{
		id: "decided twice",
		script: `A run waits for an approval, and is approved twice, by the same person: the answer to the first was lost. Then a
worker is started. The second approval is nothing new: one payment, and one decision. So it is if the call is rejected twice: none.`,
		variants: []variant{
			{name: "approved", play: func(w *world) { decideTwice(w, approve("c1"), "receipt-5", "charge c1") }},
			{name: "rejected", play: func(w *world) { decideTwice(w, reject("c1", "no"), "no") }},
		},
	}
}

func decideTwice(w *world, d decision, output string, effects ...string) {
	w.Helper()
	w.setup.Tools = []tool{charge}
	settled := "user pay; call c1 charge; output c1 " + output
	w.model(turn("user pay", call("c1", "charge")), turn(settled, says("done")))
	w.start("pay")
	w.waits("c1")
	w.decides(d)
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		if err := w.decideOn(runner, w.verdicts[0].interruption, d); err != nil {
			w.Errorf("decided again: %v", err)
		}
	})
	w.effects()
	w.goesOn()
	w.ends("done")
	w.effects(effects...)
	w.requests(2)
	w.holds(settled + "; message done")
}

func oversized() scenario {
	return scenario{
		id: "oversized result",
		script: `A tool that pays returns three megabytes. They are recorded, the model reads all of them, and so does the session. The tool
has run once.`,
		variants: []variant{{play: func(w *world) {
			big := strings.Repeat("0123456789abcdef", 3<<20/16)
			w.setup.Tools = []tool{{Name: "pay", Output: big}}
			w.model(payBy("pay", "output c1 "+big)...)
			w.start("pay")
			w.ends("done")
			w.effects("pay c1")
			w.requests(2)
			w.holds("user pay; call c1 pay; output c1 " + big + "; message done")
		}}},
	}
}

func twoWorkers() scenario {
	return scenario{
		id: "two workers",
		script: `Six runs wait for an approval while two workers are up, and all are approved at once. Each is driven by one of the two
at a time and pays once, under a key of its own.`,
		variants: []variant{{play: playTwoWorkers, impossible: needsProcesses}},
	}
}

func playTwoWorkers(w *world) {
	const runs = 6
	w.setup.Tools, w.setup.Session = []tool{charge}, noSession
	w.unordered = true
	w.respond(payOfMany)
	asked := map[int]*outcome{}
	run := func(n int) string { return fmt.Sprint("two workers ", n) }
	for n := range runs {
		w.anotherRun(run(n))
		w.notOurs = func(r *pawltest.ResponsesRequest) bool {
			return !strings.Contains(r.Input[0].Raw(), fmt.Sprint("pay ", n))
		}
		w.start(fmt.Sprint("pay ", n))
		w.waits(fmt.Sprint("c", n))
		asked[n] = w.last
	}
	w.worker(request{})
	w.worker(request{})
	for n := range runs {
		w.anotherRun(run(n))
		w.last = asked[n]
		w.decides(approve(fmt.Sprint("c", n)))
	}
	var want []string
	for n := range runs {
		w.anotherRun(run(n))
		w.comesTo(pawl.StatusFinished)
		w.ends("done")
		want = append(want, fmt.Sprint("charge c", n))
	}
	w.effects(want...)
	w.requests(2)
}

// payOfMany plays the model for runs that pay. What it makes has ids of the run it is for.
func payOfMany(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
	asked, err := r.Input[0].Message()
	if err != nil {
		return pawltest.ResponsesReply{Refuse: &pawltest.ResponsesError{Status: 400, Message: err.Error()}}
	}
	n := strings.TrimPrefix(asked.Text(), "pay ")
	if len(r.Input) == 1 {
		return pawltest.ResponsesReply{ID: "resp_a" + n, Output: []item.Item{item.FunctionCallItem("fc_"+n, "c"+n, "charge", `{"amount":5}`)}}
	}
	return pawltest.ResponsesReply{ID: "resp_b" + n, Output: []item.Item{item.MessageItem("msg_"+n, "done")}}
}

func zombie() scenario {
	return scenario{
		id: "zombie",
		script: `A worker stands still in the middle of a payment, for so long that its run is taken from it. The other worker cannot
know whether it was paid, and asks. A person says that it was, and the run ends. Then the first worker goes on, pays, and
reports it. That changes nothing any more: there is one payment, one output, and no other request of the model.`,
		variants: []variant{{play: playZombie, impossible: needsProcesses}},
	}
}

func playZombie(w *world) {
	slow := plainPay
	slow.Timeout = time.Second
	w.setup.Tools, w.setup.Lease, w.setup.Grace = []tool{slow}, time.Second, 100*time.Millisecond
	w.model(payBy("pay", "output c1 receipt-5")...)
	gate := w.gate()
	first := w.worker(request{Input: []item.Item{item.UserText("pay")}, Gate: gate})
	w.isAt(gate)
	first.stops()
	w.worker(request{})
	w.comesTo(pawl.StatusWaiting)
	w.waits("c1")
	w.asksOf(pawl.InDoubt)
	w.decides(settle("c1", "receipt-5"))
	w.comesTo(pawl.StatusFinished)
	w.ends("done")
	w.effects()

	w.opens(gate)
	first.continues()
	w.eventually("the zombie has paid", func() bool { return len(w.recorded()) == 2 }) // the other one is the decision
	first.end()
	w.comesTo(pawl.StatusFinished)
	w.ends("done")
	w.effects("pay c1")
	w.requests(2)
	w.holds("user pay; call c1 pay; output c1 receipt-5; message done")
}

func rolledOver() scenario {
	return scenario{
		id: "rolled over",
		script: `A run has had so many turns, with long results, that its host begins a new history for it, while a call waits for an
approval. The approval comes afterwards, or before that while no worker is up. It reaches the run all the same: one payment, no
call is made again, and the model reads the whole conversation.`,
		variants: []variant{
			{name: "decided afterwards", play: func(w *world) { rollOver(w, true) }, impossible: needsHistory},
			{name: "decided with no worker up", play: func(w *world) { rollOver(w, false) }, impossible: needsHistory},
		},
	}
}

// manyResults are more than a history has room for, of a size that is not worth keeping elsewhere.
const (
	manyResults = 45
	longResult  = 60_000
)

func rollOver(w *world, up bool) {
	w.Helper()
	long := strings.Repeat("0123456789", longResult/10)
	w.setup.Tools = []tool{charge, {Name: "read", Output: long}}
	read := "user pay"
	var script []pawltest.ResponsesStep
	for n := range manyResults {
		id := fmt.Sprint("r", n)
		script = append(script, turn(read, call(id, "read")))
		read += "; call " + id + " read; output " + id + " " + long
	}
	settled := read + "; call c1 charge; output c1 receipt-5"
	w.model(append(script, turn(read, call("c1", "charge")), turn(settled, says("done")))...)
	w.do(request{Input: []item.Item{item.UserText("pay")}, MaxTurns: manyResults + 5})
	w.waits("c1")
	if up {
		w.worker(request{})
	}
	w.decides(approve("c1"))
	if !up {
		w.worker(request{})
	}
	w.comesTo(pawl.StatusFinished)
	w.ends("done")
	w.requests(manyResults + 2)
	w.holds(settled + "; message done")
	if rolled, err := w.host.Rolled(w.setup.Address, w.setup.Run); err != nil || !rolled {
		w.Errorf("the history was not cut (%v): the case shows nothing", err)
	}
}
