package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

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
	args := []string{workerWord, "-number", fmt.Sprint(number), "-url", p.url, "-seed", fmt.Sprint(p.o.seed), "-dir", p.o.dir, "-parallel", fmt.Sprint(p.o.parallel)}
	if after, at := newDeath(rnd); at > 0 && time.Now().Before(end) {
		args = append(args, "-die", fmt.Sprint(at), fmt.Sprintf("-after=%v", after))
	}
	if rnd.IntN(3) == 0 {
		args = append(args, "-elsewhere", "host-"+fmt.Sprint(number))
	}
	if p.o.lie {
		args = append(args, "-lie")
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		return false, err
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	span := time.NewTimer(200*time.Millisecond + time.Duration(rnd.Int64N(int64(3*time.Second))))
	defer span.Stop()
	for wait := true; wait; {
		select {
		case err = <-gone:
			wait = false
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
