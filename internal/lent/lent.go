// Package lent calls code of others that was lent a store's transaction.
package lent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Grace is how long such code may take to return once its context has ended.
const Grace = time.Second

// ErrInTransaction: code that has the store's transaction called the store, which waits for
// that very code. It has to go through the transaction it was given.
var ErrInTransaction = errors.New("pawl: the store is used inside its own transaction")

// ErrLeft: the code did not return. It may go on with what it was lent.
var ErrLeft = errors.New("the code that was lent the transaction did not return")

type key struct{}

// Has reports whether ctx is of code that was lent a transaction of the store.
func Has(ctx context.Context, store any) bool { return ctx.Value(key{}) == store }

// Call calls fn on a goroutine of its own and waits for it, not for ever: Grace after the end
// of ctx it is left behind, and the error wraps ErrLeft and that of ctx. A panic is an error.
func Call(ctx context.Context, store any, fn func(ctx context.Context) error) error {
	done := make(chan error, 1)
	go func() {
		err := errors.New("the code that was lent the transaction ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the code that was lent the transaction panicked: %v\n%s", p, debug.Stack())
			}
			done <- err
		}()
		err = fn(context.WithValue(ctx, key{}, store))
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(Grace)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return fmt.Errorf("%w: %w", ErrLeft, ctx.Err())
	}
}
