package machine_test

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// kindFits is the part of M7.3 and M7.10 that is about what a call is.
func kindFits(kind item.Type, tools []journal.ToolSpec, p journal.PlannedCall) bool {
	hosted := p.Tool >= 0 && tools[p.Tool].Hosted
	if kind == item.TypeMCPApprovalRequest {
		return hosted && !p.Unreadable
	}
	return !hosted && known(kind, item.TypeFunctionCall, item.TypeCustomToolCall)
}

// unrepeatable is M5.11 for the newest turn.
func (w *world) unrepeatable() bool {
	t := w.turn()
	return w.start != nil && (w.start.Conversation != "" || t != nil && t.approves)
}

// approves is M5.11: an approval that nothing of a model follows.
func (w *world) approves(upto int) bool {
	ours := func(it item.Item) bool {
		return item.IsOutput(it.Type()) || it.Type() == item.TypeMessage && it.Head().Role != "assistant"
	}
	list := w.shown()[:upto]
	for i, it := range list {
		a, err := it.ApprovalResponse()
		followed := slices.ContainsFunc(list[i:], func(it item.Item) bool { return !it.IsZero() && !ours(it) })
		if r := w.response(); r != nil {
			followed = i < r.start+len(r.items)
		}
		if err == nil && a.Approve && !followed {
			return true
		}
	}
	return false
}
