package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// badStart draws what is wrong with a start [M1.2], and nothing sometimes.
func (d *draw) badStart(b journal.Started) *journal.Started {
	switch pick(d, "bad start", "nothing", "run", "agent", "machine", "guards", "session", "conversation") {
	case "run":
		b.Run = ""
	case "agent":
		b.Agent = ""
	case "machine":
		b.Machine = machine.Version + 1
	case "guards":
		b.Guards = "odd"
	case "session":
		b.Session = d.session()
	case "conversation":
		b.Conversation = "conv"
	}
	return &b
}

// stray draws a fact that is nearly due, or due, or was due.
func (d *draw) stray(w *world) journal.Body {
	open := slices.DeleteFunc(w.interruptions(), func(in machine.Interruption) bool { return in.Frame != w.name })
	if len(open) > 0 && d.maybe("a decision") {
		return d.strayDecision(w, pick(d, "interruption", open...).Call)
	}
	b := d.strayBody(w)
	if s, ok := b.(*journal.Settled); ok && (!known(s.Outcome, journal.NotExecuted, journal.Pending, journal.AsksAgain) || d.seldom(3, "an output")) {
		c := w.call(s.ID)
		if c == nil {
			s.Output = item.FunctionOutput("c1", "stray")
			return s
		}
		s.Output = c.answer(d.next("stray "))
		if d.seldom(3, "no pair") {
			s.Output = pick(d, "output", item.FunctionOutput("other", ""), item.CustomOutput(c.head().CallID, ""), item.UserText(""), item.Item{})
		}
	}
	return b
}

func (d *draw) strayBody(w *world) journal.Body {
	switch pick(d, "stray", journal.KindSettled, journal.KindDecided, journal.KindIntended, journal.KindFailed, journal.KindPlanned,
		journal.KindPrepared, journal.KindResponded, journal.KindConfirmed, journal.KindAbsent, journal.KindFired, journal.KindClaimed,
		journal.KindForked, journal.KindLoaded, journal.KindJudged, journal.KindFinished, journal.KindCancelled, journal.KindResumed,
		journal.KindStarted, journal.KindExpired, journal.KindTransferred, "said") {
	case "said":
		return d.strayVerdict(w, pick(d, "said", journal.KindChecked, journal.KindHandled, journal.KindAdded, journal.KindAdmitted, journal.KindObserved))
	case journal.KindSettled:
		return &journal.Settled{ID: d.callID(w, 3), Late: d.seldom(3, "late"), Outcome: pick(d, "outcome", journal.Done, journal.Unknown,
			journal.ToolFailed, journal.NotExecuted, journal.Pending, journal.AsksAgain, journal.Rejected, journal.Decreed, journal.Dropped, "odd"),
			Running: d.seldom(2, "running")}
	case journal.KindDecided:
		return d.strayDecision(w, d.callID(w, 0))
	case journal.KindIntended:
		return d.strayIntent(w)
	case journal.KindFailed:
		return &journal.Failed{ID: d.anyID(w), Code: "stray", Unknown: d.maybe("unknown"), RetryAt: pick(d, "retry at", int64(0), 1)}
	case journal.KindPlanned:
		return d.strayPlan(w)
	case journal.KindPrepared:
		return d.strayPrepared(w)
	case journal.KindResponded:
		return d.responded(w, d.requestID(w))
	case journal.KindConfirmed:
		return &journal.Confirmed{N: w.confirmed + pick(d, "batch", 1, 0, 2), Upto: pick(d, "upto", w.released(), w.batch.upto, 0, w.mark()), Found: d.maybe("found")}
	case journal.KindAbsent:
		return &journal.Absent{ID: d.anyID(w)}
	case journal.KindExpired:
		return d.strayExpired(w)
	case journal.KindTransferred:
		return d.strayTransferred(w)
	case journal.KindFired:
		id := d.anyID(w)
		if d.maybe("a wait") {
			id = journal.EffectID{Kind: journal.EffectWait, N: pick(d, "n", 1, 2, 3), P: pick(d, "p", 0, 1, 2), A: pick(d, "a", 1, 2)}
		}
		return &journal.Fired{ID: id}
	case journal.KindClaimed:
		return &journal.Claimed{Epoch: pick(d, "epoch", w.epoch, max(w.epoch, 1)-1, 0)}
	case journal.KindForked:
		b := &journal.Forked{Run: pick(d, "fork", "fork", w.run, "")}
		if d.maybe("new session") {
			b.Session = d.session()
		}
		return b
	case journal.KindLoaded:
		return d.loaded(w)
	case journal.KindJudged:
		return &journal.Judged{N: len(w.responses) + pick(d, "judged", 0, -1, 1), Final: d.maybe("final"), Text: "stray"}
	case journal.KindFinished:
		return d.strayFinished(w)
	case journal.KindCancelled:
		return &journal.Cancelled{}
	case journal.KindResumed:
		return &journal.Resumed{}
	}
	return &journal.Started{Run: "r2", Agent: "a", Machine: machine.Version}
}

