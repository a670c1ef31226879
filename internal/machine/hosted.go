package machine

import (
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// hosted says that the call asks for the approval of what the model's server is going to do:
// nothing runs here.
func (c *call) hosted() bool { return c.spec != nil && c.spec.Hosted }

// approved says that the request of a hosted tool is to be answered with yes now [M8.24].
// The server may act on the next request, so no earlier than a body could start.
func (f *Frame) approved(c *call) bool {
	return c.hosted() && c.state == callReady && f.cleared(c) && !f.closed()
}

// settleApproved answers with yes.
func (f *Frame) settleApproved(c *call) bool {
	return f.add(&journal.Settled{ID: c.id, Outcome: journal.Decreed, Output: item.ApprovalReply(c.callID, true, "")})
}

// unrepeatable says that the turn's request must not be made twice: the server keeps what it
// is sent, or acts on it [M5.11].
func (f *Frame) unrepeatable() bool { return f.started.Conversation != "" || f.turn.approves }

// Unrepeatable says that the request of the newest turn is not repeated while nobody knows
// what became of it [M5.11].
func (f *Frame) Unrepeatable() bool { return f.unrepeatable() }

// approves says that behind the newest response, or behind what a model said last in an input,
// and before a place of the history stands the approval of a hosted tool [M5.11].
func (f *Frame) approves(upto int) bool {
	from := 0
	r := f.last()
	if r != nil {
		from = r.end
	}
	for i := upto - 1; i >= from; i-- {
		it := f.history[i].item
		if f.history[i].dropped || !strings.Contains(it.Raw(), string(item.TypeMCPApprovalResponse)) { // reading every item takes longer
			continue
		}
		if a, err := it.ApprovalResponse(); err == nil && a.Approve {
			return r != nil || !f.spoken(i, upto)
		}
	}
	return false
}

// spoken says that something a model said stands in a range of the history.
func (f *Frame) spoken(from, upto int) bool {
	for it := range f.Items(from, upto) {
		h := it.Head()
		if !item.IsOutput(h.Type) && (h.Type != item.TypeMessage || h.Role == "assistant") {
			return true
		}
	}
	return false
}
