package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Mode is how a ticket's run keeps its conversation.
type Mode string

// The modes.
const (
	// ModeStore keeps it in a session in the run store: batch and fact commit together.
	ModeStore Mode = "store"
	// ModePlain keeps it in a plain session in the shop's own database.
	ModePlain Mode = "plain"
	// ModeChain leaves it to the model's server, continued by previous_response_id.
	ModeChain Mode = "chain"
)

// ErrUnknownTicket: the shop has no ticket for the run.
var ErrUnknownTicket = errors.New("pawl: the shop has no ticket of this run")

// Ticket is a customer's complaint, and how the desk is to work on it. A run of the demo is the work
// on one ticket.
type Ticket struct {
	Number   int64
	Customer Customer
	Order    int64
	Text     string
	Mode     Mode
	// Model is the model's name; BaseURL is empty for the bundled server.
	Model, BaseURL string
}

const ticketPrefix = "ticket-"

// Run is the id of the ticket's run.
func (t *Ticket) Run() string { return ticketPrefix + strconv.FormatInt(t.Number, 10) }

// Session is the id of the ticket's session, empty if the server holds the conversation.
func (t *Ticket) Session() string {
	switch t.Mode {
	case ModePlain:
		return plainPrefix + t.Run()
	case ModeStore:
		return t.Run()
	}
	return ""
}

// Bundled reports whether the bundled server plays the model.
func (t *Ticket) Bundled() bool { return t.BaseURL == "" }

// NewTicket says what ticket to open.
type NewTicket struct {
	Mode           Mode
	Model, BaseURL string
	// Fault is what the ticket's session is to let go wrong, once; it goes with ModePlain.
	Fault Fault
	// Coupon makes the customer ask for a coupon, which tempts the bundled model to call a tool that the desk
	// does not have.
	Coupon bool
}

// openTicket makes an order that went wrong and a ticket about it. taken says that a run of that id
// exists, as it may when the shop's file was removed and the store's was not.
func (s *Shop) openTicket(ctx context.Context, n NewTicket, taken func(run string) (bool, error)) (*Ticket, error) {
	t := &Ticket{Mode: n.Mode, Model: n.Model, BaseURL: n.BaseURL}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT coalesce(max(number) + 1, ?) FROM tickets`, firstTicket).Scan(&t.Number)
		for in := true; err == nil && in; {
			if in, err = taken(t.Run()); in {
				t.Number++
			}
		}
		if err != nil {
			return err
		}
		p := products[t.Number%int64(len(products))]
		err = tx.QueryRowContext(ctx, `SELECT id, name, email FROM customers WHERE id = 1 + ? % ?`, t.Number-firstTicket, seededCustomers).
			Scan(&t.Customer.ID, &t.Customer.Name, &t.Customer.Email)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `INSERT INTO orders (customer, item, cents, express, status) VALUES (?, ?, ?, ?, 'delivered') RETURNING id`,
			t.Customer.ID, p.name, p.cents, expressCents).Scan(&t.Order)
		if err != nil {
			return err
		}
		t.Text = fmt.Sprintf("Hello, this is %s (%s). The %s of order %d (%s) arrived broken, and I paid %s for express delivery though it "+
			"took nine days. Please refund both.", t.Customer.Name, t.Customer.Email, p.name, t.Order, dollars(p.cents), dollars(expressCents))
		if n.Coupon {
			t.Text += " A coupon for the trouble would be nice, too."
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO tickets VALUES (?, ?, ?, ?, ?, ?, ?)`,
			t.Number, t.Customer.ID, t.Order, t.Text, t.Mode, t.Model, t.BaseURL)
		if err == nil && n.Mode == ModePlain && n.Fault != FaultNone {
			_, err = tx.ExecContext(ctx, `INSERT INTO faults VALUES (?, ?)`, t.Session(), n.Fault)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pawl: open a ticket: %w", err)
	}
	return t, nil
}

// Ticket returns the ticket of a run. The error wraps ErrUnknownTicket if there is none.
func (s *Shop) Ticket(ctx context.Context, run string) (*Ticket, error) {
	digits, _ := strings.CutPrefix(run, ticketPrefix)
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits == run {
		return nil, fmt.Errorf("%w: %q", ErrUnknownTicket, run)
	}
	t := &Ticket{Number: number}
	err = s.db.QueryRowContext(ctx, `SELECT c.id, c.name, c.email, t."order", t.text, t.mode, t.model, t.base_url
		FROM tickets t JOIN customers c ON c.id = t.customer WHERE t.number = ?`, number).
		Scan(&t.Customer.ID, &t.Customer.Name, &t.Customer.Email, &t.Order, &t.Text, &t.Mode, &t.Model, &t.BaseURL)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %q", ErrUnknownTicket, run)
	}
	if err != nil {
		return nil, fmt.Errorf("pawl: read ticket %d: %w", number, err)
	}
	return t, nil
}
