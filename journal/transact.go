package journal

import (
	"context"
	"fmt"
)

// Transactor is what a driver implements if code of others can take part in its
// transactions, so that what the code writes to the same database and the records that
// tell of it commit together. Clause S9.22 of docs/spec.md is its contract.
type Transactor interface {
	// Transact begins a transaction, checks epoch and after as Append does, calls fn,
	// appends the records that fn returns, and commits. tx is the store's own
	// transaction: a *sql.Tx of sqlstore, a *pgstore.Tx of pgstore. While fn runs it may hold the store's only
	// writer: it must be short, and must not use the store but through tx, or end tx.
	//
	// An error or a panic of fn rolls everything back and is returned, wrapped. A
	// *TxEndedError says that fn ended the transaction itself. Any other error means what it
	// means for Append: ErrFenced and *ConflictError, that fn was not called; else, that
	// everything is absent, stored, or will be stored later.
	Transact(ctx context.Context, run string, epoch, after uint64, fn func(ctx context.Context, tx any) ([]Record, error)) error
}

// TransactorOf returns the Transactor that a driver is, nil if it is none. A driver that wraps
// another and can lend its transactions if the other can has a method Transactor, which
// returns what does so, or nil.
func TransactorOf(d Driver) Transactor {
	switch d := d.(type) {
	case interface{ Transactor() Transactor }:
		return d.Transactor()
	case Transactor:
		return d
	}
	return nil
}

// TxEndedError says that the function given to Transact ended the transaction it was
// lent. No record was appended.
type TxEndedError struct {
	Run string // empty if the function was for none
	// Committed says that what the function wrote may be stored; else it was rolled back.
	Committed bool
}

// Error says what became of the transaction.
func (e *TxEndedError) Error() string {
	how := "rolled back"
	if e.Committed {
		how = "committed"
	}
	text := "pawl: the store's transaction was " + how + " by the code it was lent to"
	if e.Run == "" {
		return text
	}
	return fmt.Sprintf("%s (run %s)", text, e.Run)
}
