package pawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-agents/pawl/internal/machine"
	"github.com/pawl-agents/pawl/journal"
)

// ToolSource has tools that are listed anew in every turn, as those of an MCP server: see
// package mcp. The runs of all agents that have it call its methods from any goroutine.
type ToolSource interface {
	// Label names the source, differently for each of an agent's. It is part of the
	// identity of its tools: a call that waits is run by no tool of another label. It must
	// not change while runs of the agent are open.
	Label() string
	// Tools returns the tools as they are now. It is called when a turn is prepared, and when
	// a run that was offered a tool of a source is resumed in the middle of a turn; it has 30
	// seconds. An error or a panic is a *ToolSourceError and begins no effect: the run can be
	// resumed. The tools must have a body: one that runs an agent, or that is Transactional,
	// stands in Agent.Tools.
	Tools(ctx context.Context, rc *RunContext) ([]Tool, error)
}

// ToolSourceError says that a source could not list its tools, or what it listed cannot be
// offered. The run can be resumed, which asks the source again.
type ToolSourceError struct {
	// Source is the label of the source.
	Source string
	Err    error
}

// Error names the source and says what is wrong.
func (e *ToolSourceError) Error() string {
	return fmt.Sprintf("pawl: the tools of source %q: %s", e.Source, bare(e.Err))
}

// Unwrap returns the cause.
func (e *ToolSourceError) Unwrap() error { return e.Err }

// listTimeout bounds a ToolSource that is asked for its tools.
const listTimeout = 30 * time.Second

// sourceOrigin begins the identity of a tool that a source listed.
const sourceOrigin = "source/"

// listTools asks the sources of the agent, in their order, for their tools. Two tools of one
// name are a *ConfigError.
func (a *Agent) listTools(ctx context.Context, rc *RunContext) ([]Tool, error) {
	if len(a.ToolSources) == 0 {
		return nil, nil
	}
	var all []Tool
	from := make(map[string]string) // the source of a name
	for _, s := range a.ToolSources {
		label, tools, err := listOf(ctx, s, rc)
		if err != nil {
			return nil, &ToolSourceError{Source: label, Err: err}
		}
		for _, t := range tools {
			other, twice := from[t.name]
			switch {
			case twice:
				return nil, a.sharedName(t.name, fmt.Sprintf("a tool of source %q and one of %q", other, label))
			case a.tool(t.name) != nil:
				return nil, a.sharedName(t.name, fmt.Sprintf("a tool of source %q, and a tool or handoff of the agent's own", label))
			}
			from[t.name] = label
			t.id = sourceOrigin + label + "/" + t.name + "/" + t.schema.Digest()
			all = append(all, t)
		}
	}
	return all, nil
}

func (a *Agent) sharedName(name, whose string) error {
	return &ConfigError{Field: "Agent.ToolSources", Problem: fmt.Sprintf("of agent %q: %s are named %q; leave one out, or put the source's label before the names of its tools", a.Name, whose, name)}
}

// listOf asks one source. A panic is an error.
func listOf(ctx context.Context, s ToolSource, rc *RunContext) (label string, tools []Tool, err error) {
	defer panicked("the source of tools", "", &err)
	label = s.Label()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if tools, err = s.Tools(ctx, rc); err != nil {
		return label, nil, err
	}
	for i := range tools {
		switch t := &tools[i]; {
		case t.Err() != nil:
			return label, nil, t.Err()
		case t.agent != nil:
			return label, nil, fmt.Errorf("pawl: tool %q runs an agent; such a tool stands in Agent.Tools", t.name)
		case t.effect == Transactional:
			return label, nil, fmt.Errorf("pawl: tool %q works in the store's transaction; such a tool stands in Agent.Tools", t.name)
		}
	}
	return label, tools, nil
}

