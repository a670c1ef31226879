package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// companion counts its commits and fails with err.
type companion struct {
	commits int
	err     error
}

func (c *companion) Commit(context.Context, any) error {
	c.commits++
	return c.err
}

func conflict(s *store) {
	first := s.batch(3)
	s.mustAppend("a", first)
	c := s.seize("a")
	for _, after := range []uint64{0, 2, 4} {
		err := s.Append(s.ctx, "a", c.Epoch, after, s.batch(1))
		conflict, ok := errors.AsType[*journal.ConflictError](err)
		if !ok || *conflict != (journal.ConflictError{Run: "a", After: after, Head: 3}) {
			s.Errorf("append after %d of 3: %v, want *ConflictError", after, err)
		}
	}
	s.holds("a", first)
}

func allOrNothing(s *store) {
	const batches, size = 20, 3
	c := s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: hour})
	var want []journal.Record
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for last := 0; ; {
			select {
			case <-done:
				return
			default:
			}
			recs, err := s.Read(s.ctx, "a", 0)
			if err != nil || len(recs)%size != 0 || len(recs) < last {
				s.Errorf("read %d records after %d, %v: part of a batch is missing", len(recs), last, err)
				return
			}
			last = len(recs)
		}
	})
	for range batches {
		recs := s.batch(size)
		if err := s.Append(s.ctx, "a", c.Epoch, uint64(len(want)), recs); err != nil {
			s.Errorf("Append: %v", err)
			break
		}
		want = append(want, recs...)
	}
	close(done)
	reader.Wait()
	s.holds("a", want)
}

func prefixReads(s *store) {
	recs := s.batch(5)
	s.mustAppend("a", recs[:2])
	s.mustAppend("a", recs[2:])
	for after := range uint64(5) {
		if got := s.mustRead("a", after); !slices.Equal(got, recs[after:]) {
			s.Errorf("after %d: %v\nwant %v", after, got, recs[after:])
		}
	}
	for _, after := range []uint64{5, 6, 1 << 40} {
		if got := s.mustRead("a", after); len(got) != 0 {
			s.Errorf("after %d: %v, want nothing", after, got)
		}
	}
	if got := s.mustRead("never", 0); len(got) != 0 {
		s.Errorf("a run that does not exist has %v", got)
	}
}

// oddTexts are texts that stores have been known to change.
var oddTexts = []string{
	"<b>&amp;</b> 'quoted' \"twice\" \\ back",
	"\x00\x01\x1f\x7f",
	"line\r\nbreaks\u2028and\u2029separators\u0085",
	"e\u0301 and \u00e9, \u1e9e, \ufeff, \ufffd, 👩‍👩‍👧",
	" leading and trailing ",
	"% _ ? :a $1 -- ; DROP",
	strings.Repeat("long ", 100_000),
}

func byteFidelity(s *store) {
	var recs []journal.Record
	for _, text := range oddTexts {
		recs = append(recs, s.record(&journal.Cancelled{By: text}))
	}
	raw := "{ \"n\" : 1.0e+02,\t\"z\":\"\\u0041\\/<>&\u2028\",\n\"big\":123456789012345678901234567890 }"
	recs = append(recs, s.record(&journal.Loaded{Items: []item.Item{item.FromTrusted(raw)}}))
	salt := [16]byte{0, 0xff, '\'', '"', '\\', 0x80, 0xc3, 0x28, '\n'}
	frame := "t1.0.0/a <&>'\" é\u2028"
	for _, time := range []int64{0, -1, 1 << 62, -1 << 62} {
		recs = append(recs, journal.Encode(journal.Fact{Frame: frame, Time: time, Body: &journal.Resumed{}}, salt))
	}
	other := journal.Record{Kind: "fröm <later>", Version: 1 << 30, Payload: `{"x":1}`, Salt: salt}
	other.Hash = journal.LeafHash(&other)
	recs = append(recs, other)

	run := "run/with 'odd' <name> é %"
	s.mustAppend(run, recs)
	got := s.mustRead(run, 0)
	if len(got) != len(recs) {
		s.Fatalf("%d records came back, want %d", len(got), len(recs))
	}
	for i := range recs {
		if got[i] != recs[i] {
			s.Errorf("record came back as\n%.300s\nwant\n%.300s", fmt.Sprintf("%#v", got[i]), fmt.Sprintf("%#v", recs[i]))
		}
		if err := got[i].Verify(); err != nil {
			s.Error(err)
		}
	}
	if infos := s.mustList(journal.Query{}); len(infos) != 1 || infos[0].Run != run {
		s.Errorf("listed %v, want run %q", infos, run)
	}
}

