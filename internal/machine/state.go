package machine

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// state is the fold of the facts. Nothing in it is volatile: two machines that
// folded the same facts have equal states [M16.5].
type state struct {
	facts uint64
	run   string
	epoch uint64
	owner journal.Owner

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
	heads     []item.Head      // of the newest response's items
	running   int              // calls of the newest response that are running
	seen      map[string]*call // by call id, if the model's ids are unique
	chain     chain
	maxTurns  int

	sticky    map[string]*journal.Decided // by tool identity
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
	again         bool // no attempt is open; another is due
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
	kind      item.Type
	callID    string
	spec      *journal.ToolSpec
	plan      *journal.PlannedCall
	digest    item.Digest // of the arguments in force
	edited    string
	state     callState
	attempt   int
	epoch     uint64
	notAfter  int64
	blocked   int64 // nobody may act on the call in doubt before this time
	exposed   bool  // an attempt may have happened
	unknown   int

	approval *journal.Decided   // the call's own decision at stage 0
	ruling   *journal.Decided   // the decision that lets it run or not: its own or a sticky one
	doubts   []*journal.Decided // the decisions at the stages above 0
	outcome  journal.Outcome
}

// harmless says that repeating the call with its key does no harm.
func (c *call) harmless() bool {
	return c.spec != nil && (c.spec.Class == journal.ReadOnly || c.spec.Class == journal.Idempotent)
}

// tells says that the model, not a person, is told of an unknown outcome.
func (c *call) tells() bool { return c.spec.OnUnknown == journal.UnknownTell }

// result says that a body of the call ran to an end and settled it [M14.3].
func (c *call) result() bool {
	return c.state == callSettled && (c.outcome == journal.Done || c.outcome == journal.ToolFailed)
}

// move changes a call's state.
func (s *state) move(c *call, to callState) {
	if c.state == callRunning {
		s.running--
	}
	if to == callRunning {
		s.running++
	}
	c.state = to
}

func (s *state) managed() bool {
	st := s.started
	return st.Conversation != "" || st.Previous != "" || st.Auto
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
	calls := s.responses[id.N-1].calls
	i, ok := slices.BinarySearchFunc(calls, id.P, func(c *call, p int) int { return c.id.P - p })
	if !ok {
		return nil
	}
	return calls[i]
}

// owed says that the session lacks something it should hold [M10.2].
func (s *state) owed() bool {
	return s.session != nil && s.loaded && s.persisted < s.settled
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
