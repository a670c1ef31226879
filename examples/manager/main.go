// Manager has a translator for each language as a tool. Unlike with a handoff, the conversation stays with the manager,
// who may ask several of them at once and writes the answer.
//
// It runs offline, from a script; set OPENAI_API_KEY for a real model.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/model"
)

// manager returns an agent that runs the others.
func manager(m model.Model) *pawl.Agent {
	translator := func(language string) pawl.Tool {
		agent := &pawl.Agent{
			Name:         language + " translator",
			Instructions: pawl.Text("Translate what you are given into " + language + ". Say nothing else."),
			Model:        m,
		}
		return pawl.AgentTool(agent, &pawl.AgentToolOptions{
			Name:        "to_" + language,
			Description: "Translates a text into " + language + ".",
		})
	}
	return &pawl.Agent{
		Name:         "Manager",
		Instructions: pawl.Text("Translate with your tools only, never by yourself. Give one line for each language."),
		Tools:        []pawl.Tool{translator("Spanish"), translator("French"), translator("Italian")},
		Model:        m,
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	var runner pawl.Runner
	for ev, err := range runner.Stream(ctx, manager(chosen()), pawl.UserText("Say good morning in Spanish and in French."), nil) {
		if err != nil {
			return err
		}
		switch ev := ev.(type) {
		case *pawl.ToolStarted:
			fmt.Println("asks", ev.Tool)
		case *pawl.Done:
			fmt.Println(ev.Result.FinalOutput)
			fmt.Println("requests:", ev.Result.Usage.Requests)
		}
	}
	return nil
}
