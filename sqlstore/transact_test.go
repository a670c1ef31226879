package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// ledgerTable makes a table of the user's own in a store.
func ledgerTable(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.write.Exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
		CREATE TABLE paid (cents INTEGER, parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`); err != nil {
		t.Fatal(err)
	}
}

func pay(ctx context.Context, tx any) error {
	_, err := tx.(*sql.Tx).ExecContext(ctx, `INSERT INTO paid (cents) VALUES (5)`)
	return err
}

// Whatever goes wrong in a transaction, the table and the ledger agree, and the writer
// goes on [S9.22].
func TestTransactFails(t *testing.T) {
	errNo := errors.New("no")
	recs, _ := pair(0)
	ended := func(committed bool) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*journal.TxEndedError](err)
			return ok && e.Run == "run" && e.Committed == committed
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	exec := func(q string) func(context.Context, context.CancelFunc, any) error {
		return func(_ context.Context, _ context.CancelFunc, tx any) error {
			_, err := tx.(*sql.Tx).Exec(q)
			return err
		}
	}
	for name, tt := range map[string]struct {
		fn   func(ctx context.Context, cancel context.CancelFunc, tx any) error
		want func(error) bool
		paid int
	}{
		"an error": {fn: func(context.Context, context.CancelFunc, any) error { return errNo }, want: is(errNo)},
		"a panic": {fn: func(context.Context, context.CancelFunc, any) error { panic("oh") },
			want: func(err error) bool { return strings.Contains(err.Error(), "panicked: oh") }},
		"the goroutine ends": {fn: func(context.Context, context.CancelFunc, any) error { runtime.Goexit(); return nil },
			want: func(err error) bool { return strings.Contains(err.Error(), "ended its goroutine") }},
		"a constraint at the commit": {fn: exec(`INSERT INTO paid VALUES (6, 77)`),
			want: func(err error) bool { return strings.Contains(err.Error(), "FOREIGN KEY") }},
		"rolled back, as if nothing were": {fn: func(_ context.Context, _ context.CancelFunc, tx any) error { return tx.(*sql.Tx).Rollback() }, want: ended(false)},
		"rolled back by a statement":      {fn: exec(`ROLLBACK`), want: ended(false)},
		"rolled back with an error": {fn: func(_ context.Context, _ context.CancelFunc, tx any) error {
			return errors.Join(errNo, tx.(*sql.Tx).Rollback())
		}, want: is(errNo)},
		"committed":                {fn: func(_ context.Context, _ context.CancelFunc, tx any) error { return tx.(*sql.Tx).Commit() }, want: ended(true), paid: 1},
		"committed by a statement": {fn: exec(`COMMIT`), want: ended(true), paid: 1},
		"committed and begun anew": {fn: exec(`COMMIT; BEGIN`), want: ended(true), paid: 1},
		"committed with an error": {fn: func(_ context.Context, _ context.CancelFunc, tx any) error {
			return errors.Join(errNo, tx.(*sql.Tx).Commit())
		}, want: func(err error) bool { return ended(true)(err) && errors.Is(err, errNo) }, paid: 1},
		"interrupted": {fn: func(ctx context.Context, cancel context.CancelFunc, tx any) error {
			cancel()
			return pay(ctx, tx)
		}, want: is(context.Canceled)},
		"does not heed its context": {fn: func(ctx context.Context, cancel context.CancelFunc, tx any) error {
			cancel()
			for pay(context.WithoutCancel(ctx), tx) == nil { // until the transaction is taken away
				runtime.Gosched()
			}
			return nil
		}, want: is(context.Canceled)},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
			ledgerTable(t, s)
			epoch := claim(t, s, "run")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := s.Transact(ctx, "run", epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) {
				if err := pay(ctx, tx); err != nil {
					return nil, err
				}
				return recs, tt.fn(ctx, cancel, tx)
			})
			if err == nil || !tt.want(err) || !strings.HasPrefix(err.Error(), "pawl: ") {
				t.Errorf("Transact: %v", err)
			}
			if got, err := s.Read(t.Context(), "run", 0); err != nil || len(got) != 0 {
				t.Errorf("the run has %v, %v", got, err)
			}
			if got := query[int](t, s.read, `SELECT count(*) FROM paid`); got != tt.paid {
				t.Errorf("%d payments, want %d", got, tt.paid)
			}
			err = s.Transact(t.Context(), "run", epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) { return recs, pay(ctx, tx) })
			if err != nil {
				t.Errorf("the next transaction: %v", err)
			}
			if got, err := s.Read(t.Context(), "run", 0); err != nil || !slices.Equal(got, recs) {
				t.Errorf("the run has %v, %v", got, err)
			}
			if got := query[int](t, s.read, `SELECT count(*) FROM paid`); got != tt.paid+1 {
				t.Errorf("%d payments, want %d", got, tt.paid+1)
			}
		})
	}
}

// Nobody sees what a transaction wrote before it has committed, nobody else can take the
// run meanwhile, and writes that wait go on afterwards.
func TestTransactIsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path, nil)
	ledgerTable(t, s)
	recs, items := pair(0)
	epoch := claim(t, s, "run")
	before := commits(t, path)
	waited := make(chan error, 1)
	err := s.Transact(t.Context(), "run", epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) {
		if err := pay(ctx, tx); err != nil {
			return nil, err
		}
		go func() { waited <- s.Session("s").Append(t.Context(), items) }()
		waitFor(s, 1)
		if got := query[int](t, s.read, `SELECT count(*) FROM paid`); got != 0 {
			t.Errorf("%d payments before the commit", got)
		}
		if got, err := s.Read(t.Context(), "run", 0); err != nil || len(got) != 0 {
			t.Errorf("before the commit the run has %v, %v", got, err)
		}
		other := open(t, path, &Options{BusyTimeout: time.Millisecond})
		if _, err := other.Claim(ctx, "run", journal.ClaimRequest{TTL: time.Hour, Takeover: epoch}); !errors.Is(err, ErrBusy) {
			t.Errorf("a takeover in the middle: %v, want ErrBusy", err)
		}
		return recs, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("the write that waited: %v", err)
	}
	if got := commits(t, path) - before; got != 2 {
		t.Errorf("%d transactions, want 2", got)
	}
	if got := query[int](t, s.read, `SELECT count(*) FROM paid`); got != 1 {
		t.Errorf("%d payments", got)
	}
}

// Code that has the transaction and calls the store would wait for itself: it is told.
func TestStoreInsideItsTransaction(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "pawl.db"), ":memory:"} {
		s := open(t, path, nil)
		recs, items := pair(0)
		epoch := claim(t, s, "run")
		err := s.Transact(t.Context(), "run", epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) {
			for what, err := range map[string]error{
				"Append":   s.Append(ctx, "run", epoch, 0, recs),
				"Renew":    s.Renew(ctx, "run", epoch, time.Hour),
				"session":  s.Session("s").Append(ctx, items),
				"Transact": s.Transact(ctx, "run", epoch, 0, nil),
			} {
				if !errors.Is(err, ErrInTransaction) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := s.Read(ctx, "run", 0); (path == ":memory:") != errors.Is(err, ErrInTransaction) {
				t.Errorf("%s: Read: %v", path, err)
			}
			return recs, nil
		})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A transaction waits for its turn, and its context may end before that.
func TestTransactWaits(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	epoch := claim(t, s, "run")
	recs, _ := pair(0)
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		answer <- s.Transact(ctx, "run", epoch, 0, func(context.Context, any) ([]journal.Record, error) {
			return nil, fmt.Errorf("it was called")
		})
	}()
	waitFor(s, 1)
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled transaction: %v", err)
	}
	release()
	if err := s.Append(t.Context(), "run", epoch, 0, recs); err != nil {
		t.Errorf("the next append: %v", err)
	}
}
