// Package group lets the writes that wait for a store's one writer share its transactions.
package group

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Max bounds the writes that share a transaction, and so how long the first of them waits
// for the others.
const Max = 128

// ErrClosed: the store was closed.
var ErrClosed = errors.New("pawl: the store is closed")

// errPanicked is the error of the writes whose leader did not come back from serving them.
var errPanicked = errors.New("pawl: the store panicked; it is not known what became of the write")

// A Write is work for the writer. Err is its own error, beside that of its transaction.
type Write[W any] struct {
	Work W
	Err  error

	ctx   context.Context
	alone bool
	// turn says that the write is over (false) or that its goroutine has to lead (true).
	turn chan bool
}

// Queue orders the writes of a store. At any time at most one goroutine leads: it has the
// writer for one transaction, in which it serves its own write and those that wait, and then
// passes the lead on. A write that finds no leader leads at once, without changing
// goroutines. The zero Queue is empty and open; it is safe for concurrent use.
type Queue[W any] struct {
	mu      sync.Mutex
	led     bool
	closed  bool
	idle    chan struct{} // closed when nobody leads any more; nil if nobody waits for that
	waiting []*Write[W]
}

// Serve does writes in one transaction. take returns them, the leader's first; until it is
// called only the leader's is there. An error is that of all that were taken; errors of a
// write's own it leaves in the write. ctx is the leader's.
type Serve[W any] func(ctx context.Context, take func() []*Write[W]) error

// Do has work done and returns its error or that of its transaction. Alone it shares the
// transaction with nobody. If ctx ends before it is taken, it is not done; after that, ctx
// does not matter, unless serve looks at it.
func (q *Queue[W]) Do(ctx context.Context, work W, alone bool, serve Serve[W]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &Write[W]{Work: work, ctx: ctx, alone: alone, turn: make(chan bool, 1)}
	lead, err := q.join(w)
	if err != nil {
		return err
	}
	if lead || q.wait(w) {
		q.lead(w, serve)
	}
	return w.Err
}

// join reports whether w leads; else it is in the queue.
func (q *Queue[W]) join(w *Write[W]) (lead bool, err error) {
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
func (q *Queue[W]) wait(w *Write[W]) (lead bool) {
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
		w.Err = w.ctx.Err()
		return false
	}
	return <-w.turn
}

// lead serves one transaction.
func (q *Queue[W]) lead(w *Write[W], serve Serve[W]) {
	taken, err := []*Write[W]{w}, errPanicked
	defer func() {
		for _, w := range taken {
			w.Err = cmp.Or(w.Err, err)
		}
		q.pass()
		for _, other := range taken[1:] {
			other.turn <- false
		}
	}()
	err = serve(w.ctx, func() []*Write[W] {
		taken = q.take(w)
		return taken
	})
}

// take returns the writes that share a transaction with the leader's.
func (q *Queue[W]) take(leader *Write[W]) []*Write[W] {
	taken := []*Write[W]{leader}
	if leader.alone {
		return taken
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.waiting) && n+1 < Max && !q.waiting[n].alone {
		n++
	}
	taken = append(taken, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	return taken
}

// pass ends the lead: the first in the queue has it now.
func (q *Queue[W]) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		next := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		next.turn <- true
		return
	}
	q.led = false
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// Close refuses new writes and waits for the accepted ones. It reports whether it is the
// first to close.
func (q *Queue[W]) Close() (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first = !q.closed
	q.closed = true
	for q.led {
		if q.idle == nil {
			q.idle = make(chan struct{})
		}
		idle := q.idle
		q.mu.Unlock()
		<-idle
		q.mu.Lock()
	}
	return first
}

// Closed reports whether the queue refuses writes.
func (q *Queue[W]) Closed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Waiting returns the number of writes that wait for the lead or to be taken; led says
// whether somebody leads.
func (q *Queue[W]) Waiting() (n int, led bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.led
}
