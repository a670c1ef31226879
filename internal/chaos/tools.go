package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/sqlstore"
)

// The tools, one or more of every class.
const (
	toolLook   = "look"   // reads
	toolPut    = "put"    // idempotent: the far side honours the key
	toolGift   = "gift"   // likewise, and has to be approved
	toolPay    = "pay"    // at most once
	toolRefund = "refund" // at most once, and has to be approved
	toolCable  = "cable"  // at most once, slow: it does not always end in time, and the model is told
	toolWire   = "wire"   // likewise, and somebody has to look
	toolCharge = "charge" // at most once, and the far side can be asked what became of it
	toolBook   = "book"   // in the transaction of the run store
)

// toolTable is the tools and how many of a hundred calls are theirs.
var toolTable = []struct {
	name  string
	share int
	kind  pawl.Effect
	gated bool
}{
	{toolLook, 12, pawl.ReadOnly, false},
	{toolPut, 14, pawl.Idempotent, false},
	{toolGift, 10, pawl.Idempotent, true},
	{toolPay, 18, pawl.AtMostOnce, false},
	{toolRefund, 13, pawl.AtMostOnce, true},
	{toolCable, 5, pawl.AtMostOnce, false},
	{toolWire, 5, pawl.AtMostOnce, false},
	{toolCharge, 11, pawl.AtMostOnce, false},
	{toolBook, 12, pawl.Transactional, false},
}

// order is what every tool is called with.
type order struct {
	Call  string `json:"call"`
	Pause int    `json:"pause" minimum:"0" maximum:"1000" jsonschema:"milliseconds"`
}

// toolbox is what the bodies work with.
type toolbox struct {
	log effectLog
	far string // the far side's address
	lie bool   // declare pay read-only, so that it is repeated
}

// did is the output of a call whose body came to its end.
func did(tool, key string) string { return tool + " did " + key }

func (b *toolbox) agent(m model.Model) *pawl.Agent {
	a := &pawl.Agent{Name: "Chaos", Instructions: pawl.Text("Do what you are told."), Model: m}
	for _, t := range toolTable {
		if t.name == toolBook {
			a.Tools = append(a.Tools, sqlstore.NewTxTool(sqlstore.TxFunc[order, string]{Name: t.name, Description: "Books.", Run: b.book}))
			continue
		}
		f := pawl.Func[order, string]{Name: t.name, Description: "Does a " + t.name + ".", Effect: t.kind, Timeout: 2 * time.Second,
			Run: func(ctx context.Context, c *pawl.Call, in order) (string, error) { return b.do(ctx, t.kind, c, in) }}
		if t.gated {
			f.Approve = pawl.AlwaysAsk[order]
		}
		switch t.name {
		case toolCable:
			f.Timeout, f.OnUnknown = slowTimeout, pawl.UnknownTell
		case toolWire:
			f.Timeout, f.OnUnknown = slowTimeout, pawl.UnknownWait
		case toolCharge:
			f.OnUnknown, f.Recover = pawl.UnknownWait, b.recover
		case toolPay:
			if b.lie {
				f.Effect = pawl.ReadOnly
			}
		}
		a.Tools = append(a.Tools, pawl.NewTool(f))
	}
	return a
}

// slowTimeout is shorter than some pauses of the slow tools.
const slowTimeout = 30 * time.Millisecond

// do is the body of every tool. A slow one returns when its context ends, as a client does whose request is under way:
// what it asked for may still happen.
func (b *toolbox) do(ctx context.Context, kind pawl.Effect, c *pawl.Call, in order) (string, error) {
	e := effect{At: effectBegin, Tool: c.Tool, Call: c.ID, Key: c.Key, Attempt: c.Attempt}
	if err := b.log.record(c.Run, e); err != nil {
		return "", err
	}
	pause := time.NewTimer(time.Duration(in.Pause) * time.Millisecond)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if kind == pawl.Idempotent {
		if err := b.ask(ctx, c.Key); err != nil {
			return "", err
		}
	}
	e.At = effectEnd
	if err := b.log.record(c.Run, e); err != nil {
		return "", err
	}
	return did(c.Tool, c.Key), nil
}

// bookings is the table that book writes to. Nothing keeps a call from being in it twice.
const bookings = `CREATE TABLE IF NOT EXISTS bookings (call TEXT)`

// book is the body of the transactional tool. It may be entered more than once; what it writes is there once.
func (b *toolbox) book(ctx context.Context, tx *sql.Tx, c *pawl.Call, in order) (string, error) {
	e := effect{At: effectBegin, Tool: c.Tool, Call: c.ID, Key: c.Key, Attempt: c.Attempt}
	if err := b.log.record(c.Run, e); err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO bookings (call) VALUES (?)`, c.ID); err != nil {
		return "", err
	}
	time.Sleep(time.Duration(in.Pause) * time.Millisecond / 8) // nobody else can write to the store meanwhile
	e.At = effectEnd
	if err := b.log.record(c.Run, e); err != nil {
		return "", err
	}
	return did(c.Tool, c.Key), nil
}

// recover finds out what became of a charge. One that began and did not end is a mystery to the far side, too.
func (b *toolbox) recover(_ context.Context, c *pawl.Call, _ order) (r pawl.Recovered[string], err error) {
	begun, ended, err := b.log.happened(c.Run, c.ID)
	switch {
	case err != nil:
	case ended:
		r.Answer, r.Output = pawl.Happened, did(c.Tool, c.Key)
	case !begun:
		r.Answer = pawl.DidNotHappen
	}
	return r, err
}

// ask has the far side do something under a key.
func (b *toolbox) ask(ctx context.Context, key string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.far+"?key="+url.QueryEscape(key), nil)
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
