package pawl

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// Hooks are told what happens in a run. They observe: what they do changes nothing about the
// run, and a panic is only reported, to Runner.OnHookError.
//
// A hook is called when what it tells of is recorded, by the driver that recorded it and on its
// goroutine, one after the other: those of RunOptions first, then those of the agent. It is
// called once, but again if the process dies before that is recorded, too; what the process that
// died had recorded and not told is told by the next driver with hooks. What a driver without
// hooks recorded nobody is told of. The context has the values of the caller's; it does not end
// with the driving.
//
// Nil functions are not called. In a nested run the hooks of its options and of its agents are.
type Hooks struct {
	// AgentStart: an agent has its first turn, since the run began or since the conversation
	// was handed over to it. The request is about to be made.
	AgentStart func(ctx context.Context, ev *AgentStart)
	// AgentEnd: the run has its final output.
	AgentEnd func(ctx context.Context, ev *AgentEnd)
	// ModelStart: the request of a turn is about to be made. It is called once a turn, however
	// many attempts there are; with it every turn costs one more write to the store.
	ModelStart func(ctx context.Context, ev *ModelStart)
	// ModelEnd: the response of a turn is accepted.
	ModelEnd func(ctx context.Context, ev *ModelEnd)
	// Handoff: the conversation is another agent's. Of the agents the one that takes over is
	// told.
	Handoff func(ctx context.Context, ev *HandoffDone)
	// ToolStart: the body of a tool, or the agent that it runs, is about to be started. It is
	// called for each attempt.
	ToolStart func(ctx context.Context, ev *ToolStart)
	// ToolEnd: a call that had an attempt has its output.
	ToolEnd func(ctx context.Context, ev *ToolEnd)
}

// AgentStart says that an agent has its first turn.
type AgentStart struct {
	RunContext
	// Input is what the model is sent.
	Input []Item
}

// AgentEnd says that an agent has given the final output of the run.
type AgentEnd struct {
	RunContext
	Output string
}

// ModelStart says what a model is asked.
type ModelStart struct {
	RunContext
	// Instructions and Input are what the request says: only what is new where the
	// server keeps the conversation.
	Instructions string
	Input        []Item
}

// ModelEnd says what a model answered, and what that cost.
type ModelEnd struct {
	RunContext
	Items []Item
	Usage RequestUsage
}

// HandoffDone says that the conversation was handed over. Its RunContext is that of From.
type HandoffDone struct {
	RunContext
	From, To *Agent
	// CallID is the model's id of the call.
	CallID string
}

// ToolStart is a call that is about to be carried out.
type ToolStart struct{ Call }

// ToolEnd is a call that has its output.
type ToolEnd struct {
	Call
	// Output is what the model reads, Item the item that holds it.
	Output string
	Item   Item
	// Error is what went wrong, for people; empty if nothing did.
	Error string
}

// hooked says that anybody who can come to work in a run has hooks.
func (t *team) hooked(opts *RunOptions) bool {
	if opts.Hooks != nil || t.root.hooked(nil) {
		return true
	}
	for i := range t.others {
		if t.others[i].agent.hooked(nil) {
			return true
		}
	}
	return false
}

func (a *Agent) hooked(seen map[*Agent]bool) bool {
	if a == nil || seen[a] {
		return false
	}
	if a.Hooks != nil {
		return true
	}
	for t := range a.callables() {
		next := (*Agent)(nil)
		switch {
		case t.agent != nil && t.agent.options != nil && t.agent.options.Hooks != nil:
			return true
		case t.agent != nil:
			next = t.agent.agent
		case t.handoff != nil:
			next = t.handoff.agent
		}
		if next == nil {
			continue
		}
		if seen == nil {
			seen = make(map[*Agent]bool)
		}
		if seen[a] = true; next.hooked(seen) {
			return true
		}
	}
	return false
}

// tellsStart says that somebody is to hear of a turn before its request is made.
func (f *frame) tellsStart(turn int) bool {
	for _, h := range [...]*Hooks{f.opts.Hooks, f.agent.Hooks} {
		if h != nil && (h.ModelStart != nil || h.AgentStart != nil && f.m.Activates(turn)) {
			return true
		}
	}
	return false
}

// observer tells hooks of one fact, by a machine that has folded it.
type observer struct {
	d    *drive
	f    *frame
	m    *machine.Frame
	told bool // a hook was called
}