// callID draws the id of a call, or nearly one, with an attempt below most.
func (d *draw) callID(w *world, most int) journal.EffectID {
	var calls []*call
	for _, r := range w.responses {
		calls = slices.Concat(r.calls, calls)
	}
	id := journal.EffectID{Kind: journal.EffectTool, N: max(1, len(w.responses)), P: 0}
	if len(calls) > 0 {
		id = pick(d, "call", calls...).id
	}
	if d.seldom(5, "no call") {
		id.P += 7
	}
	if most > 0 {
		id.A = pick(d, "attempt", 1, 2, 0, 3)
	}
	return id
}

func (d *draw) transferID(w *world) journal.EffectID {
	id := d.callID(w, 0)
	id.Kind, id.A = journal.EffectTransfer, 1
	return id
}

func (d *draw) requestID(w *world) journal.EffectID {
	id := journal.EffectID{Kind: journal.EffectModel, N: 1, A: 1}
	if t := w.turn(); t != nil {
		id = t.effect()
	}
	id.N += pick(d, "turn", 0, 0, 1)
	id.A += pick(d, "attempt", 0, 0, 1)
	return id
}

// anyID draws an id of any kind that may have something to do with the run as it is.
func (d *draw) anyID(w *world) journal.EffectID {
	request := d.requestID(w)
	last := w.batch.effect()
	return pick(d, "id",
		request,
		journal.EffectID{Kind: journal.EffectReconcile, N: request.N, A: request.A},
		last,
		journal.EffectID{Kind: journal.EffectReconcile, N: last.N, P: 1, A: last.A},
		journal.EffectID{Kind: journal.EffectPrepare, N: len(w.turns) + 1, A: 1},
		journal.EffectID{Kind: journal.EffectPlan, N: len(w.responses), A: 1},
		journal.EffectID{Kind: journal.EffectJudge, N: len(w.responses), A: 1},
		journal.EffectID{Kind: journal.EffectLoad, A: 1},
		d.transferID(w),
		d.verdictID(w),
		d.callID(w, 3),
		around(d.callID(w, 0), journal.EffectEnter),
		around(d.callID(w, 0), journal.EffectLeave),
		d.reconcileOf(d.callID(w, 2)),
		journal.EffectID{Kind: journal.EffectWait, N: request.N, A: request.A},
		journal.EffectID{Kind: journal.EffectSession, N: w.confirmed + 1, A: 1},
	)
}

// reconcileOf is the id of the Reconcile about an attempt of a call.
func (d *draw) reconcileOf(id journal.EffectID) journal.EffectID {
	return journal.EffectID{Kind: journal.EffectReconcile, N: id.N, P: id.P + 2, A: id.A}
}

func (d *draw) strayDecision(w *world, id journal.EffectID) *journal.Decided {
	b := &journal.Decided{Call: id, Verdict: journal.Approve}
	c := w.call(b.Call)
	if c == nil {
		return b
	}
	if d.maybe("again") { // a repeated or a contradicting decision
		for _, m := range c.events {
			if first, ok := m.fact.Body.(*journal.Decided); ok {
				*b = *first
			}
		}
		b.By = d.next("person ")
	} else {
		b = d.decision(w, c)
	}
	switch pick(d, "wrong", "nothing", "verdict", "stage", "digest", "sticky", "arguments", "text", "attempt") {
	case "verdict":
		b.Verdict = pick(d, "verdict", journal.Approve, journal.Reject, journal.Retry, journal.Settle, journal.GiveUp, "")
	case "stage":
		b.Stage = pick(d, "stage", 0, 1, 2, -1)
	case "digest":
		b.Digest = pick(d, "digest", c.planned.Digest, item.Digest{1})
	case "sticky":
		b.Sticky = !b.Sticky
	case "arguments":
		b.Arguments = pick(d, "arguments", `{"b": 1}`, `{"b":1}`, `{`)
	case "text":
		b.Text = d.next("text ")
	case "attempt":
		b.Call.A = 1
	}
	return b
}

