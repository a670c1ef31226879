// Judge lets one agent write and another one judge, until the judge is content or three drafts were written. The writer
// reads the conversation so far, with what the judge said of his drafts.
//
// It runs offline, from a script; set OPENAI_API_KEY for a real model.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
)

type judgement struct {
	Score    string `json:"score" enum:"pass,needs_work" jsonschema:"Whether the slogan can be printed."`
	Feedback string `json:"feedback" jsonschema:"What to do better, in one sentence."`
}

const drafts = 3

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	m := chosen()
	writer := &pawl.Agent{Name: "Writer", Instructions: pawl.Text("Write a slogan. If there is feedback, follow it."), Model: m}
	judge := &pawl.Agent{Name: "Judge", Instructions: pawl.Text("Judge the slogan. Never pass the first draft."), Output: pawl.OutputOf[judgement](), Model: m}
	var runner pawl.Runner

	conversation := pawl.UserText("A slogan for a shop that repairs umbrellas.")
	for n := range drafts {
		draft, err := runner.Run(ctx, writer, conversation, nil)
		if err != nil {
			return err
		}
		fmt.Printf("Draft %d: %s\n", n+1, draft.FinalOutput)
		conversation = draft.ToInputList()

		res, err := runner.Run(ctx, judge, conversation, nil)
		if err != nil {
			return err
		}
		j, err := pawl.OutputAs[judgement](res)
		if err != nil {
			return err
		}
		fmt.Printf("  %s: %s\n", j.Score, j.Feedback)
		if j.Score == "pass" {
			break
		}
		conversation = append(conversation, item.UserText("Feedback: "+j.Feedback))
	}
	return nil
}
