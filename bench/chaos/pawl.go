package main

import (
	"context"
	"path/filepath"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/sqlstore"
)

const jobID = "payment-1"

type payment struct {
	Cents int `json:"cents"`
}

// pawl is the adapter of Pawl: a Runner with a store. The run's id is the job's, so starting it again attaches to it.
func (a *adapter) pawl(idempotent bool) func(context.Context) (standing, error) {
	return func(ctx context.Context) (standing, error) {
		store, err := sqlstore.OpenSQLite(filepath.Join(a.dir, "pawl.db"), nil)
		if err != nil {
			return standing{}, err
		}
		defer store.Close()
		pay := pawl.Func[payment, string]{Name: "pay", Approve: pawl.AlwaysAsk[payment],
			Run: func(ctx context.Context, c *pawl.Call, _ payment) (string, error) { return a.pay(ctx, c.Key) }}
		if idempotent {
			pay.Effect = pawl.Idempotent
		}
		agent := &pawl.Agent{Name: "Payer", Model: pawlModel{a}, Tools: []pawl.Tool{pawl.NewTool(pay)}}
		runner := &pawl.Runner{Store: store, Agents: []*pawl.Agent{agent}}
		if a.step != stepStart {
			if err := a.decide(ctx, runner); err != nil {
				return standing{}, err
			}
		}
		res, err := runner.Run(ctx, agent, pawl.UserText("Pay the customer."), &pawl.RunOptions{ID: jobID})
		if err != nil {
			return standing{}, err
		}
		return a.standing(ctx, res)
	}
}

// decide decides what waits. A decision that was taken before the process died stands.
func (a *adapter) decide(ctx context.Context, runner *pawl.Runner) error {
	state, err := runner.State(ctx, jobID)
	if err != nil {
		return err
	}
	for _, in := range state.Interruptions() {
		var d pawl.Decision
		switch {
		case in.Kind == pawl.ApprovalNeeded && a.step == stepApprove:
			d = pawl.Approve(in.ID, "ada")
		case in.Kind == pawl.InDoubt && a.step == stepHappened:
			d = pawl.Settle(in.ID, "ada", paidText)
		case in.Kind == pawl.InDoubt && a.step == stepNot:
			d = pawl.Retry(in.ID, "ada")
		default:
			continue
		}
		if err := runner.Decide(ctx, jobID, d); err != nil {
			return err
		}
	}
	return nil
}

func (a *adapter) standing(ctx context.Context, res *pawl.Result) (standing, error) {
	if !res.Waiting() {
		_, err := a.ask(ctx, "/finished", body{})
		return standing{State: "finished", Text: res.FinalOutput}, err
	}
	if res.Interruptions[0].Kind == pawl.InDoubt {
		return standing{State: "doubt"}, nil
	}
	_, err := a.ask(ctx, "/paused", body{})
	return standing{State: "waiting"}, err
}

// pawlModel asks the harness.
type pawlModel struct{ a *adapter }

// Info implements model.Model.
func (pawlModel) Info() model.Info { return model.Info{Provider: "harness", Name: "payer"} }

// Call implements model.Model.
func (m pawlModel) Call(ctx context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	var b body
	for _, it := range req.Input.Items() {
		if o, err := it.FunctionCallOutput(); err == nil {
			b.Outputs = append(b.Outputs, o.Text)
		}
	}
	r, err := m.a.ask(ctx, "/model", b)
	if err != nil {
		return nil, err
	}
	if r.Call == "" {
		return &model.Response{Items: []item.Item{item.MessageItem("", r.Text)}}, nil
	}
	return &model.Response{Items: []item.Item{item.FunctionCallItem("", r.Call, "pay", `{"cents":5}`)}}, nil
}
