package group

import (
	"context"
	"testing"
	"testing/synctest"
)

// Writes that share the transaction of one that panics are told that it did not go well, and the queue goes on.
func TestServePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue[string]
		serving, goOn := make(chan bool), make(chan bool)
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			q.Do(t.Context(), "leads", false, func(_ context.Context, take func() []*Write[string]) error {
				close(serving)
				<-goOn
				if n := len(take()); n != 2 {
					t.Errorf("%d writes share it", n)
				}
				panic("oh")
			})
		}()
		<-serving
		other := make(chan error, 1)
		go func() {
			other <- q.Do(t.Context(), "shares", false, func(context.Context, func() []*Write[string]) error { return nil })
		}()
		synctest.Wait()
		close(goOn)
		if got := <-panicked; got != "oh" {
			t.Errorf("it panicked with %v", got)
		}
		if err := <-other; err == nil {
			t.Error("the other write was done")
		}
		if err := q.Do(t.Context(), "next", false, func(context.Context, func() []*Write[string]) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
