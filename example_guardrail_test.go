package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// A guardrail ends a run that asks for something else than the agent is for. It is asked beside the first turn: the model
// answers meanwhile, but no tool that acts starts before the verdict.
func ExampleInputGuardrail() {
	onTopic := pawl.InputGuardrail{Name: "on topic",
		Check: func(ctx context.Context, in *pawl.InputCheck) (pawl.GuardrailVerdict, error) {
			for _, it := range in.Input {
				if m, err := it.Message(); err == nil && strings.Contains(m.Text(), "homework") {
					return pawl.GuardrailVerdict{Tripped: true, Info: map[string]string{"topic": "homework"}}, nil
				}
			}
			return pawl.GuardrailVerdict{}, nil
		}}
	support := &pawl.Agent{Name: "Support", InputGuardrails: []pawl.InputGuardrail{onTopic},
		Model: pawltest.NewScriptedModel(pawltest.ScriptedText("x is 4."))}

	_, err := new(pawl.Runner).Run(context.Background(), support, pawl.UserText("Do my homework: 2x = 8."), nil)
	if trip, ok := errors.AsType[*pawl.TripwireError](err); ok {
		fmt.Println("No.", trip.Guardrail, trip.Info)
	}
	// Output:
	// No. on topic {"topic":"homework"}
}

// What a tool is asked to do is checked before it runs, and what it brings before anybody reads it.
func ExampleToolInputGuardrail() {
	type transfer struct {
		Cents int `json:"cents"`
	}
	limit := pawl.ToolInputGuardrail{Name: "limit",
		Check: func(ctx context.Context, in *pawl.ToolInputCheck) (pawl.ToolVerdict, error) {
			if strings.Contains(in.Arguments, "000000") {
				return pawl.RejectContent("More than the limit: ask for less.", nil), nil
			}
			return pawl.PassTool(nil), nil
		}}
	noNumbers := pawl.ToolOutputGuardrail{Name: "no account numbers",
		Check: func(ctx context.Context, out *pawl.ToolOutputCheck) (pawl.ToolVerdict, error) {
			if strings.Contains(out.Output, "DE89") {
				return pawl.RejectContent("Transferred.", nil), nil
			}
			return pawl.PassTool(nil), nil
		}}
	pay := pawl.NewTool(pawl.Func[transfer, string]{
		Name: "transfer", InputGuardrails: []pawl.ToolInputGuardrail{limit}, OutputGuardrails: []pawl.ToolOutputGuardrail{noNumbers},
		Run: func(ctx context.Context, c *pawl.Call, in transfer) (string, error) {
			return fmt.Sprintf("transferred %d to DE89", in.Cents), nil
		}})
	agent := &pawl.Agent{Name: "Bank", Tools: []pawl.Tool{pay}, Model: pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "transfer", `{"cents":5000000}`)),
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_2", "transfer", `{"cents":50}`)),
		pawltest.ScriptedText("Sent 50."))}

	res, err := new(pawl.Runner).Run(context.Background(), agent, pawl.UserText("Send it."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range res.NewItems() {
		if out, err := it.FunctionCallOutput(); err == nil {
			fmt.Println(out.CallID, out.Text)
		}
	}
	for _, g := range res.Guardrails() {
		fmt.Println(g.Stage, g.Guardrail, g.CallID, g.Rejected)
	}
	// Output:
	// call_1 More than the limit: ask for less.
	// call_2 Transferred.
	// tool_input limit call_1 true
	// tool_input limit call_2 false
	// tool_output no account numbers call_2 true
}

// What the model wants to say at last is checked before it is the final output; the session does not get what is withheld.
func ExampleOutputGuardrail() {
	noSecrets := pawl.OutputGuardrail{Name: "no secrets",
		Check: func(ctx context.Context, out *pawl.OutputCheck) (pawl.GuardrailVerdict, error) {
			return pawl.GuardrailVerdict{Tripped: strings.Contains(out.Output, "password")}, nil
		}}
	agent := &pawl.Agent{Name: "Support", OutputGuardrails: []pawl.OutputGuardrail{noSecrets},
		Model: pawltest.NewScriptedModel(pawltest.ScriptedText("The password is hunter2."))}

	res, err := new(pawl.Runner).Run(context.Background(), agent, pawl.UserText("How do I get in?"), nil)
	if trip, ok := errors.AsType[*pawl.TripwireError](err); ok {
		fmt.Println(trip.Stage, trip.Guardrail)
	}
	fmt.Println(res.Status, len(res.NewItems()))
	// Output:
	// output no secrets
	// cancelled 0
}
