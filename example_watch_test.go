package pawl_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

// Anybody who has the store sees what is recorded, from where they left. Here one reader leaves at the first tool, and
// another goes on from there.
func ExampleRunner_Watch() {
	ctx := context.Background()
	store := journal.NewMemory()
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "look")), pawltest.ScriptedText("There is a door."))
	driver := &pawl.Runner{Store: store}
	_, err := driver.Run(ctx, &pawl.Agent{Name: "Scout", Model: m, Tools: namedTools("look")}, pawl.UserText("What is there?"), &pawl.RunOptions{ID: "run-1"})
	if err != nil {
		fmt.Println(err)
		return
	}

	watcher := &pawl.Runner{Store: store}
	var left pawl.Cursor
	for ev, err := range watcher.Watch(ctx, "run-1", left) {
		if err != nil {
			fmt.Println(err)
			return
		}
		left = ev.Cursor
		if tool, ok := ev.Event.(*pawl.ToolStarted); ok {
			fmt.Println("left at", tool.Tool)
			break
		}
	}
	for ev, err := range watcher.Watch(ctx, "run-1", left) {
		switch ev := ev.Event.(type) {
		case *pawl.ItemCreated:
			fmt.Println(ev.Name)
		case *pawl.Done:
			fmt.Println(ev.Result.FinalOutput)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// left at look
	// tool_output
	// message_output_created
	// There is a door.
}

// The turn comes to its end, and the run can be resumed.
func ExampleRunner_StopAfterTurn() {
	ctx := context.Background()
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("call_1", "look")), pawltest.ScriptedText("There is a door."))
	agent := &pawl.Agent{Name: "Scout", Model: m, Tools: namedTools("look")}

	var r pawl.Runner
	for ev, err := range r.Stream(ctx, agent, pawl.UserText("What is there?"), &pawl.RunOptions{ID: "run-1"}) {
		switch ev := ev.(type) {
		case *pawl.ItemCreated:
			fmt.Println(ev.Name)
			r.StopAfterTurn("run-1")
		}
		if errors.Is(err, pawl.ErrStopped) {
			fmt.Println("stopped")
		}
	}
	res, err := r.Resume(ctx, agent, pawl.RunID("run-1"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	// Output:
	// tool_called
	// tool_output
	// stopped
	// There is a door.
}
