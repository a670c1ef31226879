// Routing looks at a question with a small agent first, and then asks the agent for that kind of question: the program
// routes, not the model. So each kind can have its own instructions, settings and price, and none pays for another one.
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

type route struct {
	Kind string `json:"kind" enum:"fact,sum,opinion" jsonschema:"What kind of question it is."`
}

// desk is an agent for each kind of question, and the one who tells the kinds apart.
type desk struct {
	router *pawl.Agent
	agents map[string]*pawl.Agent
}

func newDesk(m model.Model) *desk {
	quick := &pawl.ModelSettings{Reasoning: &model.Reasoning{Effort: "low"}}
	careful := &pawl.ModelSettings{Reasoning: &model.Reasoning{Effort: "high"}}
	return &desk{
		router: &pawl.Agent{Name: "Router", Instructions: pawl.Text("Say what kind of question it is."), Output: pawl.OutputOf[route](), Settings: quick, Model: m},
		agents: map[string]*pawl.Agent{
			"fact":    {Name: "Librarian", Instructions: pawl.Text("Answer in one sentence."), Settings: quick, Model: m},
			"sum":     {Name: "Accountant", Instructions: pawl.Text("Calculate, and check the result."), Settings: careful, Model: m},
			"opinion": {Name: "Host", Instructions: pawl.Text("You have no opinions. Say so kindly."), Settings: quick, Model: m},
		},
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	d := newDesk(chosen())
	var runner pawl.Runner
	for _, question := range []string{"Which is the longest river of France?", "What is 17 times 23?", "Is tea better than coffee?"} {
		res, err := runner.Run(ctx, d.router, pawl.UserText(question), nil)
		if err != nil {
			return err
		}
		to, err := pawl.OutputAs[route](res)
		if err != nil {
			return err
		}
		agent := d.agents[to.Kind] // the schema allows no other kinds
		fmt.Printf("%s\n%s: ", question, agent.Name)
		for ev, err := range runner.Stream(ctx, agent, pawl.UserText(question), nil) {
			if err != nil {
				return err
			}
			if delta, ok := ev.(*pawl.Delta); ok && delta.Kind == pawl.DeltaText {
				fmt.Print(delta.Text) // as the model writes it
			}
		}
		fmt.Println()
	}
	return nil
}
