package machine_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// player drives a machine and the second reading through the same run.
type player struct {
	*draw
	m      *machine.Machine
	n      *naive
	now    int64
	until  map[effectOf]int64 // when waits end
	script []string
}

// play plays runs, one behind the other, as long as rapid likes.
func play(t *rapid.T, hit func(string)) {
	p := &player{draw: &draw{t: t}}
	p.begin(hit)
	t.Repeat(map[string]func(*rapid.T){
		"steps": func(t *rapid.T) {
			p.draw.t = t
			if p.n.read().finished != nil && p.maybe("next run") {
				p.begin(hit)
			}
			for range 4 {
				p.step()
				p.probe(true)
				p.probe(false)
				p.compare()
			}
		},
	})
	p.draw.t = t
	p.shadow()
}

// begin starts another run, after asking about starts that are none.
func (p *player) begin(hit func(string)) {
	p.m, p.n, p.now, p.until, p.script = machine.New(), &naive{hit: hit}, 1000, map[effectOf]int64{}, nil
	start := p.started()
	p.ask(journal.Fact{Time: p.now, Body: p.badStart(*start)})
	p.ask(journal.Fact{Time: p.now, Body: &journal.Claimed{Epoch: 1}})
	p.do(start)
	p.do(&journal.Claimed{Epoch: 1})
	p.descend()
	if p.seldom(3, "crash at once") {
		p.save(max(2, p.n.read().durable))
		p.crash()
	}
}

// note adds a line to the script, which says when, and what was done.
func (p *player) note(format string, args ...any) {
	p.script = append(p.script, fmt.Sprintf(format, args...))
}

// fail prints what was done and where the readings differ.
func (p *player) fail(what, diff string) {
	p.t.Helper()
	p.t.Fatalf("%s\n%s: - the spec as read here, + the machine\n%s", strings.Join(p.script, "\n"), what, diff)
}

func text(b journal.Body) string { return string(b.Kind()) + " " + show(reflect.ValueOf(b)) }

// ask compares what the readings say of a fact, and says whether it is accepted.
func (p *player) ask(f journal.Fact) bool {
	want, err := p.n.read().check(f), p.m.Check(f)
	if !want.agrees(err) {
		p.fail(fmt.Sprintf("%d check %s %s", f.Time, f.Frame, text(f.Body)), fmt.Sprintf("- %+v\n+ %v", want, err))
	}
	answer := "refused"
	if want.accepted {
		answer = "accepted"
	}
	p.n.hit(fmt.Sprintf("%s %s", f.Body.Kind(), answer))
	for _, sentinel := range want.errs {
		p.n.hit(fmt.Sprintf("refused: %v", sentinel))
	}
	if want.first != nil {
		p.n.hit("refused: decided otherwise")
	}
	return want.accepted
}

// do steps a fact of the run itself if it is accepted.
func (p *player) do(b journal.Body) bool { return p.doIn("", b) }

// doIn steps a fact of a frame if it is accepted.
func (p *player) doIn(frame string, b journal.Body) bool {
	f := journal.Fact{Frame: frame, Time: p.now, Body: b}
	if !p.ask(f) {
		return false
	}
	p.note("%d %s %s", p.now, frame, text(b))
	p.n.step(f)
	if s, ok := b.(*journal.Settled); ok {
		own := *s
		f.Body = &own
	}
	p.m.Step(f)
	return true
}

// probe asks about a fact that is out of place, and may take it if it is accepted after all.
func (p *player) probe(take bool) {
	w := pick(p.draw, "frame", p.n.read().frames...)
	frame, b := w.name, p.stray(w)
	switch b.(type) {
	case *journal.Claimed, *journal.Cancelled:
		take = false // these are steps of their own
	case *journal.Confirmed:
		take = false // an own session's is handed out with its batch, which only a rule does
	case *journal.Started:
		frame, b = p.strayNested(w, b)
	}
	if !take || p.maybe("only asked") {
		if p.seldom(4, "in no frame") {
			frame = pick(p.draw, "no frame", "1.0", "nested", "1.0/1.0")
		}
		p.ask(journal.Fact{Frame: frame, Time: p.now, Body: b})
		return
	}
	p.doIn(frame, b)
}

