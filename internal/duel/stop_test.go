//go:build unix

package duel

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/sqlstore"
)

// stoppingStore stops the process when the intent of a call is durable, if it is to.
type stoppingStore struct {
	*sqlstore.Store
	world *world
}

// Append implements journal.Driver.
func (s *stoppingStore) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	err := s.Store.Append(ctx, run, epoch, after, recs, with...)
	if s.world.stopAt != stopIntent || err != nil {
		return err
	}
	for _, rec := range recs {
		f, err := journal.Decode(rec)
		if in, ok := f.Body.(*journal.Intended); err == nil && ok && in.ID.Kind == journal.EffectTool {
			stopped()
		}
	}
	return nil
}

// stopped stops the process and returns when it was continued. The signal may reach another thread first, so it is not
// enough to send it.
func stopped() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-continued
}

// awaitStop reports whether the puppet stops itself. It does not if the machine is so busy that the call's time is over
// before its body is entered: then it says how its run stands.
func (p *puppet) awaitStop(t *testing.T) bool {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for end := time.After(patience); ; {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(p.cmd.Process.Pid, &ws, syscall.WUNTRACED|syscall.WNOHANG, nil)
		if pid != 0 && (err != nil || !ws.Stopped()) && err != syscall.EINTR {
			t.Fatalf("the process has not stopped but ended: %v, %v", ws, err)
		}
		if ws.Stopped() {
			return true
		}
		select {
		case <-look.C:
		case <-p.says:
			return false
		case <-end:
			t.Fatal("the process does not stop")
		}
	}
}

func (p *puppet) wake(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}
