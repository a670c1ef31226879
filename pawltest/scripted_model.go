package pawltest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
)

// ScriptedModel is a [model.Model] that answers from a script, in the process and without a network. Each call takes the
// next step and is recorded. Make one with [NewScriptedModel], or use the zero value and [ScriptedModel.Enqueue]. The
// exported fields must not change once the model is in use; all methods may be called from any goroutine.
type ScriptedModel struct {
	// Name is the model's name as Info gives it, "scripted" if empty.
	Name string
	// UniqueCallIDs declares that call ids are never reused. Without it an equal call in a later response is a new call,
	// as it is for most providers.
	UniqueCallIDs bool
	// ServerState declares that the model continues responses and conversations. Any id is accepted. What the calls on a
	// conversation said and were answered is kept for ConversationTail.
	ServerState bool
	// ServerPrompts declares that the model knows prompts that its server keeps.
	ServerPrompts bool
	// Usage is reported by steps that have none. Nil means that nothing is reported.
	Usage *model.Usage
	// DeltaSize is the number of bytes of text in one delta of a stream, 16 if 0.
	DeltaSize int

	mu            sync.Mutex
	steps         []ScriptedStep
	taken         int
	calls         []ScriptedCall
	problems      []string
	conversations map[string][]item.Item
}

var (
	_ model.Model              = (*ScriptedModel)(nil)
	_ model.ConversationReader = (*ScriptedModel)(nil)
)

// NewScriptedModel returns a model with the given script.
func NewScriptedModel(steps ...ScriptedStep) *ScriptedModel {
	m := &ScriptedModel{}
	m.Enqueue(steps...)
	return m
}

// Enqueue appends steps to the script. What the caller does to them afterwards changes nothing.
func (m *ScriptedModel) Enqueue(steps ...ScriptedStep) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range steps {
		m.steps = append(m.steps, steps[i].clone())
	}
}

// Remaining returns the number of steps that no call has taken.
func (m *ScriptedModel) Remaining() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.steps) - m.taken
}

// Calls returns the calls in the order in which they came, unexpected and failed ones included. They are snapshots: neither
// a later call nor the caller changes what the model has recorded.
func (m *ScriptedModel) Calls() []ScriptedCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := make([]ScriptedCall, len(m.calls))
	for i := range m.calls {
		calls[i] = m.calls[i].clone()
	}
	return calls
}

// AssertComplete fails the test if a call did not go by the script, or if steps are left.
func (m *ScriptedModel) AssertComplete(tb testing.TB) {
	tb.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, problem := range m.problems {
		tb.Errorf("pawltest: scripted model: %s", problem)
	}
	if left := len(m.steps) - m.taken; left > 0 {
		tb.Errorf("pawltest: scripted model: %d of %d steps were not asked for", left, len(m.steps))
	}
}

// Info implements model.Model.
func (m *ScriptedModel) Info() model.Info {
	return model.Info{Provider: "pawltest", Name: cmp.Or(m.Name, "scripted"), UniqueCallIDs: m.UniqueCallIDs, ServerState: m.ServerState,
		ServerPrompts: m.ServerPrompts}
}

// ConversationTail implements model.ConversationReader.
func (m *ScriptedModel) ConversationTail(ctx context.Context, conversationID string, limit int) ([]item.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.conversations[conversationID]
	return slices.Clone(items[max(0, len(items)-max(0, limit)):]), nil
}

// Call implements model.Model. A call that the script does not expect, or not like that, gets an error that is not worth
// retrying; AssertComplete reports it too.
func (m *ScriptedModel) Call(ctx context.Context, req *model.Request, emit func(*model.Event) bool) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, &model.Error{Delivery: model.DeliveryRefused, Err: err}
	}
	call, step, err := m.take(req, emit != nil)
	var res *model.Response
	if err == nil {
		res, err = m.answer(ctx, &call, &step, emit)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.calls[call.Number-1]
	c.ResponseID, c.Accepted, c.Err = call.ResponseID, call.Accepted, err
	return res, err
}

// take records a call and takes the next step.
func (m *ScriptedModel) take(req *model.Request, streamed bool) (ScriptedCall, ScriptedStep, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	call := newScriptedCall(len(m.calls)+1, req, streamed)
	m.calls = append(m.calls, call.clone())
	if m.taken == len(m.steps) {
		err := &UnexpectedCallError{Call: call.clone(), Steps: len(m.steps)}
		m.problems = append(m.problems, err.Error())
		return call, ScriptedStep{}, refused(err)
	}
	step := m.steps[m.taken].clone()
	m.taken++
	call.step = m.taken - 1
	return call, step, nil
}

// answer plays a step.
func (m *ScriptedModel) answer(ctx context.Context, call *ScriptedCall, step *ScriptedStep, emit func(*model.Event) bool) (*model.Response, error) {
	faults, err := m.derive(call, step)
	if err != nil {
		return nil, m.mismatch(err)
	}
	strike := func(p FaultPoint) error {
		for _, f := range faults {
			if f.Point == p {
				if err := f.strike(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := strike(FaultBefore); err != nil {
		return nil, err
	}
	if step.Err != nil {
		return nil, step.Err
	}
	res := step.response(call.Number, m.Usage)
	call.ResponseID = res.ID
	if err := m.stream(ctx, call, step, res, faults, emit); err != nil {
		return nil, err
	}
	m.accept(call, res)
	if err := strike(FaultAfter); err != nil {
		return nil, err
	}
	return res, nil
}

// derive compares a step with its call and replaces a derived one by what it derives, until there is nothing to derive. It
// returns the faults of all of them.
func (m *ScriptedModel) derive(call *ScriptedCall, step *ScriptedStep) (faults []*ScriptedFault, err error) {
	const deepest = 100
	for range deepest {
		if err := step.check(call); err != nil {
			return nil, err
		}
		if step.Fault != nil {
			faults = append(faults, step.Fault)
		}
		if step.Derive == nil {
			return faults, nil
		}
		derived := step.Derive(call.clone())
		*step = derived.clone()
	}
	return nil, &InvalidStepError{Step: call.step, Reason: fmt.Sprintf("derives a derived step %d times", deepest)}
}

// mismatch notes what did not go by the script; the error it returns is the model's answer.
func (m *ScriptedModel) mismatch(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problems = append(m.problems, err.Error())
	return refused(err)
}

func refused(err error) error { return &model.Error{Delivery: model.DeliveryRefused, Err: err} }

// accept keeps what a call on a conversation said and was answered, once.
func (m *ScriptedModel) accept(call *ScriptedCall, res *model.Response) {
	if call.Accepted {
		return
	}
	call.Accepted = true
	if call.ConversationID == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conversations == nil {
		m.conversations = map[string][]item.Item{}
	}
	kept := m.conversations[call.ConversationID]
	m.conversations[call.ConversationID] = slices.Concat(kept, call.Input, res.Items)
}
