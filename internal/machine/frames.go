package machine

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
)

// MaxDepth is how deep nested runs may be.
const MaxDepth = 8

// CodeMaxDepth is the code of the failure of a call that would nest a run too deep.
const CodeMaxDepth = "max_depth"

// Frame is the run itself or a run nested in it: what the facts say of one loop with its
// own history, turns and calls. It is not safe for concurrent use.
type Frame struct {
	state
	m        *Machine
	name     string
	parent   *Frame // nil for the run itself
	call     *call  // of the parent
	depth    int
	handed   map[journal.EffectID]bool // true while in flight, false once ended
	inFlight int
}

// root is the frame of the run itself. Its methods are the machine's.
type root = Frame

// caller returns the frame and the call whose nested run would have that name; the call
// is nil if there is none.
func (m *Machine) caller(name string) (*Frame, *call) {
	parent, id, ok := parseFrame(name)
	if f := m.Frame(parent); ok && f != nil {
		return f, f.find(id)
	}
	return nil, nil
}

// agent says that the call runs an agent: it has no body.
func (c *call) agent() bool { return c.spec != nil && c.spec.Agent != "" }

// nested returns the frame of an agent call, nil if it was not entered.
func (f *Frame) nested(c *call) *Frame { return f.m.named[FrameName(f.name, c.id)] }

// closed says that the frame starts nothing new: the run is cancelled, or what the frame
// was for has failed [M17.9].
func (f *Frame) closed() bool { return f.m.cancelled != nil || f.ending }

// checkEntered checks the first fact of a nested run [M17.3].
func (m *Machine) checkEntered(name string, b *journal.Started) error {
	f, c := m.caller(name)
	switch {
	case c == nil || c.state != callReady || !c.agent() || f.closed():
		return notDue("no call runs frame %q", name)
	case f.depth >= MaxDepth:
		return notDue("frame %q is too deep", name)
	case !f.cleared(c):
		return notDue("a guardrail keeps frame %q from starting", name)
	case b.Run != "" || b.Agent != c.spec.Agent:
		return notDue("frame %q runs agent %q", name, c.spec.Agent)
	}
	if err := checkBinding(b); err != nil {
		return err
	}
	for a := f; a != nil; a = a.parent {
		if a.holds(b) {
			return notDue("frame %q continues what an outer run continues", name)
		}
	}
	return nil
}

// holds says that a nested run would continue the conversation or the session that the
// frame continues.
func (f *Frame) holds(b *journal.Started) bool {
	s := f.session
	return b.Conversation != "" && b.Conversation == f.started.Conversation ||
		b.Previous != "" && (b.Previous == f.started.Previous || b.Previous == f.chain.id) ||
		b.Session != nil && s != nil && b.Session.ID == s.ID && b.Session.Backend == s.Backend
}

// enter begins a nested run.
func (m *Machine) enter(name string, b *journal.Started) {
	parent, c := m.caller(name)
	f := &Frame{m: m, name: name, parent: parent, call: c, depth: parent.depth + 1, handed: make(map[journal.EffectID]bool)}
	m.frames = append(m.frames, f)
	if m.named == nil {
		m.named = make(map[string]*Frame)
	}
	m.named[name] = f
	f.foldStarted(b)
	parent.landed(enterID(c))
	c.attempt = 1
	parent.move(c, callEntered)
}

// left ends a nested run for its caller [M17.6].
func (f *Frame) left() {
	if f.parent == nil {
		return
	}
	f.parent.move(f.call, callLeaving)
}

// exposed says that an attempt of the call may have happened, or of a call in its nested
// run, so that nobody knows its effect [M15.3] [M17.10].
func (f *Frame) exposed(c *call) bool {
	if !c.agent() {
		return c.exposed
	}
	n := f.nested(c)
	return n != nil && n.unsure()
}

// unsure says that nobody knows the effect of a call of the frame, or of one inside [M17.10].
func (f *Frame) unsure() bool {
	return slices.ContainsFunc(f.m.frames, func(o *Frame) bool {
		return len(o.unknowns) > 0 && (o == f || strings.HasPrefix(o.name, f.name+"/"))
	})
}

// stepAgent takes an agent call one step on [M17.2] [M17.6].
func (f *Frame) stepAgent(c *call) bool {
	switch {
	case c.state == callLeaving:
		return f.hand(leaveID(c))
	case f.depth >= MaxDepth:
		return f.add(&journal.Failed{ID: enterID(c), Code: CodeMaxDepth, Error: fmt.Sprintf("pawl: agents are nested deeper than %d", MaxDepth)})
	}
	return f.hand(enterID(c))
}

