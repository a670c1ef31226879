// Package sessiontest checks that a session keeps the contract of session.Session.
package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
)

// Open gives the sessions of one store. For the same id it returns the same session
// or another handle on it.
type Open func(id string) session.Session

// Run checks the sessions of a store, one subtest for each rule. open returns the
// sessions of an empty store and arranges, with t.Cleanup, that it is closed. The
// rules of session.BatchAppender and session.Backend are checked if the sessions
// implement them.
func Run(t *testing.T, open func(t *testing.T) Open) {
	for _, rule := range []struct {
		name  string
		check func(*testing.T, Open)
	}{
		{"an unused session is empty", unused},
		{"items come back in order", order},
		{"a limit selects the newest", limits},
		{"bytes are kept", fidelity},
		{"append takes all or none", allOrNone},
		{"pop takes the newest", pop},
		{"clear removes all", clearAll},
		{"sessions are separate", separate},
		{"slices are the caller's", slicesAreCallers},
		{"appends do not interleave", appendsAtOnce},
		{"an item is popped once", popsAtOnce},
		{"a done context changes nothing", doneContext},
	} {
		t.Run(rule.name, func(t *testing.T) { rule.check(t, open(t)) })
	}
	if _, ok := open(t)("s").(session.BatchAppender); ok {
		t.Run("batches", func(t *testing.T) { runBatches(t, open) })
	}
	if _, ok := open(t)("s").(session.Backend); ok {
		t.Run("backend", func(t *testing.T) { backend(t, open(t)) })
	}
}

// user returns user messages with the numbers from first to last.
func user(first, last int) []item.Item {
	var items []item.Item
	for n := first; n <= last; n++ {
		items = append(items, item.UserText(fmt.Sprint("message ", n)))
	}
	return items
}

func add(t *testing.T, s session.Session, items ...item.Item) {
	t.Helper()
	if err := s.Append(t.Context(), items); err != nil {
		t.Fatalf("Append: %v", err)
	}
}

func read(t *testing.T, s session.Session, limit int) []item.Item {
	t.Helper()
	items, err := s.Items(t.Context(), limit)
	if err != nil {
		t.Fatalf("Items(%d): %v", limit, err)
	}
	return items
}

// holds checks that the session has exactly these items.
func holds(t *testing.T, s session.Session, want []item.Item) {
	t.Helper()
	if got := read(t, s, -1); !slices.Equal(got, want) {
		t.Errorf("session %s has\n%v\nwant\n%v", s.ID(), got, want)
	}
}

func unused(t *testing.T, open Open) {
	s := open("s")
	if s.ID() != "s" {
		t.Errorf("ID() = %q", s.ID())
	}
	holds(t, s, nil)
	if it, ok, err := s.Pop(t.Context()); ok || err != nil || !it.IsZero() {
		t.Errorf("Pop() = %v, %v, %v", it, ok, err)
	}
	if err := s.Clear(t.Context()); err != nil {
		t.Errorf("Clear() = %v", err)
	}
	add(t, s) // nothing
	holds(t, s, nil)
}

func order(t *testing.T, open Open) {
	s := open("s")
	add(t, s, user(1, 2)...)
	add(t, s, user(3, 3)...)
	add(t, open("s"), user(4, 7)...)
	holds(t, s, user(1, 7))
}

func limits(t *testing.T, open Open) {
	s := open("s")
	add(t, s, user(1, 5)...)
	for _, tt := range []struct {
		limit int
		want  []item.Item
	}{
		{0, nil},
		{1, user(5, 5)},
		{3, user(3, 5)},
		{5, user(1, 5)},
		{6, user(1, 5)},
		{-1, user(1, 5)},
		{-2, user(1, 5)},
	} {
		if got := read(t, s, tt.limit); !slices.Equal(got, tt.want) {
			t.Errorf("Items(%d) = %v, want %v", tt.limit, got, tt.want)
		}
	}
}

func fidelity(t *testing.T, open Open) {
	s := open("s")
	var items []item.Item
	for _, raw := range []string{
		`{}`,
		`{"type":"from_the_future","x":[1.0,1e400,-0,{"":null}]}`,
		`{ "role" : "user",	"content" : "<&> '\u2028\\' \u00e9\ud83d\ude00" }`,
		"{\"role\":\"user\",\"content\":\"\u2028é😀 a\u0301 \\u0000\"}",
		`{"role":"user","role":"assistant","content":"twice"}`,
	} {
		it, err := item.ParseString(raw)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, it)
	}
	items = append(items, items[0], item.UserText(string(make([]byte, 1<<20))))
	add(t, s, items...)
	holds(t, s, items)
	if it, ok, err := s.Pop(t.Context()); it != items[len(items)-1] || !ok || err != nil {
		t.Errorf("Pop: %d bytes, %v, %v; want the long item", len(it.Raw()), ok, err)
	}
}

