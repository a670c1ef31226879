package model

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Retry says how failed attempts of a model call are repeated. Only attempts that
// the server provably did not process, or that are harmless to repeat, are, and none of
// which a reader has seen output.
type Retry struct {
	// MaxRetries is the number of attempts after the first. 0 means none, or what the
	// settings below say (Settings.Merge); negative means none in any case.
	MaxRetries int
	// InitialDelay (default 250 ms) is doubled after each attempt up to
	// MaxDelay (default 2 s). A delay that the policy or the server asks for wins.
	InitialDelay time.Duration
	MaxDelay     time.Duration
	// Policy says which attempts are repeated; nil means RetrySuggested. It is not part of
	// what a run records: give it again when a run is resumed.
	Policy RetryPolicy `json:"-"`
}

// merge returns the fields that over sets, and the others of r. Either may be nil.
func (r *Retry) merge(over *Retry) *Retry {
	if r == nil || over == nil {
		return cmp.Or(r, over)
	}
	m := *over
	m.MaxRetries = cmp.Or(over.MaxRetries, r.MaxRetries)
	m.InitialDelay = cmp.Or(over.InitialDelay, r.InitialDelay)
	m.MaxDelay = cmp.Or(over.MaxDelay, r.MaxDelay)
	if m.Policy == nil {
		m.Policy = r.Policy
	}
	return &m
}

// Delay returns the pause after attempt n (from 1). asked is what the policy or the server
// asked for, 0 if nothing; it wins.
func (r *Retry) Delay(n int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	delay, most := r.InitialDelay, r.MaxDelay
	if delay <= 0 {
		delay = 250 * time.Millisecond
	}
	if most <= 0 {
		most = 2 * time.Second
	}
	for range n - 1 {
		if delay >= most {
			break
		}
		delay *= 2
	}
	return min(delay, most)
}

// Decide asks the policy about an attempt, unless it was the last one.
func (r *Retry) Decide(c RetryContext) RetryDecision {
	if c.MaxRetries = r.MaxRetries; c.Attempt > r.MaxRetries {
		return RetryDecision{Reason: "the retries are used up"}
	}
	policy := r.Policy
	if policy == nil {
		policy = RetrySuggested
	}
	d := policy(c)
	if d.Delay == 0 {
		d.Delay = c.RetryAfter
	}
	return d
}

// RetryPolicy says whether a failed attempt is followed by another. It is called once for
// each failed attempt that is not the last, may be called from several goroutines at a time,
// and should decide at once. It is not asked where nothing may be repeated: after output that
// a reader has seen, and when the run is stopped.
type RetryPolicy func(RetryContext) RetryDecision

// RetryContext is what a RetryPolicy decides from.
type RetryContext struct {
	// Err is why the attempt failed.
	Err error
	// Attempt counts the attempts so far, from 1, and MaxRetries is what the settings say.
	Attempt, MaxRetries int
	// Streamed says that somebody reads the run's stream.
	Streamed bool

	// Status, Code, Message, RequestID and RetryAfter are those of an *Error.
	Status                   int
	Code, Message, RequestID string
	RetryAfter               time.Duration
	// Network says that there was no answer, or that it broke off; Timeout that there was
	// none in time.
	Network, Timeout bool

	// Suggested says that the same request may succeed later, Final that the server asked
	// not to be sent it again: the advice of the model's adapter.
	Suggested, Final bool
	// Unsafe says that a repeat may be processed a second time by a server that keeps both:
	// the request is on a conversation, or approves a call of a hosted tool, and nobody knows
	// what became of it.
	Unsafe bool
}

// RetryContextOf returns what an error says of a failed attempt.
func RetryContextOf(err error) RetryContext {
	c := RetryContext{Err: err}
	var timeout interface{ Timeout() bool }
	c.Timeout = errors.As(err, &timeout) && timeout.Timeout()
	var e *Error
	if errors.As(err, &e) {
		c.Status, c.Code, c.Message, c.RequestID, c.RetryAfter = e.Status, e.Code, e.Message, e.RequestID, e.RetryAfter
		c.Suggested, c.Final = e.Retryable, e.Final
		answered := e.Status >= 300 || e.Code != "" || errors.Is(e.Err, ErrFailed) || errors.Is(e.Err, ErrIncomplete) || errors.Is(e.Err, ErrMalformed)
		c.Network = !answered && !c.Timeout && (e.Retryable || errors.Is(e.Err, ErrStreamCut))
	}
	return c
}

