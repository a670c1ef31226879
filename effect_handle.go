package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// ErrorHandlers give a run a final output where it would fail. Nil means that it fails. A
// handler counts for the turns that are prepared by a drive that has it: the error of a run
// that had none stays. It makes no request, and no tool is called again.
type ErrorHandlers struct {
	// MaxTurns is asked when no turn is left, with a *MaxTurnsError.
	MaxTurns ErrorHandler
	// Refusal is asked when the model refuses to answer, with a *RefusalError.
	Refusal ErrorHandler
	// InvalidOutput is asked when the final output does not fit the agent's output type,
	// with an *OutputError. With it also a structured output that is missing or empty is
	// invalid; without, the model is asked again.
	InvalidOutput ErrorHandler
}

// ErrorHandler answers an error with a final output. Nil declines: the error stands, as does an
// error or a panic of the handler's own; the run can be resumed, and the handler is asked again.
// It is called on the goroutine of the driver, and may be called again after a crash until
// its answer is recorded.
type ErrorHandler func(ctx context.Context, e *HandledError) (*Handled, error)

// HandledError is an error and what the run had come to.
type HandledError struct {
	// RunContext is that of the agent that has the conversation.
	RunContext
	// Err is the error: a *MaxTurnsError, a *RefusalError or an *OutputError.
	Err error
	// History is the whole conversation, NewItems what the run added to it; as those of a
	// Result.
	History, NewItems []Item
	// Usage sums the requests so far.
	Usage Usage
}

// Handled is the final output of a run that would have failed.
type Handled struct {
	// Output is a string for an agent whose output is text. For structured output it is a
	// value of the output type, or a string of JSON as a model would write it. What does not
	// fit is an *OutputError, which fails the run.
	Output any
	// OmitFromHistory keeps the output from becoming a message of the assistant that is shown,
	// stored in the session, and part of the conversation.
	OmitFromHistory bool
}

// of returns the handler for an error, nil if there is none.
func (h *ErrorHandlers) of(kind journal.Handles) ErrorHandler {
	switch kind {
	case journal.HandlesMaxTurns:
		return h.MaxTurns
	case journal.HandlesRefusal:
		return h.Refusal
	case journal.HandlesInvalid:
		return h.InvalidOutput
	}
	return nil
}

// kinds are the errors for which there is a handler, as a manifest has them.
func (h *ErrorHandlers) kinds() (list []journal.Handles) {
	for _, kind := range []journal.Handles{journal.HandlesMaxTurns, journal.HandlesRefusal, journal.HandlesInvalid} {
		if h.of(kind) != nil {
			list = append(list, kind)
		}
	}
	return list
}

// handles says that an error of the newest turn has a handler: the turn said so, and it is there.
func (f *frame) handles(kind journal.Handles) bool {
	man, _ := f.m.Manifest()
	return f.opts.ErrorHandlers.of(kind) != nil && slices.Contains(man.Handles, kind)
}

// handle asks the handler of the error that stands between the run and its end. One that is
// gone leaves the error [M20].
func (f *frame) handle(e machine.Effect) (journal.Body, error) {
	kind, n := f.m.Unhandled()
	cause := f.unhandled(kind)
	handler := f.opts.ErrorHandlers.of(kind)
	if handler == nil {
		return nil, cause
	}
	_, input := f.m.InputEnd()
	settled := f.m.Settled()
	answer, err := handler(f.d.ctx, &HandledError{RunContext: f.runContext(), Err: cause, History: itemsOf(f.m, 0, settled),
		NewItems: itemsOf(f.m, input, settled), Usage: f.d.m.Usage()})
	if err != nil {
		return nil, because(fmt.Errorf("pawl: the error handler for %s", kind), err)
	}
	if answer == nil {
		return &journal.Handled{N: n, Declined: true}, cause
	}
	b := &journal.Handled{N: n}
	if b.Text, err = f.agent.Output.text(answer.Output); err != nil {
		return nil, because(fmt.Errorf("pawl: the error handler for %s", kind), err)
	}
	if !answer.OmitFromHistory {
		b.Item = item.MessageItem("", b.Text)
	}
	return b, nil
}

// unhandled is the error of that kind that the frame has come to.
func (f *frame) unhandled(kind journal.Handles) error {
	if kind == journal.HandlesMaxTurns {
		return &MaxTurnsError{MaxTurns: f.m.MaxTurns()}
	}
	_, items, _ := f.m.Response()
	_, _, err := f.final(items)
	if err == nil { // by the output type that the agent has now
		err = &OutputError{Err: errors.New("it did not fit the type that the agent had before")}
	}
	return err
}

// text writes a final output as a model would.
func (t OutputType) text(v any) (string, error) {
	text, isText := v.(string)
	if t.isText() {
		if !isText {
			return "", &OutputError{Err: fmt.Errorf("it is of type %T, and the output of the agent is text", v)}
		}
		return strings.ToValidUTF8(text, "\uFFFD"), nil
	}
	if !isText || t.goType == reflect.TypeFor[string]() {
		raw, err := json.Marshal(v)
		if err != nil {
			return "", &OutputError{Err: err}
		}
		if text = string(raw); t.schema.Wrapped() {
			text = `{"response":` + text + `}`
		}
	}
	if err := t.schema.Validate(text); err != nil {
		return "", &OutputError{Text: text, Err: err}
	}
	return text, nil
}
