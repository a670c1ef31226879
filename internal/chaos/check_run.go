package chaos

import (
	"fmt"
	"slices"
)

// check compares what a run's ledger says with the effect log and with what the model's server saw.
func (p *parent) check(j *job, l *ledger, effects []effect) []string {
	problems := slices.Concat(l.odd, j.checkEnd(l))
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	logged := map[string][]effect{}
	for _, e := range effects {
		logged[e.Call] = append(logged[e.Call], e)
	}
	keys := map[string]string{}
	far := farSide{p.far, p.booked, p.parcels}
	for n, r := range l.responses {
		if l.finished != nil && !r.whole() && !(l.finished.Cancelled && !r.planned) || n+1 < len(l.responses) && !r.whole() {
			bad("response %d has a call without an output", n+1)
		}
		for _, c := range r.calls {
			for _, problem := range c.check(l, logged[c.id], far) {
				bad("call %s of %s: %s", c.id, c.tool, problem)
			}
			for _, e := range logged[c.id] {
				if other, ok := keys[e.Key]; ok && other != c.id {
					bad("calls %s and %s have one key", c.id, other)
				}
				keys[e.Key] = c.id
			}
			delete(logged, c.id)
		}
	}
	for id := range logged {
		bad("call %s had an effect, and the ledger does not know it", id)
	}
	return slices.Concat(problems, p.checkRequests(j, l))
}

// checkEnd says what is wrong with how a run ended. One that nobody decides about waits, and it is known for what.
func (j *job) checkEnd(l *ledger) (problems []string) {
	switch {
	case l.finished != nil && l.finished.Cancelled && !(l.cancelled && j.plan.Cancel):
		return []string{"it was cancelled, and nobody had done so"}
	case l.finished != nil:
		return nil
	case len(l.responses) == 0 && !j.begun:
		return []string{"it has not begun"}
	case !j.plan.Leave || len(l.responses) == 0:
		return []string{"it neither ended nor waits"}
	}
	open := 0
	for _, c := range l.responses[len(l.responses)-1].calls {
		if c.settled > 0 {
			continue
		}
		if open++; c.waits(l) == "" {
			problems = append(problems, fmt.Sprintf("call %s of %s is open, and waits for nobody", c.id, c.tool))
		}
	}
	if open == 0 {
		problems = append(problems, "it neither ended nor waits")
	}
	return problems
}

// checkRequests compares what the model was shown with what the ledger says came before.
func (p *parent) checkRequests(j *job, l *ledger) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	histories := map[uint64]bool{}
	answers := map[int]bool{}
	for n, r := range l.responses {
		history := digest(l.history(n)).digest
		histories[history] = true
		answers[r.request] = true
		if shown, ok := p.brain.seen[r.request]; !ok {
			bad("response %d answers no request", n+1)
		} else if shown.digest != history {
			bad("request %d did not show the model what the ledger says came before response %d", r.request, n+1)
		}
	}
	histories[digest(l.history(len(l.responses))).digest] = true
	unanswered := 0
	for _, n := range p.brain.asked[j.plan.Run] {
		if answers[n] {
			continue
		}
		if unanswered++; !histories[p.brain.seen[n].digest] && !(j.plan.Mode.forgets() && p.follows(n, histories, answers)) {
			bad("request %d, whose answer was lost, showed the model what the ledger never said: %d items, the last %q", n,
				p.brain.seen[n].items, p.brain.seen[n].last)
		}
	}
	// A conversation holds what the server accepted, whether or not its answer arrived, so nothing is asked twice. The run may
	// end before it has the last answer.
	most := 0
	if l.finished != nil && l.finished.Cancelled {
		most = 1
	}
	if j.plan.Mode == modeConversation && unanswered > most {
		bad("the server accepted %d requests on the conversation whose answers the ledger does not have", unanswered)
	}
	return append(problems, j.checkAmbiguous(l, len(p.brain.asked[j.plan.Run]))...)
}

// forgets says that a run may forget a response, all of whose calls were answered without any being made: nothing in the
// world depends on it, so it is not written at once. Then the model is asked again.
func (m mode) forgets() bool { return m == modeNone || m == modeChain }

// follows says that a request went on from an answer that was forgotten.
func (p *parent) follows(n int, histories map[uint64]bool, answers map[int]bool) bool {
	s := p.brain.seen[n]
	before, ok := p.brain.seen[s.answer]
	if !ok || s.answer >= n || answers[s.answer] || before.digest != s.before {
		return false
	}
	return histories[before.digest] || p.follows(s.answer, histories, answers)
}

// checkAmbiguous says why a run should not have refused to go on. It may do so in one case: the server accepted its first
// request on a conversation, the answer was lost, and so the run has nothing by which to know what the conversation holds.
func (j *job) checkAmbiguous(l *ledger, accepted int) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch {
	case j.ambiguous && len(l.ambiguous) == 0:
		bad("it refused to send anything, and did not record that")
	case len(l.ambiguous) == 0:
		return nil
	case j.plan.Mode != modeConversation:
		bad("it refused to send anything, and is not on a conversation")
	case slices.Max(l.ambiguous) > 0:
		bad("it refused to send anything, and had %d responses to know the conversation by", slices.Max(l.ambiguous))
	case accepted != 1:
		bad("it refused to send anything, and the server had accepted %d requests", accepted)
	case l.finished == nil || !l.finished.Cancelled:
		bad("it refused to send anything, and went on")
	}
	return problems
}
