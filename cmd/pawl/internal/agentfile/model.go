package agentfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-agents/pawl/item"
	"github.com/pawl-agents/pawl/model"
	"github.com/pawl-agents/pawl/models/openai"
)

type reasoning = model.Reasoning

// modelOf finds a model by what the file says: openai:NAME, or demo.
func modelOf(name string) (model.Model, error) {
	provider, name, _ := strings.Cut(name, ":")
	switch {
	case provider == "" && name == "":
		return nil, errors.New("it is missing: openai:NAME, or demo")
	case provider == "demo" && name == "":
		return demo{}, nil
	case provider == "openai" && name != "":
		return openai.New(openai.FromEnv()).Responses(name), nil
	}
	return nil, fmt.Errorf("there is no %q: it is openai:NAME, or demo", provider)
}

// CheckModel says what the environment lacks to reach the model.
func (f *File) CheckModel() error {
	if f.Model == "demo" {
		return nil
	}
	return openai.FromEnv().Check()
}

// demo stands for a model: it needs no network and always does the same. What it is told, "TOOL ARGUMENTS", it calls; then
// it says what came of it.
type demo struct{}

func (demo) Info() model.Info { return model.Info{} }

func (demo) Call(_ context.Context, req *model.Request, _ func(*model.Event) bool) (*model.Response, error) {
	items := req.Input.Items()
	last := items[len(items)-1]
	if out, err := last.FunctionCallOutput(); err == nil {
		return says("It says: " + out.Text), nil
	}
	said, err := last.Message()
	if err != nil {
		return says("I do not know what to do with that."), nil
	}
	tool, arguments, _ := strings.Cut(strings.TrimSpace(said.Text()), " ")
	if arguments = strings.TrimSpace(arguments); arguments == "" {
		arguments = "{}"
	}
	for _, t := range req.Static.Tools {
		if t.Name == tool && json.Valid([]byte(arguments)) {
			call := item.FunctionCallItem("", fmt.Sprintf("call_%d", len(items)), tool, arguments)
			return &model.Response{Items: []item.Item{call}}, nil
		}
	}
	return says("You said: " + said.Text()), nil
}

func says(text string) *model.Response {
	return &model.Response{Items: []item.Item{item.MessageItem("", text)}}
}