func (d *draw) strayExpired(w *world) *journal.Expired {
	b := &journal.Expired{Call: d.callID(w, 0), Stage: pick(d, "stage", 0, 1, 2)}
	for _, in := range w.interruptions() {
		if in.Kind == machine.Approval && in.Frame == w.name && d.maybe("open") {
			b.Call, b.Stage = in.Call, in.Stage+pick(d, "stage", 0, 0, 1)
		}
	}
	if d.seldom(3, "an attempt") {
		b.Call.A = 1
	}
	return b
}

func (d *draw) strayIntent(w *world) *journal.Intended {
	b := &journal.Intended{ID: d.callID(w, 3), NotAfter: 1000}
	switch pick(d, "intent", "tool", "request", "batch", "other") {
	case "request":
		b.ID = d.requestID(w)
		if t := w.turn(); t != nil {
			b.Upto = t.prepared.Upto
		}
	case "batch":
		b.ID = journal.EffectID{Kind: journal.EffectSession, N: w.confirmed + 1, A: w.batch.attempt + pick(d, "attempt", 1, 0, 2)}
		b.Upto = pick(d, "upto", w.released(), w.batch.upto, w.mark()-1, w.mark())
	case "other":
		b.ID = d.anyID(w)
	}
	return b
}

func (d *draw) strayPrepared(w *world) *journal.Prepared {
	b := d.prepared(w)
	switch pick(d, "wrong", "nothing", "n", "upto", "same", "tool use", "agent", "tools") {
	case "agent":
		if b.Manifest != nil {
			b.Manifest.Agent = "z"
		}
	case "tools":
		if b.Manifest != nil {
			b.Manifest.Tools = []journal.ToolSpec{{Name: "pay", Agent: "b", Handoff: "b"}}
		}
	case "n":
		b.N++
	case "upto":
		b.Upto--
	case "same":
		b.Same = pick(d, "same", 0, b.N, b.N+1, 2)
	case "tool use":
		if b.Manifest != nil {
			b.Manifest.ToolUse = "odd"
		}
	}
	return b
}

// strayPlan draws a plan and spoils it.
func (d *draw) strayPlan(w *world) *journal.Planned {
	if w.response() == nil {
		return &journal.Planned{N: 1}
	}
	b := d.planned(w)
	if d.seldom(2, "final") {
		b.Final = pick(d, "final", journal.FinalMessage, journal.FinalEmpty, journal.FinalRefusal, journal.FinalInvalid, journal.Final("odd"))
		b.FinalAt = pick(d, "final at", 0, -1, 1, 9)
		return b
	}
	if len(b.Calls) == 0 {
		b.N += pick(d, "n", 0, -1, 1)
		return b
	}
	p := &b.Calls[pick(d, "spoilt", len(b.Calls)-1, 0)]
	switch pick(d, "wrong", "nothing", "twin", "gate", "tool", "place", "output", "unreadable", "digest", "fewer") {
	case "twin":
		p.Twin = !p.Twin
	case "gate":
		p.Gate = pick(d, "gate", journal.Ask, journal.Allow, journal.Gate("odd"))
	case "tool":
		p.Tool = pick(d, "tool", -1, len(w.response().manifest.Tools)+len(b.Tools), -2)
	case "place":
		p.P++
	case "output":
		other := (&call{item: w.response().items[p.P]}).answer("another output")
		p.Output = pick(d, "output", other, item.Item{}, item.FunctionOutput("odd", ""))
	case "unreadable":
		p.Unreadable = !p.Unreadable
	case "digest":
		p.Digest = item.Digest{1}
	case "fewer":
		b.Calls = b.Calls[1:]
	}
	return b
}

func (d *draw) strayFinished(w *world) *journal.Finished {
	if end := w.end(); end != nil && d.maybe("the end") {
		return end
	}
	return &journal.Finished{Cancelled: d.maybe("cancelled"), Tripped: d.seldom(2, "tripped"), At: pick(d, "at", -1, 0, 2)}
}
