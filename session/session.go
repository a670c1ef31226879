// Package session holds conversations that outlive a run: the Session interface a
// run appends to, and the session kept in memory.
package session

import (
	"context"

	"github.com/pawl-agents/pawl/item"
)

// Session is a conversation store shared by many runs. A run appends whole
// responses with the outputs of all their calls, so a session is valid model input
// after every append. Implementations must be safe for concurrent use.
type Session interface {
	// ID names the conversation. A run records it; resuming the run with
	// another session is refused.
	ID() string
	// Items returns the newest limit items, oldest first; a negative limit
	// means all, 0 means none.
	Items(ctx context.Context, limit int) ([]item.Item, error)
	// Append adds the items at the end, all or none. After an error the run
	// reads the tail back before it tries again, because an error does not
	// prove that nothing was stored.
	Append(ctx context.Context, items []item.Item) error
	// Pop removes and returns the newest item; ok is false when there is none.
	Pop(ctx context.Context) (it item.Item, ok bool, err error)
	// Clear removes all items.
	Clear(ctx context.Context) error
}

// BatchAppender is implemented by sessions that remember the batches they hold, so
// that repeating an append is harmless.
type BatchAppender interface {
	// AppendBatch is Append for a batch with an id. It does nothing if the
	// session already took a batch of that id, also if its items were popped or
	// cleared since.
	AppendBatch(ctx context.Context, batchID string, items []item.Item) error
}

// Backend is implemented by sessions that can say where they are kept. A run
// records it beside the session's id. Without it the Go type's name is recorded.
type Backend interface {
	// Backend names the store, for example "sqlite". It must be equal in every
	// process that opens the same store.
	Backend() string
}
