package scenarios

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawl-agents/pawl"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
	"github.com/pawl-agents/pawl/pawltest"
)

// member is an agent as data. The first of a team is the one that runs are started with.
type member struct {
	Name, Key string
	Tools     []tool
	Transfers []transfer
	// Runs are the places in the team of agents that it has as tools, named as they are.
	Runs []int
	// MaxTurns bounds each call of the agent as a tool, 0 for the default.
	MaxTurns int
	// Retries is how often a failed request is sent again.
	Retries int
	// ToolUse is what follows the tools of a turn.
	ToolUse toolUse
	Guards  []guard
}

// guard is a guardrail. What it is asked is noted in a log beside that of the effects.
type guard struct {
	Name string
	On   pawl.GuardrailStage // the input or the output
	// Blocking guardrails on the input answer before the first request.
	Blocking bool
	// Trips is a text for which it trips.
	Trips string
}

// log is where guardrails note what they are asked.
func (s setup) guardLog() *pawltest.EffectLog { return pawltest.OpenEffectLog(s.Log + ".guards") }

// check answers for a text. Before it does, it does what the call of the API says.
func (g guard) check(ctx context.Context, log *pawltest.EffectLog, r request, text string) (pawl.GuardrailVerdict, error) {
	if err := log.Record(pawltest.Effect{Tool: g.Name, Arguments: text}); err != nil {
		return pawl.GuardrailVerdict{}, err
	}
	if before := r.Before[g.Name]; before != nil {
		if err := before(ctx); err != nil {
			return pawl.GuardrailVerdict{}, err
		}
	}
	return pawl.GuardrailVerdict{Tripped: g.Trips != "" && strings.Contains(text, g.Trips), Info: text}, nil
}

// guarded gives an agent the guardrails of its member.
func (m member) guarded(a *pawl.Agent, log *pawltest.EffectLog, r request) {
	for _, g := range m.Guards {
		switch g.On {
		case pawl.StageInput:
			a.InputGuardrails = append(a.InputGuardrails, pawl.InputGuardrail{Name: g.Name, Blocking: g.Blocking,
				Check: func(ctx context.Context, in *pawl.InputCheck) (pawl.GuardrailVerdict, error) {
					return g.check(ctx, log, r, strings.Join(shapes(raws(in.Input)), "; "))
				}})
		case pawl.StageOutput:
			a.OutputGuardrails = append(a.OutputGuardrails, pawl.OutputGuardrail{Name: g.Name,
				Check: func(ctx context.Context, out *pawl.OutputCheck) (pawl.GuardrailVerdict, error) {
					return g.check(ctx, log, r, out.Output)
				}})
		}
	}
}

// toolUse names a pawl.ToolUse.
type toolUse string

const (
	askAgain  toolUse = ""
	firstTool toolUse = "stop on the first tool"
	lastTool  toolUse = "stop at the last tool"
)

// transfer is a handoff to another agent of the team, which is noted in the log of effects.
type transfer struct {
	To   int
	Name string
	// Filtered says that the other agent reads messages only.
	Filtered bool
}

// team returns the agents of the cell.
func (s setup) team() []member {
	if s.Team == nil {
		return []member{{Name: "Desk", Tools: s.Tools}}
	}
	return s.Team
}

// instructions are those of an agent of a team, by which its requests are told from those of the others.
func (m member) instructions() string { return "Serve as " + m.Name + "." }

// nested are the instructions of the agents that are called as tools.
func (s setup) nested() []string {
	var list []string
	team := s.team()
	for _, m := range team {
		for _, i := range m.Runs {
			list = append(list, team[i].instructions())
		}
	}
	return list
}

// tools are those of all agents.
func (s setup) tools() []tool {
	var list []tool
	for _, m := range s.team() {
		list = append(list, m.Tools...)
	}
	return list
}

// agents makes the agents of a team, from nothing, and returns the first.
func (p *place) agents(team []member, r request) *pawl.Agent {
	log := pawltest.OpenEffectLog(p.Log)
	list := make([]*pawl.Agent, len(team))
	for i, m := range team {
		list[i] = &pawl.Agent{Name: m.Name, Key: m.Key, Instructions: pawl.Text(m.instructions()), Model: p.model()}
		if m.Retries > 0 {
			list[i].Settings = &pawl.ModelSettings{Retry: &model.Retry{MaxRetries: m.Retries, InitialDelay: time.Millisecond}}
		}
		if m.ToolUse == firstTool {
			list[i].ToolUse = pawl.StopOnFirstTool()
		}
		if m.ToolUse == lastTool {
			list[i].ToolUse = pawl.StopAtTools(m.Tools[len(m.Tools)-1].Name)
		}
		m.guarded(list[i], p.guardLog(), r)
		own, sources := m.equipment(log, r)
		list[i].Tools, list[i].ToolSources = own, sources
	}
	for i, m := range team {
		for _, n := range m.Runs {
			list[i].Tools = append(list[i].Tools, pawl.AgentTool(list[n], &pawl.AgentToolOptions{MaxTurns: team[n].MaxTurns}))
		}
		for _, t := range m.Transfers {
			list[i].Handoffs = append(list[i].Handoffs, t.make(log, list[t.To]))
		}
	}
	return list[0]
}

// equipment makes the tools of a member: its own, and those of its sources.
func (m member) equipment(log *pawltest.EffectLog, r request) (own []pawl.Tool, sources []pawl.ToolSource) {
	for _, t := range m.Tools {
		if t.Source == "" {
			own = append(own, t.make(log, r))
			continue
		}
		i := slices.IndexFunc(sources, func(s pawl.ToolSource) bool { return s.Label() == t.Source })
		if i < 0 {
			i, sources = len(sources), append(sources, &source{label: t.Source})
		}
		of := sources[i].(*source)
		of.tools = append(of.tools, t.make(log, r))
	}
	return own, sources
}

func (p *place) model() model.Model {
	m := openai.New(openai.Options{BaseURL: p.URL, HTTPClient: p.client}).Responses("gpt-test")
	if p.LooseIDs {
		return looseIDs{m}
	}
	return m
}

// looseIDs is a model that does not vouch for the ids of its calls.
type looseIDs struct{ model.Model }

func (m looseIDs) Info() model.Info {
	info := m.Model.Info()
	info.UniqueCallIDs = false
	return info
}

func (t transfer) make(log *pawltest.EffectLog, to *pawl.Agent) pawl.Handoff {
	f := pawl.HandoffFunc[struct{}]{Agent: to, Name: t.Name,
		OnHandoff: func(_ context.Context, h *pawl.HandoffCall, _ struct{}) error {
			return log.Record(pawltest.Effect{Tool: h.Handoff, Key: h.Key, CallID: h.ID, Attempt: 1})
		}}
	if t.Filtered {
		f.Filter = pawl.RemoveTools()
	}
	return pawl.NewHandoff(f)
}

// agent makes the agent of a call of the API, from nothing.
func (p *place) agent(r request) *pawl.Agent {
	team := slices.Clone(p.team())
	if r.Team != nil {
		team = slices.Clone(r.Team)
	}
	if r.Tools != nil {
		team[0].Tools = r.Tools
	}
	team[0].Tools = slices.Concat(team[0].Tools, r.MoreTools)
	return p.agents(team, r)
}

// does is the name by which a tool is known in the log of effects.
func (t tool) does() string { return cmp.Or(t.Does, t.Name) }
