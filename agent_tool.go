package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/internal/schema"
	"github.com/pawl-agents/pawl/journal"
)

// AgentInput are the arguments of a tool that AgentTool makes.
type AgentInput struct {
	Input string `json:"input" jsonschema:"What the agent is asked to do, with all that it has to know."`
}

// AgentToolOptions are the options of AgentTool; nil means all defaults. The fields mean what
// they mean in AgentFunc.
type AgentToolOptions struct {
	Name, Description string
	Enabled           func(ctx context.Context, rc *RunContext) (bool, error)
	Approve           func(ctx context.Context, c *Call, in AgentInput) (Gate, error)
	Expires           time.Duration
	OnExpiry          OnExpiry
	Output            func(ctx context.Context, c *Call, r *Result) (string, error)
	MaxTurns          int
	Options           *RunOptions
	FailRun           bool
	OnError           func(ctx context.Context, c *Call, err error) string
	InputGuardrails   []ToolInputGuardrail
	OutputGuardrails  []ToolOutputGuardrail
}

// AgentFunc describes a tool that runs an agent. In is a struct, as in Func.
//
// A call is a nested run: it has its own history, turns, approvals and sticky decisions, and is
// kept in the ledger of the run around it, with which it is resumed, forked and cancelled. The
// agent gets what Input makes of the arguments and nothing of the conversation around the call.
// The caller reads what Output makes of the result.
type AgentFunc[In any] struct {
	// Agent is what a call runs.
	Agent *Agent
	// Name is what the model calls; empty means the agent's name in lower case, with _ for
	// everything that is no letter and no digit.
	Name string
	// Description tells the model what the agent is for.
	Description string
	// Enabled says whether a turn offers the tool, as in Func.
	Enabled func(ctx context.Context, rc *RunContext) (bool, error)
	// Approve is the approval rule for starting the agent, as in Func. What the agent's own
	// tools ask is asked besides, as interruptions of the same run.
	Approve func(ctx context.Context, c *Call, in In) (Gate, error)
	// Expires and OnExpiry are those of that approval, as in Func.
	Expires  time.Duration
	OnExpiry OnExpiry
	// Input makes the agent's input. Nil means one user message: the text of an AgentInput,
	// and for any other In its JSON, behind a line that says so, with the descriptions of its
	// fields. It may be called again after a crash, until what it returned is recorded; its
	// error is a failure of the agent's.
	Input func(ctx context.Context, c *Call, in In) (Input, error)
	// IncludeSchema puts the whole JSON Schema of In in the place of those descriptions.
	IncludeSchema bool
	// Output makes what the caller reads. Nil means the final output, or, if that is empty,
	// the newest text of the agent or of one of its tools. It may be called again after a
	// crash, until what it returned is recorded; its error is a failure of the agent's.
	Output func(ctx context.Context, c *Call, r *Result) (string, error)
	// MaxTurns bounds the turns of a call: 0 means that of Options, or DefaultMaxTurns;
	// negative means no bound.
	MaxTurns int
	// Options are those of the nested run. Nil means the caller's, without its ID, session,
	// conversation and MaxTurns. Without a Context they have the caller's. A session or
	// conversation in them is the nested run's own: one that a run around it, or another
	// nested run of the same run, is on at the moment is a failure of the agent's.
	Options *RunOptions
	// FailRun makes a failure of the agent one of the whole run, which can be resumed.
	// Without it the nested run is stopped and the caller reads what OnError makes of the
	// error.
	FailRun bool
	// OnError makes the text that the caller reads for a failure of the agent; nil means a
	// standard text.
	OnError func(ctx context.Context, c *Call, err error) string
	// InputGuardrails check a call before the agent is started, OutputGuardrails what the
	// caller is to read, as in Func.
	InputGuardrails  []ToolInputGuardrail
	OutputGuardrails []ToolOutputGuardrail
}

// agentTool is what a tool that runs an agent has instead of a body.
type agentTool struct {
	agent    *Agent
	input    func(context.Context, *Call) (Input, error)
	output   func(context.Context, *Call, *Result) (string, error)
	options  *RunOptions // nil means the caller's
	maxTurns int
	failRun  bool
}

// AgentTool makes a tool that runs an agent on a text. Unlike a handoff, the conversation stays
// with the caller.
func AgentTool(a *Agent, o *AgentToolOptions) Tool {
	if o == nil {
		o = &AgentToolOptions{}
	}
	return NewAgentTool(AgentFunc[AgentInput]{Agent: a, Name: o.Name, Description: o.Description, Enabled: o.Enabled, Approve: o.Approve,
		Expires: o.Expires, OnExpiry: o.OnExpiry, Output: o.Output, MaxTurns: o.MaxTurns, Options: o.Options, FailRun: o.FailRun, OnError: o.OnError,
		InputGuardrails: o.InputGuardrails, OutputGuardrails: o.OutputGuardrails,
		Input: func(_ context.Context, _ *Call, in AgentInput) (Input, error) { return UserText(in.Input), nil }})
}

