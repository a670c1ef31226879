package pawl

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/pawl-agents/pawl/item"
)

// Prompt names the prompt of a turn that the model's server keeps. It is user code: it is
// called once a turn, what it returned is recorded with the turn, and its error fails the
// run, resumably. It must return a prompt.
type Prompt func(ctx context.Context, rc *RunContext) (*PromptRef, error)

// PromptRef is a prompt that the model's server keeps
// (https://platform.openai.com/docs/api-reference/responses/create#responses-create-prompt).
type PromptRef struct {
	// ID is the server's id of the prompt.
	ID string
	// Version of the prompt; empty means the server's current one.
	Version string
	// Variables are what stands for the variables of the prompt, Parts those of them that
	// are images or files. No name may be in both.
	Variables map[string]string
	Parts     map[string]item.Part
}

// StaticPrompt returns the same prompt for every turn.
func StaticPrompt(ref PromptRef) Prompt {
	return func(context.Context, *RunContext) (*PromptRef, error) { return &ref, nil }
}

// prompt asks the agent for the prompt of a turn, in the form in which it is recorded and
// sent.
func (a *Agent) prompt(ctx context.Context, rc *RunContext) (text string, err error) {
	defer panicked("Prompt of agent", a.Name, &err)
	ref, err := a.Prompt(ctx, rc)
	if err != nil {
		return "", err
	}
	if text, err = ref.json(); err != nil {
		return "", because(fmt.Errorf("pawl: agent %q: Prompt", a.Name), err)
	}
	return text, nil
}

func (p *PromptRef) json() (string, error) {
	switch {
	case p == nil:
		return "", fmt.Errorf("pawl: it returned none")
	case p.ID == "":
		return "", fmt.Errorf("pawl: it returned one without an id")
	}
	variables := make(map[string]any, len(p.Variables)+len(p.Parts))
	for name, text := range p.Variables {
		variables[name] = text
	}
	for name, part := range p.Parts {
		if _, twice := variables[name]; twice {
			return "", fmt.Errorf("pawl: the variable %q is a text and a part", name)
		}
		variables[name] = json.RawMessage(part.Raw())
	}
	for name := range variables {
		if !utf8.ValidString(name) {
			return "", fmt.Errorf("pawl: the name of the variable %q %s", name, notUTF8)
		}
	}
	text, err := json.Marshal(struct {
		ID        string         `json:"id"`
		Version   string         `json:"version,omitempty"`
		Variables map[string]any `json:"variables,omitempty"`
	}{p.ID, p.Version, variables})
	return string(text), err
}
