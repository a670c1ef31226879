package journaltest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/journal"
)

// writer drives a run as clause S9.19 asks: an append whose answer was lost is
// decided by reading the ledger, then repeated unchanged.
type writer struct {
	*store
	d     *FaultyDriver
	run   string
	claim journal.Claim
	head  uint64
	// beforeRead and beforeRetry are called on the way to a decision.
	beforeRead, beforeRetry func()
}

func (s *store) writer(d *FaultyDriver, run string, takeover uint64) *writer {
	s.Helper()
	c := s.mustClaim(run, journal.ClaimRequest{Owner: owner(1), TTL: hour, Takeover: takeover})
	return &writer{store: s, d: d, run: run, claim: c, head: c.Head, beforeRead: func() {}, beforeRetry: func() {}}
}

func (w *writer) append(recs []journal.Record, with ...journal.Companion) error {
	for range 3 {
		err := w.d.Append(w.ctx, w.run, w.claim.Epoch, w.head, recs, with...)
		if errors.Is(err, journal.ErrFenced) {
			return err
		}
		if err != nil {
			w.beforeRead()
			found, readErr := w.Read(w.ctx, w.run, w.head)
			if readErr == nil && len(found) == 0 {
				w.beforeRetry()
				continue
			}
			if len(found) < len(recs) || !slices.Equal(found[:len(recs)], recs) {
				return errors.Join(err, readErr)
			}
		}
		w.head += uint64(len(recs))
		return nil
	}
	return errors.New("three appends in a row got lost")
}

// script is what a writer appends: the second batch consumes an inbox entry.
type script struct {
	run     string
	entry   journal.Entry
	batches [][]journal.Record
}

func (s *store) script(run string) script {
	s.Helper()
	first := []journal.Record{s.started(run, "")}
	s.mustAppend(run, first)
	e := s.entry("k")
	s.mustPost(run, e)
	return script{run, e, [][]journal.Record{first, s.batch(2), s.batch(1), s.batch(3)}}
}

// append appends batch i, from 1.
func (sc script) append(w *writer, i int) error {
	if i == 2 {
		return w.append(sc.batches[i], journal.Consume("k"))
	}
	return w.append(sc.batches[i])
}

// verify checks that the ledger holds the first n batches and then these records,
// each once, and that the entry is consumed with its batch.
func (sc script) verify(s *store, n int, then ...journal.Record) {
	s.Helper()
	s.holds(sc.run, append(slices.Concat(sc.batches[:n+1]...), then...))
	if n >= 2 {
		s.mustInbox(sc.run)
	} else {
		s.mustInbox(sc.run, sc.entry)
	}
}

func anyReply(s *store) {
	for n := 1; n <= 3; n++ {
		retried(s, n, Absent, "")
		retried(s, n, Stored, "")
		for _, moment := range []string{"before the read", "before the retry", "after the retry", "after the takeover"} {
			retried(s, n, Later, moment)
		}
		for _, reply := range []Reply{Absent, Stored, Later, Held} {
			frozen(s, n, reply)
		}
	}
}

// retried: append n gets that reply and its writer decides and repeats it; after its
// last batch a second writer takes the run over. moment is when a late append
// arrives in the store.
func retried(s *store, n int, reply Reply, moment string) {
	s.Helper()
	sc := s.script(fmt.Sprintf("append %d %v %s", n, reply, moment))
	f := Faulty(s.Driver, Plan{n: reply})
	a := s.writer(f, sc.run, s.seize(sc.run).Epoch)
	var late error
	deliver := func(now string) {
		if now == moment {
			late = f.Deliver(n)
		}
	}
	a.beforeRead = func() { deliver("before the read") }
	a.beforeRetry = func() { deliver("before the retry") }
	for i := 1; i <= 3; i++ {
		if err := sc.append(a, i); err != nil {
			s.Fatalf("%s: batch %d: %v", sc.run, i, err)
		}
		if i == n {
			deliver("after the retry")
		}
	}
	sc.verify(s, 3)
	b := s.writer(f, sc.run, a.claim.Epoch)
	deliver("after the takeover")
	then := s.batch(2)
	if err := b.append(then); err != nil {
		s.Errorf("%s: append of the second writer: %v", sc.run, err)
	}
	if err := a.append(s.batch(1)); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("%s: append of the first writer after the takeover: %v, want ErrFenced", sc.run, err)
	}
	sc.verify(s, 3, then...)
	if repeated := moment == "after the retry" || moment == "after the takeover"; repeated != (late != nil) {
		s.Errorf("%s: the late append got %v", sc.run, late)
	}
}

// frozen: the first writer stops in the middle of append n, which gets that reply.
// A second writer takes the run over and appends, then the first one wakes up.
func frozen(s *store, n int, reply Reply) {
	s.Helper()
	sc := s.script(fmt.Sprintf("frozen in append %d %v", n, reply))
	f := Faulty(s.Driver, Plan{n: reply})
	a := s.writer(f, sc.run, s.seize(sc.run).Epoch)
	for i := 1; i < n; i++ {
		if err := sc.append(a, i); err != nil {
			s.Fatalf("%s: batch %d: %v", sc.run, i, err)
		}
	}
	asleep, awake, woken := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	a.beforeRead = func() {
		close(asleep)
		<-awake
		a.beforeRead = func() {}
	}
	go func() { woken <- sc.append(a, n) }()
	select {
	case <-asleep:
	case <-f.Arrived(n):
	}

	b := s.writer(f, sc.run, a.claim.Epoch)
	then := s.batch(2)
	if err := b.append(then); err != nil {
		s.Errorf("%s: append of the second writer: %v", sc.run, err)
	}
	if reply == Later {
		if err := f.Deliver(n); !errors.Is(err, journal.ErrFenced) {
			s.Errorf("%s: the late append got %v, want ErrFenced", sc.run, err)
		}
	}
	f.LetGo(n)
	close(awake)
	stored := reply == Stored
	if err := <-woken; stored != (err == nil) {
		s.Errorf("%s: the first writer thinks that its append got %v", sc.run, err)
	}
	if err := a.append(s.batch(1)); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("%s: append of the first writer after the takeover: %v, want ErrFenced", sc.run, err)
	}
	if stored {
		sc.verify(s, n, then...)
	} else {
		sc.verify(s, n-1, then...)
	}
}
