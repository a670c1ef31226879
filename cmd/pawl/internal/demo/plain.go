package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/session"
)

// plainPrefix begins the ids of plain sessions, so that a run's session can be found by its id.
const plainPrefix = "shop/"

// plainSession is a session as a user of the library would write one: rows in the application's own
// database. It remembers no batches and shares no transaction with the run store, so whether a failed append
// was stored can only be told by reading back.
type plainSession struct {
	shop *Shop
	id   string
}

var _ session.Session = (*plainSession)(nil)

// ID implements session.Session.
func (p *plainSession) ID() string { return p.id }

// Backend implements session.Backend.
func (p *plainSession) Backend() string { return "pawl-demo/shop" }

// Items implements session.Session.
func (p *plainSession) Items(ctx context.Context, limit int) ([]item.Item, error) {
	rows, err := p.shop.db.QueryContext(ctx, `SELECT item FROM conversations WHERE session = ? ORDER BY id DESC LIMIT ?`, p.id, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var items []item.Item
	for rows.Next() {
		var raw string
		if err := rows.Scan(&raw); err != nil {
			return nil, err
		}
		it, err := item.ParseString(raw)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	slices.Reverse(items)
	return items, rows.Err()
}

// Append implements session.Session.
func (p *plainSession) Append(ctx context.Context, items []item.Item) error {
	if slices.ContainsFunc(items, item.Item.IsZero) {
		return session.ErrZeroItem
	}
	return p.shop.around(WriteSession, func() error {
		return p.shop.inTx(ctx, func(tx *sql.Tx) error { return p.insert(ctx, tx, items) })
	})
}

func (p *plainSession) insert(ctx context.Context, tx *sql.Tx, items []item.Item) error {
	for _, it := range items {
		if _, err := tx.ExecContext(ctx, `INSERT INTO conversations (session, item) VALUES (?, ?)`, p.id, it.Raw()); err != nil {
			return err
		}
	}
	return nil
}

// Pop implements session.Session.
func (p *plainSession) Pop(ctx context.Context) (it item.Item, ok bool, err error) {
	var raw string
	err = p.shop.db.QueryRowContext(ctx, `DELETE FROM conversations WHERE id = (SELECT max(id) FROM conversations WHERE session = ?) RETURNING item`, p.id).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return it, false, nil
	}
	if err != nil {
		return it, false, err
	}
	it, err = item.ParseString(raw)
	return it, err == nil, err
}

// Clear implements session.Session.
func (p *plainSession) Clear(ctx context.Context) error {
	_, err := p.shop.db.ExecContext(ctx, `DELETE FROM conversations WHERE session = ?`, p.id)
	return err
}

// Fault is what a demo lets go wrong.
type Fault string

// The faults.
const (
	// FaultNone lets nothing go wrong.
	FaultNone Fault = ""
	// FaultSessionAppend makes the session refuse, once, the batch with the refund's output.
	FaultSessionAppend Fault = "session-append"
	// FaultLostAck makes the session store that batch and report an error.
	FaultLostAck Fault = "lost-ack"
	// FaultUnknownTool makes the model call a tool that does not exist, on a conversation that the server
	// holds.
	FaultUnknownTool Fault = "unknown-tool"
)

// Faults lists the faults a demo can be asked for.
func Faults() []Fault { return []Fault{FaultSessionAppend, FaultLostAck, FaultUnknownTool} }

// Mode is how the demo of a fault keeps its conversation.
func (f Fault) Mode() Mode {
	switch f {
	case FaultSessionAppend, FaultLostAck:
		return ModePlain
	case FaultUnknownTool:
		return ModeChain
	}
	return ModeStore
}

// ErrInjected marks the failure of a faulty session.
var ErrInjected = errors.New("injected")

// faultySession fails the first append that holds the output of a refund, if its ticket was opened to that end. The
// fault waits in the shop's database, for whichever process comes to that append.
type faultySession struct{ *plainSession }

// Append implements session.Session.
func (f faultySession) Append(ctx context.Context, items []item.Item) error {
	if !slices.ContainsFunc(items, isRefundCall) {
		return f.plainSession.Append(ctx, items)
	}
	var fault Fault
	err := f.shop.around(WriteSession, func() error {
		return f.shop.inTx(ctx, func(tx *sql.Tx) error {
			err := tx.QueryRowContext(ctx, `DELETE FROM faults WHERE session = ? RETURNING fault`, f.id).Scan(&fault)
			if err != nil && !errors.Is(err, sql.ErrNoRows) || fault == FaultSessionAppend {
				return err
			}
			return f.insert(ctx, tx, items)
		})
	})
	switch {
	case err != nil:
		return err
	case fault == FaultSessionAppend:
		return fmt.Errorf("disk full (%w)", ErrInjected)
	case fault == FaultLostAck:
		return fmt.Errorf("connection lost before the answer came (%w)", ErrInjected)
	}
	return nil
}

func isRefundCall(it item.Item) bool {
	h := it.Head()
	return h.Type == item.TypeFunctionCall && strings.EqualFold(h.Name, "refund")
}
