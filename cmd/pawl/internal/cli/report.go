package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/cmd/pawl/internal/demo"
	"github.com/pawl-agents/pawl/journal"
)

// runReport is what --json prints of a run.
type runReport struct {
	Run       string          `json:"run"`
	Status    pawl.Status     `json:"status"`
	Agent     string          `json:"agent,omitempty"`
	Session   string          `json:"session,omitempty"`
	Turns     int             `json:"turns"`
	Usage     *usageOf        `json:"usage,omitempty"`
	Output    string          `json:"output,omitempty"`
	Waiting   []waiting       `json:"waiting,omitempty"`
	Calls     []demo.Row      `json:"calls,omitempty"`
	Delivered []demo.Delivery `json:"delivered,omitempty"`
	Injected  string          `json:"injected,omitempty"`
	Killed    int             `json:"killed,omitempty"`
	Resume    string          `json:"resume,omitempty"`
	Timeline  any             `json:"timeline,omitempty"`
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

	in pawl.Interruption
}

// report describes a run as its ledger and its inbox have it.
func (a *app) report(ctx context.Context, st journal.Driver, run string) (*runReport, *pawl.RunState, error) {
	state, err := (&pawl.Runner{Store: st}).State(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	open, err := undecided(ctx, st, state)
	if err != nil {
		return nil, nil, err
	}
	res := state.Result()
	r := &runReport{Run: res.Run, Status: res.Status, Agent: state.AgentKey(), Session: state.SessionID(), Turns: res.Turns, Output: res.FinalOutput,
		Usage: &usageOf{res.Usage.Requests, res.Usage.Input, res.Usage.Output}}
	for _, in := range open {
		r.Waiting = append(r.Waiting, waiting{Call: in.ID, Kind: in.Kind, Tool: in.Tool, Arguments: in.Arguments, Commands: a.deciders(in, len(open)), in: in})
	}
	if res.Status != pawl.StatusFinished && res.Status != pawl.StatusCancelled {
		r.Resume = a.resumer(state)
	}
	return r, state, nil
}

// resumer is the command that goes on with a run, empty if it is another program's.
func (a *app) resumer(state *pawl.RunState) string {
	if state.AgentKey() != demo.AgentKey {
		return ""
	}
	return a.command("resume", state.Run())
}

// goOn says how a run goes on.
func (s *screen) goOn(label, command string) {
	if command == "" {
		s.entry(plain, label, "resume the run from the program that it belongs to; a worker does so by itself (after a failure, with --retry-failed)")
		return
	}
	s.command(label, command)
}

// undecided are the waiting calls that no decision in the run's inbox is about.
func undecided(ctx context.Context, st journal.Driver, state *pawl.RunState) ([]pawl.Interruption, error) {
	entries, err := st.Inbox(ctx, state.Run())
	return slices.DeleteFunc(state.Interruptions(), func(in pawl.Interruption) bool {
		return slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Key == in.ID })
	}), err
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
	switch in.Kind {
	case pawl.External:
		return []string{cmd("settle", "--output", "the result")}
	case pawl.InDoubt:
		return []string{cmd("settle", "--output", "what it returned"), cmd("settle", "--retry"), cmd("settle", "--give-up")}
	}
	return []string{cmd("approve"), cmd("reject", "--message", "why not")}
}

// answers say in a word what each of the deciders does.
func answers(kind pawl.InterruptionKind) []string {
	switch kind {
	case pawl.External:
		return []string{"it came"}
	case pawl.InDoubt:
		return []string{"happened", "did not", "unknown"}
	}
	return []string{"approve", "reject"}
}

// showWaiting prints what waits and the commands that decide.
func (a *app) showWaiting(r *runReport) {
	s := a.screen
	s.line("")
	if len(r.Waiting) == 0 {
		s.head("Everything is decided.")
		s.goOn("go on", r.Resume)
		return
	}
	s.head("The run waits for a decision.")
	for _, w := range r.Waiting {
		s.interruption(w.in)
		labels := answers(w.in.Kind)
		for i, line := range w.Commands {
			s.command(labels[i], line)
		}
	}
	s.goOn("then", r.Resume)
}

// conclude prints how a drive of a demo run ended and returns what --json prints.
func (a *app) conclude(ctx context.Context, d *demo.Desk, res *pawl.Result, err error) (*runReport, error) {
	if res == nil {
		return nil, err
	}
	r, state, reportErr := a.report(context.WithoutCancel(ctx), d.Runner.Store, res.Run)
	if reportErr != nil {
		return nil, errors.Join(err, reportErr)
	}
	if err != nil {
		if errors.Is(err, errWaiting) {
			a.showWaiting(r)
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
	if r.Delivered, err = d.Deliveries(); err != nil {
		return r, err
	}
	if d.Ticket.Mode == demo.ModeChain {
		a.screen.deliveries(r.Delivered)
	}
	a.screen.line("")
	a.screen.command("timeline", a.command("show", res.Run))
	for _, row := range table {
		if !row.Whole() {
			return r, fmt.Errorf("%w: %s", errNotWhole, row.Call)
		}
	}
	return r, nil
}

// deliveries prints which request brought which outputs to a server that holds the conversation.
func (s *screen) deliveries(list []demo.Delivery) {
	s.line("")
	s.head("The server holds the conversation, so each output is sent once:")
	for _, v := range list {
		s.entry(faint, fmt.Sprintf("request %d", v.Request), "continues "+printable(v.Previous)+" with the outputs of "+printable(strings.Join(v.Outputs, ", ")))
	}
}

// table prints what became of each call, counted in each place that holds it.
func (s *screen) table(rows []demo.Row) {
	s.line("")
	s.head("What became of each call, counted in the shop, the session, the last request and the replay")
	var cells [][]string
	for _, r := range rows {
		call := oneLine(callText(r.Tool, r.Arguments), 56)
		if r.Edited {
			call = oneLine(callText(r.Tool, r.Arguments), 47) + " (edited)"
		}
		cells = append(cells, []string{call, effect(r), count(r.Session), count(r.Input), count(r.Replay)})
	}
	s.columns([]string{"call", "effects", "in session", "in request", "in replay"}, cells)
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
