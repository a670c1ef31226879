package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// maxGroup bounds the writes that share a transaction, and so how long the first
// of them waits for the others.
const maxGroup = 128

// A write is work for the writing connection.
type write struct {
	ctx  context.Context
	work func(tx *txn) error
	// alone says that the work must not share a transaction, because it runs code
	// of others on it.
	alone bool
	err   error
	// turn says that the write is over (false) or that its goroutine has to lead
	// (true).
	turn chan bool
}

// queue orders the writes of a store. At any time at most one goroutine leads: it
// owns the writing connection for one transaction, in which it serves its own
// write and those that wait, and then passes the lead on. A write that finds no
// leader leads at once, without changing goroutines.
type queue struct {
	mu      sync.Mutex
	led     bool
	closed  bool
	idle    sync.Cond // signalled when led becomes false; its L is &mu
	waiting []*write
}

// do runs work in a transaction, which other writes may share, and returns its
// error or that of the commit. If ctx ends before the transaction has begun, work
// does not run; after that, ctx does not matter.
func (s *Store) do(ctx context.Context, work func(tx *txn) error) error {
	return s.submit(&write{ctx: ctx, work: work})
}

// doAlone is do in a transaction of its own.
func (s *Store) doAlone(ctx context.Context, work func(tx *txn) error) error {
	return s.submit(&write{ctx: ctx, work: work, alone: true})
}

func (s *Store) submit(w *write) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if s.isLent(w.ctx) {
		return ErrInTransaction
	}
	w.turn = make(chan bool, 1)
	lead, err := s.queue.join(w)
	if err != nil {
		return err
	}
	if !lead {
		lead = s.queue.wait(w)
	}
	if lead {
		s.lead(w)
	}
	return w.err
}

// join reports whether w leads; else it is in the queue.
func (q *queue) join(w *write) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, ErrClosed
	}
	if !q.led {
		q.led = true
		return true, nil
	}
	q.waiting = append(q.waiting, w)
	return false, nil
}

// wait returns when w is over or has to lead.
func (q *queue) wait(w *write) (lead bool) {
	select {
	case lead := <-w.turn:
		return lead
	case <-w.ctx.Done():
	}
	q.mu.Lock()
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.mu.Unlock()
	if i >= 0 {
		w.err = w.ctx.Err()
		return false
	}
	return <-w.turn
}

// take returns the writes that share a transaction with the leader's.
func (q *queue) take(leader *write) []*write {
	group := []*write{leader}
	if leader.alone {
		return group
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.waiting) && n+1 < maxGroup && !q.waiting[n].alone {
		n++
	}
	group = append(group, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	return group
}

// pass ends the lead: the first in the queue has it now.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		next := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		next.turn <- true
		return
	}
	q.led = false
	q.idle.Broadcast()
}

// close refuses new writes and waits for the accepted ones. It reports whether it
// is the first to close.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := !q.closed
	q.closed = true
	for q.led {
		q.idle.Wait()
	}
	return first
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// lead serves one transaction.
func (s *Store) lead(w *write) {
	group := []*write{w}
	defer func() {
		s.queue.pass()
		for _, other := range group[1:] {
			other.turn <- false
		}
	}()
	tx, err := s.begin(w.ctx)
	if err != nil {
		w.err = err
		return
	}
	defer tx.end()
	group = s.queue.take(w)
	if err := tx.serve(group); err != nil {
		for _, w := range group {
			w.err = cmp.Or(w.err, err)
		}
	}
}
