// Waiting measures what runs cost that wait for a person: a store, in SQLite and in PostgreSQL, has 100,000 of them, and a worker
// in a process of its own works on it. It prints a line for each measure:
//
//	bench: NAME pawl=X limit=L ok|OVER
//
//	STORE-memory   MB that the worker takes more than one of an empty store, after it took up the runs of the next measure
//	STORE-claim    ms from the decision on a run, in another process, until the worker has it: the median in PostgreSQL, which
//	               tells the worker; the longest in SQLite, where the limit is two polling intervals
//	STORE-page     ms for a page of 100 runs, in a walk through the whole listing; 99 of 100 take less
//
// Only Linux says how much memory a process has.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/pgtest"
	"github.com/pawl-agents/pawl/journal"
)

var (
	runs   = flag.Int("runs", 100_000, "how many runs wait")
	claims = flag.Int("claims", 20, "how many runs are decided")
	work   = flag.String("work", "", "be the worker of this store; used by the program itself")
)

// poll is how often the worker of an SQLite store looks; in PostgreSQL it is told.
const poll = 500 * time.Millisecond

// The limits.
const (
	maxMemory   = 50.0                               // MB
	maxNotified = 100.0                              // ms
	maxPolled   = 2 * float64(poll/time.Millisecond) // ms
	maxPage     = 100.0                              // ms
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := func() error {
		if *work != "" {
			return beWorker(ctx, *work)
		}
		return measureAll(ctx)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "waiting:", err)
		os.Exit(1)
	}
}

var errOver = errors.New("a measure is over its limit")

func measureAll(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "pawl-waiting")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := pgtest.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	databases := map[string]string{}
	for _, name := range []string{"empty", "full"} {
		if databases[name], err = server.Create(ctx, name); err != nil {
			return err
		}
	}
	over, err := measure(ctx, "sqlite", filepath.Join(dir, "empty.db"), filepath.Join(dir, "full.db"))
	if err != nil {
		return err
	}
	more, err := measure(ctx, "postgres", databases["empty"], databases["full"])
	if err == nil && (over || more) {
		err = errOver
	}
	return err
}

// measure takes the measures of a store, which has the waiting runs at full.
func measure(ctx context.Context, name, empty, full string) (over bool, err error) {
	from := time.Now()
	st, err := openStore(ctx, full)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	seed, err := fill(ctx, full, *runs)
	if err != nil {
		return false, err
	}
	fmt.Printf("bench: %s: %d runs wait, stored in %v\n", name, *runs, time.Since(from).Round(time.Second))

	page, err := slowPage(ctx, st)
	if err != nil {
		return false, err
	}
	alone, _, err := observe(ctx, empty, nil)
	if err != nil {
		return false, err
	}
	memory, took, err := observe(ctx, full, func(w *worker) ([]float64, error) { return decide(ctx, st, seed, w) })
	if err != nil {
		return false, err
	}
	slices.Sort(took)
	claim, limit := took[len(took)/2], maxNotified
	if name == "sqlite" {
		claim, limit = took[len(took)-1], maxPolled
	}
	for _, m := range []struct {
		what         string
		value, limit float64
		unit         string
	}{{"memory", max(memory-alone, 0), maxMemory, "MB"}, {"claim", claim, limit, "ms"}, {"page", page, maxPage, "ms"}} {
		verdict := "ok"
		if m.value > m.limit {
			verdict, over = "OVER", true
		}
		fmt.Printf("bench: %-18s pawl=%.1f%s limit=%.0f%s %s\n", name+"-"+m.what, m.value, m.unit, m.limit, m.unit, verdict)
	}
	return over, nil
}

// slowPage walks through the listing and returns how long a page took, in milliseconds, all but one of a hundred of
// them at most.
func slowPage(ctx context.Context, st store) (float64, error) {
	q := journal.Query{Open: true, Limit: 100}
	var took []float64
	for listed := 0; ; {
		from := time.Now()
		infos, err := st.List(ctx, q)
		if err != nil {
			return 0, err
		}
		took = append(took, milliseconds(time.Since(from)))
		if listed += len(infos); len(infos) < q.Limit {
			if listed < *runs {
				return 0, fmt.Errorf("%d runs are listed, of %d", listed, *runs)
			}
			slices.Sort(took)
			return took[len(took)*99/100], nil
		}
		q.Before = infos[len(infos)-1].Run
	}
}

// decide approves runs, one after the other, and returns how long each took until the worker had it.
func decide(ctx context.Context, st store, call string, w *worker) (took []float64, err error) {
	r := pawl.Runner{Store: st}
	for i := range *claims {
		run := name(i * (*runs / *claims))
		if err := r.Decide(ctx, run, pawl.Approve(call, "ann")); err != nil {
			return nil, err
		}
		from := time.Now()
		if err := w.awaits(run); err != nil {
			return nil, err
		}
		took = append(took, milliseconds(time.Since(from)))
		time.Sleep(time.Duration(i) * poll / time.Duration(*claims)) // not in step with the worker
	}
	return took, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
