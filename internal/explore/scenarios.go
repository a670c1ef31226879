package explore

import (
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

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
	return append([]Scenario{
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
	}, laterScenarios()...)
}

// laterScenarios are those in which something comes later: a result, an approval, an answer.
func laterScenarios() []Scenario {
	once := journal.ToolSpec{Name: "pay", Identity: "pay", Timeout: bodyTime}
	wait, tell, asked, moved, open, fails := once, once, once, once, once, once
	wait.OnUnknown, tell.OnUnknown = journal.UnknownWait, journal.UnknownTell
	asked.Recover, moved.Class = true, journal.Transactional
	open.Expires, fails.Expires, fails.ExpiryFails = openTime, openTime, true
	harmless := journal.ToolSpec{Name: "pay", Identity: "pay", Class: journal.Idempotent, Timeout: bodyTime}
	askedFirst, movedOpen := asked, moved
	askedFirst.OnUnknown = journal.UnknownWait
	movedOpen.Expires = openTime
	pays := []string{"pay"}
	list := []Scenario{
		{Name: "a result that comes later", Tools: []journal.ToolSpec{once}, Later: pays, Cancel: true},
		{Name: "a result that comes later, of a call that waits", Tools: []journal.ToolSpec{wait}, Later: pays, GivesUp: true, Stubborn: true},
		{Name: "a result that comes later, of a call in the store's transaction", Tools: []journal.ToolSpec{moved}, Later: pays},
		{Name: "a result that comes later, of a call that the far side is asked about", Tools: []journal.ToolSpec{asked}, Later: pays},
		{Name: "a call that asks by itself", Tools: []journal.ToolSpec{once}, Questions: pays, GivesUp: true},
		{Name: "an idempotent call that asks by itself", Tools: []journal.ToolSpec{harmless}, Questions: pays, GivesUp: true},
		{Name: "a call that asks by itself, and the far side is asked about", Tools: []journal.ToolSpec{asked}, Questions: pays, GivesUp: true},
		{Name: "an approval with a deadline", Tools: []journal.ToolSpec{open}, Asks: pays, GivesUp: true},
		{Name: "an approval with a deadline, and the run is cancelled", Tools: []journal.ToolSpec{open}, Asks: pays, Cancel: true},
		{Name: "an approval whose deadline fails the run", Tools: []journal.ToolSpec{fails}, Asks: pays, GivesUp: true},
		{Name: "an approval with a deadline, of a call in the store's transaction", Tools: []journal.ToolSpec{movedOpen}, Asks: pays, GivesUp: true},
		{Name: "a question with a deadline", Tools: []journal.ToolSpec{open}, Questions: pays},
		{Name: "a person decides what the far side cannot tell", Tools: []journal.ToolSpec{askedFirst}, GivesUp: true, Stubborn: true},
		{Name: "the far side is asked, and the run is cancelled", Tools: []journal.ToolSpec{asked}, Cancel: true},
		{Name: "a call in the store's transaction, and the run is cancelled", Tools: []journal.ToolSpec{moved}, Cancel: true},
		{Name: "a late result of a call that waits", Tools: []journal.ToolSpec{wait}, GivesUp: true, Slow: true},
		{Name: "a late result of a call that the model was told of", Tools: []journal.ToolSpec{tell}, Slow: true},
		{Name: "a late result of an idempotent call", Tools: []journal.ToolSpec{harmless}, Slow: true, Stubborn: true},
		{Name: "a late result of a call that the far side is asked about", Tools: []journal.ToolSpec{asked}, Slow: true},
		{Name: "a late result, and the run is cancelled", Tools: []journal.ToolSpec{wait}, Slow: true, Cancel: true},
	}
	for i := range list {
		list[i].Turns = [][]item.Item{{call("c1", "pay")}, {item.MessageItem("", "done")}}
	}
	return list
}
