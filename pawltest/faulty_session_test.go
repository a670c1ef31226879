package pawltest_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/session/sessiontest"
)

func TestFaultySession(t *testing.T) {
	a, b, c := item.UserText("a"), item.UserText("b"), item.UserText("c")
	boom := errors.New("boom")
	for _, test := range []struct {
		name  string
		fault pawltest.SessionFault
		err   error
		want  []item.Item
	}{
		{"failed", pawltest.SessionFault{}, pawltest.ErrSessionFault, []item.Item{a, c}},
		{"acknowledgement lost", pawltest.SessionFault{Stored: pawltest.AllItems}, pawltest.ErrSessionFault, []item.Item{a, b, c, c}},
		{"more than there is", pawltest.SessionFault{Stored: 3}, pawltest.ErrSessionFault, []item.Item{a, b, c, c}},
		{"part", pawltest.SessionFault{Stored: 1, Err: boom}, boom, []item.Item{a, b, c}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			faults := map[int]pawltest.SessionFault{2: test.fault}
			s := pawltest.NewFaultySession(session.NewMemory("chat"), faults)
			delete(faults, 2)
			if err := s.Append(ctx, []item.Item{a}); err != nil {
				t.Fatal(err)
			}
			if err := s.Append(ctx, []item.Item{b, c}); err != test.err {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if err := s.Append(ctx, []item.Item{c}); err != nil {
				t.Fatal(err)
			}
			got, err := s.Items(ctx, -1)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if s.Appends() != 3 {
				t.Errorf("%d appends, want 3", s.Appends())
			}
		})
	}
}

func TestFaultySessionIsPlain(t *testing.T) {
	var s session.Session = pawltest.NewFaultySession(session.NewMemory("chat"), nil)
	if _, ok := s.(session.BatchAppender); ok {
		t.Error("it remembers batches")
	}
	if _, ok := s.(session.Backend); ok {
		t.Error("it names a backend")
	}
	if s.ID() != "chat" {
		t.Errorf("its id is %q", s.ID())
	}
}

func TestFaultySessionWithoutFaults(t *testing.T) {
	sessiontest.Run(t, func(*testing.T) sessiontest.Open {
		var mu sync.Mutex
		open := map[string]session.Session{}
		return func(id string) session.Session {
			mu.Lock()
			defer mu.Unlock()
			if open[id] == nil {
				open[id] = session.NewMemory(id)
			}
			return pawltest.NewFaultySession(open[id], nil)
		}
	})
}
