package machine

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// randomFact describes a fact of a frame, mostly one that might come next.
func randomFact(d *dice, f *Frame) (frame string, body journal.Body) {
	if r := f.last(); r != nil && d.roll(3) > 0 {
		for _, c := range r.calls {
			if c.agent() && c.state == callReady && f.depth < 3 {
				return FrameName(f.name, c.id), randomNested(d, c)
			}
			if c.state == callLeaving && d.flip() {
				return f.name, &journal.Settled{ID: c.last(), Outcome: pick(d, journal.Done, journal.ToolFailed), Output: f.output(c, "left")}
			}
		}
	}
	return f.name, randomBody(d, f)
}

func randomNested(d *dice, c *call) journal.Body {
	return &journal.Started{Agent: pick(d, c.spec.Agent, c.spec.Agent, c.spec.Agent, "?"), Run: pick(d, "", "", "", "r"), Session: randomRef(d), Auto: d.roll(4) == 1,
		Conversation: pick(d, "", "", "c2", "c"), UniqueCallIDs: d.flip(), MaxTurns: d.roll(4), Parallel: d.roll(3), Input: randomItems(d), Guards: randomGuards(d)}
}

// randomBody describes a fact, mostly one that might come next.
func randomBody(d *dice, f *Frame) journal.Body {
	if f.started == nil {
		s := &journal.Started{Run: "r", Agent: "a", Session: randomRef(d), Conversation: pick(d, "", "", "c"), Previous: pick(d, "", "", "p"),
			Auto: d.roll(4) == 1, UniqueCallIDs: d.flip(), MaxTurns: d.roll(4), Parallel: d.roll(3), Input: randomItems(d), Guards: randomGuards(d)}
		return s
	}
	if r := f.last(); r != nil && r.judgeDue() && d.roll(3) > 0 {
		return &journal.Judged{N: r.n, Final: d.flip(), Text: "so"}
	}
	if r := f.last(); r != nil && r.unsettled == 1 && slices.ContainsFunc(r.calls, f.transferDue) && d.roll(3) > 0 {
		return randomTransferred(d, f)
	}
	if due := f.unchecked() || f.guardedCall() || f.handleWaits(); due && d.roll(3) > 0 {
		return randomSaid(d, f)
	}
	switch d.roll(34) {
	case 0:
		return &journal.Forked{Run: pick(d, "", "r", "f"), Session: randomRef(d)}
	case 1:
		return &journal.Claimed{Epoch: f.m.epoch + uint64(d.roll(3)), Gone: d.flip()}
	case 2:
		return &journal.Resumed{MaxTurns: d.roll(9) - 1}
	case 3, 4:
		return &journal.Loaded{Items: randomItems(d), Healed: randomItems(d)}
	case 5, 6, 7, 8:
		return randomPrepared(d, f)
	case 9:
		id := randomID(d, f, journal.EffectTool, journal.EffectModel, journal.EffectSession)
		id.A += d.roll(2)
		return &journal.Intended{ID: id, Upto: f.settled - d.roll(2), NotAfter: int64(d.roll(3)) * (1<<62 + 5)}
	case 10, 11, 12, 13:
		id := f.modelID()
		if d.roll(8) == 1 {
			id = randomID(d, f, journal.EffectModel)
		}
		return &journal.Responded{ID: id, ResponseID: pick(d, "", "resp"), Items: randomItems(d)}
	case 14, 15, 16, 17:
		return randomPlanned(d, f)
	case 18, 19:
		return randomDecided(d, f)
	case 20, 21, 22:
		return randomSettled(d, f)
	case 23:
		return &journal.Judged{N: len(f.responses) - d.roll(2), Final: d.flip(), Text: "so"}
	case 24:
		b := &journal.Confirmed{N: f.batches + 1 - d.roll(2), Upto: f.settled - d.roll(2), Found: d.flip()}
		return b
	case 25:
		return &journal.Absent{ID: randomDoubt(d, f)}
	case 26:
		id := randomID(d, f, journal.EffectLoad, journal.EffectPrepare, journal.EffectModel, journal.EffectPlan, journal.EffectJudge,
			journal.EffectSession, journal.EffectReconcile, journal.EffectTransfer, journal.EffectEnter, journal.EffectLeave,
			journal.EffectGuard, journal.EffectOutput, journal.EffectCheck, journal.EffectHandle)
		return &journal.Failed{ID: id, Unknown: d.flip(), RetryAt: int64(d.roll(2)) * 500_000}
	case 27:
		return &journal.Fired{ID: randomID(d, f, journal.EffectWait)}
	case 28:
		return randomExpired(d, f)
	case 30:
		return randomTransferred(d, f)
	case 31:
		return randomSaid(d, f)
	case 32:
		return randomAdded(d, f)
	case 29:
		if d.roll(4) > 0 {
			return nil
		}
		return &journal.Cancelled{}
	}
	return &journal.Finished{Cancelled: d.flip(), At: d.roll(len(f.history)+3) - 2, Text: pick(d, "", "so")}
}

