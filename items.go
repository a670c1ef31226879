package pawl

import (
	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
)

// itemsOf collects the items of a range of the history, as they are sent and shown.
func itemsOf(m *machine.Machine, from, upto int) []Item {
	list := make([]item.Item, 0, upto-from)
	omit := m.Started() != nil && m.Started().OmitReasoningIDs
	for it := range m.Items(from, upto) {
		if omit && it.Type() == item.TypeReasoning {
			it = it.WithoutID()
		}
		list = append(list, it)
	}
	return list
}

// storedItems collects them as the session has them, or is to have them: what it held before
// the run is as it was [S13.2].
func storedItems(m *machine.Machine, from, upto int) []Item {
	held, _ := m.InputEnd()
	if !m.Started().OmitReasoningIDs || from >= held {
		return itemsOf(m, from, upto)
	}
	held = min(held, upto)
	var list []Item
	for it := range m.Items(from, held) {
		list = append(list, it)
	}
	return append(list, itemsOf(m, held, upto)...)
}
