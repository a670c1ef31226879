package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
)

// clerk decides about runs that wait, with the command pawl, one after another until ctx ends. Now and then it is
// killed.
func (p *parent) clerk(ctx context.Context) {
	rnd := drawn(p.o.seed, "clerk")
	for ctx.Err() == nil {
		j := p.waiting()
		if j == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		patience := time.Minute
		if rnd.IntN(4) == 0 && !p.isDraining() {
			patience = time.Duration(10+rnd.IntN(60)) * time.Millisecond
		}
		began := time.Now()
		decided, killed, err := p.clerkDecides(ctx, j, patience)
		p.mu.Lock()
		switch {
		case killed:
			p.kills++
		case err != nil && p.outages.wasDown(began):
		case err != nil && ctx.Err() == nil:
			p.violations = append(p.violations, violation{j.plan.Run, "the command pawl: " + err.Error()})
		case decided:
			j.waiting = false
		}
		p.mu.Unlock()
	}
}

func (p *parent) isDraining() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.draining
}

// waiting returns one of the runs that wait for decisions, nil if none does.
func (p *parent) waiting() *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*job
	for _, j := range p.open {
		if j.waiting && !j.plan.Leave && j.holders == 0 {
			list = append(list, j)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[p.rnd.IntN(len(list))]
}

// clerkDecides decides about what waits in one run, if it can: it lets pass what may expire.
func (p *parent) clerkDecides(ctx context.Context, j *job, patience time.Duration) (decided, killed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var shown struct {
		Result struct {
			Waiting []struct {
				Call, Kind, Tool, Arguments string
			}
		}
	}
	killed, err = p.pawl(ctx, &shown, "show", j.plan.Run)
	for _, w := range shown.Result.Waiting {
		if killed || err != nil {
			break
		}
		var arguments struct{ Call string }
		unreadable := json.Unmarshal([]byte(w.Arguments), &arguments) != nil
		in := pawl.Interruption{Run: j.plan.Run, ID: w.Call, Tool: w.Tool, Kind: pawl.InterruptionKind(w.Kind), CallID: arguments.Call, Unreadable: unreadable}
		if in.Kind == pawl.InDoubt {
			if in.Key, err = p.log.key(in.Run, in.CallID); err != nil || in.Key == "" {
				continue // a worker knows from when on it may be run again
			}
		}
		if toolOf(w.Tool).expires > 0 {
			in.Expires = time.Now() // or later: the command does not say, and the clerk lets it pass
		}
		d, ok, failed := decide(p.log, p.o.seed, in, 0)
		if key := p.arrived(in.CallID); in.Kind == pawl.External && key != "" {
			d, ok = pawl.Settle(in.ID, "the far side", delivered(key)), true
		}
		if err = failed; ok {
			killed, err = p.pawl(ctx, nil, words(in.Run, d)...)
			decided = !killed && err == nil
		}
	}
	return decided, killed, err
}

// words is a decision as a command line.
func words(run string, d pawl.Decision) []string {
	list := []string{"settle", run, d.Interruption, "--by", d.By}
	switch d.Verdict {
	case journal.Approve:
		list[0] = "approve"
		if d.Arguments != "" {
			list = append(list, "--arguments", d.Arguments)
		}
	case journal.Reject:
		list[0] = "reject"
		list = append(list, "--message", d.Message)
	case journal.Settle:
		list = append(list, "--output", d.Output)
	case journal.Retry:
		list = append(list, "--retry")
	case journal.GiveUp:
		list = append(list, "--give-up")
	}
	if d.Always {
		list = append(list, "--always")
	}
	return list
}

// pawl runs the command on the store and reads what it prints. That a decision comes too late, or that others hold the
// store's lock for too long, is no error.
func (p *parent) pawl(ctx context.Context, into any, args ...string) (killed bool, err error) {
	cmd := exec.CommandContext(ctx, p.o.pawl, append(args, "--json", "--store", cmp.Or(p.outages.url, filepath.Join(p.o.dir, runsFile)))...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == -1 {
			return true, nil
		}
		late := slices.ContainsFunc([]string{"decided", "not_waiting", "in_flight", "unknown_call", "bad_decision", "cancelled", "store_busy"},
			func(code string) bool { return strings.Contains(string(out), fmt.Sprintf("\"code\": %q", code)) })
		if late || exit.ExitCode() == 3 {
			err = nil
		}
	}
	if ctx.Err() != nil {
		return false, nil // it was too late to start it
	}
	if err != nil {
		return false, fmt.Errorf("%v: %w: %s", args, err, out)
	}
	if into != nil {
		err = json.Unmarshal(out, into)
	}
	return false, err
}
