package pawl

import (
	"iter"
	"slices"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// Event is something a stream shows. Apart from what a model sends while it writes, an
// event is shown after the fact it tells of is recorded. Its types are pointers to types of this
// package, as *Delta and *Done; expect new ones.
type Event interface{ event() }

// RunStarted is the first event of a stream.
type RunStarted struct {
	Run string
	// Resumed says that the run had begun before.
	Resumed bool
}

// AgentUpdated says which agent is the current one: at the beginning, and after a handoff.
type AgentUpdated struct{ Agent *Agent }

// Delta is a piece of a response that is still being written: of the answer if Kind is
// DeltaText. It is not recorded: if the attempt fails, a Reset says so.
type Delta struct {
	Kind          DeltaKind
	Text          string
	Turn, Attempt int
	// ItemID and OutputIndex say which item of the response it belongs to.
	ItemID      string
	OutputIndex int
}

// DeltaKind says what a delta is a piece of.
type DeltaKind string

// The kinds of deltas.
const (
	DeltaText      DeltaKind = "text"
	DeltaRefusal   DeltaKind = "refusal"
	DeltaReasoning DeltaKind = "reasoning"
	DeltaArguments DeltaKind = "arguments"
)

// RawModelEvent is a model server's event as it came.
type RawModelEvent struct {
	Type          string
	Data          []byte
	Turn, Attempt int
}

// Reset says that the deltas of the turn so far are void: another attempt begins.
type Reset struct{ Turn, Attempt int }

// ItemCreated says that an item is part of the run.
type ItemCreated struct {
	// Name says what kind of item it is, in the field's words.
	Name ItemName
	Item Item
	// Turn is the model turn it belongs to.
	Turn int
}

// ItemName says what an ItemCreated event tells of.
type ItemName string

// The names of item events.
const (
	MessageCreated   ItemName = "message_output_created"
	ToolCalled       ItemName = "tool_called"
	ToolOutput       ItemName = "tool_output"
	ReasoningCreated ItemName = "reasoning_item_created"
	OtherCreated     ItemName = "item_created"
	// ToolCalled and ToolOutput are those of tools that the model's server runs, too, but for
	// these.
	ToolSearchCalled        ItemName = "tool_search_called"
	ToolSearchOutputCreated ItemName = "tool_search_output_created"
	MCPListTools            ItemName = "mcp_list_tools"
	MCPApprovalRequested    ItemName = "mcp_approval_requested"
	MCPApprovalResponse     ItemName = "mcp_approval_response"
	// HandoffRequested is the call of a handoff, HandoffOccurred the output of the one
	// that took place.
	HandoffRequested ItemName = "handoff_requested"
	HandoffOccurred  ItemName = "handoff_occurred"
)

// ToolStarted says that a tool's body, or the agent that it runs, is about to run.
type ToolStarted struct {
	Tool, CallID, Key string
	Attempt           int
}

// Nested is an event of a nested run, that of an agent that was called as a tool.
type Nested struct {
	// Route are the keys of the agents from the run's own to the nested run's.
	Route []string
	// Call names the call that runs the agent: an Interruption.ID without its stage. It tells
	// nested runs of one agent apart.
	Call string
	// Event is not itself a Nested: of a run that is nested deeper the route is longer.
	Event Event
}

// Paused is the last event of a stream whose run waits for decisions.
type Paused struct {
	State         *RunState
	Interruptions []Interruption
	Result        *Result
}

// Done is the last event of a stream whose run has a final output.
type Done struct{ Result *Result }

func (*RunStarted) event()    {}
func (*AgentUpdated) event()  {}
func (*Delta) event()         {}
func (*RawModelEvent) event() {}
func (*Reset) event()         {}
func (*ItemCreated) event()   {}
func (*ToolStarted) event()   {}
func (*Nested) event()        {}
func (*Paused) event()        {}
func (*Done) event()          {}

// Collect reads a stream to its end and returns the result.
func Collect(events iter.Seq2[Event, error]) (*Result, error) {
	var res *Result
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		switch ev := ev.(type) {
		case *Paused:
			res = ev.Result
		case *Done:
			res = ev.Result
		}
	}
	return res, nil
}

var deltaKinds = map[model.EventKind]DeltaKind{
	model.EventTextDelta:      DeltaText,
	model.EventRefusalDelta:   DeltaRefusal,
	model.EventReasoningDelta: DeltaReasoning,
	model.EventArgumentsDelta: DeltaArguments,
}

