package pawl

import (
	"reflect"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// Status says where a run stands.
type Status string

// The states of a run.
const (
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting"
	StatusFinished  Status = "finished"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled" // or ended by a guardrail
)

func statusOf(m *machine.Machine) Status { return Status(m.Status().String()) }

// Usage sums what a run's model requests cost. Unreported counts requests, among
// Requests, whose tokens are unknown.
type Usage = machine.Usage

// Result is what a run has come to: a final output, or a pause. It does not change
// when the run goes on.
type Result struct {
	// Run is the run's id.
	Run    string
	Status Status
	// FinalOutput is the text of the final output, empty unless Status is
	// StatusFinished. See OutputAs for structured output.
	FinalOutput string
	// Interruptions is what waits for a decision.
	Interruptions []Interruption
	// Usage sums the requests so far; Requests returns each of them.
	Usage Usage
	// LastAgent is the agent that has the conversation, whose output the final output is.
	// One that is not known here, as for RunState.Result, has only its Key.
	LastAgent *Agent
	// LastResponseID is the newest id a response had.
	LastResponseID string
	// Turns counts the model turns so far.
	Turns int
	// Warnings say what the options of Run, Stream or Resume ask for and the run does not do.
	Warnings []string
	// Invocation is set in the result of an agent that was called as a tool, which
	// AgentFunc.Output gets: it is the call. LastResponseID, Turns, FinalOutput, NewItems and
	// ToInputList are the nested run's then; everything else is the whole run's.
	Invocation *Invocation

	frame *machine.Frame
	state *RunState
}

func newResult(m *machine.Machine, s *RunState, last *Agent) *Result {
	r := &Result{Run: m.Run(), Status: statusOf(m), Interruptions: interruptionsOf(m), Usage: m.Usage(),
		LastAgent: last, LastResponseID: m.ResponseID(), Turns: m.Turn(), frame: m.Frame(""), state: s}
	r.FinalOutput = finalOutput(r.frame)
	return r
}

func finalOutput(m *machine.Frame) string { return outputText(m, m.Finished()) }

// outputText is the text of what is, or may become, the final output.
func outputText(m *machine.Frame, f *journal.Finished) string {
	switch {
	case f == nil || f.Cancelled:
		return ""
	case f.At >= 0:
		return textOf(m.At(f.At))
	default:
		return f.Text
	}
}

// textOf returns the text of a message or of a call's output.
func textOf(it Item) string {
	if m, err := it.Message(); err == nil {
		return m.Text()
	}
	if o, err := it.FunctionCallOutput(); err == nil {
		return o.Text
	}
	if o, err := it.CustomToolCallOutput(); err == nil {
		return o.Text
	}
	return ""
}

// Waiting reports whether the run waits for decisions.
func (r *Result) Waiting() bool { return r.Status == StatusWaiting }

// State returns the run's state, a copy for each call.
func (r *Result) State() *RunState {
	s := *r.state
	return &s
}

// NewItems returns what the run added to the conversation and is settled: the model's
// items and the outputs of its calls. A response with an open call is not in it.
func (r *Result) NewItems() []Item {
	_, input := r.frame.InputEnd()
	return itemsOf(r.frame, input, max(input, r.frame.Settled()))
}

// ToInputList returns the whole conversation as the next model call would read it:
// what the session held, the input, and what the run added.
func (r *Result) ToInputList() Input { return itemsOf(r.frame, 0, r.frame.Settled()) }

// OutputAs returns the final output as a T, the type the agent's OutputOf was given. For
// text output T is string. It returns an *OutputError if the output is another type's,
// or the run has none.
func OutputAs[T any](r *Result) (T, error) {
	var v T
	if r.Status != StatusFinished {
		return v, &OutputError{Err: &ConfigError{Field: "OutputAs", Problem: "the run is " + string(r.Status)}}
	}
	if s, ok := any(&v).(*string); ok && r.LastAgent.Output.isText() {
		*s = r.FinalOutput
		return v, nil
	}
	out := r.LastAgent.Output
	if out.goType != reflect.TypeFor[T]() {
		out = OutputOf[T]()
	}
	if out.err != nil {
		return v, &OutputError{Text: r.FinalOutput, Err: out.err}
	}
	if err := out.schema.Decode(r.FinalOutput, &v); err != nil {
		return v, &OutputError{Text: r.FinalOutput, Err: err}
	}
	return v, nil
}
