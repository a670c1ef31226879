package pawl

import (
	"fmt"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/session"
)

// frame is the drive's side of the run itself, or of a run nested in it: whose loop it is and
// what is kept from one of its effects to the next. One code path drives both.
type frame struct {
	d       *drive
	m       *machine.Frame
	team    team
	agent   *Agent // of the team, that has the conversation
	opts    *RunOptions
	session session.Session
	invoked *Invocation // the call that runs it, nil for the run itself

	listing *listing // nil if the sources were not asked
	request request
	read    reading
}

// effectRef names an effect of a run: its id is unique within its frame only.
type effectRef struct {
	frame string
	id    journal.EffectID
}

// String names the effect for people.
func (r effectRef) String() string {
	if r.frame == "" {
		return effectName(r.id)
	}
	return fmt.Sprintf("%s of nested run %s", effectName(r.id), r.frame)
}

// use makes the drive go on from what a ledger says.
func (d *drive) use(m *machine.Machine) {
	d.m = m
	d.root.m = m.Frame("")
}

// frame returns the drive's side of a frame. An error says that the agent of a nested run
// cannot be reached any more, or its session; one that is closed needs no agent.
func (d *drive) frame(name string) (*frame, error) {
	if name == "" {
		return d.root, nil
	}
	if f := d.frames[name]; f != nil {
		return f, nil
	}
	m := d.m.Frame(name)
	caller, call := m.Caller()
	outer, err := d.frame(caller)
	if err != nil {
		return nil, err
	}
	info, _ := outer.m.Call(call)
	f := &frame{d: d, m: m, opts: &RunOptions{}}
	if t := outer.askedFor(call).runs(info.Spec.Name, info.Spec.Agent); t != nil {
		f.opts = t.agent.optionsOf(outer.opts)
		f.team, err = d.r.teamWith(t.agent.agent, m.Agent())
	} else {
		err = toolChanged(info, fmt.Sprintf("does not run agent %q any more", info.Spec.Agent))
	}
	if err != nil {
		if !m.Closed() {
			return nil, err
		}
		f.team = bareTeam(info.Spec.Agent)
	}
	if err := f.turnTo(m.Agent()); err != nil {
		return nil, err
	}
	if f.session, err = d.r.bind(m.Session(), f.opts.Session, false); err != nil {
		return nil, err
	}
	f.invoked = &Invocation{Tool: info.Spec.Name, CallID: info.CallID, Key: outer.m.KeyOf(call), Arguments: argumentsOf(outer.m.Arguments(call))}
	if d.frames == nil {
		d.frames = make(map[string]*frame)
	}
	d.frames[name] = f
	return f, nil
}

// askedFor is the agent that made a call: after a handoff the frame has another one, and its hooks
// may have to be told yet of what was before.
func (f *frame) askedFor(call journal.EffectID) *Agent {
	if a := f.team.find(f.m.ManifestOf(call.N).Agent); a != nil {
		return a
	}
	return f.agent
}

// agentIn returns the agent that has the conversation in a frame of a run in which this one
// has it, nil if it cannot be reached.
func (a *Agent) agentIn(m *machine.Machine, frame string) *Agent {
	if frame == "" {
		return a
	}
	f := m.Frame(frame)
	if f == nil {
		return nil
	}
	caller, call := f.Caller()
	outer := a.agentIn(m, caller)
	if outer == nil {
		return nil
	}
	info, _ := m.Frame(caller).Call(call)
	if t := outer.runs(info.Spec.Name, info.Spec.Agent); t != nil {
		if team, err := teamOf(t.agent.agent); err == nil {
			return team.find(f.Agent())
		}
	}
	return nil
}

// outputOf returns the output a call of a frame is settled with, zero while it is open or if
// there is no such call.
func (d *drive) outputOf(frame string, call journal.EffectID) Item {
	if f := d.m.Frame(frame); f != nil {
		return f.OutputOf(call)
	}
	return Item{}
}

// turnTo makes the agent with that key the one that is driven.
func (f *frame) turnTo(key string) error {
	if f.agent = f.team.find(key); f.agent == nil {
		return unknownAgent(key)
	}
	return nil
}

// transferred makes the target of a handoff the agent of the frame.
func (d *drive) transferred(frame, key string) error {
	f, err := d.frame(frame)
	if err != nil {
		return err
	}
	return f.turnTo(key)
}
