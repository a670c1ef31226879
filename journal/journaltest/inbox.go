package journaltest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// entry returns an entry with that key and a body that is equal to no other.
func (s *store) entry(key string) journal.Entry {
	return journal.Entry{Key: key, Body: s.record(&journal.Decided{Verdict: journal.Approve, By: "<ann> & é\u2028"})}
}

func inbox(s *store) {
	if err := s.Post(s.ctx, "a", s.entry("k")); !errors.Is(err, journal.ErrUnknownRun) {
		s.Errorf("post to a run that does not exist: %v, want ErrUnknownRun", err)
	}
	s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: hour})
	if err := s.Post(s.ctx, "a", s.entry("k")); !errors.Is(err, journal.ErrUnknownRun) {
		s.Errorf("post to a run without records: %v, want ErrUnknownRun", err)
	}
	s.mustAppend("a", s.batch(1))
	s.mustAppend("b", s.batch(1))

	z, y, x := s.entry("z"), s.entry("Z"), s.entry("t1.0.0#1 <é>")
	for _, e := range []journal.Entry{z, y, x, z, x} {
		s.mustPost("a", e)
	}
	s.mustInbox("a", z, y, x)
	err := s.Post(s.ctx, "a", s.entry("z"))
	if refused, ok := errors.AsType[*journal.EntryError](err); !ok || *refused != (journal.EntryError{Run: "a", First: z}) {
		s.Errorf("post of another body: %v, want *EntryError with the first", err)
	}
	s.mustInbox("a", z, y, x)
	s.mustInbox("b")
	s.mustInbox("never")
	s.mustPost("b", s.entry("z"))

	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		e := s.entry("raced")
		wg.Go(func() { errs[i] = s.Post(s.ctx, "a", e) })
	}
	wg.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err != nil })
	if len(errs) != 1 {
		s.Errorf("%d entries with one key were accepted", len(errs))
	}
}

func consumption(s *store) {
	s.mustAppend("a", s.batch(1))
	one, two, three := s.entry("1"), s.entry("2"), s.entry("3")
	for _, e := range []journal.Entry{one, two, three} {
		s.mustPost("a", e)
	}
	c := s.seize("a")
	for name, with := range map[string][]journal.Companion{
		"a companion that fails": {journal.Consume("1"), &companion{err: errors.New("no")}},
		"a key without entry":    {journal.Consume("1", "9")},
		"a key twice":            {journal.Consume("1"), journal.Consume("1")},
	} {
		if err := s.Append(s.ctx, "a", c.Epoch, 1, s.batch(1), with...); err == nil {
			s.Errorf("append with %s succeeded", name)
		}
		s.mustInbox("a", one, two, three)
	}
	if err := s.Append(s.ctx, "a", c.Epoch, 0, s.batch(1), journal.Consume("1")); err == nil {
		s.Error("append in the wrong place succeeded")
	}
	s.mustInbox("a", one, two, three)
	also := &companion{}
	if err := s.Append(s.ctx, "a", c.Epoch, 1, s.batch(2), journal.Consume("3", "1"), also, journal.Consume()); err != nil {
		s.Fatal(err)
	}
	if also.commits != 1 {
		s.Errorf("companion beside a consumption committed %d times", also.commits)
	}
	s.mustInbox("a", two)
	if got := len(s.mustRead("a", 0)); got != 3 {
		s.Errorf("%d records, want 3", got)
	}
}

func consumedStays(s *store) {
	s.mustAppend("a", s.batch(1))
	e := s.entry("k")
	s.mustPost("a", e)
	s.mustAppend("a", s.batch(1), journal.Consume("k"))
	s.mustPost("a", e)
	s.mustInbox("a")
	err := s.Post(s.ctx, "a", s.entry("k"))
	if refused, ok := errors.AsType[*journal.EntryError](err); !ok || refused.First != e {
		s.Errorf("another body after the consumption: %v, want *EntryError with the first", err)
	}
	c := s.seize("a")
	if err := s.Append(s.ctx, "a", c.Epoch, c.Head, s.batch(1), journal.Consume("k")); err == nil {
		s.Error("an entry was consumed twice")
	}
	s.mustInbox("a")
}

