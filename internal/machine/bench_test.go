package machine

import (
	"testing"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// turns plays turns of one call against the machine alone. The items are what a model
// and a tool would have made; facts are stepped as a driver steps them.
type turns struct {
	t        testing.TB
	m        *Machine
	n        int
	facts    uint64
	keep     bool // the facts, in ledger
	ledger   []journal.Fact
	call     []item.Item
	out      item.Item
	digest   item.Digest
	manifest *journal.Manifest
}

func newTurns(t testing.TB, session *journal.SessionRef) *turns {
	p := &turns{t: t, m: New(), call: []item.Item{item.ReasoningItem("rs_1", ""), item.FunctionCallItem("fc_1", "call_1", "look", `{"order":9}`)},
		out: item.FunctionOutput("call_1", "shipped"), manifest: &journal.Manifest{Agent: "desk",
			Tools: []journal.ToolSpec{{Name: "look", Identity: "local/look"}}}}
	p.digest, _, _ = item.DigestArguments(`{"order":9}`)
	p.step(&journal.Started{Run: "run-1", Agent: "desk", Input: []item.Item{item.UserText("hello")}, Session: session})
	p.step(&journal.Claimed{Epoch: 1})
	if session != nil {
		p.ready()
		p.step(&journal.Loaded{})
	}
	p.ready()
	return p
}

func (p *turns) step(b journal.Body) {
	f := journal.Fact{Time: 1000, Body: b}
	if err := p.m.Check(f); err != nil {
		p.t.Fatal(err)
	}
	p.m.Step(f)
}

func (p *turns) ready() {
	rd := p.m.Ready(1000)
	p.facts += uint64(len(rd.Facts))
	if p.keep {
		p.ledger = append(p.ledger, rd.Facts...)
	}
	if rd.MustSync {
		p.m.Advance(p.facts)
	}
}

func (p *turns) turn() {
	p.n++
	prepared := &journal.Prepared{N: p.n, Upto: p.m.Settled(), Same: 1}
	if p.n == 1 {
		prepared.Manifest = p.manifest
	}
	p.step(prepared)
	p.ready()
	p.step(&journal.Responded{ID: journal.EffectID{Kind: journal.EffectModel, N: p.n, A: 1}, Items: p.call})
	p.ready()
	p.step(&journal.Planned{N: p.n, Calls: []journal.PlannedCall{{P: 1, Digest: p.digest}}})
	p.ready()
	p.step(&journal.Settled{ID: journal.EffectID{Kind: journal.EffectTool, N: p.n, P: 1, A: 1}, Output: p.out})
	p.ready()
}

// BenchmarkToolTurn is a turn of one call, the machine alone, in runs of 1,000 turns. It
// reports how the last turns of a run compare with the first.
func BenchmarkToolTurn(b *testing.B) {
	for _, c := range []struct {
		name    string
		session *journal.SessionRef
	}{{"no-session", nil}, {"own-session", &journal.SessionRef{ID: "s", Own: true}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var early, late time.Duration
			p := newTurns(b, c.session)
			for b.Loop() {
				if p.n == 1000 {
					p = newTurns(b, c.session)
				}
				from := time.Now()
				p.turn()
				switch took := time.Since(from); {
				case p.n > 50 && p.n <= 150:
					early += took
				case p.n > 900:
					late += took
				}
			}
			if early > 0 && late > 0 {
				b.ReportMetric(float64(late)/float64(early), "late/early")
			}
		})
	}
}

// BenchmarkReplay folds the ledger of a run of 1,000 turns.
func BenchmarkReplay(b *testing.B) {
	p := newTurns(b, nil)
	p.keep, p.ledger = true, []journal.Fact{{Time: 1000, Body: p.m.Started()}, {Time: 1000, Body: &journal.Claimed{Epoch: 1}}}
	for range 1000 {
		p.turn()
	}
	for b.Loop() {
		m := New()
		for _, f := range p.ledger {
			if err := m.Replay(f); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(p.ledger)), "ns/fact")
}

// TestATurnCostsTheSame pins the allocations of a turn, early and late in a run.
func TestATurnCostsTheSame(t *testing.T) {
	for _, session := range []*journal.SessionRef{nil, {ID: "s", Own: true}} {
		p := newTurns(t, session)
		for p.n < 50 {
			p.turn()
		}
		early := testing.AllocsPerRun(100, p.turn)
		for p.n < 900 {
			p.turn()
		}
		late := testing.AllocsPerRun(100, p.turn)
		if early >= 30 || late >= 30 || late > early+1 {
			t.Errorf("%v allocations a turn early, %v late; want fewer than 30, and as many", early, late)
		}
	}
}
