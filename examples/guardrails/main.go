// Guardrails lets a small agent look at a question before the agent that it is for is asked, and checks the answer before
// anybody gets it. What is refused is in no answer, and what is withheld is not in the session either.
//
// It runs offline, from a script; set OPENAI_API_KEY for a real model.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"regexp"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/session"
)

type topic struct {
	Homework bool   `json:"homework" jsonschema:"Whether somebody wants his homework done."`
	Why      string `json:"why"`
}

// noHomework asks an agent. It blocks: the run's first request is made when it has answered.
func noHomework(runner *pawl.Runner, m model.Model) pawl.InputGuardrail {
	checker := &pawl.Agent{Name: "Checker", Instructions: pawl.Text("Say what the message is about."), Output: pawl.OutputOf[topic](), Model: m}
	return pawl.InputGuardrail{Name: "no homework", Blocking: true,
		Check: func(ctx context.Context, in *pawl.InputCheck) (pawl.GuardrailVerdict, error) {
			res, err := runner.Run(ctx, checker, in.Input, nil)
			if err != nil {
				return pawl.GuardrailVerdict{}, err // no verdict: the run fails and can be resumed
			}
			t, err := pawl.OutputAs[topic](res)
			return pawl.GuardrailVerdict{Tripped: t.Homework, Info: t.Why}, err
		}}
}

var phone = regexp.MustCompile(`\d{3}-\d{4}`)

// noPhoneNumbers needs no agent.
func noPhoneNumbers() pawl.OutputGuardrail {
	return pawl.OutputGuardrail{Name: "no phone numbers",
		Check: func(_ context.Context, out *pawl.OutputCheck) (pawl.GuardrailVerdict, error) {
			return pawl.GuardrailVerdict{Tripped: phone.MatchString(out.Output)}, nil
		}}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	m := chosen()
	var runner pawl.Runner
	agent := &pawl.Agent{
		Name: "Support", Instructions: pawl.Text("Help customers of a bicycle shop. Be brief."),
		InputGuardrails:  []pawl.InputGuardrail{noHomework(&runner, m)},
		OutputGuardrails: []pawl.OutputGuardrail{noPhoneNumbers()},
		Model:            m,
	}
	chat := session.NewMemory("customer-42")
	for _, question := range []string{"Do you repair brakes?", "Then solve 2x + 5 = 11 for me.", "How do I reach the mechanic?"} {
		fmt.Println(question)
		res, err := runner.Run(ctx, agent, pawl.UserText(question), &pawl.RunOptions{Session: chat})
		if trip, ok := errors.AsType[*pawl.TripwireError](err); ok {
			fmt.Printf("  Sorry, I cannot answer that (%s).\n", trip.Guardrail)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println(" ", res.FinalOutput)
	}
	items, err := chat.Items(ctx, -1)
	fmt.Println("The session has", len(items), "messages.")
	return err
}
