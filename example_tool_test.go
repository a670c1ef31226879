package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// namedTools are tools that answer with their own name.
func namedTools(names ...string) (tools []pawl.Tool) {
	for _, name := range names {
		tools = append(tools, pawl.NewTool(pawl.Func[struct{}, string]{Name: name, Effect: pawl.ReadOnly,
			Run: func(context.Context, *pawl.Call, struct{}) (string, error) { return "output of " + name, nil }}))
	}
	return tools
}

func call(id, name string) pawl.Item { return item.FunctionCallItem("", id, name, `{}`) }

// The schema of the arguments is derived from a struct, as strict mode wants it.
func ExampleNewTool() {
	type search struct {
		Words string  `json:"words" jsonschema:"what to look for"`
		Limit int     `json:"limit,omitempty" minimum:"1" maximum:"50"`
		Shop  *string `json:"shop" enum:"north,south"`
	}
	t := pawl.NewTool(pawl.Func[search, []string]{
		Name: "search", Description: "Searches the catalogue.", Effect: pawl.ReadOnly,
		Run: func(_ context.Context, _ *pawl.Call, in search) ([]string, error) { return []string{"lamp"}, nil },
	})
	fmt.Println(t.Schema(), t.Err())
	// Output:
	// {"type":"object","properties":{"words":{"type":"string","description":"what to look for"},"limit":{"anyOf":[{"type":"integer","minimum":1,"maximum":50},{"type":"null"}]},"shop":{"anyOf":[{"type":"string","enum":["north","south"]},{"type":"null"}]}},"required":["words","limit","shop"],"additionalProperties":false} <nil>
}

// A type that strict mode cannot express is refused when the tool is made, and names the field.
func ExampleTool_Err() {
	type args struct {
		Labels map[string]string `json:"labels"`
	}
	t := pawl.NewTool(pawl.Func[args, string]{Name: "label",
		Run: func(context.Context, *pawl.Call, args) (string, error) { return "", nil }})
	fmt.Println(t.Err())
	// Output: pawl: tool "label": no strict schema for pawl_test.args: Labels: map[string]string is a map, and a strict schema names all its properties; use a list of structs with a key and a value
}

