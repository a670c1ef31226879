package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/pawl-agents/pawl"
)

// toolbox is what the bodies work with.
type toolbox struct {
	log    effectLog
	url    string // the parent's address
	worker int
	slow   int // how much longer bodies in a hurry have, and take
	store  database
	lie    lie
}

// did is the output of a call whose body came to its end.
func did(tool, key string) string { return tool + " did " + key }

// effectOf is a line about a call.
func effectOf(at string, c *pawl.Call) effect {
	return effect{At: at, Tool: c.Tool, Call: c.ID, Key: c.Key, Attempt: c.Attempt}
}

// body is the body of a tool that is not transactional.
func (b *toolbox) body(t tool) func(context.Context, *pawl.Call, order) (string, error) {
	return func(ctx context.Context, c *pawl.Call, in order) (string, error) {
		if t.asks && c.Approvals == 0 {
			return "", b.question(ctx, c)
		}
		if err := b.log.begin(ctx, c.Run, effectOf(effectBegin, c)); err != nil {
			return "", err
		}
		if err := b.work(ctx, t, c, in); err != nil {
			return "", err
		}
		if err := b.log.record(c.Run, effectOf(effectEnd, c)); err != nil {
			return "", err
		}
		if t.later {
			return "", pawl.ErrPending
		}
		if t.canTell { // what it did is known there long before the answer is here
			time.Sleep(time.Duration(in.Pause) * time.Millisecond)
		}
		return did(c.Tool, c.Key), nil
	}
}

// question is what a tool does that asks for itself: nothing but to ask.
func (b *toolbox) question(ctx context.Context, c *pawl.Call) error {
	if err := b.log.begin(ctx, c.Run, effectOf(effectAsk, c)); err != nil {
		return err
	}
	return pawl.AskAgain("Really?")
}

// work takes its time and tells the far side. A tool returns when its context ends, as a client does whose request is
// under way: what it asked for may still happen.
func (b *toolbox) work(ctx context.Context, t tool, c *pawl.Call, in order) error {
	span := time.Duration(in.Pause) * time.Millisecond
	switch {
	case t.deaf:
		ctx, span = context.WithoutCancel(ctx), span*deafFactor
	case t.hurry:
		span *= time.Duration(b.slow)
	}
	if in.Freeze {
		_ = b.ask(context.WithoutCancel(ctx), freezePath, "worker", fmt.Sprint(b.worker))
	}
	if b.lie == liePay && t.name == toolPay && in.Pause%4 == 0 && b.isFirst(c) {
		die() // the kills miss most bodies, and a short campaign is to find the lie
	}
	pause := time.NewTimer(span)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case t.kind == pawl.Idempotent:
		return b.ask(ctx, farPath, "key", c.Key)
	case t.later:
		return b.ask(ctx, shipPath, "run", c.Run, "call", c.ID, "key", c.Key)
	}
	return nil
}

// isFirst says that the body of a call was entered once.
func (b *toolbox) isFirst(c *pawl.Call) bool {
	lines, err := b.log.read(c.Run)
	entered := 0
	for _, e := range lines {
		if e.Call == c.ID && e.At == effectBegin {
			entered++
		}
	}
	return err == nil && entered == 1
}

// bookings is the table that the transactional tools write to. Nothing keeps a call from being in it twice.
const bookings = `CREATE TABLE IF NOT EXISTS bookings (call TEXT)`

// booking is its statement, with the call as both databases take it.
const booking = `INSERT INTO bookings (call) VALUES ('%s')`

// book is the body of the transactional tools. It may be entered more than once; what it writes is there once. One that
// asks does so when it has written: then nothing may be there.
func (b *toolbox) book(ctx context.Context, tx *sql.Tx, c *pawl.Call, in order) (string, error) {
	at := effectBegin
	asks := toolOf(c.Tool).asks && c.Approvals == 0
	if asks {
		at = effectAsk
	}
	if err := b.log.begin(ctx, c.Run, effectOf(at, c)); err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(booking, c.ID)); err != nil {
		return "", err
	}
	if asks {
		return "", pawl.AskAgain("Really?")
	}
	time.Sleep(time.Duration(in.Pause) * time.Millisecond / 8) // nobody else can write to the store meanwhile
	if err := b.log.record(c.Run, effectOf(effectEnd, c)); err != nil {
		return "", err
	}
	return did(c.Tool, c.Key), nil
}

// bookOutside is book in a transaction of its own, which has nothing to do with the outcome.
func (b *toolbox) bookOutside(ctx context.Context, c *pawl.Call, in order) (out string, err error) {
	errBook := b.store.update(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = b.book(ctx, tx, c, in)
		var ask *pawl.AskError
		if errors.As(err, &ask) {
			return nil
		}
		return err
	})
	time.Sleep(time.Duration(in.Pause) * time.Millisecond) // it is easily killed before the outcome is recorded
	return out, errors.Join(err, errBook)
}

// recover finds out what became of a charge. One that began and did not end is a mystery to the far side, too.
func (b *toolbox) recover(_ context.Context, c *pawl.Call, _ order) (r pawl.Recovered[string], err error) {
	begun, ended, err := b.log.happened(c.Run, c.ID)
	switch {
	case err != nil:
	case b.lie == lieRecover:
		r.Answer = pawl.DidNotHappen
	case ended:
		r.Answer, r.Output = pawl.Happened, did(c.Tool, c.Key)
	case !begun:
		r.Answer = pawl.DidNotHappen
	}
	return r, err
}

// ask has the parent do something. The arguments are names and values.
func (b *toolbox) ask(ctx context.Context, path string, arguments ...string) error {
	values := url.Values{}
	for i := 0; i < len(arguments); i += 2 {
		values.Set(arguments[i], arguments[i+1])
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+path+"?"+values.Encode(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", pawl.ErrOutcomeUnknown, err)
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the far side answers %s", res.Status)
	}
	return err
}
