package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// scripted is a model in the process whose answers were made beforehand: what is left is the run's own cost.
type scripted struct {
	answers []*model.Response
	// before, if set, is called at the start of the call of turn n, from 1.
	before func(n int)
}

// newScripted makes a model for runs of one call a turn.
func newScripted(turns int) *scripted {
	s := &scripted{}
	for n := 1; n <= turns+1; n++ {
		res := &model.Response{ID: fmt.Sprint("resp_", n), Usage: &model.Usage{InputTokens: 1200, OutputTokens: 60, TotalTokens: 1260}}
		for _, raw := range outputItems(n, turns, 1) {
			res.Items = append(res.Items, item.FromTrusted(raw))
		}
		s.answers = append(s.answers, res)
	}
	return s
}

func (s *scripted) Info() model.Info {
	return model.Info{Provider: "bench", Name: "scripted", UniqueCallIDs: true}
}

// Call answers by the length of the input: a question, then a call and its output for each turn so far.
func (s *scripted) Call(_ context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	n := req.Input.Len() / 2
	if s.before != nil {
		s.before(n + 1)
	}
	return s.answers[n], nil
}

func (s *scripted) agent() *pawl.Agent {
	return &pawl.Agent{Name: "Bench", Instructions: pawl.Text(instructions), Tools: []pawl.Tool{lookupTool()}, Model: s}
}

// inproc returns a run of so many turns on the scripted model, as Pawl drives it.
func inproc(turns int) work {
	agent := newScripted(turns).agent()
	shape := httpRun{turns: turns, calls: 1}
	return func() (int, error) {
		var r pawl.Runner
		res, err := r.Run(context.Background(), agent, pawl.UserText(question), &pawl.RunOptions{MaxTurns: -1})
		if err != nil {
			return 0, err
		}
		return turns + 1, shape.check(res.FinalOutput, res.Turns)
	}
}

// scriptedCall is an answer of the floor's model: the item, and what a loop reads of it.
type scriptedCall struct {
	raw               json.RawMessage
	callID, arguments string
}

// inprocFloor returns the same run as the smallest loop drives it: parse the arguments, run the tool, append.
func inprocFloor(turns int) work {
	var calls []scriptedCall
	for n := 1; n <= turns; n++ {
		calls = append(calls, scriptedCall{json.RawMessage(callItem(n, 0)), fmt.Sprintf("call_%d_0", n), arguments})
	}
	first, last := json.RawMessage(question), json.RawMessage(messageItem(turns+1))
	return func() (int, error) {
		history := []json.RawMessage{first}
		for _, c := range calls {
			history = append(history, c.raw)
			out, err := runTool(c.callID, c.arguments)
			if err != nil {
				return 0, err
			}
			history = append(history, out)
		}
		history = append(history, last)
		if len(history) != 2*turns+2 {
			return 0, fmt.Errorf("a history of %d items", len(history))
		}
		return turns + 1, nil
	}
}

// flatRuns is how many runs are averaged to compare late turns with early ones.
const flatRuns = 20

// ballastSize is what a service has on its heap beside a run. On an empty one the collector lets 4 MB pass before its
// first cycle (https://go.dev/doc/gc-guide#GOGC), which would spare the early turns of every run.
const ballastSize = 64 << 20

// flat returns the CPU time of a late turn (900 to 1,000) and of an early one (50 to 150) of a run of 1,000 turns.
func flat() (late, early float64, err error) {
	const turns = 1000
	s := newScripted(turns)
	var at [turns + 2]float64
	s.before = func(n int) {
		switch n {
		case 50, 150, 900, 1000:
			at[n] = cpu()
		}
	}
	agent := s.agent()
	ballast := make([]byte, ballastSize)
	runtime.GC()
	for range flatRuns {
		var r pawl.Runner
		if _, err := r.Run(context.Background(), agent, pawl.UserText(question), &pawl.RunOptions{MaxTurns: -1}); err != nil {
			return 0, 0, err
		}
		early += at[150] - at[50]
		late += at[1000] - at[900]
	}
	runtime.KeepAlive(ballast)
	return late / (flatRuns * 100), early / (flatRuns * 100), nil
}
