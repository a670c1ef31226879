package pawl

import (
	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// RequestUsage is what one attempt of a model call cost, as the server reported it.
type RequestUsage struct {
	// Agent is the key of the agent that asked.
	Agent string
	// Turn and Attempt count from 1.
	Turn, Attempt int
	// ResponseID and RequestID are the server's, empty if it gave none or the attempt
	// has no response.
	ResponseID, RequestID string
	// Reported says that the server reported the tokens. Without it they are unknown,
	// not 0.
	Reported                                bool
	Input, Cached, Output, Reasoning, Total int64
	// Raw is the server's usage object, if ModelSettings.PreserveRawUsage asked for it.
	Raw string
}

// Requests returns the attempts of model calls that have ended, in the order in which that
// was recorded. Usage is their sum. They are read from the ledger, each time.
func (r *Result) Requests() []RequestUsage {
	var list []RequestUsage
	m := machine.New()
	for _, rec := range r.state.records.list() {
		f, err := journal.Decode(rec)
		if err != nil {
			return list // it was read before: this does not happen
		}
		before := m.Usage().Requests
		if err := m.Replay(f); err != nil {
			return list
		}
		if m.Usage().Requests > before {
			list = append(list, requestOf(m.Frame(f.Frame), f.Body))
		}
	}
	return list
}

// requestOf describes the attempt that ended with a fact.
func requestOf(f *machine.Frame, b journal.Body) RequestUsage {
	man, _ := f.Manifest()
	u := RequestUsage{Agent: man.Agent}
	var id journal.EffectID
	switch b := b.(type) {
	case *journal.Responded:
		id, u.ResponseID, u.RequestID = b.ID, b.ResponseID, b.RequestID
		if t := b.Usage; t != nil {
			u.Reported = true
			u.Input, u.Cached, u.Output, u.Reasoning, u.Total, u.Raw = t.Input, t.Cached, t.Output, t.Reasoning, t.Total, t.Raw
		}
	case *journal.Failed:
		id = b.ID
	case *journal.Absent:
		id = b.ID
	case *journal.Intended: // the attempt before it was in doubt
		id = b.ID
		id.A--
	}
	u.Turn, u.Attempt = id.N, id.A
	return u
}
