package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-agents/pawl/journal"
)

// A companion that fails, in whatever way, takes its append with it and nothing
// else.
func TestCompanionFails(t *testing.T) {
	errNo := errors.New("no")
	cancelled, cancel := context.WithCancel(t.Context())
	for _, tt := range []struct {
		name   string
		ctx    context.Context // of the append
		commit companion
		want   error
		text   string
	}{
		{name: "with an error", commit: func(context.Context, *sql.Tx) error { return errNo }, want: errNo},
		{name: "with a panic", commit: func(context.Context, *sql.Tx) error { panic("oh") }, text: "run run: a companion panicked: oh"},
		{name: "with a statement's error", commit: func(_ context.Context, tx *sql.Tx) error {
			_, err := tx.Exec(`INSERT INTO nowhere VALUES (1)`)
			return err
		}, text: "nowhere"},
		{name: "after it was cancelled", ctx: cancelled, commit: func(ctx context.Context, tx *sql.Tx) error {
			cancel()
			_, err := tx.ExecContext(ctx, `DELETE FROM pawl_facts`)
			return err
		}, want: context.Canceled},
		{name: "by ending the transaction", commit: func(_ context.Context, tx *sql.Tx) error {
			_, err := tx.Exec(`ROLLBACK`)
			return err
		}, text: "commit"},
		{name: "by rolling back", commit: func(_ context.Context, tx *sql.Tx) error {
			return tx.Rollback()
		}, want: sql.ErrTxDone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
			epoch := claim(t, s, "run")
			recs, items := pair(0)
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			err := s.Append(ctx, "run", epoch, 0, recs, s.Session("s").Companion("b", items), tt.commit)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("Append: %v, want %v with %q", err, tt.want, tt.text)
			}
			if got, err := s.Read(t.Context(), "run", 0); err != nil || len(got) != 0 {
				t.Errorf("the run has %v, %v", got, err)
			}
			if err := s.Append(t.Context(), "run", epoch, 0, recs, s.Session("s").Companion("b", items)); err != nil {
				t.Errorf("the next append: %v", err)
			}
			if got, err := s.Session("s").Items(t.Context(), -1); err != nil || !slices.Equal(got, items) {
				t.Errorf("the session has %v, %v", got, err)
			}
		})
	}
}

// A transactional tool writes to its own tables in the same database.
func TestCompanionWritesItsOwnTable(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	epoch := claim(t, s, "run")
	recs, items := pair(0)
	refund := companion(func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS refunds (cents INTEGER); INSERT INTO refunds VALUES (8000)`)
		return err
	})
	// Another companion may do a batch as part of its own work.
	nested := companion(func(ctx context.Context, tx *sql.Tx) error {
		return s.Session("s").Companion("b", items).Commit(ctx, tx)
	})
	if err := s.Append(t.Context(), "run", epoch, 0, recs, refund, nested); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "run", epoch, 0, recs, refund, nested); err == nil {
		t.Error("the repeated append was not refused")
	}
	if got := query[int](t, s.read, `SELECT sum(cents) FROM refunds`); got != 8000 {
		t.Errorf("%d cents were refunded, want 8000", got)
	}
	if got, err := s.Session("s").Items(t.Context(), -1); err != nil || !slices.Equal(got, items) {
		t.Errorf("the session has %v, %v", got, err)
	}
}

// A batch is refused by the transaction of any other store, and by none.
func TestBatchOfAnotherStore(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, filepath.Join(dir, "pawl.db"), nil), open(t, filepath.Join(dir, "other.db"), nil)
	epoch := claim(t, s, "run")
	recs, items := pair(0)
	theirs := other.Session("s").Companion("b", items)
	nested := companion(func(ctx context.Context, tx *sql.Tx) error { return theirs.Commit(ctx, tx) })
	for name, with := range map[string]journal.Companion{"direct": theirs, "nested": nested} {
		if err := s.Append(t.Context(), "run", epoch, 0, recs, with); err == nil || !strings.HasPrefix(err.Error(), "pawl: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := theirs.Commit(t.Context(), nil); err == nil {
		t.Error("a batch was committed without a transaction")
	}
	memory := journal.NewMemory()
	c, err := memory.Claim(t.Context(), "run", journal.ClaimRequest{TTL: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	if err := memory.Append(t.Context(), "run", c.Epoch, 0, recs, theirs); err == nil {
		t.Error("the memory driver committed a batch of a file")
	}
	for _, store := range []*Store{s, other} {
		if got, err := store.Session("s").Items(t.Context(), -1); err != nil || len(got) != 0 {
			t.Errorf("a session has %v, %v", got, err)
		}
	}
	if got, err := s.Read(t.Context(), "run", 0); err != nil || len(got) != 0 {
		t.Errorf("the run has %v, %v", got, err)
	}
}
