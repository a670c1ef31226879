package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// A run asks the model, runs the tools it calls, and ends with a final output.
func ExampleRunner_Run() {
	type city struct {
		Name string `json:"name" jsonschema:"the city's name"`
	}
	weather := pawl.NewTool(pawl.Func[city, string]{
		Name: "weather", Description: "Tells the weather.", Effect: pawl.ReadOnly,
		Run: func(_ context.Context, _ *pawl.Call, in city) (string, error) { return "sunny in " + in.Name, nil },
	})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "weather", `{"name":"Oslo"}`)),
		pawltest.ScriptedText("Take your sunglasses."),
	)
	agent := &pawl.Agent{Name: "Guide", Instructions: pawl.Text("Be short."), Model: m, Tools: []pawl.Tool{weather}}

	var r pawl.Runner // the zero value keeps runs in memory
	res, err := r.Run(context.Background(), agent, pawl.UserText("Oslo today?"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput, "after", res.Turns, "turns")
	for _, it := range res.ToInputList() {
		fmt.Println(it)
	}
	// Output:
	// Take your sunglasses. after 2 turns
	// {"role":"user","content":"Oslo today?"}
	// {"type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"name\":\"Oslo\"}","status":"completed"}
	// {"type":"function_call_output","call_id":"call_1","output":"sunny in Oslo"}
	// {"type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Take your sunglasses.","annotations":[]}]}
}

// A stream shows a run as it happens. Leaving the loop leaves a run that can be resumed.
func ExampleRunner_Stream() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("Good morning, Alice."))
	m.DeltaSize = 8
	agent := &pawl.Agent{Name: "Greeter", Model: m}

	var r pawl.Runner
	for ev, err := range r.Stream(context.Background(), agent, pawl.UserText("Hello"), nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch ev := ev.(type) {
		case *pawl.Delta:
			fmt.Printf("%q\n", ev.Text)
		case *pawl.ItemCreated:
			fmt.Println(ev.Name)
		case *pawl.Done:
			fmt.Println("done:", ev.Result.FinalOutput)
		}
	}
	// Output:
	// "Good mor"
	// "ning, Al"
	// "ice."
	// message_output_created
	// done: Good morning, Alice.
}

// Collect reads a stream to its end.
func ExampleCollect() {
	agent := &pawl.Agent{Name: "Greeter", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("Hello."))}
	var r pawl.Runner
	res, err := pawl.Collect(r.Stream(context.Background(), agent, pawl.UserText("Hello"), nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output: Hello.
}

// Instructions may depend on who is asking: they are made once a turn, from the value that the run was given.
func ExampleInstructions() {
	type user struct{ name, plan string }
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("Hello, Alice."))
	agent := &pawl.Agent{Name: "Support", Model: m,
		Instructions: func(_ context.Context, rc *pawl.RunContext) (string, error) {
			u := rc.Value.(user)
			return fmt.Sprintf("Help %s, who is on the %s plan.", u.name, u.plan), nil
		}}

	var r pawl.Runner
	_, err := r.Run(context.Background(), agent, pawl.UserText("Hi"), &pawl.RunOptions{Context: user{"Alice", "free"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Calls()[0].Instructions)
	// Output: Help Alice, who is on the free plan.
}

// Settings of a run win over those of its agent, field by field.
func ExampleModelSettings() {
	low, high := 0.2, 0.9
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("Hello."))
	agent := &pawl.Agent{Name: "Greeter", Model: m, Settings: &pawl.ModelSettings{
		Temperature: &low,
		Reasoning:   &model.Reasoning{Effort: "low"},
		Retry:       &model.Retry{MaxRetries: 3},
	}}

	var r pawl.Runner
	_, err := r.Run(context.Background(), agent, pawl.UserText("Hi"), &pawl.RunOptions{Settings: &pawl.ModelSettings{Temperature: &high}})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent := m.Calls()[0].Settings
	fmt.Println(*sent.Temperature, sent.Reasoning.Effort)
	// Output: 0.9 low
}

// A model attempt that failed is repeated as the settings say. Each attempt is a fact of the run.
func ExampleModelSettings_retry() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedStep{Err: &model.Error{Status: 429, Message: "slow down", Retryable: true, Delivery: model.DeliveryRefused}},
		pawltest.ScriptedText("Hello."),
	)
	agent := &pawl.Agent{Name: "Greeter", Model: m, Settings: &pawl.ModelSettings{
		Retry: &model.Retry{MaxRetries: 2, InitialDelay: time.Millisecond},
	}}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Hi"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput, res.Usage.Requests, "requests,", res.Usage.Unreported, "without usage")
	// Output: Hello. 2 requests, 2 without usage
}

