// Research plans searches for a question, makes them all at once, and writes a report of what they found: three kinds of
// agents, put together in Go. A run is a function call, so runs beside each other are goroutines.
//
// It runs offline, from a script; set OPENAI_API_KEY for a real model.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"

	"github.com/pawl-agents/pawl"
)

type plan struct {
	Searches []search `json:"searches" jsonschema:"Two to four searches."`
}

type search struct {
	Query string `json:"query"`
	Why   string `json:"why" jsonschema:"What it is to find out."`
}

type report struct {
	Summary   string   `json:"summary" jsonschema:"Two sentences."`
	Text      string   `json:"text"`
	Questions []string `json:"questions" jsonschema:"What is left to find out."`
}

// library is what the search finds. Put a search engine here.
var library = map[string]string{
	"lighthouse":   "The first lighthouse of Cordouan was finished in 1611.",
	"fresnel lens": "Cordouan was the first to have a lens of Fresnel's, in 1823.",
}

var lookUp = pawl.NewTool(pawl.Func[search, string]{
	Name: "look_up", Description: "Looks something up in the library.",
	Effect: pawl.ReadOnly, // so it may be repeated after a crash
	Run: func(_ context.Context, _ *pawl.Call, in search) (string, error) {
		for about, text := range library {
			if strings.Contains(strings.ToLower(in.Query), about) {
				return text, nil
			}
		}
		return "Nothing was found.", nil
	},
})

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	m := chosen()
	planner := &pawl.Agent{Name: "Planner", Instructions: pawl.Text("Plan searches that answer the question."), Output: pawl.OutputOf[plan](), Model: m}
	searcher := &pawl.Agent{Name: "Searcher", Instructions: pawl.Text("Search, and sum up what was found in one sentence."), Tools: []pawl.Tool{lookUp}, Model: m}
	writer := &pawl.Agent{Name: "Writer", Instructions: pawl.Text("Write a report from the findings."), Output: pawl.OutputOf[report](), Model: m}
	var runner pawl.Runner

	const question = "Why is the lighthouse of Cordouan famous?"
	p, err := answerAs[plan](ctx, &runner, planner, question)
	if err != nil {
		return err
	}
	findings := make([]string, len(p.Searches))
	failures := make([]error, len(p.Searches))
	var searching sync.WaitGroup
	for i, s := range p.Searches {
		searching.Go(func() {
			findings[i], failures[i] = answerAs[string](ctx, &runner, searcher, s.Query+"\nWhy: "+s.Why)
		})
	}
	searching.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for i, s := range p.Searches {
		fmt.Printf("%s: %s\n", s.Query, findings[i])
	}
	r, err := answerAs[report](ctx, &runner, writer, question+"\n\n"+strings.Join(findings, "\n"))
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\n\n%s\n\nTo find out: %s\n", r.Summary, r.Text, strings.Join(r.Questions, " "))
	return nil
}

// answerAs runs an agent and returns what it answers, as the type that it answers with.
func answerAs[T any](ctx context.Context, runner *pawl.Runner, agent *pawl.Agent, text string) (answer T, err error) {
	res, err := runner.Run(ctx, agent, pawl.UserText(text), nil)
	if err != nil {
		return answer, err
	}
	return pawl.OutputAs[T](res)
}
