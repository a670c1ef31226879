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
	// Slow lets bodies that took effect in time say so when their time is over.
	Slow bool
	// Later are the tools whose result comes later: their bodies only begin it.
	Later []string
	// Questions are the tools whose bodies ask a person before they do anything. If the person may
	// refuse (GivesUp), they ask once more if they like.
	Questions []string
}

// successor is the run that a cancelled one makes room for.
const successor = "next"

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
