package machine

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// state is the fold of the facts. Nothing in it is volatile: two machines that
// folded the same facts have equal states.
type state struct {
	facts  uint64
	stable uint64
	run    string
	epoch  uint64
	gone   bool

	started   *journal.Started
	session   *journal.SessionRef
	loaded    bool
	history   []slot
	settled   int // everything below is settled: what a request or a session may see
	persisted int // the session holds everything below
	batches   int
	open      *batch

	turns     int
	turn      turn
	manifests map[int]*journal.Manifest
	responses []*response
	seen      map[string]*call
	chain     chain
	maxTurns  int

	sticky    map[string]*journal.Decided
	failure   *journal.Failed
	cancelled *journal.Cancelled
	finished  *journal.Finished
	usage     Usage
}

// slot is a place in the history. Outputs have their place before they exist.
type slot struct {
	item    item.Item
	dropped bool
}

// batch is a session batch that is intended and not confirmed.
type batch struct {
	n, upto, attempt int
	doubt            bool
	absent           bool
}

// turn is the newest model turn.
type turn struct {
	n, from, upto int
	manifest      *journal.Manifest
	same          int // the turn that recorded the manifest
	attempt       int
	open          bool // an attempt is intended and has no outcome
	doubt         bool // that attempt's outcome is unknown
	again         bool // the last attempt failed; another is due
	retryAt       int64
}

// response is an accepted response and its place in the history: its items, then
// the outputs of its calls in call order.
type response struct {
	n, turn            int
	id                 string
	first, end, outEnd int
	manifest           *journal.Manifest
	planned            *journal.Planned
	calls              []*call
	unsettled          int
	judged             *journal.Judged
}

// chain is what the server that holds the conversation has.
type chain struct {
	id      string
	covered int
}

type callState uint8

const (
	callAsked   callState = iota // a person has to approve
	callReady                    // may start
	callRunning                  // intended, no outcome
	callDoubt                    // may have happened
	callDecided                  // to be settled without a body
	callSettled
)

type call struct {
	id        journal.EffectID // without attempt
	slot, out int
	callID    string
	spec      *journal.ToolSpec
	plan      *journal.PlannedCall
	state     callState
	attempt   int
	epoch     uint64
	notAfter  int64
	blocked   int64 // nobody may act on the call in doubt before this time
	edited    string
	stage     int
	decisions []*journal.Decided
	verdict   *journal.Decided // what a decided call is settled by; nil: the plan's gate
	unknown   int
	outcome   journal.Outcome
}

// harmless says that repeating the call with its key does no harm.
func (c *call) harmless() bool {
	return c.spec != nil && (c.spec.Class == journal.ReadOnly || c.spec.Class == journal.Idempotent)
}

func (m *Machine) managed() bool {
	s := m.started
	return s.Conversation != "" || s.Previous != "" || s.Auto
}

// last returns the newest response, nil before the first.
func (s *state) last() *response {
	if len(s.responses) == 0 {
		return nil
	}
	return s.responses[len(s.responses)-1]
}

// find returns the call an effect id names, nil if there is none.
func (s *state) find(id journal.EffectID) *call {
	if id.Kind != journal.EffectTool || id.N < 1 || id.N > len(s.responses) {
		return nil
	}
	for _, c := range s.responses[id.N-1].calls {
		if c.id.P == id.P {
			return c
		}
	}
	return nil
}

// Usage sums what the model requests of a run cost.
type Usage struct {
	// Requests counts the attempts that ended, Unreported those among them for
	// which the server reported no tokens.
	Requests, Unreported                    int64
	Input, Cached, Output, Reasoning, Total int64
}

func (u *Usage) add(r *journal.Usage) {
	u.Requests++
	if r == nil {
		u.Unreported++
		return
	}
	u.Input += r.Input
	u.Cached += r.Cached
	u.Output += r.Output
	u.Reasoning += r.Reasoning
	u.Total += r.Total
}
