package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// dollars writes cents as an amount, "$84.00".
func dollars(cents int64) string { return fmt.Sprintf("$%d.%02d", cents/100, cents%100) }

// Customer is a customer as the desk sees it.
type Customer struct {
	ID    int64  `json:"customer"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

// FindCustomer returns the customer with the address, nil if there is none.
func (s *Shop) FindCustomer(ctx context.Context, email string) (*Customer, error) {
	var c Customer
	err := s.db.QueryRowContext(ctx, `SELECT id, name, email FROM customers WHERE email = ?`, strings.ToLower(strings.TrimSpace(email))).Scan(&c.ID, &c.Name, &c.Email)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &c, err
}

// Order is an order as the desk sees it. Amounts are in cents.
type Order struct {
	ID       int64  `json:"order"`
	Item     string `json:"item"`
	Cents    int64  `json:"cents"`
	Express  int64  `json:"express_cents"`
	Status   string `json:"status"`
	Refunded int64  `json:"refunded_cents"`
}

// Orders returns the newest orders of a customer, at most ten.
func (s *Shop) Orders(ctx context.Context, customer int64) ([]Order, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, item, cents, express, status,
		(SELECT coalesce(sum(r.cents), 0) FROM refunds r WHERE r."order" = orders.id)
		FROM orders WHERE customer = ? ORDER BY id DESC LIMIT 10`, customer)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Order{}
	for rows.Next() {
		var o Order
		if err := rows.Scan(&o.ID, &o.Item, &o.Cents, &o.Express, &o.Status, &o.Refunded); err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, rows.Err()
}

// Refund is what the desk asks the shop for. Key makes it idempotent.
type Refund struct {
	Key, Run, Call string
	Order, Cents   int64
	Reason         string
}

// Receipt says that a refund is booked.
type Receipt struct {
	Refund int64  `json:"refund"`
	Order  int64  `json:"order"`
	Amount string `json:"amount"`
}

// Refund books a refund, once for each key: asked again with a key it knows, the shop returns the first
// receipt. More than the customer paid is refused.
func (s *Shop) Refund(ctx context.Context, r Refund) (Receipt, error) {
	receipt := Receipt{Order: r.Order, Amount: dollars(r.Cents)}
	err := s.around(WriteRefund, func() error {
		return s.inTx(ctx, func(tx *sql.Tx) error {
			var err error
			receipt.Refund, err = book(ctx, tx, r)
			return err
		})
	})
	return receipt, err
}

func book(ctx context.Context, tx *sql.Tx, r Refund) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `UPDATE refunds SET requests = requests + 1 WHERE key = ? RETURNING id`, r.Key).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	var paid, refunded int64
	err = tx.QueryRowContext(ctx, `SELECT cents + express, (SELECT coalesce(sum(cents), 0) FROM refunds WHERE "order" = orders.id)
		FROM orders WHERE id = ?`, r.Order).Scan(&paid, &refunded)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, fmt.Errorf("there is no order %d", r.Order)
	case err != nil:
		return 0, err
	case r.Cents > paid-refunded:
		return 0, fmt.Errorf("order %d has only %s left to refund", r.Order, dollars(paid-refunded))
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO refunds (key, run, call, "order", cents, reason) VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		r.Key, r.Run, r.Call, r.Order, r.Cents, r.Reason).Scan(&id)
	return id, err
}

// Mail is a mail to a customer.
type Mail struct {
	Run, Call         string
	To, Subject, Body string
}

// Send puts a mail in the shop's outbox, each time it is called: mail has no key that would tell a
// repeat.
func (s *Shop) Send(ctx context.Context, m Mail) error {
	return s.around(WriteMail, func() error {
		_, err := s.db.ExecContext(ctx, `INSERT INTO mails (run, call, recipient, subject, body) VALUES (?, ?, ?, ?, ?)`,
			m.Run, m.Call, m.To, m.Subject, m.Body)
		return err
	})
}

// Effects counts what the shop holds of one call of a run: refunds booked or mails sent, and how
// often the shop was asked for them.
func (s *Shop) Effects(ctx context.Context, run, call string) (effects, requests int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(requests), 0) FROM (
		SELECT requests FROM refunds WHERE run = ?1 AND call = ?2
		UNION ALL SELECT 1 FROM mails WHERE run = ?1 AND call = ?2)`, run, call).Scan(&effects, &requests)
	return effects, requests, err
}

// Totals counts the rows of the shop that a reader of the demo cares about.
func (s *Shop) Totals(ctx context.Context) (customers, orders int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM customers), (SELECT count(*) FROM orders)`).Scan(&customers, &orders)
	return customers, orders, err
}
