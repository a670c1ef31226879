package pawltest

import (
	"encoding/json"
	"fmt"
	"maps"
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
	scripts    map[string][]ScriptedStep
	classes    map[string]pawl.Effect // of the agent's tools
	agentTools map[string]bool        // the tools that run agents
	session    *session.Memory
	// sessions are those of nested runs, by id.
	sessions map[string]*session.Memory
	// What the clean run had: the frames of the calls that it asked about, by key, and its moments. Nil in the clean run.
	asked    map[string]string
	expected map[string]*moments

	mu       sync.Mutex
	problems map[string]bool
	log      []string
	closed   bool // nothing more happens

	// What the tools did, by key.
	effects  []swept
	answers  map[string]string
	allowed  map[string]bool // approved
	always   map[string]bool // tools approved for good, each in a frame
	forgiven map[string]int  // effects of a process that died before a document knew them
	moments  map[string]*moments

	// The model.
	ranks         map[string]int // the calls it made, in order
	acted         map[string]int // approvals of hosted tools it acted on, by request
	responses     map[string][]item.Item
	conversations map[string][]item.Item
	accepted      int
	requests      int
	wires         map[string][]item.Item // by script, the conversation up to the last response
	conversing    map[string]bool        // the scripts of the agents that have the run's own conversation
	wire          []item.Item            // that conversation

	// The ledger, as the appends that the store took tell it.
	ledger   []journal.Record
	cursor   int // up to where hooks were told
	epoch    uint64
	head     uint64
	intended int
	recorded int               // responses
	open     map[string]bool   // tool attempts with an intent and no outcome
	unknown  map[string]bool   // calls with an unknown outcome
	callIDs  map[string]string // the model's ids of the calls
}

// swept is an effect of a tool.
type swept struct {
	pawl.Call
	process int
}

func newFar(s Scenario) *far {
	f := &far{scripts: maps.Clone(s.Scripts), sessions: map[string]*session.Memory{}, moments: map[string]*moments{}, callIDs: map[string]string{}, agentTools: map[string]bool{},
		wires: map[string][]item.Item{}, conversing: map[string]bool{"": true}, classes: map[string]pawl.Effect{}, session: session.NewMemory(sessionID), problems: map[string]bool{},
		answers: map[string]string{}, allowed: map[string]bool{}, always: map[string]bool{}, forgiven: map[string]int{}, ranks: map[string]int{}, acted: map[string]int{},
		responses: map[string][]item.Item{}, conversations: map[string][]item.Item{}, open: map[string]bool{}, unknown: map[string]bool{}}
	if f.scripts == nil {
		f.scripts = map[string][]ScriptedStep{}
	}
	f.scripts[""] = s.Script
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
	frame, asked := f.asked[c.Key]
	denied := asked && !f.allowed[c.Key] && !f.always[frame+c.Tool]
	unchecked := ""
	if class != pawl.ReadOnly && head > 0 {
		unchecked = f.unchecked(c)
	}
	f.mu.Unlock()

	f.note("  %s %s takes effect, attempt %d of process %d", c.Tool, c.ID, c.Attempt, process)
	if class == pawl.AtMostOnce && n > limit {
		f.problem("G1: %s %s took effect %d times, and may once", c.Tool, c.ID, n)
	}
	if denied {
		f.problem("G7: %s %s ran before anybody approved it", c.Tool, c.ID)
	}
	if unchecked != "" {
		f.problem("%s %s took effect before the verdict of %s was recorded", c.Tool, c.ID, unchecked)
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

// attempts returns how many effects there were.
func (f *far) attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.effects)
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
	f.ledger = append(f.ledger, recs...)
	for _, r := range recs {
		id := effectOf(r)
		if r.Kind == journal.KindResponded {
			f.recorded++
			f.notePlaces(r, id)
		}
		if r.Kind == journal.KindObserved {
			f.cursor = max(f.cursor, numberOf(r))
		}
		if !strings.HasPrefix(id, "t") {
			continue
		}
		switch r.Kind {
		case journal.KindIntended:
			f.intended++
			f.open[frameOf(r)+id] = true
		case journal.KindSettled:
			delete(f.open, frameOf(r)+id)
			if strings.Contains(r.Payload, `"outcome":"unknown"`) {
				f.unknown[callOf(frameOf(r)+id)] = true
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

// frameOf is what the ids of interruptions in a record's frame begin with.
func frameOf(r journal.Record) string {
	if r.Frame == "" {
		return ""
	}
	return r.Frame + "/"
}

// callOf turns a frame and the id of an attempt, 1.0/t3.1.2, into the beginning of the call's interruption ids, 1.0/3.1#.
func callOf(id string) string {
	frame, call := id[:strings.LastIndex(id, "/")+1], id[strings.LastIndex(id, "/")+1:]
	return frame + strings.TrimPrefix(call[:strings.LastIndex(call, ".")], "t") + "#"
}

// notePlaces notes the calls of a response, whose id is m and its number.
func (f *far) notePlaces(r journal.Record, id string) {
	var payload struct {
		Items []struct {
			CallID string `json:"call_id"`
		} `json:"items"`
	}
	_ = json.Unmarshal([]byte(r.Payload), &payload) // what has no calls has none
	n, _, _ := strings.Cut(strings.TrimPrefix(id, "m"), ".")
	for p, it := range payload.Items {
		f.callIDs[fmt.Sprintf("%s%s.%d#", frameOf(r), n, p)] = it.CallID
	}
}

// numberOf reads the number of a fact that is one.
func numberOf(r journal.Record) int {
	var payload struct {
		N int `json:"n"`
	}
	_ = json.Unmarshal([]byte(r.Payload), &payload) // none is 0
	return payload.N
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
		if callID := f.callIDs[callOf(id)]; callID != "" {
			ids = append(ids, callID)
		}
	}
	slices.Sort(ids)
	return ids
}
