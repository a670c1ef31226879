// Command bench measures what a turn costs on Temporal, beside a workflow that does nothing but run as many activities that
// do nothing, one after the other: the least that a server lets it cost. It starts the server that make temporal-devserver
// builds, on a file, and prints
//
//	bench: temporal-turn pawl=X floor=Y ratio=Z limit=0.7x+ ok|OVER
//
// X and Y are wall time in milliseconds of a turn with one call, which is four activities; Z is Y by X, and must reach the
// limit. The runs are in an SQLite file that waits for the disk. Samples of both alternate; the medians are printed. What else
// the machine does costs both, but not in the same measure: let it rest.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/engine/temporal"
	"github.com/pawl-agents/pawl/engine/temporal/internal/devtest"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/sqlstore"
)

const (
	// turns is how many a run has before its last one.
	turns = 10
	// activities is how many a run has: open; each turn; the last turn; record, close.
	activities = 1 + 4*turns + 3 + 2
	// argument and result are the bytes of what a call says and is told.
	argument, result = 200, 1000

	limit = 0.7
)

func main() {
	rounds := flag.Int("rounds", 25, "samples of each side")
	check := flag.Bool("check", false, "exit with 1 if the ratio is under its limit")
	flag.Parse()
	ok, err := bench(context.Background(), *rounds)
	devtest.Stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || *check && !ok {
		os.Exit(1)
	}
}

func bench(ctx context.Context, rounds int) (ok bool, err error) {
	address, err := devtest.Server()
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	s, err := open(address, filepath.Join(dir, "runs.db"))
	if err != nil {
		return false, err
	}
	defer s.close()
	var pawls, floors []float64
	for i := range rounds + 1 {
		for _, side := range [2]bool{i%2 == 0, i%2 != 0} {
			from, do := time.Now(), s.floor
			if side {
				do = s.run
			}
			if err := do(ctx); err != nil {
				return false, err
			}
			took := float64(time.Since(from).Microseconds()) / 1000 / (turns + 1)
			switch {
			case i == 0: // connections and caches are made
			case side:
				pawls = append(pawls, took)
			default:
				floors = append(floors, took)
			}
		}
	}
	p, f := median(pawls), median(floors)
	verdict := "ok"
	if f/p < limit {
		verdict = "OVER"
	}
	fmt.Printf("bench: temporal-turn pawl=%.1f floor=%.1f ratio=%.2f limit=%gx+ %s\n", p, f, f/p, limit, verdict)
	return f/p >= limit, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// sides are a worker that has both workflows, and what begins them.
type sides struct {
	client client.Client
	queue  string
	store  *sqlstore.Store
	worker worker.Worker
	runner *pawl.Runner
	agent  *pawl.Agent
}

func open(address, file string) (*sides, error) {
	c, err := client.Dial(client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.OpenSQLite(file, nil)
	if err != nil {
		return nil, err
	}
	s := &sides{client: c, queue: fmt.Sprint("bench-", os.Getpid()), store: store}
	s.agent = &pawl.Agent{Name: "clerk", Model: calling{}, Tools: []pawl.Tool{pawl.NewTool(pawl.Func[note, string]{Name: "note", Description: "Notes.",
		Run: func(context.Context, *pawl.Call, note) (string, error) { return strings.Repeat("y", result), nil }})}}
	opts := temporal.Options{TaskQueue: s.queue}
	s.runner = &pawl.Runner{Store: store, Agents: []*pawl.Agent{s.agent}, Engine: temporal.New(c, opts)}
	if s.worker, err = temporal.NewWorker(c, s.runner, temporal.WorkerOptions{Options: opts}); err != nil {
		return nil, err
	}
	s.worker.RegisterWorkflow(empty)
	s.worker.RegisterActivity(nothing)
	return s, s.worker.Start()
}

func (s *sides) close() {
	s.worker.Stop()
	s.store.Close()
	s.client.Close()
}

// floor is the empty workflow, to its end.
func (s *sides) floor(ctx context.Context) error {
	run, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: s.queue}, empty, activities)
	if err == nil {
		err = run.Get(ctx, nil)
	}
	return err
}

// empty runs n activities, one after the other.
func empty(ctx workflow.Context, n int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range n {
		if err := workflow.ExecuteActivity(ctx, nothing).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func nothing(context.Context) error { return nil }

// run is a run, to the end of its workflow.
func (s *sides) run(ctx context.Context) error {
	res, err := s.runner.Run(ctx, s.agent, pawl.UserText("go"), &pawl.RunOptions{MaxTurns: -1})
	if err != nil {
		return err
	}
	if res.Turns != turns+1 {
		return fmt.Errorf("a run of %d turns instead of %d", res.Turns, turns+1)
	}
	return s.client.GetWorkflow(ctx, res.Run, "").Get(ctx, nil)
}

type note struct {
	Text string `json:"text"`
}

// calling is a model that makes a call in each turn but the last.
type calling struct{}

func (calling) Info() model.Info { return model.Info{Provider: "bench", Name: "calling"} }

func (calling) Call(_ context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	done := 0
	for _, it := range req.Input.Items() {
		if item.IsOutput(it.Type()) {
			done++
		}
	}
	usage := &model.Usage{InputTokens: 1, OutputTokens: 1, TotalTokens: 2}
	if done >= turns {
		return &model.Response{Items: []item.Item{item.MessageItem("", "done")}, Usage: usage}, nil
	}
	args := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", argument))
	return &model.Response{Items: []item.Item{item.FunctionCallItem("", fmt.Sprint("c", done+1), "note", args)}, Usage: usage}, nil
}
