package journaltest

import (
	"slices"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// due checks which runs are listed as due: a claim makes a run due, a release says when it is
// again, and an entry that was not consumed makes it due in any case.
func due(s *store) {
	is := func(when string, want ...string) {
		s.Helper()
		for _, q := range []journal.Query{{Due: true}, {Due: true, Open: true}, {Due: true, Session: "chat"}} {
			infos, err := s.List(s.ctx, q)
			if err != nil {
				s.Fatalf("List(%+v): %v", q, err)
			}
			var got []string
			for _, info := range infos {
				got = append(got, info.Run)
			}
			if !slices.Equal(got, want) {
				s.Errorf("%s: due are %q, want %q (%+v)", when, got, want, q)
			}
		}
	}
	release := func(run string, epoch uint64, at time.Time) {
		s.Helper()
		if err := s.Release(s.ctx, run, epoch, at); err != nil {
			s.Fatalf("Release(%s): %v", run, err)
		}
	}
	s.mustAppend("a", []journal.Record{s.started("a", "chat")})
	s.mustAppend("b", []journal.Record{s.started("b", "chat")})
	is("claimed", "b", "a")
	a, b := s.seize("a"), s.seize("b")
	release("a", a.Epoch-1, journal.Never)
	is("released under an old epoch", "b", "a")
	release("a", a.Epoch, journal.Never)
	is("a is released for ever", "b")
	release("b", b.Epoch, time.Now().Add(hour))
	is("b is released for an hour")
	release("b", b.Epoch, time.Time{})
	is("b is released again, which does nothing")

	e := journal.Entry{Key: "k", Body: s.batch(1)[0]}
	s.mustPost("a", e)
	is("a has an entry", "a")
	s.mustAppend("a", s.batch(1), journal.Consume("k"))
	a = s.seize("a")
	is("its entry is consumed, but it has a claim", "a")
	release("a", a.Epoch, journal.Never)
	is("a is released again")

	b = s.seize("b")
	is("b has a claim", "b")
	release("b", b.Epoch, time.Time{})
	is("b is due at once", "b")
	b = s.seize("b")
	release("b", b.Epoch, time.Now().Add(-time.Second))
	is("the time of b has come", "b")
	s.mustAppend("b", []journal.Record{s.record(&journal.Finished{})})
	is("b has ended")
}
