package explore

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// Scenario is a small run.
type Scenario struct {
	Name string
	// Tools are those of the agent; Asks are the names of those that need an approval.
	Tools []journal.ToolSpec
	Asks  []string
	// Turns are the model's answers. The last one is a message.
	Turns [][]item.Item
	// Session is nil without one.
	Session *journal.SessionRef
	// Chain and Conversation let the server hold the history.
	Chain        bool
	Conversation string
	// Cancel lets somebody cancel the run at any moment.
	Cancel bool
	// GivesUp lets a person give up a call in doubt, and reject what waits for approval. Otherwise
	// people approve, and look what happened.
	GivesUp bool
	// Stubborn lets bodies go on for a while when they are told to stop.
	Stubborn bool
}

// Scenarios returns the runs that are explored.
func Scenarios() []Scenario {
	once := journal.ToolSpec{Name: "pay", Identity: "pay", Timeout: bodyTime}
	wait := once
	wait.OnUnknown = journal.UnknownWait
	tell := once
	tell.OnUnknown = journal.UnknownTell
	asked := once
	asked.Recover = true
	moved := journal.ToolSpec{Name: "pay", Identity: "pay", Class: journal.Transactional, Timeout: bodyTime}
	harmless := journal.ToolSpec{Name: "put", Identity: "put", Class: journal.Idempotent, Timeout: bodyTime}
	pay, put := call("c1", "pay"), call("c2", "put")
	done := []item.Item{item.MessageItem("", "done")}
	return []Scenario{
		{Name: "a call at most once", Tools: []journal.ToolSpec{once}, Turns: [][]item.Item{{pay}, done}},
		{Name: "an idempotent call", Tools: []journal.ToolSpec{harmless}, Turns: [][]item.Item{{put}, done}},
		{Name: "approval, then a call", Tools: []journal.ToolSpec{once}, Asks: []string{"pay"}, Turns: [][]item.Item{{pay}, done}, GivesUp: true},
		{Name: "two calls at once", Tools: []journal.ToolSpec{once, harmless}, Turns: [][]item.Item{{pay, put}, done}},
		{Name: "a session elsewhere", Tools: []journal.ToolSpec{harmless}, Turns: [][]item.Item{{put}, done},
			Session: &journal.SessionRef{ID: "s", Backend: "plain"}},
		{Name: "a session that remembers batches", Tools: []journal.ToolSpec{harmless}, Turns: [][]item.Item{{put}, done},
			Session: &journal.SessionRef{ID: "s", Backend: "batches", Batches: true}},
		{Name: "a session in the run's store", Tools: []journal.ToolSpec{once}, Turns: [][]item.Item{{pay}, done},
			Session: &journal.SessionRef{ID: "s", Backend: "own", Own: true}},
		{Name: "a chain of responses", Tools: []journal.ToolSpec{harmless}, Turns: [][]item.Item{{put}, done}, Chain: true},
		{Name: "a conversation", Tools: []journal.ToolSpec{harmless}, Turns: [][]item.Item{{put}, done}, Conversation: "c"},
		{Name: "cancelled in between", Tools: []journal.ToolSpec{once}, Turns: [][]item.Item{{pay}, done}, Cancel: true},
		{Name: "a person settles what a zombie may still do", Tools: []journal.ToolSpec{wait}, Turns: [][]item.Item{{pay}, done}, GivesUp: true},
		{Name: "the model is told what a zombie may still do", Tools: []journal.ToolSpec{tell}, Turns: [][]item.Item{{pay}, done}},
		{Name: "a call that its driver leaves running", Tools: []journal.ToolSpec{wait}, Turns: [][]item.Item{{pay}, done}, Stubborn: true},
		{Name: "a call in the store's transaction", Tools: []journal.ToolSpec{moved}, Turns: [][]item.Item{{pay}, done}},
		{Name: "a call that the far side is asked about", Tools: []journal.ToolSpec{asked}, Turns: [][]item.Item{{pay}, done}},
	}
}

func call(id, tool string) item.Item { return item.FunctionCallItem("", id, tool, "{}") }

// plan is the plan of a response.
func (sc *Scenario) plan(n int, items []item.Item, man *journal.Manifest) *journal.Planned {
	p := &journal.Planned{N: n}
	for i, it := range items {
		if it.Type() == item.TypeMessage {
			p.Final, p.FinalAt = journal.FinalMessage, i
			continue
		}
		fc, _ := it.FunctionCall()
		pc := journal.PlannedCall{P: i}
		pc.Digest, _, _ = item.DigestArguments(fc.Arguments)
		for t, spec := range man.Tools {
			if spec.Name == fc.Name {
				pc.Tool = t
			}
		}
		for _, name := range sc.Asks {
			if name == fc.Name {
				pc.Gate = journal.Ask
			}
		}
		p.Calls = append(p.Calls, pc)
	}
	return p
}

// started is the first fact of the run.
func (sc *Scenario) started() *journal.Started {
	return &journal.Started{Run: "r", Agent: "a", Input: []item.Item{item.UserText("go")}, Session: sc.Session,
		Conversation: sc.Conversation, Auto: sc.Chain}
}
