package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-agents/pawl"
)

// beWorker works on a store, and says which runs it takes up.
func beWorker(ctx context.Context, url string) error {
	st, err := openStore(ctx, url)
	if err != nil {
		return err
	}
	defer st.Close()
	r := pawl.Runner{Store: st, Agents: []*pawl.Agent{desk()}}
	opts := &pawl.WorkOptions{Poll: poll}
	if isDatabase(url) {
		opts.Poll = time.Minute // it is told
	}
	opts.Options = func(run string) *pawl.RunOptions {
		fmt.Println(run)
		return nil
	}
	return r.Work(ctx, opts)
}

// worker is a process that works on a store.
type worker struct {
	cmd  *exec.Cmd
	took *bufio.Scanner
}

// settles is how long a worker has to come to rest.
const settles = 3 * time.Second

// observe runs a worker on a store, with it what do does, and returns how many MB it takes afterwards.
func observe(ctx context.Context, url string, do func(*worker) ([]float64, error)) (memory float64, took []float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, self, "-work", url)}
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return 0, nil, err
	}
	w.took = bufio.NewScanner(out)
	time.Sleep(settles)
	if do != nil {
		if took, err = do(w); err != nil {
			w.cmd.Process.Kill()
			w.cmd.Wait()
			return 0, nil, err
		}
	}
	time.Sleep(settles)
	if memory, err = residentMB(w.cmd.Process.Pid); err != nil {
		return 0, nil, err
	}
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, nil, err
	}
	return memory, took, w.cmd.Wait()
}

// awaits waits until the worker takes a run up.
func (w *worker) awaits(run string) error {
	for w.took.Scan() {
		if w.took.Text() == run {
			return nil
		}
	}
	return fmt.Errorf("the worker ended before it took up %s", run)
}

// residentMB is the resident memory of a process.
func residentMB(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kb); n == 1 {
			return kb / 1024, nil
		}
	}
	return 0, fmt.Errorf("process %d has no VmRSS", pid)
}
