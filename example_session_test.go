package pawl_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
)

// A user who writes again while a call waits for an approval starts a second run on the
// session. It is refused, or closes the first: its call is answered as not executed, and can
// no longer be approved.
func ExampleRunOptions_supersede() {
	remove := pawl.NewTool(pawl.Func[struct{ Name string }, string]{Name: "remove", Approve: pawl.AlwaysAsk[struct{ Name string }],
		Run: func(context.Context, *pawl.Call, struct{ Name string }) (string, error) { return "removed", nil }})
	model := pawltest.NewScriptedModel(
		pawltest.ScriptedStep{Output: []item.Item{item.FunctionCallItem("", "c1", "remove", `{"Name":"photos"}`)}},
		pawltest.ScriptedStep{Output: []item.Item{item.MessageItem("", "They stay.")}},
	)
	agent := &pawl.Agent{Name: "files", Model: model, Tools: []pawl.Tool{remove}}
	ctx, chat := context.Background(), session.NewMemory("chat")
	var r pawl.Runner

	r.Run(ctx, agent, pawl.UserText("Remove my photos."), &pawl.RunOptions{ID: "first", Session: chat})
	opts := &pawl.RunOptions{ID: "second", Session: chat}
	_, err := r.Run(ctx, agent, pawl.UserText("No, keep them!"), opts)
	if waiting, ok := errors.AsType[*pawl.SessionWaitingError](err); ok {
		fmt.Printf("run %s asks about %s\n", waiting.Run, waiting.Interruptions[0].Tool)
		opts.Supersede = true
	}
	res, err := r.Run(ctx, agent, pawl.UserText("No, keep them!"), opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput)
	err = r.Decide(ctx, "first", pawl.Approve("1.0#0", "ann"))
	fmt.Println(errors.Is(err, pawl.ErrSuperseded))
	// Output:
	// run first asks about remove
	// They stay.
	// true
}
