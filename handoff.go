package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl/internal/schema"
)

// Handoff lets the model hand the conversation over to another agent: it is offered like a
// tool, and once the model has called it, that agent answers in the turns that follow. Make
// one with HandoffTo or NewHandoff. It is immutable and safe for concurrent use.
//
// The other calls of the response run first, also those that wait for an approval; then the
// conversation changes hands, once. Of several handoffs in a response the first counts, and
// the others are answered with that they were ignored. Agents may hand over to each other and
// to themselves: RunOptions.MaxTurns is what ends that.
type Handoff struct{ tool Tool }

// handoff is what a tool has that hands the conversation over, in place of a body.
type handoff struct {
	agent *Agent
	// takes says that the call has arguments; without, those that the model gave count
	// for nothing.
	takes  bool
	on     func(context.Context, *HandoffCall) error // nil without one
	filter HandoffFilter                             // nil: that of the run
}

// HandoffFunc describes a handoff. In is a struct, the arguments that the model is asked for,
// as those of a Func; struct{} for none.
type HandoffFunc[In any] struct {
	// Agent gets the conversation. Its Key, or else its Name, identifies it in the ledger.
	Agent *Agent
	// Name is what the model calls. Empty means transfer_to_ and the agent's name, in
	// lower case, with _ for what is no letter of ASCII and no digit.
	Name string
	// Description tells the model when to hand over. Empty means a sentence with the
	// agent's name, and its HandoffDescription.
	Description string
	// Enabled says whether a turn offers the handoff, as that of a tool.
	Enabled func(ctx context.Context, rc *RunContext) (bool, error)
	// OnHandoff is told of the handoff before it takes place, with the arguments. It is
	// called once, but may be called again if the process dies before the handoff is
	// recorded: HandoffCall.Key is the same then. Its error, or a panic, fails the run,
	// resumably: the handoff is tried again. It is needed if there are arguments.
	OnHandoff func(ctx context.Context, h *HandoffCall, in In) error
	// Filter says what the agent is to read of the conversation so far; nil means
	// RunOptions.HandoffFilter. It is called before OnHandoff.
	Filter HandoffFilter
}

// HandoffCall is a handoff that is about to take place.
type HandoffCall struct {
	// RunContext is that of the agent that hands over.
	RunContext
	// To is the agent that gets the conversation.
	To *Agent
	// Handoff is the name that the model called, ID the model's id of the call.
	Handoff, ID string
	// Key is equal whenever this handoff is tried, and different for every other call.
	Key string
	// Arguments are what the model gave, as JSON.
	Arguments string
}

// HandoffTo returns a handoff to an agent, with nothing but defaults.
func HandoffTo(agent *Agent) Handoff { return NewHandoff(HandoffFunc[struct{}]{Agent: agent}) }

// NewHandoff makes a handoff. What is wrong with the description is returned by Err, and by
// every run that could come to an agent with the handoff, before any effect.
func NewHandoff[In any](f HandoffFunc[In]) Handoff {
	s, err := schema.For[In]()
	h := &handoff{agent: f.Agent, filter: f.Filter}
	t := Tool{name: f.Name, description: f.Description, schema: s, enabled: f.Enabled, handoff: h, err: err}
	if t.err == nil {
		h.takes = !s.IsEmpty()
	}
	switch {
	case t.err != nil:
	case f.Agent == nil:
		t.err = errors.New("has no agent")
	case h.takes && f.OnHandoff == nil:
		t.err = errors.New("has arguments, and no OnHandoff that reads them")
	case t.name == "" && f.Agent.Name == "":
		t.err = errors.New("its agent has no name")
	}
	if t.name == "" && f.Agent != nil {
		t.name = "transfer_to_" + nameOf(f.Agent.Name)
	}
	if f.OnHandoff != nil {
		h.on = func(ctx context.Context, c *HandoffCall) error {
			var in In
			if h.takes {
				if err := s.Decode(c.Arguments, &in); err != nil {
					return err
				}
			}
			return f.OnHandoff(ctx, c, in)
		}
	}
	return Handoff{t.named()}
}

// Name returns what the model calls.
func (h Handoff) Name() string { return h.tool.name }

// Agent returns the agent that gets the conversation.
func (h Handoff) Agent() *Agent {
	if h.tool.handoff == nil {
		return nil
	}
	return h.tool.handoff.agent
}

// Err returns what is wrong with the handoff, nil if nothing is.
func (h Handoff) Err() error {
	if h.tool.handoff == nil {
		return errors.New("pawl: the handoff leads nowhere; make it with HandoffTo or NewHandoff")
	}
	return h.tool.err
}

// HandoffPrefix is a beginning for the instructions of agents that hand over to each other: it
// says to the model what a handoff is, and that it is no matter for the user.
const HandoffPrefix = `You are one of several agents that share one conversation. Each has its own task and its own tools. ` +
	`Hand the conversation over when another agent fits the request better, by calling the function that is named after it, as a rule transfer_to_ and its name. ` +
	`Do not speak of handing over, nor of other agents: to the user it is one conversation.

`

// describe returns what the model reads of a tool.
func (t *Tool) describe() string {
	if t.handoff == nil || t.description != "" {
		return t.description
	}
	to := t.handoff.agent
	return strings.TrimSpace(fmt.Sprintf("Hand the conversation over to the agent %s, who handles the request. %s", to.Name, to.HandoffDescription))
}

// transferText is what the model reads of a handoff that took place.
func transferText(to *Agent) string {
	text, _ := json.Marshal(map[string]string{"assistant": to.Name}) // a map of texts can be written
	return string(text)
}

// ignoredText is what it reads of one that did not, because another one of the response does.
const ignoredText = "Ignored: another call of the same response hands the conversation over."
