package pawl

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/item"
)

// HandoffFilter says what the agent that gets the conversation is to read of it: items of the
// conversation, in any order, and others. The session, and Result.ToInputList, have the whole
// conversation all the same. What it returned is recorded with the handoff; it may be called
// again if the process dies, or OnHandoff fails, before that, so it should only look. Its error,
// or a panic, fails the run, resumably; so does what no model can be sent, as a *FilterError: a
// call without its output, an output without its call, a call that the model did not make, or
// no items at all.
type HandoffFilter func(ctx context.Context, h *HandoffData) ([]Item, error)

// HandoffData is what a HandoffFilter chooses from.
type HandoffData struct {
	HandoffCall
	// History is what the run began with, the session's items included, or what an earlier
	// filter made of the conversation. PreHandoff is what the run added before the response
	// that hands over, New that response with all its outputs.
	History, PreHandoff, New []Item
}

// Items returns everything, in its order: what the agent reads without a filter.
func (h *HandoffData) Items() []Item { return slices.Concat(h.History, h.PreHandoff, h.New) }

// RemoveTools returns a filter that leaves the messages: no call and no output, whoever runs
// the tool, and no reasoning.
func RemoveTools() HandoffFilter {
	return func(_ context.Context, h *HandoffData) ([]Item, error) {
		return slices.DeleteFunc(h.Items(), func(it Item) bool { return it.Type() != item.TypeMessage }), nil
	}
}

// FilterError says that a filter failed, or returned what no model can be sent. Nothing was
// sent, and the run can be resumed.
type FilterError struct {
	// Filter says which.
	Filter string
	Err    error
}

// Error says what is wrong.
func (e *FilterError) Error() string { return fmt.Sprintf("pawl: %s: %s", e.Filter, bare(e.Err)) }

// Unwrap returns the cause.
func (e *FilterError) Unwrap() error { return e.Err }