func (s *store) mustList(q journal.Query) []journal.RunInfo {
	s.Helper()
	infos, err := s.List(s.ctx, q)
	if err != nil {
		s.Fatalf("List(%+v): %v", q, err)
	}
	return infos
}

func list(s *store) {
	s.mustClaim("claimed only", journal.ClaimRequest{Owner: owner(1), TTL: hour})
	start := time.Now().Add(-time.Second)
	for _, r := range []struct{ run, session string }{{"e", "s1"}, {"d", "s2"}, {"c", "s1"}, {"b", ""}, {"a", "s1"}} {
		s.mustAppend(r.run, []journal.Record{s.started(r.run, r.session)})
	}
	s.mustAppend("c", []journal.Record{s.record(&journal.Cancelled{}), s.record(&journal.Finished{Cancelled: true})})
	s.mustAppend("c", s.batch(1)) // evidence may still come in
	inFrame := journal.Encode(journal.Fact{Frame: "t1.0.0", Body: &journal.Finished{}}, [16]byte{})
	s.mustAppend("d", []journal.Record{inFrame})
	s.mustAppend("b", []journal.Record{s.record(&journal.Forked{Run: "b", Session: &journal.SessionRef{ID: "s3"}})})

	for _, tt := range []struct {
		q    journal.Query
		want []string
	}{
		{journal.Query{}, []string{"a", "b", "c", "d", "e"}},
		{journal.Query{Limit: 2}, []string{"a", "b"}},
		{journal.Query{Limit: 2, Before: "b"}, []string{"c", "d"}},
		{journal.Query{Before: "e"}, nil},
		{journal.Query{Open: true}, []string{"a", "b", "d", "e"}},
		{journal.Query{Session: "s1"}, []string{"a", "c", "e"}},
		{journal.Query{Session: "s1", Open: true, Limit: 1, Before: "b"}, []string{"e"}},
		{journal.Query{Session: "s3"}, []string{"b"}},
		{journal.Query{Session: "s4"}, nil},
	} {
		var got []string
		for _, info := range s.mustList(tt.q) {
			got = append(got, info.Run)
		}
		if !slices.Equal(got, tt.want) {
			s.Errorf("List(%+v) = %v, want %v", tt.q, got, tt.want)
		}
	}
	if _, err := s.List(s.ctx, journal.Query{Before: "z"}); !errors.Is(err, journal.ErrUnknownRun) {
		s.Errorf("listing before a run that does not exist: %v, want ErrUnknownRun", err)
	}
	s.checkInfo(start)
}

// checkInfo checks what a listing says of the run that has ended.
func (s *store) checkInfo(start time.Time) {
	s.Helper()
	end := time.Now().Add(time.Second)
	one, two := s.entry("1"), s.entry("2")
	s.mustPost("c", one)
	s.mustPost("c", two)
	s.mustAppend("c", nil, journal.Consume("1"))
	c := s.seize("c")
	held := s.mustList(journal.Query{Before: "b", Limit: 1})[0]
	if held.Run != "c" || held.Session != "s1" || held.Head != 4 || !held.Ended || held.Inbox != 1 {
		s.Errorf("listed as %+v, want run c of session s1 with 4 records and one entry, ended", held)
	}
	if held.Created.Before(start) || held.Updated.Before(held.Created) || held.Updated.After(end) {
		s.Errorf("created %v, updated %v, want both between %v and %v", held.Created, held.Updated, start, end)
	}
	if h := held.Holder; h == nil || h.Epoch != c.Epoch || h.Owner != owner(1) || !h.Until.After(end) {
		s.Errorf("holder is %+v, want epoch %d of %+v", h, c.Epoch, owner(1))
	}
	if err := s.Release(s.ctx, "c", c.Epoch, journal.Rest{}); err != nil {
		s.Fatal(err)
	}
	if free := s.mustList(journal.Query{Before: "b", Limit: 1})[0]; free.Holder != nil {
		s.Errorf("released run has the holder %+v", free.Holder)
	}
}
