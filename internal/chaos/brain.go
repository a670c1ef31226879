package chaos

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// brain plays the model: what it says follows from the request and the seed. It remembers what each request showed it.
type brain struct {
	seed uint64

	mu    sync.Mutex
	seen  map[int]shown
	asked map[string][]int // run -> the requests it made
	odd   []violation      // requests that no run should have made
}

// shown is what a request showed the model: the length of the history, its last item, and a digest of all of it.
type shown struct {
	items  int
	last   string
	digest uint64
	// answer is the request whose answer is the last response in it, 0 if there is none; before is a digest of what stands
	// before that response.
	answer int
	before uint64
}

// respond implements [pawltest.Responder].
func (b *brain) respond(r *pawltest.ResponsesRequest) pawltest.ResponsesReply {
	history := r.History()
	run, turns, turn, answer, start := "", 0, 1, 0, 0
	for i, it := range history {
		if m, err := it.Message(); err == nil && m.Role == "user" {
			if name, n, ok := readOrder(m.Text()); ok {
				run, turns, turn, answer = name, n, 1, 0
			}
		}
		if fc, err := it.FunctionCall(); err == nil {
			if _, n, request, ok := readCallID(fc.CallID); ok {
				if turn = n + 1; request != answer {
					answer, start = request, i
				}
			}
		}
	}
	d := digest(history)
	if answer > 0 {
		d.answer, d.before = answer, digest(history[:start]).digest
	}
	b.mu.Lock()
	b.seen[r.Number] = d
	b.asked[run] = append(b.asked[run], r.Number)
	if problem := unpaired(history); problem != "" {
		b.odd = append(b.odd, violation{run, fmt.Sprintf("request %d: %s", r.Number, problem)})
	}
	b.mu.Unlock()
	if turn > turns {
		return pawltest.ReplyText(fmt.Sprintf(farewell, run, r.Number))
	}
	return pawltest.ReplyItems(b.calls(run, turn, r.Number)...)
}

// calls are the calls of one response.
func (b *brain) calls(run string, turn, request int) []item.Item {
	rnd := drawn(b.seed, "calls", run, turn, request)
	var list []item.Item
	for position := range 1 + rnd.IntN(3) {
		tool, n := toolLook, rnd.IntN(100)
		for _, t := range tools {
			if n -= t.share; n < 0 {
				tool = t.name
				break
			}
		}
		id := callID(run, turn, position, request)
		arguments := fmt.Sprintf(`{"call":%q,"pause":%d,"freeze":%t}`, id, rnd.IntN(40), rnd.IntN(120) == 0)
		switch rnd.IntN(60) {
		case 0:
			arguments = `{"call":` // cut short, as models do it
		case 1:
			tool = "no_such_tool"
		}
		list = append(list, item.FunctionCallItem("", id, tool, arguments))
	}
	return list
}

// delay lets the model think, so that processes die while they wait for it.
func (b *brain) delay(r *pawltest.ResponsesRequest) *pawltest.ResponsesFault {
	rnd := drawn(b.seed, "delay", r.Number)
	return &pawltest.ResponsesFault{Point: pawltest.FaultBefore, Delay: time.Duration(rnd.IntN(25)) * time.Millisecond}
}

// unpaired says which call of a history has not exactly one output behind it.
func unpaired(history []item.Item) string {
	outputs := map[string]int{}
	var calls []string
	for _, it := range history {
		if fc, err := it.FunctionCall(); err == nil {
			calls = append(calls, fc.CallID)
		}
		if o, err := it.FunctionCallOutput(); err == nil {
			outputs[o.CallID]++
		}
	}
	for _, id := range calls {
		if outputs[id] != 1 {
			return fmt.Sprintf("call %s has %d outputs", id, outputs[id])
		}
		delete(outputs, id)
	}
	for id := range outputs {
		return fmt.Sprintf("an output of %s, which nobody called, or called twice", id)
	}
	return ""
}

// digest is of what a history says, whoever gave its items their ids.
func digest(history []item.Item) (d shown) {
	h := fnv.New64a()
	for _, it := range history {
		d.last = say(it)
		fmt.Fprintln(h, d.last)
	}
	d.items, d.digest = len(history), h.Sum64()
	return d
}

// say is what an item says.
func say(it item.Item) string {
	switch it.Head().Type {
	case item.TypeFunctionCall:
		fc, _ := it.FunctionCall()
		return fmt.Sprintf("call %s %s%s", fc.CallID, fc.Name, fc.Arguments)
	case item.TypeFunctionCallOutput:
		o, _ := it.FunctionCallOutput()
		return fmt.Sprintf("output %s %s", o.CallID, o.Text)
	}
	m, err := it.Message()
	return fmt.Sprint(m.Role, ": ", m.Text(), err)
}
