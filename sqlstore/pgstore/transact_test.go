package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/sqlstore"
)

// paidTable makes a table of the user's own in a store.
func paidTable(t *testing.T, s *Store) {
	t.Helper()
	err := s.Update(t.Context(), func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `CREATE TABLE parent (id int PRIMARY KEY);
			CREATE TABLE paid (cents int, parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func paid(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM paid`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// records returns n records that are equal to no others.
func records(n int, from byte) []journal.Record {
	var recs []journal.Record
	for i := range n {
		recs = append(recs, journal.Encode(journal.Fact{Time: int64(i), Body: &journal.Confirmed{N: i}}, [16]byte{from, byte(i)}))
	}
	return recs
}

func claim(t testing.TB, s *Store, run string) uint64 {
	t.Helper()
	c, err := s.Claim(t.Context(), run, journal.ClaimRequest{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return c.Epoch
}

func pay(ctx context.Context, tx any) error {
	_, err := tx.(*Tx).Exec(ctx, `INSERT INTO paid (cents) VALUES (5)`)
	return err
}

// Whatever goes wrong in a transaction, the table and the ledger agree, and the store goes
// on [S9.22].
func TestTransactFails(t *testing.T) {
	errNo := errors.New("no")
	ended := func(committed bool) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*journal.TxEndedError](err)
			return ok && e.Run == "run" && e.Committed == committed
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	says := func(want string) func(error) bool {
		return func(err error) bool { return err != nil && strings.Contains(err.Error(), want) }
	}
	exec := func(q string) func(context.Context, context.CancelFunc, any) error {
		return func(ctx context.Context, _ context.CancelFunc, tx any) error {
			_, err := tx.(*Tx).Exec(ctx, q)
			return err
		}
	}
	for name, tt := range map[string]struct {
		fn   func(ctx context.Context, cancel context.CancelFunc, tx any) error
		want func(error) bool
		paid int
	}{
		"an error":                   {fn: func(context.Context, context.CancelFunc, any) error { return errNo }, want: is(errNo)},
		"a panic":                    {fn: func(context.Context, context.CancelFunc, any) error { panic("oh") }, want: says("panicked: oh")},
		"the goroutine ends":         {fn: func(context.Context, context.CancelFunc, any) error { runtime.Goexit(); return nil }, want: says("ended its goroutine")},
		"a constraint at the commit": {fn: exec(`INSERT INTO paid VALUES (6, 77)`), want: says("23503")},
		"a statement that fails, ignored": {fn: func(ctx context.Context, _ context.CancelFunc, tx any) error {
			tx.(*Tx).Exec(ctx, `SELECT 1/0`)
			return nil
		}, want: says("a statement failed")},
		"COMMIT":             {fn: exec(`COMMIT`), want: ended(true), paid: 1},
		"ROLLBACK":           {fn: exec(`ROLLBACK`), want: ended(false)},
		"pgx: Commit":        {fn: func(ctx context.Context, _ context.CancelFunc, tx any) error { return tx.(*Tx).Commit(ctx) }, want: ended(false)},
		"pgx: Rollback":      {fn: func(ctx context.Context, _ context.CancelFunc, tx any) error { return tx.(*Tx).Rollback(ctx) }, want: ended(false)},
		"sql: Commit":        {fn: func(_ context.Context, _ context.CancelFunc, tx any) error { return tx.(*Tx).SQL().Commit() }, want: ended(true), paid: 1},
		"sql: Rollback":      {fn: func(_ context.Context, _ context.CancelFunc, tx any) error { return tx.(*Tx).SQL().Rollback() }, want: ended(false)},
		"the context ends":   {fn: func(ctx context.Context, cancel context.CancelFunc, tx any) error { cancel(); return pay(ctx, tx) }, want: is(context.Canceled)},
		"it does not return": {fn: func(_ context.Context, cancel context.CancelFunc, _ any) error { cancel(); select {} }, want: is(context.Canceled)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, database(t))
			paidTable(t, s)
			recs := records(2, 1)
			epoch := claim(t, s, "run")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := s.Transact(ctx, "run", epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) {
				if err := pay(ctx, tx); err != nil {
					return nil, err
				}
				return recs, tt.fn(ctx, cancel, tx)
			})
			if !tt.want(err) {
				t.Errorf("Transact: %v", err)
			}
			if n := paid(t, s); n != tt.paid {
				t.Errorf("%d payments, want %d", n, tt.paid)
			}
			if got, err := s.Read(t.Context(), "run", 0); err != nil || len(got) != 0 {
				t.Errorf("the ledger has %d records, %v", len(got), err)
			}
			if err := s.Append(t.Context(), "run", epoch, 0, recs); err != nil {
				t.Errorf("the next append: %v", err)
			}
		})
	}
}

