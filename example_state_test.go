package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// A state is a document. It can lie in a queue or a row of somebody's table until the run goes on, in another process,
// with an agent built anew.
func ExampleParseRunState() {
	script := []pawltest.ScriptedStep{
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000)),
		pawltest.ScriptedText("Bob has his money."),
	}
	agent := func(steps ...pawltest.ScriptedStep) *pawl.Agent {
		return &pawl.Agent{Name: "Treasurer", Model: pawltest.NewScriptedModel(steps...), Tools: []pawl.Tool{payTool()}}
	}

	ctx := context.Background()
	var first pawl.Runner
	res, err := first.Run(ctx, agent(script[0]), pawl.UserText("Pay Bob $90."), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := json.Marshal(res.State())
	if err != nil {
		fmt.Println(err)
		return
	}

	state, err := pawl.ParseRunState(doc)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := state.Approve(state.Interruptions()[0], "alice"); err != nil {
		fmt.Println(err)
		return
	}
	var second pawl.Runner
	res, err = second.Resume(ctx, agent(script[1]), state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// paying Bob 9000 cents, approved by "alice"
	// Bob has his money.
}

// A document of a version that this one does not know is refused, not half understood.
func ExampleParseRunState_newer() {
	_, err := pawl.ParseRunState([]byte(`{"schema":"pawl.run/2","run":"ticket-17"}`))
	fmt.Println(errors.Is(err, pawl.ErrNewerState))
	// Output: true
}

// A fork is a run of its own: its calls have keys of their own. Two resumes of one state without a fork are one run.
func ExampleRunState_Fork() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 9000)),
		pawltest.ScriptedText("Bob has his money."),
		pawltest.ScriptedText("Then not."),
	)
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	ctx := context.Background()
	var r pawl.Runner
	res, err := r.Run(ctx, agent, pawl.UserText("Pay Bob $90."), &pawl.RunOptions{ID: "ticket-17"})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := res.State()
	whatIf, err := state.Fork("ticket-17-what-if")
	if err != nil {
		fmt.Println(err)
		return
	}

	a, b := state.Interruptions()[0], whatIf.Interruptions()[0]
	fmt.Println("same interruption:", a.ID == b.ID, "same key:", a.Key == b.Key)
	if err := errors.Join(state.Approve(a, "alice"), whatIf.Reject(b, "alice", "")); err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range []*pawl.RunState{state, whatIf} {
		res, err := r.Resume(ctx, agent, s, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Run, res.FinalOutput)
	}
	// Output:
	// same interruption: true same key: false
	// paying Bob 9000 cents, approved by "alice"
	// ticket-17 Bob has his money.
	// ticket-17-what-if Then not.
}

// State shows a run that nobody drives, here one whose reader left.
func ExampleRunner_State() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("Good morning."), pawltest.ScriptedText("Good morning again."))
	agent := &pawl.Agent{Name: "Greeter", Model: m}

	ctx := context.Background()
	var r pawl.Runner
	for ev, err := range r.Stream(ctx, agent, pawl.UserText("Hello"), &pawl.RunOptions{ID: "chat-1"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, ok := ev.(*pawl.Delta); ok {
			break
		}
	}
	state, err := r.State(ctx, "chat-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(state.Status())
	res, err := r.Resume(ctx, agent, state, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// running
	// Good morning again.
}

// A session is a conversation that outlives its runs. Each run reads it and appends what it adds.
func ExampleRunOptions_session() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("Hello, Alice."), pawltest.ScriptedText("You are Alice."))
	agent := &pawl.Agent{Name: "Greeter", Model: m}

	ctx := context.Background()
	var r pawl.Runner
	s := session.NewMemory("alice") // or a session of sqlstore, which is durable
	for _, text := range []string{"I am Alice.", "Who am I?"} {
		if _, err := r.Run(ctx, agent, pawl.UserText(text), &pawl.RunOptions{Session: s}); err != nil {
			fmt.Println(err)
			return
		}
	}
	items, err := s.Items(ctx, -1)
	fmt.Println(len(items), "items,", len(m.Calls()[1].Input), "read by the second run,", err)
	// Output: 4 items, 3 read by the second run, <nil>
}

// The server may hold the conversation. Then each request carries what the server does not have yet.
func ExampleRunOptions_conversation() {
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(pay("call_1", "Bob", 100)),
		pawltest.ScriptedText("Bob has his money."),
	)
	m.ServerState = true
	agent := &pawl.Agent{Name: "Treasurer", Model: m, Tools: []pawl.Tool{payTool()}}

	var r pawl.Runner
	_, err := r.Run(context.Background(), agent, pawl.UserText("Pay Bob $1."), &pawl.RunOptions{AutoPreviousResponseID: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	second := m.Calls()[1]
	fmt.Println(second.PreviousResponseID, second.Input)
	// Output:
	// paying Bob 100 cents, approved by ""
	// resp_1 [{"type":"function_call_output","call_id":"call_1","output":"paid"}]
}

// The input may have images and files, and earlier messages.
func ExampleInput() {
	m := pawltest.NewScriptedModel(pawltest.ScriptedText("A cat."))
	agent := &pawl.Agent{Name: "Looker", Model: m}
	input := pawl.Input{
		item.UserText("I will show you something."),
		item.AssistantText("I am looking."),
		item.UserMessage(item.InputText("What is it?"), item.InputImage(item.Image{URL: "https://example.org/cat.png"})),
	}
	var r pawl.Runner
	res, err := r.Run(context.Background(), agent, input, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output: A cat.
}
