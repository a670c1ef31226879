package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/pawltest"
)

// A server that is started again while a tool is at work costs nothing but time: the driver neither stops the
// tool nor loses its outcome.
func TestRunOutlivesRestart(t *testing.T) {
	type none struct{}
	own, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	url, err := own.Create(t.Context(), "restart")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	begun, end := make(chan bool, 1), make(chan bool)
	mail := pawl.NewTool(pawl.Func[none, string]{Name: "mail", Run: func(ctx context.Context, _ *pawl.Call, _ none) (string, error) {
		calls++
		begun <- true
		select {
		case <-end:
			return "sent", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}})
	agent := &pawl.Agent{Name: "Desk", Tools: []pawl.Tool{mail}, Model: pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "mail", `{}`)), pawltest.ScriptedText("Done."))}
	s := open(t, url)
	ended := make(chan error, 1)
	go func() {
		<-begun
		err := own.StopImmediate()
		time.AfterFunc(time.Second, func() { close(end) }) // its outcome is to be recorded while the server is away
		time.Sleep(2 * time.Second)
		ended <- errors.Join(err, own.Start())
	}()
	res, err := (&pawl.Runner{Store: s}).Run(t.Context(), agent, pawl.UserText("Write."), nil)
	if e := <-ended; e != nil {
		t.Fatal(e)
	}
	if err != nil || res.FinalOutput != "Done." || calls != 1 {
		t.Errorf("%+v, %v, %d calls", res, err, calls)
	}
}
