package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// lock takes the write lock of a database with another connection.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	tx, err := raw(t, path).Begin()
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

func TestLockedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path, &Options{BusyTimeout: 50 * time.Millisecond})
	epoch := claim(t, s, "run")
	recs, items := pair(0)
	unlock := lock(t, path)

	if err := s.Append(t.Context(), "run", epoch, 0, recs); !errors.Is(err, ErrBusy) {
		t.Errorf("Append: %v, want ErrBusy", err)
	}
	if err := s.Session("s").Append(t.Context(), items); !errors.Is(err, ErrBusy) {
		t.Errorf("Append of the session: %v, want ErrBusy", err)
	}
	if got, err := s.Read(t.Context(), "run", 0); err != nil || len(got) != 0 {
		t.Errorf("Read: %v, %v", got, err)
	}
	if again, err := OpenSQLite(path, &Options{BusyTimeout: 50 * time.Millisecond}); err != nil {
		t.Errorf("a store of the current version waits for the lock to be opened: %v", err)
	} else {
		again.Close()
	}
	unlock()
	if err := s.Append(t.Context(), "run", epoch, 0, recs); err != nil {
		t.Errorf("Append: %v", err)
	}
}

func TestOpenLockedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "python.db")
	database(t, path, pythonTables)
	unlock := lock(t, path)
	if s, err := OpenSQLite(path, &Options{BusyTimeout: 50 * time.Millisecond}); !errors.Is(err, ErrBusy) {
		t.Errorf("OpenSQLite: %v, want ErrBusy", err)
		if err == nil {
			s.Close()
		}
	}
	unlock()
	open(t, path, nil)
}

// Whoever waits for the lock stops when its context ends; those behind it go on.
func TestCancelledWhileLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path, &Options{BusyTimeout: time.Hour})
	first, second := claim(t, s, "first"), claim(t, s, "second")
	recs, _ := pair(0)
	unlock := lock(t, path)

	ctx, cancel := context.WithCancel(t.Context())
	leader, follower := make(chan error), make(chan error)
	go func() { leader <- s.Append(ctx, "first", first, 0, recs) }()
	for !led(s) {
	}
	go func() { follower <- s.Append(t.Context(), "second", second, 0, recs) }()
	waitFor(s, 1)
	cancel()
	if err := <-leader; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled append: %v", err)
	}
	unlock()
	if err := <-follower; err != nil {
		t.Errorf("the append behind it: %v", err)
	}
	if got, err := s.Read(t.Context(), "first", 0); err != nil || len(got) != 0 {
		t.Errorf("the cancelled append stored %v, %v", got, err)
	}
	if got, err := s.Read(t.Context(), "second", 0); err != nil || !slices.Equal(got, recs) {
		t.Errorf("the other stored %v, %v", got, err)
	}
	if got := query[int](t, s.write, `PRAGMA synchronous`); got != 2 {
		t.Errorf("the connection after the cancelled one has synchronous=%d", got)
	}
}

func led(s *Store) bool {
	_, led := s.queue.Waiting()
	return led
}

// Two stores on one file are two drivers: they see each other's claims and writes.
func TestTwoStores(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	stores := []*Store{open(t, path, nil), open(t, path, nil)}
	a, b := stores[0], stores[1]
	epoch := claim(t, a, "run")
	_, err := b.Claim(t.Context(), "run", journal.ClaimRequest{TTL: time.Hour})
	claimed, ok := errors.AsType[*journal.ClaimedError](err)
	if !ok || claimed.Holder.Epoch != epoch {
		t.Fatalf("Claim: %v", err)
	}
	c, err := b.Claim(t.Context(), "run", journal.ClaimRequest{TTL: time.Hour, Takeover: epoch})
	if err != nil {
		t.Fatal(err)
	}
	recs, items := pair(0)
	if err := a.Append(t.Context(), "run", epoch, 0, recs); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("append of the store that lost the run: %v", err)
	}
	if err := b.Append(t.Context(), "run", c.Epoch, 0, recs, b.Session("s").Companion("b", items)); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Read(t.Context(), "run", 0); err != nil || !slices.Equal(got, recs) {
		t.Errorf("Read: %v, %v", got, err)
	}
	if err := a.Session("s").AppendBatch(t.Context(), "b", items); err != nil {
		t.Error(err)
	}
	if got, err := a.Session("s").Items(t.Context(), -1); err != nil || !slices.Equal(got, items) {
		t.Errorf("Items: %v, %v", got, err)
	}

	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := range 10 {
				err := stores[w%2].Session("shared").AppendBatch(context.Background(), fmt.Sprint(w/2, n), []item.Item{item.UserText(fmt.Sprint(w/2, n))})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := a.Session("shared").Items(t.Context(), -1); err != nil || len(got) != 40 {
		t.Errorf("%d items, %v; want each of 40 batches once", len(got), err)
	}
}

func TestFullDatabase(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	epoch := claim(t, s, "run")
	recs, items := pair(0)
	long := []item.Item{item.UserText(string(make([]byte, 1<<20)))}
	pages := query[int](t, s.write, `PRAGMA page_count`)
	query[int](t, s.write, fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+10))
	if err := s.Append(t.Context(), "run", epoch, 0, recs, s.Session("s").Companion("b", long)); err == nil {
		t.Error("an append that has no room succeeded")
	}
	if err := s.Append(t.Context(), "run", epoch, 0, recs, s.Session("s").Companion("b", items)); err != nil {
		t.Errorf("an append that has room: %v", err)
	}
	if got, err := s.Session("s").Items(t.Context(), -1); err != nil || !slices.Equal(got, items) {
		t.Errorf("Items: %v, %v", got, err)
	}
}

func TestClosed(t *testing.T) {
	for _, path := range []string{memory, filepath.Join(t.TempDir(), "pawl.db")} {
		s, err := OpenSQLite(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		epoch := claim(t, s, "run")
		recs, items := pair(0)
		entered, gate := make(chan struct{}), make(chan struct{})
		last := companion(func(_ context.Context, tx *sql.Tx) error {
			close(entered)
			<-gate
			return nil
		})
		accepted, closed := make(chan error), make(chan error)
		go func() { accepted <- s.Append(t.Context(), "run", epoch, 0, recs, last) }()
		<-entered
		waited := make(chan error)
		go func() { waited <- s.Session("s").Append(t.Context(), items) }()
		waitFor(s, 1)
		go func() { closed <- s.Close() }()
		for !s.queue.Closed() {
		}
		if err := s.Append(t.Context(), "run", epoch, 2, recs); !errors.Is(err, ErrClosed) {
			t.Errorf("Append: %v, want ErrClosed", err)
		}
		close(gate)
		if err := <-accepted; err != nil {
			t.Errorf("the append before Close: %v", err)
		}
		if err := <-waited; err != nil {
			t.Errorf("the append that waited when Close began: %v", err)
		}
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
		if _, err := s.Read(t.Context(), "run", 0); !errors.Is(err, ErrClosed) {
			t.Errorf("Read: %v, want ErrClosed", err)
		}
		if err := s.Session("s").Append(t.Context(), items); !errors.Is(err, ErrClosed) {
			t.Errorf("Append of a session: %v, want ErrClosed", err)
		}
	}
}
