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
		if err := s.Release(s.ctx, run, epoch, journal.Rest{Due: at}); err != nil {
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
	s.mustPost("a", journal.Entry{Key: "k2", Body: s.batch(1)[0]})
	s.mustPost("a", journal.Entry{Key: "k3", Body: s.batch(1)[0]})
	a = s.seize("a")
	if err := s.Release(s.ctx, "a", a.Epoch, journal.Rest{Due: journal.Never, Unread: 2}); err != nil {
		s.Fatalf("Release(a): %v", err)
	}
	is("a is released by who saw its entries", "b")
	s.mustPost("a", journal.Entry{Key: "k4", Body: s.batch(1)[0]})
	is("a has an entry that nobody saw", "b", "a")
	s.mustAppend("a", nil, journal.Consume("k2", "k3", "k4"))
	a = s.seize("a")
	release("a", a.Epoch, journal.Never)

	b = s.seize("b")
	release("b", b.Epoch, time.Now().Add(-time.Second))
	is("the time of b has come", "b")
	s.mustAppend("b", []journal.Record{s.record(&journal.Finished{})})
	is("b has ended")
}

// held checks which runs are listed as claimed by the processes of a host.
func held(s *store) {
	is := func(when string, want ...string) {
		s.Helper()
		infos, err := s.List(s.ctx, journal.Query{Host: "host"})
		if err != nil {
			s.Fatalf("List: %v", err)
		}
		var got []string
		for _, info := range infos {
			got = append(got, info.Run)
		}
		if !slices.Equal(got, want) {
			s.Errorf("%s: held are %q, want %q", when, got, want)
		}
	}
	for _, run := range []string{"a", "b", "c"} {
		s.mustAppend(run, []journal.Record{s.started(run, "")})
	}
	is("all are claimed", "c", "b", "a")
	b := s.seize("b")
	if err := s.Release(s.ctx, "b", b.Epoch, journal.Rest{}); err != nil {
		s.Fatal(err)
	}
	is("b is released", "c", "a")
	s.mustAppend("c", []journal.Record{s.record(&journal.Finished{})})
	is("c has ended", "a")
	a := s.seize("a")
	if err := s.Release(s.ctx, "a", a.Epoch, journal.Rest{}); err != nil {
		s.Fatal(err)
	}
	other := owner(2)
	other.Host = "other"
	a = s.mustClaim("a", journal.ClaimRequest{Owner: other, TTL: hour})
	is("a is claimed from another host")
	if err := s.Release(s.ctx, "a", a.Epoch, journal.Rest{}); err != nil {
		s.Fatal(err)
	}
	s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: time.Nanosecond})
	time.Sleep(5 * time.Millisecond)
	is("the claim of a has run out", "a")
}
