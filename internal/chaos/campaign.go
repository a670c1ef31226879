// Package chaos drives many runs in several processes on one SQLite file, kills those processes with SIGKILL at random
// moments, and says what became of every effect. It is a program as a package, so that a module of an engine can be the program with its
// [Host].
//
// The program plays all parts. As the parent it is the model's server, the far side of the tools, and the
// campaign: it hands out work (start a run, resume it, decide about its calls, deliver a result that comes later, cancel the
// run), often the same run to two processes at once, and kills. It stops processes, too, and lets them go on when others have
// taken their runs over. As a worker, which it runs as a process of its own, it has a Runner, some agents and the store, and
// does what it is handed. Two of the workers take up runs (Runner.Work) beside that, and some runs are left to them. Some workers claim
// runs as if from another host, so that nobody can know when they are dead. With -postgres the store is a PostgreSQL server of the
// campaign's own, which is killed, too.
//
// The bodies of the tools write what they do to an effect log, which neither the runs nor their store know of. At the
// end the parent lets every run go on to its end, and compares four witnesses: the ledgers, the effect log, the rows of the
// sessions and the requests as the model's server received them. It prints
//
//	chaos: K kills, R runs, E effects, V violations
//
// and for each violation a file with everything there is to know about the run. Run it with "make chaos DURATION=10m". With
// -lie something is broken on purpose, and must be found.
package chaos

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// options are the flags of the parent.
type options struct {
	duration time.Duration
	seed     uint64
	workers  int
	parallel int
	dir      string
	pawl     string
	lie      lie

	supervisors int
	patience    time.Duration
	postgres    bool
	host        Host
}

// Main is the program. It does not return: the exit code is 1 if anything is wrong.
func Main(h Host) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if IsWorker(os.Args) {
		if err := Work(ctx, h, os.Args); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(Run(ctx, h, os.Args[1:], os.Stdout, os.Stderr))
}

// Run is the parent, for which IsWorker does not hold. The exit code is 1 if anything is wrong, 2 if it is the flags.
func Run(ctx context.Context, h Host, args []string, out, errs io.Writer) int {
	var o options
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(errs)
	f.DurationVar(&o.duration, "duration", time.Minute, "kill for so long; the runs then have as long as they need")
	f.Uint64Var(&o.seed, "seed", 0, "what runs do and when processes die is drawn from it; 0 draws a seed")
	f.IntVar(&o.workers, "workers", 4, "processes at a time")
	f.IntVar(&o.parallel, "parallel", 3, "runs that a process drives at a time")
	f.StringVar(&o.dir, "dir", "", "keep the files here instead of in a directory that is removed if all is well")
	f.StringVar(&o.pawl, "pawl", "", "the command pawl, which then takes a part of the decisions")
	f.IntVar(&o.supervisors, "supervisors", 2, "how many of the workers take up runs")
	f.DurationVar(&o.patience, "patience", time.Minute, "how long all runs together may get nowhere when nobody is killed any more")
	f.BoolVar(&o.postgres, "postgres", false, "keep the runs in a PostgreSQL server, which is killed, too")
	f.Var(&o.lie, "lie", "a way to break what is checked, one of "+fmt.Sprint(lies)+": there must be violations then")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if f.NArg() > 0 || o.workers < 1 || o.parallel < 1 {
		fmt.Fprintln(errs, "chaos: takes no arguments, and at least one worker and one run at a time")
		return 2
	}
	if o.host = h; h.engine() && (o.postgres || o.pawl != "") {
		fmt.Fprintln(errs, "chaos: runs on an engine are kept in a file, and the command pawl does not reach them")
		return 2
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	s, err := campaign(ctx, o, out)
	if err != nil {
		fmt.Fprintln(errs, "chaos:", err)
		return 1
	}
	fmt.Fprintf(out, "chaos: %d kills, %d runs, %d effects, %d violations\n", s.kills, s.runs, s.effects, s.violations)
	if s.violations > 0 {
		return 1
	}
	return 0
}

// summary counts what happened.
type summary struct{ kills, runs, effects, violations int }

// campaign is one whole campaign in a directory of its own.
func campaign(ctx context.Context, o options, out io.Writer) (s summary, err error) {
	if o.dir == "" {
		if o.dir, err = scratch(); err != nil {
			return s, err
		}
		defer func() {
			if err == nil && s.violations == 0 {
				os.RemoveAll(o.dir)
			}
		}()
	} else if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return s, err
	}
	if o.pawl != "" {
		if o.pawl, err = exec.LookPath(o.pawl); err != nil {
			return s, err
		}
	}
	fmt.Fprintf(out, "chaos: seed %d, %v, files in %s\n", o.seed, o.duration, o.dir)
	p, err := open(o, out)
	if err != nil {
		return s, err
	}
	if err := p.startServer(ctx); err != nil {
		return s, err
	}
	if p.outages.server != nil {
		defer p.outages.server.Close()
	}
	if err := p.campaign(ctx); err != nil {
		return s, err
	}
	return p.verdict(context.WithoutCancel(ctx))
}

// scratch makes a directory, in memory where there is one: what SIGKILL leaves does not depend on a disk, and
// thousands of syncs do.
func scratch() (string, error) {
	const memory = "/dev/shm"
	parent := memory
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		parent = ""
	}
	return os.MkdirTemp(parent, "pawl-chaos")
}
