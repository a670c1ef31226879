package main

import (
	"flag"
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