// checkSources reports a source that cannot be asked, or whose tools could not be told from
// those of another.
func (a *Agent) checkSources() error {
	var labels []string
	for i, s := range a.ToolSources {
		label, err := labelOf(s)
		switch {
		case err != nil:
		case label == "":
			err = errors.New("it has no label")
		case !utf8.ValidString(label):
			err = errors.New("its label " + notUTF8)
		case slices.Contains(labels, label):
			err = fmt.Errorf("two sources have the label %q", label)
		}
		if err != nil {
			return &ConfigError{Field: fmt.Sprintf("Agent.ToolSources[%d]", i), Problem: fmt.Sprintf("of agent %q: %s", a.Name, bare(err))}
		}
		labels = append(labels, label)
	}
	return nil
}

// labelOf returns the label of a source. A panic is an error.
func labelOf(s ToolSource) (label string, err error) {
	if s == nil {
		return "", errors.New("it is nil")
	}
	defer panicked("Label of a source of tools", "", &err)
	return s.Label(), nil
}

// listing is the tools that the sources of an agent had when this drive last asked them.
type listing struct {
	agent *Agent
	tools []Tool
}

// list asks the sources of the frame's agent for their tools. Tools that say the same as those
// of the listing before take their place in it, so that what a turn offers can be told to be
// the same.
func (f *frame) list(turn int) error {
	if len(f.agent.ToolSources) == 0 {
		f.listing = nil
		return nil
	}
	tools, err := f.agent.listTools(f.d.ctx, f.turnContext(turn))
	if err != nil {
		return err
	}
	if f.lists() && slices.EqualFunc(f.listing.tools, tools, sameTool) {
		f.listing.tools = tools
		return nil
	}
	f.listing = &listing{f.agent, tools}
	return nil
}

// sameTool says that a turn offers the same with either tool.
func sameTool(a, b Tool) bool {
	return a.spec() == b.spec() && a.description == b.description && a.schema.JSON() == b.schema.JSON() && a.schema.Strict() == b.schema.Strict()
}

// lists says that the sources of the agent were asked in this drive.
func (f *frame) lists() bool { return f.listing != nil && f.listing.agent == f.agent }

// relist asks the sources in a drive that did not prepare the newest turn, if that offered a
// tool of theirs.
func (f *frame) relist() error {
	if len(f.agent.ToolSources) == 0 || f.lists() {
		return nil
	}
	man, _ := f.m.Manifest()
	if man == nil || !slices.ContainsFunc(man.Tools, fromSource) {
		return nil
	}
	return f.list(f.m.Turn())
}

func fromSource(s journal.ToolSpec) bool { return strings.HasPrefix(s.Identity, sourceOrigin) }

// needsTools says that an effect looks tools up before anybody asks whether that of its call has
// changed.
func needsTools(e machine.Effect) bool {
	return e.ID.Kind == journal.EffectModel || e.ID.Kind == journal.EffectPlan || e.ID.Kind == journal.EffectCheck
}

// listed are the tools of the sources, as far as this drive knows them.
func (f *frame) listed() []Tool {
	if f.lists() {
		return f.listing.tools
	}
	return nil
}

// callables are what the model may call in a turn of the frame's agent: the tools of its
// sources, its own, its handoffs.
func (f *frame) callables() iter.Seq[*Tool] {
	listed, own := f.listed(), f.agent
	return func(yield func(*Tool) bool) { // in one piece, which a loop need not allocate
		for i := range listed {
			if !yield(&listed[i]) {
				return
			}
		}
		for i := range own.Tools {
			if !yield(&own.Tools[i]) {
				return
			}
		}
		for i := range own.Handoffs {
			if !yield(&own.Handoffs[i].tool) {
				return
			}
		}
	}
}

// tool returns what the model may call by that name, nil if there is nothing.
func (f *frame) tool(name string) *Tool {
	listed := f.listed()
	for i := range listed {
		if listed[i].name == name {
			return &listed[i]
		}
	}
	return f.agent.tool(name)
}
