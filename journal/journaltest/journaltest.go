// Package journaltest checks that a driver keeps the contract of journal.Driver,
// and makes drivers fail on purpose.
package journaltest

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// Run checks a driver against the contract: one subtest for each clause of section
// S9 of docs/spec.md. open returns an empty store and arranges, with t.Cleanup, that
// it is closed.
func Run(t *testing.T, open func(t *testing.T) journal.Driver) {
	for _, clause := range []struct {
		name  string
		check func(*store)
	}{
		{"S9.1 epochs grow", epochsGrow},
		{"S9.2 one live claim", oneLiveClaim},
		{"S9.3 a lease runs out", leaseRunsOut},
		{"S9.4 renew", renew},
		{"S9.5 release", release},
		{"S9.6 takeover", takeover},
		{"S9.7 fence", fence},
		{"S9.8 conflict", conflict},
		{"S9.9 all or nothing", allOrNothing},
		{"S9.10 prefix reads", prefixReads},
		{"S9.11 byte fidelity", byteFidelity},
		{"S9.12 runs and slices are separate", separate},
		{"S9.13 companions commit with the records", companions},
		{"S9.14 consumption commits with the records", consumption},
		{"S9.15 inbox", inbox},
		{"S9.16 a consumed entry stays", consumedStays},
		{"S9.17 one winner", oneWinner},
		{"S9.18 list", list},
		{"S9.19 an error may mean anything", anyReply},
		{"S9.20 context", cancelled},
		{"S9.21 backend", backend},
		{"S9.22 transactions", transact},
		{"S9.23 one open run has a conversation", soleRun},
		{"S9.24 due runs", due},
		{"S9.25 held runs", held},
		{"S9.26 next", next},
		{"S9.27 order of the next", nextOrder},
		{"S9.28 another run for each", nextForEach},
		{"S9.29 pruning", prune},
	} {
		t.Run(clause.name, func(t *testing.T) {
			clause.check(&store{T: t, Driver: open(t), ctx: t.Context()})
		})
	}
}

// store is a driver under test. Its must methods end the test on an error.
type store struct {
	*testing.T
	journal.Driver
	ctx  context.Context
	made uint64 // records made so far
}

const hour = time.Hour

// owner is who claims in these tests.
func owner(pid int) journal.Owner {
	return journal.Owner{Host: "host", Boot: "boot", PID: pid, Start: "12345"}
}

// record returns a record with that body that is equal to no other.
func (s *store) record(b journal.Body) journal.Record {
	s.made++
	var salt [16]byte
	binary.BigEndian.PutUint64(salt[:], s.made)
	return journal.Encode(journal.Fact{Time: int64(s.made), Body: b}, salt)
}

// started returns the first record of a run.
func (s *store) started(run, session string) journal.Record {
	b := &journal.Started{Run: run}
	if session != "" {
		b.Session = &journal.SessionRef{ID: session}
	}
	return s.record(b)
}

// batch returns n records.
func (s *store) batch(n int) []journal.Record {
	var recs []journal.Record
	for range n {
		recs = append(recs, s.record(&journal.Confirmed{N: int(s.made)}))
	}
	return recs
}

func (s *store) mustClaim(run string, req journal.ClaimRequest) journal.Claim {
	s.Helper()
	c, err := s.Claim(s.ctx, run, req)
	if err != nil {
		s.Fatalf("Claim(%s): %v", run, err)
	}
	return c
}

// mustAppend claims the run, whoever holds it, and appends at its end.
func (s *store) mustAppend(run string, recs []journal.Record, with ...journal.Companion) {
	s.Helper()
	c := s.seize(run)
	if err := s.Append(s.ctx, run, c.Epoch, c.Head, recs, with...); err != nil {
		s.Fatalf("Append(%s): %v", run, err)
	}
}

// seize claims the run, whoever holds it.
func (s *store) seize(run string) journal.Claim {
	s.Helper()
	req := journal.ClaimRequest{Owner: owner(1), TTL: hour}
	c, err := s.Claim(s.ctx, run, req)
	if claimed, ok := errors.AsType[*journal.ClaimedError](err); ok {
		req.Takeover = claimed.Holder.Epoch
		c, err = s.Claim(s.ctx, run, req)
	}
	if err != nil {
		s.Fatalf("Claim(%s): %v", run, err)
	}
	return c
}

func (s *store) mustRead(run string, after uint64) []journal.Record {
	s.Helper()
	recs, err := s.Read(s.ctx, run, after)
	if err != nil {
		s.Fatalf("Read(%s, %d): %v", run, after, err)
	}
	return recs
}

// holds checks that the run has exactly these records.
func (s *store) holds(run string, want []journal.Record) {
	s.Helper()
	if got := s.mustRead(run, 0); !slices.Equal(got, want) {
		s.Errorf("run %s has\n%v\nwant\n%v", run, got, want)
	}
}

func (s *store) mustInbox(run string, want ...journal.Entry) {
	s.Helper()
	got, err := s.Inbox(s.ctx, run)
	if err != nil {
		s.Fatalf("Inbox(%s): %v", run, err)
	}
	if !slices.Equal(got, want) {
		s.Errorf("inbox of %s is\n%v\nwant\n%v", run, got, want)
	}
}

func (s *store) mustPost(run string, e journal.Entry) {
	s.Helper()
	if err := s.Post(s.ctx, run, e); err != nil {
		s.Fatalf("Post(%s, %s): %v", run, e.Key, err)
	}
}

func backend(s *store) {
	first := s.Backend()
	if second := s.Backend(); first == "" || second != first {
		s.Errorf("Backend() = %q, then %q", first, second)
	}
}
