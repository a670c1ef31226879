package sqlstore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// companion is a function as a companion.
type companion func(ctx context.Context, tx *sql.Tx) error

func (c companion) Commit(ctx context.Context, tx any) error { return c(ctx, tx.(*sql.Tx)) }

// claim claims a run for an hour.
func claim(t testing.TB, s *Store, run string) uint64 {
	t.Helper()
	c, err := s.Claim(t.Context(), run, journal.ClaimRequest{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return c.Epoch
}

// hold occupies the writer until release is called.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	epoch := claim(t, s, "holder")
	recs, _ := pair(0) // a transaction that changes nothing would not be in the WAL file
	entered, gate := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.Append(t.Context(), "holder", epoch, 0, recs, companion(func(context.Context, *sql.Tx) error {
			close(entered)
			<-gate
			return nil
		}))
		if err != nil {
			t.Errorf("the holder's append: %v", err)
		}
	})
	<-entered
	return func() {
		close(gate)
		wg.Wait()
	}
}

// waitFor returns when n writes are in the queue.
func waitFor(s *Store, n int) {
	for {
		if waiting, _ := s.queue.Waiting(); waiting == n {
			return
		}
		runtime.Gosched()
	}
}

// commits returns the number of transactions in the WAL file: the frames that end
// one hold the size of the database (https://www.sqlite.org/fileformat2.html#walformat).
func commits(t *testing.T, path string) int {
	t.Helper()
	wal, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	page := int(binary.BigEndian.Uint32(wal[8:]))
	salt := wal[16:24]
	n := 0
	for frame := wal[32:]; len(frame) >= 24+page && slices.Equal(frame[8:16], salt); frame = frame[24+page:] {
		if binary.BigEndian.Uint32(frame[4:]) != 0 {
			n++
		}
	}
	return n
}

// Writes that wait share one transaction; the refused ones harm nobody.
func TestGroupCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pawl.db")
	s, other := open(t, path, nil), open(t, filepath.Join(dir, "other.db"), nil)
	const good = 20
	epochs := map[string]uint64{}
	for n := range good {
		run := fmt.Sprint("run", n)
		epochs[run] = claim(t, s, run)
	}
	epochs["bad"] = claim(t, s, "bad")
	recs, items := pair(0)
	refused := []struct {
		epoch, after uint64
		with         journal.Companion
		want         string
	}{
		{epochs["bad"] + 1, 0, nil, "claimed by another driver"},
		{epochs["bad"], 3, nil, "has 0 facts, the writer knew 3"},
		{epochs["bad"], 0, journal.Consume("nobody posted this"), "no entry"},
		{epochs["bad"], 0, other.Session("s").Companion("b", items), "another store"},
		{epochs["bad"], 0, s.Session("s").Companion("b", []item.Item{items[0], {}}), "zero Item"},
	}

	release := hold(t, s)
	before := commits(t, path)
	var wg sync.WaitGroup
	for n := range good {
		run := fmt.Sprint("run", n)
		wg.Go(func() {
			if err := s.Append(t.Context(), run, epochs[run], 0, recs, s.Session(run).Companion("b", items)); err != nil {
				t.Errorf("%s: %v", run, err)
			}
		})
	}
	for _, r := range refused {
		wg.Go(func() {
			var with []journal.Companion
			if r.with != nil {
				with = []journal.Companion{s.Session("s").Companion("first", items), r.with}
			}
			err := s.Append(t.Context(), "bad", r.epoch, r.after, recs, with...)
			if err == nil || !strings.Contains(err.Error(), r.want) {
				t.Errorf("append was answered with %v, want %q", err, r.want)
			}
		})
	}
	waitFor(s, good+len(refused))
	release()
	wg.Wait()

	if got := commits(t, path) - before; got != 2 { // the holder's, and one for all others
		t.Errorf("%d transactions, want 2", got)
	}
	for n := range good {
		run := fmt.Sprint("run", n)
		if got, err := s.Read(t.Context(), run, 0); err != nil || !slices.Equal(got, recs) {
			t.Errorf("%s has %v, %v", run, got, err)
		}
		if got, err := s.Session(run).Items(t.Context(), -1); err != nil || !slices.Equal(got, items) {
			t.Errorf("session %s has %v, %v", run, got, err)
		}
	}
	if got, err := s.Read(t.Context(), "bad", 0); err != nil || len(got) != 0 {
		t.Errorf("the refused run has %v, %v", got, err)
	}
	if got, err := s.Session("s").Items(t.Context(), -1); err != nil || len(got) != 0 {
		t.Errorf("the session of the refused appends has %v, %v", got, err)
	}
}

// Code that is not ours gets a transaction of its own, and no write overtakes it.
func TestForeignCompanionIsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path, nil)
	recs, _ := pair(0)
	epochs := make([]uint64, 5)
	for n := range epochs {
		epochs[n] = claim(t, s, fmt.Sprint("run", n))
	}
	release := hold(t, s)
	before := commits(t, path)
	var seen int // by the foreign companion
	var wg sync.WaitGroup
	for n, epoch := range epochs {
		var with []journal.Companion
		if n == 2 {
			with = append(with, companion(func(_ context.Context, tx *sql.Tx) error {
				return tx.QueryRow(`SELECT count(*) FROM pawl_facts`).Scan(&seen)
			}))
		}
		wg.Go(func() {
			if err := s.Append(t.Context(), fmt.Sprint("run", n), epoch, 0, recs, with...); err != nil {
				t.Errorf("run%d: %v", n, err)
			}
		})
		waitFor(s, n+1)
	}
	release()
	wg.Wait()
	if got := commits(t, path) - before; got != 4 { // the holder, 0 and 1, 2, 3 and 4
		t.Errorf("%d transactions, want 4", got)
	}
	if seen != 8 { // of the holder and runs 0, 1 and 2
		t.Errorf("the companion saw %d facts, want 8", seen)
	}
}

func TestQueuedWriteIsCancelled(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	epoch := claim(t, s, "run")
	recs, _ := pair(0)
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() { answer <- s.Append(ctx, "run", epoch, 0, recs) }()
	waitFor(s, 1)
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled append: %v", err)
	}
	waitFor(s, 0)
	release()
	if got, err := s.Read(t.Context(), "run", 0); err != nil || len(got) != 0 {
		t.Errorf("it stored %v, %v", got, err)
	}
	if err := s.Append(t.Context(), "run", epoch, 0, recs); err != nil {
		t.Errorf("the next append: %v", err)
	}
}
