package session

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pawl-agents/pawl/item"
)

// ErrZeroItem: the zero Item was to be appended. Nothing was.
var ErrZeroItem = errors.New("pawl: the zero Item cannot be appended to a session")

// Memory is a session in the memory of the process. It is safe for concurrent use.
// It lasts as long as the process: a run that is resumed in another one finds an
// empty session of the same id. It implements BatchAppender and Backend.
type Memory struct {
	id string

	mu      sync.Mutex
	items   []item.Item
	batches map[string]bool
}

var (
	_ Session       = (*Memory)(nil)
	_ BatchAppender = (*Memory)(nil)
	_ Backend       = (*Memory)(nil)
)

// NewMemory returns an empty session of that id.
func NewMemory(id string) *Memory {
	return &Memory{id: id, batches: map[string]bool{}}
}

// ID returns the id given to NewMemory.
func (m *Memory) ID() string { return m.id }

// Backend returns "memory".
func (m *Memory) Backend() string { return "memory" }

// Items returns the newest limit items, oldest first; a negative limit means all.
// The error is the context's.
func (m *Memory) Items(ctx context.Context, limit int) ([]item.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := 0
	if limit >= 0 {
		first = max(0, len(m.items)-limit)
	}
	return slices.Clone(m.items[first:]), nil
}

// Append adds the items at the end. It refuses all of them if one is the zero Item
// or the context is done.
func (m *Memory) Append(ctx context.Context, items []item.Item) error {
	if err := check(ctx, items); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items = append(m.items, items...)
	return nil
}

// AppendBatch is Append, unless a batch of that id was appended before.
func (m *Memory) AppendBatch(ctx context.Context, batchID string, items []item.Item) error {
	if err := check(ctx, items); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.batches[batchID] {
		m.batches[batchID] = true
		m.items = append(m.items, items...)
	}
	return nil
}

// Pop removes and returns the newest item; ok is false if there is none. The error
// is the context's.
func (m *Memory) Pop(ctx context.Context) (it item.Item, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return item.Item{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.items)
	if n == 0 {
		return item.Item{}, false, nil
	}
	it = m.items[n-1]
	m.items = m.items[:n-1]
	return it, true, nil
}

// Clear removes all items. It still knows the batches it took. The error is the
// context's.
func (m *Memory) Clear(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items = nil
	return nil
}

// check refuses what no session may hold.
func check(ctx context.Context, items []item.Item) error {
	if slices.ContainsFunc(items, item.Item.IsZero) {
		return ErrZeroItem
	}
	return ctx.Err()
}