// run applies the rules to the frame and then to those nested in it, until nothing more
// follows [M17.5].
func (f *Frame) run() (some bool) {
	for {
		for f.step() {
			some = true
		}
		if f.entered == 0 || !f.runNested() {
			return some
		}
		some = true
	}
}

func (f *Frame) runNested() (some bool) {
	for _, c := range f.last().calls {
		if c.state == callEntered && f.nested(c).run() {
			some = true
		}
	}
	return some
}

// mayEndAgent says how a nested run that has ended settles its call [M17.7].
func (c *call) mayEndAgent(b *journal.Settled) bool {
	if c.state != callLeaving || b.ID.A != c.attempt || b.Running {
		return false
	}
	if c.trouble != nil {
		return b.Outcome == journal.ToolFailed
	}
	return b.Outcome == journal.Done
}

// agentDue says that an effect around the nested run of a call is due.
func (f *Frame) agentDue(id journal.EffectID) bool {
	c := f.find(journal.EffectID{Kind: journal.EffectTool, N: id.N, P: id.P})
	if c == nil || !c.agent() || f.closed() {
		return false
	}
	return c.state == callReady && f.cleared(c) && id == enterID(c) || c.state == callLeaving && id == leaveID(c)
}

// failAgent records a failure of an agent call's own effects, and reports whether the model
// is told of it [M17.11].
func (f *Frame) failAgent(b *journal.Failed) bool {
	c := f.find(journal.EffectID{Kind: journal.EffectTool, N: b.ID.N, P: b.ID.P})
	if !c.spec.TellFailure || c.trouble != nil {
		return false
	}
	c.trouble, c.attempt = b, 1
	f.move(c, callLeaving)
	return true
}

// fails records a failure of the frame: the nearest call around it that says so is told,
// else the run has failed [M17.8].
func (f *Frame) fails(b *journal.Failed) {
	for g := f; g.parent != nil && !f.closed(); g = g.parent {
		if g.call.spec.TellFailure {
			g.call.trouble = b
			g.close()
			return
		}
	}
	if f.m.failure == nil {
		f.m.failure, f.m.failedIn = b, f.name
	}
}

// close ends the frame and those nested in it [M17.9].
func (f *Frame) close() {
	for o := range f.tree() {
		o.withholdOpen()
		o.ending = true
		o.dropWaits()
	}
}

// dropWaits takes waits out of flight: a closed frame waits for what may have an outcome,
// not for a time [M15.2].
func (f *Frame) dropWaits() {
	//workflowcheck:ignore
	for id := range f.handed { // in any order
		if id.Kind == journal.EffectWait {
			f.landed(id)
		}
	}
}

// tree returns the frame and the open ones nested in it, each before those in it, in
// model order.
func (f *Frame) tree() iter.Seq[*Frame] {
	return func(yield func(*Frame) bool) { f.walk(yield) }
}

func (f *Frame) walk(yield func(*Frame) bool) bool {
	if !yield(f) {
		return false
	}
	if f.entered == 0 {
		return true
	}
	for _, c := range f.last().calls {
		if c.state == callEntered && !f.nested(c).walk(yield) {
			return false
		}
	}
	return true
}

// Frames returns the run's own frame and the open ones nested in it, each before those
// in it, in model order.
func (m *Machine) Frames() iter.Seq[*Frame] { return m.root.tree() }

// Frame returns the frame of that name, ended or not, nil if there is none. The name of
// the run's own is empty.
func (m *Machine) Frame(name string) *Frame {
	if name == "" {
		return m.root
	}
	return m.named[name]
}

// Name returns the frame's name, empty for the run's own.
func (f *Frame) Name() string { return f.name }

// Caller returns the call that runs the frame, and the frame of that call; for the run's own
// frame the call is zero.
func (f *Frame) Caller() (frame string, call journal.EffectID) {
	if f.parent == nil {
		return "", call
	}
	return f.parent.name, f.call.id
}

// Closed says that the frame starts nothing new: the run is cancelled, or its caller is told of
// a failure [M17.9].
func (f *Frame) Closed() bool { return f.closed() }

// Route returns the keys of the agents from the run's own to the frame's.
func (f *Frame) Route() []string {
	var route []string
	for ; f != nil; f = f.parent {
		route = append(route, f.agent)
	}
	slices.Reverse(route)
	return route
}

// dropped tells the model of a call that did not come to its end [M17.10].
func (f *Frame) dropped(c *call) item.Item {
	if c.agent() && f.nested(c) != nil {
		return f.output(c, StoppedText)
	}
	return f.output(c, CancelledText)
}
