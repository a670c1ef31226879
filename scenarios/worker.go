package scenarios

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
)

// worker is a process that works on the host: it drives the runs that nobody else drives, with the agent of the cell.
type worker struct {
	w    *world
	cmd  *exec.Cmd
	in   io.Closer // the process ends when it is closed
	out  *os.File
	gone bool
}

// isReady is what a worker says when it can be counted on.
const isReady = "ready"

// worker starts a worker. If the request has an input, it starts the run as well. The bodies of its tools do what the request
// says.
func (w *world) worker(r request) *worker {
	w.Helper()
	dir := w.TempDir()
	file := filepath.Join(dir, "job.json")
	if err := write(file, job{Setup: w.setup, Request: r, Work: true}); err != nil {
		w.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	k := &worker{w: w, cmd: exec.Command(exe, jobWord, file)}
	if k.out, err = os.Create(filepath.Join(dir, "output")); err != nil {
		w.Fatal(err)
	}
	k.cmd.Stderr = k.out
	var said io.Reader
	if k.in, err = k.cmd.StdinPipe(); err == nil {
		said, err = k.cmd.StdoutPipe()
	}
	if err == nil {
		err = k.cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.workers = append(w.workers, k)
	if line, err := bufio.NewReader(said).ReadString('\n'); strings.TrimSpace(line) != isReady {
		w.Fatalf("the worker says %q, %v\n%s", line, err, k.output())
	}
	return k
}

// work is what such a process does until its standard input ends.
func work(j job) error {
	p, err := open(j.Setup)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	runner, options := p.worker(j.Request)
	ready := make(chan struct{})
	if j.Request.Input != nil {
		go func() {
			<-ready
			starter, opts := p.options(j.Request)
			if _, err := starter.Run(ctx, runner.Agents[0], j.Request.Input, p.travelling(opts)); err != nil {
				fmt.Fprintln(os.Stderr, "the run:", err)
			}
		}()
	}
	err = p.backend.Work(ctx, runner, options, func() {
		fmt.Println(isReady)
		close(ready)
	})
	return errors.Join(err, p.close())
}

// dies waits until the process was killed.
func (k *worker) dies() {
	k.w.Helper()
	if err := k.wait(); !killed(err) {
		k.w.Fatalf("the worker was to be killed: %v\n%s", err, k.output())
	}
}

func (k *worker) wait() error {
	k.gone = true
	late := time.AfterFunc(callLimit, func() { _ = k.cmd.Process.Kill() })
	defer late.Stop()
	return k.cmd.Wait()
}

// abandon kills the workers that are left when a cell has failed.
func (w *world) abandon() {
	for _, k := range w.workers {
		if !k.gone {
			_ = k.cmd.Process.Kill()
			_ = k.wait()
		}
	}
}

// end has the process end by itself.
func (k *worker) end() {
	if k.gone {
		return
	}
	_ = k.in.Close()
	if err := k.wait(); err != nil {
		k.w.Errorf("the worker ends with %v\n%s", err, k.output())
	}
	_ = k.out.Close()
}

func (k *worker) output() string {
	b, err := os.ReadFile(k.out.Name())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// comesTo waits until the run has come to one of these states, and takes that for the outcome of a call.
func (w *world) comesTo(any ...pawl.Status) *outcome {
	w.Helper()
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		var o *outcome
		w.eventually(fmt.Sprint("the run is ", any), func() bool {
			state, err := runner.State(w.Context(), w.setup.Run)
			if errors.Is(err, pawl.ErrUnknownRun) {
				return false
			}
			if err != nil {
				w.Fatal(err)
			}
			o = newOutcome(state.Result(), nil)
			return slices.Contains(any, o.Status)
		})
		w.last = o
	})
	w.outcomes = append(w.outcomes, w.last.seen)
	w.checkAlways(w.last)
	return w.last
}

// decides decides on the run, from a process that has neither agent nor session, and does not wait for what follows. What
// may still be running it decides when its time is over.
func (w *world) decides(d decision) {
	w.Helper()
	w.note([]decision{d})
	v := w.verdicts[len(w.verdicts)-1]
	w.at(func(p *place) {
		runner, _ := p.options(request{})
		w.eventually("decided", func() bool {
			err := w.decideOn(runner, v.interruption, d)
			if err != nil && !errors.Is(err, pawl.ErrCallInFlight) {
				w.Fatalf("%s %s: %v", d.Verdict, d.CallID, err)
			}
			return err == nil
		})
	})
}

// Files beside a gate.
const (
	entered = ".entered"
	opened  = ".open"
)

// waitAt says that somebody is at the gate and waits until it is open.
func waitAt(gate string) error {
	if err := os.WriteFile(gate+entered, nil, 0o600); err != nil {
		return err
	}
	for !exists(gate + opened) {
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// gate makes a gate that is closed.
func (w *world) gate() string { return filepath.Join(w.TempDir(), "gate") }

// isAt waits until a body is at the gate.
func (w *world) isAt(gate string) {
	w.Helper()
	w.eventually("a body is entered", func() bool { return exists(gate + entered) })
}

// opens opens the gate.
func (w *world) opens(gate string) {
	w.Helper()
	if err := os.WriteFile(gate+opened, nil, 0o600); err != nil {
		w.Fatal(err)
	}
}
