// Bench measures what Pawl costs, each time beside a floor that is measured in the same run: the smallest program that
// does the same work without a library. Ratios hold on any machine, microseconds on one. It prints a line for each measure:
//
//	bench: NAME pawl=X floor=Y ratio=Z limit=L ok|OVER
//
// X and Y are a turn's cost, and a turn is one model call: CPU time of this process in microseconds, unless the measure
// says otherwise. The model server is a process of its own. A limit with an x is of the ratio, another one of X. Where more
// is better the limit has a + and is the least that the ratio may be.
//
//	http-50x1, http-50x8   50 turns with 1 and 8 calls, blocking, the whole history in each request; floor: a loop on net/http
//	                       and encoding/json whose request is what it has, with the new items' bytes appended
//	http-1000x1            1,000 turns
//	chain-1000x1           1,000 turns on previous_response_id; the floor's are too
//	stream-50x1            50 turns, streamed; the floor parses each event
//	inproc-10x1            10 turns on a model in this process; floor: parse the arguments, run the tool, append
//	inproc-10x1-allocs     the same, in allocations
//	inproc-flat            turns 900 to 1,000 of a run; the floor is turns 50 to 150
//	state-1000             saving and loading a paused run of 1,000 turns, as a whole; floor: decoding its items once
//	journal-bytes          bytes of ledger a turn; floor: the turn's items
//	durable-turn           wall time a turn in an SQLite file that waits for the disk, session in the same file; floor: the
//	                       same rows in as many transactions
//	group-64               appends a second of 64 runs side by side in that file, which share its commits; floor: 64
//	                       goroutines that make the same appends, batches included, and nothing else
//
// The client's own garbage collection counts. Samples of Pawl and floor alternate; the medians are printed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/pprof"
)

var (
	serving  = flag.Bool("serve", false, "be the model server; used by the program itself")
	check    = flag.Bool("check", false, "exit with 1 if a measure is over its limit")
	only     = flag.String("run", "", "take only the measures whose name matches this regular expression")
	rounds   = flag.Int("rounds", 9, "samples of each measure")
	pawlOnly = flag.Bool("pawl", false, "leave the floors out, for a profile")
	profile  = flag.String("cpuprofile", "", "write a CPU profile to this file")
)

func main() {
	flag.Parse()
	err := func() error {
		if *serving {
			return serve()
		}
		names, err := regexp.Compile(*only)
		if err != nil {
			return err
		}
		stop, err := startProfile(*profile)
		if err != nil {
			return err
		}
		over, err := run(names, *rounds)
		if err = errors.Join(err, stop()); err != nil {
			return err
		}
		if *check && over > 0 {
			return fmt.Errorf("%d measures are over their limit", over)
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// run takes the measures and returns how many are over their limit.
func run(names *regexp.Regexp, rounds int) (over int, err error) {
	s, stop, err := startServer()
	if err != nil {
		return 0, err
	}
	defer stop()
	d, err := openDurable()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	measures, err := measures(s, d)
	if err != nil {
		return 0, err
	}
	for _, m := range measures {
		if !names.MatchString(m.name) {
			continue
		}
		r, err := m.take(rounds)
		if err != nil {
			return over, fmt.Errorf("%s: %w", m.name, err)
		}
		verdict := "ok"
		if r.over() {
			verdict = "OVER"
			over++
		}
		fmt.Printf("bench: %-18s pawl=%-8.1f floor=%-8.1f ratio=%-5.2f limit=%-5s %s\n", m.name, r.pawl, r.floor, r.ratio, m.limitText(), verdict)
	}
	return over, nil
}

func measures(s *server, d *durable) ([]*measure, error) {
	overHTTP := func(h httpRun) func() (float64, float64, error) { return pair(cpu, h.pawl(s), h.floor(s)) }
	state, err := paused(stateTurns)
	if err != nil {
		return nil, err
	}
	agent := newScripted(durableTurns).agent()
	bare, err := d.floor(agent)
	if err != nil {
		return nil, err
	}
	together, err := d.group()
	if err != nil {
		return nil, err
	}
	return []*measure{
		{name: "http-50x1", limit: 1.35, sample: overHTTP(httpRun{turns: 50, calls: 1})},
		{name: "http-50x8", limit: 1.5, sample: overHTTP(httpRun{turns: 50, calls: 8})},
		{name: "http-1000x1", limit: 1.3, sample: overHTTP(httpRun{turns: 1000, calls: 1})},
		{name: "chain-1000x1", limit: 1.4, sample: overHTTP(httpRun{turns: 1000, calls: 1, chain: true})},
		{name: "stream-50x1", limit: 1.5, sample: overHTTP(httpRun{turns: 50, calls: 1, stream: true})},
		{name: "inproc-10x1", limit: 9, sample: pair(cpu, inproc(10), inprocFloor(10))},
		{name: "inproc-10x1-allocs", limit: 60, of: limitValue, sample: pair(mallocs, inproc(10), inprocFloor(10))},
		{name: "inproc-flat", limit: 1.15, sample: flat},
		{name: "state-1000", limit: 6, sample: pair(cpu, saveAndLoad(state), decodeAll(state))},
		{name: "journal-bytes", limit: float64(turnBytes(500) + 700), of: limitValue, sample: journalBytes},
		{name: "durable-turn", limit: 1.5, sample: pair(wall, d.pawl(agent), bare)},
		{name: "group-64", limit: 0.6, of: limitShare, sample: together.rates},
	}, nil
}
