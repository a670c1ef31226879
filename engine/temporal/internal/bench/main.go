// Command bench measures the floor that an engine on Temporal stands on: a workflow that does nothing but run activities that
// do nothing, one after the other, on a server that is up.
//
//	go run ./internal/bench -address 127.0.0.1:7233 -n 300
//
// It prints one line for each round: raw: N activities, M ms, R activities/s.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func main() {
	address := flag.String("address", "127.0.0.1:7233", "`host:port` of the server")
	n := flag.Int("n", 300, "activities of a workflow")
	rounds := flag.Int("rounds", 3, "workflows, one after the other")
	flag.Parse()
	if err := measure(context.Background(), *address, *n, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, address string, n, rounds int) error {
	c, err := client.Dial(client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	queue := fmt.Sprint("bench-", os.Getpid())
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(empty)
	w.RegisterActivity(nothing)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	for range rounds {
		from := time.Now()
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue}, empty, n)
		if err == nil {
			err = run.Get(ctx, nil)
		}
		if err != nil {
			return err
		}
		took := time.Since(from)
		fmt.Printf("raw: %d activities, %d ms, %.0f activities/s\n", n, took.Milliseconds(), float64(n)/took.Seconds())
	}
	return nil
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
