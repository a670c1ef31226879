package journaltest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

func epochsGrow(s *store) {
	var last uint64
	for i := range 3 {
		c := s.mustClaim("a", journal.ClaimRequest{Owner: owner(i), TTL: hour})
		if c.Epoch <= last {
			s.Errorf("epoch %d after %d", c.Epoch, last)
		}
		last = c.Epoch
		if err := s.Release(s.ctx, "a", c.Epoch, journal.Rest{}); err != nil {
			s.Fatal(err)
		}
	}
	s.mustAppend("a", []journal.Record{s.started("a", "")})
	if c := s.seize("a"); c.Epoch <= last || c.Head != 1 {
		s.Errorf("claim %+v after epoch %d and one record", c, last)
	}
	if c := s.mustClaim("b", journal.ClaimRequest{Owner: owner(1), TTL: hour, Above: 41}); c.Epoch <= 41 {
		s.Errorf("epoch %d, want one above 41", c.Epoch)
	}
}

func oneLiveClaim(s *store) {
	before := time.Now().Add(-time.Second)
	c := s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: hour})
	if c.Head != 0 || c.Previous != nil {
		s.Errorf("first claim is %+v, want head 0 and nobody before", c)
	}
	_, err := s.Claim(s.ctx, "a", journal.ClaimRequest{Owner: owner(2), TTL: hour})
	claimed, ok := errors.AsType[*journal.ClaimedError](err)
	if !ok {
		s.Fatalf("second claim: %v, want *ClaimedError", err)
	}
	h := claimed.Holder
	if claimed.Run != "a" || h.Epoch != c.Epoch || h.Owner != owner(1) {
		s.Errorf("ClaimedError is %+v, want epoch %d of %+v", claimed, c.Epoch, owner(1))
	}
	if h.Until.Before(before.Add(hour)) || h.Until.After(time.Now().Add(hour+time.Second)) {
		s.Errorf("claimed until %v, want in an hour", h.Until)
	}
	// The refused claim has changed nothing.
	if err := s.Append(s.ctx, "a", c.Epoch, 0, s.batch(1)); err != nil {
		s.Errorf("append of the holder: %v", err)
	}
	s.mustClaim("b", journal.ClaimRequest{Owner: owner(2), TTL: hour})
}

func leaseRunsOut(s *store) {
	first := s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: time.Millisecond})
	second := s.claimWhenFree("a")
	if second.Epoch <= first.Epoch || second.Previous == nil ||
		second.Previous.Epoch != first.Epoch || second.Previous.Owner != owner(1) {
		s.Errorf("claim %+v after one of epoch %d that ran out", second, first.Epoch)
	}
	for _, ttl := range []time.Duration{0, -hour} {
		if _, err := s.Claim(s.ctx, "b", journal.ClaimRequest{TTL: ttl}); err == nil {
			s.Errorf("claim for %v was granted", ttl)
		}
		if err := s.Renew(s.ctx, "a", second.Epoch, ttl); err == nil {
			s.Errorf("renewal for %v was granted", ttl)
		}
	}
}

// claimWhenFree claims as soon as the claim before has run out, by whatever clock
// the store uses.
func (s *store) claimWhenFree(run string) journal.Claim {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	for {
		c, err := s.Claim(ctx, run, journal.ClaimRequest{Owner: owner(2), TTL: hour})
		if err == nil {
			return c
		}
		if _, ok := errors.AsType[*journal.ClaimedError](err); !ok {
			s.Fatalf("Claim(%s): %v", run, err)
		}
		runtime.Gosched()
	}
}

func renew(s *store) {
	c := s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: time.Millisecond})
	if err := s.Renew(s.ctx, "a", c.Epoch, hour); err != nil {
		s.Fatalf("Renew: %v", err)
	}
	if _, err := s.Claim(s.ctx, "a", journal.ClaimRequest{Owner: owner(2), TTL: hour}); err == nil {
		s.Error("a renewed claim was not live")
	}
	next := s.mustClaim("a", journal.ClaimRequest{Owner: owner(2), TTL: hour, Takeover: c.Epoch})
	for run, epoch := range map[string]uint64{"a": c.Epoch, "never": 1} {
		if err := s.Renew(s.ctx, run, epoch, hour); !errors.Is(err, journal.ErrFenced) {
			s.Errorf("renewal of %s under an epoch that is not current: %v, want ErrFenced", run, err)
		}
	}
	if err := s.Renew(s.ctx, "a", next.Epoch, hour); err != nil {
		s.Errorf("renewal by the holder: %v", err)
	}
}

