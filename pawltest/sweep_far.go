package pawltest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// far is the far side of a scenario: what no crash of a process touches. It knows nothing of the machine. It watches what
// reaches it, and writes down what must never happen.
type far struct {
	script  []ScriptedStep
	classes map[string]pawl.Effect // of the agent's tools
	session *session.Memory
	asked   map[string]bool // keys of calls that the clean run asked about; nil in the clean run

	mu       sync.Mutex
	problems map[string]bool
	log      []string
	closed   bool // nothing more happens

	// What the tools did, by key.
	effects  []swept
	answers  map[string]string
	allowed  map[string]bool // approved
	always   map[string]bool // tools approved for good
	forgiven map[string]int  // effects of a process that died before a document knew them

	// The model.
	ranks         map[string]int // the calls it made, in order
	responses     map[string][]item.Item
	conversations map[string][]item.Item
	accepted      int
	requests      int
	wire          []item.Item // the conversation up to the last response

	// The ledger, as the appends that the store took tell it.
	epoch    uint64
	head     uint64
	intended int
	recorded int             // responses
	open     map[string]bool // tool attempts with an intent and no outcome
	unknown  map[string]bool // calls with an unknown outcome
}

// swept is an effect of a tool.
type swept struct {
	pawl.Call
	process int
}

func newFar(s Scenario) *far {
	f := &far{script: s.Script, classes: map[string]pawl.Effect{}, session: session.NewMemory(sessionID), problems: map[string]bool{},
		answers: map[string]string{}, allowed: map[string]bool{}, always: map[string]bool{}, forgiven: map[string]int{}, ranks: map[string]int{},
		responses: map[string][]item.Item{}, conversations: map[string][]item.Item{}, open: map[string]bool{}, unknown: map[string]bool{}}
	if first := s.options().PreviousResponseID; first != "" {
		f.responses[first] = nil
	}
	return f
}

// problem writes down a promise that was broken.
func (f *far) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.note("  BROKEN %s", text)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems[text] = true
}

// note writes down what happened.
func (f *far) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.log = append(f.log, fmt.Sprintf("%10s  "+format, append([]any{since().Round(time.Millisecond)}, args...)...))
}

// latency is how long a call takes to reach its far side: different for every call, so that they arrive in the order in which
// the model made them.
func (f *far) latency(callID string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(1+f.ranks[callID]) * time.Millisecond
}

// effect does what a call asks for and returns the answer.
func (f *far) effect(c *pawl.Call, answer string, process int) string {
	f.mu.Lock()
	first, repeated := f.answers[c.Key]
	class := f.classes[c.Tool]
	n := 1
	for _, e := range f.effects {
		if e.Key == c.Key {
			n++
		}
	}
	f.effects = append(f.effects, swept{*c, process})
	if !repeated {
		f.answers[c.Key] = answer
	}
	limit, attempts, intended, head := 1+f.forgiven[c.Key], len(f.effects), f.intended, f.head
	denied := f.asked[c.Key] && !f.allowed[c.Key] && !f.always[c.Tool]
	f.mu.Unlock()

	f.note("  %s %s takes effect, attempt %d of process %d", c.Tool, c.ID, c.Attempt, process)
	if class == pawl.AtMostOnce && n > limit {
		f.problem("G1: %s %s took effect %d times, and may once", c.Tool, c.ID, n)
	}
	if denied {
		f.problem("G7: %s %s ran before anybody approved it", c.Tool, c.ID)
	}
	if head > 0 && attempts > intended {
		f.problem("%s %s took effect before its intent was durable", c.Tool, c.ID)
	}
	if repeated && class == pawl.Idempotent {
		return first
	}
	return answer
}

// count returns how many effects there were of calls that may have one only.
func (f *far) count() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.effects {
		if f.classes[e.Tool] == pawl.AtMostOnce {
			n++
		}
	}
	return n
}

// answered returns how many responses the model made.
func (f *far) answered() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.accepted
}

// begun says that the store has records of the run.
func (f *far) begun() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head > 0
}

// close says that nothing more happens.
func (f *far) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// forget says that the last document knows nothing of what a process did since: those effects may happen again.
func (f *far) forget(known int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.effects[known:] {
		f.forgiven[e.Key]++
	}
}

// claimed notes that the store granted a claim.
func (f *far) claimed(epoch uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch = max(f.epoch, epoch)
}

// appended notes that the store took an append. None may come from an older claim, or to another place than the ledger's end:
// of two drivers one writes.
func (f *far) appended(epoch, after uint64, recs []journal.Record) {
	f.mu.Lock()
	fenced, winner := epoch < f.epoch, after == f.head
	f.head += uint64(len(recs))
	for _, r := range recs {
		id := effectOf(r)
		if r.Kind == journal.KindResponded {
			f.recorded++
		}
		if !strings.HasPrefix(id, "t") {
			continue
		}
		switch r.Kind {
		case journal.KindIntended:
			f.intended++
			f.open[id] = true
		case journal.KindSettled:
			delete(f.open, id)
			if strings.Contains(r.Payload, `"outcome":"unknown"`) {
				f.unknown[callOf(id)] = true
			}
		}
	}
	f.mu.Unlock()
	if fenced {
		f.problem("the store took a write under an old claim")
	}
	if !winner {
		f.problem("the store took two writes for one place of the ledger")
	}
}

// callOf turns the id of an attempt, t3.1.2, into the beginning of the call's interruption ids, 3.1#.
func callOf(id string) string {
	return strings.TrimPrefix(id[:strings.LastIndex(id, ".")], "t") + "#"
}

// doubtful says that a call may be in doubt: its intent is durable and its outcome is not, or is unknown.
func (f *far) doubtful(interruption string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	call, _, _ := strings.Cut(interruption, "#")
	call += "#"
	for id := range f.open {
		if callOf(id) == call {
			return true
		}
	}
	return f.unknown[call]
}

// openCalls returns the model's ids of the calls with an intent and no outcome.
func (f *far) openCalls() (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.open {
		var n, p, a int
		if _, err := fmt.Sscanf(id, "t%d.%d.%d", &n, &p, &a); err == nil && n <= len(f.script) && p < len(f.script[n-1].Output) {
			ids = append(ids, f.script[n-1].Output[p].Head().CallID)
		}
	}
	slices.Sort(ids)
	return ids
}
