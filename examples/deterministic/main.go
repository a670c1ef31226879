// Deterministic writes a story in three steps that the program puts one behind the other: an outline, a verdict on it,
// and the story if the verdict allows it. Each step is an agent of its own; what follows a step is decided in Go.
//
// It runs offline, from a script; set OPENAI_API_KEY for a real model.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pawl-agents/pawl"
)

// verdict is what the critic answers with, and nothing else.
type verdict struct {
	Good            bool `json:"good" jsonschema:"Whether the outline is worth telling."`
	IsScienceStory  bool `json:"is_science_story" jsonschema:"Whether it is about a discovery."`
	ExpectedMinutes int  `json:"expected_minutes" jsonschema:"How long it takes to read the story."`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	m := chosen()
	outliner := &pawl.Agent{Name: "Outliner", Instructions: pawl.Text("Write the outline of a very short story, in one sentence."), Model: m}
	critic := &pawl.Agent{Name: "Critic", Instructions: pawl.Text("Judge the outline."), Output: pawl.OutputOf[verdict](), Model: m}
	writer := &pawl.Agent{Name: "Writer", Instructions: pawl.Text("Write the story of the outline, in two sentences."), Model: m}
	var runner pawl.Runner

	outline, err := runner.Run(ctx, outliner, pawl.UserText("A story about a lighthouse."), nil)
	if err != nil {
		return err
	}
	fmt.Println("Outline:", outline.FinalOutput)

	judged, err := runner.Run(ctx, critic, pawl.UserText(outline.FinalOutput), nil)
	if err != nil {
		return err
	}
	v, err := pawl.OutputAs[verdict](judged)
	if err != nil {
		return err
	}
	if !v.Good || v.IsScienceStory {
		fmt.Println("The outline is not used.")
		return nil
	}
	fmt.Println("Minutes to read:", v.ExpectedMinutes)

	story, err := runner.Run(ctx, writer, pawl.UserText(outline.FinalOutput), nil)
	if err != nil {
		return err
	}
	fmt.Println("Story:", story.FinalOutput)
	return nil
}
