package main

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes this binary the model server when it is started again for that.
func TestMain(m *testing.M) {
	flag.Parse()
	if *serving {
		if err := serve(); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// Every piece of work, Pawl's and the floors', does what it is measured for: works check their own results.
func TestWorks(t *testing.T) {
	s, stop, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	d, err := openDurable()
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	agent := newScripted(durableTurns).agent()
	bare, err := d.floor(agent)
	if err != nil {
		t.Fatal(err)
	}
	state, err := paused(3)
	if err != nil {
		t.Fatal(err)
	}
	together, err := d.group()
	if err != nil {
		t.Fatal(err)
	}
	works := map[string]work{"inproc": inproc(3), "inproc floor": inprocFloor(3), "state": saveAndLoad(state), "state floor": decodeAll(state),
		"durable": d.pawl(agent), "durable floor": bare}
	for _, h := range []httpRun{{turns: 3, calls: 1}, {turns: 3, calls: 8}, {turns: 3, calls: 1, chain: true}, {turns: 3, calls: 2, stream: true}} {
		works[fmt.Sprintf("%+v", h)] = h.pawl(s)
		works[fmt.Sprintf("%+v floor", h)] = h.floor(s)
	}
	for name, do := range works {
		for range 2 {
			if turns, err := do(); err != nil || turns < 1 {
				t.Errorf("%s: %d turns, %v", name, turns, err)
			}
		}
	}
	for name, sample := range map[string]func() (float64, float64, error){"flat": flat, "journal bytes": journalBytes, "group": together.rates} {
		if a, b, err := sample(); err != nil || a <= 0 || b <= 0 {
			t.Errorf("%s: %v beside %v, %v", name, a, b, err)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		of       limitKind
		pawl     float64
		floor    float64
		wantOver bool
	}{{limitRatio, 14, 10, false}, {limitRatio, 16, 10, true}, {limitValue, 1.5, 9, false}, {limitValue, 1.6, 9, true},
		{limitShare, 15, 10, false}, {limitShare, 14, 10, true}} {
		m := &measure{limit: 1.5, of: tt.of, sample: func() (float64, float64, error) { return tt.pawl, tt.floor, nil }}
		r, err := m.take(3)
		if err != nil || r.over() != tt.wantOver {
			t.Errorf("%+v: over=%v, %v", tt, r.over(), err)
		}
	}
}

// repeat reports what a turn of the work costs; allocations are those of a whole run.
func repeat(b *testing.B, do work) {
	b.ReportAllocs()
	turns, before := 0, cpu()
	for b.Loop() {
		n, err := do()
		if err != nil {
			b.Fatal(err)
		}
		turns += n
	}
	b.ReportMetric((cpu()-before)/float64(turns), "cpu-µs/turn")
}

func BenchmarkInproc(b *testing.B)      { repeat(b, inproc(10)) }
func BenchmarkInprocFloor(b *testing.B) { repeat(b, inprocFloor(10)) }
func BenchmarkInprocLong(b *testing.B)  { repeat(b, inproc(1000)) }

func BenchmarkSaveAndLoad(b *testing.B) {
	s, err := paused(stateTurns)
	if err != nil {
		b.Fatal(err)
	}
	repeat(b, saveAndLoad(s))
}

func overHTTP(b *testing.B, h httpRun, side func(httpRun, *server) work) {
	s, stop, err := startServer()
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	repeat(b, side(h, s))
}

func BenchmarkHTTP50x1(b *testing.B)      { overHTTP(b, httpRun{turns: 50, calls: 1}, httpRun.pawl) }
func BenchmarkHTTP50x1Floor(b *testing.B) { overHTTP(b, httpRun{turns: 50, calls: 1}, httpRun.floor) }
func BenchmarkHTTP50x8(b *testing.B)      { overHTTP(b, httpRun{turns: 50, calls: 8}, httpRun.pawl) }
func BenchmarkHTTP50x8Floor(b *testing.B) { overHTTP(b, httpRun{turns: 50, calls: 8}, httpRun.floor) }
func BenchmarkHTTP1000x1(b *testing.B)    { overHTTP(b, httpRun{turns: 1000, calls: 1}, httpRun.pawl) }
func BenchmarkHTTP1000x1Floor(b *testing.B) {
	overHTTP(b, httpRun{turns: 1000, calls: 1}, httpRun.floor)
}
func BenchmarkChain1000x1(b *testing.B) {
	overHTTP(b, httpRun{turns: 1000, calls: 1, chain: true}, httpRun.pawl)
}
func BenchmarkStream50x1(b *testing.B) {
	overHTTP(b, httpRun{turns: 50, calls: 1, stream: true}, httpRun.pawl)
}
func BenchmarkStream50x1Floor(b *testing.B) {
	overHTTP(b, httpRun{turns: 50, calls: 1, stream: true}, httpRun.floor)
}

func onDisk(b *testing.B, floor bool) {
	d, err := openDurable()
	if err != nil {
		b.Fatal(err)
	}
	defer d.close()
	agent := newScripted(durableTurns).agent()
	do := d.pawl(agent)
	if floor {
		if do, err = d.floor(agent); err != nil {
			b.Fatal(err)
		}
	}
	repeat(b, do)
}

func BenchmarkDurable(b *testing.B)      { onDisk(b, false) }
func BenchmarkDurableFloor(b *testing.B) { onDisk(b, true) }
