package pgstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/internal/pgtest"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/session/sessiontest"
)

// bounce starts a PgBouncer in transaction mode before the server.
func bounce(t *testing.T) *pgtest.Bouncer {
	t.Helper()
	b, err := server.Bounce()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(b.Log())
		}
	})
	return b
}

// bounced makes a database, and returns its URLs through the pooler and past it.
func bounced(t *testing.T, b *pgtest.Bouncer) (through, past string) {
	t.Helper()
	name := fmt.Sprintf("bounced%d", schemas.Add(1))
	past, err := server.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return b.URL(name) + "&default_query_exec_mode=exec", past
}

// The contracts hold behind PgBouncer in transaction mode.
func TestDriverBehindPgBouncer(t *testing.T) {
	b := bounce(t)
	journaltest.Run(t, func(t *testing.T) journal.Driver {
		through, _ := bounced(t, b)
		return open(t, through)
	})
}

func TestSessionBehindPgBouncer(t *testing.T) {
	b := bounce(t)
	sessiontest.Run(t, func(t *testing.T) sessiontest.Open {
		through, _ := bounced(t, b)
		s := open(t, through)
		return func(id string) session.Session { return s.Session(id) }
	})
}

// A worker behind it takes up what was decided: at its next look, or at once if it listens past it.
func TestWorkBehindPgBouncer(t *testing.T) {
	b := bounce(t)
	for name, tt := range map[string]struct {
		poll    time.Duration
		listens bool
	}{
		"polling":   {50 * time.Millisecond, false},
		"listening": {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			through, past := bounced(t, b)
			opts := &Options{}
			if tt.listens {
				opts.ListenURL = past
			}
			st, err := Open(t.Context(), through, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			agent := desk()
			r := pawl.Runner{Store: st, Agents: []*pawl.Agent{agent}}
			ctx, stop := context.WithCancel(t.Context())
			took, ended := make(chan pawl.RecoveredRun, 10), make(chan error, 1)
			go func() {
				ended <- r.Work(ctx, &pawl.WorkOptions{Poll: tt.poll, RecoverOptions: pawl.RecoverOptions{Each: func(r pawl.RecoveredRun) { took <- r }}})
			}()
			next := func() pawl.RecoveredRun {
				t.Helper()
				select {
				case run := <-took:
					return run
				case <-time.After(30 * time.Second):
					t.Fatal("nobody took the run up")
				}
				return pawl.RecoveredRun{}
			}
			there := pawl.Runner{Store: open(t, through)}
			if _, err := there.Submit(t.Context(), agent, pawl.UserText("Pay."), &pawl.RunOptions{ID: "r"}); err != nil {
				t.Fatal(err)
			}
			run := next()
			if run.Err != nil || !run.Result.Waiting() {
				t.Fatalf("the run: %+v", run)
			}
			if err := there.Decide(t.Context(), "r", pawl.Approve(run.Result.Interruptions[0].ID, "ann")); err != nil {
				t.Fatal(err)
			}
			if run := next(); run.Err != nil || run.Result.FinalOutput != "Done." {
				t.Errorf("the run ended with %+v", run)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// Who leaves out of the URL what an older PgBouncer needs is told.
func TestPreparedBehindPgBouncer(t *testing.T) {
	through, _ := bounced(t, bounce(t))
	through = strings.Replace(through, "&default_query_exec_mode=exec", "", 1)
	var err error
	for range 20 {
		var s *Store
		if s, err = Open(t.Context(), through, nil); err != nil {
			break
		}
		t.Cleanup(func() { s.Close() })
		if _, err = s.List(t.Context(), journal.Query{}); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "add default_query_exec_mode=exec to its URL") {
		t.Errorf("an error that says what to do: %v", err)
	}
}
