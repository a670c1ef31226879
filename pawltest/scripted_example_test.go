package pawltest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

type orderArgs struct {
	Order int `json:"order"`
}

// lookUp is a tool for the examples.
var lookUp = pawl.NewTool(pawl.Func[orderArgs, string]{
	Name:   "look_up",
	Effect: pawl.ReadOnly,
	Run: func(_ context.Context, _ *pawl.Call, in orderArgs) (string, error) {
		return fmt.Sprintf("order %d has been shipped", in.Order), nil
	},
})

// The script says what the model answers, and what each call must carry.
func ExampleScriptedModel() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "look_up", `{"order":9}`)),
		pawltest.ScriptedStep{
			Want: []item.Item{
				item.UserText("Where is order 9?"),
				item.FunctionCallItem("", "call_1", "look_up", `{"order":9}`),
				item.FunctionOutput("call_1", "order 9 has been shipped"),
			},
			Output: []item.Item{item.MessageItem("", "On its way.")},
		},
	)
	agent := &pawl.Agent{Name: "Desk", Model: m, Tools: []pawl.Tool{lookUp}}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Where is order 9?"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput, m.Remaining(), "steps left")
	for _, c := range m.Calls() {
		fmt.Println("call", c.Number, "carried", len(c.Input), "items and", len(c.Tools), "tool")
	}
	// Output:
	// On its way. 0 steps left
	// call 1 carried 1 items and 1 tool
	// call 2 carried 3 items and 1 tool
}

// A derived step is made when the call comes, from what the call carries.
func ExampleScriptedStep_derive() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedStep{
		Derive: func(c pawltest.ScriptedCall) pawltest.ScriptedStep {
			return pawltest.ScriptedText(fmt.Sprintf("You sent %d item.", len(c.Input)))
		},
	})
	var r pawl.Runner
	res, err := r.Run(context.Background(), &pawl.Agent{Name: "Echo", Model: m}, pawl.UserText("Hello"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output: You sent 1 item.
}

// The server took the request and made a response, but its acknowledgement is lost. The run fails and can be resumed.
func ExampleScriptedFault() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedStep{
			Output: []item.Item{item.MessageItem("", "lost")},
			Fault:  &pawltest.ScriptedFault{Point: pawltest.FaultAfter, Cut: true},
		},
		pawltest.ScriptedText("Hello again."),
	)
	agent := &pawl.Agent{Name: "Desk", Model: m}

	var r pawl.Runner
	_, err := r.Run(context.Background(), agent, pawl.UserText("Hello"), nil)
	var failed *pawl.RunError
	if !errors.As(err, &failed) {
		fmt.Println("unexpected:", err)
		return
	}
	fmt.Println(failed.Effect)
	res, err := r.Resume(context.Background(), agent, failed.State, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// model call of turn 1, attempt 1
	// Hello again.
}

// A model error says itself whether it is worth another attempt.
func ExampleScriptedStep_err() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedStep{Err: &model.Error{Status: 503, Retryable: true, Delivery: model.DeliveryRefused}},
		pawltest.ScriptedText("Hello."),
	)
	agent := &pawl.Agent{Name: "Desk", Model: m, Settings: &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: 1, InitialDelay: 1}}}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Hello"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput, len(m.Calls()), "calls")
	// Output: Hello. 2 calls
}
