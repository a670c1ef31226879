package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal/journaltest"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/pawltest"
)

// request is one call of the API as data, so that another process can make it: a new run if it has an input, else a resume.
type request struct {
	Mode  mode
	Input []item.Item
	// Conversation, Previous and Auto are the options of a new run.
	Conversation, Previous string
	Auto                   bool

	// Decide is decided before the resume.
	Decide []decision
	// Fork resumes a fork of that id.
	Fork string
	// FromState resumes from the state that the last call left even if there is a store to resume from.
	FromState bool

	MaxTurns  int
	TellModel bool
	// Window is how many of the items that the session held the model is to read, and one more; 0 for all of them.
	Window int
	// Repeats says that what a request says of the outputs is said twice, the second time as it was corrected.
	Repeats bool
	// Filtered says that every handoff is filtered.
	Filtered bool
	// Context names the value of RunOptions.Context, see contexts.
	Context string
	// Tools are what the agent has instead of the tools of the cell, nil for those.
	Tools []tool
	// Team is the team that there is instead of that of the cell, nil for that.
	Team []member
	// MoreTools are tools the agent has besides those of the cell.
	MoreTools []tool
	// OtherSession binds the session of that id instead of the run's.
	OtherSession string

	// SessionFaults and JournalFaults are what goes wrong with the appends of this call, by their number from 1.
	SessionFaults map[int]pawltest.SessionFault
	JournalFaults journaltest.Plan
	// Slow is which write takes its time, see order.
	Slow step
	// AdvanceFails says that the advance fails, see order.
	AdvanceFails bool
	// Supersede closes a run that waits on the session.
	Supersede bool
	// Dies is where the process ends.
	Dies death
	// Before is what the bodies of calls do before they take effect, by call id, and guardrails before they answer, by name; an
	// error is theirs. Another process has none.
	Before map[string]func(context.Context) error `json:"-"`
	// StopAt asks for the driving to stop after the turn: the body of that call, or the reader of a stream when it is shown
	// the output of it.
	StopAt string
	// SlowReader reads a stream slowly.
	SlowReader bool
	stop       func() // asks for it; made with the call
	// Gate names a file that bodies make, with another ending, when they are entered, and wait for before they take effect.
	Gate string
	// LeaveAt says at which event the reader of a stream leaves: "started", "paused", or the call id of an output.
	LeaveAt string
}

// decision is a verdict on the open interruption of a call.
type decision struct {
	CallID, Verdict, Text string
}

func approve(callID string) decision              { return decision{callID, "approve", ""} }
func reject(callID, text string) decision         { return decision{callID, "reject", text} }
func settle(callID, output string) decision       { return decision{callID, "settle", output} }
func retry(callID string) decision                { return decision{callID, "retry", ""} }
func always(d decision) decision                  { return decision{d.CallID, d.Verdict + " always", d.Text} }
func decideAs(verdict, callID, t string) decision { return decision{callID, verdict, t} }

// on turns a verdict on a call into the decision of the interruption that is open for it.
func (d decision) on(open []pawl.Interruption) (pawl.Decision, error) {
	for _, in := range open {
		if in.CallID != d.CallID {
			continue
		}
		verdict, sticky := strings.CutSuffix(d.Verdict, " always")
		var made pawl.Decision
		switch verdict {
		case "approve":
			made = pawl.Approve(in.ID, reviewer)
		case "reject":
			made = pawl.Reject(in.ID, reviewer, d.Text)
		case "retry":
			made = pawl.Retry(in.ID, reviewer)
		case "settle":
			made = pawl.Settle(in.ID, reviewer, d.Text)
		default:
			return pawl.Decision{}, fmt.Errorf("no verdict %q", d.Verdict)
		}
		made.Always = sticky
		return made, nil
	}
	return pawl.Decision{}, fmt.Errorf("no interruption of call %s is open: %v", d.CallID, open)
}

const reviewer = "reviewer@example.org"