func itemName(it Item) ItemName {
	switch t := it.Type(); t {
	case item.TypeMessage:
		return MessageCreated
	case item.TypeReasoning:
		return ReasoningCreated
	case item.TypeToolSearchCall:
		return ToolSearchCalled
	case item.TypeToolSearchOutput:
		return ToolSearchOutputCreated
	case item.TypeMCPListTools:
		return MCPListTools
	case item.TypeMCPApprovalRequest:
		return MCPApprovalRequested
	case item.TypeMCPApprovalResponse:
		return MCPApprovalResponse
	case item.TypeFileSearchCall, item.TypeWebSearchCall, item.TypeCodeInterpreterCall, item.TypeImageGenerationCall, item.TypeMCPCall, item.TypeProgram:
		return ToolCalled
	case item.TypeProgramOutput:
		return ToolOutput
	default:
		switch {
		case item.IsCall(t):
			return ToolCalled
		case item.IsOutput(t):
			return ToolOutput
		}
	}
	return OtherCreated
}

// shownIn is an event of a frame as the reader of the run's stream gets it.
func shownIn(m *machine.Frame, ev Event) Event {
	if m.Name() == "" {
		return ev
	}
	return &Nested{Route: m.Route(), Call: m.Name(), Event: ev}
}

// send shows an event of the frame.
func (f *frame) send(ev Event) { f.d.send(shownIn(f.m, ev)) }

// agentOf returns an agent of a frame; one that cannot be reached has only its key.
func (d *drive) agentOf(m *machine.Frame, key string) *Agent {
	if f, err := d.frame(m.Name()); err == nil {
		if a := f.team.find(key); a != nil {
			return a
		}
	}
	return &Agent{Key: key}
}

// show tells the hooks and the stream's reader of facts that are recorded now.
func (d *drive) show(facts []journal.Fact) {
	if d.hooked {
		d.tellHooks(facts)
	}
	if d.emit == nil {
		return
	}
	for _, f := range facts {
		showFact(d.m, f, d.agentOf, func(ev Event) { d.send(ev) })
	}
}

// showFact shows what a fact tells of that the machine has folded; agentOf finds the agents of
// a frame by their keys. There is one response a turn, so that a response and its turn have the
// same number.
func showFact(m *machine.Machine, f journal.Fact, agentOf func(m *machine.Frame, key string) *Agent, send func(Event)) {
	frame := m.Frame(f.Frame)
	show := func(ev Event) { send(shownIn(frame, ev)) }
	switch b := f.Body.(type) {
	case *journal.Started:
		if f.Frame != "" {
			caller, call := frame.Caller()
			outer := m.Frame(caller)
			info, _ := outer.Call(call)
			send(shownIn(outer, &ToolStarted{Tool: info.Spec.Name, CallID: info.CallID, Key: outer.KeyOf(call), Attempt: 1}))
			show(&AgentUpdated{Agent: agentOf(frame, b.Agent)})
		}
	case *journal.Responded:
		man := frame.ManifestOf(b.ID.N)
		for _, it := range b.Items {
			name := itemName(it)
			if name == ToolCalled && handsOver(man, it) {
				name = HandoffRequested
			}
			show(&ItemCreated{Name: name, Item: it, Turn: b.ID.N})
		}
	case *journal.Transferred:
		show(&ItemCreated{Name: HandoffOccurred, Item: b.Output, Turn: b.N})
		show(&AgentUpdated{Agent: agentOf(frame, b.Agent)})
	case *journal.Handled:
		if !b.Item.IsZero() {
			show(&ItemCreated{Name: MessageCreated, Item: b.Item, Turn: frame.Turn()})
		}
	case *journal.Planned:
		for i := range b.Calls {
			if out := b.Calls[i].Output; !out.IsZero() && b.Calls[i].Gate == journal.Allow {
				show(&ItemCreated{Name: itemName(out), Item: out, Turn: b.N})
			}
		}
	case *journal.Intended:
		if info, ok := frame.Call(b.ID); ok {
			show(&ToolStarted{Tool: info.Spec.Name, CallID: info.CallID, Key: frame.KeyOf(b.ID), Attempt: b.ID.A})
		}
	case *journal.Checked:
		if !b.Output.IsZero() && frame.OutputOf(callOf(b.ID)) == b.Output {
			show(&ItemCreated{Name: ToolOutput, Item: b.Output, Turn: b.ID.N})
		}
	case *journal.Settled:
		if !b.Output.IsZero() && !b.Late && frame.OutputOf(b.ID) == b.Output {
			show(&ItemCreated{Name: itemName(b.Output), Item: b.Output, Turn: b.ID.N})
		}
	}
}

// handsOver says that a call is one of a handoff that was offered.
func handsOver(man *journal.Manifest, call Item) bool {
	name := call.Head().Name
	return call.Type() == item.TypeFunctionCall && slices.ContainsFunc(man.Tools, func(s journal.ToolSpec) bool { return s.Handoff != "" && s.Name == name })
}
