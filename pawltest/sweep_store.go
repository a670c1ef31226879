package pawltest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/journal"
)

// sweptStore is the store as a process of a scenario sees it.
type sweptStore struct {
	journal.Driver
	world *World
}

func (s sweptStore) Claim(ctx context.Context, run string, req journal.ClaimRequest) (c journal.Claim, err error) {
	granted := false
	err = s.world.at(ClaimRun, fmt.Sprintf("process %d", s.world.number), func() error {
		again, err := s.Driver.Claim(ctx, run, req)
		if err == nil {
			s.world.stage.far.claimed(again.Epoch)
		}
		if granted && err != nil {
			return nil // delivered twice: the first answer counts
		}
		c, granted = again, err == nil
		return err
	})
	if err != nil {
		c = journal.Claim{}
	}
	return c, err
}

func (s sweptStore) Renew(ctx context.Context, run string, epoch uint64, ttl time.Duration) error {
	if err := s.world.alive(); err != nil {
		return err
	}
	return s.Driver.Renew(ctx, run, epoch, ttl)
}

func (s sweptStore) Release(ctx context.Context, run string, epoch uint64, rest journal.Rest) error {
	return s.world.at(ReleaseRun, fmt.Sprintf("process %d", s.world.number), func() error { return s.Driver.Release(ctx, run, epoch, rest) })
}

func (s sweptStore) Append(ctx context.Context, run string, epoch, after uint64, recs []journal.Record, with ...journal.Companion) error {
	w := s.world
	w.stage.takeover(w)
	if w.isFailing() {
		return ErrSwept
	}
	kind, name := describe(recs)
	return w.at(kind, name, func() error {
		err := s.Driver.Append(ctx, run, epoch, after, recs, with...)
		if err == nil {
			w.stage.far.appended(epoch, after, recs)
		}
		return err
	})
}

// sweptTransactor is a store that lends its transaction to tools.
type sweptTransactor struct {
	sweptStore
	transactor journal.Transactor
}

func (s sweptTransactor) Transact(ctx context.Context, run string, epoch, after uint64, fn func(context.Context, any) ([]journal.Record, error)) error {
	w := s.world
	w.stage.takeover(w)
	if w.isFailing() {
		return ErrSwept
	}
	err := w.at(ToolTransaction, fmt.Sprintf("process %d", w.number), func() error {
		var recs []journal.Record
		err := s.transactor.Transact(ctx, run, epoch, after, func(ctx context.Context, tx any) (_ []journal.Record, err error) {
			w.lent(true)
			defer w.lent(false)
			recs, err = fn(ctx, tx)
			return recs, err
		})
		if err == nil {
			w.stage.far.appended(epoch, after, recs)
		}
		return err
	})
	if dead := w.alive(); dead != nil {
		return dead // it died inside, and what it did was rolled back
	}
	return err
}

func (s sweptStore) Read(ctx context.Context, run string, after uint64) ([]journal.Record, error) {
	if err := s.world.alive(); err != nil {
		return nil, err
	}
	return s.Driver.Read(ctx, run, after)
}

func (s sweptStore) Post(ctx context.Context, run string, e journal.Entry) error {
	kind, name := DecisionPosted, e.Key
	if e.Body.Kind == journal.KindAdded { // its key is of the salt too
		kind, name = InputAdded, "posted"
	}
	return s.world.at(kind, name, func() error { return s.Driver.Post(ctx, run, e) })
}

func (s sweptStore) Inbox(ctx context.Context, run string) ([]journal.Entry, error) {
	if err := s.world.alive(); err != nil {
		return nil, err
	}
	return s.Driver.Inbox(ctx, run)
}

// describe says what an append carries.
func describe(recs []journal.Record) (BoundaryKind, string) {
	kind := JournalAppend
	var names []string
	for _, r := range recs {
		name, id := string(r.Kind), effectOf(r)
		if id != "" {
			name += " " + id
		}
		names = append(names, name)
		switch {
		case !strings.HasPrefix(id, "t"):
		case r.Kind == journal.KindIntended:
			kind = ToolIntent
		case r.Kind == journal.KindSettled && kind == JournalAppend:
			kind = ToolOutcome
		}
	}
	return kind, strings.Join(names, ", ")
}

// effectOf reads the id of the effect off a fact's payload, empty if it has none.
func effectOf(r journal.Record) string {
	var payload map[string]any
	_ = json.Unmarshal([]byte(r.Payload), &payload)
	id, _ := payload["id"].(string) // what has no id is not an effect's
	return id
}