// outcome is what the caller of the API got, as data.
type outcome struct {
	seen
	// Document is the state as JSON.
	Document json.RawMessage

	state *pawl.RunState
	shown []string // the items of a stream that was read here
}

// seen is the part of an outcome that is the same in every cell.
type seen struct {
	Status        pawl.Status
	Final         string
	Interruptions []asked
	Usage         pawl.Usage
	Turns         int
	LastResponse  string
	LastAgent     string // its key
	NewItems      []item.Item
	Replay        []item.Item
	// Error is the error's text, Errors the names of the errors it is.
	Error  string
	Errors []string
}

// asked is an interruption.
type asked struct{ ID, Kind, Server, Tool, CallID, Arguments string }

// errorNames are the errors that scenarios ask for.
var errorNames = []struct {
	name string
	is   func(error) bool
}{
	{"session fault", is(pawltest.ErrSessionFault)},
	{"journal fault", is(journaltest.ErrLost)},
	{"session ambiguous", is(pawl.ErrSessionAmbiguous)},
	{"session mismatch", is(pawl.ErrSessionMismatch)},
	{"stopped", is(context.Canceled)},
	{"stopped after the turn", is(pawl.ErrStopped)},
	{"session waiting", is(pawl.ErrSessionWaiting)},
	{"session busy", is(pawl.ErrSessionBusy)},
	{"superseded", is(pawl.ErrSuperseded)},
	{"decision", is(pawl.ErrDecision)},
	{"decided", is(pawl.ErrDecided)},
	{"claimed", is(pawl.ErrClaimed)},
	{"unknown agent", is(pawl.ErrUnknownAgent)},
	{"model 400", func(err error) bool {
		var e *model.Error
		return errors.As(err, &e) && e.Status == 400
	}},
	{"cut", func(err error) bool {
		var e *model.Error
		return errors.As(err, &e) && (errors.Is(e, model.ErrStreamCut) || errors.Is(e, io.ErrUnexpectedEOF))
	}},
	{"call id", as[*pawl.CallIDError]},
	{"output", as[*pawl.OutputError]},
	{"tripped", as[*pawl.TripwireError]},
	{"guardrail", as[*pawl.GuardrailError]},
	{"incomplete", is(model.ErrIncomplete)},
	{"filter", as[*pawl.FilterError]},
	{"max turns", as[*pawl.MaxTurnsError]},
	{"tool changed", is(pawl.ErrToolChanged)},
	{"tool not found", as[*pawl.ToolNotFoundError]},
	{"journal", as[*pawl.JournalError]},
	{"config", as[*pawl.ConfigError]},
	{"repair payload", func(err error) bool {
		var e *pawl.SessionAmbiguousError
		return errors.As(err, &e) && len(e.Batch) > 0 && len(e.Before) > 0 && len(e.Tail) > 0
	}},
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// newOutcome describes a result or an error. Every error of a run carries its state.
func newOutcome(res *pawl.Result, err error) *outcome {
	o := &outcome{}
	if err != nil {
		o.Error = err.Error()
		for _, e := range errorNames {
			if e.is(err) {
				o.Errors = append(o.Errors, e.name)
			}
		}
		var failed *pawl.RunError
		if !errors.As(err, &failed) || failed.State == nil {
			return o
		}
		o.state = failed.State
		res = failed.State.Result()
	} else {
		o.state = res.State()
	}
	o.Status, o.Final, o.Usage, o.Turns, o.LastResponse = res.Status, res.FinalOutput, res.Usage, res.Turns, res.LastResponseID
	o.LastAgent = o.state.Result().LastAgent.Key
	o.NewItems, o.Replay = res.NewItems(), res.ToInputList()
	for _, in := range res.Interruptions {
		o.Interruptions = append(o.Interruptions, asked{in.ID, string(in.Kind), in.Server, in.Tool, in.CallID, in.Arguments})
	}
	var broken error
	if o.Document, broken = json.Marshal(o.state); broken != nil {
		o.Error, o.Errors = broken.Error(), []string{"document"}
	}
	return o
}

// readErrors reads the errors that an engine brought from another process off their text.
func (o *outcome) readErrors() {
	for _, e := range []struct{ name, text string }{
		{"session fault", pawltest.ErrSessionFault.Error()}, {"session mismatch", pawl.ErrSessionMismatch.Error()}, {"model 400", "HTTP 400"},
	} {
		if strings.Contains(o.Error, e.text) && !slices.Contains(o.Errors, e.name) {
			o.Errors = append(o.Errors, e.name)
		}
	}
}

// call makes a call of the API. from is the state to resume from, nil if only the run's id is known.
func (p *place) call(ctx context.Context, r request, from *pawl.RunState) *outcome {
	runner, opts := p.options(r)
	opts = p.travelling(opts)
	r.stop = func() { runner.StopAfterTurn(p.Run) }
	agent := p.agent(r)
	if err := p.serve(r); err != nil {
		return newOutcome(nil, err)
	}
	if r.Input != nil {
		if r.Mode == stream {
			return p.watch(ctx, runner, runner.Stream(ctx, agent, r.Input, opts), r)
		}
		return newOutcome(runner.Run(ctx, agent, r.Input, opts))
	}
	resumable, err := p.prepare(ctx, runner, r, from)
	if err != nil {
		return newOutcome(nil, err)
	}
	if r.Mode == stream {
		return p.watch(ctx, runner, runner.ResumeStream(ctx, agent, resumable, opts), r)
	}
	return newOutcome(runner.Resume(ctx, agent, resumable, opts))
}

// prepare decides and says what to resume from. With a state at hand decisions are staged on it; with an id alone they are
// submitted to the run, by somebody who has neither agent nor session.
func (p *place) prepare(ctx context.Context, runner *pawl.Runner, r request, from *pawl.RunState) (pawl.Resumable, error) {
	byID := from == nil
	if byID {
		var err error
		if from, err = runner.State(ctx, p.Run); err != nil {
			return nil, err
		}
	}
	if r.Fork != "" {
		fork, err := from.Fork(r.Fork)
		if err != nil {
			return nil, err
		}
		from, byID = fork, false
	}
	for _, verdict := range r.Decide {
		d, err := verdict.on(from.Result().Interruptions)
		if err != nil {
			return nil, err
		}
		if byID {
			err = runner.Decide(ctx, p.Run, d)
		} else {
			err = from.Decide(d)
		}
		if err != nil {
			return nil, err
		}
	}
	if byID {
		return pawl.RunID(p.Run), nil
	}
	return from, nil
}

// watch reads a stream to its end, or leaves it.
func (p *place) watch(ctx context.Context, runner *pawl.Runner, events iter.Seq2[pawl.Event, error], r request) *outcome {
	var shown []string
	for ev, err := range events {
		if err != nil {
			o := newOutcome(nil, err)
			o.shown = shown
			return o
		}
		if r.SlowReader {
			time.Sleep(time.Millisecond)
		}
		at := ""
		switch ev := ev.(type) {
		case *pawl.RunStarted:
			at = "started"
		case *pawl.Paused:
			at = "paused"
			if r.LeaveAt == "" {
				return newOutcome(ev.Result, nil)
			}
		case *pawl.Done:
			return newOutcome(ev.Result, nil)
		case *pawl.ItemCreated:
			shown = append(shown, string(ev.Name)+" "+ev.Item.Head().CallID)
			if ev.Name == pawl.ToolOutput {
				at = ev.Item.Head().CallID
			}
		}
		if at != "" && at == r.StopAt {
			runner.StopAfterTurn(p.Run)
		}
		if at != "" && at == r.LeaveAt {
			break
		}
	}
	state, err := runner.State(ctx, p.Run)
	if err != nil {
		return newOutcome(nil, err)
	}
	return newOutcome(state.Result(), nil)
}
