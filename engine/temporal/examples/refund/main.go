// Refund pays refunds on Temporal. A person approves those of $50 or more: the run waits for days if
// need be, whatever process ends meanwhile.
//
//	refund worker            carries out what the runs do
//	refund pay ORDER CENTS   starts a run, asks here, and shows what came of it
//	refund approve RUN       approves what a run waits for, also while no worker is up
//
// It needs a Temporal server at 127.0.0.1:7233, or where TEMPORAL_ADDRESS says. Its files are in the
// folder refund-data.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/engine/temporal"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/sqlstore"
)

type refund struct {
	Order string `json:"order"`
	Cents int    `json:"cents" minimum:"1"`
}

// desk is the agent. The bank takes a key once, so a payment may be repeated.
func desk() *pawl.Agent {
	pay := pawl.NewTool(pawl.Func[refund, string]{
		Name: "refund", Description: "Pays a refund.",
		Effect: pawl.Idempotent,
		Approve: func(_ context.Context, _ *pawl.Call, in refund) (pawl.Gate, error) {
			if in.Cents < 5000 {
				return pawl.Allow, nil
			}
			return pawl.Ask, nil
		},
		Run: func(_ context.Context, c *pawl.Call, in refund) (string, error) {
			return fmt.Sprintf("paid %d cents for order %s", in.Cents, in.Order), nil // bank.Refund(c.Key, in.Order, in.Cents)
		},
	})
	return &pawl.Agent{Name: "Desk", Instructions: pawl.Text("Pay the refund that is asked for."), Tools: []pawl.Tool{pay}, Model: offline{}}
}

// offline is a model that needs no server: it calls the tool with what it is told, and says what
// came of it. Put openai.Responses("gpt-5.2") in its place.
type offline struct{}

func (offline) Info() model.Info { return model.Info{Provider: "offline", Name: "offline"} }

func (offline) Call(_ context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	var asked string
	for _, it := range req.Input.Items() {
		if out, err := it.FunctionCallOutput(); err == nil {
			return &model.Response{Items: []item.Item{item.MessageItem("", "Done: "+out.Text+".")}}, nil
		}
		if m, err := it.Message(); err == nil {
			asked = m.Text()
		}
	}
	return &model.Response{Items: []item.Item{item.FunctionCallItem("", "call_1", "refund", asked)}}, nil
}

// site is what client and worker share.
type site struct {
	client client.Client
	runner *pawl.Runner
	opts   temporal.WorkerOptions
	close  func()
}

func open(address, dir string) (*site, error) {
	blobs := temporal.Dir(filepath.Join(dir, "blobs"))
	if err := os.MkdirAll(string(blobs), 0o700); err != nil {
		return nil, err
	}
	store, err := sqlstore.OpenSQLite(filepath.Join(dir, "runs.db"), nil)
	if err != nil {
		return nil, err
	}
	c, err := client.Dial(client.Options{HostPort: address, DataConverter: temporal.DataConverter(blobs)})
	if err != nil {
		store.Close()
		return nil, err
	}
	opts := temporal.WorkerOptions{Options: temporal.Options{Blobs: blobs}}
	return &site{client: c, opts: opts,
		runner: &pawl.Runner{Store: store, Agents: []*pawl.Agent{desk()}, Engine: temporal.New(c, opts.Options)},
		close: func() {
			c.Close()
			store.Close()
		}}, nil
}

func main() {
	log.SetFlags(0)
	s, err := open(cmp.Or(os.Getenv("TEMPORAL_ADDRESS"), client.DefaultHostPort), "refund-data")
	if err == nil {
		err = s.run(context.Background(), os.Args[1:], os.Stdin, os.Stdout)
		s.close()
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (s *site) run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "worker":
		w, err := temporal.NewWorker(s.client, s.runner, s.opts)
		if err != nil {
			return err
		}
		return w.Run(worker.InterruptCh())
	case len(args) == 3 && args[0] == "pay":
		return s.pay(ctx, fmt.Sprintf(`{"order":%q,"cents":%s}`, args[1], args[2]), in, out)
	case len(args) == 2 && args[0] == "approve":
		return s.approve(ctx, args[1])
	}
	return errors.New("usage: refund worker | refund pay ORDER CENTS | refund approve RUN")
}

func (s *site) pay(ctx context.Context, what string, in io.Reader, out io.Writer) error {
	res, err := s.runner.Run(ctx, desk(), pawl.UserText(what), nil)
	for lines := bufio.NewScanner(in); err == nil && res.Waiting(); {
		state := res.State()
		for _, i := range state.Interruptions() {
			fmt.Fprintf(out, "run %s asks: %s %s? [y/n] ", res.Run, i.Tool, i.Arguments)
			if !lines.Scan() {
				fmt.Fprintf(out, "\nIt waits. Later: refund approve %s\n", res.Run)
				return nil
			}
			decide := func() error { return state.Reject(i, "you", "") }
			if strings.HasPrefix(lines.Text(), "y") {
				decide = func() error { return state.Approve(i, "you") }
			}
			if err := decide(); err != nil {
				return err
			}
		}
		res, err = s.runner.Resume(ctx, desk(), state, nil)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, res.FinalOutput)
	return nil
}

func (s *site) approve(ctx context.Context, run string) error {
	state, err := s.runner.State(ctx, run)
	if err != nil {
		return err
	}
	for _, i := range state.Interruptions() {
		if err := s.runner.Decide(ctx, run, pawl.Approve(i.ID, "you")); err != nil {
			return err
		}
	}
	return nil
}