// NewAgentTool makes a tool that runs an agent. What is wrong with the description is returned
// by Err, and by every run of an agent that has the tool before any effect; so is what is wrong
// with the agent it runs.
func NewAgentTool[In any](f AgentFunc[In]) Tool {
	s, err := schema.For[In]()
	t := Tool{name: f.Name, description: f.Description, schema: s, enabled: f.Enabled, onError: f.OnError, expires: f.Expires,
		onExpiry: f.OnExpiry, guardsIn: f.InputGuardrails, guardsOut: f.OutputGuardrails, err: err}
	if f.Agent == nil {
		t.err = errors.New("has no Agent")
		return t.named()
	}
	if t.name == "" {
		t.name = nameOf(f.Agent.Name)
	}
	t.agent = &agentTool{agent: f.Agent, output: f.Output, options: f.Options, maxTurns: f.MaxTurns, failRun: f.FailRun}
	t.agent.input = func(ctx context.Context, c *Call) (Input, error) {
		if f.Input == nil {
			return UserText(argumentText(c.Arguments, s, f.IncludeSchema)), nil
		}
		var in In
		if err := s.Decode(c.Arguments, &in); err != nil {
			return nil, err
		}
		return f.Input(ctx, c, in)
	}
	if f.Approve != nil {
		t.gated = true
		t.approve = func(ctx context.Context, c *Call) (Gate, error) {
			var in In
			if err := s.DecodeValid(c.Arguments, &in); err != nil {
				return Ask, err
			}
			return f.Approve(ctx, c, in)
		}
	}
	return t.named()
}

// nameOf makes the name of a tool from that of an agent.
func nameOf(agent string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, strings.TrimSpace(agent))
}

// argumentText says to an agent what it was called with.
func argumentText(arguments string, s *schema.Schema, whole bool) string {
	text := "You were called as a tool, with these arguments as JSON:\n" + arguments
	if whole {
		return text + "\n\nTheir JSON Schema:\n" + s.JSON()
	}
	meaning := ""
	for _, properties := range members(s.JSON(), "properties") {
		jsonscan.Object(properties, func(name, property string) error {
			for _, d := range members(property, "description") {
				d, _ = jsonscan.String(d)
				meaning += "\n- " + name + ": " + d
			}
			return nil
		})
	}
	if meaning != "" {
		text += "\n\nWhat they mean:" + meaning
	}
	return text
}

// members returns the members of that name of a JSON object that is known to be sound.
func members(object, name string) (list []string) {
	jsonscan.Object(object, func(key, value string) error {
		if key == name {
			list = append(list, value)
		}
		return nil
	})
	return list
}

// Invocation is the call that runs an agent as a tool.
type Invocation struct {
	// Tool is the tool's name, CallID the model's id of the call, Key the call's own.
	Tool, CallID, Key string
	// Arguments are what the agent was called with, as JSON.
	Arguments string
}

// optionsOf returns the options of the runs that an agent's tool starts for a run with these
// options.
func (t *agentTool) optionsOf(caller *RunOptions) *RunOptions {
	o := *caller
	if t.options != nil {
		o = *t.options
		if o.Context == nil {
			o.Context = caller.Context
		}
	} else {
		o.ID, o.Session, o.ConversationID, o.PreviousResponseID, o.AutoPreviousResponseID = "", nil, "", "", false
		o.Supersede, o.MaxTurns = false, 0
	}
	if t.maxTurns != 0 {
		o.MaxTurns = t.maxTurns
	}
	return &o
}

// checkedAgent is an agent that was checked with the options it would run with.
type checkedAgent struct {
	agent *Agent
	opts  *RunOptions
}

// checkAgentTools reports what is wrong with the agents that an agent, run with these options,
// runs as tools, and with those that they run. They may run each other.
func (a *Agent) checkAgentTools(opts *RunOptions, store journal.Driver, seen map[checkedAgent]bool) error {
	for i := range a.Tools {
		t := a.Tools[i].agent
		if t == nil {
			continue
		}
		c := checkedAgent{t.agent, opts}
		if t.options != nil {
			c.opts = t.options
		}
		if seen[c] {
			continue
		}
		if seen == nil {
			seen = make(map[checkedAgent]bool)
		}
		seen[c] = true
		team, err := teamOf(t.agent)
		if err != nil {
			return err
		}
		if err := team.check(c.opts, store, t.options != nil && t.options.server(), seen); err != nil {
			return err
		}
		if t.options != nil {
			if err := t.options.check(t.agent.model(t.options), false); err != nil {
				return err
			}
			if t.options.ID != "" || t.options.Supersede {
				return &ConfigError{Field: "AgentFunc.Options", Problem: fmt.Sprintf("of tool %q: a nested run has no id of its own and closes no other run", a.Tools[i].name)}
			}
		}
	}
	return nil
}

// runs returns the agent's tool that runs another agent as a ledger says, nil if it is gone or
// runs another one now.
func (a *Agent) runs(tool, agent string) *Tool {
	t := a.tool(tool)
	if t == nil || t.agent == nil || t.agent.agent.key() != agent {
		return nil
	}
	return t
}
