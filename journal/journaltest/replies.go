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

// The moments at which an append that was lost arrives in the store.
const (
	beforeRead     = "before the read"
	beforeRetry    = "before the retry"
	afterRetry     = "after the retry"
	beforeTakeover = "before the takeover"
	afterTakeover  = "after the takeover"
	afterAppend    = "after the append of the other"
)

// replyCase is what becomes of append n of a writer, from 1. If it is frozen, it stops in the middle of
// it, and another writer takes the run over, whose own first append gets the reply second.
type replyCase struct {
	n      int
	reply  Reply
	moment string // when it is stored, if it is stored later
	frozen bool
	second Reply
}

// replyCases are every reply at every append, with one writer and with two.
func replyCases() (cases []replyCase) {
	for n := 1; n <= 3; n++ {
		for _, reply := range []Reply{Absent, Stored} {
			cases = append(cases, replyCase{n: n, reply: reply})
		}
		for _, moment := range []string{beforeRead, beforeRetry, afterRetry, afterTakeover} {
			cases = append(cases, replyCase{n: n, reply: Later, moment: moment})
		}
		for _, second := range []Reply{Pass, Absent, Stored, Later} {
			for _, reply := range []Reply{Absent, Stored, Held} {
				cases = append(cases, replyCase{n: n, reply: reply, frozen: true, second: second})
			}
			for _, moment := range []string{beforeTakeover, afterTakeover, afterAppend} {
				cases = append(cases, replyCase{n: n, reply: Later, moment: moment, frozen: true, second: second})
			}
		}
	}
	return cases
}

func anyReply(s *store) {
	for _, c := range replyCases() {
		if c.frozen {
			frozen(s, c)
		} else {
			retried(s, c.n, c.reply, c.moment)
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
	a.beforeRead = func() { deliver(beforeRead) }
	a.beforeRetry = func() { deliver(beforeRetry) }
	for i := 1; i <= 3; i++ {
		if err := sc.append(a, i); err != nil {
			s.Fatalf("%s: batch %d: %v", sc.run, i, err)
		}
		if i == n {
			deliver(afterRetry)
		}
	}
	sc.verify(s, 3)
	b := s.writer(f, sc.run, a.claim.Epoch)
	deliver(afterTakeover)
	then := s.batch(2)
	if err := b.append(then); err != nil {
		s.Errorf("%s: append of the second writer: %v", sc.run, err)
	}
	if err := a.append(s.batch(1)); !errors.Is(err, journal.ErrFenced) {
		s.Errorf("%s: append of the first writer after the takeover: %v, want ErrFenced", sc.run, err)
	}
	sc.verify(s, 3, then...)
	if repeated := moment == afterRetry || moment == afterTakeover; repeated != (late != nil) {
		s.Errorf("%s: the late append got %v", sc.run, late)
	}
}

// frozen: the first writer stops in the middle of an append. A second writer takes the run
// over and appends, then the first one wakes up.
func frozen(s *store, c replyCase) {
	s.Helper()
	n := c.n
	sc := s.script(fmt.Sprintf("frozen in append %d %v %s, then %v", n, c.reply, c.moment, c.second))
	f := Faulty(s.Driver, Plan{n: c.reply, n + 1: c.second})
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
	arrive := func(now string) {
		if c.moment != now {
			return
		}
		if err := f.Deliver(n); now == beforeTakeover && err != nil || now != beforeTakeover && !errors.Is(err, journal.ErrFenced) {
			s.Errorf("%s: the late append got %v", sc.run, err)
		}
	}

	arrive(beforeTakeover)
	b := s.writer(f, sc.run, a.claim.Epoch)
	arrive(afterTakeover)
	if c.second == Later {
		b.beforeRetry = func() { f.Deliver(n + 1) }
	}
	then := s.batch(2)
	if err := b.append(then); err != nil {
		s.Errorf("%s: append of the second writer: %v", sc.run, err)
	}
	arrive(afterAppend)
	f.LetGo(n)
	close(awake)
	stored := c.reply == Stored || c.moment == beforeTakeover
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
