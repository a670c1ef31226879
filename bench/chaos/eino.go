package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
)

// The files of the eino and of the JavaScript adapter: what is paused, where, and the result. They are written the way the
// application of a careful person would: whole or not at all.
const (
	pausedFile = "paused"
	targetFile = "target"
	resultFile = "result"
)

// eino is the adapter of eino: an adk.Runner with a CheckPointStore, which saves the run when its tool interrupts it to ask for
// approval (https://www.cloudwego.io/docs/eino/core_modules/eino_adk/agent_hitl/).
func (a *adapter) eino(ctx context.Context) (standing, error) {
	if text, err := os.ReadFile(filepath.Join(a.dir, resultFile)); err == nil {
		return standing{State: "finished", Text: string(text)}, nil
	}
	pay, err := utils.InferTool("pay", "Pays the customer.", a.einoPay)
	if err != nil {
		return standing{}, err
	}
	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{Name: "payer", Description: "Pays.", Model: einoModel{a},
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{pay}}}})
	if err != nil {
		return standing{}, err
	}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, CheckPointStore: files{a.dir}})
	target, err := os.ReadFile(filepath.Join(a.dir, targetFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.einoFollow(ctx, runner.Query(ctx, "Pay the customer.", adk.WithCheckPointID(pausedFile)))
	case err != nil:
		return standing{}, err
	case a.step == stepStart:
		return standing{State: "waiting"}, nil
	}
	events, err := runner.ResumeWithParams(ctx, pausedFile, &adk.ResumeParams{Targets: map[string]any{string(target): "approved"}})
	if err != nil {
		return standing{}, err
	}
	return a.einoFollow(ctx, events)
}

// einoFollow follows a run to its pause or its end.
func (a *adapter) einoFollow(ctx context.Context, events *adk.AsyncIterator[*adk.AgentEvent]) (standing, error) {
	text, target := "", ""
	for {
		ev, more := events.Next()
		if !more {
			break
		}
		if ev.Err != nil {
			return standing{}, ev.Err
		}
		if ev.Action != nil && ev.Action.Interrupted != nil {
			for _, c := range ev.Action.Interrupted.InterruptContexts {
				if c.IsRootCause {
					target = c.ID
				}
			}
		}
		if ev.Output != nil && ev.Output.MessageOutput != nil && ev.Output.MessageOutput.Message != nil {
			text = ev.Output.MessageOutput.Message.Content
		}
	}
	if target != "" {
		// The checkpoint is saved by now. A death before this line leaves one that nobody asks for: the job starts again.
		if err := (files{a.dir}).Set(ctx, targetFile, []byte(target)); err != nil {
			return standing{}, err
		}
		_, err := a.ask(ctx, "/paused", body{})
		return standing{State: "waiting"}, err
	}
	if _, err := a.ask(ctx, "/finished", body{}); err != nil {
		return standing{}, err
	}
	return standing{State: "finished", Text: text}, (files{a.dir}).Set(ctx, resultFile, []byte(text))
}

// einoPay is the tool: the first time it interrupts the run, and when it is resumed with an approval it pays.
func (a *adapter) einoPay(ctx context.Context, _ payment) (string, error) {
	if was, _, _ := tool.GetInterruptState[any](ctx); !was {
		return "", tool.Interrupt(ctx, "May I pay?")
	}
	if _, _, answer := tool.GetResumeContext[string](ctx); answer != "approved" {
		return "", tool.Interrupt(ctx, "May I pay?")
	}
	return a.pay(ctx, compose.GetToolCallID(ctx))
}

// files is a CheckPointStore in a directory.
type files struct{ dir string }

// Get implements adk.CheckPointStore.
func (f files) Get(_ context.Context, id string) ([]byte, bool, error) {
	b, err := os.ReadFile(filepath.Join(f.dir, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return b, err == nil, err
}

// Set implements adk.CheckPointStore.
func (f files) Set(_ context.Context, id string, b []byte) error {
	name := filepath.Join(f.dir, id)
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// einoModel asks the harness.
type einoModel struct{ a *adapter }

// Generate implements model.BaseChatModel.
func (m einoModel) Generate(ctx context.Context, input []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	var b body
	for _, msg := range input {
		if msg.Role == schema.Tool {
			b.Outputs = append(b.Outputs, msg.Content)
		}
	}
	r, err := m.a.ask(ctx, "/model", b)
	if err != nil || r.Call == "" {
		return schema.AssistantMessage(r.Text, nil), err
	}
	arguments, err := json.Marshal(payment{5})
	return schema.AssistantMessage("", []schema.ToolCall{{ID: r.Call, Type: "function",
		Function: schema.FunctionCall{Name: "pay", Arguments: string(arguments)}}}), err
}

// Stream implements model.BaseChatModel.
func (m einoModel) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	msg, err := m.Generate(ctx, input, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{msg}), nil
}

// WithTools implements model.ToolCallingChatModel.
func (m einoModel) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }
