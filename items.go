package pawl

import (
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// itemsOf collects the items of a range of the history, as they are sent and shown.
func itemsOf(f *machine.Frame, from, upto int) []Item {
	list := make([]item.Item, 0, upto-from)
	for it := range f.Items(from, upto) {
		list = append(list, it)
	}
	asSent(f, list)
	return list
}

// asSent makes items of the history what is sent and shown of them.
func asSent(f *machine.Frame, list []Item) {
	if f.Started() == nil || !f.Started().OmitReasoningIDs {
		return
	}
	for i, it := range list {
		if it.Type() == item.TypeReasoning {
			list[i] = it.WithoutID()
		}
	}
}

// present returns the items of places that show one.
func present(places []Item) []Item {
	list := make([]Item, 0, len(places))
	for _, it := range places {
		if !it.IsZero() {
			list = append(list, it)
		}
	}
	return list
}

// storedItems collects them as the session has them, or is to have them: what it held before
// the run is as it was [S13.2].
func storedItems(f *machine.Frame, from, upto int) []Item {
	held, _ := f.InputEnd()
	if !f.Started().OmitReasoningIDs || from >= held {
		return itemsOf(f, from, upto)
	}
	held = min(held, upto)
	var list []Item
	for it := range f.Items(from, held) {
		list = append(list, it)
	}
	return append(list, itemsOf(f, held, upto)...)
}

// viewItems collects the items of a view as they are sent: those that are the view's own as
// they are.
func viewItems(f *machine.Frame, view []journal.Span) (list []Item) {
	for _, s := range view {
		if !s.Item.IsZero() {
			list = append(list, s.Item)
			continue
		}
		list = append(list, itemsOf(f, s.From, s.Upto)...)
	}
	return list
}

// viewOf writes a list of items as a view of a history. There is no view if the list is the
// history.
func viewOf(list, history []Item) []journal.Span {
	if slices.Equal(list, history) {
		return nil
	}
	return spansOf(list, history)
}

// spansOf writes what is in a list of items and in the history as its place, each place once,
// and the rest as items. A zero item is no place.
func spansOf(list, history []Item) (view []journal.Span) {
	places := make(map[Item][]int, len(history))
	for i, it := range history {
		places[it] = append(places[it], i)
	}
	for _, it := range list {
		at := places[it]
		if len(at) == 0 {
			view = append(view, journal.Span{Item: it})
			continue
		}
		places[it] = at[1:]
		if n := len(view); n > 0 && view[n-1].Item.IsZero() && view[n-1].Upto == at[0] {
			view[n-1].Upto++
			continue
		}
		view = append(view, journal.Span{From: at[0], Upto: at[0] + 1})
	}
	return view
}
