package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// store is the run store as a worker has it.
type store struct {
	database
	death death
	// elsewhere claims runs as if from another host: nobody here can know then whether their owner is gone.
	elsewhere string
	twice     bool // a late result is posted under another name, too
}

// death ends the process right before or right after one of its writes.
type death struct {
	after  bool
	at     int64 // the number of the write, from 1; 0 is never
	writes atomic.Int64
}

// around does a write, or dies beside it.
func (d *death) around(write func() error) error {
	due := d.writes.Add(1) == d.at
	if due && !d.after {
		die()
	}
	err := write()
	if due {
		die()
	}
	return err
}

// die ends the process as kill -9 does.
func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // the signal is on its way
}

// Claim implements journal.Driver.
func (s *store) Claim(ctx context.Context, run string, req journal.ClaimRequest) (c journal.Claim, err error) {
	if s.elsewhere != "" {
		req.Owner.Host = s.elsewhere
	}
	err = s.death.around(func() error {
		c, err = s.database.Claim(ctx, run, req)
		return err
	})
	return c, err
}

// Next implements journal.Driver.
func (s *store) Next(ctx context.Context, req journal.NextRequest) (next *journal.Next, err error) {
	if s.elsewhere != "" {
		req.Owner.Host = s.elsewhere
	}
	err = s.death.around(func() error {
		next, err = s.database.Next(ctx, req)
		return err
	})
	return next, err
}

// Renew implements journal.Driver.
func (s *store) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	return s.death.around(func() error { return s.database.Renew(ctx, run, epoch, ttl) })
}

// Release implements journal.Driver.
func (s *store) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	return s.death.around(func() error { return s.database.Release(ctx, run, epoch, rest) })
}

// Append implements journal.Driver.
func (s *store) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	return s.death.around(func() error { return s.database.Append(ctx, run, epoch, after, recs, with...) })
}

// Transact implements journal.Transactor. The death beside it may come inside, too: when the body has run and nothing is
// committed.
func (s *store) Transact(ctx context.Context, run string, epoch, after uint64, fn func(ctx context.Context, tx any) ([]journal.Record, error)) error {
	return s.death.around(func() error {
		return s.database.Transact(ctx, run, epoch, after, func(ctx context.Context, tx any) (recs []journal.Record, err error) {
			err = s.death.around(func() error {
				recs, err = fn(ctx, tx)
				return err
			})
			return recs, err
		})
	})
}

// Post implements journal.Driver.
func (s *store) Post(ctx context.Context, run string, e journal.Entry) error {
	if s.twice && e.Body.Kind == "settled" {
		again := journal.Entry{Key: e.Key + ".again", Body: e.Body}
		if err := s.database.Post(ctx, run, again); err != nil {
			return err
		}
	}
	return s.death.around(func() error { return s.database.Post(ctx, run, e) })
}

// ownSession is a session in that store.
type ownSession struct {
	conversation
	store *store
}

// Store is the driver whose transactions the session joins.
func (s ownSession) Store() journal.Driver { return s.store }

// batchSession is a session in another database, which remembers batches.
type batchSession struct {
	session.Session
	session.BatchAppender
}

// plainSession is a session in another database, as somebody might write one: it remembers no batches.
type plainSession struct{ session.Session }

// conversations finds sessions by their ids, which begin with their mode.
type conversations struct {
	runs   *store
	beside *sqlstore.Store
}

func (c conversations) session(id string) session.Session {
	kind, _, _ := strings.Cut(id, "/")
	switch mode(kind) {
	case modeOwn:
		return ownSession{c.runs.conversation(id), c.runs}
	case modeBatches:
		s := c.beside.Session(id)
		return batchSession{s, s}
	case modePlain:
		return plainSession{c.beside.Session(id)}
	}
	return nil
}

// newDeath draws when a worker dies by itself: half of them do.
func newDeath(rnd *rand.Rand) (after bool, at int64) {
	if rnd.IntN(2) == 0 {
		return false, 0
	}
	return rnd.IntN(2) == 0, 1 + rnd.Int64N(300)
}