// While a transaction is lent, other runs go on, nobody takes the run over, and its code
// cannot call the store.
func TestTransactHoldsItsRunOnly(t *testing.T) {
	s := open(t, database(t))
	paidTable(t, s)
	epoch, other := claim(t, s, "run"), claim(t, s, "other")
	taken := make(chan error, 1)
	err := s.Transact(t.Context(), "run", epoch, 0, func(ctx context.Context, tx any) ([]journal.Record, error) {
		if err := s.Append(t.Context(), "other", other, 0, records(1, 1)); err != nil {
			t.Errorf("another run: %v", err)
		}
		if err := s.Append(ctx, "other", other, 1, records(1, 2)); !errors.Is(err, ErrInTransaction) {
			t.Errorf("the store inside its transaction: %v", err)
		}
		go func() {
			_, err := s.Claim(t.Context(), "run", journal.ClaimRequest{TTL: time.Hour, Takeover: epoch})
			taken <- err
		}()
		select {
		case err := <-taken:
			t.Errorf("the run was taken over meanwhile: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		return records(1, 3), pay(ctx, tx)
	})
	if err != nil || paid(t, s) != 1 {
		t.Errorf("Transact: %v", err)
	}
	if err := <-taken; err != nil {
		t.Errorf("Claim after it: %v", err)
	}
	if err := s.Append(t.Context(), "run", epoch, 1, records(1, 4)); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("an append of the old driver: %v", err)
	}
}

// Both kinds of transactional tools work in one transaction with the record of their outcome.
func TestTxTools(t *testing.T) {
	type none struct{}
	for name, tool := range map[string]pawl.Tool{
		"pgx": NewTxTool(TxFunc[none, string]{Name: "pay", Description: "Pays.",
			Run: func(ctx context.Context, tx pgx.Tx, c *pawl.Call, _ none) (string, error) {
				_, err := tx.Exec(ctx, `INSERT INTO paid (cents) VALUES ($1)`, 5)
				return "paid", err
			}}),
		"database/sql": sqlstore.NewTxTool(sqlstore.TxFunc[none, string]{Name: "pay", Description: "Pays.",
			Run: func(ctx context.Context, tx *sql.Tx, c *pawl.Call, _ none) (string, error) {
				_, err := tx.ExecContext(ctx, `INSERT INTO paid (cents) VALUES ($1)`, 5)
				return "paid", err
			}}),
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, database(t))
			paidTable(t, s)
			m := pawltest.NewScriptedModel(
				pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "pay", `{}`)), pawltest.ScriptedText("Done."))
			r := pawl.Runner{Store: s}
			res, err := r.Run(t.Context(), &pawl.Agent{Name: "Desk", Model: m, Tools: []pawl.Tool{tool}}, pawl.UserText("Pay."),
				&pawl.RunOptions{Session: s.Session("chat")})
			if err != nil {
				t.Fatal(err)
			}
			items, err := s.Session("chat").Items(t.Context(), -1)
			var types []string
			for _, it := range items {
				types = append(types, string(it.Type()))
			}
			if want := []string{"message", "function_call", "function_call_output", "message"}; !slices.Equal(types, want) || err != nil {
				t.Errorf("the session has %q, %v", types, err)
			}
			if got := fmt.Sprint(res.FinalOutput, " ", paid(t, s)); got != "Done. 1" {
				t.Errorf("got %q", got)
			}
		})
	}
}
