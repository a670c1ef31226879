package journaltest

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// prune checks which runs are deleted, and that nothing of them is left.
func prune(s *store) {
	p, ok := s.Driver.(journal.Pruner)
	if !ok {
		return
	}
	removes := func(when string, before time.Time, want int) {
		s.Helper()
		if n, err := p.Prune(s.ctx, before); err != nil || n != want {
			s.Errorf("%s: %d runs are deleted, %v; want %d", when, n, err, want)
		}
	}
	ended := []journal.Record{s.record(&journal.Finished{})}
	kept := map[string][]journal.Record{}
	for _, run := range []string{"open", "claimed", "gone", "other"} {
		kept[run] = []journal.Record{s.started(run, "chat"), s.batch(1)[0]}
		s.mustAppend(run, kept[run])
		s.mustPost(run, journal.Entry{Key: "k", Body: s.batch(1)[0]})
	}
	for _, run := range []string{"claimed", "gone"} {
		s.mustAppend(run, ended)
		kept[run] = append(kept[run], ended...)
	}
	s.mustRelease("gone", journal.Rest{Due: journal.Never})
	s.mustRelease("open", journal.Rest{Due: journal.Never})
	removes("nothing is as old", time.Now().Add(-hour), 0)
	soon := time.Now().Add(hour)
	removes("one has ended and is not claimed", soon, 1)
	removes("it is gone", soon, 0)
	s.holds("gone", nil)
	s.mustInbox("gone")
	if err := s.Post(s.ctx, "gone", journal.Entry{Key: "k", Body: ended[0]}); !errors.Is(err, journal.ErrUnknownRun) {
		s.Errorf("Post to a run that is gone: %v", err)
	}
	for _, run := range []string{"open", "claimed", "other"} {
		s.holds(run, kept[run])
	}
	infos, err := s.List(s.ctx, journal.Query{})
	if err != nil || len(infos) != 3 {
		s.Errorf("listed are %+v, %v", infos, err)
	}
	again := []journal.Record{s.started("gone", "")}
	s.mustAppend("gone", again)
	s.holds("gone", again)
	s.mustInbox("gone")

	const many = 250
	for i := range many {
		run := fmt.Sprint("many", i)
		s.mustAppend(run, []journal.Record{s.started(run, ""), ended[0]})
		s.mustRelease(run, journal.Rest{})
	}
	removes("many", soon, many)
	s.holds("open", kept["open"])
}
