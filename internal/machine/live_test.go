package machine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// live is a driver that answers effects at random, with what could come of them, and
// now and then crashes, stops, resumes, decides or cancels.
type live struct {
	t       *testing.T
	d       dice
	m       *Machine
	now     int64
	ledger  []journal.Fact
	durable int
	effects []Effect // in flight
	nested  int      // runs that were entered
	calm    bool     // nothing goes wrong any more: the run must come to an end
}

// TestALiveRunAlwaysGoesOn drives runs through what can go wrong and then lets nothing go
// wrong: whatever happened, there was always something in flight or somebody to ask,
// and the run ends.
func TestALiveRunAlwaysGoesOn(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	ended := make(map[Status]int)
	crashes, nested := 0, 0
	for range 1500 {
		l := &live{t: t, d: randomBytes(r, 350), m: New(), now: 1000}
		l.step(&journal.Started{Run: "r", Agent: "a", Session: randomRef(&l.d), UniqueCallIDs: l.d.flip(), MaxTurns: l.d.roll(4), Parallel: l.d.roll(3), Guards: randomGuards(&l.d)})
		if l.m.session == nil {
			l.m = New()
			l.step(&journal.Started{Run: "r", Agent: "a", Conversation: pick(&l.d, "", "", "c"), UniqueCallIDs: l.d.flip(), MaxTurns: l.d.roll(4), Parallel: l.d.roll(3), Guards: randomGuards(&l.d)})
		}
		l.step(&journal.Claimed{Epoch: 1})
		l.ready()
		for len(l.d) > 0 && l.m.Finished() == nil {
			if l.happen() {
				crashes++
			}
		}
		l.calm = true
		for steps := 0; l.m.Finished() == nil; steps++ {
			if steps > 300 {
				t.Fatalf("the run does not end: %s, in flight %v", l.m.Status(), l.effects)
			}
			l.happen()
		}
		ended[l.m.Status()]++
		nested += l.nested
	}
	if ended[Finished] < 100 || ended[Cancelled] < 100 || crashes < 1000 || nested < 150 {
		t.Errorf("%v, %d crashes, %d nested runs", ended, crashes, nested)
	}
}

// step steps a fact of the run itself that the driver knows to be due.
func (l *live) step(b journal.Body) { l.stepIn("", b) }

func (l *live) stepIn(frame string, b journal.Body) {
	f := journal.Fact{Frame: frame, Time: l.now, Body: b}
	if err := l.m.Check(f); err != nil {
		l.t.Fatalf("%q %s %+v: %v", frame, b.Kind(), b, err)
	}
	l.m.Step(f)
}

func (l *live) ready() {
	rd := l.m.Ready(l.now)
	l.ledger = append(l.ledger, rd.Facts...)
	if rd.MustSync {
		l.durable = len(l.ledger)
		l.m.Advance(uint64(l.durable))
	}
	l.effects = append(l.effects, rd.Effects...)
	look(l.t, l.m)
	if rd.Status == Running && l.m.InFlight() == 0 {
		l.t.Fatalf("running, and nothing is in flight: %+v", l.m.root.state)
	}
}

