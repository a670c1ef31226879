package openai

import (
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/model"
)

// offered is a tool of the request as far as choosing it goes.
type offered struct {
	kind, name string
	// deferred: the model sees the tool only after it searched for tools.
	deferred bool
	// inner are the tools of a namespace.
	inner []offered
}

// toolChoice writes the member "tool_choice" (https://platform.openai.com/docs/api-reference/responses/create): a word, a tool
// by name, or a hosted tool by its type. The server would refuse what is refused here, later and less clearly.
func (o *object) toolChoice(s *model.Settings, tools []model.Tool, prompt bool) error {
	choice := s.ToolChoice
	switch {
	case s.ToolChoiceRaw != "":
		if err := jsonscan.Valid(s.ToolChoiceRaw, maxRawDepth); err != nil {
			return err
		}
		o.raw("tool_choice", s.ToolChoiceRaw)
		return nil
	case choice == "":
		return nil
	case choice == "auto", choice == "none":
		o.string("tool_choice", choice)
		return nil
	}
	all, err := offeredTools(tools)
	switch {
	case err != nil:
		return err
	case choice == "required":
		if !prompt && onlyDeferred(all) {
			return errors.New("required, but all tools are deferred and there is no tool_search to find them with")
		}
		o.string("tool_choice", choice)
		return nil
	case prompt && len(all) == 0:
		return nil // the tools are those of the stored prompt, and so is the choice
	}
	kind, named, err := choose(choice, all)
	if err != nil {
		return err
	}
	o.name("tool_choice")
	o.open()
	o.string("type", kind)
	if named {
		o.string("name", choice)
	}
	o.close()
	return nil
}

// choose returns the type to choose a tool by, and whether its name belongs beside the type. A name wins over a type word.
func choose(choice string, all []offered) (kind string, named bool, err error) {
	for _, tool := range all {
		switch {
		case tool.name != choice:
		case tool.kind == "namespace":
			return "", false, fmt.Errorf("%q is a namespace, not a tool", choice)
		case tool.kind == "function" || tool.kind == "custom":
			if tool.deferred {
				return "", false, fmt.Errorf("%q is deferred: the model has to search for it first", choice)
			}
			return tool.kind, true, nil
		}
	}
	for _, tool := range all {
		for _, inner := range tool.inner {
			if inner.name == choice {
				return "", false, fmt.Errorf("%q is in the namespace %q: a tool there cannot be chosen by name", choice, tool.name)
			}
		}
		if tool.kind != choice {
			continue
		}
		switch tool.kind {
		case "tool_search":
			return "", false, errors.New("tool_search cannot be chosen")
		case "mcp":
			return "", false, errors.New("mcp needs the server's label: use ToolChoiceRaw")
		case "function", "custom", "namespace":
		default:
			return tool.kind, false, nil
		}
	}
	return "", false, fmt.Errorf("%q is not among the tools", choice)
}

func onlyDeferred(all []offered) bool {
	for _, tool := range all {
		switch {
		case tool.kind == "tool_search":
			return false
		case tool.kind == "namespace" && onlyDeferred(tool.inner):
		case !tool.deferred:
			return false
		}
	}
	return len(all) > 0
}

func offeredTools(tools []model.Tool) ([]offered, error) {
	all := make([]offered, 0, len(tools))
	for i := range tools {
		if tools[i].Raw == "" {
			all = append(all, offered{kind: "function", name: tools[i].Name})
			continue
		}
		tool, err := readOffered(tools[i].Raw)
		if err != nil {
			return nil, fmt.Errorf("tool %d: %w", i+1, err)
		}
		all = append(all, tool)
	}
	return all, nil
}

// readOffered reads a tool in the provider's own JSON.
func readOffered(raw string) (offered, error) {
	var tool offered
	err := jsonscan.Object(raw, func(key, value string) error {
		var err error
		switch key {
		case "type":
			tool.kind, err = jsonscan.String(value)
		case "name":
			tool.name, err = jsonscan.String(value)
		case "defer_loading":
			tool.deferred = value == "true"
		case "tools":
			err = jsonscan.Array(value, func(raw string) error {
				inner, err := readOffered(raw)
				tool.inner = append(tool.inner, inner)
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	return tool, err
}