func release(s *store) {
	first := s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: hour})
	second := s.mustClaim("a", journal.ClaimRequest{Owner: owner(2), TTL: hour, Takeover: first.Epoch})
	if err := s.Release(s.ctx, "a", first.Epoch, journal.Rest{}); err != nil {
		s.Errorf("release of an old claim: %v", err)
	}
	if _, err := s.Claim(s.ctx, "a", journal.ClaimRequest{Owner: owner(3), TTL: hour}); err == nil {
		s.Error("the release of an old claim ended the current one")
	}
	for range 2 {
		if err := s.Release(s.ctx, "a", second.Epoch, journal.Rest{}); err != nil {
			s.Errorf("release: %v", err)
		}
	}
	if err := s.Append(s.ctx, "a", second.Epoch, 0, s.batch(1)); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("append after the release: %v, want ErrFenced", err)
	}
	if err := s.Renew(s.ctx, "a", second.Epoch, hour); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("renewal after the release: %v, want ErrFenced", err)
	}
	third := s.mustClaim("a", journal.ClaimRequest{Owner: owner(3), TTL: hour})
	if third.Previous != nil {
		s.Errorf("claim after a release names %+v", third.Previous)
	}
	if err := s.Release(s.ctx, "never", 1, journal.Rest{}); err != nil {
		s.Errorf("release of a run that was never claimed: %v", err)
	}
}

func takeover(s *store) {
	first := s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: hour})
	_, err := s.Claim(s.ctx, "a", journal.ClaimRequest{Owner: owner(2), TTL: hour, Takeover: first.Epoch + 1})
	if _, ok := errors.AsType[*journal.ClaimedError](err); !ok {
		s.Errorf("takeover of another epoch: %v, want *ClaimedError", err)
	}
	second := s.mustClaim("a", journal.ClaimRequest{Owner: owner(2), TTL: hour, Takeover: first.Epoch})
	if p := second.Previous; second.Epoch <= first.Epoch || p == nil || p.Epoch != first.Epoch || p.Owner != owner(1) {
		s.Errorf("takeover of %+v is %+v", first, second)
	}
	_, err = s.Claim(s.ctx, "a", journal.ClaimRequest{Owner: owner(3), TTL: hour, Takeover: first.Epoch})
	if claimed, ok := errors.AsType[*journal.ClaimedError](err); !ok || claimed.Holder.Owner != owner(2) {
		s.Errorf("second takeover of one epoch: %v, want *ClaimedError", err)
	}
}

func fence(s *store) {
	old := s.mustClaim("a", journal.ClaimRequest{Owner: owner(1), TTL: hour})
	current := s.mustClaim("a", journal.ClaimRequest{Owner: owner(2), TTL: hour, Takeover: old.Epoch})
	for name, epoch := range map[string]uint64{"old": old.Epoch, "none": 0, "future": current.Epoch + 1} {
		for _, after := range []uint64{0, 5} {
			if err := s.Append(s.ctx, "a", epoch, after, s.batch(1)); !errors.Is(err, journal.ErrFenced) {
				s.Errorf("append under the %s epoch: %v, want ErrFenced", name, err)
			}
		}
	}
	if err := s.Append(s.ctx, "never", 1, 0, s.batch(1)); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("append to a run that was never claimed: %v, want ErrFenced", err)
	}
	s.holds("a", nil)

	late := s.mustClaim("b", journal.ClaimRequest{Owner: owner(1), TTL: time.Millisecond})
	s.mustClaim("c", journal.ClaimRequest{Owner: owner(1), TTL: time.Millisecond})
	s.claimWhenFree("c") // so the claim of b has run out too, but nobody else has one
	recs := s.batch(1)
	if err := s.Append(s.ctx, "b", late.Epoch, 0, recs); err != nil {
		s.Errorf("append under a current claim that ran out: %v", err)
	}
	s.holds("b", recs)
}
