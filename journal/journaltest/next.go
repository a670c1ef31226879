package journaltest

import (
	"slices"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// queued stores a run that is due at a time.
func (s *store) queued(run string, b journal.Started, due time.Time) {
	s.Helper()
	b.Run = run
	s.mustAppend(run, []journal.Record{s.record(&b)})
	s.mustRelease(run, journal.Rest{Due: due})
}

// mustRelease claims the run, whoever holds it, and leaves it.
func (s *store) mustRelease(run string, rest journal.Rest) {
	s.Helper()
	c := s.seize(run)
	if err := s.Release(s.ctx, run, c.Epoch, rest); err != nil {
		s.Fatalf("Release(%s): %v", run, err)
	}
}

// mustNext checks that these runs are handed out, in order, and then no other.
func (s *store) mustNext(req journal.NextRequest, want ...string) {
	s.Helper()
	req.Owner, req.TTL = owner(1), hour
	var got []string
	for {
		next, err := s.Next(s.ctx, req)
		if err != nil {
			s.Fatalf("Next: %v", err)
		}
		if next == nil {
			break
		}
		got = append(got, next.Run)
	}
	if !slices.Equal(got, want) {
		s.Errorf("handed out were %q, want %q (%+v)", got, want, req)
	}
}

// next checks which runs are handed out, and that they are claimed then.
func next(s *store) {
	past := time.Now().Add(-time.Minute)
	s.mustNext(journal.NextRequest{})
	s.queued("later", journal.Started{}, time.Now().Add(hour))
	s.queued("waits", journal.Started{}, journal.Never)
	s.mustNext(journal.NextRequest{})

	s.queued("a", journal.Started{Agent: "clerk", Queue: "acme"}, past)
	s.mustNext(journal.NextRequest{Agents: []string{"other"}})
	s.mustNext(journal.NextRequest{Agents: []string{}})
	s.mustNext(journal.NextRequest{Queues: []string{"", "other"}})
	s.mustNext(journal.NextRequest{Full: []string{"other", "acme"}})
	before := s.seize("a")
	s.mustNext(journal.NextRequest{}) // it has a live claim
	if err := s.Release(s.ctx, "a", before.Epoch, journal.Rest{}); err != nil {
		s.Fatal(err)
	}
	got, err := s.Next(s.ctx, journal.NextRequest{Owner: owner(7), TTL: hour, Agents: []string{"clerk"}, Queues: []string{"acme"}})
	if err != nil || got == nil {
		s.Fatalf("Next: %v, %v", got, err)
	}
	if got.Run != "a" || got.Queue != "acme" || got.Claim.Epoch <= before.Epoch || got.Claim.Head != 1 || got.Claim.Previous != nil {
		s.Errorf("handed out was %+v", got)
	}
	infos, err := s.List(s.ctx, journal.Query{Host: "host"})
	if err != nil || len(infos) != 1 || infos[0].Holder == nil || infos[0].Holder.Owner != owner(7) || infos[0].Holder.Epoch != got.Claim.Epoch {
		s.Errorf("it is claimed by %+v, %v", infos, err)
	}
	if err := s.Append(s.ctx, "a", got.Claim.Epoch, 1, s.batch(1)); err != nil {
		s.Errorf("Append under the claim: %v", err)
	}

	s.mustRelease("a", journal.Rest{Due: journal.Never})
	s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: time.Nanosecond})
	time.Sleep(5 * time.Millisecond)
	got, err = s.Next(s.ctx, journal.NextRequest{Owner: owner(1), TTL: hour})
	if err != nil || got == nil || got.Run != "a" || got.Claim.Previous == nil {
		s.Errorf("a claim ran out, and handed out was %+v, %v", got, err)
	}

	s.mustPost("waits", journal.Entry{Key: "k", Body: s.batch(1)[0]})
	s.mustNext(journal.NextRequest{Agents: []string{"other"}}, "waits")
	s.mustRelease("waits", journal.Rest{Due: journal.Never, Unread: 1})
	s.mustNext(journal.NextRequest{})
	s.mustAppend("waits", []journal.Record{s.record(&journal.Finished{})})
	s.mustRelease("waits", journal.Rest{})
	s.mustNext(journal.NextRequest{})
	if _, err := s.Next(s.ctx, journal.NextRequest{Owner: owner(1)}); err == nil {
		s.Error("a claim of no time was granted")
	}
}

// nextOrder checks in which order runs are handed out.
func nextOrder(s *store) {
	at := func(ago int) time.Time { return time.Now().Add(-time.Duration(ago) * time.Minute) }
	for _, r := range []struct {
		run string
		b   journal.Started
		ago int
	}{
		{"low", journal.Started{Agent: "x", Priority: -1}, 9},
		{"b new", journal.Started{Agent: "x", Queue: "b"}, 1},
		{"b old", journal.Started{Agent: "y", Queue: "b"}, 5},
		{"a old", journal.Started{Agent: "x", Queue: "a"}, 7},
		{"a new", journal.Started{Agent: "y", Queue: "a"}, 2},
		{"none", journal.Started{Agent: "x"}, 3},
		{"high", journal.Started{Agent: "x", Queue: "a", Priority: 2}, 1},
	} {
		s.queued(r.run, r.b, at(r.ago))
	}
	all := []string{"high", "a old", "b old", "none", "a new", "b new", "low"}
	free := func() {
		for _, run := range all {
			s.Helper()
			s.mustRelease(run, journal.Rest{Due: journal.Never})
		}
	}
	s.mustNext(journal.NextRequest{}, all...)
	free()
	again := func() {
		free()
		for run, ago := range map[string]int{"low": 9, "b new": 1, "b old": 5, "a old": 7, "a new": 2, "none": 3, "high": 1} {
			s.mustRelease(run, journal.Rest{Due: at(ago)})
		}
	}
	again()
	s.mustNext(journal.NextRequest{Load: map[string]int64{"a": 1, "": 2}}, "high", "b old", "b new", "a old", "a new", "none", "low")
	again()
	s.mustNext(journal.NextRequest{Queues: []string{"a", "b"}, Agents: []string{"x"}, Load: map[string]int64{"a": 1 << 40}}, "high", "b new", "a old")
	s.mustNext(journal.NextRequest{Full: []string{"b"}, Agents: []string{"y", "x"}}, "none", "a new", "low")
}

// nextForEach checks that of several workers each gets another run, and none is left out.
func nextForEach(s *store) {
	const runs, workers = 40, 4
	for i := range runs {
		s.queued(string(rune('A'+i)), journal.Started{Queue: string(rune('a' + i%3))}, time.Time{})
	}
	var mu sync.Mutex
	times := map[string]int{}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				got, err := s.Next(s.ctx, journal.NextRequest{Owner: owner(1), TTL: hour})
				if err != nil {
					s.Errorf("Next: %v", err)
				}
				if got == nil {
					return
				}
				mu.Lock()
				times[got.Run]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(times) != runs {
		s.Errorf("%d of %d runs were handed out", len(times), runs)
	}
	for run, n := range times {
		if n != 1 {
			s.Errorf("run %s was handed out %d times", run, n)
		}
	}
}
