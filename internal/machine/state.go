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
	unknowns  []*call // settled as unknown, and nothing came in since

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
	absent        int  // how often an earlier attempt was found absent
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
	callPending                  // started something whose result arrives later
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
	begun     int64 // when the newest attempt was intended
	notAfter  int64
	blocked   int64  // nobody may act on the call in doubt before this time
	exposed   bool   // an attempt may have happened
	before    bool   // one before the last may have happened
	query     bool   // in doubt: the far side is to be asked what became of it
	live      bool   // in doubt: a driver recorded the unknown outcome
	note      string // what came with the outcome that left the call open
	deadline  int64  // of its approval, 0 without
	unknown   int
	absent    int // attempts that were found not to have happened

	approval *journal.Decided   // the call's own decision at stage 0
	ruling   *journal.Decided   // the decision that lets it run or not: its own or a sticky one
	later    []*journal.Decided // the decisions at the stages above 0
	outcome  journal.Outcome
}

// harmless says that repeating the call with its key does no harm.
func (c *call) harmless() bool {
	return c.spec != nil && (c.spec.Class == journal.ReadOnly || c.spec.Class == journal.Idempotent)
}

// transactional says that an attempt without an outcome did not happen [M12.8].
func (c *call) transactional() bool {
	return c.spec != nil && c.spec.Class == journal.Transactional
}

// recoverable says that the far side can be asked what became of the call in doubt
// [M8.16].
func (c *call) recoverable() bool {
	return c.spec.Recover && !c.harmless() && !c.transactional()
}

// tells says that the model, not a person, is told of the call in doubt [M8.9].
func (c *call) tells() bool {
	return c.spec.OnUnknown == journal.UnknownTell || c.live && c.spec.OnUnknown == journal.UnknownDefault
}

// queried says that an answer about that attempt is due: whether it happened [M8.18]
// [M8.19].
func (c *call) queried(now int64, attempt int) bool {
	return c.state == callDoubt && c.query && attempt == c.attempt && now >= c.blocked
}

// expiry is the deadline of an approval that was asked for now [M9.15].
func (c *call) expiry(now int64) int64 {
	if c.spec.Expires <= 0 {
		return 0
	}
	return later(now, c.spec.Expires)
}

// expires says that the call's approval is open and its deadline has come.
func (c *call) expires(now int64) bool {
	return c.state == callAsked && c.deadline != 0 && now >= c.deadline
}

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
