package machine

import (
	"slices"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// run is what the facts say of the whole run. Nothing in it or in a frame's state is
// volatile: two machines that folded the same facts have equal runs and states [M16.5].
type run struct {
	id        string
	facts     uint64
	observed  uint64 // the facts for which hooks were called
	epoch     uint64
	owner     journal.Owner
	failure   *journal.Failed
	failedIn  string // the frame of the failure
	cancelled *journal.Cancelled
	usage     Usage
	context   string // what a codec wrote of the run's context value
}

// state is the fold of a frame's facts.
type state struct {
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
	entered   int              // and those whose nested run is open
	seen      map[string]*call // by call id, if the model's ids are unique
	chain     chain
	maxTurns  int
	unknowns  []*call // settled as unknown, and nothing came in since

	verdicts    [2]bool // of the guardrails on the first input
	passed      int     // the ordinal of the newest verdict on a candidate
	trips       *Trip
	inputEnd    int // where the first input ends
	handled     *journal.Handled
	declined    *journal.Failed // the error behind the newest handler that declined
	handledFrom int             // where in the history what was handled begins
	handledAt   int             // the place of the handler's message, -1 without
	added       []*journal.Added
	admitted    int // of the added
	inputPassed int // the newest of the added of which there is a verdict

	agent   string         // who has the conversation
	view    []journal.Span // what requests send instead of the history below viewEnd
	viewEnd int

	sticky   map[string]*journal.Decided // by tool identity
	ending   bool                        // its caller is told of its failure
	finished *journal.Finished
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
	view          []journal.Span // sent before the range
	left          []journal.Span // what the chain lacks if the request is accepted
	manifest      *journal.Manifest
	same          int // the turn that recorded the manifest
	attempt       int
	open          bool // an attempt is intended and has no outcome
	doubt         bool // that attempt's outcome is unknown
	again         bool // no attempt is open; another is due
	absent        int  // how often an earlier attempt was found absent
	approves      bool // the server acts on what the request says [M5.11]
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
	transferred        bool
}

// chain is what the server that holds the conversation has.
type chain struct {
	id      string
	covered int
	left    []journal.Span // below covered, and not sent yet
}

type callState uint8

const (
	callAsked   callState = iota // a person has to approve
	callReady                    // may start
	callRunning                  // intended, no outcome
	callEntered                  // its nested run is open
	callLeaving                  // its nested run has ended, or there will be none
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
	checked   bool // guardrails let it start
	absent    int  // attempts that were found not to have happened

	approval *journal.Decided   // the call's own decision at stage 0
	ruling   *journal.Decided   // the decision that lets it run or not: its own or a sticky one
	later    []*journal.Decided // the decisions at the stages above 0
	trouble  *journal.Failed    // of the nested run; the model is to be told
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
	return c.state == callSettled && (c.outcome == journal.Done || c.outcome == journal.ToolFailed) && !c.handoff()
}

// move changes a call's state.
func (f *Frame) move(c *call, to callState) {
	switch c.state {
	case callRunning:
		f.running--
	case callEntered:
		f.entered--
	}
	switch to {
	case callRunning:
		f.running++
	case callEntered:
		f.entered++
	}
	c.state = to
}

func (f *Frame) managed() bool {
	st := f.started
	return st.Conversation != "" || st.Previous != "" || st.Auto
}

// last returns the newest response, nil before the first.
func (f *Frame) last() *response {
	if len(f.responses) == 0 {
		return nil
	}
	return f.responses[len(f.responses)-1]
}

// find returns the call an effect id names, nil if there is none.
func (f *Frame) find(id journal.EffectID) *call {
	if id.Kind != journal.EffectTool || id.N < 1 || id.N > len(f.responses) {
		return nil
	}
	calls := f.responses[id.N-1].calls
	i, ok := slices.BinarySearchFunc(calls, id.P, func(c *call, p int) int { return c.id.P - p })
	if !ok {
		return nil
	}
	return calls[i]
}

// owed says that the session lacks something it should hold [M10.2].
func (f *Frame) owed() bool {
	if f.session == nil || !f.loaded {
		return false
	}
	for i := f.persisted; i < f.released(); i++ {
		if !f.history[i].dropped {
			return true
		}
	}
	return false
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
