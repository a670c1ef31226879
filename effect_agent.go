package pawl

import (
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// enter begins the nested run of a call: its outcome is the first fact of that run [M17.2].
func (f *frame) enter(e machine.Effect) (journal.Body, error) {
	b, err := f.agentBody(e.About)
	if err != nil {
		return nil, err
	}
	if b.edited != "" {
		if err := b.tool.schema.Validate(b.edited); err != nil {
			return nil, err
		}
	}
	t := b.tool.agent
	input, err := t.input(f.d.ctx, &b.call)
	if err != nil {
		return nil, err
	}
	opts := t.optionsOf(f.opts)
	team, err := f.d.r.teamToStart(t.agent, opts)
	if err != nil {
		return nil, err
	}
	started, err := f.d.r.started(&team, input, opts)
	if err != nil {
		return nil, err
	}
	started.Run = ""
	if err := f.d.taken(started); err != nil {
		return nil, err
	}
	if err := f.d.m.Check(journal.Fact{Frame: machine.FrameName(e.Frame, e.About), Body: started}); err != nil {
		return nil, err
	}
	return started, nil
}

// taken refuses a nested run on the session or conversation of another one that is open, or is
// about to begin. Those around it the machine looks at [M17.3].
func (d *drive) taken(b *journal.Started) error {
	others := make([]*journal.Started, 0, len(d.queue))
	for f := range d.m.Frames() {
		others = append(others, f.Started())
	}
	for _, o := range d.queue {
		if s, ok := o.body.(*journal.Started); ok {
			others = append(others, s)
		}
	}
	for _, o := range others {
		switch {
		case b.Session != nil && o.Session != nil && o.Session.ID == b.Session.ID && o.Session.Backend == b.Session.Backend:
			return fmt.Errorf("%w: session %q", ErrSessionBusy, b.Session.ID)
		case b.Conversation != "" && o.Conversation == b.Conversation:
			return fmt.Errorf("%w: conversation %q", ErrSessionBusy, b.Conversation)
		}
	}
	return nil
}

// agentBody is an agent call with its tool and what user code sees of it.
func (f *frame) agentBody(call journal.EffectID) (*body, error) {
	info, _ := f.m.Call(call)
	if f.agent.runs(info.Spec.Name, info.Spec.Agent) == nil {
		return nil, toolChanged(info, fmt.Sprintf("does not run agent %q any more", info.Spec.Agent))
	}
	call.A = 1
	b, err := f.newBody(call, f.m.KeyOf(call), info)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// leave makes the output of a call whose nested run has ended, or whose failure the caller is
// told of [M17.6].
func (f *frame) leave(e machine.Effect) (journal.Body, error) {
	id := e.About
	id.A = 1
	info, _ := f.m.Call(id)
	b, err := f.agentBody(e.About)
	if info.Failure != nil {
		return f.told(b, id, info)
	}
	if err != nil {
		return nil, err
	}
	res := f.nestedResult(b)
	text := lastText(res)
	if output := b.tool.agent.output; output != nil {
		if text, err = output(f.d.ctx, &b.call, res); err != nil {
			return nil, err
		}
	}
	s := &journal.Settled{ID: id, Output: b.fc.Output(b.note() + text)}
	if err := b.guardOutput(f.d.ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// told is the outcome of a call whose failure the caller is told of. The tool may be gone.
func (f *frame) told(b *body, id journal.EffectID, info machine.CallInfo) (journal.Body, error) {
	err := f.d.failed(info.Failure, nil)
	if info.Failure.Code == machine.CodeTripped {
		err = tripwire(f.d.m, f.d.m.Frame(machine.FrameName(f.m.Name(), id)).Tripped())
	}
	s := &journal.Settled{ID: id, Outcome: journal.ToolFailed, Error: errorText(err)}
	if b != nil {
		s.Output = b.fc.Output(b.note() + b.tool.errorText(f.d.ctx, &b.call, err))
		if err := b.guardOutput(f.d.ctx, s); err != nil { // there is no other text to fall back on
			s.Output, s.Error = b.fc.Output(b.note()+noVerdictText), withheldError
		}
		return s, f.d.ctx.Err()
	}
	s.Output, err = answer(info.Item, agentFailed(err))
	return s, err
}

// agentFailed is what the caller reads, who cannot resume anything.
func agentFailed(err error) string {
	if out, ok := errors.AsType[*MaxTurnsError](err); ok {
		return fmt.Sprintf("The agent failed: it had no final output after %d turns.", out.MaxTurns)
	}
	return "The agent failed: " + bare(err)
}

// nestedResult is what the nested run of a call has come to.
func (f *frame) nestedResult(b *body) *Result {
	name := machine.FrameName(b.of.frame, b.of.id)
	m, last := f.d.m.Frame(name), b.tool.agent.agent
	if nested, err := f.d.frame(name); err == nil {
		last = nested.agent
	}
	s := newState(f.d.records, nil)
	return &Result{Run: f.d.m.Run(), Status: StatusFinished, FinalOutput: finalOutput(m), Usage: f.d.m.Usage(), LastResponseID: m.ResponseID(),
		Turns: m.Turn(), Invocation: &Invocation{Tool: b.tool.name, CallID: b.call.ID, Key: b.call.Key, Arguments: b.call.Arguments},
		LastAgent: last, frame: m, state: s}
}

// lastText is the final output of a run, or, if that is empty, the newest text of its agent or
// of a tool.
func lastText(r *Result) string {
	if r.FinalOutput != "" {
		return r.FinalOutput
	}
	items := r.NewItems()
	for i := len(items) - 1; i >= 0; i-- {
		it := items[i]
		if it.Type() != item.TypeMessage && !item.IsOutput(it.Type()) {
			continue
		}
		if text := textOf(it); text != "" {
			return text
		}
	}
	return ""
}
