package journaltest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/journal/journaltest"
)

const mutantVariable = "JOURNALTEST_MUTANT"

// TestSuite runs the suite on the mutant that the environment names; without one, on
// a driver without fault.
func TestSuite(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Driver {
		d := &mutant{Memory: journal.NewMemory()}
		if m, ok := mutants[os.Getenv(mutantVariable)]; ok {
			m.spoil(d)
		}
		return d
	})
}

// The suite finds each fault, in the clause that it breaks.
func TestSuiteFindsFaults(t *testing.T) {
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuite$")
			cmd.Env = append(os.Environ(), mutantVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if _, ok := errors.AsType[*exec.ExitError](err); !ok {
				t.Fatalf("the suite ended with %v, want a failure\n%s", err, out)
			}
			for _, clause := range m.clauses {
				if !strings.Contains(string(out), "--- FAIL: TestSuite/"+clause+"_") {
					t.Errorf("%s did not fail:\n%s", clause, out)
				}
			}
		})
	}
}

// mutant is a memory driver some methods of which are replaced.
type mutant struct {
	*journal.Memory
	claim   func(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error)
	renew   func(err error) error
	release func() error
	unread  func(n int) int
	append  func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error
	read    func(ctx context.Context, run string, after uint64) ([]journal.Record, error)
	post    func(run string, e journal.Entry, err error) error
	list    func([]journal.RunInfo)
	prune   func(ctx context.Context, before time.Time) (int, error)
	next    func(ctx context.Context, req journal.NextRequest) (*journal.Next, error)
	backend func() string

	transact func(ctx context.Context, run string, epoch, after uint64, fn lentTo) error
}

// lentTo is the code that has a transaction.
type lentTo = func(ctx context.Context, tx any) ([]journal.Record, error)

// Transact implements journal.Transactor.
func (m *mutant) Transact(ctx context.Context, run string, epoch, after uint64, fn func(ctx context.Context, tx any) ([]journal.Record, error)) error {
	if m.transact != nil {
		return m.transact(ctx, run, epoch, after, fn)
	}
	return m.lend(ctx, run, epoch, after, fn)
}

// lend is a Transact for one writer at a time: fn is called in an append that only checks, and its records come after.
func (m *mutant) lend(ctx context.Context, run string, epoch, after uint64, fn lentTo) error {
	var recs []journal.Record
	err := m.Memory.Append(ctx, run, epoch, after, nil, committing(func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("it panicked: %v", p)
			}
			if err != nil {
				err = fmt.Errorf("pawl: %w", err)
			}
		}()
		recs, err = fn(ctx, nil)
		return err
	}))
	if err != nil {
		return err
	}
	return m.Memory.Append(ctx, run, epoch, after, recs)
}

type committing func() error

// Commit implements journal.Companion.
func (c committing) Commit(context.Context, any) error { return c() }

func (m *mutant) Claim(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
	if m.claim != nil {
		return m.claim(ctx, run, req)
	}
	return m.Memory.Claim(ctx, run, req)
}

func (m *mutant) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	err := m.Memory.Renew(ctx, run, epoch, ttl)
	if m.renew != nil {
		return m.renew(err)
	}
	return err
}

func (m *mutant) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	if m.release != nil {
		return m.release()
	}
	if m.unread != nil {
		rest.Unread = m.unread(rest.Unread)
	}
	return m.Memory.Release(ctx, run, epoch, rest)
}

func (m *mutant) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	if m.append != nil {
		return m.append(ctx, run, epoch, after, recs, with)
	}
	return m.Memory.Append(ctx, run, epoch, after, recs, with...)
}

func (m *mutant) Read(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
	if m.read != nil {
		return m.read(ctx, run, after)
	}
	return m.Memory.Read(ctx, run, after)
}

func (m *mutant) Post(ctx context.Context, run string, e journal.Entry) error {
	err := m.Memory.Post(ctx, run, e)
	if m.post != nil {
		return m.post(run, e, err)
	}
	return err
}