// The final output is a Go value. Its schema is sent to the model and checked when the model answers.
func ExampleOutputAs() {
	type verdict struct {
		Refund bool   `json:"refund"`
		Reason string `json:"reason" jsonschema:"one sentence"`
		Risk   string `json:"risk" enum:"low,high"`
	}
	m := pawltest.NewScriptedModel(pawltest.ScriptedText(`{"refund":true,"reason":"It never arrived.","risk":"low"}`))
	agent := &pawl.Agent{Name: "Judge", Model: m, Output: pawl.OutputOf[verdict]()}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Order 9 never arrived."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := pawl.OutputAs[verdict](res)
	fmt.Println(v.Refund, v.Reason, v.Risk, err)
	// Output: true It never arrived. low <nil>
}

// An answer that does not fit the type fails the run.
func ExampleOutputOf() {
	type verdict struct {
		Refund bool `json:"refund"`
	}
	m := pawltest.NewScriptedModel(pawltest.ScriptedText(`{"refund":"maybe"}`))
	agent := &pawl.Agent{Name: "Judge", Model: m, Output: pawl.OutputOf[verdict]()}

	var r pawl.Runner
	_, err := r.Run(context.Background(), agent, pawl.UserText("Order 9 never arrived."), nil)
	var wrong *pawl.OutputError
	if errors.As(err, &wrong) {
		fmt.Println(wrong)
		fmt.Println(wrong.Text)
	}
	// Output:
	// pawl: the final output does not fit its type: refund: expected true or false, got "maybe"
	// {"refund":"maybe"}
}

// A refusal is an error of its own.
func ExampleRefusalError() {
	refusal, err := item.ParseString(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I do not do that."}]}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	agent := &pawl.Agent{Name: "Helper", Model: pawltest.NewScriptedModel(pawltest.ScriptedItems(refusal))}

	var r pawl.Runner
	_, err = r.Run(context.Background(), agent, pawl.UserText("Break in."), nil)
	var refused *pawl.RefusalError
	if errors.As(err, &refused) {
		fmt.Println(refused.Refusal)
	}
	// Output: I do not do that.
}

// A run that used up its turns fails, and goes on when it is given more.
func ExampleMaxTurnsError() {
	look := pawl.NewTool(pawl.Func[struct{}, string]{Name: "look", Description: "Looks again.", Effect: pawl.ReadOnly,
		Run: func(context.Context, *pawl.Call, struct{}) (string, error) { return "nothing yet", nil }})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "look", `{}`)),
		pawltest.ScriptedText("There is nothing."),
	)
	agent := &pawl.Agent{Name: "Watcher", Model: m, Tools: []pawl.Tool{look}}

	ctx := context.Background()
	var r pawl.Runner
	_, err := r.Run(ctx, agent, pawl.UserText("Anything?"), &pawl.RunOptions{ID: "watch-1", MaxTurns: 1})
	var used *pawl.MaxTurnsError
	if errors.As(err, &used) {
		fmt.Println(used)
	}

	res, err := r.Resume(ctx, agent, pawl.RunID("watch-1"), &pawl.RunOptions{MaxTurns: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// pawl: no final output after 1 turns; resume the run with a larger MaxTurns
	// There is nothing.
}

// Every error of a run carries the state it can be resumed from.
func ExampleRunError() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedStep{Err: &model.Error{Status: 503, Message: "overloaded"}},
		pawltest.ScriptedText("Hello."),
	)
	agent := &pawl.Agent{Name: "Greeter", Model: m}

	ctx := context.Background()
	var r pawl.Runner
	_, err := r.Run(ctx, agent, pawl.UserText("Hi"), nil)
	var failed *pawl.RunError
	if !errors.As(err, &failed) {
		fmt.Println(err)
		return
	}
	fmt.Println(failed.Effect, strings.Contains(err.Error(), "overloaded"))

	res, err := r.Resume(ctx, agent, failed.State, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// model call of turn 1, attempt 1 true
	// Hello.
}

// A policy says which failed attempts of a model call are repeated.
func ExampleRunner_Run_retryPolicy() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedStep{Err: &model.Error{Status: 503, Delivery: model.DeliveryRefused}},
		pawltest.ScriptedText("Here I am."),
	)
	agent := &pawl.Agent{Name: "Greeter", Model: m, Settings: &pawl.ModelSettings{Retry: &model.Retry{
		MaxRetries:   3,
		InitialDelay: time.Millisecond,
		Policy:       model.RetryAny(model.RetrySuggested, model.RetryNetwork, model.RetryStatus(502, 503)),
	}}}
	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Hello?"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput, "Requests:", res.Usage.Requests)
	// Output:
	// Here I am. Requests: 2
}

// What a run looks like in the OpenAI Agents SDK for Python, and here.
func ExampleRunner_Run_comingFromPython() {
	agent := &pawl.Agent{Name: "Greeter", Instructions: pawl.Text("Say hello."), Model: pawltest.NewScriptedModel(pawltest.ScriptedText("Hello!"))}

	// result = await Runner.run(agent, "Hi", max_turns=3)
	res, err := new(pawl.Runner).Run(context.Background(), agent, pawl.UserText("Hi"), &pawl.RunOptions{MaxTurns: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput) // result.final_output
	// Output:
	// Hello!
}
