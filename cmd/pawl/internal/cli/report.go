package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
)

// runReport is what --json prints of a run.
type runReport struct {
	Run      string      `json:"run"`
	Status   pawl.Status `json:"status"`
	Agent    string      `json:"agent,omitempty"`
	Session  string      `json:"session,omitempty"`
	Turns    int         `json:"turns"`
	Usage    *usageOf    `json:"usage,omitempty"`
	Output   string      `json:"output,omitempty"`
	Waiting  []waiting   `json:"waiting,omitempty"`
	Calls    []demo.Row  `json:"calls,omitempty"`
	Injected string      `json:"injected,omitempty"`
	Killed   int         `json:"killed,omitempty"`
	Resume   string      `json:"resume,omitempty"`
	Timeline any         `json:"timeline,omitempty"`
}

type usageOf struct {
	Requests     int64 `json:"requests"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}

// waiting is a call that waits for a decision.
type waiting struct {
	Call      string                `json:"call"`
	Kind      pawl.InterruptionKind `json:"kind"`
	Tool      string                `json:"tool"`
	Arguments string                `json:"arguments"`
	Commands  []string              `json:"commands"`
}

func (a *app) report(state *pawl.RunState) *runReport {
	res := state.Result()
	r := &runReport{Run: res.Run, Status: res.Status, Agent: state.AgentKey(), Session: state.SessionID(), Turns: res.Turns, Output: res.FinalOutput,
		Usage: &usageOf{res.Usage.Requests, res.Usage.Input, res.Usage.Output}}
	for _, in := range res.Interruptions {
		r.Waiting = append(r.Waiting, waiting{Call: in.ID, Kind: in.Kind, Tool: in.Tool, Arguments: in.Arguments, Commands: a.deciders(in, len(res.Interruptions))})
	}
	if res.Status != pawl.StatusFinished && res.Status != pawl.StatusCancelled {
		r.Resume = a.command("resume", res.Run)
	}
	return r
}

// deciders are the commands that decide about a call; open is how many calls of the run wait.
func (a *app) deciders(in pawl.Interruption, open int) []string {
	target := []string{in.Run}
	if open > 1 {
		target = append(target, in.ID)
	}
	cmd := func(verb string, more ...string) string {
		return a.command(append(append([]string{verb}, target...), more...)...)
	}
	if in.Kind == pawl.InDoubt {
		return []string{cmd("settle", "--output", "what it returned"), cmd("settle", "--retry"), cmd("settle", "--give-up")}
	}
	return []string{cmd("approve"), cmd("reject", "--message", "why not")}
}

// showWaiting prints what waits and the commands that decide.
func (a *app) showWaiting(state *pawl.RunState) {
	open := state.Result().Interruptions
	s := a.screen
	s.line("")
	s.head("The run waits for a decision.")
	for _, in := range open {
		s.interruption(in)
		labels := []string{"approve", "reject"}
		if in.Kind == pawl.InDoubt {
			labels = []string{"happened", "did not", "unknown"}
		}
		for i, line := range a.deciders(in, len(open)) {
			s.command(labels[i], line)
		}
	}
	s.command("then", a.command("resume", state.Run()))
}

// conclude prints how a drive of a demo run ended and returns what --json prints.
func (a *app) conclude(ctx context.Context, d *demo.Desk, res *pawl.Result, err error) (*runReport, error) {
	if res == nil {
		return nil, err
	}
	state, stateErr := d.Runner.State(context.WithoutCancel(ctx), res.Run)
	if stateErr != nil {
		return nil, errors.Join(err, stateErr)
	}
	r := a.report(state)
	if err != nil {
		if errors.Is(err, errWaiting) {
			a.showWaiting(state)
		}
		if errors.Is(err, context.Canceled) {
			err = &pawl.RunError{Run: res.Run, State: state, Err: err}
		}
		return r, err
	}
	table, err := d.Table(ctx, res)
	if err != nil {
		return r, err
	}
	r.Calls = table
	a.screen.table(table)
	a.screen.line("")
	a.screen.command("timeline", a.command("show", res.Run))
	for _, row := range table {
		if !row.Whole() {
			return r, fmt.Errorf("%w: %s", errNotWhole, row.Call)
		}
	}
	return r, nil
}

// table prints what became of each call, counted in each place that holds it.
func (s *screen) table(rows []demo.Row) {
	s.line("")
	s.head("Each call: its effect in the shop, and its outputs in the session, in what the model saw, in the replay")
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{callText(r.Tool, r.Arguments), effect(r), count(r.Session), count(r.Input), count(r.Replay)})
	}
	for _, row := range cells {
		row[0] = oneLine(row[0], 64)
	}
	s.columns([]string{"call", "effect", "session", "model", "replay"}, cells)
}

func effect(r demo.Row) string {
	switch {
	case !r.Moves:
		return "-"
	case r.Requests > r.Effects:
		return fmt.Sprintf("%d (asked %d times)", r.Effects, r.Requests)
	}
	return strconv.Itoa(r.Effects)
}

func count(n int) string {
	if n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
