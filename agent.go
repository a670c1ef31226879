package pawl

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-agents/pawl/internal/schema"
	"github.com/pawl-agents/pawl/journal"
	"github.com/pawl-agents/pawl/model"
)

// Agent is what a run drives: instructions, tools and a model. It is a plain value
// that must not change while a run uses it; one Agent may serve many runs at once.
type Agent struct {
	// Name is for people and the model. It is required.
	Name string
	// Key identifies the agent in ledgers. Empty means Name, or the way to the agent if
	// one that it can be reached together with has that name, too. Give a key when the
	// name may change while runs of the agent are open.
	Key string
	// Instructions is the system prompt; nil means none.
	Instructions Instructions
	// Prompt names a prompt that the model's server keeps; nil means none. It needs a
	// model whose Info says ServerPrompts.
	Prompt Prompt
	// Model answers. It is required unless RunOptions.Model is set.
	Model model.Model
	// Settings are the model's options; nil means its defaults.
	Settings *ModelSettings
	// Tools the model may call, and Handoffs to other agents. All their names must differ.
	Tools    []Tool
	Handoffs []Handoff
	// ToolSources have more tools, which are listed anew in every turn. The model is offered
	// them before the agent's own.
	ToolSources []ToolSource
	// HandoffDescription tells the model of another agent when to hand over to this one.
	HandoffDescription string
	// ToolUse says what follows the tools of a turn; the zero value asks the
	// model again.
	ToolUse ToolUse
	// KeepToolChoice sends a ModelSettings.ToolChoice that forces a call in every turn.
	// Without it the choice is the model's again once the agent has used a tool in the
	// run, so that the model can come to an end. It governs RunOptions.Settings, too.
	KeepToolChoice bool
	// Output is the type of the final output; the zero value is text.
	Output OutputType
	// InputGuardrails check what a run that starts with the agent is asked, and what is added
	// to a run while the agent has the conversation. OutputGuardrails check a final output
	// of the agent.
	InputGuardrails  []InputGuardrail
	OutputGuardrails []OutputGuardrail
	// Hooks are told what happens while the agent has the conversation.
	Hooks *Hooks
}

// ModelSettings are the options of a model request.
type ModelSettings = model.Settings

// Instructions makes the system prompt of a turn. It is user code: it is called once
// a turn, also when a run is resumed, and its error fails the run, resumably.
type Instructions func(ctx context.Context, rc *RunContext) (string, error)

// Text returns fixed instructions.
func Text(s string) Instructions {
	return func(context.Context, *RunContext) (string, error) { return s, nil }
}

// RunContext is what user code of a run sees of it.
type RunContext struct {
	// Run is the run's id.
	Run string
	// Agent is the current agent.
	Agent *Agent
	// Turn counts model turns from 1.
	Turn int
	// Value is RunOptions.Context, or what a RunOptions.ContextCodec read of it.
	Value any
	// Invocation is the call that runs the agent as a tool; nil in the run itself.
	Invocation *Invocation
}

