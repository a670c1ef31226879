package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
	"github.com/pawl-agents/pawl/session"
	"github.com/pawl-agents/pawl/sqlstore"
)

// The program of docs/getting-started.md.

type payBack struct {
	Order  int    `json:"order" jsonschema:"the order's number"`
	Cents  int    `json:"cents" minimum:"1"`
	Reason string `json:"reason" enum:"broken,late,other"`
}

// bank pays, once for each key.
type bank struct{ paid map[string]int }

func (b *bank) pay(_ context.Context, key string, cents int) error {
	b.paid[key] = cents
	return nil
}

func refundTool(b *bank) pawl.Tool {
	return pawl.NewTool(pawl.Func[payBack, string]{
		Name:        "refund",
		Description: "Pays an order back to the customer.",
		Effect:      pawl.Idempotent,
		Approve: func(_ context.Context, _ *pawl.Call, in payBack) (pawl.Gate, error) {
			if in.Cents < 5000 {
				return pawl.Allow, nil
			}
			return pawl.Ask, nil
		},
		Run: func(ctx context.Context, c *pawl.Call, in payBack) (string, error) {
			if err := b.pay(ctx, c.Key, in.Cents); err != nil {
				return "", err
			}
			return fmt.Sprintf("paid back %d cents", in.Cents), nil
		},
	})
}

func supportAgent(m model.Model, b *bank) *pawl.Agent {
	return &pawl.Agent{
		Name:         "Support",
		Instructions: pawl.Text("Settle what the customer asks for. Be short."),
		Model:        m,
		Tools:        []pawl.Tool{refundTool(b)},
	}
}

func openRunner(path string, agents ...*pawl.Agent) (*pawl.Runner, *sqlstore.Store, error) {
	store, err := sqlstore.OpenSQLite(path, nil)
	if err != nil {
		return nil, nil, err
	}
	return &pawl.Runner{
		Store:    store,
		Agents:   agents,
		Sessions: func(id string) session.Session { return store.Session(id) },
	}, store, nil
}

// A customer writes. The run is named after the ticket, so a message that arrives twice is one run.
func answerTicket(ctx context.Context, r *pawl.Runner, s session.Session, agent *pawl.Agent, ticket, text string) error {
	res, err := r.Run(ctx, agent, pawl.UserText(text), &pawl.RunOptions{ID: ticket, Session: s})
	if err != nil {
		return err
	}
	if res.Waiting() {
		for _, in := range res.Interruptions {
			fmt.Println("please decide", res.Run, in.ID, in.Tool, in.Arguments)
		}
		return nil
	}
	fmt.Println(res.FinalOutput)
	return nil
}

// A reviewer clicks, in a web handler that knows the store and nothing of agents.
func decide(ctx context.Context, store *sqlstore.Store, ticket, interruption, reviewer string, yes bool) error {
	r := pawl.Runner{Store: store}
	d := pawl.Reject(interruption, reviewer, "Not without a photo.")
	if yes {
		d = pawl.Approve(interruption, reviewer)
	}
	err := r.Decide(ctx, ticket, d)
	if errors.Is(err, pawl.ErrDecided) {
		return fmt.Errorf("somebody was faster: %w", err)
	}
	return err
}

// A worker goes on with a run, after a decision or after a crash.
func goOn(ctx context.Context, r *pawl.Runner, ticket string) (*pawl.Result, error) {
	res, err := r.Resume(ctx, nil, pawl.RunID(ticket), nil)
	if errors.Is(err, pawl.ErrClaimed) {
		return nil, nil // another worker is at it
	}
	return res, err
}

// At the start of the program: runs that a crash left behind have no owner. Those that wait for somebody are left alone.
func goOnWithAll(ctx context.Context, r *pawl.Runner) error {
	return r.Recover(ctx, &pawl.RecoverOptions{Each: func(run pawl.RecoveredRun) {
		if run.Err != nil {
			fmt.Println("not yet:", run.Err) // it stays resumable
		}
	}})
}

// A run is started in one place, decided in another, and goes on in a third: all they share is a store and the run's id.
func ExampleRunner() {
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	m := pawltest.NewScriptedModel(
		pawltest.ScriptedItems(item.FunctionCallItem("", "call_1", "refund", `{"order":9,"cents":8000,"reason":"broken"}`)),
		pawltest.ScriptedText("Your money is on its way."),
	)
	b := &bank{paid: map[string]int{}}
	agent := supportAgent(m, b)
	r, store, err := openRunner(filepath.Join(dir, "support.db"), agent)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	ctx := context.Background()
	if err := answerTicket(ctx, r, store.Session("alice"), agent, "ticket-17", "My lamp arrived broken."); err != nil {
		fmt.Println(err)
		return
	}
	if err := decide(ctx, store, "ticket-17", "1.0#0", "bob", true); err != nil {
		fmt.Println(err)
		return
	}
	if err := goOnWithAll(ctx, r); err != nil {
		fmt.Println(err)
		return
	}
	res, err := goOn(ctx, r, "ticket-17")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.FinalOutput, len(b.paid), "payment")
	// Output:
	// please decide ticket-17 1.0#0 refund {"order":9,"cents":8000,"reason":"broken"}
	// Your money is on its way. 1 payment
}
