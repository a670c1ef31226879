package pgstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// noise is text that no compression makes shorter.
func noise(n int) string {
	var b strings.Builder
	for x := uint32(1); b.Len() < n; {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b.WriteByte(byte('a' + x>>8%26))
	}
	return b.String()
}

// What becomes of a transaction that was lent is found out on its own connection: there may be no other one, and whoever waits for
// one while it keeps its own may wait for ever.
func TestTransactWithOneConnection(t *testing.T) {
	s := open(t, database(t)+"&pool_max_conns=1")
	paidTable(t, s)
	epoch := claim(t, s, "run")
	for q, want := range map[string]struct{ ended, committed bool }{
		`SELECT 1/0`:      {false, false},
		`COMMIT`:          {true, true},
		`COMMIT; BEGIN`:   {true, true},
		`ROLLBACK`:        {true, false},
		`ROLLBACK; BEGIN`: {true, false},
	} {
		before, left := paid(t, s), make(chan error, 1)
		go func() {
			left <- s.Transact(t.Context(), "run", epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) {
				err := pay(ctx, tx)
				tx.(*Tx).Exec(ctx, q)
				return records(1, 1), err
			})
		}()
		var err error
		select {
		case err = <-left:
		case <-time.After(time.Minute):
			t.Fatalf("%s: it waits for ever", q)
		}
		e, ended := errors.AsType[*journal.TxEndedError](err)
		if err == nil || ended != want.ended || ended && e.Committed != want.committed || (paid(t, s) > before) != want.committed {
			t.Errorf("%s: %v, paid %d, before %d", q, err, paid(t, s), before)
		}
	}
	if recs, err := s.Read(t.Context(), "run", 0); err != nil || len(recs) > 0 {
		t.Errorf("the ledger has %d facts, %v", len(recs), err)
	}
}

// Of code that commits and then does not return, or loses its connection, it is known that it has committed.
func TestTransactCommittedAndLost(t *testing.T) {
	for name, fn := range map[string]func(ctx context.Context, cancel context.CancelFunc, tx *Tx){
		"it does not return": func(_ context.Context, cancel context.CancelFunc, _ *Tx) { cancel(); select {} },
		"the connection ends": func(ctx context.Context, _ context.CancelFunc, tx *Tx) {
			tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		},
	} {
		for q, committed := range map[string]bool{`COMMIT`: true, `SELECT 1`: false} {
			t.Run(name+"/"+q, func(t *testing.T) {
				t.Parallel()
				s := open(t, database(t)+"&pool_max_conns=1")
				paidTable(t, s)
				epoch := claim(t, s, "run")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				err := s.Transact(ctx, "run", epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) {
					if err := pay(ctx, tx); err != nil {
						return nil, err
					}
					tx.(*Tx).Exec(ctx, q)
					fn(ctx, cancel, tx.(*Tx))
					return records(1, 1), nil
				})
				e, ended := errors.AsType[*journal.TxEndedError](err)
				if err == nil || ended != committed || ended && !e.Committed || (paid(t, s) == 1) != committed {
					t.Errorf("%v, paid %d", err, paid(t, s))
				}
			})
		}
	}
}

// An id that an index does not take is refused before anything is written, and the longest ones that are not go through all of a run.
func TestLongIDs(t *testing.T) {
	s := open(t, database(t))
	run := func(id, sessionID string) error {
		agent := &pawl.Agent{Name: "Desk", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("Done."))}
		_, err := (&pawl.Runner{Store: s}).Run(t.Context(), agent, pawl.UserText("Pay."), &pawl.RunOptions{ID: id, Session: s.Session(sessionID)})
		return err
	}
	for name, ids := range map[string][2]string{
		"run": {noise(1025), "s"}, "session": {"r", noise(1025)}, "NUL in the run": {"r\x00", "s"}, "NUL in the session": {"r2", "s\x00"},
	} {
		if _, ok := errors.AsType[*pawl.ConfigError](run(ids[0], ids[1])); !ok {
			t.Errorf("%s: it is taken", name)
		}
	}
	if _, ok := errors.AsType[*pawl.ConfigError](s.Session(noise(1025)).Append(t.Context(), []item.Item{item.UserText("hi")})); !ok {
		t.Error("the session takes an item")
	}
	if runs, err := s.List(t.Context(), journal.Query{}); err != nil || len(runs) > 0 {
		t.Errorf("there are %d runs, %v", len(runs), err)
	}
	long := noise(1024)
	if err := run(long, long); err != nil {
		t.Error(err)
	}
	if items, err := s.Session(long).Items(t.Context(), -1); err != nil || len(items) != 2 {
		t.Errorf("the session has %d items, %v", len(items), err)
	}
}