// RetryDecision is the answer of a RetryPolicy. The zero value is no.
type RetryDecision struct {
	// Retry says that there is to be another attempt.
	Retry bool
	// Delay is the pause before it; 0 means what the server asked for, or else what the
	// settings say.
	Delay time.Duration
	// Reason says why, for people.
	Reason string
	// ApproveReplay lets a request be sent again of which nobody knows what became of it,
	// on a conversation that would then have it twice, or with an approval that the server
	// would then act on twice (RetryContext.Unsafe). A conversation is read first: what stands
	// there is not sent again.
	ApproveReplay bool
	// Veto is a no that counts against the yes of other policies.
	Veto RetryVeto
}

// RetryVeto says how much a no counts.
type RetryVeto int

// How much a no counts.
const (
	// NoVeto: as much as any other answer.
	NoVeto RetryVeto = iota
	// VetoUnsafe: nothing is repeated, unless another policy approves the replay.
	VetoUnsafe
	// VetoFinal: nothing is repeated, whatever another policy says.
	VetoFinal
)

// RetryNever is the policy that repeats nothing.
func RetryNever(RetryContext) RetryDecision { return RetryDecision{Reason: "never"} }

// RetrySuggested repeats what the model's adapter says may succeed later. It has a veto where
// the server asked not to be sent the request again, and where a repeat is unsafe.
func RetrySuggested(c RetryContext) RetryDecision {
	switch {
	case c.Final:
		return RetryDecision{Reason: "the server asked not to be sent it again", Veto: VetoFinal}
	case c.Unsafe:
		return RetryDecision{Reason: "the server may have processed it", Veto: VetoUnsafe}
	case c.Suggested:
		return RetryDecision{Retry: true, Delay: c.RetryAfter, Reason: "it may succeed later"}
	}
	return RetryDecision{Reason: "it would not succeed later"}
}

// RetryNetwork repeats attempts that got no answer, or none in time.
func RetryNetwork(c RetryContext) RetryDecision {
	return RetryDecision{Retry: c.Network || c.Timeout, Reason: "no answer"}
}

// RetryAfter repeats attempts for which the server said how long to wait, after that pause.
func RetryAfter(c RetryContext) RetryDecision {
	return RetryDecision{Retry: c.RetryAfter > 0, Delay: c.RetryAfter, Reason: "the server said when"}
}

// RetryStatus returns the policy that repeats attempts with one of those HTTP statuses.
func RetryStatus(statuses ...int) RetryPolicy {
	statuses = slices.Clone(statuses)
	return func(c RetryContext) RetryDecision {
		return RetryDecision{Retry: slices.Contains(statuses, c.Status), Reason: "the status"}
	}
}

// RetryAny returns the policy that says yes if one of the policies does, unless one has a
// veto. Of several that say yes the last one with a delay, and the last one with a reason,
// counts.
func RetryAny(policies ...RetryPolicy) RetryPolicy { return combined(slices.Clone(policies), false) }

// RetryAll returns the policy that says yes if all of the policies do: none means no. The veto
// of one that finds a repeat unsafe is lifted by the approval of another. Delay and reason are
// those of RetryAny.
func RetryAll(policies ...RetryPolicy) RetryPolicy { return combined(slices.Clone(policies), true) }

func combined(policies []RetryPolicy, all bool) RetryPolicy {
	return func(c RetryContext) RetryDecision {
		var yes, veto, no RetryDecision
		refused := false
		for _, p := range policies {
			d := p(c)
			switch {
			case d.Veto == VetoFinal:
				return d
			case d.Veto == VetoUnsafe:
				veto = d
			case d.Retry:
				yes.add(d)
			default:
				no, refused = d, true
			}
		}
		switch {
		case refused && all, !yes.Retry && veto.Veto == NoVeto:
			return no
		case veto.Veto == NoVeto, yes.ApproveReplay:
			return yes
		}
		return veto
	}
}

// add takes what another yes adds.
func (d *RetryDecision) add(yes RetryDecision) {
	d.Retry, d.ApproveReplay = true, d.ApproveReplay || yes.ApproveReplay
	if yes.Delay > 0 {
		d.Delay = yes.Delay
	}
	if yes.Reason != "" {
		d.Reason = yes.Reason
	}
}