func separate(s *store) {
	a, b := s.batch(2), s.batch(3)
	passed := slices.Clone(a)
	s.mustAppend("a", passed)
	s.mustAppend("A", b)
	clear(passed)
	s.holds("a", a)
	clear(s.mustRead("a", 0))
	s.holds("a", a)
	s.holds("A", b)
	s.mustAppend("a", b)
	s.holds("a", slices.Concat(a, b))
	s.holds("A", b)
}

func companions(s *store) {
	first := s.batch(1)
	good := &companion{}
	s.mustAppend("a", first, good)
	if good.commits != 1 {
		s.Errorf("companion committed %d times", good.commits)
	}
	c := s.seize("a")
	bad := &companion{err: errors.New("no room")}
	if err := s.Append(s.ctx, "a", c.Epoch, 1, s.batch(2), bad); !errors.Is(err, bad.err) {
		s.Errorf("append with a companion that fails: %v", err)
	}
	s.holds("a", first)

	unused := &companion{}
	if err := s.Append(s.ctx, "a", c.Epoch+1, 1, s.batch(1), unused); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("append under another epoch: %v", err)
	}
	if err := s.Append(s.ctx, "a", c.Epoch, 0, s.batch(1), unused); err == nil {
		s.Error("append in the wrong place succeeded")
	}
	if unused.commits != 0 {
		s.Errorf("companion of a refused append committed %d times", unused.commits)
	}

	// Without records only the companions commit.
	alone := &companion{}
	if err := s.Append(s.ctx, "a", c.Epoch, 1, nil, alone); err != nil || alone.commits != 1 {
		s.Errorf("append of no records: %v, %d commits", err, alone.commits)
	}
	second := s.batch(1)
	if err := s.Append(s.ctx, "a", c.Epoch, 1, second); err != nil {
		s.Errorf("append after one that failed: %v", err)
	}
	s.holds("a", slices.Concat(first, second))
}

func oneWinner(s *store) {
	const writers = 8
	claims := make([]journal.Claim, writers)
	first := s.mustClaim("a", journal.ClaimRequest{Owner: owner(0), TTL: hour})
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			claims[i], _ = s.Claim(s.ctx, "a", journal.ClaimRequest{Owner: owner(i), TTL: hour, Takeover: first.Epoch})
		})
	}
	wg.Wait()
	claims = slices.DeleteFunc(claims, func(c journal.Claim) bool { return c == journal.Claim{} })
	if len(claims) != 1 {
		s.Fatalf("%d takeovers of one claim were granted", len(claims))
	}

	for round := range 5 {
		batches := make([][]journal.Record, writers)
		errs := make([]error, writers)
		for i := range batches {
			batches[i] = s.batch(2)
		}
		for i := range writers {
			wg.Go(func() { errs[i] = s.Append(s.ctx, "a", claims[0].Epoch, uint64(2*round), batches[i]) })
		}
		wg.Wait()
		winner := slices.Index(errs, nil)
		if winner < 0 || slices.Contains(errs[winner+1:], nil) {
			s.Fatalf("appends after the same record: %v, want one to succeed", errs)
		}
		if got := s.mustRead("a", uint64(2*round)); !slices.Equal(got, batches[winner]) {
			s.Errorf("the ledger has %v, want what the winner appended", got)
		}
	}
}

func cancelled(s *store) {
	s.mustAppend("due", s.batch(1))
	s.mustAppend("a", s.batch(1))
	c := s.seize("a")
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, claimErr := s.Claim(ctx, "b", journal.ClaimRequest{Owner: owner(1), TTL: hour})
	_, readErr := s.Read(ctx, "a", 0)
	_, inboxErr := s.Inbox(ctx, "a")
	_, listErr := s.List(ctx, journal.Query{})
	s.mustRelease("due", journal.Rest{})
	_, nextErr := s.Next(ctx, journal.NextRequest{Owner: owner(1), TTL: hour})
	for name, err := range map[string]error{
		"Claim":   claimErr,
		"Renew":   s.Renew(ctx, "a", c.Epoch, hour),
		"Release": s.Release(ctx, "a", c.Epoch, journal.Rest{}),
		"Append":  s.Append(ctx, "a", c.Epoch, 1, s.batch(1)),
		"Read":    readErr,
		"Post":    s.Post(ctx, "a", s.entry("k")),
		"Inbox":   inboxErr,
		"List":    listErr,
		"Next":    nextErr,
	} {
		if !errors.Is(err, context.Canceled) {
			s.Errorf("%s with a cancelled context: %v", name, err)
		}
	}
	if err := s.Append(s.ctx, "a", c.Epoch, 1, s.batch(1)); err != nil {
		s.Errorf("append after the cancelled calls: %v", err)
	}
	s.mustInbox("a")
}
