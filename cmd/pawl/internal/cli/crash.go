package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
)

// hangMark is the line with which the child of --crash says that it hangs in the middle of the refund.
const hangMark = "pawl: the refund is in the shop, and this process hangs before it can say so"

// hangInRefund makes the body of an approved refund wait for its end.
func (a *app) hangInRefund(ctx context.Context, c *pawl.Call) error {
	var args struct {
		Cents int64 `json:"cents"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil || args.Cents < demo.ApprovalLimit {
		return err
	}
	fmt.Fprintln(a.errors, hangMark)
	<-ctx.Done()
	return ctx.Err()
}

// crash lets a child process work on the ticket, kills it in the middle of the approved refund, and goes on in this
// one.
func (a *app) crash(ctx context.Context, w *demo.World, t *demo.Ticket, o demoOptions) (*runReport, error) {
	pid, err := a.runAndKill(ctx, t, o)
	if err != nil {
		return nil, err
	}
	s := a.screen
	refunds, err := w.Shop.Refunds(ctx, t.Run())
	if err != nil {
		return nil, err
	}
	s.line("")
	s.entry(yellow, "killed", fmt.Sprintf("process %d, with SIGKILL", pid))
	s.entry(plain, "now", fmt.Sprintf("the shop has booked %d refunds; of the second the run knows only that it was begun", refunds))
	s.entry(plain, "resume", "the refund is declared Idempotent, so it runs again with the same key, and the shop knows the key")
	s.line("")
	d, err := a.desk(w, t, o.driveOptions, demo.DeskOptions{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	res, err := a.goOn(ctx, d, 0, true)
	r, err := a.conclude(ctx, d, res, err)
	if r != nil {
		r.Killed = pid
	}
	return r, err
}

// runAndKill starts this program again and kills it once it says that it hangs.
func (a *app) runAndKill(ctx context.Context, t *demo.Ticket, o demoOptions) (pid int, err error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	args := []string{"demo", "--yes", "--hang-in-refund", "--ticket", t.Run(), "--store", a.store}
	if o.baseURL != "" {
		args = append(args, "--base-url", o.baseURL)
	}
	child := exec.CommandContext(ctx, exe, args...)
	child.Stdout = a.screen.w
	stderr, err := child.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	a.screen.entry(faint, "child", fmt.Sprintf("process %d works on the ticket, in order to be killed", child.Process.Pid))
	hung, said := false, ""
	for sc := bufio.NewScanner(stderr); !hung && sc.Scan(); {
		if hung = sc.Text() == hangMark; !hung {
			said += sc.Text() + "\n"
		}
	}
	if hung {
		err = child.Process.Kill()
	}
	waited := child.Wait()
	switch {
	case ctx.Err() != nil:
		return 0, &hintedError{err: ctx.Err(), hints: []string{a.command("resume", t.Run())}}
	case !hung:
		return 0, &hintedError{err: errors.Join(fmt.Errorf("the child ended before it came to an approved refund: %w", waited),
			errors.New(strings.TrimSpace(said))), hints: []string{a.command("resume", t.Run())}}
	}
	return child.Process.Pid, err
}