func (m *mutant) List(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	infos, err := m.Memory.List(ctx, q)
	if m.list != nil {
		m.list(infos)
	}
	return infos, err
}

func (m *mutant) Backend() string {
	if m.backend != nil {
		return m.backend()
	}
	return m.Memory.Backend()
}

func (m *mutant) Next(ctx context.Context, req journal.NextRequest) (*journal.Next, error) {
	if m.next != nil {
		return m.next(ctx, req)
	}
	return m.Memory.Next(ctx, req)
}

// Prune implements journal.Pruner.
func (m *mutant) Prune(ctx context.Context, before time.Time) (int, error) {
	if m.prune != nil {
		return m.prune(ctx, before)
	}
	return m.Memory.Prune(ctx, before)
}

// seize claims a run that may be claimed.
func (m *mutant) seize(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
	c, err := m.Memory.Claim(ctx, run, req)
	if claimed, ok := errors.AsType[*journal.ClaimedError](err); ok {
		req.Takeover = claimed.Holder.Epoch
		return m.Memory.Claim(ctx, run, req)
	}
	return c, err
}

// mutants are the faults, and the clauses that must find them.
var mutants = map[string]struct {
	clauses []string
	spoil   func(m *mutant)
}{
	"epochs repeat": {[]string{"S9.1"}, func(m *mutant) {
		m.claim = func(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
			c, err := m.Memory.Claim(ctx, run, req)
			c.Epoch = min(c.Epoch, 1)
			return c, err
		}
	}},
	"grants any claim": {[]string{"S9.2"}, func(m *mutant) { m.claim = m.seize }},
	"forgets the claim before": {[]string{"S9.3", "S9.6"}, func(m *mutant) {
		m.claim = func(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
			c, err := m.Memory.Claim(ctx, run, req)
			c.Previous = nil
			return c, err
		}
	}},
	"renews any claim":     {[]string{"S9.4"}, func(m *mutant) { m.renew = func(error) error { return nil } }},
	"release does nothing": {[]string{"S9.5"}, func(m *mutant) { m.release = func() error { return nil } }},
	"takes over from any epoch": {[]string{"S9.6"}, func(m *mutant) {
		m.claim = func(ctx context.Context, run string, req journal.ClaimRequest) (journal.Claim, error) {
			if req.Takeover != 0 {
				return m.seize(ctx, run, req)
			}
			return m.Memory.Claim(ctx, run, req)
		}
	}},
	"no fence": {[]string{"S9.7", "S9.19"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			err := m.Memory.Append(ctx, run, epoch, after, recs, with...)
			if !errors.Is(err, journal.ErrFenced) {
				return err
			}
			c, err := m.seize(ctx, run, journal.ClaimRequest{TTL: time.Hour})
			if err != nil {
				return err
			}
			return m.Memory.Append(ctx, run, c.Epoch, after, recs, with...)
		}
	}},
	"appends at the end": {[]string{"S9.8", "S9.17", "S9.19"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			err := m.Memory.Append(ctx, run, epoch, after, recs, with...)
			if conflict, ok := errors.AsType[*journal.ConflictError](err); ok {
				return m.Append(ctx, run, epoch, conflict.Head, recs, with...)
			}
			return err
		}
	}},
	"cuts batches": {[]string{"S9.9"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			return m.Memory.Append(ctx, run, epoch, after, recs[:min(len(recs), 2)], with...)
		}
	}},
	"reads from the start": {[]string{"S9.10"}, func(m *mutant) {
		m.read = func(ctx context.Context, run string, _ uint64) ([]journal.Record, error) {
			return m.Memory.Read(ctx, run, 0)
		}
	}},
	"compacts payloads": {[]string{"S9.11"}, func(m *mutant) {
		m.read = func(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
			recs, err := m.Memory.Read(ctx, run, after)
			for i := range recs {
				var buf bytes.Buffer
				if json.Compact(&buf, []byte(recs[i].Payload)) == nil {
					recs[i].Payload = buf.String()
				}
			}
			return recs, err
		}
	}},
	"gives its own slice away": {[]string{"S9.12"}, func(m *mutant) {
		own := map[string][]journal.Record{}
		m.read = func(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
			recs, err := m.Memory.Read(ctx, run, after)
			if run == "a" && after == 0 && len(own[run]) != len(recs) {
				own[run] = recs
			}
			if run == "a" && after == 0 {
				return own[run], err
			}
			return recs, err
		}
	}},
	"companions come after": {[]string{"S9.13"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			if err := m.Memory.Append(ctx, run, epoch, after, recs); err != nil {
				return err
			}
			return m.Memory.Append(ctx, run, epoch, after+uint64(len(recs)), nil, with...)
		}
	}},
	"consumes first": {[]string{"S9.14"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			for i, c := range with {
				if _, ok := c.(journal.Consumed); ok {
					if err := m.Memory.Append(ctx, run, epoch, after, nil, c); err != nil {
						return err
					}
					with = slices.Delete(slices.Clone(with), i, i+1)
					break
				}
			}
			return m.Memory.Append(ctx, run, epoch, after, recs, with...)
		}
	}},
	"takes a second entry": {[]string{"S9.15", "S9.16"}, func(m *mutant) {
		m.post = func(_ string, _ journal.Entry, err error) error {
			if _, ok := errors.AsType[*journal.EntryError](err); ok {
				return nil
			}
			return err
		}
	}},
	"forgets what was consumed": {[]string{"S9.16"}, func(m *mutant) {
		m.post = func(run string, e journal.Entry, err error) error {
			open, _ := m.Inbox(context.Background(), run)
			if !slices.ContainsFunc(open, func(have journal.Entry) bool { return have.Key == e.Key }) && !errors.Is(err, journal.ErrUnknownRun) {
				return nil
			}
			return err
		}
	}},
	"lists the oldest first": {[]string{"S9.18"}, func(m *mutant) { m.list = slices.Reverse[[]journal.RunInfo] }},
	"appends without a context": {[]string{"S9.20"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			return m.Memory.Append(context.WithoutCancel(ctx), run, epoch, after, recs, with...)
		}
	}},
	"any run has a conversation": {[]string{"S9.23"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			with = slices.DeleteFunc(slices.Clone(with), func(c journal.Companion) bool { return c == journal.Companion(journal.SoleRun{}) })
			return m.Memory.Append(ctx, run, epoch, after, recs, with...)
		}
	}},
	"says nothing of who has the conversation": {[]string{"S9.23"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			err := m.Memory.Append(ctx, run, epoch, after, recs, with...)
			if busy, ok := errors.AsType[*journal.BusyError](err); ok {
				busy.Holder = nil
			}
			return err
		}
	}},
	"keeps what it refuses for the conversation": {[]string{"S9.23"}, func(m *mutant) {
		m.append = func(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with []journal.Companion) error {
			err := m.Memory.Append(ctx, run, epoch, after, recs, with...)
			if _, ok := errors.AsType[*journal.BusyError](err); ok {
				_ = m.Memory.Append(ctx, run, epoch, after, recs)
			}
			return err
		}
	}},
	"lends before it looks": {[]string{"S9.22"}, func(m *mutant) {
		m.transact = func(ctx context.Context, run string, epoch, after uint64, fn lentTo) error {
			recs, err := fn(ctx, nil)
			if err != nil {
				return fmt.Errorf("pawl: %w", err)
			}
			return m.Memory.Append(ctx, run, epoch, after, recs)
		}
	}},
	"keeps the records of a function that failed": {[]string{"S9.22"}, func(m *mutant) {
		m.transact = func(ctx context.Context, run string, epoch, after uint64, fn lentTo) error {
			var failed error
			err := m.lend(ctx, run, epoch, after, func(ctx context.Context, tx any) (recs []journal.Record, err error) {
				recs, failed = fn(ctx, tx)
				return recs, nil
			})
			if err == nil && failed != nil {
				return fmt.Errorf("pawl: %w", failed)
			}
			return err
		}
	}},
	"swallows the error of a function": {[]string{"S9.22"}, func(m *mutant) {
		m.transact = func(ctx context.Context, run string, epoch, after uint64, fn lentTo) error {
			return m.lend(ctx, run, epoch, after, func(ctx context.Context, tx any) ([]journal.Record, error) {
				recs, err := fn(ctx, tx)
				if err != nil {
					return nil, nil
				}
				return recs, nil
			})
		}
	}},
	"lends twice": {[]string{"S9.22"}, func(m *mutant) {
		m.transact = func(ctx context.Context, run string, epoch, after uint64, fn lentTo) error {
			return m.lend(ctx, run, epoch, after, func(ctx context.Context, tx any) ([]journal.Record, error) {
				_, _ = fn(ctx, tx)
				return fn(ctx, tx)
			})
		}
	}},
	"counts no inbox": {[]string{"S9.18"}, func(m *mutant) {
		m.list = func(infos []journal.RunInfo) {
			for i := range infos {
				infos[i].Inbox = 0
			}
		}
	}},
	"forgets what was unread": {[]string{"S9.24", "S9.26"}, func(m *mutant) { m.unread = func(int) int { return 0 } }},
	"hands out without a look at the agent": {[]string{"S9.26", "S9.27"}, func(m *mutant) {
		m.next = func(ctx context.Context, req journal.NextRequest) (*journal.Next, error) {
			req.Agents = nil
			return m.Memory.Next(ctx, req)
		}
	}},
	"hands out of full queues": {[]string{"S9.26", "S9.27"}, func(m *mutant) {
		m.next = func(ctx context.Context, req journal.NextRequest) (*journal.Next, error) {
			req.Full = nil
			return m.Memory.Next(ctx, req)
		}
	}},
	"is not fair": {[]string{"S9.27"}, func(m *mutant) {
		m.next = func(ctx context.Context, req journal.NextRequest) (*journal.Next, error) {
			req.Load = nil
			return m.Memory.Next(ctx, req)
		}
	}},
	"hands out what it lists": {[]string{"S9.26", "S9.27"}, func(m *mutant) {
		m.next = func(ctx context.Context, req journal.NextRequest) (*journal.Next, error) {
			infos, err := m.Memory.List(ctx, journal.Query{Due: true})
			if err != nil || len(infos) == 0 {
				return nil, err
			}
			c, err := m.seize(ctx, infos[0].Run, journal.ClaimRequest{Owner: req.Owner, TTL: req.TTL})
			if err == nil {
				err = m.Memory.Release(ctx, infos[0].Run, c.Epoch, journal.Rest{Due: journal.Never})
			}
			return &journal.Next{Run: infos[0].Run, Claim: c}, err
		}
	}},
	"hands one run out twice": {[]string{"S9.28"}, func(m *mutant) {
		var mu sync.Mutex
		var last *journal.Next
		m.next = func(ctx context.Context, req journal.NextRequest) (*journal.Next, error) {
			mu.Lock()
			defer mu.Unlock()
			if again := last; again != nil {
				last = nil
				return again, nil
			}
			var err error
			last, err = m.Memory.Next(ctx, req)
			return last, err
		}
	}},
	"prunes all that is old": {[]string{"S9.29"}, func(m *mutant) {
		m.prune = func(ctx context.Context, before time.Time) (int, error) {
			infos, err := m.Memory.List(ctx, journal.Query{Limit: 1000})
			for _, info := range infos {
				if c, err := m.seize(ctx, info.Run, journal.ClaimRequest{TTL: time.Hour}); err == nil && !info.Ended && info.Updated.Before(before) {
					end := journal.Encode(journal.Fact{Body: &journal.Finished{}}, [16]byte{})
					_ = m.Memory.Append(ctx, info.Run, c.Epoch, c.Head, []journal.Record{end})
				}
				_ = m.Memory.Release(ctx, info.Run, info.Head, journal.Rest{})
			}
			n, _ := m.Memory.Prune(ctx, before)
			return n, err
		}
	}},
	"has no name": {[]string{"S9.21"}, func(m *mutant) { m.backend = func() string { return "" } }},
}
