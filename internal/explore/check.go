package explore

import (
	"fmt"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// check returns the rule that a state breaks, empty if it breaks none:
//
//   - the ledger follows the machine's rules; nothing is intended, settled or decided twice, and what
//     is settled of the history has every call with one output;
//   - nothing is stored, and no body entered, under an epoch that is not the newest; no body is
//     entered after its time, or without a stored intent of its own epoch;
//   - a call that may happen once happens once at most; one that is settled as done happened,
//     and one that was rejected or dropped did not;
//   - a session holds what is settled, in order, each item once; a server is sent all of it, each item once;
//   - nothing is in doubt if nothing went wrong, and never a call that may be repeated or that commits
//     with its outcome;
//   - no call is intended that somebody has to approve and nobody did, or not in time;
//   - a call that happened is not forgotten: the ledger has its result, or lists it as one whose effect
//     nobody knows.
func (x *explorer) check(s *state) string {
	if s.broken != "" {
		return s.broken
	}
	v := s.store.head.view()
	if v.err != nil {
		return "the ledger: " + v.err.Error()
	}
	for _, d := range s.done {
		if n := s.happened(d.call); n > 1 && !x.harmless(v, d.call) {
			return fmt.Sprintf("call %s happened %d times", d.call, n)
		}
	}
	for call, o := range v.outcomes {
		n := s.happened(call)
		switch {
		case (o == journal.Done || o == journal.Decreed) && n == 0:
			return fmt.Sprintf("call %s did not happen, and is settled as %q", call, o)
		case (o == journal.Rejected || o == journal.Dropped) && n > 0:
			return fmt.Sprintf("call %s happened, and is settled as %q", call, o)
		}
	}
	if x.sc.Session != nil {
		if len(s.session) > len(v.history) || !slices.Equal(s.session, v.history[:len(s.session)]) {
			return fmt.Sprintf("the session has\n%v\nand the history\n%v", s.session, v.history)
		}
		if v.finished && len(s.session) != len(v.history) {
			return "the run has ended, and its session lacks something"
		}
	}
	for _, in := range v.interruptions {
		if in.Kind != machine.InDoubt {
			continue
		}
		if s.spent.Faults == 0 {
			return "nothing went wrong, and a call is in doubt"
		}
		if info, _ := v.m.Call(in.Call); info.Spec.Class != journal.AtMostOnce {
			return fmt.Sprintf("call %s is in doubt, and its class is %s", in.Call, info.Spec.Class)
		}
	}
	return x.remembers(s, v)
}

// remembers says what is wrong if a call happened and the ledger does not know.
func (x *explorer) remembers(s *state, v *view) string {
	listed, answered := map[journal.EffectID]bool{}, map[journal.EffectID]bool{}
	for at := range v.decided {
		answered[at.call] = true // what somebody said of it stands in the ledger
	}
	for u := range v.m.Unsettled() {
		listed[u.Call] = true
	}
	for _, d := range s.done {
		if x.harmless(v, d.call) {
			continue
		}
		switch known := v.results[d.call] || v.outcomes[d.call] == journal.Decreed; {
		case !known && !listed[d.call] && !answered[d.call]:
			return fmt.Sprintf("call %s happened, and the ledger does not say that it may have", d.call)
		case known && listed[d.call]:
			return fmt.Sprintf("call %s is known to have happened, and is listed as one of which nobody knows", d.call)
		}
	}
	if v.m.Cancelled() && v.m.Successor() != successor {
		return "nobody knows which run came after the cancelled one"
	}
	return ""
}

// harmless says that a call may happen again.
func (x *explorer) harmless(v *view, call journal.EffectID) bool {
	info, _ := v.m.Call(call)
	return info.Spec.Class == journal.Idempotent
}
