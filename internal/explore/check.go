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
//   - nothing is in doubt if nothing went wrong.
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
	if s.spent.Faults == 0 {
		for _, in := range v.interruptions {
			if in.Kind == machine.InDoubt {
				return "nothing went wrong, and a call is in doubt"
			}
		}
	}
	return ""
}

// harmless says that a call may happen again.
func (x *explorer) harmless(v *view, call journal.EffectID) bool {
	info, _ := v.m.Call(call)
	return info.Spec.Class == journal.Idempotent
}
