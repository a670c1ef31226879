package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// slotOf is the place that a worker has among those that work at a time.
func slotOf(number, workers int) int { return number % workers }

// role draws what a worker does beside its tasks. Those in the first places take up runs; some of the others recover once, as a
// service does that has no supervisor.
func (p *parent) role(slot int, rnd *rand.Rand) (args []string) {
	switch {
	case p.o.host.engine(), p.o.lie == lieAlone:
	case slot < p.o.supervisors:
		args = append(args, "-supervise")
	case rnd.IntN(3) == 0:
		args = append(args, "-recover")
	}
	if p.o.lie != "" {
		args = append(args, "-lie", string(p.o.lie))
	}
	return args
}

// keepAlive starts a worker, and another whenever it died, until one has nothing more to do.
func (p *parent) keepAlive(ctx context.Context, slot int, end time.Time) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for n := slot; ctx.Err() == nil; n += p.o.workers {
		killed, err := p.life(ctx, self, n, end)
		if err != nil {
			return fmt.Errorf("worker %d: %w", n, err)
		}
		if !killed {
			return nil
		}
	}
	return nil
}

// life is one worker's, from its start to its death.
func (p *parent) life(ctx context.Context, self string, number int, end time.Time) (killed bool, err error) {
	rnd := drawn(p.o.seed, "worker", number)
	args := []string{workerWord, "-number", fmt.Sprint(number), "-url", p.url, "-seed", fmt.Sprint(p.o.seed), "-dir", p.o.dir, "-parallel", fmt.Sprint(p.o.parallel),
		"-postgres", p.outages.url, "-engine", p.outages.address}
	if after, at := newDeath(rnd); at > 0 && time.Now().Before(end) {
		args = append(args, "-die", fmt.Sprint(at), fmt.Sprintf("-after=%v", after))
	}
	if elsewhere := rnd.IntN(3) == 0; elsewhere && !p.o.host.engine() { // whose claims have no host
		args = append(args, "-elsewhere", "host-"+fmt.Sprint(number))
	}
	args = append(args, p.role(slotOf(number, p.o.workers), rnd)...)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		return false, err
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	p.employ(number, cmd.Process)
	span := time.NewTimer(200*time.Millisecond + time.Duration(rnd.Int64N(int64(3*time.Second)*int64(p.o.host.lives()))))
	defer span.Stop()
	pause := time.NewTimer(time.Duration(rnd.Int64N(int64(4 * time.Second)))) // many die before
	defer pause.Stop()
	for wait := true; wait; {
		select {
		case err = <-gone:
			wait = false
		case <-pause.C:
			p.freeze(number, time.Duration(rnd.Int64N(int64(2*time.Second))))
		case <-span.C:
			if time.Now().Before(end) {
				cmd.Process.Kill()
			}
		}
	}
	p.bury(number)
	if ctx.Err() != nil {
		return false, nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == -1 { // a signal, and none but SIGKILL is sent
		p.mu.Lock()
		defer p.mu.Unlock()
		p.kills++
		return true, nil
	}
	return false, err
}

// employ remembers the process of a worker.
func (p *parent) employ(worker int, process *os.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.processes[worker] = process
}

// freeze stops a worker for a while: it becomes a zombie, that still believes in what it holds. Others are given its tasks.
func (p *parent) freeze(worker int, span time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	process := p.processes[worker]
	if process == nil || p.draining || time.Now().After(p.stops) || process.Signal(syscall.SIGSTOP) != nil {
		return
	}
	p.seen.stopped++
	for id, a := range p.assigned {
		if a.worker == worker && !a.frozen {
			a.frozen = true
			a.job.holders--
			a.job.note("worker %d: %s: stopped for %v", worker, a.task.Do, span.Round(time.Millisecond))
			p.assigned[id] = a
		}
	}
	time.AfterFunc(span, func() { process.Signal(syscall.SIGCONT) })
}

// longest is how long a worker that asks for it is stopped: until others may settle what it is doing.
const longest = 5 * time.Second

// serveFreeze stops the worker that asks for it.
func (p *parent) serveFreeze(_ http.ResponseWriter, r *http.Request) {
	var worker int
	if _, err := fmt.Sscan(r.URL.Query().Get("worker"), &worker); err != nil {
		return
	}
	p.mu.Lock()
	span := time.Duration(p.rnd.Int64N(int64(longest)))
	p.mu.Unlock()
	p.freeze(worker, span)
}

// lastWorker is a process that recovers what nobody has, and ends. With an engine it is there until that has nothing left to do.
func (p *parent) lastWorker(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, workerWord, "-url", p.url, "-seed", fmt.Sprint(p.o.seed), "-dir", p.o.dir, "-parallel", "0", "-recover",
		"-postgres", p.outages.url, "-engine", p.outages.address)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if !p.o.host.engine() {
		return cmd.Run()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = p.awaitEngine(ctx)
	cmd.Process.Kill()
	cmd.Wait() // it was killed
	return err
}

// awaitEngine waits until the engine has nothing left to do for the runs that have ended, and knows nothing of an end of the others.
func (p *parent) awaitEngine(ctx context.Context) error {
	end := time.Now().Add(p.o.patience)
	for _, j := range p.runs {
		for {
			over, err := p.o.host.Over(ctx, p.outages.address, j.plan.Run)
			switch {
			case err != nil:
				return err
			case over && !j.ended:
				p.blame(j, "the engine has ended it, and it waits")
			case !over && j.ended && time.Now().Before(end):
				time.Sleep(50 * time.Millisecond)
				continue
			case !over && j.ended:
				p.blame(j, "it has ended, and the engine goes on with it")
			}
			break
		}
	}
	return nil
}
