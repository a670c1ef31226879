package pawl_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// Interruptions go to a web page as JSON, and decisions come back. Who decides is for the server to say, not for the page.
func ExampleDecision() {
	agent := &pawl.Agent{Name: "Treasurer", Tools: []pawl.Tool{payTool()}, Model: pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000)),
		pawltest.ScriptedText("Bob has his money."),
	)}
	ctx := context.Background()
	r := pawl.Runner{Agents: []*pawl.Agent{agent}}
	res, err := r.Run(ctx, agent, pawl.UserText("Pay Bob $90."), &pawl.RunOptions{ID: "ticket-7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := json.MarshalIndent(res.Interruptions, "", " ")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(page))

	var d pawl.Decision
	if err := json.Unmarshal([]byte(`{"interruption":"1.0#0","verdict":"approve","why":"it is due"}`), &d); err != nil {
		fmt.Println(err)
		return
	}
	d.By = "alice" // who is logged in
	if err := r.Decide(ctx, "ticket-7", d); err != nil {
		fmt.Println(err)
		return
	}
	if res, err = r.Resume(ctx, nil, pawl.RunID("ticket-7"), nil); err == nil {
		fmt.Println(res.FinalOutput)
	}
	// Output:
	// [
	//  {
	//   "id": "1.0#0",
	//   "kind": "approval",
	//   "run": "ticket-7",
	//   "agent": "Treasurer",
	//   "tool": "pay",
	//   "call_id": "call_1",
	//   "arguments": "{\"to\":\"Bob\",\"cents\":9000}",
	//   "key": "pawl_677bdf5f37248ea152db7a818b5595c2",
	//   "digest": "9x-G9HmF6KC8M7FDtk1ssHEvXAl_dKeU_ZaZtiqKK1c"
	//  }
	// ]
	// paying Bob 9000 cents, approved by "alice"
	// Bob has his money.
}