// observe tells the hooks of a fact that is durable, and reports whether there is one that was
// to be told.
func (d *drive) observe(m *machine.Machine, fact journal.Fact) bool {
	o := observer{d: d, m: m.Frame(fact.Frame)}
	if _, ok := fact.Body.(*journal.Started); ok && fact.Frame != "" { // it is news of the call
		caller, _ := o.m.Caller()
		o.m = m.Frame(caller)
	}
	var err error
	if o.f, err = d.frame(o.m.Name()); err != nil {
		d.hookFailed(err)
		return false
	}
	switch b := fact.Body.(type) {
	case *journal.Started:
		if fact.Frame != "" {
			_, call := m.Frame(fact.Frame).Caller()
			call.A = 1
			o.toolStart(call)
		}
	case *journal.Prepared:
		o.turnStart(b)
	case *journal.Responded:
		a := o.asked(b.ID.N)
		tell(&o, "ModelEnd", a, func(h *Hooks) func(context.Context, *ModelEnd) { return h.ModelEnd }, func() *ModelEnd {
			return &ModelEnd{RunContext: o.runContext(a, b.ID.N), Items: append([]Item(nil), b.Items...), Usage: requestOf(o.m, b)}
		})
	case *journal.Transferred:
		from, to := o.asked(b.N), o.agent(b.Agent)
		tell(&o, "Handoff", to, func(h *Hooks) func(context.Context, *HandoffDone) { return h.Handoff }, func() *HandoffDone {
			return &HandoffDone{RunContext: o.runContext(from, b.N), From: from, To: to, CallID: b.Output.Head().CallID}
		})
	case *journal.Intended:
		o.toolStart(b.ID)
	case *journal.Settled:
		if !b.Late && !b.Output.IsZero() && o.m.OutputOf(b.ID) == b.Output {
			o.toolEnd(m, b)
		}
	case *journal.Finished:
		if !b.Cancelled {
			a := o.agent(o.m.Agent())
			tell(&o, "AgentEnd", a, func(h *Hooks) func(context.Context, *AgentEnd) { return h.AgentEnd }, func() *AgentEnd {
				return &AgentEnd{RunContext: o.runContext(a, o.m.Turn()), Output: finalOutput(o.m)}
			})
		}
	}
	return o.told
}

func (o *observer) turnStart(b *journal.Prepared) {
	a := o.agent(o.m.Agent())
	man, _ := o.m.Manifest()
	input := func() []Item {
		view, from, upto := o.m.Requested()
		return append(viewItems(o.m, view), itemsOf(o.m, from, upto)...)
	}
	if o.m.Activates(b.N) {
		tell(o, "AgentStart", a, func(h *Hooks) func(context.Context, *AgentStart) { return h.AgentStart }, func() *AgentStart {
			return &AgentStart{RunContext: o.runContext(a, b.N), Input: input()}
		})
	}
	tell(o, "ModelStart", a, func(h *Hooks) func(context.Context, *ModelStart) { return h.ModelStart }, func() *ModelStart {
		return &ModelStart{RunContext: o.runContext(a, b.N), Instructions: man.Instructions, Input: input()}
	})
}

func (o *observer) toolStart(id journal.EffectID) {
	info, ok := o.m.Call(id)
	if !ok {
		return
	}
	a := o.asked(id.N)
	tell(o, "ToolStart", a, func(h *Hooks) func(context.Context, *ToolStart) { return h.ToolStart }, func() *ToolStart {
		return &ToolStart{o.call(a, id, info)}
	})
}

// toolEnd tells of the output of a call, if toolStart told of an attempt.
func (o *observer) toolEnd(m *machine.Machine, b *journal.Settled) {
	info, ok := o.m.Call(b.ID)
	if !ok || info.Attempt == 0 || info.Spec.Agent != "" && m.Frame(machine.FrameName(o.m.Name(), b.ID)) == nil {
		return
	}
	a, id := o.asked(b.ID.N), b.ID
	id.A = info.Attempt
	tell(o, "ToolEnd", a, func(h *Hooks) func(context.Context, *ToolEnd) { return h.ToolEnd }, func() *ToolEnd {
		return &ToolEnd{Call: o.call(a, id, info), Output: textOf(b.Output), Item: b.Output, Error: b.Error}
	})
}

func (o *observer) call(a *Agent, id journal.EffectID, info machine.CallInfo) Call {
	return Call{RunContext: o.runContext(a, id.N), Tool: info.Spec.Name, ID: info.CallID, Key: o.m.KeyOf(id), Attempt: id.A,
		Arguments: argumentsOf(o.m.Arguments(id)), ApprovedBy: info.By, Approvals: info.Approvals}
}

func (o *observer) runContext(a *Agent, turn int) RunContext {
	return RunContext{Run: o.d.m.Run(), Agent: a, Turn: turn, Value: o.f.opts.Context, Invocation: o.f.invoked}
}

// asked is the agent of a turn that has its response.
func (o *observer) asked(turn int) *Agent { return o.agent(o.m.ManifestOf(turn).Agent) }

func (o *observer) agent(key string) *Agent {
	if a := o.f.team.find(key); a != nil {
		return a
	}
	return &Agent{Key: key}
}

// tell calls the hooks of the run, and then those of an agent. Each has an event of its own.
func tell[E any](o *observer, name string, a *Agent, of func(*Hooks) func(context.Context, *E), event func() *E) {
	for _, h := range [...]*Hooks{o.f.opts.Hooks, a.Hooks} {
		if h == nil {
			continue
		}
		if hook := of(h); hook != nil {
			o.told = true
			o.d.callHook(name, func(ctx context.Context) { hook(ctx, event()) })
		}
	}
}

// callHook calls a hook. A panic says nothing about the run.
func (d *drive) callHook(name string, hook func(context.Context)) {
	defer func() {
		if v := recover(); v != nil {
			d.hookFailed(&PanicError{In: "hook " + name, Value: v, Stack: string(debug.Stack())})
		}
	}()
	hook(context.WithValue(d.bg, inHook{}, d))
}

// hookFailed reports what went wrong in a hook.
func (d *drive) hookFailed(err error) {
	err = &RunError{Run: d.m.Run(), Err: err}
	if d.r.OnHookError == nil {
		slog.ErrorContext(d.bg, err.Error())
		return
	}
	defer func() {
		if v := recover(); v != nil {
			slog.ErrorContext(d.bg, (&RunError{Run: d.m.Run(), Err: &PanicError{In: "Runner.OnHookError", Value: v}}).Error())
		}
	}()
	d.r.OnHookError(err)
}
