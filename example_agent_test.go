package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/pawltest"
)

// A tool is offered only to those who may use it. A model that calls it all the same is answered like one that calls a
// tool that does not exist.
func ExampleFunc_enabled() {
	type user struct{ admin bool }
	wipe := pawl.NewTool(pawl.Func[struct{}, string]{Name: "wipe",
		Enabled: func(_ context.Context, rc *pawl.RunContext) (bool, error) { return rc.Value.(user).admin, nil },
		Run:     func(context.Context, *pawl.Call, struct{}) (string, error) { return "wiped", nil }})
	agent := &pawl.Agent{Name: "Operator", Tools: append(namedTools("look"), wipe)}

	var r pawl.Runner
	for _, u := range []user{{admin: true}, {admin: false}} {
		m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "wipe")), pawltest.ScriptedText("Done."))
		res, err := r.Run(context.Background(), agent, pawl.UserText("Wipe it."),
			&pawl.RunOptions{Model: m, Context: u, ToolNotFound: pawl.TellModel})
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := res.NewItems()[1].FunctionCallOutput()
		fmt.Println(len(m.Calls()[0].Tools), out.Text, err)
	}
	// Output:
	// 2 wiped <nil>
	// 1 Tool "wipe" is configured, but disabled. Available tools: look. <nil>
}

// What a turn would offer and say can be looked at without a run.
func ExampleAgent_AllTools() {
	agent := &pawl.Agent{Name: "Guide", Instructions: pawl.Text("Lead the way."), Tools: namedTools("walk", "wait")}
	rc := &pawl.RunContext{Agent: agent, Turn: 1}
	tools, err := agent.AllTools(context.Background(), rc)
	if err != nil {
		fmt.Println(err)
		return
	}
	prompt, err := agent.SystemPrompt(context.Background(), rc)
	for _, t := range tools {
		fmt.Println(t.Name())
	}
	fmt.Println(prompt, err)
	// Output:
	// walk
	// wait
	// Lead the way. <nil>
}

// The first turn has to call a tool. The second need not, or the run would never end.
func ExampleAgent_keepToolChoice() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "look")), pawltest.ScriptedText("There is a door."))
	agent := &pawl.Agent{Name: "Scout", Model: m, Tools: namedTools("look"), Settings: &pawl.ModelSettings{ToolChoice: "required"}}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("What is there?"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range m.Calls() {
		fmt.Printf("tool choice %q\n", c.Settings.ToolChoice)
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// tool choice "required"
	// tool choice ""
	// There is a door.
}

// The server keeps the prompt; a turn only names it. With an empty name openai.Responses asks for the prompt's own model.
func ExampleStaticPrompt() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("Ahoy!"))
	m.ServerPrompts = true
	agent := &pawl.Agent{Name: "Greeter", Model: m, Prompt: pawl.StaticPrompt(pawl.PromptRef{
		ID: "pmpt_123", Version: "4", Variables: map[string]string{"style": "pirate"}})}

	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, pawl.UserText("Hello."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Calls()[0].Prompt)
	fmt.Println(res.FinalOutput)
	// Output:
	// {"id":"pmpt_123","version":"4","variables":{"style":"pirate"}}
	// Ahoy!
}