func randomPrepared(d *dice, f *Frame) journal.Body {
	b := &journal.Prepared{N: f.turns + 1 - d.roll(2)*d.roll(2), Upto: f.settled - d.roll(2)*d.roll(2), Same: d.roll(3)}
	if d.flip() || f.turns == 0 {
		b.Same = b.N
		b.Manifest = &journal.Manifest{Agent: f.agent, ToolUse: pick(d, "", "", "", "first", "names", "custom", "custom", "custom", "custom", "custom", "?"), StopAt: []string{"pay"}, Tools: []journal.ToolSpec{
			{Name: "look", Identity: "l", Class: journal.ReadOnly, OnUnknown: pick(d, journal.UnknownDefault, journal.UnknownWait), Expires: 500_000},
			{Name: "pay", Identity: pick(d, "p", ""), Class: pick(d, journal.AtMostOnce, journal.AtMostOnce, journal.Idempotent, journal.Transactional, "?"),
				Timeout: pick[int64](d, 0, -1, 5000, 1<<62), OnUnknown: pick(d, journal.UnknownDefault, journal.UnknownTell, journal.UnknownWait),
				Recover: d.flip(), Expires: pick[int64](d, 400_000, 0, -1, 1<<63-1), ExpiryFails: d.flip()},
			{Name: "ask", Identity: "a", Agent: "b", TellFailure: d.flip(), Expires: 500_000, ExpiryFails: d.flip()},
			{Name: "desk", Handoff: pick(d, "b", "a", ""), Identity: "d"},
		}}
	}
	if b.Manifest != nil {
		randomManifestGuards(d, f, b.Manifest)
		b.Manifest.Tools[1].Guarded, b.Manifest.Tools[2].Guarded = d.flip(), d.flip()
	}
	if b.Manifest != nil && d.roll(32) == 1 {
		b.Manifest.Agent = "?"
	}
	b.View = randomView(d, f, b.Upto)
	return b
}

func randomView(d *dice, f *Frame, upto int) (view []journal.Span) {
	if upto <= 0 || d.roll(4) > 0 {
		return nil
	}
	_, from := f.base()
	from = min(from, upto-1)
	for range 1 + d.roll(2) {
		to := from + 1 + d.roll(max(1, upto-from))
		view = append(view, journal.Span{From: from, Upto: to})
		from = min(to, upto-1+d.roll(2))
	}
	if d.roll(3) == 1 {
		view = append(view, journal.Span{Item: fuzzItems[d.roll(len(fuzzItems))]})
	}
	return view
}

func randomTransferred(d *dice, f *Frame) journal.Body {
	b := &journal.Transferred{N: d.roll(3), P: d.roll(3), Agent: pick(d, "b", "a", ""), Output: fuzzItems[d.roll(len(fuzzItems))]}
	r := f.last()
	if r == nil || d.roll(8) == 1 {
		return b
	}
	for _, c := range r.calls {
		if c.handoff() {
			b.N, b.P, b.Output = c.id.N, c.id.P, f.output(c, "over to you")
		}
	}
	b.View = randomView(d, f, len(f.history))
	return b
}