func allOrNone(t *testing.T, open Open) {
	s := open("s")
	add(t, s, user(1, 1)...)
	err := s.Append(t.Context(), append(user(2, 3), item.Item{}))
	if err == nil {
		t.Error("the zero Item was appended")
	}
	holds(t, s, user(1, 1))
}

func pop(t *testing.T, open Open) {
	s := open("s")
	add(t, s, user(1, 3)...)
	for n := 3; n >= 1; n-- {
		it, ok, err := s.Pop(t.Context())
		if want := user(n, n)[0]; it != want || !ok || err != nil {
			t.Errorf("Pop() = %v, %v, %v; want %v", it, ok, err, want)
		}
		holds(t, open("s"), user(1, n-1))
	}
	if _, ok, err := s.Pop(t.Context()); ok || err != nil {
		t.Errorf("Pop() of an empty session = %v, %v", ok, err)
	}
	add(t, s, user(4, 4)...)
	holds(t, s, user(4, 4))
}

func clearAll(t *testing.T, open Open) {
	s := open("s")
	add(t, s, user(1, 3)...)
	if err := s.Clear(t.Context()); err != nil {
		t.Fatalf("Clear: %v", err)
	}
	holds(t, open("s"), nil)
	add(t, s, user(4, 4)...)
	holds(t, s, user(4, 4))
}

func separate(t *testing.T, open Open) {
	ids := []string{"s", "S", "s ", "%", "_", "s'--", "", "é", "e\u0301"}
	for n, id := range ids {
		add(t, open(id), user(n, n)...)
	}
	if err := open("S").Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n, id := range ids {
		want := user(n, n)
		if id == "S" {
			want = nil
		}
		holds(t, open(id), want)
	}
}

func slicesAreCallers(t *testing.T, open Open) {
	s := open("s")
	items := user(1, 3)
	add(t, s, items...)
	items[0] = item.UserText("changed")
	read(t, s, -1)[1] = item.UserText("changed")
	_ = append(read(t, s, 2)[:1], item.UserText("changed"))
	holds(t, s, user(1, 3))
}

func appendsAtOnce(t *testing.T, open Open) {
	const writers, batches = 8, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for b := range batches {
				n := 1000*w + 10*b
				if err := open("s").Append(t.Context(), user(n, n+2)); err != nil {
					t.Errorf("Append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := read(t, open("s"), -1)
	if len(got) != 3*writers*batches {
		t.Fatalf("%d items, want %d", len(got), 3*writers*batches)
	}
	next := make([]int, writers) // the batch each writer must have next
	for i := 0; i < len(got); i += 3 {
		found := false
		for w := range writers {
			n := 1000*w + 10*next[w]
			if !found && slices.Equal(got[i:i+3], user(n, n+2)) {
				next[w]++
				found = true
			}
		}
		if !found {
			t.Fatalf("items %d to %d are no next batch: %v", i, i+2, got[i:i+3])
		}
	}
}

func popsAtOnce(t *testing.T, open Open) {
	const n = 40
	add(t, open("s"), user(1, n)...)
	popped := make(chan item.Item, n+8)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				it, ok, err := open("s").Pop(t.Context())
				if err != nil {
					t.Errorf("Pop: %v", err)
				}
				if !ok {
					return
				}
				popped <- it
			}
		})
	}
	wg.Wait()
	close(popped)
	seen := map[item.Item]int{}
	for it := range popped {
		seen[it]++
	}
	for _, it := range user(1, n) {
		if seen[it] != 1 {
			t.Errorf("%v was popped %d times", it, seen[it])
		}
	}
}

func doneContext(t *testing.T, open Open) {
	s := open("s")
	add(t, s, user(1, 2)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, readErr := s.Items(ctx, -1)
	_, ok, popErr := s.Pop(ctx)
	errs := map[string]error{
		"Append": s.Append(ctx, user(3, 3)),
		"Pop":    popErr,
		"Clear":  s.Clear(ctx),
		"Items":  readErr,
	}
	if b, ok := s.(session.BatchAppender); ok {
		errs["AppendBatch"] = b.AppendBatch(ctx, "b", user(3, 3))
	}
	for call, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", call, err)
		}
	}
	if ok {
		t.Error("Pop returned an item")
	}
	holds(t, s, user(1, 2))
}

func backend(t *testing.T, open Open) {
	name := open("s").(session.Backend).Backend()
	if name == "" {
		t.Error("the backend has no name")
	}
	for _, id := range []string{"s", "other"} {
		if got := open(id).(session.Backend).Backend(); got != name {
			t.Errorf("the backend of session %s is %q, was %q", id, got, name)
		}
	}
}
