package temporal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/pawltest"
)

type charge struct {
	Cents int `json:"cents"`
}

// charging is a tool that counts its calls.
func charging(n *int, change func(*pawl.Func[charge, string])) pawl.Tool {
	f := pawl.Func[charge, string]{Name: "charge", Description: "Charges.", Run: func(context.Context, *pawl.Call, charge) (string, error) {
		*n++
		return "paid", nil
	}}
	if change != nil {
		change(&f)
	}
	return pawl.NewTool(f)
}

func call(id string) pawl.Item { return item.FunctionCallItem("", id, "charge", `{"cents":5}`) }

// A decision that is taken while no worker is up is carried out by the next one [S23.5].
func TestApproval(t *testing.T) {
	n := 0
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("c1")), pawltest.ScriptedText("done"))
	agent := &pawl.Agent{Name: "support", Model: m, Tools: []pawl.Tool{charging(&n, func(f *pawl.Func[charge, string]) { f.Approve = pawl.AlwaysAsk[charge] })}}
	s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{}).start()
	res, err := s.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: s.run()})
	if err != nil || !res.Waiting() {
		t.Fatal(res, err)
	}
	s.stop()
	if err := s.Decide(t.Context(), s.run(), pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
		t.Fatal(err)
	}
	state, err := s.State(t.Context(), s.run())
	if err != nil || state.Status() != pawl.StatusWaiting {
		t.Error(state, err)
	}
	s.start()
	res, err = s.Resume(t.Context(), agent, pawl.RunID(s.run()), nil)
	if err != nil || res.FinalOutput != "done" || n != 1 {
		t.Errorf("%+v, %v, %d calls", res, err, n)
	}
	s.record("approval")
}

// cutOff is an engine that cannot be told anything.
type cutOff struct{ *Engine }

var errCutOff = errors.New("cut off")

func (cutOff) Tell(context.Context, string, []journal.Entry) error { return errCutOff }

// A decision that was posted and never sent reaches the run all the same [S23.5].
func TestResend(t *testing.T) {
	n := 0
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("c1")), pawltest.ScriptedText("done"))
	agent := &pawl.Agent{Name: "support", Model: m, Tools: []pawl.Tool{charging(&n, func(f *pawl.Func[charge, string]) { f.Approve = pawl.AlwaysAsk[charge] })}}
	s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{resend: 100 * time.Millisecond}).start()
	res, err := s.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: s.run()})
	if err != nil || !res.Waiting() {
		t.Fatal(res, err)
	}
	dead := &pawl.Runner{Store: s.Store, Engine: cutOff{s.Engine.(*Engine)}}
	if err := dead.Decide(t.Context(), s.run(), pawl.Approve(res.Interruptions[0].ID, "ann")); !errors.Is(err, errCutOff) {
		t.Fatal(err)
	}
	s.watchDone()
	if n != 1 {
		t.Errorf("%d calls", n)
	}
}

// A run that is submitted for later begins at its time [S22.4].
func TestSubmitLater(t *testing.T) {
	agent := &pawl.Agent{Name: "support", Model: pawltest.NewScriptedModel(pawltest.ScriptedText("done"))}
	s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{}).start()
	at := time.Now().Add(2 * time.Second)
	if _, err := s.Submit(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: s.run(), StartAt: at}); err != nil {
		t.Fatal(err)
	}
	s.watchDone()
	records, err := s.Store.Read(t.Context(), s.run(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Kind == journal.KindPrepared && r.Time < at.UnixMilli() {
			t.Errorf("it begins %d ms early", at.UnixMilli()-r.Time)
		}
	}
}

// A message can wait for the workflow to take it, and is sent all the same if no worker is up [S23.5].
func TestSynchronous(t *testing.T) {
	n := 0
	m := pawltest.NewScriptedModel(pawltest.ScriptedItems(call("c1")), pawltest.ScriptedItems(call("c2")), pawltest.ScriptedText("done"))
	agent := &pawl.Agent{Name: "support", Model: m, Tools: []pawl.Tool{charging(&n, func(f *pawl.Func[charge, string]) { f.Approve = pawl.AlwaysAsk[charge] })}}
	s := onServer(t, &pawl.Runner{Store: journal.NewMemory(), Agents: []*pawl.Agent{agent}}, WorkerOptions{Options: Options{Synchronous: true}}).start()
	res, err := s.Run(t.Context(), agent, pawl.UserText("pay"), &pawl.RunOptions{ID: s.run()})
	for turn := 0; err == nil && res.Waiting(); turn++ {
		if turn == 1 {
			s.stop()
		}
		if err := s.Decide(t.Context(), s.run(), pawl.Approve(res.Interruptions[0].ID, "ann")); err != nil {
			t.Fatal(err)
		}
		if turn == 1 {
			s.start()
		}
		res, err = s.Resume(t.Context(), nil, pawl.RunID(s.run()), nil)
	}
	if err != nil || res.FinalOutput != "done" || n != 2 {
		t.Errorf("%+v, %v, %d calls", res, err, n)
	}
}
