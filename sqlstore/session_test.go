package sqlstore

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/session/sessiontest"
)

func TestSession(t *testing.T) {
	for name, path := range map[string]func(t *testing.T) string{
		"file":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "pawl.db") },
		"memory": func(*testing.T) string { return memory },
	} {
		t.Run(name, func(t *testing.T) {
			sessiontest.Run(t, func(t *testing.T) sessiontest.Open {
				s := open(t, path(t), nil)
				return func(id string) session.Session { return s.Session(id) }
			})
		})
	}
}

// damaged returns a session with the rows a, b and c, each followed by rows that
// hold no item.
func damaged(t *testing.T) *Session {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	_, err := s.write.Exec(`INSERT INTO agent_sessions (session_id) VALUES ('s');
		INSERT INTO agent_messages (session_id, message_data) VALUES
		('s', '{"n":"a"}'), ('s', '{"n":'), ('s', ''),
		('s', '{"n":"b"}'), ('s', '[1]'), ('s', x'7b22ff7d'),
		('s', '{"n":"c"}'), ('s', 'null'), ('s', '{"n":NaN}')`)
	if err != nil {
		t.Fatal(err)
	}
	return s.Session("s")
}

func TestDamagedRowsAreNoItems(t *testing.T) {
	a, b, c := item.FromTrusted(`{"n":"a"}`), item.FromTrusted(`{"n":"b"}`), item.FromTrusted(`{"n":"c"}`)
	for limit, want := range map[int][]item.Item{
		-1: {a, b, c}, 0: nil, 1: {c}, 2: {b, c}, 3: {a, b, c}, 4: {a, b, c},
	} {
		if got, err := damaged(t).Items(t.Context(), limit); err != nil || !slices.Equal(got, want) {
			t.Errorf("Items(%d) = %v, %v; want %v", limit, got, err, want)
		}
	}

	s := damaged(t)
	for _, want := range []struct {
		it   item.Item
		ok   bool
		rows int // left
	}{{c, true, 6}, {b, true, 3}, {a, true, 0}, {item.Item{}, false, 0}} {
		it, ok, err := s.Pop(t.Context())
		if it != want.it || ok != want.ok || err != nil {
			t.Errorf("Pop() = %v, %v, %v; want %v, %v", it, ok, err, want.it, want.ok)
		}
		if got := query[int](t, s.store.read, `SELECT count(*) FROM agent_messages`); got != want.rows {
			t.Errorf("%d rows are left, want %d", got, want.rows)
		}
	}
}

func TestPopOfDamagedRowsOnly(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	_, err := s.write.Exec(`INSERT INTO agent_sessions (session_id) VALUES ('s');
		INSERT INTO agent_messages (session_id, message_data) VALUES ('s', 'x'), ('s', 'y')`)
	if err != nil {
		t.Fatal(err)
	}
	if it, ok, err := s.Session("s").Pop(t.Context()); ok || err != nil {
		t.Errorf("Pop() = %v, %v, %v", it, ok, err)
	}
	if got := query[int](t, s.read, `SELECT count(*) FROM agent_messages`); got != 0 {
		t.Errorf("%d rows are left", got)
	}
}

// Rows are in the order of their ids, whatever their times say.
func TestItemsAreInTheOrderOfIDs(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "pawl.db"), nil)
	_, err := s.write.Exec(`INSERT INTO agent_sessions (session_id) VALUES ('s');
		INSERT INTO agent_messages (session_id, message_data, created_at) VALUES
		('s', '{"n":1}', '2030-01-01 00:00:00'), ('s', '{"n":2}', '2020-01-01 00:00:00'), ('s', '{"n":3}', NULL)`)
	if err != nil {
		t.Fatal(err)
	}
	want := []item.Item{item.FromTrusted(`{"n":1}`), item.FromTrusted(`{"n":2}`), item.FromTrusted(`{"n":3}`)}
	if got, err := s.Session("s").Items(t.Context(), -1); err != nil || !slices.Equal(got, want) {
		t.Errorf("Items = %v, %v", got, err)
	}
	if it, _, err := s.Session("s").Pop(t.Context()); it != want[2] || err != nil {
		t.Errorf("Pop() = %v, %v", it, err)
	}
}

// A cancelled read leaves a store in memory with all it holds.
func TestCancelledReadInMemory(t *testing.T) {
	s := open(t, memory, nil)
	epoch := claim(t, s, "run")
	var recs []journal.Record
	for after := 0; after < 2000; after += 2 {
		two, _ := pair(after)
		recs = append(recs, two...)
	}
	if err := s.Append(t.Context(), "run", epoch, 0, recs); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := s.Read(ctx, "run", 0)
			done <- err
		}()
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled read: %v", err)
		}
	}
	if got, err := s.Read(t.Context(), "run", 0); err != nil || !slices.Equal(got, recs) {
		t.Errorf("Read: %d facts, %v", len(got), err)
	}
}

func TestSessionKnowsItsStore(t *testing.T) {
	s := open(t, memory, nil)
	if got := s.Session("s").Store(); got != journal.Driver(s) {
		t.Errorf("Store() = %v", got)
	}
}
