package pawltest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// ScriptedStep is the answer to one call, and what that call must look like. The zero value is a completed response
// without output.
type ScriptedStep struct {
	// Want is the input the call must carry, its own and not what it continues; items are compared as JSON values. Nil
	// accepts any input, an empty slice asks for none.
	Want []item.Item
	// Check is asked besides Want when it is not nil.
	Check func(ScriptedCall) error

	// Output is what the model says: item.FunctionCallItem, item.MessageItem, item.ReasoningItem or any other item.
	Output []item.Item
	// ResponseID is the id of the response, "resp_" and the number of the call if empty. NoResponseID gives none.
	ResponseID   string
	NoResponseID bool
	// RequestID is the id of the request in the provider's logs.
	RequestID string
	// Usage is what is reported, ScriptedModel.Usage if nil.
	Usage *model.Usage
	// Events are what a stream shows instead of the events that are made of Output. The response is Output all the same.
	Events []model.Event

	// Err is returned instead of a response. A *model.Error says whether the call was processed and may be repeated; a
	// run knows nothing about any other error. It excludes Output, Events and Derive.
	Err error
	// Derive makes the step from the call: another step, which may be derived too. It excludes Output, Events and Err.
	Derive func(ScriptedCall) ScriptedStep

	Fault *ScriptedFault
}

// ScriptedText is the step of one assistant message.
func ScriptedText(text string) ScriptedStep { return ScriptedItems(item.MessageItem("", text)) }

// ScriptedItems is the step of a response of the given items.
func ScriptedItems(output ...item.Item) ScriptedStep { return ScriptedStep{Output: output} }

// ScriptedFault is one thing that goes wrong with a call. With neither Err nor Cut nothing fails: the call only waits at the
// point (Delay, Hold) and then goes on. A wait ends early with the context of the call.
type ScriptedFault struct {
	Point FaultPoint
	// Events is how many events of the stream are shown before a FaultMidStream; a blocking call has none to show.
	Events int
	// Stored says that a conversation keeps what a FaultMidStream cuts or fails.
	Stored bool
	// Delay and Hold make the call wait: so long, and until the channel is closed.
	Delay time.Duration
	Hold  <-chan struct{}
	// Err is returned. Cut returns what an adapter returns whose connection is lost: a *model.Error that may be
	// retried and does not know whether the call was processed, with model.ErrStreamCut in the middle of a stream.
	Err error
	Cut bool
}

// strike lets the fault happen: it waits, and returns the error of a fault that fails.
func (f *ScriptedFault) strike(ctx context.Context) error {
	if !(&ResponsesFault{Delay: f.Delay, Hold: f.Hold}).wait(ctx) {
		return &model.Error{Err: ctx.Err()}
	}
	switch {
	case f.Err != nil:
		return f.Err
	case !f.Cut:
		return nil
	case f.Point == FaultMidStream:
		return &model.Error{Retryable: true, Err: fmt.Errorf("%w: %w", model.ErrStreamCut, io.ErrUnexpectedEOF)}
	}
	return &model.Error{Retryable: true, Err: io.ErrUnexpectedEOF}
}

// UnexpectedCallError says that a call came when the script was used up.
type UnexpectedCallError struct {
	Call ScriptedCall
	// Steps is how many steps the script had.
	Steps int
}

// Error says which call it was and what it carried.
func (e *UnexpectedCallError) Error() string {
	return fmt.Sprintf("pawltest: call %d is beyond the script of %d steps; its input:\n%s", e.Call.Number, e.Steps, lines(e.Call.Input))
}

// InvalidStepError says that a step contradicts itself.
type InvalidStepError struct {
	// Step counts the steps of the script from 0.
	Step   int
	Reason string
}

// Error says which step and why.
func (e *InvalidStepError) Error() string {
	return fmt.Sprintf("pawltest: step %d (from 0) is invalid: %s", e.Step, e.Reason)
}

// clone copies everything of a step that could be changed.
func (s *ScriptedStep) clone() ScriptedStep {
	c := *s
	c.Want, c.Output, c.Events = slices.Clone(s.Want), slices.Clone(s.Output), slices.Clone(s.Events)
	for i := range c.Events {
		c.Events[i].Raw = slices.Clone(c.Events[i].Raw)
	}
	c.Usage, c.Fault = clonePointer(s.Usage), clonePointer(s.Fault)
	return c
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// check says what is wrong with a step, or with the call that took it.
func (s *ScriptedStep) check(call *ScriptedCall) error {
	says := s.Output != nil || s.Events != nil
	reason := ""
	switch {
	case s.Err != nil && s.Derive != nil:
		reason = "it has both an error and a function that derives it"
	case says && s.Err != nil:
		reason = "it has both an output and an error"
	case says && s.Derive != nil:
		reason = "it has both an output and a function that derives it"
	case s.NoResponseID && s.ResponseID != "":
		reason = "it has both a response id and none"
	case slices.ContainsFunc(s.Output, item.Item.IsZero):
		reason = "its output has an empty item"
	}
	switch {
	case reason != "":
		return &InvalidStepError{Step: call.step, Reason: reason}
	case s.Want != nil && !sameItems(s.Want, call.Input):
		return fmt.Errorf("pawltest: call %d: unexpected input\nwant:\n%s\ngot:\n%s", call.Number, lines(s.Want), lines(call.Input))
	case s.Check != nil:
		if err := s.Check(call.clone()); err != nil {
			return fmt.Errorf("pawltest: call %d: %w", call.Number, err)
		}
	}
	return nil
}

// response makes the response of a step that has no error.
func (s *ScriptedStep) response(number int, usage *model.Usage) *model.Response {
	r := &model.Response{ID: s.ResponseID, RequestID: s.RequestID, Items: s.Output, Usage: clonePointer(usage)}
	if s.Usage != nil {
		r.Usage = s.Usage
	}
	if r.ID == "" && !s.NoResponseID {
		r.ID = fmt.Sprintf("resp_%d", number)
	}
	return r
}
