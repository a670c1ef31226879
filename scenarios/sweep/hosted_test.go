package sweep

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// added are runs that are given more input while they wait.
func added() []pawltest.Scenario {
	more := pawl.UserText("and hurry")
	calls := steps{turn(call("c1", "pay"), call("c2", "send")), reads(more[0], turn(call("c3", "send"))), reads(more[0], turn(says("done")))}
	effects := []string{`pay {"amount":5}`, `send {"amount":5}`, `send {"amount":5}`}
	return []pawltest.Scenario{
		{Name: "input added", Agent: agent(pay, send), Script: calls, Session: pawltest.BatchSession, Added: more, WantEffects: effects},
		{Name: "input added, plain session", Agent: agent(pay, send), Script: calls, Session: pawltest.PlainSession, Added: more, WantEffects: effects},
		{Name: "input added on a conversation", Agent: agent(pay, send), Added: more, WantEffects: effects,
			Script:  steps{turn(call("c1", "pay"), call("c2", "send")), reads(more[0], turn(call("c3", "send"))), turn(says("done"))},
			Options: func(o *pawl.RunOptions) { o.ConversationID = "conv_1" }},
	}
}

// reads is a step whose request has an item, once.
func reads(it item.Item, step pawltest.ScriptedStep) pawltest.ScriptedStep {
	before := step.Check
	step.Check = func(c pawltest.ScriptedCall) error {
		if before != nil {
			if err := before(c); err != nil {
				return err
			}
		}
		n := 0
		for _, have := range c.Input {
			if have == it {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("the request has %s %d times", it, n)
		}
		return nil
	}
	return step
}

// mayCall is the question of the model's server whether it may call a tool of an MCP server.
func mayCall(id, tool string) item.Item {
	return item.FromTrusted(fmt.Sprintf(`{"type":"mcp_approval_request","id":%q,"server_label":"crm","name":%q,"arguments":"{}"}`, id, tool))
}

// hosted are runs whose model's server asks before it calls a tool of an MCP server.
func hosted() []pawltest.Scenario {
	dropped := item.FromTrusted(`{"type":"mcp_call","id":"mcp_1","server_label":"crm","name":"drop","arguments":"{}","output":"dropped"}`)
	yes, no := item.ApprovalReply("m1", true, ""), item.ApprovalReply("m2", false, "not now")
	ended := turn(dropped, says("done"))
	asked := turn(mayCall("m1", "drop"), mayCall("m2", "keep"), call("c1", "send"))
	verdicts := by(map[string]func(pawl.Interruption) pawl.Decision{"drop": approve, "keep": reject})
	effects := []string{`send {"amount":5}`}
	return []pawltest.Scenario{
		{Name: "hosted, approved and rejected", Agent: agent(send), Session: pawltest.BatchSession, Decide: verdicts,
			Script: steps{asked, reads(no, reads(yes, ended))}, WantEffects: effects, WantAsked: []string{"drop m1", "keep m2"}},
		{Name: "hosted, rejected", Agent: agent(send), Session: pawltest.PlainSession, Decide: first(reject),
			Script: steps{turn(mayCall("m2", "keep"), call("c1", "send")), reads(no, turn(says("done")))}, WantEffects: effects},
		{Name: "hosted on a conversation", Agent: agent(send), Decide: verdicts, WantEffects: effects,
			Script: steps{asked, reads(no, reads(yes, ended))}, Options: func(o *pawl.RunOptions) { o.ConversationID = "conv_1" }},
		{Name: "hosted, answered by a function", Agent: agent(send), Session: pawltest.BatchSession, WantEffects: effects, WantAsked: []string{},
			Script: steps{turn(mayCall("m1", "drop"), call("c1", "send")), reads(yes, ended)},
			Driving: func(w *pawltest.World, o *pawl.RunOptions) {
				o.OnApprovalRequest = func(_ context.Context, r pawl.ApprovalRequest) (pawl.Gate, string, error) {
					return pawl.Allow, "", question(w, r.RunContext, "OnApprovalRequest "+r.ID, fact("", journal.KindPlanned))
				}
			}},
	}
}
