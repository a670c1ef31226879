package pawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// Standing says how a call stands whose effect nobody knows.
type Standing string

// The standings.
const (
	// StandsInDoubt: a crash or its own outcome left the call in doubt, and its run is open.
	// Somebody decides, the far side is asked, or the model is told, once the run goes on.
	StandsInDoubt Standing = "in-doubt"
	// StandsExternal: the tool has started something whose result has not come (ErrPending).
	StandsExternal Standing = "external"
	// StandsTold: the call is settled as unknown, and the run went on or has ended. The model
	// was told, a person gave up, or the run was cancelled.
	StandsTold Standing = "told"
)

// Unsettled is a call whose effect nobody knows. As JSON it has the members below.
type Unsettled struct {
	Run string `json:"run"`
	// Agent is the key of the agent whose call it is.
	Agent string `json:"agent"`
	// Call names the call within its run: an Interruption.ID without its stage.
	Call string `json:"call"`
	Tool string `json:"tool"`
	// CallID is the model's id of the call; models reuse it.
	CallID string `json:"call_id"`
	// Arguments are what the call ran with.
	Arguments string `json:"arguments"`
	// Key is the call's idempotency key: ask the far side with it.
	Key string `json:"key"`
	// Attempt is how often the call was begun, Since when it was the last time: no attempt
	// was begun later.
	Attempt int       `json:"attempt"`
	Since   time.Time `json:"since"`
	// Why is what the tool said, or whoever gave up. It is empty after a crash.
	Why      string   `json:"why,omitempty"`
	Standing Standing `json:"standing"`
	// Interruption is what a decision on the call is bound to; empty if none is asked for.
	// If the call stands told, Settle with it records what somebody found out, and takes the
	// call off the list; the conversation stays as it is.
	Interruption string `json:"interruption,omitempty"`
}

// UnsettledOptions are the options of Unsettled; nil means all defaults.
type UnsettledOptions struct {
	// Open leaves out the runs that have ended.
	Open bool
}

// Unsettled lists the calls of all runs of the store whose effect nobody knows, the newest
// run first: those that are in doubt or whose result has not come, and those that were
// settled as unknown, also in runs that have ended. Of the latter it leaves out a ReadOnly
// call, which has no effect, and one of which is known what it did since: its body has
// returned, or somebody found out.
//
// A call that is running is in doubt if nobody drives its run or its driver is known to be
// gone; whoever takes the run up finds that out. Before that it cannot be decided.
//
// A run that cannot be read is yielded as its error, with Run set, and the listing goes on.
// It ends with the error, and no Run, of a store that cannot be listed or of a ctx that has
// ended. Every ledger is read, a run at a time; nothing is written. It may be called from
// any goroutine.
func (r *Runner) Unsettled(ctx context.Context, opts *UnsettledOptions) iter.Seq2[Unsettled, error] {
	if opts == nil {
		opts = &UnsettledOptions{}
	}
	return func(yield func(Unsettled, error) bool) {
		if err := r.checkStore(); err != nil {
			yield(Unsettled{}, err)
			return
		}
		q := journal.Query{Open: opts.Open, Limit: page}
		for {
			infos, err := r.store().List(ctx, q)
			if err != nil {
				yield(Unsettled{}, fmt.Errorf("pawl: listing the runs: %w", err))
				return
			}
			for _, info := range infos {
				if !r.unsettledOf(ctx, info, yield) {
					return
				}
			}
			if len(infos) < page {
				return
			}
			q.Before = infos[len(infos)-1].Run
		}
	}
}

// unsettledOf yields the unsettled calls of a run and reports whether to go on.
func (r *Runner) unsettledOf(ctx context.Context, info journal.RunInfo, yield func(Unsettled, error) bool) bool {
	s, err := r.State(ctx, info.Run)
	switch {
	case ctx.Err() != nil:
		yield(Unsettled{}, fmt.Errorf("pawl: listing the runs: %w", ctx.Err()))
		return false
	case errors.Is(err, ErrUnknownRun): // it was removed meanwhile
		return true
	case err != nil:
		return yield(Unsettled{Run: info.Run}, err)
	}
	m := s.fold()
	// Whoever moved it since the store listed it may be at work.
	driven := owned(info) || uint64(s.Facts()) != info.Head
	for u := range m.Unsettled() {
		if u.Standing == machine.StandsRunning && driven {
			continue
		}
		if !yield(unsettled(m, u), nil) {
			return false
		}
	}
	return true
}

// Unsettled lists the calls of the run whose effect nobody knows, as Runner.Unsettled does
// for all runs, but without those that are running: whether one of them is in doubt depends
// on who drives the run.
func (s *RunState) Unsettled() (list []Unsettled) {
	m := s.fold()
	for u := range m.Unsettled() {
		if u.Standing != machine.StandsRunning {
			list = append(list, unsettled(m, u))
		}
	}
	return list
}

func unsettled(m *machine.Machine, u machine.Unsettled) Unsettled {
	f := m.Frame(u.Frame)
	v := Unsettled{Run: m.Run(), Agent: f.ManifestOf(u.Call.N).Agent, Call: machine.FrameName(u.Frame, u.Call), Tool: u.Tool, CallID: u.CallID,
		Arguments: f.Arguments(u.Call), Key: f.KeyOf(u.Call), Attempt: u.Attempt, Since: timeOf(u.Begun), Why: u.Note, Interruption: u.Interruption}
	switch u.Standing {
	case machine.StandsExternal:
		v.Standing = StandsExternal
	case machine.StandsTold:
		v.Standing = StandsTold
	default:
		v.Standing = StandsInDoubt
	}
	return v
}
