package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// A manager has two specialists as tools. What one of them may not do alone is asked in the manager's run.
func ExampleAgentTool() {
	type room struct {
		Hotel string `json:"hotel"`
	}
	book := pawl.NewTool(pawl.Func[room, string]{Name: "book", Approve: pawl.AlwaysAsk[room],
		Run: func(_ context.Context, c *pawl.Call, _ room) (string, error) {
			return "booked, approved by " + c.ApprovedBy, nil
		}})
	hotels := &pawl.Agent{Name: "Hotels", Tools: []pawl.Tool{book}, Model: pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "book", `{"hotel":"Sole"}`)), pawltest.ScriptedText("The Sole is yours."))}
	weather := &pawl.Agent{Name: "Weather", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("Sunny."))}
	manager := &pawl.Agent{Name: "Manager",
		Tools: []pawl.Tool{pawl.AgentTool(hotels, nil), pawl.AgentTool(weather, &pawl.AgentToolOptions{Description: "Knows the weather."})},
		Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(
			item.FunctionCallItem("", "call_1", "hotels", `{"input":"A room in Rome."}`),
			item.FunctionCallItem("", "call_2", "weather", `{"input":"Rome"}`)), pawltest.ScriptedText("Enjoy Rome, it is sunny."))}

	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, manager, pawl.UserText("Send me to Rome."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	state := res.State()
	for _, in := range res.Interruptions {
		fmt.Println(in.AgentPath, in.Tool, in.Arguments)
		if err := state.Approve(in, "ann"); err != nil {
			fmt.Println(err)
			return
		}
	}
	res, err = r.Resume(ctx, manager, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// [Manager Hotels] book {"hotel":"Sole"}
	// Enjoy Rome, it is sunny.
}

// An agent with structured input gets what Input makes of it, and the caller what Output makes of the result.
func ExampleNewAgentTool() {
	type question struct {
		Topic string `json:"topic" jsonschema:"What to look up."`
		Words int    `json:"words" jsonschema:"How long the answer may be."`
	}
	writer := &pawl.Agent{Name: "Writer", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("Owls hunt at night."))}
	write := pawl.NewAgentTool(pawl.AgentFunc[question]{Agent: writer, Description: "Writes about a topic.",
		Input: func(_ context.Context, _ *pawl.Call, q question) (pawl.Input, error) {
			return pawl.UserText(fmt.Sprintf("Write %d words about %s.", q.Words, q.Topic)), nil
		},
		Output: func(_ context.Context, _ *pawl.Call, res *pawl.Result) (string, error) {
			return fmt.Sprintf("%s (%d turn)", res.FinalOutput, res.Turns), nil
		}})
	editor := &pawl.Agent{Name: "Editor", Tools: []pawl.Tool{write}, Model: pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "writer", `{"topic":"owls","words":4}`)), pawltest.ScriptedText("Printed."))}

	var r pawl.Runner
	res, err := r.Run(context.Background(), editor, pawl.UserText("An article, please."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := res.NewItems()[1].FunctionCallOutput()
	fmt.Println(out.Text, err)
	fmt.Println(res.FinalOutput)
	// Output:
	// Owls hunt at night. (1 turn) <nil>
	// Printed.
}
