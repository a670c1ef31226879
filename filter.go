package pawl

import (
	"context"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
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

// ModelInput is what a turn's request is to say, and what RunOptions.FilterInput may change.
type ModelInput struct {
	// RunContext is that of the turn.
	RunContext
	// Instructions is the system prompt.
	Instructions string
	// Items are what the model reads. Where the server keeps the conversation they are those
	// that it does not have yet: what is left out then is sent with the next request. Of
	// items of one type and id the newest is sent, once.
	Items []Item
}

// filterInput asks what a request is to say instead [M18.9].
func (f *frame) filterInput(e machine.Effect, w *wanted) ([]journal.Span, error) {
	sent := append(viewItems(f.m, e.View), itemsOf(f.m, e.From, e.Upto)...)
	in := &ModelInput{RunContext: *f.turnContext(e.ID.N), Instructions: w.instructions, Items: slices.Clone(sent)}
	if err := f.filtered(in); err != nil {
		return nil, err
	}
	w.instructions = strings.ToValidUTF8(in.Instructions, "\uFFFD")
	places := f.m.Places(e.Upto)
	asSent(f.m, places)
	covered := slices.Clone(places)
	clear(covered[:e.From])
	for _, s := range e.View {
		copy(covered[s.From:s.Upto], places[s.From:s.Upto])
	}
	return viewInstead(newest(in.Items), sent, covered)
}

func (f *frame) filtered(in *ModelInput) (err error) {
	defer panicked("RunOptions.FilterInput", "", &err)
	return f.opts.FilterInput(f.d.ctx, in)
}

// newest leaves of items of one type and id the newest. It stands where the first one stood if
// others may depend on it, as an output does on its call; else where the last one did.
func newest(list []Item) []Item {
	type identity struct {
		t  item.Type
		id string
	}
	last := make(map[identity]int, len(list))
	for i, it := range list {
		if h := it.Head(); h.ID != "" {
			last[identity{h.Type, h.ID}] = i
		}
	}
	kept := make([]Item, 0, len(list))
	for i, it := range list {
		h := it.Head()
		at, known := last[identity{h.Type, h.ID}]
		leads := h.Type != item.TypeMessage && !item.IsOutput(h.Type)
		switch {
		case h.ID == "", known && !leads && at == i:
			kept = append(kept, it)
		case known && leads:
			kept = append(kept, list[at])
			delete(last, identity{h.Type, h.ID})
		}
	}
	return kept
}

// FilterError says that a filter failed, or returned what no model can be sent. Nothing was
// sent, and the run can be resumed.
type FilterError struct {
	// Filter says which.
	Filter string
	Err    error
}

// Error says what is wrong.
func (e *FilterError) Error() string {
	text := bare(e.Err)
	if !strings.HasPrefix(text, e.Filter) { // a panic names it too
		text = e.Filter + ": " + text
	}
	return "pawl: " + text
}

// Unwrap returns the cause.
func (e *FilterError) Unwrap() error { return e.Err }