// SystemPrompt returns what the agent's Instructions say, empty without any. A panic of theirs is a
// *PanicError.
func (a *Agent) SystemPrompt(ctx context.Context, rc *RunContext) (text string, err error) {
	if a.Instructions == nil {
		return "", nil
	}
	defer panicked("Instructions of agent", a.Name, &err)
	if text, err = a.Instructions(ctx, rc); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// AllTools returns the tools that a turn would offer the model: those that the sources have
// now and the agent's own, as far as they are enabled, in their order.
func (a *Agent) AllTools(ctx context.Context, rc *RunContext) ([]Tool, error) {
	listed, err := a.listTools(ctx, rc)
	if err != nil {
		return nil, err
	}
	tools := make([]Tool, 0, len(listed)+len(a.Tools))
	for _, t := range slices.Concat(listed, a.Tools) {
		switch on, err := t.isEnabled(ctx, rc); {
		case err != nil:
			return nil, err
		case on:
			tools = append(tools, t)
		}
	}
	return tools, nil
}

// callables are what the model may call, but for what the sources have: the tools, then the
// handoffs.
func (a *Agent) callables() iter.Seq[*Tool] {
	return func(yield func(*Tool) bool) {
		for i := range a.Tools {
			if !yield(&a.Tools[i]) {
				return
			}
		}
		for i := range a.Handoffs {
			if !yield(&a.Handoffs[i].tool) {
				return
			}
		}
	}
}

// tool returns the callable of that name, nil if there is none.
func (a *Agent) tool(name string) *Tool {
	for t := range a.callables() {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (a *Agent) key() string {
	if a.Key != "" {
		return a.Key
	}
	return a.Name
}

// ToolUse says what follows the tools of a turn. Only calls whose body ran to an
// end count: rejected, unknown and timed-out ones never end a run.
type ToolUse struct {
	first  bool
	names  []string
	decide ToolUseFunc
}

// ToolUseFunc decides from the results of a turn's tools whether the run is over,
// and with which output. It may be called again after a crash, until its answer is
// recorded.
type ToolUseFunc func(ctx context.Context, rc *RunContext, results []ToolResult) (ToolUseDecision, error)

// ToolUseDecision is the answer of a ToolUseFunc.
type ToolUseDecision struct {
	Final  bool
	Output string
}

// ToolResult is a call of the turn whose body ran to an end.
type ToolResult struct {
	Tool, CallID, Arguments, Output string
}

// StopOnFirstTool makes the output of the turn's first call, in call order, the final
// output.
func StopOnFirstTool() ToolUse { return ToolUse{first: true} }

// StopAtTools makes the output of the first call to one of the named tools the
// final output.
func StopAtTools(names ...string) ToolUse { return ToolUse{names: names} }

// DecideToolUse leaves the choice to a function.
func DecideToolUse(f ToolUseFunc) ToolUse { return ToolUse{decide: f} }

// OutputType is the type of an agent's final output. The zero value is text.
type OutputType struct {
	schema *schema.Schema
	goType reflect.Type
	err    error
}

// OutputOf returns the structured output type of T, a Go type with a strict JSON
// Schema. A type without one makes every run of the agent fail before any effect,
// with an error that names the field; Err returns it earlier.
func OutputOf[T any]() OutputType {
	s, err := schema.ForOutput[T]()
	return OutputType{schema: s, goType: reflect.TypeFor[T](), err: err}
}

// Err returns why the type has no strict schema, nil if it has one.
func (t OutputType) Err() error { return t.err }

func (t OutputType) isText() bool { return t.schema == nil }

func (t OutputType) format() *model.OutputFormat {
	if t.schema == nil {
		return nil
	}
	return &model.OutputFormat{Name: "final_output", Schema: t.schema.JSON(), Strict: true}
}

// notUTF8 is what is wrong with a text that a ledger could not give back.
const notUTF8 = "is not valid UTF-8"

// check reports what is wrong with an agent, in a Runner with that store, before anything
// happens.
func (a *Agent) check(m model.Model, store journal.Driver) error {
	switch {
	case a == nil:
		return &ConfigError{Field: "agent", Problem: "is nil"}
	case a.Name == "":
		return &ConfigError{Field: "Agent.Name", Problem: "is empty"}
	case !utf8.ValidString(a.Name):
		return &ConfigError{Field: "Agent.Name", Problem: notUTF8}
	case !utf8.ValidString(a.Key):
		return &ConfigError{Field: "Agent.Key", Problem: notUTF8}
	case m == nil, isNil(m):
		return &ConfigError{Field: "Agent.Model", Problem: fmt.Sprintf("agent %q has no model", a.Name)}
	case a.Prompt != nil && !m.Info().ServerPrompts:
		return &ConfigError{Field: "Agent.Prompt", Problem: fmt.Sprintf("the server of model %q keeps no prompts", m.Info().Name)}
	case a.Output.err != nil:
		return &ConfigError{Field: "Agent.Output", Problem: a.Output.err.Error()}
	}
	seen := make(map[string]bool, len(a.Tools))
	for i := range a.Tools {
		t := &a.Tools[i]
		if err := t.Err(); err != nil {
			return &ConfigError{Field: "Agent.Tools", Problem: err.Error()}
		}
		if seen[t.name] {
			return twoTools(t)
		}
		seen[t.name] = true
	}
	for _, n := range a.ToolUse.names {
		if !seen[n] && len(a.ToolSources) == 0 {
			return &ConfigError{Field: "Agent.ToolUse", Problem: fmt.Sprintf("no tool is named %q", n)}
		}
	}
	if err := a.checkHandoffs(seen); err != nil {
		return err
	}
	if err := a.checkSources(); err != nil {
		return err
	}
	if err := a.checkGuardrails(); err != nil {
		return err
	}
	return a.checkTransactions(store)
}

func twoTools(t *Tool) error {
	problem := fmt.Sprintf("two tools are named %q", t.name)
	if t.agent != nil {
		problem += "; give the one that runs an agent another name with AgentToolOptions.Name or AgentFunc.Name"
	}
	return &ConfigError{Field: "Agent.Tools", Problem: problem}
}

// checkHandoffs reports a handoff that cannot be offered; seen are the names of the tools.
func (a *Agent) checkHandoffs(seen map[string]bool) error {
	for _, h := range a.Handoffs {
		if err := h.Err(); err != nil {
			return &ConfigError{Field: "Agent.Handoffs", Problem: err.Error()}
		}
		if seen[h.Name()] {
			return &ConfigError{Field: "Agent.Handoffs", Problem: fmt.Sprintf("agent %q has two tools or handoffs that are named %q", a.Name, h.Name())}
		}
		seen[h.Name()] = true
	}
	return nil
}

// checkGuardrails reports what is wrong with the guardrails.
func (a *Agent) checkGuardrails() error {
	if err := checkInputGuardrails(a.InputGuardrails); err != nil {
		return &ConfigError{Field: "Agent.InputGuardrails", Problem: fmt.Sprintf("of agent %q: %s", a.Name, err)}
	}
	if err := checkOutputGuardrails(a.OutputGuardrails); err != nil {
		return &ConfigError{Field: "Agent.OutputGuardrails", Problem: fmt.Sprintf("of agent %q: %s", a.Name, err)}
	}
	return nil
}
