package sessiontest

import (
	"slices"
	"sync"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
)

func runBatches(t *testing.T, open func(t *testing.T) Open) {
	for _, rule := range []struct {
		name  string
		check func(*testing.T, Open)
	}{
		{"a batch is taken once", batchOnce},
		{"its id outlives its items", batchOutlives},
		{"ids belong to their session", batchIDs},
		{"an empty batch is a batch", emptyBatch},
		{"a refused batch was not taken", refusedBatch},
		{"one of many wins", batchesAtOnce},
	} {
		t.Run(rule.name, func(t *testing.T) { rule.check(t, open(t)) })
	}
}

func addBatch(t *testing.T, s session.Session, id string, items []item.Item) {
	t.Helper()
	if err := s.(session.BatchAppender).AppendBatch(t.Context(), id, items); err != nil {
		t.Fatalf("AppendBatch(%s): %v", id, err)
	}
}

func batchOnce(t *testing.T, open Open) {
	s := open("s")
	addBatch(t, s, "run/1", user(1, 2))
	addBatch(t, s, "run/2", user(3, 3))
	addBatch(t, open("s"), "run/1", user(1, 2))
	holds(t, s, user(1, 3))
	add(t, s, user(3, 3)...) // an Append has no id
	holds(t, s, slices.Concat(user(1, 3), user(3, 3)))
}

func batchOutlives(t *testing.T, open Open) {
	s := open("s")
	addBatch(t, s, "run/1", user(1, 1))
	addBatch(t, s, "run/2", user(2, 2))
	if _, _, err := s.Pop(t.Context()); err != nil {
		t.Fatal(err)
	}
	addBatch(t, s, "run/2", user(2, 2))
	holds(t, s, user(1, 1))
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	addBatch(t, s, "run/1", user(1, 1))
	holds(t, s, nil)
	addBatch(t, s, "run/3", user(3, 3))
	holds(t, s, user(3, 3))
}

func batchIDs(t *testing.T, open Open) {
	for n, id := range []string{"s", "other"} {
		addBatch(t, open(id), "run/1", user(n, n))
		addBatch(t, open(id), "RUN/1", user(n+5, n+5))
	}
	holds(t, open("s"), slices.Concat(user(0, 0), user(5, 5)))
	holds(t, open("other"), slices.Concat(user(1, 1), user(6, 6)))
}

func emptyBatch(t *testing.T, open Open) {
	s := open("s")
	addBatch(t, s, "run/1", nil)
	addBatch(t, s, "run/1", user(1, 1))
	holds(t, s, nil)
}

func refusedBatch(t *testing.T, open Open) {
	s := open("s")
	if err := s.(session.BatchAppender).AppendBatch(t.Context(), "run/1", append(user(1, 1), item.Item{})); err == nil {
		t.Error("a batch with the zero Item was taken")
	}
	addBatch(t, s, "run/1", user(1, 2))
	holds(t, s, user(1, 2))
}

func batchesAtOnce(t *testing.T, open Open) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := open("s").(session.BatchAppender).AppendBatch(t.Context(), "run/1", user(1, 3)); err != nil {
				t.Errorf("AppendBatch: %v", err)
			}
		})
	}
	wg.Wait()
	holds(t, open("s"), user(1, 3))
}
