package journaltest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/journal"
)

// transact checks a driver that is a journal.Transactor.
func transact(s *store) {
	d := journal.TransactorOf(s.Driver)
	if d == nil {
		return
	}
	calls := 0
	returns := func(recs []journal.Record, err error) func(context.Context, any) ([]journal.Record, error) {
		return func(context.Context, any) ([]journal.Record, error) {
			calls++
			return recs, err
		}
	}
	recs := s.batch(5)
	s.mustAppend("a", recs[:2])
	old := s.seize("a")
	c := s.seize("a")
	if err := d.Transact(s.ctx, "a", old.Epoch, 2, returns(s.batch(1), nil)); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("under the old epoch: %v, want ErrFenced", err)
	}
	for _, after := range []uint64{1, 3} {
		err := d.Transact(s.ctx, "a", c.Epoch, after, returns(s.batch(1), nil))
		if conflict, ok := errors.AsType[*journal.ConflictError](err); !ok || *conflict != (journal.ConflictError{Run: "a", After: after, Head: 2}) {
			s.Errorf("after %d of 2: %v, want *ConflictError", after, err)
		}
	}
	done, cancel := context.WithCancel(s.ctx)
	cancel()
	if err := d.Transact(done, "a", c.Epoch, 2, returns(s.batch(1), nil)); !errors.Is(err, context.Canceled) {
		s.Errorf("with a context that is done: %v", err)
	}
	if calls != 0 {
		s.Errorf("the function was called %d times for what was refused", calls)
	}

	errNo := errors.New("no")
	if err := d.Transact(s.ctx, "a", c.Epoch, 2, returns(s.batch(1), errNo)); !errors.Is(err, errNo) || !strings.HasPrefix(err.Error(), "pawl: ") {
		s.Errorf("a function that fails: %v, want %v, wrapped", err, errNo)
	}
	err := d.Transact(s.ctx, "a", c.Epoch, 2, func(context.Context, any) ([]journal.Record, error) { panic("oh") })
	if err == nil || !strings.Contains(err.Error(), "oh") {
		s.Errorf("a function that panics: %v", err)
	}
	s.holds("a", recs[:2])

	calls = 0
	if err := d.Transact(s.ctx, "a", c.Epoch, 2, returns(slices.Clone(recs[2:4]), nil)); err != nil || calls != 1 {
		s.Errorf("Transact: %v, %d calls", err, calls)
	}
	s.holds("a", recs[:4])
	if err := s.Append(s.ctx, "a", c.Epoch, 4, recs[4:]); err != nil {
		s.Errorf("the next append: %v", err)
	}
	s.holds("a", recs)
}