// A tool with a schema from elsewhere reads its arguments itself.
func ExampleNewRawTool() {
	t := pawl.NewRawTool(pawl.RawFunc{Name: "echo", Effect: pawl.ReadOnly,
		Schema: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`,
		Run:    func(_ context.Context, c *pawl.Call) (string, error) { return c.Arguments, nil }})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "echo", `{"text":"hello"}`)),
		pawltest.ScriptedText("It said hello."),
	)
	var r pawl.Runner
	res, err := r.Run(context.Background(), &pawl.Agent{Name: "Parrot", Model: m, Tools: []pawl.Tool{t}}, pawl.UserText("Say hello."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	// Output: {"type":"function_call_output","call_id":"call_1","output":"{\"text\":\"hello\"}"}
}

// The key is the same for every attempt of a call and differs between any two calls, whatever ids the model makes up.
func ExampleCall() {
	keys := map[string]int{}
	book := pawl.NewTool(pawl.Func[struct{}, string]{Name: "book", Effect: pawl.Idempotent,
		Run: func(_ context.Context, c *pawl.Call, _ struct{}) (string, error) {
			keys[c.Key]++
			if c.Attempt == 1 {
				return "", pawl.ErrOutcomeUnknown // for example: the connection broke
			}
			return "booked", nil
		}})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(call("call_1", "book")),
		pawltest.ScriptedItems(call("call_1", "book")), // the model uses the id again
		pawltest.ScriptedText("Booked twice."),
	)
	var r pawl.Runner
	_, err := r.Run(context.Background(), &pawl.Agent{Name: "Clerk", Model: m, Tools: []pawl.Tool{book}}, pawl.UserText("Two, please."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, attempts := range keys {
		fmt.Println("a key with", attempts, "attempts")
	}
	// Output:
	// a key with 2 attempts
	// a key with 2 attempts
}

// The output of the turn's first call, in the order of the model, is the final output.
func ExampleStopOnFirstTool() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "b"), call("call_2", "a")))
	agent := &pawl.Agent{Name: "Router", Model: m, Tools: namedTools("a", "b"), ToolUse: pawl.StopOnFirstTool()}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Go."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output: output of b
}

// Only some tools end the run.
func ExampleStopAtTools() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(call("call_1", "look")),
		pawltest.ScriptedItems(call("call_2", "answer")),
	)
	agent := &pawl.Agent{Name: "Router", Model: m, Tools: namedTools("look", "answer"), ToolUse: pawl.StopAtTools("answer")}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Go."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput, "in turn", res.Turns)
	// Output: output of answer in turn 2
}

// A function of your own decides what follows the tools of a turn.
func ExampleDecideToolUse() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "a"), call("call_2", "b")))
	agent := &pawl.Agent{Name: "Router", Model: m, Tools: namedTools("a", "b"),
		ToolUse: pawl.DecideToolUse(func(_ context.Context, _ *pawl.RunContext, results []pawl.ToolResult) (pawl.ToolUseDecision, error) {
			if len(results) < 2 {
				return pawl.ToolUseDecision{}, nil
			}
			return pawl.ToolUseDecision{Final: true, Output: results[0].Output + ", " + results[1].Output}, nil
		})}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Go."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output: output of a, output of b
}

// A call of a tool that does not exist is answered with an error the model can read.
func ExampleToolNotFound() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(call("call_1", "teleport")),
		pawltest.ScriptedText("I cannot teleport."),
	)
	agent := &pawl.Agent{Name: "Guide", Model: m, Tools: namedTools("walk")}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("To Oslo!"), &pawl.RunOptions{ToolNotFound: pawl.TellModel})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	fmt.Println(res.FinalOutput)
	// Output:
	// {"type":"function_call_output","call_id":"call_1","output":"Tool \"teleport\" not found. Available tools: walk."}
	// I cannot teleport.
}

// Without TellModel the run fails before any call of the response is started. Resumed with the tool, it goes on there.
func ExampleToolNotFoundError() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(call("call_1", "walk"), call("call_2", "teleport")),
		pawltest.ScriptedText("Here we are."),
	)
	agent := &pawl.Agent{Name: "Guide", Model: m, Tools: namedTools("walk")}

	ctx := context.Background()
	var r pawl.Runner
	_, err := r.Run(ctx, agent, pawl.UserText("To Oslo!"), nil)
	var missing *pawl.ToolNotFoundError
	var failed *pawl.RunError
	if !errors.As(err, &missing) || !errors.As(err, &failed) {
		fmt.Println(err)
		return
	}
	fmt.Println(missing)
	res, err := r.Resume(ctx, agent, failed.State, &pawl.RunOptions{ToolNotFound: pawl.TellModel})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// pawl: the model called the tool "teleport" (call call_2), which the agent does not have; it has walk
	// Here we are.
}

// The texts the model reads about calls that are not run can be your own.
func ExampleToolError() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(call("call_1", "teleport")),
		pawltest.ScriptedText("I cannot teleport."),
	)
	agent := &pawl.Agent{Name: "Guide", Model: m, Tools: namedTools("walk")}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("To Oslo!"), &pawl.RunOptions{
		ToolNotFound: pawl.TellModel,
		ToolErrors:   func(e pawl.ToolError) string { return "There is no " + e.Tool + "; walk." },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.ToInputList()[2])
	// Output: {"type":"function_call_output","call_id":"call_1","output":"There is no teleport; walk."}
}

// The calls of a response run at once, or as many at once as there may be.
func ExampleRunOptions_maxParallelTools() {
	var mu sync.Mutex
	now, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		most = max(most, now)
	}
	work := pawl.NewTool(pawl.Func[struct{}, string]{Name: "work",
		Run: func(context.Context, *pawl.Call, struct{}) (string, error) {
			count(1)
			defer count(-1)
			return "done", nil
		}})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(call("call_1", "work"), call("call_2", "work"), call("call_3", "work")),
		pawltest.ScriptedText("Done."),
	)
	agent := &pawl.Agent{Name: "Worker", Model: m, Tools: []pawl.Tool{work}}

	var r pawl.Runner
	if _, err := r.Run(context.Background(), agent, pawl.UserText("Work."), &pawl.RunOptions{MaxParallelTools: 1}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("at most", most, "at once")
	// Output: at most 1 at once
}

// What becomes of a tool that runs into its timeout is unknown, and the model is told so: a model that believes in a
// failure calls again.
func ExampleFunc_timeout() {
	slow := pawl.NewTool(pawl.Func[struct{}, string]{Name: "pay", Timeout: 10 * time.Millisecond,
		Run: func(ctx context.Context, c *pawl.Call, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}})
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(call("call_1", "pay")),
		pawltest.ScriptedText("I do not know whether it was paid."),
	)
	var r pawl.Runner
	res, err := r.Run(context.Background(), &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{slow}}, pawl.UserText("Pay."),
		&pawl.RunOptions{ID: "ticket-17"})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := res.ToInputList()[2].FunctionCallOutput()
	fmt.Println(out.Text, err)
	// Output: The outcome of this tool call is unknown: it may or may not have taken effect. Do not assume that it failed. Its idempotency key is pawl_9de4dd3a4e4cf2c2c6e1167db48b92bc. <nil>
}
