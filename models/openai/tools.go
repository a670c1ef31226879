package openai

import (
	"errors"
	"fmt"

	"github.com/pawl-agents/pawl/internal/jsonscan"
	"github.com/pawl-agents/pawl/model"
)

// maxRawDepth bounds how deep JSON nests that is passed on as it is.
const maxRawDepth = 512

// tools writes the tools in their order.
func (o *object) tools(tools []model.Tool) error {
	if len(tools) == 0 {
		return nil
	}
	o.name("tools")
	o.text = append(o.text, '[')
	for i := range tools {
		if i > 0 {
			o.text = append(o.text, ',')
		}
		if err := o.tool(&tools[i]); err != nil {
			return fmt.Errorf("tool %d (%s): %w", i+1, tools[i].Name, err)
		}
	}
	o.text = append(o.text, ']')
	return nil
}

func (o *object) tool(t *model.Tool) error {
	if t.Raw != "" {
		if err := checkObject(t.Raw); err != nil {
			return err
		}
		o.text = append(o.text, t.Raw...)
		return nil
	}
	if t.Name == "" {
		return errors.New("a function needs a name")
	}
	o.open()
	o.string("type", "function")
	o.string("name", t.Name)
	o.stringIfSet("description", t.Description)
	if t.Parameters == "" {
		o.raw("parameters", "null")
	} else {
		if err := checkObject(t.Parameters); err != nil {
			return fmt.Errorf("parameters: %w", err)
		}
		o.raw("parameters", t.Parameters)
	}
	o.bool("strict", t.Strict) // always, because the server's default is true
	o.close()
	return nil
}

// checkObject reports why raw is not one JSON object.
func checkObject(raw string) error {
	if err := jsonscan.Valid(raw, maxRawDepth); err != nil {
		return err
	}
	return jsonscan.Object(raw, func(string, string) error { return nil })
}