func randomPlanned(d *dice, f *Frame) journal.Body {
	n, items, man := f.Response()
	b := &journal.Planned{N: n, Tools: make([]journal.ToolSpec, d.roll(2))}
	ids := make(map[string]bool)
	for p, it := range items {
		if !it.NeedsOutput() {
			b.FinalAt = p
			continue
		}
		head := it.Head()
		fc, _ := it.FunctionCall()
		pc := journal.PlannedCall{P: p, Tool: d.roll(len(man.Tools)+len(b.Tools)+1) - 1, Gate: pick(d, journal.Allow, journal.Allow, journal.Ask, journal.Ask, journal.Deny)}
		pc.Digest, _, _ = item.DigestArguments(fc.Arguments)
		recorded, known, _ := f.Recorded(head.CallID, head.Name, pc.Digest)
		switch {
		case ids[head.CallID]:
			pc.Twin = true
		case known:
			pc.Output, pc.Gate = recorded, journal.Allow
		case pc.Tool < 0 || d.roll(8) == 1:
			pc.Output, pc.Gate = fc.Output("settled"), journal.Allow
		case d.roll(8) == 1:
			pc.Output, pc.Unreadable = fc.Output("bad"), true
		}
		ids[head.CallID] = true
		b.Calls = append(b.Calls, pc)
	}
	if len(b.Calls) == 0 {
		b.Final = pick(d, journal.FinalNone, journal.FinalNone, journal.FinalMessage, journal.FinalEmpty, journal.FinalRefusal, journal.FinalInvalid)
	}
	if len(b.Calls) > 0 && d.roll(8) == 1 { // damage
		pc := &b.Calls[d.roll(len(b.Calls))]
		switch d.roll(5) {
		case 0:
			pc.P += d.roll(3) - 1
		case 1:
			pc.Twin = !pc.Twin
		case 2:
			pc.Gate = "?"
		case 3:
			pc.Tool = d.roll(9) - 3
		case 4:
			pc.Output = fuzzItems[d.roll(len(fuzzItems))]
		}
	}
	return b
}

// randomCall returns a call of the newest response, nil if it has none.
func randomCall(d *dice, f *Frame) *call {
	r := f.last()
	if r == nil || len(r.calls) == 0 {
		return nil
	}
	return r.calls[d.roll(len(r.calls))]
}

func randomDecided(d *dice, f *Frame) journal.Body {
	b := &journal.Decided{Call: journal.EffectID{Kind: journal.EffectTool, N: d.roll(3), P: d.roll(3)}, Stage: d.roll(4) - 1,
		Verdict: pick(d, journal.Approve, journal.Reject, journal.Settle, journal.Retry, journal.GiveUp, "?"), Sticky: d.flip(), Text: pick(d, "", "so")}
	if c := randomCall(d, f); c != nil && d.roll(8) > 0 {
		b.Call, b.Stage, b.Digest = c.id, c.stage(), c.digest
		kind, open := c.openKind()
		if b.Stage > 0 {
			b.Sticky = false
		}
		switch {
		case open && kind == InDoubt:
			b.Verdict = pick(d, journal.Settle, journal.Retry, journal.GiveUp)
		case open && kind == External:
			b.Verdict = journal.Settle
		}
	}
	if b.Verdict == journal.Approve {
		b.Arguments = pick(d, "", "", `{"a":2}`, "{")
	}
	return b
}

func randomSettled(d *dice, f *Frame) journal.Body {
	b := &journal.Settled{ID: randomID(d, f, journal.EffectTool), Late: d.roll(8) == 1, Running: d.roll(4) == 1, Error: "why",
		Outcome: pick(d, journal.Done, journal.Done, journal.ToolFailed, journal.Unknown, journal.NotExecuted, journal.Pending, journal.AsksAgain,
			journal.Rejected, journal.Decreed, journal.Dropped, "?")}
	if c := randomCall(d, f); c != nil && d.roll(4) == 1 {
		b.ID = c.id
		b.ID.A = c.attempt - d.roll(2)
	}
	if c := f.find(b.ID); c != nil && !slices.Contains([]journal.Outcome{journal.NotExecuted, journal.Pending, journal.AsksAgain}, b.Outcome) && d.roll(8) > 0 {
		b.Output = f.output(c, "out")
	}
	return b
}

func randomExpired(d *dice, f *Frame) journal.Body {
	b := &journal.Expired{Call: randomID(d, f, journal.EffectTool), Stage: d.roll(3)}
	if c := randomCall(d, f); c != nil && d.roll(8) > 0 {
		b.Call, b.Stage = c.id, c.stage()
	}
	return b
}

// randomDoubt returns the id of what is in doubt, or any.
func randomDoubt(d *dice, f *Frame) journal.EffectID {
	switch {
	case f.open != nil && f.open.doubt && d.roll(4) > 0:
		return f.open.id()
	case f.turn.doubt && d.roll(4) > 0:
		return f.modelID()
	}
	if c := randomCall(d, f); c != nil && c.state == callDoubt && d.roll(4) > 0 {
		return c.last()
	}
	return randomID(d, f, journal.EffectModel, journal.EffectSession, journal.EffectTool)
}
