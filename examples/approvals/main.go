// Approvals streams a run to the terminal, and asks there before it pays a refund of $50 or more. The run is kept in a file:
// leave the program at a question, with Ctrl-C or kill -9, and start it again. It asks what it asked, and pays nothing twice.
//
// It runs offline, from a script; set OPENAI_API_KEY for a real model.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"log"
	"os"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/sqlstore"
)

type refund struct {
	Order int `json:"order"`
	Cents int `json:"cents" minimum:"1"`
}

func desk() *pawl.Agent {
	pay := pawl.NewTool(pawl.Func[refund, string]{
		Name: "refund", Description: "Pays a refund.",
		Effect: pawl.Idempotent, // the bank takes a key once
		Approve: func(_ context.Context, _ *pawl.Call, in refund) (pawl.Gate, error) {
			if in.Cents < 5000 {
				return pawl.Allow, nil
			}
			return pawl.Ask, nil
		},
		Run: func(_ context.Context, c *pawl.Call, in refund) (string, error) {
			return fmt.Sprintf("paid %d cents for order %d", in.Cents, in.Order), nil // bank.Refund(c.Key, in.Order, in.Cents)
		},
	})
	return &pawl.Agent{Name: "Desk", Instructions: pawl.Text("Pay the refunds that are asked for, each on its own."), Tools: []pawl.Tool{pay}, Model: chosen()}
}

func main() {
	if err := run(context.Background(), "approvals.db", os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string, in io.Reader, out io.Writer) error {
	store, err := sqlstore.OpenSQLite(file, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	runner, agent, lines := pawl.Runner{Store: store}, desk(), bufio.NewScanner(in)

	// The run of this id is started, or the one that the store has is gone on with.
	events := runner.Stream(ctx, agent, pawl.UserText("Refund $80 for order 9, $20 for order 10 and $95 for order 11."), &pawl.RunOptions{ID: "ticket-1"})
	for {
		paused, err := show(out, events)
		if err != nil || paused == nil {
			return err
		}
		for _, question := range paused.Interruptions {
			fmt.Fprintf(out, "%s %s? [y/n] ", question.Tool, question.Arguments)
			if !lines.Scan() {
				fmt.Fprintln(out, "\nThe run waits. Start the program again to decide.")
				return lines.Err()
			}
			if lines.Text() == "y" {
				err = paused.State.Approve(question, "the terminal")
			} else {
				err = paused.State.Reject(question, "the terminal", "The reviewer said no.")
			}
			if err != nil {
				return err
			}
		}
		events = runner.ResumeStream(ctx, agent, paused.State, nil)
	}
}

// show prints a stream to its end. It returns what the run waits for, nil if it has ended.
func show(out io.Writer, events iter.Seq2[pawl.Event, error]) (*pawl.Paused, error) {
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		switch ev := ev.(type) {
		case *pawl.ItemCreated:
			if o, err := ev.Item.FunctionCallOutput(); err == nil {
				fmt.Fprintf(out, "%s: %s\n", o.CallID, o.Text)
			}
		case *pawl.Paused:
			return ev, nil
		case *pawl.Done:
			fmt.Fprintln(out, ev.Result.FinalOutput)
		}
	}
	return nil, nil
}