// step does what a driver does, or a person, or a crash.
func (p *player) step() {
	w := p.n.read()
	do := pick(p.draw, "do", "work", "work", "work", "work", "decide", "trouble", "work", "work", "work", "work", "work", "work",
		"work", "work", "decide", "trouble", "claim", "crash", "wait", "flush", "end", "cancel", "resume", "shadow", "save", "add", "observe")
	if slices.ContainsFunc(w.frames, func(in *world) bool { return in.running() > 0 }) && p.maybe("shake") {
		do = pick(p.draw, "do", "trouble", "claim", "insist", "crash", "end", "cancel", "claim", "trouble")
	}
	switch do {
	case "work":
		p.work()
	case "trouble":
		p.trouble()
	case "insist":
		for range 3 {
			p.trouble()
		}
	case "decide":
		p.decide()
	case "claim":
		p.claim()
		if p.maybe("again") {
			p.claim()
		}
	case "crash":
		p.crash()
	case "wait":
		p.now += pick(p.draw, "time", int64(1), 1000, 2000, 700_000)
		p.note("%d", p.now)
	case "flush":
		p.hand("flush", p.n.flush(), p.m.Flush())
	case "end":
		p.endEffect()
	case "cancel":
		if p.maybe("cancel") {
			p.do(&journal.Cancelled{})
		}
	case "resume":
		p.do(&journal.Resumed{MaxTurns: pick(p.draw, "max turns", 0, 9, -1), Context: pick(p.draw, "context", "", "two")})
	case "shadow":
		p.shadow()
	case "add":
		p.do(p.input())
	case "observe":
		p.do(&journal.Observed{N: uint64(w.facts)})
	case "save":
		p.save(pick(p.draw, "facts", w.facts, w.durable, (w.facts+w.durable)/2))
	}
}

// trouble gives an effect the outcome that a driver fears.
func (p *player) trouble() {
	if p.n.read().inFlight() == 0 || p.maybe("ready") {
		p.ready()
	}
	p.outcome(p.badly)
}

// work takes the run one step on, whatever it waits for.
func (p *player) work() {
	w := p.n.read()
	if w.inFlight() == 0 || p.maybe("ready") {
		p.ready()
		w = p.n.read()
		if w.inFlight() > 0 && p.maybe("in flight") {
			return
		}
	}
	switch {
	case w.inFlight() > 0:
		p.outcome(p.well)
	case w.failure != nil:
		p.do(&journal.Resumed{MaxTurns: pick(p.draw, "max turns", 9, 0, -1)})
	case w.end() != nil && p.seldom(2, "cancelled at its end"):
		p.do(&journal.Cancelled{})
	case len(w.interruptions()) > 0:
		p.decide()
	default:
		p.claim()
	}
}

// ready asks both readings what to do, and mostly saves what must be saved.
func (p *player) ready() {
	rd := p.n.ready(p.now)
	got := p.m.Ready(p.now)
	p.hand(fmt.Sprintf("%d ready", p.now), rd, got)
	for _, e := range rd.Effects {
		p.until[effectOf{e.Frame, e.ID}] = e.Until
		p.note("    start %s %v", e.Frame, e.ID)
	}
	if rd.MustSync && !p.seldom(3, "not saved") {
		p.save(p.n.read().facts)
	}
}

func (p *player) save(facts int) {
	p.note("durable %d", facts)
	p.n.advance(facts)
	p.m.Advance(uint64(facts))
}

// hand compares what is handed out.
func (p *player) hand(what string, want, got machine.Ready) {
	p.note("%s", what)
	got.Facts = slices.Clone(got.Facts)
	if len(got.Effects) == 0 {
		got.Effects = nil
	}
	if len(got.Batches) == 0 {
		got.Batches = nil
	}
	if len(got.Facts) == 0 {
		got.Facts = nil
	}
	for i, f := range got.Facts {
		if b, ok := f.Body.(*journal.Failed); ok && (b.Code == machine.CodeMaxTurns || b.Code == machine.CodeMaxDepth) {
			plain := *b
			plain.Error = ""
			got.Facts[i].Body = &plain
		}
	}
	if !same(want, got) {
		p.fail(what, cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
}

// crash loses what was not durable, replays the rest and claims the run, or forks it first.
func (p *player) crash() {
	w := p.n.read()
	p.note("crash with %d facts", w.durable)
	facts := p.n.facts()[:w.durable]
	if len(facts) == 0 {
		return
	}
	p.m, p.n = p.replayed(facts)
	p.compare()
	if w := p.n.read(); w.finished == nil && p.maybe("fork") {
		b := &journal.Forked{Run: pick(p.draw, "run", p.next("fork "), w.run)}
		if p.maybe("session") {
			b.Session = p.session()
		}
		p.do(b)
	}
	p.claim()
}

func (p *player) claim() {
	p.do(&journal.Claimed{Epoch: p.n.read().epoch + 1, Gone: p.maybe("gone"), Owner: journal.Owner{Host: p.next("host")}})
}

// replayed makes both readings of a ledger.
func (p *player) replayed(facts []journal.Fact) (*machine.Machine, *naive) {
	m, n := machine.New(), &naive{hit: p.n.hit}
	for _, f := range facts {
		if err := m.Replay(f); err != nil {
			p.fail("replay "+text(f.Body), err.Error())
		}
		n.replay(f)
	}
	return m, n
}

// shadow compares machines that replayed what was stepped [M16.5].
func (p *player) shadow() {
	other := *p
	other.m, other.n = p.replayed(p.n.facts())
	other.note("replayed")
	other.compare()
}

// compare compares everything else that is said of the run.
func (p *player) compare() {
	w := p.n.read()
	want, got := w.view(), viewOf(p.m, w)
	if !same(want, got) {
		p.fail("then", cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
}