// happen lets one thing happen, and reports a crash.
func (l *live) happen() (crash bool) {
	d := &l.d
	switch n := d.roll(40); {
	case l.calm:
	case n == 0:
		l.restart(l.durable)
		return true
	case n == 1: // the driver stops: it ends its effects and appends what Flush hands out
		for _, e := range l.effects {
			if e.ID.Kind == journal.EffectTool && d.flip() {
				l.stepIn(e.Frame, &journal.Settled{ID: e.ID, Outcome: journal.NotExecuted})
			} else {
				l.m.Frame(e.Frame).Ended(e.ID)
			}
		}
		l.ledger = append(l.ledger, l.m.Flush().Facts...)
		l.restart(len(l.ledger))
		return true
	case n == 3:
		added := &journal.Added{Items: []item.Item{item.UserText("more")}}
		if l.m.Check(journal.Fact{Body: added}) == nil {
			l.step(added)
			l.ready()
			return false
		}
	case n == 2 && d.flip() && l.m.cancelled == nil:
		l.step(&journal.Cancelled{})
		l.ready()
		return false
	}
	if l.m.Status() == Failed {
		l.step(&journal.Resumed{MaxTurns: -1})
		l.ready()
		return false
	}
	if at := l.m.Deadline(); at != 0 && len(l.effects) == 0 && d.roll(4) == 1 {
		l.now = max(l.now, at)
		l.ready()
		return false
	}
	if list := l.m.Interruptions(); len(list) > 0 && (len(l.effects) == 0 || d.flip()) {
		l.decide(list[d.roll(len(list))])
		l.ready()
		return false
	}
	if len(l.effects) == 0 {
		l.t.Fatalf("%s, nothing in flight and nobody to ask", l.m.Status())
	}
	i := d.roll(len(l.effects))
	e := l.effects[i]
	l.effects = slices.Delete(l.effects, i, i+1)
	f := l.m.Frame(e.Frame)
	b := l.outcome(f, e)
	frame := e.Frame
	if _, ok := b.(*journal.Started); ok {
		frame = FrameName(e.Frame, e.About)
		l.nested++
	}
	if l.m.Check(journal.Fact{Frame: frame, Time: l.now, Body: b}) == nil {
		l.stepIn(frame, b)
	} else if e.ID.Kind == journal.EffectPlan { // call ids collide: nobody can plan this response
		l.stepIn(frame, &journal.Failed{ID: e.ID})
		if l.m.cancelled == nil {
			l.step(&journal.Cancelled{})
		}
	} else if _, handed := f.handed[e.ID]; handed {
		l.t.Fatalf("the outcome of %s is refused: %+v: %v", e.ID, b, l.m.Check(journal.Fact{Frame: frame, Time: l.now, Body: b}))
	}
	l.ready()
	return false
}

// restart replays what is left of the ledger and claims the run.
func (l *live) restart(n int) {
	l.ledger = l.ledger[:n]
	l.m, l.effects = New(), nil
	for _, f := range l.ledger {
		if err := l.m.Replay(f); err != nil {
			l.t.Fatal(err)
		}
	}
	l.step(&journal.Claimed{Epoch: l.m.Epoch() + 1, Gone: l.d.flip()})
	l.ready()
}

func (l *live) decide(in Interruption) {
	b := &journal.Decided{Call: in.Call, Stage: in.Stage, Digest: in.Digest, Verdict: pick(&l.d, journal.Approve, journal.Reject)}
	switch c := l.m.Frame(in.Frame).find(in.Call); {
	case in.Kind == InDoubt:
		b.Verdict = pick(&l.d, journal.GiveUp, journal.Settle, journal.Retry)
		l.now = max(l.now, in.NotBefore)
	case in.Kind == External:
		b.Verdict = journal.Settle
	case in.Stage == 0 && c.spec.Identity != "":
		b.Sticky = l.d.flip()
	}
	l.stepIn(in.Frame, b)
}

// outcome returns what came of an effect.
func (l *live) outcome(f *Frame, e Effect) journal.Body {
	d := &l.d
	if !l.calm && d.roll(8) == 1 && e.ID.Kind != journal.EffectTool && e.ID.Kind != journal.EffectWait && e.About.Kind != journal.EffectTool {
		b := &journal.Failed{ID: e.ID, Unknown: d.flip()}
		if e.ID.Kind == journal.EffectModel && d.flip() {
			b.RetryAt = l.now + 5000
		}
		return b
	}
	switch e.ID.Kind {
	case journal.EffectLoad:
		return &journal.Loaded{}
	case journal.EffectPrepare:
		return l.prepared(f, e)
	case journal.EffectModel:
		return &journal.Responded{ID: e.ID, ResponseID: pick(d, "", "r"), Items: l.response()}
	case journal.EffectPlan:
		return l.planned(f)
	case journal.EffectTransfer:
		return l.transferred(f, e)
	case journal.EffectGuard, journal.EffectOutput, journal.EffectCheck, journal.EffectHandle:
		return l.said(f, e)
	case journal.EffectJudge:
		return &journal.Judged{N: e.ID.N, Final: l.calm || d.flip()}
	case journal.EffectEnter:
		return &journal.Started{Agent: "b", Session: pick(d, nil, nil, &journal.SessionRef{ID: "s2" + e.Frame + e.ID.String(), Own: d.flip(), Batches: d.flip()}),
			UniqueCallIDs: d.flip(), MaxTurns: d.roll(4), Parallel: d.roll(3), Guards: randomGuards(d)}
	case journal.EffectLeave:
		s := &journal.Settled{ID: e.About, Output: f.output(f.find(e.About), "left")}
		s.ID.A = 1
		if info, _ := f.Call(e.About); info.Failure != nil {
			s.Outcome = journal.ToolFailed
		}
		return s
	case journal.EffectSession:
		return &journal.Confirmed{N: e.ID.N, Upto: e.Upto}
	case journal.EffectReconcile:
		if d.flip() {
			return &journal.Absent{ID: e.About}
		}
		if e.About.Kind == journal.EffectTool {
			return &journal.Settled{ID: e.About, Outcome: pick(d, journal.Done, journal.Unknown), Output: f.output(f.find(e.About), "found")}
		}
		if e.About.Kind == journal.EffectModel {
			return &journal.Responded{ID: e.About, Items: l.response()}
		}
		return &journal.Confirmed{N: e.ID.N, Upto: e.Upto, Found: true}
	case journal.EffectWait:
		l.now = max(l.now, e.Until)
		return &journal.Fired{ID: e.ID}
	}
	s := &journal.Settled{ID: e.ID, Outcome: pick(d, journal.Done, journal.ToolFailed, journal.Unknown, journal.NotExecuted, journal.Pending, journal.AsksAgain)}
	switch s.Outcome {
	case journal.Unknown:
		s.Running = d.flip()
	case journal.NotExecuted, journal.Pending, journal.AsksAgain:
		return s
	}
	s.Output = f.output(f.find(e.ID), "out")
	return s
}

func (l *live) response() []item.Item {
	if l.calm {
		return []item.Item{item.MessageItem("", "done")}
	}
	var list []item.Item
	for range 1 + l.d.roll(3) {
		list = append(list, fuzzItems[l.d.roll(6)])
	}
	return list
}

func (l *live) prepared(f *Frame, e Effect) journal.Body {
	b := randomPrepared(&l.d, f).(*journal.Prepared)
	b.N, b.Upto, b.Same = e.ID.N, e.Upto, e.ID.N
	if b.Manifest == nil && f.turn.manifest.Agent == f.agent {
		b.Same = f.turn.same
	} else if b.Manifest == nil {
		b.Manifest = &journal.Manifest{}
	}
	if b.Manifest != nil {
		b.Manifest.Agent = f.agent
		b.Manifest.GuardsOutput = b.Manifest.GuardsOutput && !f.managed()
	}
	if b.Manifest != nil && b.Manifest.ToolUse == "?" {
		b.Manifest.ToolUse = ToolUseAgain
	}
	if checkView(b.View, f.Places(b.Upto), f.unsent(b.Upto)) != nil {
		b.View = nil
	}
	return b
}

func (l *live) transferred(f *Frame, e Effect) journal.Body {
	b := &journal.Transferred{N: e.ID.N, P: e.ID.P, Agent: pick(&l.d, "a", "b")}
	if c := f.find(journal.EffectID{Kind: journal.EffectTool, N: b.N, P: b.P}); c != nil {
		b.Output = f.output(c, "over to you")
	}
	b.View = randomView(&l.d, f, len(f.history))
	if f.checkTransferred(b) != nil {
		b.View = nil
	}
	return b
}

func (l *live) planned(f *Frame) journal.Body {
	b := randomPlanned(&l.d, f).(*journal.Planned)
	if l.calm && len(b.Calls) == 0 {
		b.Final = journal.FinalMessage
	}
	return b
}
